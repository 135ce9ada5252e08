/* Weights between the policy of the update and the policy that sampled. */
#ifndef OBJECTIVE_SAMPLER_H
#define OBJECTIVE_SAMPLER_H

#include "common/sequence.h"

static const double LARGEST_LOG = 700; /* the exponential of it is finite */

static inline double sampler_log_ratio(const void *ctx, const tare_tokens *t, int64_t i)
{
    (void)ctx;
    return (double)t->old_logprob[i] - (double)t->sampler_logprob[i];
}

#endif
