/* rl_zvp: groups of equal rewards give a signal too, in proportion to the entropy of their tokens.
 *
 *   rewards differ:      A[i,t] =  (R[i] - mu) / (sigma + delta)
 *   all right (R > 0):   A[i,t] =  alpha H[i,t]
 *   all wrong:           A[i,t] = -alpha (max_u H[i,u] - H[i,t])
 *   H[i,t]: entropy of the policy at token t of rollout i, nats
 *
 * Le et al. 2025, "No Prompt Left Behind: Exploiting Zero-Variance Prompts in LLM Reinforcement
 * Learning via Entropy-Guided Advantage Shaping", equation 5 (arXiv 2509.21880). The maximum is
 * over the rollout's own tokens. The reported advantage of a rollout is the mean over its tokens. A
 * group of one has no variance. For rewards that differ the convention is GRPO's: sample deviation,
 * delta 1e-6.
 */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_ALPHA, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_ALPHA] = TARE_FLOAT_PARAM("alpha", "0.1", "alpha, scale of the entropy-guided advantages", 0, 1e6,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-6", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_ENTROPY, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_ENTROPY] = WANT("entropy", TARE_AXIS_TOKEN, TARE_F32),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const float *entropy = TARE_COLUMN(batch, W_ENTROPY, float);
    const double alpha = v[P_ALPHA].f;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = group_mean(R, n), sigma = sqrt(group_variance(R, n, mu, 1));
        for (int64_t i = 0; i < n; i++) {
            const int64_t begin = batch->token_begin[first + i], end = batch->token_begin[first + i + 1];
            double largest = 0, sum = 0;
            for (int64_t t = begin; t < end; t++)
                if (batch->sampled[t]) largest = fmax(largest, (double)entropy[t]);
            for (int64_t t = begin; t < end; t++) {
                if (!batch->sampled[t]) continue;
                const double H = (double)entropy[t];
                const double A = sigma > 0 ? (R[i] - mu) / (sigma + v[P_DELTA].f) : R[i] > 0 ? alpha * H : -alpha * (largest - H);
                out->token_advantage[t] = (float)A;
                sum += A;
            }
            out->advantage[first + i] = batch->length[first + i] ? sum / (double)batch->length[first + i] : 0;
        }
        out->baseline[m] = mu;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS_WANTS("rl_zvp", "grpo, with entropy-guided advantages where all rewards of a group are equal",
                "arXiv 2509.21880, equation 5", .flags = TARE_ESTIMATOR_GIVES_TOKENS, .compute = compute)
