/* The verifier and the estimator python_function: functions of the program that embeds this
 * library. The verifier gets all completions of a step in one call. A reward of 1 or more is the
 * verdict correct, 0 or less wrong, partial between; none is the verdict no_answer. The estimator returns only A; its baseline is
 * mean R - mean A of the group, which equals b for A = R - b. */
#include "plugin/plugin.h"

#include "api/internal.h"

#include <math.h>
#include <tare/sdk.h>

static const struct callbacks NONE;

static const struct callbacks *callbacks_of(const tare_host *host)
{
    const struct callbacks *c = host->extension ? host->extension(host->ctx, CALLBACKS_ID) : NULL;
    return c ? c : &NONE;
}

/* An instance of the verifier. */
struct judge {
    const struct callbacks *callbacks;
    const tare_host *host;
    const char *instance;
};

static tare_status create_judge(const tare_setup *setup, void **self, tare_error *error)
{
    struct judge *j = setup->host->alloc(setup->host->ctx, (int64_t)sizeof *j, 16);
    if (!j) return tare_fail(error, TARE_E_NOMEM, "out of memory");
    *j = (struct judge){callbacks_of(setup->host), setup->host, setup->instance};
    *self = j;
    return TARE_OK;
}

static void destroy_judge(void *self)
{
    struct judge *j = self;
    j->host->release(j->host->ctx, j);
}

static int32_t verdict_of(double reward)
{
    if (isnan(reward)) return TARE_VERDICT_NO_ANSWER;
    return reward >= 1 ? TARE_VERDICT_CORRECT : reward > 0 ? TARE_VERDICT_PARTIAL : TARE_VERDICT_WRONG;
}

static tare_status create_instance(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)callbacks_of(setup->host);
    return TARE_OK;
}

static void destroy_nothing(void *self)
{
    (void)self; /* owned by the run */
}

static tare_status verify_by_caller(void *self, const tare_completion *const *completions, tare_verdict *const *verdicts, int64_t n,
                                    tare_error *error)
{
    const struct judge *j = self;
    const struct callbacks *c = j->callbacks;
    OWNED(mem_free_at) double *reward = NULL;
    struct err e = {0};
    if (!c->reward) return tare_fail(error, TARE_E_CONFIG, "missing reward function: pass one to tare.Run (reward=...)");
    if (mem_new(n * (int64_t)sizeof *reward + 1, (void **)&reward, &e)) return tare_fail(error, TARE_E_NOMEM, "%s", e.message);
    for (int64_t i = 0; i < n; i++) reward[i] = (double)NAN;
    const tare_api_asked asked = {.struct_size = sizeof asked,
                                  .instance = j->instance,
                                  .host = j->host,
                                  .n = n,
                                  .completion = completions,
                                  .verdict = (const tare_verdict *const *)verdicts,
                                  .reward = reward};
    TRY(c->reward(c->ctx, &asked, error));
    for (int64_t i = 0; i < n; i++) {
        verdicts[i]->code = verdict_of(reward[i]);
        verdicts[i]->reward = isnan(reward[i]) ? 0 : reward[i];
    }
    return TARE_OK;
}

static void fill_baseline(const tare_batch *b, int64_t m, tare_advantages *out)
{
    const int64_t begin = b->group_begin[m], end = b->group_begin[m + 1];
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += b->reward[i] - out->advantage[i];
    out->baseline[m] = end > begin ? sum / (double)(end - begin) : 0;
}

/* The columns that an advantage function sees. */
static const tare_want WANTS[] = {
    {"component.name", TARE_AXIS_ONE, TARE_TEXT, TARE_WANT_OPTIONAL, 0},
    {"component", TARE_AXIS_ROLLOUT, TARE_F64, 0, 0},
    {"component.verdict", TARE_AXIS_ROLLOUT, TARE_I32, TARE_WANT_OPTIONAL, 0},
    {"verdict", TARE_AXIS_ROLLOUT, TARE_I32, 0, 1},
    {"finish", TARE_AXIS_ROLLOUT, TARE_U8, 0, 1},
    {"completion", TARE_AXIS_ROLLOUT, TARE_TEXT, 0, 1},
    {"row.json", TARE_AXIS_GROUP, TARE_TEXT, 0, 1},
    {"token", TARE_AXIS_TOKEN, TARE_I32, 0, 1},
    {"logprob", TARE_AXIS_TOKEN, TARE_F32, TARE_WANT_OPTIONAL, 1},
    {"entropy", TARE_AXIS_TOKEN, TARE_F32, 0, 1},
};
enum { N_WANTS = sizeof WANTS / sizeof *WANTS };

static tare_status compute_by_caller(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                                     tare_error *error)
{
    const struct callbacks *c = self;
    tare_api_column column[N_WANTS];
    int64_t n = 0;
    (void)prepared;
    if (!c->advantage) return tare_fail(error, TARE_E_CONFIG, "missing advantage function: pass one to tare.Run (advantage=...)");
    for (int i = 0; i < N_WANTS; i++) {
        const tare_column *x = &batch->column[i];
        if (x->data) column[n++] = (tare_api_column){WANTS[i].name, x->data, x->n, x->width, WANTS[i].type};
    }
    const tare_status status =
        c->advantage(c->ctx, &(tare_api_view){sizeof(tare_api_view), batch, column, n}, out->advantage, error);
    if (status) return status;
    for (int64_t m = 0; m < batch->n_groups; m++) fill_baseline(batch, m, out);
    return TARE_OK;
}

static uint32_t used_facts(const tare_value *values)
{
    (void)values;
    return TARE_USES_MAYBE_ANSWER;
}

static const tare_verifier VERIFIER = {.struct_size = sizeof VERIFIER,
                                       .flags = TARE_VERIFIER_TOGETHER,
                                       .create = create_judge,
                                       .destroy = destroy_judge,
                                       .verify = verify_by_caller,
                                       .uses = used_facts};
static const tare_estimator ESTIMATOR = {
    .struct_size = sizeof ESTIMATOR, .create = create_instance, .destroy = destroy_nothing, .compute = compute_by_caller};

#define DESCRIPTOR(KIND, FUNCTIONS, ...)                                                                                           \
    {                                                                                                                              \
        .struct_size = sizeof(tare_descriptor), .kind = KIND, .name = PLUGIN_OF_CALLER, .version = "1.0.0",                        \
        .license = "Apache-2.0", .functions = &FUNCTIONS, __VA_ARGS__                                                              \
    }
static const tare_descriptor DESCRIPTORS[] = {
    DESCRIPTOR(TARE_KIND_VERIFIER, VERIFIER, .summary = "a function of the program that embeds the engine: rewards"),
    DESCRIPTOR(TARE_KIND_ESTIMATOR, ESTIMATOR, .summary = "a function of the program that embeds the engine: advantages",
               TARE_WANTS(WANTS, N_WANTS)),
};

tare_status callbacks_add(struct err *e)
{
    static const tare_descriptor *const list[] = {&DESCRIPTORS[0], &DESCRIPTORS[1]};
    static const tare_plugin plugin = {
        .struct_size = sizeof plugin, .minor_built = TARE_ABI_MINOR, .n_descriptors = 2, .descriptors = list, .build = TARE_BUILD};
    return plugin_add("(a function of the program)", &plugin, e);
}
