/* passk: advantages for pass@k: the contribution of a rollout to the chance that k of the group's n
 * rollouts include a correct one.
 *
 *   rho    = 1 - C(n-c, k) / C(n, k)
 *            c right ones among n; mean reward of the sets of k
 *   sigma  = sqrt(rho (1 - rho))
 *   right: A = (1 - rho) / (sigma + delta)                               every set with it succeeds
 *   wrong: A = (1 - rho - C(n-c-1, k-1) / C(n-1, k-1)) / (sigma + delta) the sets with it that fail
 *
 * Chen et al. 2025, "Pass@k Training for Adaptively Balancing Exploration and Exploitation" (arXiv
 * 2508.10751).
 *
 * Rewards must be 0 or 1. Where every set of k succeeds (n-c < k) the whole group has A = 0, as in
 * the released code. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_K, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_K] = TARE_INT_PARAM("k", "4", "k of pass@k", 1, 1e6, TARE_PARAM_SWEEPABLE),
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-6", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

/* Computes C(a, k) / C(b, k) for a <= b without large numbers; 0 where a < k. */
static double failing_share(int64_t a, int64_t b, int64_t k)
{
    double x = 1;
    if (a < k) return 0;
    for (int64_t j = 0; j < k; j++) x *= (double)(a - j) / (double)(b - j);
    return x;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const int64_t k = v[P_K].i;
    (void)prepared;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        int64_t c = 0;
        for (int64_t i = 0; i < n; i++) {
            if (R[i] != 0 && R[i] != 1)
                return tare_fail(error, TARE_E_RANGE, "group %lld, rollout %lld: reward %g; must be 0 or 1 for passk", (long long)m,
                                 (long long)i, R[i]);
            c += R[i] == 1;
        }
        if (n < k)
            return tare_fail(error, TARE_E_RANGE, "group %lld has %lld rollouts; k is %lld", (long long)m, (long long)n,
                             (long long)k);
        const double rho = 1 - failing_share(n - c, n, k), sigma = sqrt(rho * (1 - rho));
        const double right = (1 - rho) / (sigma + v[P_DELTA].f);
        const double wrong = (1 - rho - failing_share(n - c - 1, n - 1, k - 1)) / (sigma + v[P_DELTA].f);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = n - c < k ? 0 : R[i] == 1 ? right : wrong;
        out->baseline[m] = rho;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS("passk", "the contribution of a rollout to pass@k of its group", "arXiv 2508.10751", .compute = compute)
