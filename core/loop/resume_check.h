#ifndef TARE_CORE_LOOP_RESUME_CHECK_H
#define TARE_CORE_LOOP_RESUME_CHECK_H

#include "base/err.h"
#include "config/config.h"

/* Before a run is resumed, on rank 0. Every difference to RUN/config.ini is told; one that changes the training is refused
 * unless it is allowed. */
tare_status resume_check(const struct config *c, bool allow_change, struct err *e);
/* No checkpoint can be used: fine when there never was one, else TARE_E_CORRUPT with what starting over would delete. */
tare_status resume_lost(const char *run_dir, struct err *e);

#endif
