/* Turns and sampled tokens of a batch: the only place that knows that a rollout without turns is one
 * turn, all of whose tokens are sampled.
 *
 * act_begin and act_end of the batch count from the first token of their rollout, so that choosing
 * rollouts copies them. */
#ifndef TARE_CORE_BATCH_TURNS_H
#define TARE_CORE_BATCH_TURNS_H

#include "batch/batch.h"

#include <stdbool.h>

static inline bool batch_is_sampled(const struct batch *b, int64_t token)
{
    return !b->sampled || b->sampled[token];
}
/* Number of sampled tokens from index begin up to end. */
static inline int64_t batch_count_sampled(const struct batch *b, int64_t begin, int64_t end)
{
    int64_t n = end - begin;
    for (int64_t t = begin; b->sampled && t < end; t++) n -= !b->sampled[t];
    return n;
}
/* Length of a rollout: its sampled tokens. */
static inline int64_t batch_length(const struct batch *b, int64_t rollout)
{
    return batch_count_sampled(b, b->token_begin[rollout], b->token_begin[rollout + 1]);
}
/* Number of the turn, from 0, that a token of the rollout belongs to: its own, or for context that
 * of the act before it. */
int32_t batch_turn_of(const struct batch *b, int64_t rollout, int64_t token);

/* Turns with indices into the tokens of the batch, as plugins see them (tare/batch.h). Every rollout
 * has at least one turn. */
struct turns {
    int64_t n;
    const int64_t *begin;               /* [N+1] */
    const int64_t *act_begin, *act_end; /* [n] */
    const uint8_t *sampled;             /* [T] */
    const int64_t *length;              /* [N] */
    const int64_t *at;                  /* [n] index into the batch's turns; -1: a rollout without turns */
    const int64_t *rollout;             /* [n] */
};
/* The arrays live in the arena, or belong to the batch. */
tare_status turns_of(const struct batch *b, struct arena *a, struct turns *out, struct err *e);

#endif
