/* The verifier and the estimator python_function: functions of the program that embeds this
 * library. The verifier gets all completions of a step in one call. A reward of 1 or more is the
 * verdict correct, 0 or less wrong, partial between. The estimator returns only A; its baseline is
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

static tare_status create_verifier(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)values, (void)error;
    *self = (void *)(uintptr_t)callbacks_of(host);
    return TARE_OK;
}

static tare_status create_estimator(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self,
                                    tare_error *error)
{
    (void)n_clusters;
    return create_verifier(host, values, self, error);
}

static void destroy_nothing(void *self)
{
    (void)self; /* owned by the run */
}

static tare_status verify_by_caller(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                                    tare_error *error)
{
    const struct callbacks *c = self;
    OWNED(mem_free_at) double *reward = NULL;
    struct err e = {0};
    if (!c->reward) return tare_fail(error, TARE_E_CONFIG, "missing reward function: pass one to tare.Run (reward=...)");
    if (mem_new(n * (int64_t)sizeof *reward + 1, (void **)&reward, &e)) return tare_fail(error, TARE_E_NOMEM, "%s", e.message);
    for (int64_t i = 0; i < n; i++) reward[i] = (double)NAN;
    TRY(c->reward(c->ctx, answers, n, reward, error));
    for (int64_t i = 0; i < n; i++) {
        verdicts[i]->reward = reward[i];
        verdicts[i]->code = reward[i] >= 1 ? TARE_CORRECT : reward[i] > 0 ? TARE_PARTIAL : TARE_WRONG;
    }
    return TARE_OK;
}

static void fill_baseline(const tare_batch *b, int64_t m, tare_advantages *out)
{
    const int64_t begin = b->group_begin[m], end = b->group_begin[m + 1];
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += b->reward[i] - out->advantage[i];
    out->baseline[m] = end > begin ? sum / (double)(end - begin) : 0;
    out->confidence[m] = 0;
}

static tare_status compute_by_caller(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                                     tare_error *error)
{
    const struct callbacks *c = self;
    (void)prepared;
    if (!c->advantage) return tare_fail(error, TARE_E_CONFIG, "missing advantage function: pass one to tare.Run (advantage=...)");
    const tare_status status = c->advantage(c->ctx, batch, out->advantage, error);
    if (status) return status;
    for (int64_t m = 0; m < batch->n_groups; m++) fill_baseline(batch, m, out);
    return TARE_OK;
}

static uint32_t used_facts(const tare_value *values)
{
    (void)values;
    return TARE_MAY_USE_ANSWER;
}

static const tare_verifier VERIFIER = {.struct_size = sizeof VERIFIER,
                                       .flags = TARE_JUDGES_TOGETHER,
                                       .create = create_verifier,
                                       .destroy = destroy_nothing,
                                       .verify = verify_by_caller,
                                       .uses = used_facts};
static const tare_estimator ESTIMATOR = {
    .struct_size = sizeof ESTIMATOR, .create = create_estimator, .destroy = destroy_nothing, .compute = compute_by_caller};

#define DESCRIPTOR(KIND, FUNCTIONS, ...)                                                                                           \
    {                                                                                                                              \
        .struct_size = sizeof(tare_descriptor), .kind = KIND, .name = PLUGIN_OF_CALLER, .version = "1.0.0",                        \
        .license = "Apache-2.0", .param_size = sizeof(tare_param), .functions = &FUNCTIONS, __VA_ARGS__                            \
    }
static const tare_descriptor DESCRIPTORS[] = {
    DESCRIPTOR(TARE_VERIFIER, VERIFIER, .summary = "a function of the program that embeds the engine: rewards",
               .threading = TARE_SINGLE_THREAD),
    DESCRIPTOR(TARE_ESTIMATOR, ESTIMATOR, .summary = "a function of the program that embeds the engine: advantages",
               .threading = TARE_SINGLE_THREAD,
               .needs = TARE_NEED_ENTROPY | TARE_WANTS_LOGPROB | TARE_NEED_COMPONENTS | TARE_NEED_FINISH | TARE_NEED_ROW |
                        TARE_NEED_COMPLETION | TARE_NEED_TOKEN_ID),
};

tare_status callbacks_add(struct err *e)
{
    static const tare_descriptor *const list[] = {&DESCRIPTORS[0], &DESCRIPTORS[1]};
    static const tare_plugin plugin = {.struct_size = sizeof plugin,
                                       .abi_minor_built = TARE_ABI_MINOR,
                                       .abi_minor_needed = 2,
                                       .n_descriptors = 2,
                                       .descriptors = list};
    return plugin_add("(a function of the program)", &plugin, e);
}
