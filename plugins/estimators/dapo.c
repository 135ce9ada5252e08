/* dapo: rewards standardised within their group; groups without a signal are dropped, and as many asked for again.
 *
 *   A[i] = (R[i] - mu) / (sigma + delta)          row weight 0 and one group more to sample where sigma is 0
 *
 * Yu et al. 2025, "DAPO: An Open-Source LLM Reinforcement Learning System at Scale" (arXiv 2503.14476): dynamic
 * sampling. Its other parts are not an estimator's: loss.clip_high (clip higher), loss.aggregation = token, verifier.overlong = linear.
 *
 * refill = false: dropped and not replaced.
 */
#include "common/group.h"
#include "common/stateless.h"

#include <math.h>

enum { P_DELTA, P_DDOF, P_REFILL, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] = PARAM_FLOAT("delta", "1e-8", "delta, added to sigma", 0, 1e300, TARE_ABOVE_MIN | TARE_LOG_SCALE),
    [P_DDOF] = PARAM_INT("ddof", "1", "degrees of freedom of sigma: 1 divides by n-1 (sample), 0 by n (population)", 0, 1),
    [P_REFILL] = PARAM_BOOL("refill", "true", "ask for as many groups as were dropped"),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = group_mean(R, n), sigma = sqrt(group_variance(R, n, mu, v[P_DDOF].i));
        for (int64_t i = 0; i < n; i++) {
            out->advantage[first + i] = (R[i] - mu) / (sigma + v[P_DELTA].f);
            if (!(sigma > 0)) out->row_weight[first + i] = 0;
        }
        if (!(sigma > 0) && v[P_REFILL].i) out->refill_groups++;
        out->baseline[m] = mu;
        out->scale[m] = sigma;
        out->confidence[m] = 0;
    }
    return TARE_OK;
}

TARE_STATELESS("dapo", "grpo with groups of equal rewards dropped and sampled again", "arXiv 2503.14476", .compute = compute)
