#include "estimate/estimate.h"

#include "estimate/fields.h"
#include "estimate/shown.h"
#include "estimate/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct estimator {
    struct plugin_instance *instance;
    const tare_estimator *call;
    int64_t prepare_size, collect_size, record_size;
    int64_t n_clusters;           /* K of the codebook; 0: no codebook */
    double *vector;               /* one group's vector: [max(prepare_size, collect_size)] */
    double *prepared, *collected; /* sums over all groups */
    uint64_t *uid;                /* [n_groups] of the last collect */
    double *record;               /* [n_groups, record_size] */
    int64_t n_groups, uid_capacity, record_capacity;
    const tare_text *component_name;
    struct estimate_metrics metrics;
    struct plugin_env env;
    bool late;      /* the plugin wants updated_logprob: collect and record run after the policy step */
    float *updated; /* [T] of the shown rollouts */
    int64_t updated_capacity;
    struct shown shown; /* the plugin's view of the last batch */
    bool ran;
    tare_batch batch;           /* of the last run, for a late collect */
    const int64_t *token_begin; /* of the whole batch of the last run */
    tare_batch *dropped;        /* [n_dropped] groups dropped from the step */
    int64_t n_dropped, dropped_capacity;
};

/* ---------------------------------------------------------------- life */

bool estimate_wants(const struct estimator *est, enum column_id column)
{
    return plugin_wants(est->instance, column);
}

tare_status estimate_check_row(const struct estimator *est, tare_text row, const char *where, uint64_t *seen, struct err *e)
{
    double number[TARE_LIMIT_WANTS];
    TRY(fields_numbers(est->instance, row, where, number, e));
    for (uint32_t w = 0; w < est->instance->plugin->desc.n_wants; w++)
        if (!isnan(number[w])) *seen |= UINT64_C(1) << w;
    return TARE_OK;
}

tare_status estimate_check_seen(const struct estimator *est, uint64_t seen, const char *data, struct err *e)
{
    const struct plugin *p = est->instance->plugin;
    for (uint32_t w = 0; w < p->desc.n_wants; w++)
        if (fields_key(est->instance, w) && !(p->wants[w].flags & TARE_WANT_OPTIONAL) && !(seen >> w & 1))
            FAIL(e, TARE_E_INVALID, "%s: no row has a number in the field \"%s\", which estimator %s reads; check its spelling",
                 data, fields_key(est->instance, w), p->desc.name);
    return TARE_OK;
}

const struct plugin *estimate_plugin(const struct estimator *est)
{
    return est->instance->plugin;
}

const struct plugin_instance *estimate_instance(const struct estimator *est)
{
    return est->instance;
}

const struct estimate_metrics *estimate_metrics(const struct estimator *est)
{
    return &est->metrics;
}

void estimate_free(struct estimator *est)
{
    if (!est) return;
    plugin_destroy(est->instance);
    mem_free(est->vector);
    mem_free(est->prepared);
    mem_free(est->collected);
    mem_free(est->uid);
    mem_free(est->record);
    mem_free(est->updated);
    mem_free(est->dropped);
    mem_free(est);
}

void estimate_free_at(struct estimator **p)
{
    estimate_free(*p);
}

static tare_status open_estimator(struct estimator *est, const struct estimate_options *o, struct err *e)
{
    est->env = o->env;
    est->n_clusters = o->n_clusters;
    est->component_name = o->component_name;
    TRY(plugin_new(&(struct plugin_wanted){o->plugin, TARE_KIND_ESTIMATOR, o->search, o->settings, o->n_clusters, &est->env},
                   &est->instance, e));
    est->call = est->instance->plugin->estimator;
    est->late = plugin_wants(est->instance, COLUMN_UPDATED_LOGPROB);
    const tare_sizes *sizes = &est->instance->sizes;
    est->prepare_size = sizes->prepare;
    est->collect_size = sizes->collect;
    est->record_size = sizes->record;
    const int64_t larger = est->prepare_size > est->collect_size ? est->prepare_size : est->collect_size;
    TRY(mem_new(larger * 8 + 8, (void **)&est->vector, e));
    TRY(mem_new(est->prepare_size * 8 + 8, (void **)&est->prepared, e));
    return mem_new(est->collect_size * 8 + 8, (void **)&est->collected, e);
}

