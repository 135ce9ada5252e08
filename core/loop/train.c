/* All steps of a run, with evaluation, checkpoints and interruption around step.c. */
#include "loop/train.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "loop/evaluate.h"
#include "loop/resume.h"
#include "loop/resume_check.h"
#include "loop/step.h"
#include "observe/run_data.h"
#include "settle/settle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPIKE_WINDOW = 20, SPIKE = 10 };

struct summary {
    double signal, tokens, seconds; /* sums over the steps of this process */
    int64_t last;                   /* the step to stop after */
    int64_t steps, silent;          /* silent: steps without any signal, the latest in a row */
    bool warned, late;              /* told of silent steps, of timeouts */
    double norms[SPIKE_WINDOW];     /* of the gradients of the last steps of this process, in a ring */
    int64_t n_norms;
};

struct train {
    struct run run;
    struct summary summary;
    int64_t saved; /* step of the last checkpoint, as far as this process knows */
};

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

tare_status train_save(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    if (r->state == RUN_BROKEN)
        FAIL(e, TARE_E_STATE, "a step failed after the weights had moved, so there is nothing whole to save");
    if (t->saved == r->step) return TARE_OK;
    TRY(observe_sync(r->observe, e));
    TRY(run_save(r, e));
    t->saved = r->step;
    return TARE_OK;
}

/* A step that ended before its update left model and states as they were; what it had drawn and counted is put back. */
static void forget_step(struct run *r)
{
    r->cursor = r->begun;
    cluster_forget(&r->cluster);
    r->state = RUN_READY;
}

static tare_status save_interrupted(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    TRY(train_save(t, e));
    FAIL(e, TARE_E_CANCELLED, "interrupted after step %lld; continue with: tare train %s --resume", (long long)r->step,
         r->config->run.dir);
}

/* A verifier's error ends the run, on all ranks alike, but not what was trained before it: as after an interruption, that is saved. */
static tare_status save_before_failure(struct train *t, struct err *e)
{
    const struct run *r = &t->run;
    const struct err why = *e;
    struct err unsaved = {0};
    if (!r->step) return why.code; /* nothing was trained */
    if (train_save(t, &unsaved))
        return err_set(e, why.code, __FILE__, __LINE__, "%.1200s; and step %lld, the last whole one, cannot be saved: %.500s",
                       why.message, (long long)r->step, unsaved.message);
    return err_set(e, why.code, __FILE__, __LINE__, "%.1600s; step %lld, the last whole one, is saved: tare train %.200s --resume",
                   why.message, (long long)r->step, r->config->run.dir);
}

enum { SILENT_STEPS = 5 };

/* Said once: steps without any advantage teach nothing, and where there is an entropy bonus, it alone moves the weights. */
static void watch_signal(const struct run *r, struct summary *s, double signal)
{
    const struct config *c = r->config;
    s->silent = signal > 0 ? 0 : s->silent + 1;
    if (s->silent != SILENT_STEPS || s->warned || r->comm.rank) return;
    s->warned = true;
    log_warn(
        "%d steps without any signal: in every group all rewards are alike, so nothing is learnt. Look at %s/rollouts: can verifier.plugins = %s read the answers, are the questions too hard or too easy, is rollout.max_new_tokens = %lld enough?",
        SILENT_STEPS, c->run.dir, c->verifier.plugins, (long long)c->rollout.max_new_tokens);
    if (c->loss.entropy_coef > 0 && isfinite(r->learner.report.entropy)) /* else nothing was trained on */
        log_warn(
            "in such steps the entropy bonus alone moves the weights, towards random text (loss.entropy_coef = %g; the entropy is %.2f now); set loss.entropy_coef = 0 until there are rewards",
            c->loss.entropy_coef, r->learner.report.entropy);
}

