/* rl_zvp: groups of equal rewards give a signal too, in proportion to the entropy of their tokens.
 *
 *   rewards differ:      A[i,t] =  (R[i] - mu) / (sigma + delta)
 *   all right (R > 0):   A[i,t] =  alpha H[i,t]
 *   all wrong:           A[i,t] = -alpha (max_u H[i,u] - H[i,t])             H[i,t]: entropy of the policy at token t of rollout i, nats
 *
 * Le et al. 2025, "No Prompt Left Behind: Exploiting Zero-Variance Prompts in LLM Reinforcement Learning via Entropy-Guided Advantage
 * Shaping", equation 5 (arXiv 2509.21880). The maximum is over the rollout's own tokens. The advantage of a rollout that is reported is
 * the mean over its tokens. A group of one has no variance.
 */
#include "common/group.h"

#include <math.h>
#include <tare/sdk.h>

enum { P_ALPHA, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_ALPHA] = {"alpha", "0.1", "alpha, scale of the entropy-guided advantages", NULL, NULL, 0, 1e6, TARE_FLOAT,
                 TARE_ABOVE_MIN | TARE_SWEEPABLE},
    [P_DELTA] = {"delta", "1e-6", "delta, added to sigma", NULL, NULL, 0, 1e300, TARE_FLOAT, TARE_ABOVE_MIN | TARE_LOG_SCALE},
};

static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error)
{
    (void)host, (void)n_clusters, (void)error;
    *self = (void *)(uintptr_t)values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

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

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_ESTIMATOR,
    .name = "rl_zvp",
    .version = "1.0.0",
    .summary = "grpo, with entropy-guided advantages where all rewards of a group are equal",
    .license = "Apache-2.0",
    .source = "arXiv 2509.21880, equation 5",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .needs = TARE_NEED_ENTROPY | TARE_GIVES_TOKENS,
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
