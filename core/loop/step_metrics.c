#include "loop/step_metrics.h"

#include "batch/turns.h"
#include "batch/verdict.h"
#include "engine/device_memory.h"
#include "update/update.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Computes mean and sample standard deviation of x [n] in double, shifted by the first value. */
static void mean_std(const double *x, int64_t n, double *mean, double *std)
{
    double s1 = 0, s2 = 0;
    for (int64_t i = 0; i < n; i++) s1 += x[i] - x[0];
    const double shift = s1 / (double)n;
    for (int64_t i = 0; i < n; i++) s2 += (x[i] - x[0] - shift) * (x[i] - x[0] - shift);
    *mean = x[0] + shift;
    *std = n > 1 ? sqrt(s2 / (double)(n - 1)) : 0;
}

static void reward_metrics(struct run *r)
{
    const struct batch *b = &r->batch;
    double mean, std;
    mean_std(b->reward, b->n_rollouts, &mean, &std);
    observe_set(r->observe, "reward/mean", mean);
    observe_set(r->observe, "reward/std", std);
    if (b->n_components > 1)
        for (int64_t c = 0; c < b->n_components; c++) {
            char name[128];
            double sum = 0;
            for (int64_t i = 0; i < b->n_rollouts; i++) sum += b->component[i * b->n_components + c];
            snprintf(name, sizeof name, "reward/%s", verify_component_name(r->engine.verify, c));
            observe_set(r->observe, name, sum / (double)b->n_rollouts);
        }
    int64_t counts[TARE_VERDICT_PARTIAL + 1];
    verify_count(b->verdict, b->n_rollouts, counts);
    for (int32_t code = TARE_VERDICT_CORRECT; code <= TARE_VERDICT_PARTIAL; code++) {
        char name[64];
        snprintf(name, sizeof name, "verifier/%s", verdict_name(code));
        observe_set(r->observe, name, (double)counts[code] / (double)b->n_rollouts);
    }
    double right = 0, wrong = 0;
    for (int64_t m = 0; m < b->n_groups; m++) {
        int64_t correct = 0, n = b->group_begin[m + 1] - b->group_begin[m];
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) correct += b->verdict[i] == TARE_VERDICT_CORRECT;
        right += correct == n;
        wrong += correct == 0;
    }
    observe_set(r->observe, "reward/all_correct_groups", right / (double)b->n_groups);
    observe_set(r->observe, "reward/all_wrong_groups", wrong / (double)b->n_groups);
}

static void turn_metrics(struct run *r)
{
    const struct batch *b = &r->batch;
    const double n = (double)b->n_rollouts;
    double calls = 0, unparsed = 0;
    observe_set(r->observe, "rollout/turns", (double)b->n_turns / n);
    if (!b->turn_calls) return;
    for (int64_t u = 0; u < b->n_turns; u++) {
        calls += b->turn_calls[u];
        unparsed += b->turn_unparsed[u];
    }
    observe_set(r->observe, "rollout/calls", calls / n);
    observe_set(r->observe, "rollout/unparsed_calls", unparsed / n);
}

static void length_metrics(struct run *r)
{
    const struct batch *b = &r->batch;
    double sum = 0, most = 0, cut = 0;
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const double n = (double)batch_length(b, i);
        sum += n;
        most = n > most ? n : most;
        cut += b->finish[i] == FINISH_LENGTH;
    }
    observe_set(r->observe, "response_length/mean", sum / (double)b->n_rollouts);
    observe_set(r->observe, "response_length/max", most);
    observe_set(r->observe, "response_length/clip_ratio", cut / (double)b->n_rollouts);
    if (b->turn_begin) turn_metrics(r);
    observe_set(r->observe, "prompt_length/mean", (double)b->prompt_begin[b->n_groups] / (double)b->n_groups);
}

