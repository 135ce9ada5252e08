/* Plugins that break the contract, each in one way: compiled once for each CASE (tests/plugin/fixtures.cmake). CASE good breaks nothing. */
#include <tare/sdk.h>

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum cases {
    good,
    wrong_major,
    no_entry,
    refuses,
    refuses_silently,
    newer_minor,
    short_plugin,
    no_descriptors,
    null_descriptor,
    short_descriptor,
    bad_kind,
    bad_name,
    bad_version,
    no_summary,
    no_table,
    uncounted_params,
    short_table,
    huge_table,
    null_member,
    half_state,
    collect_without_apply,
    duplicate_names,
    two_estimators,
    param_stride,
    duplicate_params,
    bad_default,
    bad_type,
    bad_range,
    no_choices,
    no_default,
    no_doc,
    unknown_want,
    no_state_version,
    unknown_bits,
    create_fails,
    silent_failure,
    endless_message,
    unknown_status,
    negative_size,
    nan_advantage,
    unwritten,
    bad_confidence,
    infinite_scale,
    negative_weight,
    past_end,
    nan_sums,
    changes_fp,
    changes_locale,
    leaves_bytes,
    reads_too_much,
    wants_extra,
    metrics,
    aborts,
    hangs,
    exits,
    exits_in_compute,
    endless_save,
    unknown_flags,
    grows_size,
    writes_state,
    overwrites_sums,
    counts_calls,
    leaks_memory,
    leaks_files,
    takes_signals,
    forgets_cluster,
    segfaults,
    trusts_state,
    unknown_kind_beside,
    grown_descriptor,
    keeps_host,
    new_locked,
    other_locked,
    renamed_locked,
    tells_version,
    reads_undeclared,
    loses_prompts,
    weight_by_call,
    baseline_by_call,
    scale_by_call,
    confidence_by_call,
    tokens_by_call,
    extra_by_call,
    weight_by_rank,
    baseline_by_rank,
    tokens_by_rank,
    records_by_call,
    weight_by_order,
    prints,
    prints_error,
    leaves_thread,
    signals_in_compute,
    changes_folder,
    leaks_heap,
    infinite_at_end,
    past_tokens,
    past_record,
    past_sums,
    state_changes,
    flushes_at_load,
    wants_twice,
    wants_axis,
    wants_stride,
    column_by_rank,
    ignores_nan,
    reads_behind,
    writes_behind,
    compares_size,
    compares_flags
};
#define IS(X) (CASE == X)
#define HAS_RECORDS (IS(loses_prompts) || IS(records_by_call) || IS(past_record))
#define HAS_WANTS                                                                                                                  \
    (IS(unknown_want) || IS(wants_twice) || IS(wants_axis) || IS(wants_stride) || IS(column_by_rank) || IS(ignores_nan) ||         \
     IS(forgets_cluster))
#define GIVES_TOKENS (IS(tokens_by_call) || IS(tokens_by_rank) || IS(past_tokens))

#if CASE_UNDEFINED_SYMBOL
extern int this_symbol_is_nowhere(void);
int (*volatile use_it)(void) = this_symbol_is_nowhere;
#endif

enum { PROMPTS = 64 };
struct self {
    const tare_host *host;
    double factor, sum;
    double of_prompt[PROMPTS]; /* CASE loses_prompts */
};
void *volatile lost;

static const tare_host *entry_host; /* CASE keeps_host: the host passed to the entry point */

static void *sleeps(void *arg)
{
    for (;;) pause();
    return arg;
}

enum { W_LEVEL, W_WEIGHT, W_CLUSTER, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_LEVEL] = {.name = "row.level", .axis = IS(wants_axis) ? TARE_AXIS_TOKEN : TARE_AXIS_GROUP, .type = TARE_F64, .width = 1},
    [W_WEIGHT] = {.name = IS(wants_twice)    ? "row.level"
                          : IS(unknown_want) ? "no_such_column"
                                             : "row.weight",
                  .axis = TARE_AXIS_GROUP,
                  .type = TARE_F64,
                  .width = 1},
    [W_CLUSTER] = {.name = "cluster", .axis = TARE_AXIS_GROUP, .type = TARE_I32, .width = 1},
};

static double prompt_value(const struct self *s, uint64_t uid)
{
    return IS(loses_prompts) ? s->of_prompt[uid % PROMPTS] : 0;
}

