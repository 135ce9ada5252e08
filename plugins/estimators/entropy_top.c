/* entropy_top: grpo on the tokens of highest entropy only.
 *
 *   A[i,t] = (R[i] - mu) / (sigma + delta)   where H[i,t] >= tau, 0 elsewhere
 *            H: entropy of the policy at a token, nats
 *   tau:     the share `share` of the batch's tokens has H >= tau
 *
 * Wang et al. 2025, "Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective
 * Reinforcement Learning for LLM Reasoning" (arXiv 2506.01939), with 20 % of the tokens; TRL's
 * top_entropy_quantile. As in both, the other tokens still count in the loss's mean.
 *
 * tau is found from counts that the host adds over all groups: tokens by entropy, on a grid of 256
 * steps per factor of two, from 2^-20 to 32 nats. tau is the highest point of the grid with enough
 * tokens above it. The share is therefore exceeded by at most the tokens of one step of the grid
 * (0.4 % of tau), and tokens of equal entropy are all kept or all left out. The reported advantage
 * of a rollout is that of its kept tokens.
 */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>
#include <string.h>

enum { P_SHARE, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_SHARE] = TARE_FLOAT_PARAM("share", "0.2", "rho, share of the batch's tokens that keep their advantage", 0, 1,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-6", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_ENTROPY, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_ENTROPY] = WANT("entropy", TARE_AXIS_TOKEN, TARE_F32),
};

/* The leading bits of a non-negative float are its position on a grid of equal ratios: 8 bits of
 * exponent, then 8 of the fraction. */
enum { FIRST = (127 - 20) << 8, STEPS = 25 << 8 };

static int64_t entropy_step(float entropy)
{
    uint32_t bits;
    if (!(entropy > 0)) return 0;
    memcpy(&bits, &entropy, sizeof bits);
    const int64_t step = (int64_t)(bits >> 15) - FIRST;
    return step < 0 ? 0 : step < STEPS ? step : STEPS - 1;
}

PREPARES(STEPS)

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int64_t first = batch->group_begin[group], last = batch->group_begin[group + 1];
    const float *H = TARE_COLUMN(batch, W_ENTROPY, float);
    (void)self, (void)error;
    for (int64_t t = batch->token_begin[first]; t < batch->token_begin[last]; t++)
        if (batch->sampled[t]) sum[entropy_step(H[t])] += 1;
    return TARE_OK;
}

/* Returns the highest step of the grid that enough tokens reach. */
static int64_t find_threshold(const double *count, double share)
{
    double all = 0, above = 0;
    int64_t step = STEPS;
    for (int64_t k = 0; k < STEPS; k++) all += count[k];
    while (step > 0 && above < share * all) above += count[--step];
    return step;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const float *H = TARE_COLUMN(batch, W_ENTROPY, float);
    const int64_t tau = find_threshold(prepared, v[P_SHARE].f);
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = group_mean(R, n), sigma = sqrt(group_variance(R, n, mu, 1));
        for (int64_t i = first; i < first + n; i++) {
            const double A = (batch->reward[i] - mu) / (sigma + v[P_DELTA].f);
            for (int64_t t = batch->token_begin[i]; t < batch->token_begin[i + 1]; t++)
                out->token_advantage[t] = entropy_step(H[t]) >= tau ? (float)A : 0;
            out->advantage[i] = A;
        }
        out->baseline[m] = mu;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS_WANTS("entropy_top", "grpo on the tokens of highest entropy only", "arXiv 2506.01939",
                .flags = TARE_ESTIMATOR_GIVES_TOKENS, .sizes = sizes, .prepare = prepare, .compute = compute)
