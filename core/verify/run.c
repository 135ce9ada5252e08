#include "base/clock.h"
#include "base/log.h"
#include "batch/turns.h"
#include "data/dataset.h"
#include "verify/internal.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

struct job {
    struct verify *v;
    struct verify_item *items;
    int64_t n, first, last; /* this pass runs verifiers first .. last-1 */
    double *part;           /* [n, n_verifiers] unweighted rewards */
    int32_t *verdict;       /* [n, C], or NULL */
    _Atomic int64_t failed; /* smallest index that failed; n: none */
    _Atomic int64_t crashed;
    struct err *errors; /* [threads] error at error_at */
    int64_t *error_at;  /* [threads] smallest index that failed on this thread */
};

static const char *name_of(const struct verify_item *item)
{
    return item->name ? item->name : "?";
}

bool verify_cancelled(const struct verify *v)
{
    return v->env.cancelled && v->env.cancelled(v->env.ctx);
}

tare_status verify_go_on(const struct verify *v, struct err *e)
{
    if (verify_cancelled(v)) FAIL(e, TARE_E_CANCELLED, "interrupted before all completions were verified");
    return TARE_OK;
}

int64_t verify_call_time(const struct verify *v, const struct verify_call *call)
{
    return v->options.timeout > 0 ? (int64_t)(v->options.timeout * 1e9 * (double)call->n) : 0;
}

bool verify_together(const struct verify *v, int64_t c)
{
    return v->verifiers[c].plugin->verifier->flags & TARE_VERIFIER_TOGETHER;
}

tare_completion verify_completion(const struct verify_item *item, int64_t deadline_ns)
{
    return (tare_completion){.struct_size = sizeof(tare_completion),
                             .prompt = item->prompt,
                             .text = item->completion,
                             .answer = item->answer.data ? item->answer : (tare_text){"", 0},
                             .row = item->row,
                             .messages = item->messages,
                             .deadline_ns = deadline_ns,
                             .prompt_uid = item->uid,
                             .group = item->group,
                             .index = item->sample,
                             .n_turns = item->turns,
                             .n_tokens = item->tokens,
                             .finish = item->finish,
                             .off_policy = item->off_policy};
}

struct call_arguments { /* arguments of a plugin call, [n] each */
    tare_completion *completion;
    const tare_completion **completions;
    tare_verdict **verdicts;
};

static tare_status call_plugin(const struct verify *v, const struct verify_call *call, const struct call_arguments *a,
                               struct err *e)
{
    const struct verifier *f = &v->verifiers[call->c];
    const int64_t time = verify_call_time(v, call), deadline = time ? clock_ns() + time : 0;
    TRY(verify_go_on(v, e));
    if (v->workers) return worker_group_call(v, call, e);
    for (int64_t i = 0; i < call->n; i++) {
        a->completion[i] = verify_completion(&call->items[i], deadline);
        a->completions[i] = &a->completion[i];
        a->verdicts[i] = &call->outputs[i].verdict;
    }
    struct plugin_instance *i = f->instance[f->n_instances > 1 ? call->thread : 0];
    TRY(plugin_verify(i, a->completions, a->verdicts, call->n, e));
    for (int64_t k = 0; k < call->n; k++) verify_output_hide(a->verdicts[k], i);
    return TARE_OK;
}

/* Only the first verifier's texts are kept. */
static void open_output(struct verify_output *o, const struct verify *v, int64_t c, const struct verify_item *item)
{
    verify_output_open(o, c ? NULL : item->extracted, c ? NULL : item->note);
    if (c != v->segmenter || !item->segment) return;
    o->verdict.segment = item->segment;
    o->verdict.segment_capacity = item->segment_capacity;
}

