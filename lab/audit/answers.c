/* Finds rows of data.train by their question and answer. A trainer's prompt may be the question inside a chat
 * template. */
#include "data/choices.h"
#include "lab/audit/internal.h"

#include <stdlib.h>
#include <string.h>

static int by_hash(const void *a, const void *b)
{
    const struct answer_key *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : (x->row > y->row) - (x->row < y->row);
}

tare_status answers_open(const struct config *c, struct answers *out, struct err *e)
{
    *out = (struct answers){0};
    if (!*c->data.train) return TARE_OK;
    TRY(dataset_of(c, "train", &out->data, e));
    out->open = true;
    if (c->data.permute_choices) TRY(choices_permute(&out->data, (uint64_t)c->data.permute_seed, e));
    TRY(mem_new((out->data.n + 1) * (int64_t)sizeof *out->by_hash, (void **)&out->by_hash, e));
    for (int64_t i = 0; i < out->data.n; i++) {
        const tare_text q = out->data.rows[i].question;
        out->by_hash[i] = (struct answer_key){fs_hash(q.data, q.size, 0), i};
    }
    qsort(out->by_hash, (size_t)out->data.n, sizeof *out->by_hash, by_hash);
    return TARE_OK;
}

void answers_close(struct answers *a)
{
    if (a->open) dataset_free(&a->data);
    mem_free(a->by_hash);
    *a = (struct answers){0};
}

static bool equal_texts(tare_text a, tare_text b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

/* Of several rows with this question, prefers the one with this answer. */
static const struct row *find_equal(const struct answers *a, tare_text prompt, tare_text answer)
{
    const struct row *first = NULL;
    const uint64_t hash = fs_hash(prompt.data, prompt.size, 0);
    int64_t low = 0, high = a->data.n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a->by_hash[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < a->data.n && a->by_hash[low].hash == hash; low++) {
        const struct row *r = &a->data.rows[a->by_hash[low].row];
        if (!equal_texts(r->question, prompt)) continue;
        if (equal_texts(r->answer, answer)) return r;
        if (!first) first = r;
    }
    return first;
}

static bool contains_text(tare_text text, tare_text part)
{
    for (int64_t at = 0; at + part.size <= text.size; at++) {
        const char *found = memchr(text.data + at, part.data[0], (size_t)(text.size - part.size - at + 1));
        if (!found) return false;
        at = found - text.data;
        if (!memcmp(found, part.data, (size_t)part.size)) return true;
    }
    return false;
}

const struct row *answers_find(const struct answers *a, tare_text prompt, tare_text answer)
{
    const struct row *best = NULL;
    if (!a->open || !prompt.data) return NULL;
    best = find_equal(a, prompt, answer);
    for (int64_t i = 0; !best && i < a->data.n; i++) {
        const struct row *r = &a->data.rows[i];
        if (r->question.size >= prompt.size || !contains_text(prompt, r->question)) continue;
        best = r;
        for (int64_t k = i + 1; k < a->data.n; k++)
            if (a->data.rows[k].question.size > best->question.size && a->data.rows[k].question.size < prompt.size &&
                contains_text(prompt, a->data.rows[k].question))
                best = &a->data.rows[k];
    }
    return best;
}
