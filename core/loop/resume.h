/* Saving a run's state in a checkpoint, and restoring it. */
#ifndef TARE_CORE_LOOP_RESUME_H
#define TARE_CORE_LOOP_RESUME_H

#include "loop/run.h"

/* Writes a checkpoint of the last step, respectively reads one. */
tare_status run_save(struct run *r, struct err *e);
tare_status run_restore(struct run *r, const char *folder, struct err *e);

#endif
