#ifndef TARE_CORE_LOOP_ROLLBACK_H
#define TARE_CORE_LOOP_ROLLBACK_H

#include "loop/run.h"

/* Whether a step's error is one that train.on_nonfinite = rollback answers. */
bool run_overflowed(const struct run *r, tare_status status);
/* Back to the checkpoint of the last step that checkpoint.every divides: weights, optimizer, the states of estimator, objective and clusters. Step and
 * cursor stay, so the step is made again with the prompts that come next. *e: why, and then why not: all rollbacks are used up, or there is no
 * checkpoint. What it does is a function of the run alone, so a run that is killed in it and resumed ends with the same bits. */
tare_status run_roll_back(struct run *r, struct err *e);
/* The step of that checkpoint, which checkpoint.keep does not remove; -1: none is needed. */
int64_t rollback_step(const struct run *r);

#endif
