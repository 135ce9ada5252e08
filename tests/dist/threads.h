/* Ranks as threads of one process: tests of several ranks without MPI, which the thread sanitizer can follow. */
#ifndef TESTS_DIST_THREADS_H
#define TESTS_DIST_THREADS_H

#include "dist/comm.h"

/* Runs fn(comm, ctx, e) in `ranks` threads that are the ranks of one job; returns when all have
 * returned. The error is that of the first rank to fail, with its rank in front; a failing rank
 * ends the others' collectives. timeout_s: comm.h. */
tare_status comm_threads(int ranks, double timeout_s, tare_status (*fn)(struct comm *c, void *ctx, struct err *e), void *ctx,
                         struct err *e);

#endif