/* Said once: what a verifier had no time for is not learnt from, and a run without any verdict would end as if it had trained. */
static void watch_timeouts(const struct run *r, struct summary *s)
{
    const struct batch *b = &r->batch;
    int64_t late = 0;
    for (int64_t i = 0; i < b->n_rollouts; i++) late += b->verdict[i] == TARE_TIMED_OUT;
    if (s->late || 2 * late <= b->n_rollouts || r->comm.rank) return;
    s->late = true;
    log_warn(
        "step %lld: %lld of %lld verdicts are timeouts, and those completions teach nothing. verifier.timeout = %g is what one completion may take, in seconds; a verifier may have a shorter limit of its own (verifier.python.timeout). Raise it, or look at what the verifier waits for",
        (long long)r->step, (long long)late, (long long)b->n_rollouts, r->config->verifier.timeout);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A spike: the gradient's norm is above SPIKE times the median of the last SPIKE_WINDOW steps. It is told; train.max_grad_norm bounds what it does. The
 * first steps, whose norms differ widely, are not judged. */
static void watch_spikes(const struct run *r, struct summary *s)
{
    const double norm = r->learner.report.grad_norm;
    double sorted[SPIKE_WINDOW];
    if (!isfinite(norm) || !(norm > 0)) return; /* skipped, or without any signal */
    memcpy(sorted, s->norms, sizeof sorted);
    qsort(sorted, SPIKE_WINDOW, sizeof *sorted, by_value);
    const double median = sorted[SPIKE_WINDOW / 2];
    if (s->n_norms >= SPIKE_WINDOW && norm > SPIKE * median && !r->comm.rank) {
        char times[32] = "more than 10000";
        if (norm <= 10000 * median) snprintf(times, sizeof times, "%.0f", norm / median);
        log_warn(
            "step %lld: a spike: the gradient's norm is %.3g, %s times the median of the %d steps before; look at its rewards in %s/rollouts, and lower train.lr or %s train.max_grad_norm if it comes again",
            (long long)r->step, norm, times, SPIKE_WINDOW, r->config->run.dir,
            r->config->train.max_grad_norm > 0 ? "lower" : "set");
    }
    s->norms[s->n_norms++ % SPIKE_WINDOW] = norm;
}

static void count_step(struct train *t, double seconds)
{
    struct summary *s = &t->summary;
    struct run *r = &t->run;
    const double signal = estimate_metrics(r->learner.estimator)->effective_signal_ratio;
    s->steps++;
    s->seconds += seconds;
    s->tokens += (double)r->batch.n_tokens;
    s->signal += signal;
    watch_spikes(r, s);
    watch_timeouts(r, s);
    watch_signal(r, s, signal);
}

static tare_status one_step(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    const struct config *c = r->config;
    const int64_t last = t->summary.last;
    const double began = clock_seconds();
    const tare_status status = step_run(r, e);
    const enum run_state ended = r->state;
    if (status && ended != RUN_UPDATING) forget_step(r);
    if (status && ended == RUN_VERIFY_FAILED) return save_before_failure(t, e);
    if (status == TARE_E_CANCELLED && ended != RUN_UPDATING) return save_interrupted(t, e);
    TRY(status);
    r->step++;
    r->state = RUN_RECORDED;
    count_step(t, clock_seconds() - began);
    if (due(c->checkpoint.every, r->step) || (r->step == last && (c->checkpoint.last || last < c->train.steps)))
        TRY(train_save(t, e));
    const tare_status stop = comm_agree(&r->comm, *signals_flag() ? TARE_E_CANCELLED : TARE_OK, e);
    return stop == TARE_E_CANCELLED ? save_interrupted(t, e) : stop;
}

tare_status train_step(struct train *t, bool *more, struct err *e)
{
    struct run *r = &t->run;
    *more = false;
    if (r->state == RUN_BROKEN)
        FAIL(e, TARE_E_STATE,
             "step %lld failed after the weights had moved; resume the run from its last checkpoint (tare train %s --resume)",
             (long long)r->step + 1, r->config->run.dir);
    if (r->step >= t->summary.last) return TARE_OK;
    const tare_status status = one_step(t, e);
    if (status && (r->state == RUN_UPDATING || (r->state == RUN_RECORDED && status != TARE_E_CANCELLED))) r->state = RUN_BROKEN;
    *more = !status && r->step < t->summary.last;
    return status;
}

/* before: what was recorded before the first step, by this process or by the one that is continued; NULL: no evaluation was. */
static void print_rewards(const json_t *before, const char *subject, int width, double after)
{
    char name[200] = "eval/reward", text[32] = "-";
    if (subject) snprintf(name, sizeof name, "eval/reward/%.*s", width, subject);
    const double was = json_double_or(before, name, NAN);
    if (!isnan(was)) snprintf(text, sizeof text, "%.3f", was);
    printf("  %-26.*s %10s %10.3f\n", subject ? width : 3, subject ? subject : "all", text, after);
}

/* The table at the end: what a newcomer looks at. */
static void print_summary(const struct run *r, const struct summary *s)
{
    OWNED(json_decrefp) json_t *before = NULL;
    struct err why = {0};
    if (run_before(r->config->run.dir, &before, &why)) log_warn("the rewards before the run cannot be shown: %s", why.message);
    printf("\n%-28s %10s %10s\n", "held-out mean reward", "before", "after");
    for (int64_t k = 0; k < r->evaluation.n_parts; k++) {
        const struct evaluation_part *part = &r->evaluation.parts[k];
        print_rewards(before, part->subject.data, (int)part->subject.size, part->reward);
    }
    print_rewards(before, NULL, 0, r->evaluation.reward);
    putchar('\n');
    printf("%-28s %s\n", "estimator", estimate_plugin(r->learner.estimator)->desc.name);
    printf("%-28s %10.2f\n", "effective-signal ratio", s->signal / (double)s->steps);
    printf("%-28s %10.0f\n", "sampled tokens/s", s->tokens / s->seconds);
    printf("%-28s %s\n\n", "run", r->config->run.dir);
}

static void warn_of_no_end(const struct run *r)
{
    const struct config *c = r->config;
    if (!r->engine.model->n_eos && !*c->rollout.stop_ids && !c->rollout.ignore_eos && !r->comm.rank)
        log_warn(
            "%s has no end-of-sequence id (eos_token_id in generation_config.json or config.json): every completion runs to rollout.max_new_tokens = %lld; name the ids that end one with rollout.stop_ids",
            c->model.path, (long long)c->rollout.max_new_tokens);
}

static tare_status evaluate_first(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    if (r->step || !r->config->eval.before || !r->engine.eval.n) return TARE_OK;
    TRY(evaluate_when_due(r, 0, e));
    return observe_step(r->observe, 0, NULL, e);
}

/* The records are closed whatever happens to them. */
static tare_status end_records(struct run *r, const char *how, struct err *e)
{
    struct observe *o = r->observe;
    r->observe = NULL;
    return observe_close(o, how, e);
}

tare_status train_end(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    const bool done = r->step >= r->config->train.steps;
    if (!done) TRY(train_save(t, e));
    return end_records(r, done ? "done" : "interrupted", e);
}

/* What is said at the end. */
static void tell(const struct train *t)
{
    const struct run *r = &t->run;
    const struct config *c = r->config;
    if (t->summary.last < c->train.steps)
        log_info("stopped after step %lld of %lld; continue with: tare train %s --resume", (long long)r->step,
                 (long long)c->train.steps, c->run.dir);
    else if (r->evaluated_step == r->step && t->summary.steps)
        print_summary(r, &t->summary);
    else
        log_info("done: %s", c->run.dir);
}

/* What rank 0 does alone before the run is opened. */
static tare_status prepare(const struct config *c, const struct train_start *start, struct err *e)
{
    TRY(run_lock_check(c->run.dir, start->resume, e));
    if (start->resume) TRY(resume_check(c, start->allow_change, e));
    return start->make ? start->make(c, e) : TARE_OK;
}

/* `tare train CONFIG run.dir=RUN --resume` of a run whose model was named on the command line. */
static tare_status check_model(const struct config *c, const struct train_start *start, struct err *e)
{
    if (*c->model.path || !start->resume || !run_data_is_run(c->run.dir)) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "model.path is not set; the run has its own keys in %s/config.ini: tare train %s --resume", c->run.dir,
         c->run.dir);
}

