/* An estimator for tests that reads fields of the data set's rows: by = both, or only weight.
 *
 *   A_i = R_i (1 + 10 level + 1000 weight),      a missing field counts as 7
 *
 * Its state is the sum of the levels so far, so that a test sees whether a resumed run has the
 * same. */
#include <math.h>
#include <tare/sdk.h>

enum { W_LEVEL, W_WEIGHT, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_LEVEL] = {.name = "row.level", .axis = TARE_AXIS_GROUP, .type = TARE_F64, .width = 1},
    [W_WEIGHT] = {.name = "row.weight", .axis = TARE_AXIS_GROUP, .type = TARE_F64, .width = 1},
};
static const char *const BY[] = {"both", "weight", NULL};
static const tare_param PARAMS[] = {TARE_CHOICE_PARAM("by", "both", "fields of a row to read", BY, 0)};

struct self {
    const tare_host *host;
    double seen;
};

static tare_status select_wants(const tare_value *values, uint8_t *wanted, tare_error *error)
{
    (void)error;
    if (values[0].i == 1) wanted[W_LEVEL] = 0;
    return TARE_OK;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct self *s = setup->host->alloc(setup->host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *s = (struct self){setup->host, 0};
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static double field(const tare_batch *b, int64_t m, int want)
{
    const double *x = TARE_COLUMN(b, want, double);
    if (!x) return 0;
    return isnan(x[m]) ? 7 : x[m];
}

static tare_status compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out, tare_error *error)
{
    (void)self, (void)prepared, (void)error;
    for (int64_t m = 0; m < b->n_groups; m++) {
        const double factor = 1 + 10 * field(b, m, W_LEVEL) + 1000 * field(b, m, W_WEIGHT);
        out->baseline[m] = factor;
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) out->advantage[i] = b->reward[i] * factor;
    }
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->collect = 1;
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    sum[0] += field(b, group, W_LEVEL) + field(b, group, W_WEIGHT);
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    (void)error;
    ((struct self *)self)->seen += update->collected[0];
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return tare_put(out, &((const struct self *)self)->seen, 8);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    double seen;
    if (tare_get(in, &seen, 8)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
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
                                         .describe = describe,
                                         .select = select_wants,
                                         .sizes = sizes,
                                         .compute = compute,
                                         .collect = collect,
                                         .apply = apply};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_ESTIMATOR,
                                           .name = "columns",
                                           .version = "1.0.0",
                                           .summary = "rewards times numbers of their rows",
                                           .license = "Apache-2.0",
                                           TARE_PARAMS(PARAMS, 1),
                                           TARE_WANTS(WANTS, N_WANTS),
                                           .state_version = 1,
                                           .state_oldest = 1,
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
