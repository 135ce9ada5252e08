/* PRIME (Cui et al. 2025, arXiv 2502.01456): a process reward model is trained with the policy, and each token's reward is its log-ratio to the reference
 * (update/process_reward.c). Estimators see the rewards as those of segments of one token each; they are those of the model before the step's update. */
#include "loop/process_reward.h"

#include "base/log.h"
#include "update/process_reward.h"

tare_status stage_process_reward(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    TRY(arena_new(&r->arena, &b->process_reward, b->n_tokens, e));
    TRY(arena_new(&r->arena, &b->process_ref, b->n_tokens, e));
    return process_reward_compute(r->engine.reward_trainer, b, r->config->process_reward.beta, b->process_reward, b->process_ref,
                                  e);
}

/* The rewards of tokens as those of segments of one token each, as estimators read them. */
tare_status process_reward_segments(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    TRY(arena_new(&r->arena, &b->segment, b->n_tokens, e));
    TRY(arena_new(&r->arena, &b->segment_reward, b->n_tokens, e));
    for (int64_t i = 0; i < b->n_rollouts; i++)
        for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) b->segment[t] = (int32_t)(t - b->token_begin[i]) + 1;
    process_reward_normed(b, &r->config->process_reward, b->segment_reward);
    return TARE_OK;
}

tare_status stage_process_reward_update(struct run *r, struct err *e)
{
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

tare_status process_reward_read(struct run *r, const struct state_reader *s, struct err *e)
{
    const struct config *c = r->config;
    int64_t steps;
    const bool was = state_has(s, "process_steps"), is = r->engine.reward_model != NULL;
    if (was && is) return state_read_int(s, "process_steps", &r->engine.reward_trainer->optimizer_steps, e);
    if (was == is || r->comm.rank) return TARE_OK;
    if (is) {
        log_info("process_reward.implicit: the checkpoint was written without it; the process reward model begins as %s",
                 *c->process_reward.model ? c->process_reward.model : c->model.path);
        return TARE_OK;
    }
    TRY(state_read_int(s, "process_steps", &steps, e));
    log_warn(
        "process_reward.implicit = false: the process reward model (trained for %lld optimizer steps) and its moments are given up; with process_reward.implicit switched on again it begins anew",
        (long long)steps);
    return TARE_OK;
}

tare_status process_reward_check(const struct run *r, struct err *e)
{
    return engine_check_segments(r->config, verify_gives_segments(r->engine.verify),
                                 estimate_needs(r->estimator) & TARE_NEED_SEGMENTS, e);
}
