#ifndef TARE_CORE_LOOP_ROLLBACK_H
#define TARE_CORE_LOOP_ROLLBACK_H

#include "loop/run.h"

/* True if status is an overflow that train.on_nonfinite = rollback handles. */
bool run_overflowed(const struct run *r, tare_status status);
/* Restores the checkpoint of the last step that checkpoint.every divides: weights, optimizer, the
 * states of estimator, objective and clusters. Step and cursor keep their values, so the step is
 * repeated with the prompts that come next. *e holds the reason of the rollback; on failure also
 * why it failed: all rollbacks are used up, or the checkpoint is missing. The result depends on the
 * run alone, so a run that is killed during a rollback and resumed ends bit-identical. */
tare_status run_roll_back(struct run *r, struct err *e);
/* Step of that checkpoint, which checkpoint.keep does not remove; -1 if none is needed. */
int64_t rollback_step(const struct run *r);

#endif
