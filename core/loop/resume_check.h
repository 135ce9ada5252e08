#ifndef TARE_CORE_LOOP_RESUME_CHECK_H
#define TARE_CORE_LOOP_RESUME_CHECK_H

#include "base/err.h"
#include "config/config.h"

/* Compares c with RUN/config.ini before a run is resumed, on rank 0. Logs every difference; one
 * that changes the training is an error unless it is allowed. */
tare_status resume_check(const struct config *c, bool allow_change, struct err *e);
/* Called when no checkpoint can be used. Succeeds if there never was one; otherwise TARE_E_CORRUPT,
 * with the data that starting over would delete. */
tare_status resume_lost(const char *run_dir, struct err *e);

#endif
