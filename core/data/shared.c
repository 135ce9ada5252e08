/* Rows of data.eval that are also rows of data.train. */
#include "base/fs.h"
#include "base/log.h"
#include "data/dataset.h"
#include "data/hash_set.h"

#include <string.h>

/* Hashes what the model is asked, whatever the row is called. */
static uint64_t question_hash(const struct row *r)
{
    uint64_t h = fs_hash(r->question.data, r->question.size, 7);
    if (r->messages.data) h = fs_hash(r->messages.data, r->messages.size, h);
    for (int64_t i = 0; i < r->n_choices; i++) h = fs_hash(r->choices[i].data, r->choices[i].size, h);
    return h;
}

static tare_status count_shared(const struct dataset *train, const struct dataset *eval, struct seen *seen, int64_t *shared,
                                const struct row **first, struct err *e)
{
    int64_t earlier;
    *shared = 0;
    for (int64_t i = 0; i < train->n; i++) TRY(hash_set_add(seen, question_hash(&train->rows[i]), i, &earlier, e));
    for (int64_t i = 0; i < eval->n; i++) {
        TRY(hash_set_add(seen, question_hash(&eval->rows[i]), train->n + i, &earlier, e));
        if (earlier < 0 || earlier >= train->n) continue;
        if (!(*shared)++) *first = &eval->rows[i];
    }
    return TARE_OK;
}

tare_status dataset_warn_shared(const struct config *c, const struct dataset *train, const struct dataset *eval, struct err *e)
{
    OWNED(hash_set_free) struct seen seen = {0};
    const struct row *first = NULL;
    int64_t shared;
    if (!config_evaluates(c)) return TARE_OK;
    TRY(count_shared(train, eval, &seen, &shared, &first, e));
    if (!shared) return TARE_OK;
    log_warn(
        "%s: %lld of the %lld rows of data.eval are also in data.train (the first is %s): the held-out reward would be that of trained questions; name other rows",
        config_where(c, "data", "eval"), (long long)shared, (long long)eval->n, first->where);
    return TARE_OK;
}