tare_status estimate_open(const struct estimate_options *o, struct estimator **out, struct err *e)
{
    struct estimator *est;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *est, (void **)&est, e));
    const tare_status status = open_estimator(est, o, e);
    if (status) {
        estimate_free(est);
        return status;
    }
    *out = est;
    return TARE_OK;
}

/* ---------------------------------------------------------------- sums and records */

typedef tare_status (*group_function)(const void *, const tare_batch *, int64_t, double *, tare_error *);

struct sums {
    group_function of;
    const char *phase;
    int64_t size;
    double *sum; /* [size] */
};

/* Adds the groups' vectors to the sum, in the order of the groups. */
static tare_status add_groups(struct estimator *est, const tare_batch *batch, const struct sums *s, struct err *e)
{
    struct plugin_call c;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        memset(est->vector, 0, (size_t)s->size * sizeof(double));
        plugin_enter(&c);
        TRY(plugin_leave(&c, est->instance, s->phase, batch->step, s->of(est->instance->self, batch, m, est->vector, &c.error), e));
        for (int64_t i = 0; i < s->size; i++) {
            if (!isfinite(est->vector[i]))
                FAIL(e, TARE_E_NOT_FINITE, "estimator %s: %s, step %lld: number %lld of group %lld's sums is %g",
                     est->instance->plugin->desc.name, s->phase, (long long)batch->step, (long long)i, (long long)m,
                     est->vector[i]);
            s->sum[i] += est->vector[i];
        }
    }
    return TARE_OK;
}

/* Appends each group's prompt and record. */
static tare_status add_records(struct estimator *est, const tare_batch *batch, struct err *e)
{
    const int64_t size = est->record_size, first = est->n_groups, n = first + batch->n_groups;
    struct plugin_call c;
    TRY(mem_grow((void **)&est->uid, &est->uid_capacity, n + 1, sizeof *est->uid, e));
    TRY(mem_grow((void **)&est->record, &est->record_capacity, n * size + 1, sizeof *est->record, e));
    memset(est->record + first * size, 0, (size_t)(batch->n_groups * size) * sizeof *est->record);
    for (int64_t m = 0; m < batch->n_groups; m++) {
        double *record = est->record + (first + m) * size;
        est->uid[first + m] = batch->prompt_uid[m];
        if (!est->call->record) continue;
        plugin_enter(&c);
        TRY(plugin_leave(&c, est->instance, "record", batch->step,
                         est->call->record(est->instance->self, batch, m, record, &c.error), e));
        for (int64_t i = 0; i < size; i++)
            if (!isfinite(record[i]))
                FAIL(e, TARE_E_NOT_FINITE, "estimator %s: record, step %lld: number %lld of group %lld's record is %g",
                     est->instance->plugin->desc.name, (long long)batch->step, (long long)i, (long long)m, record[i]);
    }
    est->n_groups = n;
    return TARE_OK;
}

static tare_status collect_part(struct estimator *est, const tare_batch *batch, const struct sums *sums, struct err *e)
{
    if (sums->of) TRY(add_groups(est, batch, sums, e));
    return add_records(est, batch, e);
}

/* Fills the arguments of apply. */
static tare_status collect_all(struct estimator *est, const tare_batch *batch, struct err *e)
{
    const struct sums sums = {est->call->collect, "collect", est->collect_size, est->collected};
    memset(est->collected, 0, (size_t)est->collect_size * sizeof *est->collected);
    est->n_groups = 0;
    TRY(collect_part(est, batch, &sums, e));
    for (int64_t k = 0; k < est->n_dropped && !est->late; k++) TRY(collect_part(est, &est->dropped[k], &sums, e));
    return TARE_OK;
}

static tare_status prepare_all(struct estimator *est, const tare_batch *batch, struct err *e)
{
    const struct sums sums = {est->call->prepare, "prepare", est->prepare_size, est->prepared};
    if (!sums.of) return TARE_OK;
    memset(est->prepared, 0, (size_t)est->prepare_size * sizeof *est->prepared);
    return add_groups(est, batch, &sums, e);
}

/* ---------------------------------------------------------------- output */

/* Output buffers between guards, so that a write past an end is caught where it happens. */
enum { GUARD = 8 };
static const uint64_t GUARD_WORD = 0xfff4deadfff4beefu; /* false for a NaN as well */

