/* PRIME (Cui et al. 2025, arXiv 2502.01456). A process reward model is trained together with the
 * policy; the reward of a token is that model's log-ratio to the reference
 * (update/process_reward.c). Estimators read the rewards as those of one-token segments. They come
 * from the reward model before the step's update. */
#include "loop/hooks.h"

#include "base/log.h"
#include "batch/turns.h"
#include "loop/run.h"
#include "update/process_reward.h"

static tare_status compute_rewards(struct run *r, void *state, struct err *e)
{
    (void)state;
    struct batch *b = &r->batch;
    TRY(arena_new(&r->arena, &b->process_reward, b->n_tokens, e));
    TRY(arena_new(&r->arena, &b->process_ref, b->n_tokens, e));
    return process_reward_compute(r->engine.reward_trainer, b, r->config->process_reward.beta, b->process_reward, b->process_ref,
                                  e);
}

/* Fills segment and segment_reward [T]: one segment for each sampled token. */
static tare_status set_segments(struct run *r, void *state, struct err *e)
{
    (void)state;
    struct batch *b = &r->batch;
    TRY(arena_new(&r->arena, &b->segment, b->n_tokens, e));
    TRY(arena_new(&r->arena, &b->segment_reward, b->n_tokens, e));
    for (int64_t i = 0; i < b->n_rollouts; i++)
        for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
            if (batch_is_sampled(b, t)) b->segment[t] = (int32_t)(t - b->token_begin[i]) + 1;
    process_reward_normed(b, &r->config->process_reward, b->segment_reward);
    return TARE_OK;
}

static tare_status update_reward_model(struct run *r, void *state, struct err *e)
{
    (void)state;
    const struct batch *b = &r->batch;
    struct process_reward_report done;
    if (!b->n_groups) return TARE_OK;
    double accuracy;
    TRY(process_reward_accuracy(b, &r->arena, &accuracy, e));
    TRY(process_reward_update(r->engine.reward_trainer, b, &r->config->process_reward, &done, e));
    observe_set(r->observe, "process_reward/accuracy", accuracy);
    observe_set(r->observe, "process_reward/largest_return", process_reward_largest(b));
    observe_set(r->observe, "process_reward/optimizer_steps", (double)r->engine.reward_trainer->optimizer_steps);
    if (!done.optimizer_steps) return TARE_OK;
    observe_set(r->observe, "process_reward/loss", done.loss);
    observe_set(r->observe, "process_reward/grad_norm", done.grad_norm);
    observe_set(r->observe, "process_reward/lr", done.lr);
    return TARE_OK;
}

static tare_status load_steps(struct run *r, void *state, const struct state_reader *s, const char *folder, struct err *e)
{
    (void)state, (void)folder;
    const struct config *c = r->config;
    int64_t steps;
    const bool was = state_has(s, "process_steps"), is = r->engine.reward_model != NULL;
    if (was && is) return state_read_int(s, "process_steps", &r->engine.reward_trainer->optimizer_steps, e);
    if (was == is || r->comm.rank) return TARE_OK;
    if (is) {
        log_info("process_reward.implicit: the checkpoint was written without it; the process reward model starts as %s",
                 *c->process_reward.model ? c->process_reward.model : c->model.path);
        return TARE_OK;
    }
    TRY(state_read_int(s, "process_steps", &steps, e));
    log_warn(
        "process_reward.implicit = false: the process reward model (trained for %lld optimizer steps) and its moments are discarded; if process_reward.implicit is switched on again, training it starts over",
        (long long)steps);
    return TARE_OK;
}

static tare_status save_steps(const struct run *r, const void *state, struct state_writer *w, struct err *e)
{
    (void)state;
    return state_write_int(w, "process_steps", r->engine.reward_trainer->optimizer_steps, e);
}

static tare_status open_reward_model(struct run *r, void *state, struct err *e)
{
    (void)state;
    return engine_open_reward_model(&r->engine, e);
}

static bool is_on(const struct config *c)
{
    return c->process_reward.implicit;
}

const struct learner_hook prime_hook = {
    .name = "PRIME",
    .reads_reference = true,
    .is_on = is_on,
    .open = open_reward_model,
    .after_collect = HOOK_STAGE("process", compute_rewards),
    .before_estimate = set_segments,
    .after_update = HOOK_STAGE("process_update", update_reward_model),
    .save = save_steps,
    .load = load_steps,
};
