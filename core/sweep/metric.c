/* Checks names of metrics, so that a misspelt one is found before the first run and not in the
 * table at the end. */
#include "sweep/sweep.h"

#include "base/log.h"

#include <string.h>

/* Metrics that every run records (e2e/sweep compares the list with a run's metrics.jsonl). */
static const char *const NAMES[] = {"reward/mean",
                                    "reward/std",
                                    "reward/all_correct_groups",
                                    "reward/all_wrong_groups",
                                    "eval/reward",
                                    "eval/response_length",
                                    "estimator/effective_signal_ratio",
                                    "estimator/nonzero_advantage_ratio",
                                    "estimator/confidence_mean",
                                    "estimator/advantage_max",
                                    "policy/loss",
                                    "policy/entropy",
                                    "policy/clip_fraction",
                                    "policy/approx_kl",
                                    "policy/ratio_max",
                                    "policy/sampler_mismatch",
                                    "policy/reference_kl",
                                    "update/skipped_ratio",
                                    "response_length/mean",
                                    "response_length/max",
                                    "response_length/clip_ratio",
                                    "prompt_length/mean",
                                    "rollout/groups_sampled",
                                    "rollout/turns",
                                    "rollout/calls",
                                    "rollout/unparsed_calls",
                                    "speculation/drafted",
                                    "speculation/accepted",
                                    "verifier/correct",
                                    "verifier/wrong",
                                    "verifier/no_answer",
                                    "verifier/unparsable",
                                    "verifier/timeout",
                                    "verifier/crashed",
                                    "verifier/partial",
                                    "grad_norm",
                                    "lr",
                                    "optimizer_steps",
                                    "skipped_updates",
                                    "rollbacks",
                                    "epoch",
                                    "tokens_per_second",
                                    "memory/parameters",
                                    "memory/gradients",
                                    "memory/moments",
                                    "memory/sampler",
                                    "memory/windows",
                                    "process_reward/accuracy",
                                    "process_reward/largest_return",
                                    "process_reward/optimizer_steps",
                                    "process_reward/loss",
                                    "process_reward/grad_norm",
                                    "process_reward/lr",
                                    "relift/loss",
                                    "relift/entropy",
                                    "relift/grad_norm",
                                    "relift/lr",
                                    "relift/hard_questions",
                                    "relift/waiting",
                                    "relift/optimizer_steps",
                                    "time/step",
                                    "time/unix",
                                    "time/data",
                                    "time/rollout",
                                    "time/off_policy",
                                    "time/verify",
                                    "time/gather",
                                    "time/hard",
                                    "time/keep",
                                    "time/cluster",
                                    "time/reference",
                                    "time/process",
                                    "time/estimate",
                                    "time/update",
                                    "time/process_update",
                                    "time/relift",
                                    "time/rollback",
                                    "time/state",
                                    "time/apply",
                                    "time/evaluate",
                                    "time/refill"};

/* Prefixes of metrics with open names: reports of plugins, subjects of rows, clusters. */
static const char *const OPEN[] = {"estimator/", "objective/", "curriculum/",  "verifier/",
                                   "encoder/",   "codebook/",  "eval/reward/", "cluster/"};

/* Recognises reward/NAME, the reward of one of several verifiers (a second one of a name is NAME_2
 * and so on) or of the penalty for length. */
static bool is_component(const struct sweep *s, const char *name)
{
    if (strncmp(name, "reward/", 7)) return false;
    if (!strcmp(name + 7, "overlong")) return true;
    for (const char *at = s->verifiers.data; at && *at;) {
        at += strspn(at, " ,\t");
        const size_t size = strcspn(at, " ,:\t");
        if (size && !strncmp(at, name + 7, size)) return true;
        at += strcspn(at, " ,\t");
    }
    return false;
}

/* Copies the metric without its suffix after the colon. */
static void base_name(const char *metric, char name[300])
{
    const char *colon = strrchr(metric, ':');
    snprintf(name, 300, "%.*s", colon ? (int)(colon - metric) : 299, metric);
}

/* Lists the recorded metrics with the same prefix ("estimator/"), the nearest first. */
static void list_recorded(const struct run_data *d, const char *name, char *list, size_t capacity)
{
    const size_t kind = strcspn(name, "/") + 1;
    const char *best = NULL;
    size_t at = 0;
    for (int64_t i = 0; i < d->n_series; i++)
        if (!best || str_distance(name, d->series[i].name) < str_distance(name, best)) best = d->series[i].name;
    list[0] = 0;
    if (best && str_distance(name, best) <= 1 + (int64_t)strlen(name) / 3)
        at += (size_t)snprintf(list, capacity, "did you mean %s? ", best);
    size_t begun = at;
    for (int64_t i = 0; i < d->n_series && at < capacity; i++)
        if (!strncmp(d->series[i].name, name, kind))
            at += (size_t)snprintf(list + at, capacity - at, "%s%s", at > begun ? ", " : "it records ", d->series[i].name);
    if (at == begun) snprintf(list + at, capacity - at, "it records nothing under %.*s", (int)kind, name);
}

void sweep_look_metric(struct sweep *s, const struct sweep_job *job)
{
    OWNED(arena_free) struct arena a = {0};
    struct run_data d;
    struct err e;
    char name[300], list[1200];
    if (s->metric_met) return;
    base_name(s->plan.metric, name);
    s->metric_met = !strncmp(name, "eval/", 5);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !s->metric_met; i++) s->metric_met = !strcmp(NAMES[i], name);
    arena_init(&a, "metrics");
    /* nothing is recorded yet */
    if (s->metric_met || run_data_read(job->dir, &a, &d, &e) || d.last_step < 1) return;
    s->metric_met = true;
    if (run_data_find(&d, name)) return;
    list_recorded(&d, name, list, sizeof list);
    log_warn(
        "sweep.metric = %s: %s has made %lld step%s without recording it; %s. The runs continue; --metric makes a table of another metric",
        s->plan.metric, job->dir, (long long)d.last_step, d.last_step == 1 ? "" : "s", list);
}

tare_status sweep_check_metric(const struct sweep *s, const char *what, const char *metric, struct err *e)
{
    char name[300];
    double none;
    const struct run_data empty = {0};
    const char *best = NULL;
    if (run_data_value(&empty, metric, &none, e)) return err_as_config(err_prefix(e, "%s", what), e);
    base_name(metric, name);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (!strcmp(NAMES[i], name)) return TARE_OK;
        if (!best || str_distance(name, NAMES[i]) < str_distance(name, best)) best = NAMES[i];
    }
    for (size_t i = 0; i < sizeof OPEN / sizeof *OPEN; i++)
        if (!strncmp(name, OPEN[i], strlen(OPEN[i])) && name[strlen(OPEN[i])]) return TARE_OK;
    if (is_component(s, name)) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "%s = %s: no run of this sweep records it; did you mean %s? docs/reference.md lists the metrics", what,
         metric, best);
}
