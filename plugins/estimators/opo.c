/* opo: rewards minus their group's length-weighted mean, the baseline of least variance when a gradient's size grows with its length.
 *
 *   A[i] = R[i] - b,   b = sum_j L[j] R[j] / sum_j L[j]            R: rewards of one group, n rollouts; L: their tokens, EOS included
 *
 * Hao et al. 2025, "On-Policy RL with Optimal Reward Baseline" (arXiv 2505.23585).
 *
 * Taken around the first reward, so that a group whose rewards are all equal has A exactly 0. A group of one: 0 (convention paper), or
 * its reward (convention verl). There is no scale.
 */
#include "common/group.h"

#include <math.h>
#include <tare/sdk.h>

enum { P_CONVENTION, P_COUNT };

enum { PAPER, VERL };
static const char *const CONVENTIONS[] = {"paper", "verl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_CONVENTION] = {"convention", "paper", "what a group of one gets: 0 (paper), or its reward (verl)", NULL, CONVENTIONS, 0, 0,
                      TARE_CHOICE, 0},
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
        const int64_t *begin = batch->token_begin + first;
        double weighted = 0;
        for (int64_t i = 0; i < n; i++) weighted += (double)(begin[i + 1] - begin[i]) * (R[i] - R[0]);
        const double tokens = (double)(begin[n] - begin[0]);
        const double b = n == 1 && v[P_CONVENTION].i == VERL ? 0 : R[0] + (tokens > 0 ? weighted / tokens : 0);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = R[i] - b;
        out->baseline[m] = b;
        out->scale[m] = NAN;
        out->confidence[m] = 0;
    }
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_ESTIMATOR,
    .name = "opo",
    .version = "1.0.0",
    .summary = "rewards minus their group's length-weighted mean",
    .license = "Apache-2.0",
    .source = "arXiv 2505.23585",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
