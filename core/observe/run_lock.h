/* One process per run folder: flock on RUN/lock, which the system releases however the process
 * ends. */
#ifndef TARE_CORE_OBSERVE_RUN_LOCK_H
#define TARE_CORE_OBSERVE_RUN_LOCK_H

#include "base/str.h"

#include <stdbool.h>

/* Refuses a folder that already holds a run, or with resume one that holds none. Writes nothing. */
tare_status run_lock_check(const char *run_dir, bool resume, struct err *e);
/* Refuses a folder without a run that is the working folder, or above it, and has other files. Before
 * anything is written. */
tare_status run_lock_check_place(const char *run_dir, struct err *e);
/* Creates the folder and locks it. *fd is released by run_lock_release. TARE_E_STATE: another
 * process holds it. */
tare_status run_lock_take(const char *run_dir, int *fd, struct err *e);
/* The same in two halves, for a run, whose chain announces the file before it changes: hold locks
 * without changing the file; sign writes this process's number as text and syncs it. */
tare_status run_lock_hold(const char *run_dir, int *fd, struct err *e);
tare_status run_lock_text(struct str *out, struct err *e);
tare_status run_lock_sign(int fd, const char *run_dir, struct err *e);
void run_lock_release(int fd); /* no-op for fd < 0 */
/* Returns true if a process holds the lock. */
bool run_lock_is_held(const char *run_dir);

#endif
