/* Each token's share in the covariance of log-probability and advantage over the minibatch, which
 * drives the entropy down (Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning",
 * arXiv 2505.22617). */
#ifndef OBJECTIVE_COVARIANCE_H
#define OBJECTIVE_COVARIANCE_H

#include "common/sequence.h"

/* cov[i] = (A_i - mean A)(logp_i - mean logp) */
static inline void covariances(const tare_tokens *t, double *cov)
{
    double advantage = 0, logp = 0;
    for (int64_t i = 0; i < t->n; i++) {
        advantage += t->advantage[i];
        logp += (double)t->detached[i];
    }
    advantage /= (double)t->n;
    logp /= (double)t->n;
    for (int64_t i = 0; i < t->n; i++) cov[i] = (t->advantage[i] - advantage) * ((double)t->detached[i] - logp);
}

/* max(1, floor(share n)) */
static inline int64_t share_of(double share, int64_t n)
{
    const int64_t k = (int64_t)(share * (double)n);
    return k < 1 ? 1 : k;
}

#endif
