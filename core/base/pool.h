/* A fixed pool of threads that runs independent tasks. Which thread runs a task must never change a result: a task writes only
 * what is its own and sums in an order of its own. No nesting. One caller at a time. Workers spin for some microseconds before
 * they sleep, so that a decode step's short regions do not pay for a wake-up. A region ends when its tasks are done: a worker that
 * the system has not given a core is not waited for. */
#ifndef TARE_CORE_BASE_POOL_H
#define TARE_CORE_BASE_POOL_H

#include "base/err.h"

struct pool;
typedef void (*pool_task)(void *arg, int64_t task, int thread); /* thread in [0, pool_threads) */

/* threads 0: one for each core this process may use. */
tare_status pool_new(int threads, struct pool **out, struct err *e);
int pool_threads(const struct pool *p); /* NULL: 1 */
/* Runs task 0 .. n-1; returns when all are done. p NULL: in the calling thread. */
void pool_run(struct pool *p, int64_t n, pool_task task, void *arg);
void pool_free(struct pool *p);

#endif