static void store_verdict(struct job *j, int64_t i, int64_t c, const tare_verdict *verdict)
{
    struct verify_item *item = &j->items[i];
    j->part[i * j->v->n_verifiers + c] = verdict->reward;
    if (j->verdict) j->verdict[i * verify_n_components(j->v) + c] = verdict->code;
    if (verdict->code == TARE_VERDICT_CRASHED) atomic_fetch_add(&j->crashed, 1);
    if (c == j->v->segmenter) item->n_segments = verdict->n_segments;
    if (c) return;
    item->verdict = verdict->code;
}

static tare_status verify_item_alone(struct job *j, int64_t i, int thread, struct err *e)
{
    tare_completion completion;
    const tare_completion *completions;
    tare_verdict *verdicts;
    const struct call_arguments args = {&completion, &completions, &verdicts};
    for (int64_t c = j->first; c < j->last; c++) {
        struct verify_output output;
        open_output(&output, j->v, c, &j->items[i]);
        const struct verify_call call = {c, thread, &j->items[i], 1, &output};
        TRY(call_plugin(j->v, &call, &args, e));
        store_verdict(j, i, c, &output.verdict);
    }
    return TARE_OK;
}

static void call_arguments_free(struct call_arguments *a)
{
    mem_free(a->completion);
    mem_free((void *)a->completions);
    mem_free(a->verdicts);
}

static tare_status verify_together_all(struct job *j, int64_t c, struct err *e)
{
    OWNED(mem_free_at) struct verify_output *output = NULL;
    OWNED(call_arguments_free) struct call_arguments args = {0};
    TRY(mem_new(j->n * (int64_t)sizeof *output, (void **)&output, e));
    TRY(mem_new(j->n * (int64_t)sizeof *args.completion, (void **)&args.completion, e));
    TRY(mem_new(j->n * (int64_t)sizeof *args.completions, (void **)&args.completions, e));
    TRY(mem_new(j->n * (int64_t)sizeof *args.verdicts, (void **)&args.verdicts, e));
    for (int64_t i = 0; i < j->n; i++) open_output(&output[i], j->v, c, &j->items[i]);
    const tare_status s = call_plugin(j->v, &(struct verify_call){c, 0, j->items, j->n, output}, &args, e);
    for (int64_t i = 0; i < j->n && !s; i++) store_verdict(j, i, c, &output[i].verdict);
    if (s && j->n > 1)
        err_prefix(e, "row %s, sample %lld, and %lld more", name_of(j->items), (long long)j->items->sample, (long long)j->n - 1);
    else if (s)
        err_prefix(e, "row %s, sample %lld", name_of(j->items), (long long)j->items->sample);
    return s;
}

static void verify_task(void *arg, int64_t i, int thread)
{
    struct job *j = arg;
    if (i > atomic_load(&j->failed)) return; /* only the first failing index is reported */
    struct err e = {0};
    if (!verify_item_alone(j, i, thread, &e)) return;
    if (i < j->error_at[thread]) {
        j->error_at[thread] = i;
        j->errors[thread] = e;
    }
    int64_t seen = atomic_load(&j->failed);
    while (i < seen && !atomic_compare_exchange_weak(&j->failed, &seen, i)) continue;
}

static tare_status report_failure(const struct job *j, struct err *e)
{
    const int64_t i = atomic_load(&j->failed);
    if (i >= j->n) return TARE_OK;
    for (int t = 0; t < pool_threads(j->v->pool); t++)
        if (j->error_at[t] == i) *e = j->errors[t];
    return err_prefix(e, "row %s, sample %lld", name_of(&j->items[i]), (long long)j->items[i].sample);
}

static tare_status verify_waiting(struct job *j, int64_t c, struct err *e)
{
    const tare_status s = waiting_collect(j->v, c, j->items, j->n, e);
    for (int64_t i = 0; i < j->n && !s; i++) {
        struct verify_output output;
        open_output(&output, j->v, c, &j->items[i]);
        waiting_take(j->v, c, i, &output);
        store_verdict(j, i, c, &output.verdict);
    }
    waiting_end(j->v, c);
    return s;
}

