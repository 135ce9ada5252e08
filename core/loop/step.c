/* One step, take -> learn -> record:
 *
 *   take     data, rollout, verify, gather, keep, cluster, reference: rows become a finished batch
 *   learn    estimate, refill, update: the batch becomes an update (learner.c)
 *   record   state, apply, evaluate
 *
 * The batch is filled from left to right; each stage reads the columns that earlier stages filled.
 * Before the update nothing but the batch and the cursor changes, so a step that is interrupted
 * there can be forgotten (run_state.h). On several ranks each samples and verifies its own groups;
 * from `gather` on every rank has the whole batch and does the same, except in the update, which
 * deals out micro-batches.
 *
 * Letters: M prompts, N rollouts, T tokens. */
#include "loop/step.h"

#include "base/fault.h"
#include "loop/evaluate.h"
#include "loop/refill.h"
#include "loop/rollback.h"
#include "loop/stages.h"

#include <string.h>

tare_status stage_end(struct run *r, const char *metric, double began, tare_status status, struct err *e)
{
    if (!status) status = figure_add(r, metric, clock_seconds() - began, e);
    if (status) return err_prefix(e, "step %lld, %s", (long long)r->step + 1, metric + strlen("time/"));
    return TARE_OK;
}

tare_status step_collect(struct run *r, int64_t n, struct err *e)
{
    struct batch *b = &r->batch;
    struct collect_request request;
    *b = (struct batch){.step = r->step + 1};

    STAGE("data", stage_data(r, n, &request, e));    /* M prompts */
    STAGE("rollout", stage_rollout(r, &request, e)); /* N completions, logprob [T] */
    TRY(learner_run_hooks(r, HOOK_AFTER_SAMPLE, e));
    STAGE("verify", stage_verify(r, e));                  /* reward [N] */
    STAGE("gather", collector_join(&r->collector, b, e)); /* equal on every rank from here on */
    TRY(learner_run_hooks(r, HOOK_AFTER_JOIN, e));
    STAGE("keep", curriculum_keep(r->curriculum, b, e));            /* fate [N] */
    STAGE("cluster", cluster_assign(&r->cluster, b, &r->arena, e)); /* k [M] */
    STAGE("reference", learner_reference(r, e));                    /* log pi_ref [T] */
    return learner_run_hooks(r, HOOK_AFTER_COLLECT, e);
}

static tare_status take_batch(struct run *r, struct err *e)
{
    arena_reset(&r->arena);
    r->n_drawn = 0;
    r->cursor_begin = r->cursor;
    r->state = RUN_COLLECTING;
    TRY(curriculum_begin(r->curriculum, r->step + 1, &r->arena, e));
    learner_begin(r);
    cluster_begin(&r->cluster);
    return step_collect(r, r->config->rollout.prompts, e);
}

static tare_status learn_from_batch(struct run *r, struct err *e)
{
    STAGE("estimate", learner_estimate(r, e)); /* A [N], from the state before this step */
    TRY(refill(r, e));                         /* replaces dropped groups */
    r->state = RUN_UPDATING;
    STAGE("update", learner_update(r, e)); /* theta */
    return learner_run_hooks(r, HOOK_AFTER_UPDATE, e);
}

static tare_status take_and_learn(struct run *r, struct err *e)
{
    for (;;) {
        tare_status status = take_batch(r, e);
        if (!status) status = learn_from_batch(r, e);
        if (!run_overflowed(r, status)) return status;
        STAGE("rollback", run_roll_back(r, e)); /* repeats the step with the next prompts */
    }
}

static tare_status record_step(struct run *r, double began, struct err *e)
{
    STAGE("state", stage_state(r, e)); /* the state that A was computed from, for a replay */
    STAGE("apply", stage_apply(r, e)); /* the states of estimator, objective and curriculum */
    STAGE("evaluate", evaluate_when_due(r, r->batch.step, e));
    TRY(step_record(r, clock_seconds() - began, e));
    return fault_point(r->comm.rank, "recorded", r->batch.step, e);
}

tare_status step_run(struct run *r, struct err *e)
{
    const double began = clock_seconds();
    r->n_figures = 0;
    TRY(take_and_learn(r, e));
    return record_step(r, began, e);
}