static tare_status guarded_buffer(struct arena *a, int64_t n, int64_t width, double fill, void **out, struct err *e)
{
    char *p;
    TRY(arena_push_raw(a, n * width + 2 * GUARD * 8 + 8, (void **)&p, e));
    for (int i = 0; i < GUARD; i++) memcpy(p + 8 * i, &GUARD_WORD, 8);
    for (int i = 0; i < GUARD; i++) memcpy(p + 8 * GUARD + n * width + 8 * i, &GUARD_WORD, 8);
    *out = p + 8 * GUARD;
    for (int64_t i = 0; i < n; i++) {
        if (width == 8)
            ((double *)*out)[i] = fill;
        else
            ((float *)*out)[i] = (float)fill;
    }
    return TARE_OK;
}

static bool guards_intact(const void *buffer, int64_t n, int64_t width)
{
    const char *p = buffer;
    if (!p) return true;
    for (int i = 0; i < GUARD; i++)
        if (memcmp(p - 8 * (i + 1), &GUARD_WORD, 8) || memcmp(p + n * width + 8 * i, &GUARD_WORD, 8)) return false;
    return true;
}

static tare_status new_outputs(const struct estimator *est, struct batch *b, struct arena *a, tare_advantages *out, struct err *e)
{
    *out = (tare_advantages){.struct_size = sizeof *out};
    TRY(guarded_buffer(a, b->n_rollouts, 8, (double)NAN, (void **)&out->advantage, e));
    TRY(guarded_buffer(a, b->n_rollouts, 8, 1, (void **)&out->rollout_weight, e));
    TRY(guarded_buffer(a, b->n_groups, 8, (double)NAN, (void **)&out->baseline, e));
    TRY(guarded_buffer(a, b->n_groups, 8, (double)NAN, (void **)&out->scale, e));
    TRY(guarded_buffer(a, b->n_groups, 8, (double)NAN, (void **)&out->confidence, e));
    if (est->call->flags & TARE_ESTIMATOR_GIVES_TOKENS)
        TRY(guarded_buffer(a, b->n_tokens, 4, (double)NAN, (void **)&out->token_advantage, e));
    b->advantage = out->advantage;
    b->rollout_weight = out->rollout_weight;
    b->baseline = out->baseline;
    b->scale = out->scale;
    b->confidence = out->confidence;
    b->token_advantage = out->token_advantage;
    return TARE_OK;
}

static tare_status check_rollout(const tare_batch *view, const struct batch *b, int64_t m, int64_t i, const char *who,
                                 struct err *e)
{
    const long long r = i - b->group_begin[m];
    if (!isfinite(b->advantage[i]))
        FAIL(e, TARE_E_NOT_FINITE, "%s: the advantage of group %lld, rollout %lld is %g (reward %g): must be written and finite",
             who, (long long)m, r, b->advantage[i], b->reward[i]);
    if (!isfinite(b->rollout_weight[i]) || b->rollout_weight[i] < 0)
        FAIL(e, TARE_E_NOT_FINITE, "%s: the weight of group %lld, rollout %lld is %g: must be finite and at least 0", who,
             (long long)m, r, b->rollout_weight[i]);
    if (!b->token_advantage) return TARE_OK;
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
        if (view->sampled[t] && !isfinite(b->token_advantage[t]))
            FAIL(e, TARE_E_NOT_FINITE,
                 "%s: the advantage of group %lld, rollout %lld, token %lld is %g: must be written and finite", who, (long long)m,
                 r, (long long)(t - b->token_begin[i]), (double)b->token_advantage[t]);
    return TARE_OK;
}

static tare_status check_outputs(const struct estimator *est, const tare_batch *view, const struct batch *b, struct err *e)
{
    char who[128];
    snprintf(who, sizeof who, "estimator %s: compute, step %lld", est->instance->plugin->desc.name, (long long)b->step);
    if (!guards_intact(b->advantage, b->n_rollouts, 8) || !guards_intact(b->rollout_weight, b->n_rollouts, 8) ||
        !guards_intact(b->baseline, b->n_groups, 8) || !guards_intact(b->scale, b->n_groups, 8) ||
        !guards_intact(b->confidence, b->n_groups, 8) || !guards_intact(b->token_advantage, b->n_tokens, 4))
        FAIL(e, TARE_E_PLUGIN, "%s: it wrote outside of its output buffers", who);
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (isinf(b->baseline[m]))
            FAIL(e, TARE_E_NOT_FINITE, "%s: the baseline of group %lld is %g: must be finite, or NaN for none", who, (long long)m,
                 b->baseline[m]);
        if (isinf(b->scale[m]) || b->scale[m] < 0)
            FAIL(e, TARE_E_NOT_FINITE, "%s: the scale of group %lld is %g: must be finite, or NaN for none", who, (long long)m,
                 b->scale[m]);
        if (b->confidence[m] < 0 || b->confidence[m] > 1)
            FAIL(e, TARE_E_NOT_FINITE, "%s: the confidence of group %lld is %g: must be in [0, 1], or NaN for none", who,
                 (long long)m, b->confidence[m]);
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) TRY(check_rollout(view, b, m, i, who, e));
    }
    return TARE_OK;
}

