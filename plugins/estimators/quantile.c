/* quantile: a quantile of the group's rewards, instead of their mean, as the baseline (QAE).
 *
 *   b    = min {x: share of the group's rewards that are at most x >= k}
 *   A[i] = (R[i] - b) / (sigma + delta)                                                    (3)
 *          R: rewards of one group; sigma: their deviation
 *
 * Wu et al. 2025, "Quantile Advantage Estimation for Entropy-Safe Reasoning", section 4.1,
 * equations 3 and 4 (arXiv 2509.22611); k = 0.4 there, 0.6 where the entropy is low.
 *
 * With rewards of 0 and 1 and a share p of correct rollouts, b is 0 where p <= 1 - k and 1
 * elsewhere (4): on hard prompts the correct rollouts are reinforced and the wrong ones have
 * advantage 0, on easy prompts the wrong ones are penalised and the correct ones have advantage 0.
 * A group of equal rewards and a group of one have A exactly 0.
 *
 * convention = released: b as in the authors' code (torch.quantile), interpolated between the two
 * nearest rewards. It differs where k is between two different rewards. The paper does not give the
 * divisor of sigma; the authors' code changes verl's GRPO: ddof 1, delta 1e-6. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_K, P_CONVENTION, P_DDOF, P_DELTA, P_COUNT };
enum { PAPER, RELEASED };
static const char *const CONVENTIONS[] = {"paper", "released", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_K] = TARE_FLOAT_PARAM("k", "0.4", "K, the quantile that is the baseline", 0, 1,
                             TARE_PARAM_ABOVE_MIN | TARE_PARAM_BELOW_MAX | TARE_PARAM_SWEEPABLE),
    [P_CONVENTION] = TARE_CHOICE_PARAM(
        "convention", "paper", "paper: one of the rewards; released: interpolated, as in the authors' code", CONVENTIONS, 0),
    [P_DDOF] = TARE_INT_PARAM("ddof", "1", "degrees of freedom of sigma: 1 divides by n-1 (sample), 0 by n (population)", 0, 1, 0),
    [P_DELTA] = TARE_FLOAT_PARAM("delta", "1e-6", "delta, added to sigma (eq. 3)", 0, TARE_NO_MAX,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

/* Returns the smallest reward that at least `rank` of the rewards do not exceed: the rank-th of
 * them in ascending order. */
static double ranked_reward(const double *R, int64_t n, int64_t rank)
{
    double best = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        int64_t below = 0;
        for (int64_t j = 0; j < n; j++) below += R[j] <= R[i];
        if (below >= rank) best = fmin(best, R[i]);
    }
    return best;
}

static double quantile(const double *R, int64_t n, double k, int64_t convention)
{
    int64_t rank = 1;
    if (convention == RELEASED) {
        const double at = k * (double)(n - 1), below = floor(at);
        const double low = ranked_reward(R, n, (int64_t)below + 1), high = ranked_reward(R, n, (int64_t)ceil(at) + 1);
        return low + (at - below) * (high - low);
    }
    while ((double)rank / (double)n < k) rank++;
    return ranked_reward(R, n, rank);
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double b = quantile(R, n, v[P_K].f, v[P_CONVENTION].i);
        const double sigma = sqrt(group_variance(R, n, group_mean(R, n), v[P_DDOF].i));
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = (R[i] - b) / (sigma + v[P_DELTA].f);
        out->baseline[m] = b;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS("quantile", "rewards minus a quantile of their group, standardised", "arXiv 2509.22611, equations 3 and 4",
          .compute = compute)
