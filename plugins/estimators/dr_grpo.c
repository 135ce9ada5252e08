/* dr_grpo: rewards minus their group's mean, not divided by a deviation.
 *
 *   A[i] = R[i] - mu                            R: rewards of one group, n rollouts; mu: their mean
 *
 * Liu et al. 2025, "Understanding R1-Zero-Like Training: A Critical Perspective", section 3.2
 * (arXiv 2503.20783). Its other half, a loss that is summed over tokens and divided by a constant,
 * is loss.aggregation = constant.
 *
 * A group of one rollout and a group of equal rewards have A exactly 0. It has no scale.
 * convention verl (SkyRL): a group of one has its reward. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_DELTA, P_CONVENTION, P_COUNT };
enum { PAPER, VERL };
static const char *const CONVENTIONS[] = {"paper", "verl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-8", "accepted so that a configuration can change its estimator in one line; it has no effect",
                         0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN),
    [P_CONVENTION] =
        TARE_CHOICE_PARAM("convention", "paper", "advantage in a group of one: 0 (paper), or its reward (verl)", CONVENTIONS, 0),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = n == 1 && v[P_CONVENTION].i == VERL ? 0 : group_mean(R, n);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = R[i] - mu;
        out->baseline[m] = mu;
    }
    return TARE_OK;
}

STATELESS("dr_grpo", "rewards minus their group's mean", "arXiv 2503.20783, section 3.2", .compute = compute)
