/* frozen_estimator: A = R - m, where m is the mean of all rewards of the steps before. It uses every part of the table of version 1.2: sums
 * prepared over all ranks (the count of rollouts, shown as a metric), records by prompt (the rewards' sum and count), state, its description,
 * the names of the row's numbers that it reads (none), memory of the host and random numbers.
 */
#include <math.h>
#include <tare/sdk.h>

struct self {
    const tare_host *host;
    double weight, sum, count;
};

static const tare_param PARAMS[] = {{"weight", "1", "multiplies the advantages", NULL, NULL, 0, 10, TARE_FLOAT, TARE_LOCKED_ON_RESUME}};

static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error)
{
    (void)n_clusters;
    uint32_t words[6];
    if (host->random(host->ctx, 1, 2, words, 6)) return tare_fail(error, TARE_E_GENERIC, "no random numbers");
    struct self *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->host = host;
    s->weight = values[0].f;
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    const tare_host *host = ((struct self *)self)->host;
    host->release(host->ctx, self);
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return out->write(out->ctx, &((const struct self *)self)->sum, 16);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    double x[2];
    const tare_status status = in->read(in->ctx, x, 16);
    if (status) return tare_fail(error, status, "the state is cut short");
    if (!isfinite(x[0]) || !(x[1] >= 0)) return tare_fail(error, TARE_E_CORRUPT, "the state is no sum and count");
    ((struct self *)self)->sum = x[0], ((struct self *)self)->count = x[1];
    return TARE_OK;
}

static int64_t one(const void *self)
{
    (void)self;
    return 1;
}

static int64_t two(const void *self)
{
    (void)self;
    return 2;
}

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    sum[0] += (double)(batch->group_begin[group + 1] - batch->group_begin[group]);
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out, tare_error *error)
{
    const struct self *s = self;
    const double mean = s->count > 0 ? s->sum / s->count : 0;
    (void)error;
    for (int64_t i = 0; i < batch->n_rollouts; i++) out->advantage[i] = s->weight * (batch->reward[i] - mean);
    for (int64_t m = 0; m < batch->n_groups; m++) out->baseline[m] = mean, out->confidence[m] = 0;
    s->host->metric(s->host->ctx, "rollouts", prepared[0]);
    return TARE_OK;
}

static tare_status record(const void *self, const tare_batch *batch, int64_t group, double *out, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) out[0] += batch->reward[i], out[1] += 1;
    return TARE_OK;
}

static tare_status apply_records(void *self, int64_t step, const double *collected, const uint64_t *prompt_uid, const double *records,
                                 int64_t n_groups, tare_error *error)
{
    struct self *s = self;
    (void)step, (void)collected, (void)prompt_uid, (void)error;
    for (int64_t m = 0; m < n_groups; m++) s->sum += records[2 * m], s->count += records[2 * m + 1];
    return TARE_OK;
}

static const char *const *columns(const void *self)
{
    static const char *const NONE[] = {NULL};
    (void)self;
    return NONE;
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return tare_print(out, "{\"sum\":%.17g,\"count\":%.17g}", ((const struct self *)self)->sum, ((const struct self *)self)->count);
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .prepare_size = one,
                                         .prepare = prepare,
                                         .compute = compute,
                                         .describe = describe,
                                         .record_size = two,
                                         .record = record,
                                         .apply_records = apply_records,
                                         .columns = columns};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_ESTIMATOR,
                                           .name = "frozen_estimator",
                                           .version = "1.0.0",
                                           .summary = "rewards minus the mean of all before",
                                           .params = PARAMS,
                                           .n_params = 1,
                                           .param_size = sizeof(tare_param),
                                           .functions = &FUNCTIONS};

TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)
