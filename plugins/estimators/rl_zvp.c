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
#include "common/group.h"
#include "common/stateless.h"

#include <math.h>

enum { P_ALPHA, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_ALPHA] =
        PARAM_FLOAT("alpha", "0.1", "alpha, scale of the entropy-guided advantages", 0, 1e6, TARE_ABOVE_MIN | TARE_SWEEPABLE),
    [P_DELTA] = PARAM_FLOAT("delta", "1e-6", "delta, added to sigma", 0, 1e300, TARE_ABOVE_MIN | TARE_LOG_SCALE),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const double alpha = v[P_ALPHA].f;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = group_mean(R, n), sigma = sqrt(group_variance(R, n, mu, 1));
        for (int64_t i = 0; i < n; i++) {
            const int64_t begin = batch->token_begin[first + i], end = batch->token_begin[first + i + 1];
            double largest = 0, sum = 0;
            for (int64_t t = begin; t < end; t++) largest = fmax(largest, (double)batch->token_entropy[t]);
            for (int64_t t = begin; t < end; t++) {
                const double H = (double)batch->token_entropy[t];
                const double A = sigma > 0 ? (R[i] - mu) / (sigma + v[P_DELTA].f) : R[i] > 0 ? alpha * H : -alpha * (largest - H);
                out->token_advantage[t] = (float)A;
                sum += A;
            }
            out->advantage[first + i] = end > begin ? sum / (double)(end - begin) : 0;
        }
        out->baseline[m] = mu;
        out->scale[m] = sigma;
        out->confidence[m] = 0;
    }
    return TARE_OK;
}

TARE_STATELESS_NEEDS("rl_zvp", "grpo, with entropy-guided advantages where all rewards of a group are equal",
                     "arXiv 2509.21880, equation 5", TARE_NEED_ENTROPY | TARE_GIVES_TOKENS, .compute = compute)
