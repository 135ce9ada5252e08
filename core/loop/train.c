/* Runs all steps of a run, with evaluations, checkpoints and interruptions around step.c. */
#include "loop/train.h"

#include "base/clock.h"
#include "base/fs.h"
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
    /* Sums over the steps of this process. */
    double signal, advantage, tokens, seconds; /* shares of groups: with a scale, with an advantage */
    int64_t last;                              /* the step to stop after */
    /* silent: consecutive steps without any signal, up to the latest. */
    int64_t steps, silent;
    bool silent_warned, timeouts_warned; /* warnings that have been logged: no signal, timeouts */
    /* Ring buffer: gradient norms of the last steps of this process. */
    double norms[SPIKE_WINDOW];
    int64_t n_norms;
};

struct train {
    struct run run;
    struct summary summary;
    int64_t saved; /* step of the last checkpoint that this process knows of */
};

static bool is_due(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

tare_status train_save(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    if (r->state == RUN_BROKEN)
        FAIL(e, TARE_E_STATE, "a step failed after the weights had moved, so no complete step is left to save");
    if (t->saved == r->step) return TARE_OK;
    TRY(observe_sync(r->observe, e));
    TRY(run_save(r, e));
    t->saved = r->step;
    return TARE_OK;
}

/* A step that ended before its update left model and states unchanged; resets its draws and
 * counts. */
static void forget_step(struct run *r)
{
    r->cursor = r->cursor_begin;
    cluster_forget(&r->cluster);
    r->state = RUN_READY;
}

static tare_status save_interrupted(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    char word[STR_SHELL];
    TRY(train_save(t, e));
    FAIL(e, TARE_E_CANCELLED, "interrupted after step %lld; continue with: tare train %s --resume", (long long)r->step,
         str_shell(word, r->config->run.dir));
}

/* A verifier's error ends the run on all ranks. The steps trained before it are saved, as after an
 * interruption. */
static tare_status save_before_failure(struct train *t, struct err *e)
{
    const struct run *r = &t->run;
    const struct err why = *e;
    struct err unsaved = {0};
    char word[STR_SHELL];
    if (!r->step) return why.code; /* nothing was trained */
    if (train_save(t, &unsaved))
        return err_set(e, why.code, __FILE__, __LINE__, "%.1200s; and step %lld, the last complete one, cannot be saved: %.500s",
                       why.message, (long long)r->step, unsaved.message);
    return err_set(e, why.code, __FILE__, __LINE__,
                   "%.1600s; step %lld, the last complete one, is saved: tare train %.200s --resume", why.message,
                   (long long)r->step, str_shell(word, r->config->run.dir));
}

enum { SILENT_STEPS = 5 };

/* Warns once: without any advantage nothing is learnt, and an entropy bonus, if set, alone moves
 * the weights. */
static void watch_signal(const struct run *r, struct summary *s, double signal)
{
    const struct config *c = r->config;
    s->silent = signal > 0 ? 0 : s->silent + 1;
    if (s->silent != SILENT_STEPS || s->silent_warned || r->comm.rank) return;
    s->silent_warned = true;
    log_warn(
        "no training signal for %d steps: all rewards within each group are equal. Look at %s/rollouts: can verifier.plugins = %s read the answers, are the questions too hard or too easy, is rollout.max_new_tokens = %lld enough?",
        SILENT_STEPS, c->run.dir, c->verifier.plugins, (long long)c->rollout.max_new_tokens);
    /* otherwise nothing was trained on */
    if (c->loss.entropy_coef > 0 && isfinite(r->learner.report.entropy))
        log_warn(
            "without a signal the entropy bonus alone moves the weights, towards random text (loss.entropy_coef = %g, entropy %.2f); set loss.entropy_coef = 0 until there are rewards",
            c->loss.entropy_coef, r->learner.report.entropy);
}

/* Warns once: completions that time out teach nothing, and a run without any verdict would end as
 * if it had trained. */
static void watch_timeouts(const struct run *r, struct summary *s)
{
    const struct batch *b = &r->batch;
    int64_t late = 0;
    for (int64_t i = 0; i < b->n_rollouts; i++) late += b->verdict[i] == TARE_VERDICT_TIMED_OUT;
    if (s->timeouts_warned || 2 * late <= b->n_rollouts || r->comm.rank) return;
    s->timeouts_warned = true;
    log_warn(
        "step %lld: %lld of %lld verdicts are timeouts, and those completions teach nothing. verifier.timeout = %g limits the seconds for one completion; a verifier may have a shorter limit (verifier.python.timeout). Raise it, or check what the verifier waits for",
        (long long)r->step, (long long)late, (long long)b->n_rollouts, r->config->verifier.timeout);
}

static int compare_norms(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Warns of a spike: a gradient norm above SPIKE times the median of the last SPIKE_WINDOW steps.
 * train.max_grad_norm limits its effect. The first steps, whose norms vary widely, are not
 * checked. */
static void watch_spikes(const struct run *r, struct summary *s)
{
    const double norm = r->learner.report.grad_norm;
    double sorted[SPIKE_WINDOW];
    if (!isfinite(norm) || !(norm > 0)) return; /* skipped, or no signal */
    memcpy(sorted, s->norms, sizeof sorted);
    qsort(sorted, SPIKE_WINDOW, sizeof *sorted, compare_norms);
    const double median = sorted[SPIKE_WINDOW / 2];
    if (s->n_norms >= SPIKE_WINDOW && norm > SPIKE * median && !r->comm.rank) {
        char times[32] = "more than 10000";
        if (norm <= 10000 * median) snprintf(times, sizeof times, "%.0f", norm / median);
        log_warn(
            "step %lld: the gradient norm spiked to %.3g, %s times the median of the %d steps before; look at its rewards in %s/rollouts, and lower train.lr or %s train.max_grad_norm if it happens again",
            (long long)r->step, norm, times, SPIKE_WINDOW, r->config->run.dir,
            r->config->train.max_grad_norm > 0 ? "lower" : "set");
    }
    s->norms[s->n_norms++ % SPIKE_WINDOW] = norm;
}

static void count_step(struct train *t, double seconds)
{
    struct summary *s = &t->summary;
    struct run *r = &t->run;
    const struct estimate_metrics *m = estimate_metrics(r->learner.estimator);
    const double signal = m->effective_signal_ratio;
    s->steps++;
    s->seconds += seconds;
    s->tokens += (double)r->batch.n_tokens;
    s->signal += signal;
    s->advantage += m->nonzero_advantage_ratio;
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
    if (status && ended == RUN_PLUGIN_FAILED) return save_before_failure(t, e);
    if (status == TARE_E_CANCELLED && ended != RUN_UPDATING) return save_interrupted(t, e);
    TRY(status);
    r->step++;
    r->state = RUN_RECORDED;
    count_step(t, clock_seconds() - began);
    if (is_due(c->checkpoint.every, r->step) || (r->step == last && (c->checkpoint.last || last < c->train.steps)))
        TRY(train_save(t, e));
    const tare_status stop = comm_agree(&r->comm, *signals_flag() ? TARE_E_CANCELLED : TARE_OK, e);
    return stop == TARE_E_CANCELLED ? save_interrupted(t, e) : stop;
}

tare_status train_step(struct train *t, bool *more, struct err *e)
{
    struct run *r = &t->run;
    char word[STR_SHELL];
    *more = false;
    if (r->state == RUN_BROKEN)
        FAIL(e, TARE_E_STATE,
             "step %lld failed after the weights had moved; resume the run from its last checkpoint (tare train %s --resume)",
             (long long)r->step + 1, str_shell(word, r->config->run.dir));
    if (r->step >= t->summary.last) return TARE_OK;
    const tare_status status = one_step(t, e);
    if (status && (r->state == RUN_UPDATING || (r->state == RUN_RECORDED && status != TARE_E_CANCELLED))) r->state = RUN_BROKEN;
    *more = !status && r->step < t->summary.last;
    return status;
}

/* before: recorded before the first step, by this process or the one that it continues; NULL if no
 * evaluation was. */
static void print_rewards(const json_t *before, const char *subject, int width, double after)
{
    char name[200] = "eval/reward", text[32] = "-";
    if (subject) snprintf(name, sizeof name, "eval/reward/%.*s", width, subject);
    const double was = json_double_or(before, name, NAN);
    if (!isnan(was)) snprintf(text, sizeof text, "%.3f", was);
    printf("  %-26.*s %10s %10.3f\n", subject ? width : 3, subject ? subject : "all", text, after);
}

/* Prints the table of rewards before and after the run. */
static void print_summary(const struct run *r, const struct summary *s)
{
    OWNED(json_decrefp) json_t *before = NULL;
    struct err why = {0};
    if (run_before(r->config->run.dir, &before, &why)) log_warn("cannot show the rewards before the run: %s", why.message);
    printf("\n%-28s %10s %10s\n", "held-out mean reward", "before", "after");
    for (int64_t k = 0; k < r->evaluation.n_parts; k++) {
        const struct evaluation_part *part = &r->evaluation.parts[k];
        print_rewards(before, part->subject.data, (int)part->subject.size, part->reward);
    }
    print_rewards(before, NULL, 0, r->evaluation.reward);
    putchar('\n');
    printf("%-28s %s\n", "estimator", estimate_plugin(r->learner.estimator)->desc.name);
    printf("%-28s %10.2f\n", "effective-signal ratio", s->signal / (double)s->steps);
    printf("%-28s %10.2f\n", "groups with an advantage", s->advantage / (double)s->steps);
    printf("%-28s %10.0f\n", "sampled tokens/s", s->tokens / s->seconds);
    printf("%-28s %s\n\n", "run", r->config->run.dir);
}

static void warn_of_no_end(const struct run *r)
{
    const struct config *c = r->config;
    if (!r->engine.model->n_eos && !*c->rollout.stop_ids && !c->rollout.ignore_eos && !r->comm.rank)
        log_warn(
            "%s has no end-of-sequence id (eos_token_id in generation_config.json or config.json): every completion runs to rollout.max_new_tokens = %lld; set the ids that end a completion with rollout.stop_ids",
            c->model.path, (long long)c->rollout.max_new_tokens);
}

static tare_status evaluate_first(struct train *t, struct err *e)
{
    struct run *r = &t->run;
    if (r->step || !r->config->eval.before || !r->engine.eval.n) return TARE_OK;
    TRY(evaluate_when_due(r, 0, e));
    return observe_step(r->observe, 0, NULL, e);
}

/* Closes the records, also on failure. */
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

/* Logs the result of the run. */
static void log_result(const struct train *t)
{
    const struct run *r = &t->run;
    const struct config *c = r->config;
    char word[STR_SHELL];
    if (t->summary.last < c->train.steps)
        log_info("stopped after step %lld of %lld; continue with: tare train %s --resume", (long long)r->step,
                 (long long)c->train.steps, str_shell(word, c->run.dir));
    else if (r->evaluated_step == r->step && t->summary.steps)
        print_summary(r, &t->summary);
    else
        log_info("done: %s", c->run.dir);
}

/* Checks and preparations of rank 0 before the run is opened. */
static tare_status prepare_folder(const struct config *c, const struct train_start *start, struct err *e)
{
    char model[FS_PATH];
    TRY(run_lock_check(c->run.dir, start->resume, e));
    if (!start->resume) TRY(run_lock_check_place(c->run.dir, e));
    TRY(fs_join(model, c->run.dir, "config.json", e));
    if (!start->resume && fs_exists(model))
        FAIL(
            e, TARE_E_CONFIG,
            "%s: run.dir = %s is the folder of a model (it has config.json), whose files the run's would lie among; name another folder",
            config_where(c, "run", "dir"), c->run.dir);
    if (start->resume) TRY(resume_check(c, start->allow_change, e));
    return start->make ? start->make(c, e) : TARE_OK;
}

/* Explains `tare train CONFIG run.dir=RUN --resume` for a run whose model was named on the command
 * line. */
static tare_status check_model(const struct config *c, const struct train_start *start, struct err *e)
{
    char word[STR_SHELL];
    if (*c->model.path || !start->resume || !run_data_is_run(c->run.dir)) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "model.path is not set; the run has its own keys in %s/config.ini: tare train %s --resume", c->run.dir,
         str_shell(word, c->run.dir));
}

static tare_status open_train(struct train *t, struct config *c, const struct train_start *start, struct err *e)
{
    struct comm comm;
    struct run *r = &t->run;
    TRY(comm_open(c->dist.ranks, &comm, e));
    r->comm = comm;
    tare_status status = check_model(c, start, e);
    if (!status && start->resume) status = config_resume_paths(c, c->run.dir, e);
    if (!status) status = err_as_config(settle_ranks(c, &comm, e), e);
    if (!status) status = comm_agree(&comm, comm.rank ? TARE_OK : prepare_folder(c, start, e), e);
    TRY(status);
    TRY(err_as_config(run_open(r, c, comm, start, e), e));
    t->summary.last = start->until ? start->until : c->train.steps;
    t->saved = r->step;
    warn_of_no_end(r);
    if (!comm.rank && !start->resume) {
        dataset_warn_few(c, r->engine.train.n);
        if (r->engine.eval.n) TRY(dataset_warn_shared(c, &r->engine.train, &r->engine.eval, e));
    }
    return evaluate_first(t, e);
}

/* Removes a fork that was made for this process (lab/replay/train.c) and refused: it holds only the
 * other run's data. */
static void remove_refused_fork(const struct train *t, const char *dir)
{
    const char *forked = getenv("TARE_FORKED");
    if (!forked || strcmp(forked, dir) || t->run.comm.rank || t->run.observe || fs_remove_tree(dir, NULL)) return;
    log_info("%s was removed", dir);
}

tare_status train_open(struct config *c, const struct train_start *start, struct train **out, struct err *e)
{
    struct train *t;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *t, (void **)&t, e));
    const tare_status status = open_train(t, c, start, e);
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
    if (!status) log_result(t);
    train_close(t);
    return status;
}