static tare_status open_into(struct train *t, struct config *c, const struct train_start *start, struct err *e)
{
    struct comm comm;
    struct run *r = &t->run;
    TRY(comm_open(c->dist.ranks, &comm, e));
    r->comm = comm;
    tare_status status = check_model(c, start, e);
    if (!status) status = err_as_config(settle_ranks(c, &comm, e), e);
    if (!status) status = comm_agree(&comm, comm.rank ? TARE_OK : prepare(c, start, e), e);
    TRY(status);
    TRY(err_as_config(run_open(r, c, comm, start, e), e));
    t->summary.last = start->until ? start->until : c->train.steps;
    t->saved = r->step;
    warn_of_no_end(r);
    return evaluate_first(t, e);
}

/* A fork that was made for this process (lab/replay/train.c) and is refused is taken away again: all that it has is the other run's. */
static void remove_refused_fork(const struct train *t, const char *dir)
{
    const char *forked = getenv("TARE_FORKED");
    if (!forked || strcmp(forked, dir) || t->run.comm.rank || t->run.observe || fs_remove_tree(dir, NULL)) return;
    log_info("%s was not kept", dir);
}

tare_status train_open(struct config *c, const struct train_start *start, struct train **out, struct err *e)
{
    struct train *t;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *t, (void **)&t, e));
    const tare_status status = open_into(t, c, start, e);
    if (status) {
        if (status == TARE_E_CANCELLED && t->run.state != RUN_CLOSED) end_records(&t->run, "interrupted", NULL);
        if (status == TARE_E_CONFIG) remove_refused_fork(t, c->run.dir);
        train_close(t);
        return status;
    }
    *out = t;
    return TARE_OK;
}

void train_close(struct train *t)
{
    if (!t) return;
    if (t->run.state != RUN_CLOSED) run_close(&t->run);
    mem_free(t);
}

struct run *train_run_of(struct train *t)
{
    return &t->run;
}

tare_status train_run(struct config *c, const struct train_start *start, struct err *e)
{
    struct train *t;
    bool more = true;
    signals_catch();
    tare_status status = train_open(c, start, &t, e);
    TRY(status);
    while (!status && more) status = train_step(t, &more, e);
    if (status == TARE_E_CANCELLED)
        end_records(&t->run, "interrupted", NULL);
    else if (!status)
        status = end_records(&t->run, t->summary.last < c->train.steps ? "interrupted" : "done", e);
    if (!status) tell(t);
    train_close(t);
    return status;
}
