/* A fixed pool of threads that runs independent tasks. Results must not depend on which thread runs
 * a task: a task writes only its own data and adds in its own fixed order. Tasks must not call
 * pool_run, and there is one caller at a time. Workers spin for some microseconds before they
 * sleep, so that the short regions of a decoding step do not pay for a wake-up. A region ends when
 * its tasks are done; it does not wait for a worker that the system has not scheduled. */
#ifndef TARE_CORE_BASE_POOL_H
#define TARE_CORE_BASE_POOL_H

#include "base/err.h"

struct pool;
typedef void (*pool_task)(void *arg, int64_t task, int thread); /* thread in [0, pool_threads) */

/* threads 0: one for each core that this process may use. */
tare_status pool_new(int threads, struct pool **out, struct err *e);
int pool_threads(const struct pool *p); /* NULL: 1 */
/* Run tasks 0 .. n-1 and return when all are done. p NULL: run them on the calling thread. */
void pool_run(struct pool *p, int64_t n, pool_task task, void *arg);
void pool_free(struct pool *p);

#endif
