/* One training step, and how its stages are run. */
#ifndef TARE_CORE_LOOP_STEP_H
#define TARE_CORE_LOOP_STEP_H

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

tare_status step_run(struct run *r, struct err *e);

/* The next n prompts become the step's batch, sampled and scored. */
tare_status collect(struct run *r, int64_t n, struct err *e);

#endif