#if CASE_FLUSHES_AT_LOAD && defined(__x86_64__)
/* The effect of crtfastmath.o in an object that an older gcc linked with -ffast-math. */
__attribute__((constructor)) static void flush(void)
{
    _mm_setcsr(_mm_getcsr() | 0x8040);
}
#endif

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    const tare_value *values = setup->values;
    if (IS(create_fails)) return tare_fail(error, TARE_E_CONFIG, "factor %g does not please", values[0].f);
    if (IS(silent_failure)) return TARE_E_RANGE;
    if (IS(unknown_status)) return 4711;
    if (IS(endless_message)) {
        memset(error->message, 'x', sizeof error->message);
        return TARE_E_INVALID;
    }
    if (IS(exits)) exit(0);
    if (IS(keeps_host)) {
        if (!TARE_KNOWS(entry_host, extension) || entry_host->abi_minor != TARE_ABI_MINOR)
            return tare_fail(error, TARE_E_PLUGIN, "the entry point's host is no longer valid");
        entry_host->log(entry_host->ctx, TARE_LOG_DEBUG, "still there");
    }
    if (IS(leaks_files) && !fopen("/dev/null", "r")) return TARE_E_IO;
    if (IS(takes_signals)) signal(SIGUSR1, SIG_IGN);
    struct self *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return TARE_E_NOMEM;
    if (IS(leaks_heap)) lost = malloc(100);
    if (IS(leaves_thread)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleeps, NULL)) return TARE_E_GENERIC;
    }
    s->host = host;
    s->factor = values[0].f;
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    if (!IS(leaks_memory)) s->host->release(s->host->ctx, s);
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    /* Refused before a byte of it is read. */
    if (IS(endless_save)) out->write(out->ctx, "x", (int64_t)1 << 40);
    const tare_status status = out->write(out->ctx, &((const struct self *)self)->sum, 8);
    return status || !IS(leaves_bytes) ? status : out->write(out->ctx, "more", 4);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    double two[2];
    if (IS(tells_version)) return tare_fail(error, TARE_E_VERSION, "written by version %u", in->state_version);
    const tare_status status = in->read(in->ctx, two, IS(reads_too_much) ? 16 : 8);
    if (status && !IS(trusts_state)) return tare_fail(error, status, "the state is cut short");
    ((struct self *)self)->sum = two[0] + IS(state_changes);
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->collect = IS(negative_size) ? -1 : IS(grows_size) && ((const struct self *)self)->sum > 0 ? 3 : 2;
    out->record = HAS_RECORDS ? 2 : 0;
    return TARE_OK;
}

/* Columns other than advantages: each fault depends on the number of calls, of groups, or on the
 * position of a group. */