enum pass_kind { SHARED, ALONE, TOGETHER, WAITING };

/* A single-threaded plugin runs alone on the calling thread; the others share the pool. */
static enum pass_kind pass_kind_of(const struct verify *v, int64_t c)
{
    if (verify_together(v, c)) return TOGETHER;
    if (verify_waits_for(v, c)) return WAITING;
    return !v->workers && v->verifiers[c].plugin->desc.calls == TARE_CALLS_SERIAL ? ALONE : SHARED;
}

static tare_status run_passes(struct job *j, struct err *e)
{
    struct verify *v = j->v;
    for (int64_t c = 0; c < v->n_verifiers && j->n; c = j->last) {
        const enum pass_kind kind = pass_kind_of(v, c);
        j->first = c;
        j->last = c + 1;
        if (kind == TOGETHER || kind == WAITING) {
            TRY(kind == WAITING ? verify_waiting(j, c, e) : verify_together_all(j, c, e));
            continue;
        }
        while (j->last < v->n_verifiers && pass_kind_of(v, j->last) == kind) j->last++;
        pool_run(kind == ALONE ? NULL : v->pool, j->n, verify_task, j);
        TRY(report_failure(j, e));
    }
    return TARE_OK;
}

static double overlong_penalty(const struct verify_options *o, const struct verify_item *item, double sum)
{
    if (o->overlong == OVERLONG_ZERO) return item->finish == TARE_FINISH_LENGTH ? -sum : 0;
    const double over = (double)(item->tokens - (o->max_new_tokens - o->overlong_buffer));
    return over <= 0 ? 0 : -o->overlong_penalty * fmin(1, over / (double)o->overlong_buffer);
}

static double part_of_reward(const struct verify *v, int64_t c, const struct verify_item *item, const double *part, double sum)
{
    if (c < v->n_verifiers) return v->verifiers[c].weight * part[c];
    return v->options.environment && c == v->n_verifiers ? item->episode_reward : overlong_penalty(&v->options, item, sum);
}

/* The verdict on an episode; the rollout's if there is no verifier. */
static void judge_episode(const struct verify *v, struct verify_item *item, int32_t *verdicts)
{
    const double r = item->episode_reward;
    const int32_t by_reward = r >= 1 ? TARE_VERDICT_CORRECT : r > 0 ? TARE_VERDICT_PARTIAL : TARE_VERDICT_WRONG;
    const int32_t verdict = item->episode_verdict ? item->episode_verdict : by_reward;
    if (verdicts) verdicts[v->n_verifiers] = verdict;
    if (!v->n_verifiers) item->verdict = verdict;
}

/* Adds the weighted rewards in the order of the components. */
static tare_status add_up(struct verify *v, struct verify_item *items, int64_t n, const double *part, double *component,
                          struct err *e)
{
    const int64_t C = verify_n_components(v);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < C; c++) {
            const double x = part_of_reward(v, c, &items[i], part + i * v->n_verifiers, sum);
            if (component) component[i * C + c] = x;
            sum += x;
        }
        if (!isfinite(sum))
            FAIL(e, TARE_E_NOT_FINITE, "row %s, sample %lld: the weighted reward is %g; lower the weights in verifier.plugins",
                 name_of(&items[i]), (long long)items[i].sample, sum);
        items[i].reward = sum;
    }
    return TARE_OK;
}

static void job_free(struct job *j)
{
    mem_free(j->part);
    mem_free(j->errors);
    mem_free(j->error_at);
}

