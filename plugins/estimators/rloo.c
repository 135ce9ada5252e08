/* rloo: rewards minus the mean of the other rollouts of their group.
 *
 *   A[i] = R[i] - (sum_j R[j] - R[i]) / (n - 1)  =  n/(n-1) (R[i] - mu)            R: rewards of one group, n rollouts; mu: their mean
 *
 * Kool et al. 2019, "Buy 4 REINFORCE Samples, Get a Baseline for Free!"; Ahmadian et al. 2024, "Back to Basics", equation 8
 * (arXiv 2402.14740).
 *
 * The second form is used: it never subtracts two nearly equal sums, so a group whose rewards are all equal has A exactly 0. A group of one
 * has nobody to compare with: A = 0. There is no scale; the baseline that is reported is mu.
 */
#include "common/group.h"

#include <math.h>
#include <tare/sdk.h>

enum { P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] = {"delta", "1e-8", "accepted so that a configuration can be swapped in one line; nothing is divided by", NULL, NULL,
                 0, 1e300, TARE_FLOAT, TARE_ABOVE_MIN},
};

static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error)
{
    (void)host, (void)values, (void)n_clusters, (void)error;
    *self = NULL; /* no state */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    (void)self, (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = group_mean(R, n), stretch = n > 1 ? (double)n / (double)(n - 1) : 0;
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = stretch * (R[i] - mu);
        out->baseline[m] = mu;
        out->scale[m] = NAN;
        out->confidence[m] = 0;
    }
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_ESTIMATOR,
    .name = "rloo",
    .version = "1.0.0",
    .summary = "rewards minus the mean of the other rollouts",
    .license = "Apache-2.0",
    .source = "arXiv 2402.14740, equation 8",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
