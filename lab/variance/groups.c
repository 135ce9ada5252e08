/* Choose the groups of resampled batches. Keys of random numbers: (seed, RNG_VARIANCE) -> 2 ->
 * series -> batch for the prompts, and further -> group size -> place in the batch for the
 * rollouts. */
#include "lab/variance/measure.h"

#include "base/rng.h"

#include <string.h>

tare_status variance_picks_new(const struct variance_case *c, struct arena *a, struct picks *out, struct err *e)
{
    const int64_t prompts = c->pool->batch.n_groups, most = c->pool->batch.n_rollouts;
    TRY(arena_new(a, &out->prompt, c->batch, e));
    TRY(arena_new(a, &out->rollout, c->batch * c->size, e));
    return arena_new(a, &out->scratch, prompts > most ? prompts : most, e);
}

/* Deal a shuffled deck of all prompts to P / M batches. */
static void pick_prompts(const struct variance_case *c, struct rng_key series, int64_t batch, struct picks *p)
{
    const int64_t prompts = c->pool->batch.n_groups, first = batch * c->batch;
    for (int64_t m = 0; m < prompts; m++) p->scratch[m] = m;
    rng_shuffle(rng_derive(series, (uint64_t)(first / prompts)), p->scratch, prompts);
    memcpy(p->prompt, p->scratch + first % prompts, (size_t)c->batch * sizeof *p->prompt);
}

void groups_pick(const struct variance_case *c, int half, bool warm, int64_t batch, struct picks *p)
{
    const struct rng_key root = rng_derive(rng_key(c->seed, RNG_VARIANCE), 2);
    const struct rng_key series = rng_derive(root, (uint64_t)(2 * warm + half));
    const struct rng_key sized = rng_derive(rng_derive(rng_derive(series, 1u << 20), (uint64_t)batch), (uint64_t)c->size);
    pick_prompts(c, series, batch, p);
    for (int64_t g = 0; g < c->batch; g++) {
        const struct rng_key key = rng_derive(sized, (uint64_t)g);
        const int64_t begin = c->pool->half_begin[half][p->prompt[g]], n = c->pool->half_begin[half][p->prompt[g] + 1] - begin;
        memcpy(p->scratch, c->pool->half[half] + begin, (size_t)n * sizeof *p->scratch);
        for (int64_t k = 0; k < c->size; k++) { /* the first G entries of a shuffle */
            const int64_t j = k + (int64_t)rng_below(key, (uint64_t)k, (uint64_t)(n - k));
            const int64_t chosen = p->scratch[j];
            p->scratch[j] = p->scratch[k];
            p->scratch[k] = chosen;
            p->rollout[g * c->size + k] = chosen;
        }
    }
}