tare_status verify_items(struct verify *v, struct verify_item *items, int64_t n, struct verify_parts parts, struct err *e)
{
    const int threads = pool_threads(v->pool);
    OWNED(job_free) struct job j = {.v = v, .items = items, .n = n, .failed = n, .verdict = parts.verdict};
    TRY(mem_new(n * v->n_verifiers * (int64_t)sizeof(double) + 1, (void **)&j.part, e));
    TRY(mem_new(threads * (int64_t)sizeof(struct err), (void **)&j.errors, e));
    TRY(mem_new(threads * (int64_t)sizeof(int64_t), (void **)&j.error_at, e));
    for (int t = 0; t < threads; t++) j.error_at[t] = INT64_MAX;
    TRY(run_passes(&j, e));
    const int64_t crashed = atomic_load(&j.crashed);
    if (n && (double)crashed > v->options.max_crash_share * (double)(n * v->n_verifiers))
        FAIL(e, TARE_E_PLUGIN,
             "%lld of %lld verifier calls crashed, above verifier.max_crash_share = %g; run `tare plugin check` for details",
             (long long)crashed, (long long)(n * v->n_verifiers), v->options.max_crash_share);
    for (int64_t i = 0; i < n && v->options.environment; i++)
        judge_episode(v, &items[i], parts.verdict ? parts.verdict + i * verify_n_components(v) : NULL);
    return add_up(v, items, n, j.part, parts.component, e);
}

/* ---------------------------------------------------------------- the loop's batch */

struct verify_item verify_item_of(const struct batch *b, int64_t m)
{
    const struct row *row = b->row[m];
    return (struct verify_item){.prompt = row->question,
                                .answer = row->answer,
                                .row = row->json,
                                .name = row->id,
                                .uid = b->prompt_uid ? b->prompt_uid[m] : 0,
                                .group = m};
}

static void fill_items(const struct batch *b, struct verify_item *items, struct verify_text *text)
{
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            items[i] = verify_item_of(b, m);
            items[i].completion = b->completion[i];
            items[i].sample = i - b->group_begin[m];
            items[i].tokens = batch_length(b, i);
            items[i].finish = b->finish[i];
            items[i].off_policy = b->off_policy && b->off_policy[i];
            items[i].episode_verdict = b->episode_verdict ? b->episode_verdict[i] : 0;
            if (b->turn_reward) {
                items[i].turns = b->turn_begin[i + 1] - b->turn_begin[i];
                for (int64_t u = b->turn_begin[i]; u < b->turn_begin[i + 1]; u++) items[i].episode_reward += b->turn_reward[u];
            }
            items[i].extracted = &text[2 * i];
            items[i].note = &text[2 * i + 1];
            items[i].extracted->size = items[i].note->size = 0; /* where no verifier writes */
        }
}

tare_status verify_run(struct verify *v, struct batch *b, struct arena *a, struct err *e)
{
    const int64_t N = b->n_rollouts;
    struct verify_item *items = NULL;
    struct verify_text *text = NULL;
    tare_segment *segment = NULL;
    const bool segments = verify_gives_segments(v) && b->token_end;
    b->n_components = verify_n_components(v);
    TRY(arena_new(a, &items, N, e));
    TRY(arena_push_raw(a, 2 * N * (int64_t)sizeof *text, (void **)&text, e));
    TRY(batch_alloc(b, BATCH_VERIFY, a, e));
    fill_items(b, items, text);
    if (segments) TRY(arena_push_raw(a, N * TARE_LIMIT_SEGMENTS * (int64_t)sizeof *segment, (void **)&segment, e));
    for (int64_t i = 0; i < N && segments; i++) {
        items[i].segment = segment + i * TARE_LIMIT_SEGMENTS;
        items[i].segment_capacity = TARE_LIMIT_SEGMENTS;
    }
    TRY(verify_items(v, items, N, (struct verify_parts){b->component, b->component_verdict}, e));
    for (int64_t i = 0; i < N; i++) {
        b->reward[i] = items[i].reward;
        b->verdict[i] = items[i].verdict;
        b->extracted[i] = (tare_text){items[i].extracted->data, items[i].extracted->size};
        b->reason[i] = items[i].note->size ? items[i].note->data : NULL;
    }
    return segments ? verify_place_segments(v, items, b, a, e) : TARE_OK;
}
