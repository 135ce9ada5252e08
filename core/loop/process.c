/* PRIME (Cui et al. 2025, arXiv 2502.01456): a process reward model is trained with the policy, and each token's reward is its log-ratio to the reference
 * (update/process_reward.c). Estimators see the rewards as those of segments of one token each; they are those of the model before the step's update. */
#include "loop/stages.h"

tare_status stage_process(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    TRY(arena_new(&r->arena, &b->process_reward, b->n_tokens, e));
    TRY(arena_new(&r->arena, &b->process_ref, b->n_tokens, e));
    return process_rewards(r->engine.process_trainer, b, r->config->process_reward.beta, b->process_reward, b->process_ref, e);
}

static tare_status tokens_as_segments(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    TRY(arena_new(&r->arena, &b->segment, b->n_tokens, e));
    TRY(arena_new(&r->arena, &b->segment_reward, b->n_tokens, e));
    for (int64_t i = 0; i < b->n_rollouts; i++)
        for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) b->segment[t] = (int32_t)(t - b->token_begin[i]) + 1;
    process_normed(b, &r->config->process_reward, b->segment_reward);
    return TARE_OK;
}

tare_status stage_estimate(struct run *r, struct err *e)
{
    if (r->config->process_reward.implicit) TRY(tokens_as_segments(r, e));
    return estimate_run(r->estimator, &r->batch, &r->arena, e);
}

tare_status stage_process_update(struct run *r, struct err *e)
{
    const struct batch *b = &r->batch;
    struct process_report done;
    if (!b->n_groups) return TARE_OK;
    double accuracy;
    TRY(process_accuracy(b, &r->arena, &accuracy, e));
    TRY(process_update(r->engine.process_trainer, b, &r->config->process_reward, &done, e));
    observe_set(r->observe, "process_reward/accuracy", accuracy);
    observe_set(r->observe, "process_reward/largest_return", process_largest(b));
    observe_set(r->observe, "process_reward/optimizer_steps", (double)r->engine.process_trainer->optimizer_steps);
    if (!done.optimizer_steps) return TARE_OK;
    observe_set(r->observe, "process_reward/loss", done.loss);
    observe_set(r->observe, "process_reward/grad_norm", done.grad_norm);
    observe_set(r->observe, "process_reward/lr", done.lr);
    return TARE_OK;
}

tare_status process_check(const struct run *r, struct err *e)
{
    const struct config *c = r->config;
    if (!c->process_reward.implicit) return TARE_OK;
    const char *where = config_where(c, "process_reward", "implicit");
    if (verify_gives_segments(r->engine.verify))
        FAIL(e, TARE_E_CONFIG,
             "%s: process_reward.implicit, and a verifier of verifier.plugins = %s gives rewards of segments too; use one of the "
             "two",
             where, c->verifier.plugins);
    if (!(estimate_needs(r->estimator) & TARE_NEED_SEGMENTS))
        FAIL(e, TARE_E_CONFIG,
             "%s: process_reward.implicit gives rewards to tokens, and the estimator %s reads none; set estimator.plugin = prime",
             where, c->estimator.plugin);
    return TARE_OK;
}
