/* Watches over the ranks of a job beside the transport: a thread in every rank with a TCP connection to rank 0. It knows where every rank
 * is (stage, step, which collective, since when), sees one die (its connection closes without a farewell), hang (a collective that lasts
 * longer than timeout_s; no sign of life for WATCH_SILENCE seconds) or report an error, and then ends every process of the job: rank 0
 * prints one message, all leave with the exit status of the error. When it is rank 0 that dies, rank 1 prints. A rank whose parent (mpirun, srun) has gone ends too.
 *
 * What a job leaves: its processes end through _exit in the watching thread, whatever their main thread does. */
#ifndef TARE_CORE_DIST_WATCH_H
#define TARE_CORE_DIST_WATCH_H

#include "base/err.h"

/* WATCH_JOIN: seconds in which all ranks have to find rank 0. */
enum { WATCH_SILENCE = 7, WATCH_JOIN = 30, WATCH_ADDRESS = 512 };

struct watch;

/* Rank 0: listens; address gets what the others need to connect, WATCH_ADDRESS bytes. */
tare_status watch_listen(int size, char *address, struct watch **out, struct err *e);
/* Other ranks: connects to rank 0. */
tare_status watch_connect(int rank, int size, const char *address, struct watch **out, struct err *e);
/* Starts watching, when the transport has carried the address to everybody: rank 0 waits until all have connected. */
tare_status watch_start(struct watch *w, double timeout_s, struct err *e);

/* What continues the job, for the message when it loses a rank; before watch_start. Unless it is called: --resume. */
void watch_continue_by(const char *how);

/* Called by the thread that runs the rank. */
void watch_stage(struct watch *w, const char *stage, int64_t step);
void watch_enter(struct watch *w, const char *collective); /* NULL: has left it */
/* This rank fails: tells rank 0 and does not return; the process ends when rank 0 has said so, or after some seconds without an answer. */
void watch_fail(struct watch *w, const struct err *e) __attribute__((noreturn));
/* A regular end: from here on the connection may close. All ranks have come to the end (a barrier) before. */
void watch_farewell(struct watch *w);
void watch_free(struct watch *w);

#endif
