/* One process a run folder: flock on RUN/lock, which the system lets go of however the process ends. */
#ifndef TARE_CORE_OBSERVE_RUN_LOCK_H
#define TARE_CORE_OBSERVE_RUN_LOCK_H

#include "base/str.h"

#include <stdbool.h>

/* Refuses, without writing anything: a folder that holds a run already unless resume, and with resume one that holds none. */
tare_status run_lock_check(const char *run_dir, bool resume, struct err *e);
/* Makes the folder and locks it; *fd is to be given to run_lock_release. TARE_E_STATE: another process has it. */
tare_status run_lock_take(const char *run_dir, int *fd, struct err *e);
/* The same in two halves, for a run, whose chain says what the file is about to be before it is: hold locks and changes nothing; sign writes
 * the text, this process's number, and syncs it. */
tare_status run_lock_hold(const char *run_dir, int *fd, struct err *e);
tare_status run_lock_text(struct str *out, struct err *e);
tare_status run_lock_sign(int fd, const char *run_dir, struct err *e);
void run_lock_release(int fd); /* < 0: nothing */
/* Whether a process holds it now. */
bool run_lock_is_held(const char *run_dir);

#endif