static void other_columns(const tare_batch *batch, tare_advantages *out, double calls)
{
    const double groups = (double)batch->n_groups;
    for (int64_t i = 0; i < batch->n_rollouts; i++) {
        if (IS(weight_by_call)) out->rollout_weight[i] = calls;
        if (IS(weight_by_rank)) out->rollout_weight[i] = groups;
        if (IS(weight_by_order)) out->rollout_weight[i] = (double)i;
    }
    for (int64_t m = 0; m < batch->n_groups; m++) {
        if (IS(baseline_by_call)) out->baseline[m] = calls;
        if (IS(baseline_by_rank)) out->baseline[m] = groups;
        if (IS(scale_by_call)) out->scale[m] = calls;
        if (IS(confidence_by_call)) out->confidence[m] = 1 / calls;
    }
    for (int64_t t = 0; out->token_advantage && t < batch->n_tokens; t++)
        out->token_advantage[t] = (float)(IS(tokens_by_call) ? calls : IS(tokens_by_rank) ? groups : 1);
    if (IS(past_tokens)) out->token_advantage[batch->n_tokens] = 1;
    if (IS(extra_by_call)) out->extra_groups = (int64_t)calls;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct self *s = self;
    static double calls;
    (void)prepared, (void)error;
    if (IS(aborts)) abort();
    if (IS(exits_in_compute)) exit(0);
    static int *volatile nowhere;
    if (IS(segfaults)) *nowhere = 1;
    for (volatile int turn = 0; IS(hangs); turn = !turn) continue;
    if (IS(writes_state)) ((struct self *)(uintptr_t)self)->sum += 1;
    calls++;
    for (int64_t i = 0; i < batch->n_rollouts; i++)
        out->advantage[i] = s->factor * batch->reward[i] - s->sum + (IS(counts_calls) ? calls : 0);
    for (int64_t m = 0; m < batch->n_groups; m++) {
        if (IS(bad_confidence)) out->confidence[m] = 1.5;
        if (IS(infinite_scale)) out->scale[m] = INFINITY;
    }
    for (int64_t m = 0; m < batch->n_groups; m++)
        for (int64_t i = batch->group_begin[m]; i < batch->group_begin[m + 1]; i++)
            out->advantage[i] -= prompt_value(s, batch->prompt_uid[m]);
    other_columns(batch, out, calls);
    for (int64_t m = 0; IS(ignores_nan) && m < batch->n_groups; m++)
        out->advantage[batch->group_begin[m]] = TARE_COLUMN(batch, W_LEVEL, double)[m];
    /* The batch's first row, repeated for each of its groups. */
    for (int64_t m = 0; IS(column_by_rank) && m < batch->n_groups; m++)
        if (!isnan(TARE_COLUMN(batch, W_WEIGHT, double)[0])) out->baseline[m] = TARE_COLUMN(batch, W_WEIGHT, double)[0];
    if (IS(reads_undeclared) && batch->n_tokens) out->advantage[0] += (double)TARE_COLUMN(batch, 0, float)[0];
    if (IS(infinite_at_end) && s->factor >= 5 && batch->n_rollouts) out->advantage[0] = INFINITY;
    if (IS(reads_behind)) {
        uint64_t next;
        memcpy(&next, batch + 1, sizeof next); /* a member that TARE_KNOWS would refuse */
        if (next == UINT64_MAX && batch->n_rollouts) out->advantage[0] += 1;
    }
    if (IS(writes_behind)) memset(out + 1, 0, 8);
    if (IS(compares_size) && batch->struct_size != sizeof *batch) return TARE_E_VERSION;
    if (IS(compares_flags) && batch->flags) return TARE_E_VERSION;
    if (IS(prints)) printf("advantages are done\n");
    if (IS(prints_error)) fprintf(stderr, "advantages are done\n");
    if (IS(signals_in_compute)) signal(SIGUSR2, SIG_IGN);
    if (IS(changes_folder) && chdir("/")) return TARE_E_IO;
    if (IS(forgets_cluster) && batch->n_groups && TARE_COLUMN(batch, W_CLUSTER, int32_t)[0] < 0) out->advantage[0] = NAN;
    if (IS(nan_advantage)) out->advantage[0] = sqrt(-1 - batch->reward[0] * batch->reward[0]);
    if (IS(unwritten)) memcpy(&out->advantage[batch->n_rollouts - 1], &out->scale[0], 8);
    if (IS(negative_weight)) out->rollout_weight[0] = -1;
    if (IS(past_end)) out->advantage[batch->n_rollouts] = 0;
    if (IS(wants_extra)) out->extra_groups = 3;
    if (IS(metrics)) s->host->metric(s->host->ctx, "answer", 42, TARE_METRIC_LAST);
    if (IS(changes_fp)) {
        fesetround(FE_UPWARD);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
    }
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++)
        sum[1] = (IS(overwrites_sums) ? 0 : sum[1]) + batch->reward[i];
    if (IS(nan_sums)) sum[0] = NAN;
    if (IS(past_sums)) sum[2] = 1;
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct self *s = self;
    (void)error;
    s->sum += update->collected[1];
    for (int64_t m = 0; HAS_RECORDS && m < update->n_groups; m++)
        s->of_prompt[update->prompt_uid[m] % PROMPTS] += update->record[2 * m];
    return TARE_OK;
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return tare_print(out, "{\"sum\":%.17g}", ((const struct self *)self)->sum);
}

