/* opo: rewards minus their group's length-weighted mean, the baseline of least variance when a
 * gradient's size grows with its length.
 *
 *   A[i] = R[i] - b,   b = sum_j L[j] R[j] / sum_j L[j]
 *          R: rewards of one group, n rollouts; L: their sampled tokens, EOS included
 *
 * Hao et al. 2025, "On-Policy RL with Optimal Reward Baseline" (arXiv 2505.23585).
 *
 * Computed relative to the first reward, so that a group of equal rewards has A exactly 0. A group
 * of one has 0 (convention paper), or its reward (convention verl). It has no scale.
 */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_CONVENTION, P_COUNT };

enum { PAPER, VERL };
static const char *const CONVENTIONS[] = {"paper", "verl", NULL};

static const tare_param PARAMS[P_COUNT] = {
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
        const int64_t *L = batch->length + first;
        double weighted = 0;
        int64_t tokens = 0;
        for (int64_t i = 0; i < n; i++) {
            weighted += (double)L[i] * (R[i] - R[0]);
            tokens += L[i];
        }
        const double b = n == 1 && v[P_CONVENTION].i == VERL ? 0 : R[0] + (tokens > 0 ? weighted / (double)tokens : 0);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = R[i] - b;
        out->baseline[m] = b;
    }
    return TARE_OK;
}

STATELESS("opo", "rewards minus their group's length-weighted mean", "arXiv 2505.23585", .compute = compute)
