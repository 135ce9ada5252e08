#include "loop/learner.h"

#include "loop/step.h"

#define LEARNER_HOOK_ADDRESS(NAME) &NAME,
static const struct learner_hook *const HOOKS[N_LEARNER_HOOKS] = {LEARNER_HOOKS(LEARNER_HOOK_ADDRESS)};

/* ---------------------------------------------------------------- opening */

tare_status learner_open(struct run *r, struct err *e)
{
    struct learner *l = &r->learner;
    for (int k = 0; k < N_LEARNER_HOOKS; k++) {
        if (HOOKS[k]->state_size) TRY(mem_new(HOOKS[k]->state_size, &l->state[k], e));
        if (HOOKS[k]->check && HOOKS[k]->is_on(r->config)) TRY(HOOKS[k]->check(r, l->state[k], e));
    }
    return TARE_OK;
}

tare_status learner_open_hooks(struct run *r, struct err *e)
{
    struct learner *l = &r->learner;
    l->trainer = r->engine.trainer;
    l->objective = r->engine.objective;
    for (int k = 0; k < N_LEARNER_HOOKS; k++)
        if (HOOKS[k]->open && HOOKS[k]->is_on(r->config)) TRY(HOOKS[k]->open(r, l->state[k], e));
    return TARE_OK;
}

bool learner_reads_reference(const struct run *r)
{
    for (int k = 0; k < N_LEARNER_HOOKS; k++)
        if (HOOKS[k]->reads_reference && HOOKS[k]->is_on(r->config)) return true;
    return r->config->loss.kl_coef > 0 || estimate_wants(r->learner.estimator, COLUMN_REF_LOGPROB) ||
           objective_wants(r->engine.objective, COLUMN_LOSS_REF_LOGPROB) || objective_wants(r->engine.objective, COLUMN_KL);
}

void learner_close(struct learner *l)
{
    estimate_free(l->estimator);
    mem_free(l->component_name);
    for (int k = 0; k < N_LEARNER_HOOKS; k++) {
        if (l->state[k] && HOOKS[k]->free) HOOKS[k]->free(l->state[k]);
        mem_free(l->state[k]);
    }
}

/* ---------------------------------------------------------------- a step */

void learner_begin(struct run *r)
{
    estimate_begin(r->learner.estimator);
    for (int k = 0; k < N_LEARNER_HOOKS; k++)
        if (HOOKS[k]->begin) HOOKS[k]->begin(r->learner.state[k]);
}

static const struct hook_stage *hook_stage_at(const struct learner_hook *h, enum hook_point point)
{
    switch (point) {
    case HOOK_AFTER_SAMPLE:
        return &h->after_sample;
    case HOOK_AFTER_JOIN:
        return &h->after_join;
    case HOOK_AFTER_COLLECT:
        return &h->after_collect;
    default:
        return &h->after_update;
    }
}

tare_status learner_run_hooks(struct run *r, enum hook_point point, struct err *e)
{
    for (int k = 0; k < N_LEARNER_HOOKS; k++) {
        const struct hook_stage *s = hook_stage_at(HOOKS[k], point);
        if (!s->call || !HOOKS[k]->is_on(r->config)) continue;
        const double began = clock_seconds();
        tare_status status = comm_stage(&r->comm, s->name, r->step + 1, e);
        if (!status) status = s->call(r, r->learner.state[k], e);
        TRY(stage_end(r, s->metric, began, status, e));
    }
    return TARE_OK;
}

/* For loss.kl = k1, k2 and k3 the KL estimate is built from the logprobs of single tokens; the
 * exact KL needs whole distributions and is computed in the update. */
tare_status learner_reference(struct run *r, struct err *e)
{
    const struct learner *l = &r->learner;
    struct batch *b = &r->batch;
    const bool estimated = r->config->loss.kl_coef > 0 && r->config->loss.kl != KL_EXACT;
    const bool wanted = estimate_wants(l->estimator, COLUMN_REF_LOGPROB) || objective_wants(l->objective, COLUMN_LOSS_REF_LOGPROB);
    if (!estimated && !wanted) return TARE_OK;
    TRY(arena_new(&r->arena, &b->ref_logprob, b->n_tokens, e));
    return update_logprobs(l->trainer, r->engine.reference, b, b->ref_logprob, NULL, e);
}

tare_status learner_estimate(struct run *r, struct err *e)
{
    for (int k = 0; k < N_LEARNER_HOOKS; k++)
        if (HOOKS[k]->before_estimate && HOOKS[k]->is_on(r->config)) TRY(HOOKS[k]->before_estimate(r, r->learner.state[k], e));
    return estimate_run(r->learner.estimator, &r->batch, &r->arena, e);
}

tare_status learner_update(struct run *r, struct err *e)
{
    return update_run(r->learner.trainer, &r->batch, &r->learner.report, e);
}

tare_status learner_apply(struct run *r, struct err *e)
{
    struct learner *l = &r->learner;
    struct batch *b = &r->batch;
    float *logprob = NULL;
    if (estimate_wants(l->estimator, COLUMN_UPDATED_LOGPROB)) {
        TRY(arena_new(&r->arena, &logprob, b->n_tokens + 1, e));
        TRY(update_logprobs(l->trainer, r->engine.model, b, logprob, NULL, e));
    }
    TRY(estimate_apply(l->estimator,
                       &(struct estimate_update){
                           .step = b->step, .updates = l->report.optimizer_steps, .skipped = l->report.skipped, .logprob = logprob},
                       e));
    return update_apply(l->trainer, r->batch.step, e);
}

/* ---------------------------------------------------------------- checkpoints */

tare_status learner_save_hooks(const struct run *r, struct state_writer *w, struct err *e)
{
    for (int k = 0; k < N_LEARNER_HOOKS; k++)
        if (HOOKS[k]->save && HOOKS[k]->is_on(r->config)) TRY(HOOKS[k]->save(r, r->learner.state[k], w, e));
    return TARE_OK;
}

tare_status learner_load_hooks(struct run *r, const struct state_reader *s, const char *folder, struct err *e)
{
    for (int k = 0; k < N_LEARNER_HOOKS; k++)
        if (HOOKS[k]->load) TRY(HOOKS[k]->load(r, r->learner.state[k], s, folder, e));
    return TARE_OK;
}
