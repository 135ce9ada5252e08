/* frozen_estimator: A = R - m, where m is the mean of all rewards of the steps before, and a token's
 * advantage is A where the row's level is not known, half of it elsewhere. It uses every part of the
 * table of 1.0: sums prepared over all ranks (the count of rollouts, a metric), records of prompts,
 * wants that select turns off, state, its description, its identity, memory of the host and random
 * numbers. */
#include <math.h>
#include <tare/sdk.h>

struct self {
    const tare_host *host;
    double weight, sum, count;
};

enum { P_WEIGHT, P_LEVELS, N_PARAMS };
static const tare_param PARAMS[N_PARAMS] = {
    [P_WEIGHT] = TARE_FLOAT_PARAM("weight", "1", "multiplies the advantages", 0, 10, TARE_PARAM_LOCKED_ON_RESUME),
    [P_LEVELS] = TARE_BOOL_PARAM("levels", "true", "reads the rows' levels", 0),
};

enum { W_LEVEL, W_LOGPROB, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_LEVEL] = {.name = "row.level", .axis = TARE_AXIS_GROUP, .type = TARE_F64, .width = 1},
    [W_LOGPROB] = {.name = "logprob", .axis = TARE_AXIS_TOKEN, .type = TARE_F32, .width = 1, .flags = TARE_WANT_OPTIONAL},
};

static tare_status select_wants(const tare_value *values, uint8_t *wanted, tare_error *error)
{
    (void)error;
    wanted[W_LEVEL] = (uint8_t)values[P_LEVELS].i;
    return TARE_OK;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    uint32_t words[6];
    if (host->random(host->ctx, 1, 2, words, 6)) return tare_fail(error, TARE_E_GENERIC, "no random numbers");
    struct self *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->host = host;
    s->weight = setup->values[P_WEIGHT].f;
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

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->prepare = 1;
    out->collect = 2;
    out->record = 1;
    return TARE_OK;
}

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    sum[0] += (double)(batch->group_begin[group + 1] - batch->group_begin[group]);
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct self *s = self;
    const double mean = s->count > 0 ? s->sum / s->count : 0, *level = TARE_COLUMN(batch, W_LEVEL, double);
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const double share = level && !isnan(level[m]) ? 0.5 : 1;
        out->baseline[m] = mean;
        for (int64_t i = batch->group_begin[m]; i < batch->group_begin[m + 1]; i++) {
            out->advantage[i] = s->weight * (batch->reward[i] - mean);
            for (int64_t t = batch->token_begin[i]; t < batch->token_begin[i + 1]; t++)
                if (batch->sampled[t]) out->token_advantage[t] = (float)(share * out->advantage[i]);
        }
    }
    s->host->metric(s->host->ctx, "rollouts", prepared[0], TARE_METRIC_SUM);
    return TARE_OK;
}

static tare_status record(const void *self, const tare_batch *batch, int64_t group, double *out, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) out[0] += (double)batch->length[i];
    return TARE_OK;
}

static tare_status identity(const void *self, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_say(out, "frozen");
}

static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) sum[0] += batch->reward[i], sum[1] += 1;
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct self *s = self;
    (void)error;
    s->sum += update->collected[0], s->count += update->collected[1];
    return TARE_OK;
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return tare_print(out, "{\"sum\":%.17g,\"count\":%.17g}", ((const struct self *)self)->sum, ((const struct self *)self)->count);
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .flags = TARE_ESTIMATOR_GIVES_TOKENS,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .describe = describe,
                                         .identity = identity,
                                         .select = select_wants,
                                         .sizes = sizes,
                                         .prepare = prepare,
                                         .compute = compute,
                                         .collect = collect,
                                         .record = record,
                                         .apply = apply};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_ESTIMATOR,
                                           .name = "frozen_estimator",
                                           .version = "1.0.0",
                                           .summary = "rewards minus the mean of all before",
                                           TARE_PARAMS(PARAMS, N_PARAMS),
                                           TARE_WANTS(WANTS, N_WANTS),
                                           .state_version = 1,
                                           .state_oldest = 1,
                                           .functions = &FUNCTIONS};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
