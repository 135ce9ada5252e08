/* Objectives that use whole sequences: annotate writes one number for each token. */
#ifndef OBJECTIVE_SEQUENCE_H
#define OBJECTIVE_SEQUENCE_H

#include "common/stateless.h"

static inline tare_status one_number(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->prepare = 1;
    return TARE_OK;
}

/* logp - sg(logp): 0, with the derivative 1. Added to the logarithm of an annotated ratio, it gives
 * each token of the sequence its gradient. */
static inline double live_ratio(const tare_tokens *t, int64_t i)
{
    return (double)t->logprob[i] - (double)t->detached[i];
}

/* Replaces each token's number with the sum, or the mean, of term over the tokens of its sequence.
 */
typedef double (*token_term)(const void *ctx, const tare_tokens *t, int64_t i);

static inline double sequence_sum(const tare_tokens *t, int64_t sequence, token_term term, const void *ctx)
{
    double sum = 0;
    for (int64_t i = t->token_begin[sequence]; i < t->token_begin[sequence + 1]; i++) sum += term(ctx, t, i);
    return sum;
}

static inline void fill_sequence(const tare_tokens *t, int64_t sequence, double x, double *annotated)
{
    for (int64_t i = t->token_begin[sequence]; i < t->token_begin[sequence + 1]; i++) annotated[i] = x;
}

static inline int64_t sequence_length(const tare_tokens *t, int64_t sequence)
{
    return t->token_begin[sequence + 1] - t->token_begin[sequence];
}

static inline void sequence_means(const tare_tokens *t, token_term term, const void *ctx, double *annotated)
{
    for (int64_t s = 0; s < t->n_rollouts; s++)
        fill_sequence(t, s, sequence_sum(t, s, term, ctx) / (double)sequence_length(t, s), annotated);
}

#endif
