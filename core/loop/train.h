/* A training run from its configuration to its last step.
 *
 *   TRY(train_open(&config, &start, &t, e));                                     settled, the model made where it is missing, evaluated
 *   for (bool more = true; more && !status;) status = train_step(t, &more, e);   with evaluations and checkpoints as they are due
 *   if (!status) status = train_end(t, e);
 *   train_close(t);
 *
 * No signal is caught: an interruption is heard where the caller has called signals_catch. start and c outlive the run. Not thread-safe. */
#ifndef TARE_CORE_LOOP_TRAIN_H
#define TARE_CORE_LOOP_TRAIN_H

#include "loop/run.h"

struct train;

/* c is settled (settle/settle.h) here. */
tare_status train_open(struct config *c, const struct train_start *start, struct train **out, struct err *e);
/* One step. *more: steps are left. An error that comes before the weights move leaves the run as it was, and the step can be made again; after any
 * other the run can only be closed (TARE_E_STATE). TARE_E_CANCELLED: the same, and what the run knows is saved. */
tare_status train_step(struct train *t, bool *more, struct err *e);
/* A checkpoint of the last whole step, if there is none yet. */
tare_status train_save(struct train *t, struct err *e);
/* The records are complete: done, or interrupted with a checkpoint where steps are left. */
tare_status train_end(struct train *t, struct err *e);
void train_close(struct train *t); /* NULL: nothing. Without train_end before it the run has failed. */
struct run *train_run_of(struct train *t);

/* `tare train` as a function: all of the above, and a summary on standard output. */
tare_status train_run(struct config *c, const struct train_start *start, struct err *e);

#endif
