/* The engine's side of a worker process: a second process of this program that holds plugins and
 * answers one request at a time (wire.h). Plugins that crash or hang end their worker, not the
 * engine; the kernel confines the worker (confine.h).
 *
 *   struct worker w = {0};
 *   worker_spawn(&w, "/proc/self/exe", e);
 *   ... write a request into w.message ...
 *   enum wire_result r;
 *   worker_open(&w, deadline, check, &r, e);   first request: also receives the listener
 *   worker_ask(&w, deadline, check, &r, e);    every other request
 *   worker_end(&w, true);
 *
 * Threads: one worker from one thread at a time.
 */
#ifndef TARE_CORE_CALL_WORKER_H
#define TARE_CORE_CALL_WORKER_H

#include "base/err.h"
#include "base/str.h"
#include "call/wire.h"

#include <sys/types.h>

struct worker {
    pid_t pid;          /* 0: not running */
    int fd;             /* the engine's end of the socket */
    int listener;       /* reports refused connections of the worker (refused.h); -1: none */
    struct str message; /* the request before worker_ask, the reply after it */
};

/* Called at least every WORKER_CHECK_NS while a reply is awaited. A failure ends the worker. */
struct worker_check {
    tare_status (*check)(const void *ctx, struct err *e);
    const void *ctx;
};
enum { WORKER_CHECK_NS = 100000000 };

/* Finds the program to start for workers. NULL means this one, when it is tare; otherwise the
 * program named by the environment variable TARE (test programs). */
tare_status worker_program(const char **out, struct err *e);

/* Starts `BINARY verify --worker` with one end of a socket as its standard input. */
tare_status worker_spawn(struct worker *w, const char *binary, struct err *e);
/* Closes the socket and waits for the process; kills it first if at_once. No-op if not running. */
void worker_end(struct worker *w, bool at_once);

/* Sends w->message and receives the reply into it. *result is not WIRE_OK if the worker died
 * (WIRE_CLOSED) or missed the deadline (WIRE_LATE; CLOCK_MONOTONIC, 0: none); the caller then ends
 * it. An error comes from `check` only. */
tare_status worker_ask(struct worker *w, int64_t deadline_ns, struct worker_check check, enum wire_result *result, struct err *e);
/* Like worker_ask, for the request after which the worker calls worker_confine. */
tare_status worker_open(struct worker *w, int64_t deadline_ns, struct worker_check check, enum wire_result *result, struct err *e);

#endif
