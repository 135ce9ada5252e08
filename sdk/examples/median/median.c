/* median: rewards minus the median of their group, which is robust to an outlier among the rewards.
 *
 *   A[i] = R[i] - med                  R: rewards of one group of n rollouts; med = the middle of R,
 *                                      or the mean of the two in the middle
 *   with divide: A[i] / (MAD + delta)  MAD = median |R[i] - med|; A = 0 in a group of equal rewards
 */
#include <tare/sdk.h>

enum { P_DIVIDE, P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DIVIDE] = TARE_BOOL_PARAM("divide", "false", "divide by the median absolute deviation", 0),
    [P_DELTA] = TARE_FLOAT_PARAM("delta", "1e-8", "delta, added to the deviation", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN),
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

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x. n > 0. */
static double median(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return n % 2 ? x[n / 2] : x[n / 2 - 1] + (x[n / 2] - x[n / 2 - 1]) / 2;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared;
    double *x = malloc((size_t)batch->n_rollouts * sizeof *x + 1);
    if (!x) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld rewards", (long long)batch->n_rollouts);
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        memcpy(x, R, (size_t)n * sizeof *x);
        const double med = median(x, n);
        for (int64_t i = 0; i < n; i++) x[i] = fabs(R[i] - med);
        const double scale = v[P_DIVIDE].i ? median(x, n) + v[P_DELTA].f : 1;
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = (R[i] - med) / scale;
        out->baseline[m] = med;
        if (v[P_DIVIDE].i) out->scale[m] = scale;
    }
    free(x);
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_ESTIMATOR,
    .name = "median",
    .version = "1.0.0",
    .summary = "rewards minus the median of their group",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
