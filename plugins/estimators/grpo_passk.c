/* grpo_passk: only the best rollout of a group is rewarded, by its difference to the second best.
 *
 *   A[i] = (R[i] - R_second) / (sigma + delta)  for the best rollout,  0 for the others
 *          sigma: sample deviation of the group
 *
 * Tang et al. 2025, "Optimizing Language Models for Inference Time Objectives using Reinforcement
 * Learning" (arXiv 2503.19595), in the form of verl. A tie for the best gives 0 to all, and so does
 * a group of one. normalise = false: not divided. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_NORMALISE, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_NORMALISE] = TARE_BOOL_PARAM("normalise", "true", "divide by sigma + delta", 0),
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-6", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            if (R[i] > R[best]) best = i;
        double second = n > 1 ? -INFINITY : R[best];
        for (int64_t i = 0; i < n; i++)
            if (i != best && R[i] > second) second = R[i];
        const double sigma = sqrt(group_variance(R, n, group_mean(R, n), 1)), lead = R[best] - second;
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = 0;
        out->advantage[first + best] = v[P_NORMALISE].i ? lead / (sigma + v[P_DELTA].f) : lead;
        out->baseline[m] = second;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS("grpo_passk", "the lead of a group's best rollout over its second best", "arXiv 2503.19595, as in verl",
          .compute = compute)
