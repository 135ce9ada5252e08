/* The stages of step.c that are not one folder's own function. */
#ifndef TARE_CORE_LOOP_STAGES_H
#define TARE_CORE_LOOP_STAGES_H

#include "loop/run.h"

/* The next n prompts; fills request, which the stage after it reads. */
tare_status stage_data(struct run *r, int64_t n, struct collect_request *request, struct err *e);
/* Completions of this rank's groups, and their texts. */
tare_status stage_rollout(struct run *r, const struct collect_request *request, struct err *e);
tare_status stage_verify(struct run *r, struct err *e); /* rewards of the same */
tare_status stage_state(struct run *r, struct err *e);  /* the estimator's state before the step, for `tare estimate --replay` */
tare_status stage_apply(struct run *r, struct err *e);  /* estimator, objective and curriculum learn from the step */

#endif
