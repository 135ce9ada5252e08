/* Starting the ranks of a job on this machine. */
#ifndef TARE_CORE_DIST_LAUNCH_H
#define TARE_CORE_DIST_LAUNCH_H

#include "base/err.h"

/* Runs mpirun -n ranks with this process's own command line until it ends; *exit_status is its exit status. */
tare_status launch_ranks(int64_t ranks, int *exit_status, struct err *e);

/* Rank 0: all ranks have found each other, so from here on the watch names a rank that ends. */
void launch_joined(void);

/* Called by the rank that tells the user why the job ends: the process that started the ranks then says nothing. */
void launch_told(void);

#endif