/* Sets the outputs that the plugin need not write: no confidence is 0, and context tokens have no
 * advantage. */
static void clear_absent(const tare_batch *view, struct batch *b)
{
    for (int64_t m = 0; m < b->n_groups; m++)
        if (isnan(b->confidence[m])) b->confidence[m] = 0;
    for (int64_t t = 0; b->token_advantage && t < b->n_tokens; t++)
        if (!view->sampled[t]) b->token_advantage[t] = 0;
}

/* ---------------------------------------------------------------- metrics */

enum { SIGNAL = 4 }; /* by group: effective, nonzero, confidence, largest |A| */

static void group_signal(const struct batch *b, int64_t m, double out[SIGNAL])
{
    double largest = 0;
    for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
        largest = fmax(largest, fabs(b->advantage[i]));
        if (b->token_advantage)
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
                largest = fmax(largest, fabs((double)b->token_advantage[t]));
    }
    const double nonzero = largest > 1e-6;
    out[0] = isnan(b->scale[m]) ? nonzero : b->scale[m] > 1e-6;
    out[1] = nonzero;
    out[2] = b->confidence[m];
    out[3] = largest;
}

static void measure_groups(struct estimator *est, const struct batch *b, int64_t extra)
{
    double sum[SIGNAL] = {0};
    for (int64_t m = 0; m < b->n_groups; m++) {
        double signal[SIGNAL];
        group_signal(b, m, signal);
        for (int j = 0; j < 3; j++) sum[j] += signal[j];
        sum[3] = fmax(sum[3], signal[3]);
    }
    const double groups = b->n_groups ? (double)b->n_groups : 1;
    est->metrics = (struct estimate_metrics){.effective_signal_ratio = sum[0] / groups,
                                             .nonzero_advantage_ratio = sum[1] / groups,
                                             .confidence_mean = sum[2] / groups,
                                             .advantage_max = sum[3],
                                             .extra_groups = extra};
    const struct plugin_env *env = &est->env;
    if (!env->metric) return;
    env->metric(env->ctx, "estimator/effective_signal_ratio", est->metrics.effective_signal_ratio, TARE_METRIC_LAST);
    env->metric(env->ctx, "estimator/nonzero_advantage_ratio", est->metrics.nonzero_advantage_ratio, TARE_METRIC_LAST);
    env->metric(env->ctx, "estimator/confidence_mean", est->metrics.confidence_mean, TARE_METRIC_LAST);
    env->metric(env->ctx, "estimator/advantage_max", est->metrics.advantage_max, TARE_METRIC_LAST);
}

/* ---------------------------------------------------------------- a step */

/* Checks clusters, which come from the codebook or from a file of the user. Without a codebook they
 * mean nothing to an estimator, and are not checked. */
static tare_status check_clusters(const struct estimator *est, const struct batch *b, struct err *e)
{
    for (int64_t m = 0; b->cluster && est->n_clusters && m < b->n_groups; m++)
        if (b->cluster[m] < -1 || b->cluster[m] >= est->n_clusters)
            FAIL(e, TARE_E_RANGE, "step %lld: group %lld has the cluster %d: must be 0 to %lld, or -1 for none", (long long)b->step,
                 (long long)m, b->cluster[m], (long long)est->n_clusters - 1);
    return TARE_OK;
}

void estimate_begin(struct estimator *est)
{
    est->n_dropped = 0;
}

