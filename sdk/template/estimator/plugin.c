/* @NAME@: rewards minus the mean of their group.
 *
 *   A[i] = scale (R[i] - mu)    R: rewards of one group, n rollouts; mu: their mean
 *
 * Replace this with your formula, its paper and its conventions: the advantage in a group of one
 * rollout, and in a group of equal rewards. Tokens, verdicts or fields of the data set's rows come
 * as columns: name them in a table of wants (see tare/base.h, `tare plugin columns`). An estimator
 * with a state adds sizes, collect, apply, save and load (see tare/estimator.h for the order of
 * the phases). */
#include <tare/sdk.h>

enum { P_SCALE, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_SCALE] =
        TARE_FLOAT_PARAM("scale", "1", "multiplies the advantages", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values; /* no state: the values live as long as the instance */
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
        double shift = 0; /* relative to the first reward, so that equal rewards give exactly 0 */
        for (int64_t i = 0; i < n; i++) shift += R[i] - R[0];
        const double mu = R[0] + shift / (double)n;
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = v[P_SCALE].f * (R[i] - mu);
        out->baseline[m] = mu; /* for the metrics; scale and confidence stay NaN, which means none */
    }
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_ESTIMATOR,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "rewards minus the mean of their group",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT, /* an instance changes nothing, so any thread may call it */
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
