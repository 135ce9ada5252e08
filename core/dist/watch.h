/* Supervises the ranks of a job independently of the transport: a thread in every rank with a TCP
 * connection to rank 0. It tracks the state of every rank (stage, step, collective, since when),
 * and detects a rank that dies (its connection closes without a farewell), hangs (a collective that
 * lasts longer than timeout_s; no heartbeat for WATCH_SILENCE seconds) or reports an error. It then
 * ends every process of the job: rank 0 prints one message, and all exit with the status of the
 * error. If rank 0 dies, rank 1 prints. A rank whose parent (mpirun, srun) has gone ends too.
 *
 * The processes of a failed job end through _exit in the watching thread, whatever their main
 * thread does. */
#ifndef TARE_CORE_DIST_WATCH_H
#define TARE_CORE_DIST_WATCH_H

#include "base/err.h"

/* Begins the names of collectives between GPUs, which no rank enters while another works alone: they
 * have a deadline before the first stage too. */
#define WATCH_NCCL "NCCL"

/* WATCH_JOIN: seconds within which all ranks must connect to rank 0. */
enum { WATCH_SILENCE = 7, WATCH_JOIN = 30, WATCH_ADDRESS = 512 };

struct watch;

/* On rank 0: listens; address receives the data that the others need to connect, WATCH_ADDRESS
 * bytes. */
tare_status watch_listen(int size, char *address, struct watch **out, struct err *e);
/* On the other ranks: connects to rank 0. */
tare_status watch_connect(int rank, int size, const char *address, struct watch **out, struct err *e);
/* Starts watching once the transport has sent the address to all ranks; rank 0 waits until all have
 * connected. */
tare_status watch_start(struct watch *w, double timeout_s, struct err *e);

/* Sets how the user can continue the job, for the message when a rank is lost; call it before
 * watch_start. Default: --resume. */
void watch_continue_by(const char *how);

/* Called by the thread that runs the rank. */
void watch_stage(struct watch *w, const char *stage, int64_t step);
void watch_enter(struct watch *w, const char *collective); /* NULL: left */
/* Reports a failure of this rank to rank 0 and does not return; the process ends when rank 0 has
 * reported it, or after some seconds without an answer. */
void watch_fail(struct watch *w, const struct err *e) __attribute__((noreturn));
/* Announces a regular end: afterwards the connection may close. All ranks must have reached the end
 * (a barrier) before. */
void watch_farewell(struct watch *w);
void watch_free(struct watch *w);

#endif
