/* Stages of step.c that belong to no other module. */
#ifndef TARE_CORE_LOOP_STAGES_H
#define TARE_CORE_LOOP_STAGES_H

#include "loop/run.h"

/* Fills the next n prompts of the batch, and the request for stage_rollout. */
tare_status stage_data(struct run *r, int64_t n, struct collect_request *request, struct err *e);
/* Samples the completions of this rank's groups, with their texts. */
tare_status stage_rollout(struct run *r, const struct collect_request *request, struct err *e);
tare_status stage_verify(struct run *r, struct err *e); /* Fills their rewards. */
/* Saves the estimator's state before the step, for `tare estimate --replay`. */
tare_status stage_state(struct run *r, struct err *e);
/* Adds the step to the states of estimator, objective and curriculum. */
tare_status stage_apply(struct run *r, struct err *e);

#endif
