/* Process rewards: maps segments of completions, in bytes, to token columns. A token belongs to the
 * segment in which it begins; a segment's reward goes to the token in which it ends. A segment
 * inside a single token contributes only its reward. */
#include "verify/internal.h"

#include <math.h>

static void place_item(const struct verify_item *item, double weight, int64_t first, int64_t last, struct batch *b)
{
    int64_t k = 0, begin = 0;
    for (int64_t t = first; t < last && k < item->n_segments; begin = b->token_end[t++]) {
        while (k < item->n_segments && item->segment[k].end <= begin) k++;
        if (k < item->n_segments) b->segment[t] = (int32_t)k + 1;
        for (int64_t i = k; i < item->n_segments && item->segment[i].end <= b->token_end[t]; i++)
            b->segment_reward[t] += weight * item->segment[i].reward;
    }
}

/* Refuses rewards whose square would overflow: estimators add and square them, and the error would
 * name the estimator. */
static tare_status check_size(const struct verify_item *item, double weight, struct err *e)
{
    const double most = 1e100;
    for (int64_t k = 0; k < item->n_segments; k++)
        if (!(fabs(weight * item->segment[k].reward) <= most))
            FAIL(e, TARE_E_NOT_FINITE,
                 "row %s, sample %lld: the reward of segment %lld is %g, weighted by verifier.plugins %g: must be in -%g .. %g",
                 item->name ? item->name : "", (long long)item->sample, (long long)k + 1, item->segment[k].reward,
                 weight * item->segment[k].reward, most, most);
    return TARE_OK;
}

tare_status verify_place_segments(const struct verify *v, const struct verify_item *items, struct batch *b, struct arena *a,
                                  struct err *e)
{
    TRY(arena_new(a, &b->segment, b->n_tokens, e));
    TRY(arena_new(a, &b->segment_reward, b->n_tokens, e));
    const double weight = v->verifiers[v->segmenter].weight;
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        TRY(check_size(&items[i], weight, e));
        place_item(&items[i], weight, b->token_begin[i], b->token_begin[i + 1], b);
    }
    return TARE_OK;
}
