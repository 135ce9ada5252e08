/* The stages of step.c that are not one folder's own function, and how a stage is run. */
#ifndef TARE_CORE_LOOP_STAGES_H
#define TARE_CORE_LOOP_STAGES_H

#include "base/clock.h"
#include "loop/run.h"
#include "loop/step_metrics.h"

/* In a function with a run r and an err e: runs a stage, adds its time to time/NAME, names it in its error. */
#define STAGE(NAME, CALL)                                                                                                          \
    do {                                                                                                                           \
        const double began_ = clock_seconds();                                                                                     \
        tare_status status_ = comm_stage(&r->comm, NAME, r->step + 1, e);                                                          \
        if (!status_) status_ = (CALL);                                                                                            \
        if (!status_) status_ = figure_add(r, "time/" NAME, clock_seconds() - began_, e);                                          \
        if (status_) return err_prefix(e, "step %lld, %s", (long long)r->step + 1, NAME);                                          \
    } while (0)

/* step.c: the next n prompts become the step's batch, sampled and scored. */
tare_status collect(struct run *r, int64_t n, struct err *e);
/* refill.c: after the estimate; collects and estimates again until no group is asked for. */
tare_status refill(struct run *r, struct err *e);

tare_status stage_data(struct run *r, int64_t n, struct err *e); /* the next n prompts */
tare_status stage_rollout(struct run *r, struct err *e);         /* completions of this rank's groups, and their texts */
tare_status stage_verify(struct run *r, struct err *e);          /* rewards of the same */
tare_status stage_gather(struct run *r, struct err *e);          /* all ranks' groups on every rank */
tare_status stage_reference(struct run *r, struct err *e);       /* logprobs of the frozen reference, where something wants them */
tare_status stage_state(struct run *r, struct err *e); /* the estimator's state before the step, for `tare estimate --replay` */
tare_status stage_apply(struct run *r, struct err *e); /* estimator, objective and curriculum learn from the step */

/* ahead.c: verifiers that wait get this rank's completions as they end, while the sampler goes on with the others. */
tare_status ahead_begin(struct run *r, struct err *e);

/* off_policy.c: traces of the rows into their groups, after the sampling; the check is made once the estimator is open. */
tare_status stage_off_policy(struct run *r, struct err *e);
tare_status off_policy_check(const struct run *r, struct err *e);

#endif
