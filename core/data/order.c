#include "data/order.h"

#include "base/arena.h"
#include "base/rng.h"

tare_status order_init(struct order *o, int64_t rows, bool shuffle, uint64_t seed, struct err *e)
{
    *o = (struct order){.n = rows, .shuffle = shuffle, .seed = seed, .epoch = -1};
    if (rows < 1) FAIL(e, TARE_E_INVALID, "no rows to draw prompts from");
    return mem_new(rows * (int64_t)sizeof *o->index, (void **)&o->index, e);
}

void order_free(struct order *o)
{
    mem_free(o->index);
    *o = (struct order){0};
}

static void enter_epoch(struct order *o, int64_t epoch)
{
    if (o->epoch == epoch) return;
    if (o->epoch < 0 || o->shuffle)
        for (int64_t i = 0; i < o->n; i++) o->index[i] = i;
    if (o->shuffle) rng_shuffle(rng_derive(rng_key(o->seed, RNG_SHUFFLE), (uint64_t)epoch), o->index, o->n);
    o->epoch = epoch;
}

/* Counts how often the row occurred before. A step over k epochs meets a row at most k + 1 times,
 * so scanning back over m prompts needs no table. */
static int64_t count_occurrences(const int64_t *rows, int64_t upto)
{
    int64_t n = 0;
    for (int64_t i = 0; i < upto; i++) n += rows[i] == rows[upto];
    return n;
}

void order_occurrences(const int64_t *rows, int64_t m, int64_t *occurrence)
{
    for (int64_t i = 0; i < m; i++) occurrence[i] = count_occurrences(rows, i);
}

tare_status order_next(struct order *o, int64_t *cursor, int64_t m, int64_t *rows, int64_t *occurrence, struct err *e)
{
    if (*cursor < 0 || m < 0 || *cursor > INT64_MAX - m)
        FAIL(e, TARE_E_RANGE, "cursor %lld with %lld prompts is outside the prompt order", (long long)*cursor, (long long)m);
    for (int64_t i = 0; i < m; i++) {
        const int64_t at = *cursor + i;
        enter_epoch(o, at / o->n);
        rows[i] = o->index[at % o->n];
        if (occurrence) occurrence[i] = count_occurrences(rows, i);
    }
    *cursor += m;
    return TARE_OK;
}
