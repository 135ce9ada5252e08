/* Weights between the policy of the update and the policy that sampled. */
#ifndef OBJECTIVE_SAMPLER_H
#define OBJECTIVE_SAMPLER_H

#include "common/sequence.h"

enum { W_SAMPLER, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_SAMPLER] = {.name = "sampler_logprob", .axis = TARE_AXIS_TOKEN, .type = TARE_F32, .width = 1},
};

static const double LARGEST_LOG = 700; /* the exponential of it is finite */

static inline double sampler_log_ratio(const void *ctx, const tare_tokens *t, int64_t i)
{
    (void)ctx;
    return (double)t->old_logprob[i] - (double)TARE_COLUMN(t, W_SAMPLER, float)[i];
}

#endif
