/* Communication between the ranks of a job: one interface for all communicators, which is all that
 * stages use.
 *
 *   self     one rank; a collective is a copy
 *   mpi      ranks are processes (libtare_mpi.so, loaded if it exists)
 *   nccl     collectives in the backend's memory between GPUs, everything else through mpi
 *
 * Rules. All ranks call collectives in the same order with matching sizes, each rank from one
 * thread at a time. A collective that returns an error has failed permanently: the caller returns,
 * comm_abort ends the job, and no further collective is called. If a rank dies or hangs, the
 * collectives of the others fail or the others are ended (see comm_abort); no rank waits forever.
 * Results are bit-identical in every run: collectives copy, and the caller adds.
 *
 * Letters: R ranks (size), r this rank. */
#ifndef TARE_CORE_DIST_COMM_H
#define TARE_CORE_DIST_COMM_H

#include "base/err.h"

#include <stdbool.h>

struct comm {
    int rank, size;
    const char *kind; /* "self", "thread", "mpi", "nccl" */
    void *self;
    int local;   /* index of this rank on its host */
    int threads; /* cores of this rank for run.threads = 0; 0: all that it may use */

    /* ---- host memory, any bytes */
    /* out receives out_bytes[r] bytes of every rank r, back to back in rank order; this rank gives
     * in, n = out_bytes[rank] bytes. in may be its own place in out. comm_gather_sizes computes
     * out_bytes. */
    tare_status (*gather)(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e);
    tare_status (*broadcast)(struct comm *c, void *data, int64_t n, int root, struct err *e);
    tare_status (*barrier)(struct comm *c, struct err *e);

    /* ---- the backend's memory (host memory on the CPU), equal slices. On a device they run after
     * all work issued before, and work issued afterwards sees their results: the caller need not
     * wait. */
    /* out [R, bytes] <- in [bytes] of every rank; in may be its own slice of out. */
    tare_status (*all_gather)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);
    /* out [R, bytes]: slice q is slice r of rank q's in [R, bytes]. in and out do not overlap. The
     * update uses it where sums must have a fixed order (model/grads.h). */
    tare_status (*all_to_all)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);

    /* ---- all_gather in two halves, for prefetch. Until the second half, in and out belong to the
     * communicator; other collectives may be called, and at most COMM_PENDING may be in progress.
     * They are waited for in the order in which they were begun. overlaps: the transfer runs while
     * the caller computes (nccl). Otherwise the work is done in begin or in wait: on a CPU a copy
     * takes a core either way. */
    tare_status (*gather_begin)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);
    tare_status (*gather_wait)(struct comm *c, struct err *e);
    /* all_to_all in the same two halves, for a layer's gradients while the next layer is computed:
     * at most COMM_EXCHANGES in progress, waited for in order; gathers may be begun and waited for
     * in between. */
    tare_status (*exchange_begin)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);
    tare_status (*exchange_wait)(struct comm *c, struct err *e);
    bool overlaps;

    /* A collective that takes longer than this many seconds is an error that names the missing
     * ranks. 0: no limit. */
    double timeout_s;
    /* Ends the job on all ranks with one message on standard error; e is this rank's error. Does
     * not return if ranks are processes. If they are threads (and in a job of one rank) it marks
     * the communicator, and every later collective of any rank fails. */
    void (*abort)(struct comm *c, const struct err *e);
    void (*note)(struct comm *c); /* stage or step has changed; optional, may be NULL */
    /* For communicators built on this one: the rank has entered the named collective of theirs, or
     * left it (NULL). May be NULL. */
    void (*enter)(struct comm *c, const char *collective);
    void (*free)(struct comm *c); /* regular end; all ranks call it */

    const char *stage; /* set by comm_stage; a string literal */
    int64_t step;
};

enum { COMM_PENDING = 4, COMM_EXCHANGES = 2 };

tare_status comm_self(struct comm *out, struct err *e);
/* Opens the communicator of this process: that of ranks_start (ranks.h), otherwise a job of one
 * rank. ranks: dist.ranks. */
tare_status comm_open(int64_t ranks, struct comm *out, struct err *e);

/* all[R] <- each rank's n. */
tare_status comm_gather_numbers(struct comm *c, int64_t n, int64_t *all, struct err *e);
/* Gathers sizes in bytes in the same way; an impossible size is TARE_E_COMM. */
tare_status comm_gather_sizes(struct comm *c, int64_t n, int64_t *sizes, struct err *e);
/* All ranks return the same status: OK if every rank gave OK, else the code and message of the
 * lowest rank that failed ("rank 2: ...", without the prefix if all failed equally;
 * TARE_E_CANCELLED only if nothing worse happened). Call it where a rank can fail alone while the
 * others would enter a collective: at the ends of stages. It costs one gather of a few bytes. */
tare_status comm_agree(struct comm *c, tare_status status, struct err *e);
/* A value that must be equal on all ranks: a configuration key, a plugin's file. name and value are
 * text without newlines. */
struct comm_fact {
    const char *name, *value;
};
/* Compares the facts of all ranks. A name that is missing on a rank or has another value there is
 * an error on all ranks, which names the fact, the values and the ranks. what: "configuration", ...
 * for the message. */
tare_status comm_same(struct comm *c, const char *what, const struct comm_fact *facts, int64_t n, struct err *e);

/* Sets the stage and step of this rank, which failure messages name. stage: a literal ("rollout",
 * "update", "checkpoint", ...).
 *
 * Tests make ranks fail here: with TARE_FAULT=rank=1,stage=update,step=2,kind=kill in the
 * environment, rank 1 is killed when it enters that stage (base/fault.h). */
tare_status comm_stage(struct comm *c, const char *stage, int64_t step, struct err *e);

#endif
