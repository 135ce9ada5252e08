/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), a
 * counter-based generator. Draws depend only on key and counter, so batch layout, threads and ranks
 * do not change them, and no state needs saving.
 *
 * A stream is keyed by (run seed, purpose), and a draw by four more words. For token sampling these
 * are
 *   (step, prompt uid, occurrence of the prompt in the step, rollout, position)
 * so a prompt that occurs again gets new draws. */
#ifndef TARE_CORE_BASE_RNG_H
#define TARE_CORE_BASE_RNG_H

#include <stdint.h>

enum rng_purpose {
    RNG_TRAIN = 1,
    RNG_EVAL = 2,
    RNG_SHUFFLE = 3,
    RNG_INIT = 4,
    RNG_PLUGIN = 5,
    RNG_MINIBATCH = 6,
    RNG_DATA = 7,
    RNG_VARIANCE = 8,
    RNG_EPISODE = 9
};

struct rng_key {
    uint32_t k[2];
};

struct rng_key rng_key(uint64_t seed, enum rng_purpose purpose);
/* Mix one more word into a key, for hierarchies such as (seed, purpose) -> step -> prompt. */
struct rng_key rng_derive(struct rng_key key, uint64_t word);
/* Generate four words for (key, counter). */
void rng_block(struct rng_key key, uint64_t counter_low, uint64_t counter_high, uint32_t out[4]);
/* Uniform in [0, 1), 53 bits. */
double rng_uniform(struct rng_key key, uint64_t counter_low, uint64_t counter_high);
/* Uniform in [0, n), with negligible bias (64-bit multiply). */
uint64_t rng_below(struct rng_key key, uint64_t counter, uint64_t n);
/* Standard normal (Box-Muller). */
double rng_normal(struct rng_key key, uint64_t counter);
/* Shuffle the existing contents of order[n] (Fisher-Yates). */
void rng_shuffle(struct rng_key key, int64_t *order, int64_t n);

#endif
