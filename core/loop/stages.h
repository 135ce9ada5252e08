/* The stages of step.c that are not one folder's own function. */
#ifndef TARE_CORE_LOOP_STAGES_H
#define TARE_CORE_LOOP_STAGES_H

#include "loop/run.h"

tare_status stage_data(struct run *r, int64_t n, struct err *e); /* the next n prompts */
tare_status stage_rollout(struct run *r, struct err *e);         /* completions of this rank's groups, and their texts */
tare_status stage_verify(struct run *r, struct err *e);          /* rewards of the same */
tare_status stage_gather(struct run *r, struct err *e);          /* all ranks' groups on every rank */
tare_status stage_reference(struct run *r, struct err *e);       /* logprobs of the frozen reference, where something wants them */
tare_status stage_state(struct run *r, struct err *e); /* the estimator's state before the step, for `tare estimate --replay` */
tare_status stage_apply(struct run *r, struct err *e); /* estimator, objective and curriculum learn from the step */

#endif
