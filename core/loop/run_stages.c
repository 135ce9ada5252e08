/* The stages of step.c that are not one folder's own function. */
#include "base/fs.h"
#include "base/signals.h"
#include "loop/run.h"

#include <math.h>
#include <string.h>

tare_status stage_data(struct run *r, int64_t n, struct err *e)
{
    int64_t *rows, *occurrence;
    TRY(arena_new(&r->arena, int64_t, n, &rows, e));
    TRY(arena_new(&r->arena, int64_t, n, &occurrence, e));
    TRY(order_next(&r->engine.order, &r->cursor, n, rows, occurrence, e));
    return stage_prompts(r->engine.prompts, &r->engine.train, rows, occurrence, n, &r->prompt_ids, &r->batch, &r->arena, e);
}

static tare_status sample_own(struct run *r, struct err *e)
{
    const struct rollout_config *c = &r->config->rollout;
    const struct rng_key key = rng_derive(rng_key((uint64_t)r->config->run.seed, RNG_TRAIN), (uint64_t)r->batch.step);
    if (!r->share.own.n_groups) return TARE_OK; /* more ranks than prompts */
    TRY(rollout_run(r->engine.sampler, c, &r->engine.sampling, key, &r->share.own, signals_flag(), &r->arena, e));
    TRY(stage_off_policy(r, e));
    return stage_texts(r->engine.tokenizer, r->engine.model, &r->share.own, &r->arena, e);
}

tare_status stage_rollout(struct run *r, struct err *e)
{
    const struct rollout_config *c = &r->config->rollout;
    TRY(share_deal(&r->batch, c->group_size * c->max_new_tokens, &r->comm, &r->arena, &r->share, e));
    return comm_agree(&r->comm, sample_own(r, e), e); /* an interruption reaches the ranks at different times */
}

tare_status stage_verify(struct run *r, struct err *e)
{
    return r->share.own.n_groups ? verify_run(r->engine.verify, &r->share.own, &r->arena, e) : TARE_OK;
}

tare_status stage_gather(struct run *r, struct err *e)
{
    return share_join(&r->share, &r->comm, &r->arena, &r->batch, e);
}

/* Logprobs of the frozen reference, where the KL estimate is built from single tokens (k1, k2, k3) or the estimator wants them. */
tare_status stage_reference(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    const bool estimated = r->config->loss.kl_coef > 0 && strcmp(r->config->loss.kl, "exact");
    if (!estimated && !(estimate_needs(r->estimator) & TARE_NEED_REF_LOGPROB)) return TARE_OK;
    TRY(arena_new(&r->arena, float, b->n_tokens, &b->ref_logprob, e));
    return update_logprobs(r->engine.trainer, r->engine.reference, b, b->ref_logprob, NULL, e);
}

/* The state this step's advantages came from, so that `tare estimate --replay` computes them again. */
tare_status stage_apply(struct run *r, struct err *e)
{
    if (r->config->log.rollouts && r->observe) {
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
    TRY(logprob_service_fill(&r->logprob, r->engine.trainer, r->engine.model, &r->batch, &r->arena, e));
    const tare_status status = estimate_apply(r->estimator, r->batch.step, e);
    logprob_service_clear(&r->logprob);
    return status;
}

void figure_add(struct run *r, const char *name, double value)
{
    const int64_t most = (int64_t)(sizeof r->figures / sizeof *r->figures);
    if (r->n_figures < most) r->figures[r->n_figures++] = (struct rank_figure){name, value};
}

tare_status figures_settle(struct run *r, struct err *e)
{
    const int64_t n = r->n_figures;
    double mine[32], *all;
    int64_t *sizes;
    TRY(arena_new(&r->arena, double, n * r->comm.size, &all, e));
    TRY(arena_new(&r->arena, int64_t, r->comm.size, &sizes, e));
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
