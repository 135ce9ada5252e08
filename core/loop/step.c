/* One step:
 *
 *   data -> rollout -> verify -> cluster -> estimate -> update -> estimate (apply) -> observe
 *
 * The batch is filled from left to right; each stage reads what the ones before it wrote. Until the update nothing outside of the batch and
 * the cursor changes, so a step that is interrupted there can be forgotten. */
#include "base/clock.h"
#include "loop/run.h"
#include "loop/step_metrics.h"

/* Runs a stage, keeps its time, names it in its error. */
#define STAGE(NAME, CALL)                                                                                                          \
    do {                                                                                                                           \
        const double began_ = clock_seconds();                                                                                     \
        const tare_status status_ = (CALL);                                                                                        \
        observe_set(r->observe, "time/" NAME, clock_seconds() - began_);                                                           \
        if (status_) return err_prefix(e, "step %lld, %s", (long long)b->step, NAME);                                              \
    } while (0)

tare_status step_run(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    const double began = clock_seconds();
    arena_reset(&r->arena);
    *b = (struct batch){.step = r->step + 1};

    STAGE("data", stage_data(r, r->config->rollout.prompts, e));    /* M prompts */
    STAGE("rollout", stage_rollout(r, e));                          /* N = M G completions, logprob [T] */
    STAGE("verify", verify_run(r->verify, b, &r->arena, e));        /* reward [N] */
    STAGE("cluster", cluster_assign(&r->cluster, b, &r->arena, e)); /* k [M] */
    STAGE("reference", stage_reference(r, e));                      /* log pi_ref [T], when the loss wants it */
    STAGE("estimate", estimate_run(r->estimator, b, &r->arena, e)); /* A [N], from the state before this step */
    STAGE("refill", stage_refill(r, e));                            /* groups in the place of dropped ones */
    STAGE("update", update_run(r->trainer, b, &r->report, e));      /* theta */
    STAGE("apply", stage_apply(r, e));                              /* the estimator's state */

    STAGE("evaluate", evaluate_when_due(r, b->step, e)); /* on held-out rows, now and then */

    TRY(cluster_metrics(r, e));
    step_metrics(r, clock_seconds() - began);
    return observe_step(r->observe, b->step, b, e);
}
