/* The worker's side of a worker process (worker.h): turns this process into a worker. */
#ifndef TARE_CORE_CALL_WORKER_SIDE_H
#define TARE_CORE_CALL_WORKER_SIDE_H

#include "call/confine.h"

/* Takes requests from fd, the worker's standard input, and detaches what plugins print or read from
 * the engine's output and requests. The process ends with the engine, even if the engine is killed.
 * Returns the descriptor of the requests; -1 on failure. */
int worker_enter(int fd, const char *name);

/* Confines this process and hands the listener of refused.h to the engine. Call it before plugin
 * code runs. *refused: the errno of a kernel that rejects the filter, or 0. */
tare_status worker_confine(int requests, const struct confine *confine, int *refused, struct err *e);

#endif
