/* A training run from its configuration to its last step.
 *
 *   TRY(train_open(&config, &start, &t, e));
 *   for (bool more = true; more && !status;) status = train_step(t, &more, e);
 *   if (!status) status = train_end(t, e);
 *   train_close(t);
 *
 * train_open settles the configuration, creates a missing model and evaluates it; train_step makes
 * evaluations and checkpoints when they are due. No signal is caught here: call signals_catch to
 * make a run interruptible. start and c must outlive the run. Not thread-safe. */
#ifndef TARE_CORE_LOOP_TRAIN_H
#define TARE_CORE_LOOP_TRAIN_H

#include "loop/run.h"

struct train;

/* Opens a run. Settles c (settle/settle.h). */
tare_status train_open(struct config *c, const struct train_start *start, struct train **out, struct err *e);
/* Makes one step. *more: steps remain. An error before the weights move leaves the run unchanged,
 * and the step can be repeated; after any other error the run can only be closed (TARE_E_STATE).
 * TARE_E_CANCELLED: as before, and a checkpoint of the last complete step is saved. */
tare_status train_step(struct train *t, bool *more, struct err *e);
/* Writes a checkpoint of the last complete step, unless there is one. */
tare_status train_save(struct train *t, struct err *e);
/* Completes the records: done, or interrupted with a checkpoint if steps remain. */
tare_status train_end(struct train *t, struct err *e);
/* May be NULL. A run closed without train_end has failed. */
void train_close(struct train *t);
struct run *train_run_of(struct train *t);

/* Runs `tare train`: all of the above, and a summary on standard output. */
tare_status train_run(struct config *c, const struct train_start *start, struct err *e);

#endif