static void policy_metrics(struct run *r)
{
    const struct update_report *u = &r->learner.report;
    observe_set(r->observe, "policy/loss", u->loss);
    observe_set(r->observe, "policy/entropy", u->entropy);
    observe_set(r->observe, "policy/clip_fraction", u->clip_fraction);
    observe_set(r->observe, "policy/approx_kl", u->approx_kl);
    observe_set(r->observe, "policy/ratio_max", u->ratio_max);
    observe_set(r->observe, "policy/sampler_mismatch", u->mismatch);
    observe_set(r->observe, "update/skipped_ratio", u->skipped_ratio);
    if (r->engine.reference) observe_set(r->observe, "policy/reference_kl", u->reference_kl);
    observe_set(r->observe, "grad_norm", u->grad_norm);
    observe_set(r->observe, "lr", u->lr);
    observe_set(r->observe, "optimizer_steps", (double)r->engine.trainer->optimizer_steps);
    if (u->skipped) observe_set(r->observe, "skipped_updates", (double)u->skipped);
    if (r->rollbacks) observe_set(r->observe, "rollbacks", (double)r->rollbacks);
}

/* Adds the bytes of the backend's memory by class. Parameters, gradients and moments of a rank
 * shrink with the number of ranks. */
static tare_status memory_of(struct run *r, const struct trainer *t, struct err *e)
{
    const struct model_memory *m = &t->m->memory;
    TRY(figure_add(r, "memory/parameters", (double)m->parameters, e));
    TRY(figure_add(r, "memory/gradients", (double)t->grads.sum_bytes, e));
    TRY(figure_add(r, "memory/moments", (double)t->moment_bytes, e));
    TRY(figure_add(r, "memory/sampler", (double)m->sampler, e));
    return figure_add(r, "memory/windows", (double)(m->windows + t->grads.window_bytes), e);
}

tare_status figure_add(struct run *r, const char *name, double value, struct err *e)
{
    int64_t i = 0;
    while (i < r->n_figures && strcmp(r->figures[i].name, name)) i++;
    if (i == FIGURES) FAIL(e, TARE_E_STATE, "%s: a step has more than %d figures; raise FIGURES in core/loop/run.h", name, FIGURES);
    if (i == r->n_figures) r->figures[r->n_figures++] = (struct rank_figure){name, 0};
    r->figures[i].value += value;
    return TARE_OK;
}

static tare_status settle_figures(struct run *r, struct err *e)
{
    const int64_t n = r->n_figures;
    double mine[FIGURES], *all;
    int64_t *sizes;
    TRY(arena_new(&r->arena, &all, n * r->comm.size, e));
    TRY(arena_new(&r->arena, &sizes, r->comm.size, e));
    for (int64_t i = 0; i < n; i++) mine[i] = r->figures[i].value;
    for (int k = 0; k < r->comm.size; k++) sizes[k] = n * (int64_t)sizeof *mine;
    TRY(r->comm.gather(&r->comm, mine, sizes[0], all, sizes, e));
    for (int64_t i = 0; i < n; i++) {
        double most = all[i];
        for (int k = 1; k < r->comm.size; k++) most = fmax(most, all[k * n + i]);
        observe_set(r->observe, r->figures[i].name, most);
    }
    r->n_figures = 0;
    return TARE_OK;
}

tare_status step_record(struct run *r, double seconds, struct err *e)
{
    const struct batch *b = &r->batch;
    TRY(cluster_metrics(r, e));
    reward_metrics(r);
    length_metrics(r);
    policy_metrics(r);
    observe_set(r->observe, "epoch", (double)r->cursor / (double)r->engine.train.n);
    TRY(figure_add(r, "time/step", seconds, e));
    TRY(memory_of(r, r->engine.trainer, e));
    if (r->engine.reward_model) TRY(memory_of(r, r->engine.reward_trainer, e));
    device_memory_watch(r->engine.kernels);
    observe_set(r->observe, "tokens_per_second", (double)(b->n_tokens + b->prompt_begin[b->n_groups]) / seconds);
    TRY(settle_figures(r, e));
    TRY(plugin_metrics_settle(&r->plugin_metrics, &r->comm, r->observe, &r->arena, e));
    return observe_step(r->observe, b->step, b, e);
}
