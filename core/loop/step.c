/* One step:
 *
 *   data -> rollout -> verify -> cluster -> estimate -> update -> estimate (apply) -> observe
 *
 * The batch is filled from left to right; each stage reads what the ones before it wrote. Until the update nothing outside of the batch and
 * the cursor changes, so a step that is interrupted there can be forgotten. On several ranks each samples and verifies its own groups; from `gather` on
 * every rank has the whole batch and does the same, but for the update, which deals out micro-batches. */
#include "base/clock.h"
#include "base/fault.h"
#include "loop/run.h"
#include "loop/step_metrics.h"

/* Runs a stage, keeps its time, names it in its error. */
#define STAGE(NAME, CALL)                                                                                                          \
    do {                                                                                                                           \
        const double began_ = clock_seconds();                                                                                     \
        tare_status status_ = comm_stage(&r->comm, NAME, b->step, e);                                                              \
        if (!status_) status_ = (CALL);                                                                                            \
        figure_add(r, "time/" NAME, clock_seconds() - began_);                                                                     \
        if (status_) return err_prefix(e, "step %lld, %s", (long long)b->step, NAME);                                              \
    } while (0)

tare_status step_run(struct run *r, struct err *e)
{
    struct batch *b = &r->batch;
    const double began = clock_seconds();
    arena_reset(&r->arena);
    *b = (struct batch){.step = r->step + 1};
    r->n_figures = 0;

    STAGE("data", stage_data(r, r->config->rollout.prompts, e));      /* M prompts */
    STAGE("rollout", stage_rollout(r, e));                            /* N = M G completions, logprob [T] */
    STAGE("verify", stage_verify(r, e));                              /* reward [N] */
    STAGE("gather", stage_gather(r, e));                              /* the same on every rank from here on */
    STAGE("cluster", cluster_assign(&r->cluster, b, &r->arena, e));   /* k [M] */
    STAGE("reference", stage_reference(r, e));                        /* log pi_ref [T], when the loss wants it */
    STAGE("estimate", estimate_run(r->estimator, b, &r->arena, e));   /* A [N], from the state before this step */
    STAGE("refill", stage_refill(r, e));                              /* groups in the place of dropped ones */
    STAGE("update", update_run(r->engine.trainer, b, &r->report, e)); /* theta */
    STAGE("apply", stage_apply(r, e));                                /* the estimator's state */

    STAGE("evaluate", evaluate_when_due(r, b->step, e)); /* on held-out rows, now and then */

    TRY(cluster_metrics(r, e));
    step_metrics(r, clock_seconds() - began);
    TRY(figures_settle(r, e));
    TRY(observe_step(r->observe, b->step, b, e));
    return fault_point(r->comm.rank, "recorded", b->step, e);
}
