/* grpo: rewards standardised within their group.
 *
 *   A[i] = (R[i] - mu) / (sigma + delta)                    R: rewards of one group, n rollouts; mu, sigma: their mean and deviation
 *
 * Shao et al. 2024, "DeepSeekMath", section 4.1.2 (arXiv 2402.03300); BV-Blend, equation 3.
 *
 * Conventions, where trainers differ: ddof 1 divides the variance by n-1 (verl, TRL, SkyRL, OpenRLHF), ddof 0 by n (open-instruct). delta
 * is 1e-6 in verl and SkyRL, 1e-4 in TRL, 1e-9 in OpenRLHF, 1e-8 in oat and in the BV-Blend paper, whose value is the default here.
 * A group of one has sigma 0 and A = 0. A group whose rewards are all equal has A exactly 0.
 */
#include "common/group.h"

#include <math.h>
#include <tare/sdk.h>

enum { P_DDOF, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DDOF] = {"ddof", "1", "degrees of freedom of sigma: 1 divides by n-1 (sample), 0 by n (population)", NULL, NULL, 0, 1,
                TARE_INT, 0},
    [P_DELTA] = {"delta", "1e-8", "delta, added to sigma (eq. 3)", NULL, NULL, 0, 1e300, TARE_FLOAT,
                 TARE_ABOVE_MIN | TARE_LOG_SCALE},
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
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = (R[i] - mu) / (sigma + v[P_DELTA].f);
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
    .name = "grpo",
    .version = "1.0.0",
    .summary = "rewards standardised within their group",
    .license = "Apache-2.0",
    .source = "arXiv 2402.03300, section 4.1.2",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
