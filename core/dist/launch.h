/* Starts the ranks of a job on this machine. */
#ifndef TARE_CORE_DIST_LAUNCH_H
#define TARE_CORE_DIST_LAUNCH_H

#include "base/err.h"

/* Runs mpirun -n ranks with this process's own command line until it ends; *exit_status is its exit
 * status. */
tare_status launch_ranks(int64_t ranks, int *exit_status, struct err *e);

/* On rank 0: all ranks have found each other, so the watch now names a rank that ends. */
void launch_joined(void);

/* Called by the rank that reports to the user why the job ends: the process that started the ranks
 * then prints nothing. */
void launch_reported(void);

#endif
