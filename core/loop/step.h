/* One training step, and how its stages are run. */
#ifndef TARE_CORE_LOOP_STEP_H
#define TARE_CORE_LOOP_STEP_H

#include "base/clock.h"
#include "loop/run.h"
#include "loop/step_metrics.h"

/* In a function with a run r and an err e: runs a stage, adds its time to time/NAME, and names it
 * in its error. */
#define STAGE(NAME, CALL)                                                                                                          \
    do {                                                                                                                           \
        const double began_ = clock_seconds();                                                                                     \
        tare_status status_ = comm_stage(&r->comm, NAME, r->step + 1, e);                                                          \
        if (!status_) status_ = (CALL);                                                                                            \
        TRY(stage_end(r, "time/" NAME, began_, status_, e));                                                                       \
    } while (0)
/* Ends a stage. metric: the literal "time/NAME"; began: clock_seconds when the stage began. */
tare_status stage_end(struct run *r, const char *metric, double began, tare_status status, struct err *e);

tare_status step_run(struct run *r, struct err *e);

/* Collects the next n prompts into the step's batch: sampled, verified, with clusters and the
 * reference's logprobs. */
tare_status step_collect(struct run *r, int64_t n, struct err *e);

#endif