tare_status estimate_drop(struct estimator *est, const struct batch *groups, struct arena *arena, struct err *e)
{
    struct shown shown;
    TRY(mem_grow((void **)&est->dropped, &est->dropped_capacity, est->n_dropped + 1, sizeof *est->dropped, e));
    TRY(shown_of(groups, arena, &shown, e));
    TRY(estimate_view(est->instance, &shown.batch, est->component_name, arena, &est->dropped[est->n_dropped], e));
    est->n_dropped++;
    return TARE_OK;
}

tare_status estimate_run(struct estimator *est, struct batch *whole, struct arena *arena, struct err *e)
{
    tare_batch batch;
    tare_advantages out;
    struct plugin_call c;
    struct batch *b = &est->shown.batch;
    est->ran = false;
    TRY(check_clusters(est, whole, e));
    TRY(shown_of(whole, arena, &est->shown, e));
    TRY(estimate_view(est->instance, b, est->component_name, arena, &batch, e));
    TRY(new_outputs(est, b, arena, &out, e));
    TRY(prepare_all(est, &batch, e));
    plugin_enter(&c);
    TRY(plugin_leave(&c, est->instance, "compute", b->step,
                     est->call->compute(est->instance->self, &batch, est->prepared, &out, &c.error), e));
    TRY(check_outputs(est, &batch, b, e));
    clear_absent(&batch, b);
    if (out.extra_groups < 0)
        FAIL(e, TARE_E_PLUGIN, "estimator %s: invalid request for %lld more groups", est->instance->plugin->desc.name,
             (long long)out.extra_groups);
    if (!est->late) TRY(collect_all(est, &batch, e));
    est->batch = batch;
    est->token_begin = whole->token_begin;
    measure_groups(est, b, out.extra_groups);
    TRY(shown_spread(&est->shown, whole, arena, e));
    est->ran = true;
    return TARE_OK;
}

/* Selects the logprobs of the rollouts that the plugin was shown. whole: of the whole batch. */
static tare_status shown_logprobs(struct estimator *est, const float *whole, const float **out, struct err *e)
{
    const struct shown *s = &est->shown;
    *out = whole;
    if (!whole || !s->rollout) return TARE_OK;
    TRY(mem_grow((void **)&est->updated, &est->updated_capacity, s->batch.n_tokens + 1, sizeof *est->updated, e));
    for (int64_t i = 0; i < s->batch.n_rollouts; i++) {
        const int64_t first = s->batch.token_begin[i], n = s->batch.token_begin[i + 1] - first;
        if (n) memcpy(est->updated + first, whole + est->token_begin[s->rollout[i]], (size_t)n * sizeof *whole);
    }
    *out = est->updated;
    return TARE_OK;
}

static tare_status collect_late(struct estimator *est, const float *updated_logprob, struct err *e)
{
    tare_column column[TARE_LIMIT_WANTS];
    tare_batch batch = est->batch;
    const float *logprob;
    TRY(shown_logprobs(est, updated_logprob, &logprob, e));
    TRY(view_updated(est->instance, &est->batch, logprob, column, e));
    batch.column = column;
    return collect_all(est, &batch, e);
}

tare_status estimate_apply(struct estimator *est, const struct estimate_update *u, struct err *e)
{
    struct plugin_call c;
    if (!est->ran)
        FAIL(e, TARE_E_STATE, "estimator %s: apply, step %lld: missing call of estimate_run", est->instance->plugin->desc.name,
             (long long)u->step);
    est->ran = false;
    if (est->late) TRY(collect_late(est, u->logprob, e));
    if (!est->call->apply) return TARE_OK;
    const tare_update update = {.struct_size = sizeof update,
                                .step = u->step,
                                .updates = u->updates,
                                .skipped = u->skipped,
                                .collected = est->collected,
                                .n_groups = est->n_groups,
                                .prompt_uid = est->uid,
                                .record = est->record};
    plugin_enter(&c);
    return plugin_leave(&c, est->instance, "apply", u->step, est->call->apply(est->instance->self, &update, &c.error), e);
}

tare_status estimate_save(const struct estimator *est, struct str *out, struct err *e)
{
    return plugin_save(est->instance, out, e);
}

tare_status estimate_load(struct estimator *est, const void *data, int64_t n, const char *where, struct err *e)
{
    est->ran = false;
    return plugin_load(est->instance, data, n, NULL, where, e);
}

tare_status estimate_describe(const struct estimator *est, struct str *out, struct err *e)
{
    return plugin_describe_state(est->instance, out, e);
}
