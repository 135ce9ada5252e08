/* asymre: rewards minus their group's mean and a constant: correct rollouts have more weight than
 * wrong ones.
 *
 *   A[i] = R[i] - (mu + delta_v)                R: rewards of one group, n rollouts; mu: their mean
 *
 * Arnal et al. 2025, "Asymmetric REINFORCE for off-Policy Reinforcement Learning: Balancing
 * positive and negative rewards" (arXiv 2506.20520): the objective J_AsymRE = E[(r - (V + delta V))
 * log pi], with V the mean of the prompt's rewards; delta_v is about -0.1 in its experiments with
 * language models, and 0 collapses.
 *
 * The sum of a group's advantages is -n delta_v, not 0: with delta_v below 0 the group's rollouts
 * together become more likely. A group of one rollout and a group of equal rewards therefore have A
 * = -delta_v. It has no scale. The paper's loss has no ratio and no clip; the objective ppo
 * agrees with it as long as the current policy sampled the rollouts. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_DELTA_V, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA_V] =
        TARE_UNIT_PARAM("delta_v", "-0.1", "delta V, added to the group's mean", "reward", -1e6, 1e6, TARE_PARAM_SWEEPABLE),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first, b = group_mean(R, n) + v[P_DELTA_V].f;
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = R[i] - b;
        out->baseline[m] = b;
    }
    return TARE_OK;
}

STATELESS("asymre", "rewards minus their group's mean and a constant", "arXiv 2506.20520", .compute = compute)
