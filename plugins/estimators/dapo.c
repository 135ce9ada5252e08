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

#include <math.h>
#include <tare/sdk.h>

enum { P_DELTA, P_DDOF, P_REFILL, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] = {"delta", "1e-8", "delta, added to sigma", NULL, NULL, 0, 1e300, TARE_FLOAT, TARE_ABOVE_MIN | TARE_LOG_SCALE},
    [P_DDOF] = {"ddof", "1", "degrees of freedom of sigma: 1 divides by n-1 (sample), 0 by n (population)", NULL, NULL, 0, 1,
                TARE_INT, 0},
    [P_REFILL] = {"refill", "true", "ask for as many groups as were dropped", NULL, NULL, 0, 0, TARE_BOOL, 0},
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

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_ESTIMATOR,
    .name = "dapo",
    .version = "1.0.0",
    .summary = "grpo with groups of equal rewards dropped and sampled again",
    .license = "Apache-2.0",
    .source = "arXiv 2503.14476",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
