/* What a checkpoint of a run holds, saved and restored. */
#ifndef TARE_CORE_LOOP_RESUME_H
#define TARE_CORE_LOOP_RESUME_H

#include "loop/run.h"

/* The parts of a checkpoint that the loop knows. */
tare_status run_save(struct run *r, struct err *e);
tare_status run_restore(struct run *r, const char *folder, struct err *e);

#endif