static tare_status record(const void *self, const tare_batch *batch, int64_t group, double *out, tare_error *error)
{
    (void)self, (void)error;
    static double calls;
    out[0] = batch->reward[batch->group_begin[group]] + (IS(records_by_call) ? ++calls : 0);
    if (IS(past_record)) out[2] = 1;
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {
    .struct_size = IS(short_table)  ? 16
                   : IS(huge_table) ? 1u << 30
                                    : sizeof FUNCTIONS,
    .flags = IS(unknown_flags) ? 4
             : GIVES_TOKENS    ? TARE_ESTIMATOR_GIVES_TOKENS
                               : 0,
    .create = create,
    .destroy = destroy,
    .save = save,
    .load = IS(half_state) ? NULL : load,
    .describe = describe,
    .sizes = sizes,
    .compute = IS(null_member) ? NULL : compute,
    .collect = collect,
    .record = HAS_RECORDS ? record : NULL,
    .apply = IS(collect_without_apply) ? NULL : apply,
};

static const char *const CHOICES[] = {"a", "b", NULL};
static const char *const OLD_FACTOR[] = {"scale", "factor", NULL};
static const tare_param PARAMS[] = {
    {.key = IS(renamed_locked) ? "weight" : "factor",
     .fallback = IS(bad_default) ? "7" : "1",
     .doc = "multiplies the rewards",
     .min = IS(bad_range) ? 9 : 0,
     .max = 5,
     .type = IS(bad_type) ? 77 : TARE_PARAM_FLOAT,
     .flags = TARE_PARAM_MIN | TARE_PARAM_MAX | TARE_PARAM_LOCKED_ON_RESUME | (IS(unknown_bits) ? 1u << 20 : 0),
     .old_keys = IS(renamed_locked) ? OLD_FACTOR : NULL},
    TARE_CHOICE_PARAM(IS(duplicate_params) ? "factor" : "choice", "b", IS(no_doc) ? NULL : "a choice",
                      IS(no_choices) ? NULL : CHOICES, 0),
    TARE_STRING_PARAM("text", IS(no_default) ? NULL : "x y", "a text",
                      IS(new_locked) || IS(other_locked) ? TARE_PARAM_LOCKED_ON_RESUME : 0),
    TARE_BOOL_PARAM("flag", "false", "a switch", 0),
    TARE_INT_PARAM("count", "3", "a count", 1, 10, TARE_PARAM_BELOW_MAX),
};

#define DESCRIPTOR(NAME)                                                                                                           \
    {                                                                                                                              \
        .struct_size = IS(short_descriptor) ? 24 : sizeof(tare_descriptor), .kind = IS(bad_kind) ? 9 : TARE_KIND_ESTIMATOR,        \
        .name = IS(bad_name) ? "Bad Name" : NAME, .version = IS(bad_version) ? "one" : "1.2.3",                                    \
        .summary = IS(no_summary) ? NULL : "a fixture of the tests", .license = "Apache-2.0", .params = PARAMS,                    \
        .n_params = IS(uncounted_params) ? 0 : 5, .param_size = IS(param_stride) ? 8 : sizeof(tare_param), .wants = WANTS,         \
        .n_wants = HAS_WANTS ? N_WANTS : 0, .want_size = IS(wants_stride) ? 8 : sizeof(tare_want),                                 \
        .minor_needed = IS(newer_minor) ? TARE_ABI_MINOR + 1 : 0, .state_version = IS(no_state_version) ? 0 : 1,                   \
        .state_oldest = 1, .functions = IS(no_table) ? NULL : (const void *)&FUNCTIONS                                             \
    }
/* Built for a later minor version: one member more than today's. */
static const struct {
    tare_descriptor now;
    const char *later;
} GROWN = {{.struct_size = sizeof GROWN,
            .kind = TARE_KIND_ESTIMATOR,
            .name = "hostile",
            .version = "1.2.3",
            .summary = "a fixture of the tests",
            .params = PARAMS,
            .n_params = 5,
            .param_size = sizeof(tare_param),
            .state_version = 1,
            .state_oldest = 1,
            .functions = &FUNCTIONS},
           "later"};
static const tare_descriptor UNKNOWN = {.struct_size = sizeof UNKNOWN, .kind = 99, .name = "tomorrow", .version = "1.0.0"};
static const tare_descriptor FIRST = DESCRIPTOR("hostile"), SECOND = DESCRIPTOR(IS(duplicate_names) ? "hostile" : "second");

#if CASE_WRONG_MAJOR
#define ENTRY tare_plugin_v2
TARE_EXPORT const tare_plugin *tare_plugin_v2(const tare_host *host, tare_error *error);
#elif CASE_NO_ENTRY
#define ENTRY something_else
TARE_EXPORT const tare_plugin *something_else(const tare_host *host, tare_error *error);
#else
#define ENTRY tare_plugin_v1
#endif

const tare_plugin *ENTRY(const tare_host *host, tare_error *error)
{
    static const tare_descriptor *const descriptors[] = {IS(null_descriptor)       ? NULL
                                                         : IS(unknown_kind_beside) ? &UNKNOWN
                                                         : IS(grown_descriptor)    ? &GROWN.now
                                                                                   : &FIRST,
                                                         &SECOND};
    static const tare_plugin plugin = {
        .struct_size = IS(short_plugin) ? 8 : sizeof plugin,
        .minor_built = TARE_ABI_MINOR,
        .n_descriptors = IS(no_descriptors)                                                     ? 0
                         : IS(duplicate_names) || IS(two_estimators) || IS(unknown_kind_beside) ? 2
                                                                                                : 1,
        .descriptors = descriptors,
    };
    entry_host = host;
    if (IS(refuses)) tare_fail(error, TARE_E_UNSUPPORTED, "no quantum computer was found");
    if (IS(changes_locale)) setlocale(LC_ALL, "C.UTF-8");
    return IS(refuses) || IS(refuses_silently) ? NULL : &plugin;
}
