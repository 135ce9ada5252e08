/* The stages of step.c that are not one folder's own function. */
#include "base/fs.h"
#include "loop/run.h"

#include <string.h>

tare_status stage_data(struct run *r, int64_t n, struct err *e)
{
    int64_t *rows, *occurrence;
    TRY(arena_new(&r->arena, int64_t, n, &rows, e));
    TRY(arena_new(&r->arena, int64_t, n, &occurrence, e));
    TRY(order_next(&r->order, &r->cursor, n, rows, occurrence, e));
    return stage_prompts(r->prompts, &r->train, rows, occurrence, n, &r->prompt_ids, &r->batch, &r->arena, e);
}

tare_status stage_rollout(struct run *r, struct err *e)
{
    const struct rollout_config *c = &r->config->rollout;
    const struct rng_key key = rng_derive(rng_key((uint64_t)r->config->run.seed, RNG_TRAIN), (uint64_t)r->batch.step);
    TRY(rollout_run(r->sampler, c, &r->params, key, &r->batch, signals_flag(), &r->arena, e));
    TRY(stage_off_policy(r, e));
    return stage_texts(r->tokenizer, r->model, &r->batch, &r->arena, e);
}

/* Logprobs of the frozen reference, where the KL estimate is built from single tokens (k1, k2, k3) or the estimator wants them. */
tare_status stage_reference(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    const bool estimated = r->config->loss.kl_coef > 0 && strcmp(r->config->loss.kl, "exact");
    if (!estimated && !(estimate_needs(r->estimator) & TARE_NEED_REF_LOGPROB)) return TARE_OK;
    TRY(arena_new(&r->arena, float, b->n_tokens, &b->ref_logprob, e));
    return update_logprobs(r->trainer, r->reference, b, b->ref_logprob, NULL, e);
}

/* The state this step's advantages came from, so that `tare estimate --replay` computes them again. */
tare_status stage_apply(struct run *r, struct err *e)
{
    if (r->config->log.rollouts) {
        char folder[FS_PATH], path[FS_PATH + 64];
        struct str state = {0};
        TRY(fs_join(folder, r->config->run.dir, "estimator", e));
        TRY(fs_mkdirs(folder, e));
        snprintf(path, sizeof path, "%s/step-%06lld.state", folder, (long long)r->batch.step);
        tare_status status = estimate_save(r->estimator, &state, e);
        if (!status) status = fs_write_atomic(path, state.data, state.size, e);
        str_free(&state);
        TRY(status);
    }
    TRY(logprob_service_fill(&r->logprob, r->trainer, r->model, &r->batch, &r->arena, e));
    const tare_status status = estimate_apply(r->estimator, r->batch.step, e);
    logprob_service_clear(&r->logprob);
    return status;
}
