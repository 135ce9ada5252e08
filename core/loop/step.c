/* One step:
 *
 *   data -> rollout -> verify -> keep -> cluster -> estimate -> update (-> relift) -> apply -> observe
 *
 * The batch is filled from left to right; each stage reads what the ones before it wrote. Until the update nothing outside of the batch
 * and the cursor changes, so a step that is interrupted there can be forgotten. On several ranks each samples and verifies its own
 * groups; from `gather` on every rank has the whole batch and does the same, but for the update, which deals out micro-batches. */
#include "loop/step.h"

#include "base/fault.h"
#include "loop/estimate.h"
#include "loop/evaluate.h"
#include "loop/off_policy.h"
#include "loop/process_reward.h"
#include "loop/refill.h"
#include "loop/relift.h"
#include "loop/rollback.h"
#include "loop/stages.h"
#include "update/update.h"

tare_status collect(struct run *r, int64_t n, struct err *e)
{
    struct batch *b = &r->batch;
    struct collect_request request;
    *b = (struct batch){.step = r->step + 1};

    STAGE("data", stage_data(r, n, &request, e));                   /* M prompts */
    STAGE("rollout", stage_rollout(r, &request, e));                /* N = M G completions, logprob [T] */
    STAGE("off_policy", stage_off_policy(r, e));                    /* rows' own traces among them */
    STAGE("verify", stage_verify(r, e));                            /* reward [N] */
    STAGE("gather", collector_join(&r->collector, b, e));           /* the same on every rank from here on */
    if (r->config->relift.rows) STAGE("hard", stage_hard(r, e));    /* questions that no rollout solved */
    STAGE("keep", curriculum_keep(r->curriculum, b, e));            /* which of them are learnt from */
    STAGE("cluster", cluster_assign(&r->cluster, b, &r->arena, e)); /* k [M] */
    STAGE("reference", stage_reference(r, e));                      /* log pi_ref [T], when the loss wants it */
    if (r->config->process_reward.implicit) STAGE("process", stage_process_reward(r, e)); /* r [T] of the process reward model */
    return TARE_OK;
}

static tare_status learn(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    arena_reset(&r->arena);
    r->n_met = 0;
    r->begun = r->cursor;
    r->moved = r->judging_failed = false;

    TRY(curriculum_begin(r->curriculum, r->step + 1, &r->arena, e));
    estimate_begin(r->estimator);
    relift_begin(r);
    cluster_begin(&r->cluster);
    TRY(collect(r, r->config->rollout.prompts, e));
    STAGE("estimate", stage_estimate(r, e)); /* A [N], from the state before this step */
    TRY(refill(r, e));                       /* groups in place of dropped ones */
    r->moved = true;
    STAGE("update", update_run(r->engine.trainer, b, &r->report, e));                                   /* theta */
    if (r->config->process_reward.implicit) STAGE("process_update", stage_process_reward_update(r, e)); /* phi */
    if (r->config->relift.rows) STAGE("relift", stage_relift(r, e)); /* theta too, on demonstrations of those questions */
    return TARE_OK;
}

tare_status step_run(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    const double began = clock_seconds();
    r->n_figures = 0;

    for (tare_status status; (status = learn(r, e));) { /* again after a rollback */
        if (!run_overflowed(r, status)) return status;
        STAGE("rollback", run_roll_back(r, e));
    }
    STAGE("state", stage_state(r, e)); /* what A came from, kept for a replay */
    STAGE("apply", stage_apply(r, e)); /* the states of estimator, objective and curriculum */

    STAGE("evaluate", evaluate_when_due(r, b->step, e)); /* on held-out rows, now and then */
    TRY(step_record(r, clock_seconds() - began, e));
    return fault_point(r->comm.rank, "recorded", b->step, e);
}
