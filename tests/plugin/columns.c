/* An estimator for tests that reads fields of the data set's rows: by = level, weight (the
 * default) or only one of them.
 *
 *   A_i = R_i (1 + 10 level + 1000 weight),      a missing field counts as 7
 *
 * Its state is the sum of the levels so far, so that a test sees whether a resumed run has the
 * same. */
#include <math.h>
#include <string.h>
#include <tare/sdk.h>

static const char *const BOTH[] = {"level", "weight", NULL}, *const ONE[] = {"weight", NULL},
                         *const BY[] = {"both", "weight", NULL};
static const tare_param PARAMS[] = {{"by", "both", "fields of a row to read", NULL, BY, 0, 0, TARE_CHOICE, 0}};

struct self {
    const tare_host *host;
    int one;
    double seen;
};

static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error)
{
    struct self *s = host->alloc(host->ctx, sizeof *s, 0);
    (void)n_clusters;
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *s = (struct self){host, values[0].i == 1, 0};
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static const char *const *columns(const void *self)
{
    return ((const struct self *)self)->one ? ONE : BOTH;
}

static double field(const tare_batch *b, int64_t m, const char *name)
{
    for (int64_t k = 0; k < b->n_columns; k++)
        if (!strcmp(b->column_name[k], name)) {
            const double x = b->column[m * b->n_columns + k];
            return isnan(x) ? 7 : x;
        }
    return 0;
}

static tare_status compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out, tare_error *error)
{
    (void)prepared;
    if (b->n_columns != (((const struct self *)self)->one ? 1 : 2))
        return tare_fail(error, TARE_E_PLUGIN, "%lld columns", (long long)b->n_columns);
    for (int64_t m = 0; m < b->n_groups; m++) {
        const double factor = 1 + 10 * field(b, m, "level") + 1000 * field(b, m, "weight");
        out->baseline[m] = factor;
        out->confidence[m] = 0;
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) out->advantage[i] = b->reward[i] * factor;
    }
    return TARE_OK;
}

static int64_t collect_size(const void *self)
{
    (void)self;
    return 1;
}

static tare_status collect(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    sum[0] += field(b, group, "level") + field(b, group, "weight");
    return TARE_OK;
}

static tare_status apply(void *self, int64_t step, const double *collected, tare_error *error)
{
    (void)step, (void)error;
    ((struct self *)self)->seen += collected[0];
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return out->write(out->ctx, &((const struct self *)self)->seen, 8);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    double seen;
    if (in->read(in->ctx, &seen, 8)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
    if (!isfinite(seen)) return tare_fail(error, TARE_E_CORRUPT, "the sum is %g", seen);
    ((struct self *)self)->seen = seen;
    return TARE_OK;
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return tare_print(out, "{\"seen\":%.17g}", ((const struct self *)self)->seen);
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .collect_size = collect_size,
                                         .compute = compute,
                                         .collect = collect,
                                         .apply = apply,
                                         .describe = describe,
                                         .columns = columns};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_ESTIMATOR,
                                           .name = "columns",
                                           .version = "1.0.0",
                                           .summary = "rewards times numbers of their rows",
                                           .license = "Apache-2.0",
                                           .params = PARAMS,
                                           .n_params = 1,
                                           .param_size = sizeof(tare_param),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)
