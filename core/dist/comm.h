/* Ranks of one job. One interface for all communicators; a stage that needs other ranks calls these and nothing else.
 *
 *   self     one rank; a collective is a copy
 *   mpi      ranks are processes (libtare_mpi.so, loaded where it exists)
 *   nccl     collectives in the backend's memory between GPUs, everything else through mpi
 *
 * Rules. Collectives are called by all ranks in the same order with sizes that fit together, each rank from one thread at a time. A
 * collective that returns an error has failed for good: the caller leaves and comm_abort ends the job; no further collective is called. A
 * rank that dies or hangs makes the others' collectives fail or ends them (see comm_abort), nobody waits forever. Results have the same bits
 * on every run: collectives copy, and the caller adds.
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
    int local;   /* this rank among those of its host */
    int threads; /* cores that are this rank's, where run.threads = 0; 0: all that it may use */

    /* ---- host memory, any bytes */
    /* out[r] of out_bytes[r] bytes back to back in rank order; every rank gives in of n = out_bytes[rank] bytes and gets all. in may be its
     * own place in out. out_bytes: comm_gather_sizes. */
    tare_status (*gather)(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e);
    tare_status (*broadcast)(struct comm *c, void *data, int64_t n, int root, struct err *e);
    tare_status (*barrier)(struct comm *c, struct err *e);

    /* ---- the backend's memory (host memory on the CPU), equal pieces. On a device they come after what it was given to do before, and what it is given
     * afterwards finds their results: the caller need not wait for it. */
    /* out [R, bytes] <- in [bytes] of every rank; in may be its own piece of out. */
    tare_status (*all_gather)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);
    /* out [R, bytes]: piece q is what rank q has as piece r of its in [R, bytes]. in and out do not overlap. The update uses it where sums have to
     * have an order of their own (model/grads.h). */
    tare_status (*all_to_all)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);

    /* ---- all_gather in two halves, for prefetch. Between them in and out belong to the communicator; other collectives may be called,
     * and at most COMM_PENDING may be begun and not yet waited for. They are waited for in the order in which they were begun. overlaps:
     * the transfer runs while the caller computes (nccl). Without it the work is done in begin or in wait: on a CPU a copy takes a core either way. */
    tare_status (*gather_begin)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);
    tare_status (*gather_wait)(struct comm *c, struct err *e);
    /* all_to_all in the same two halves, for a layer's gradients while the next layer computes: at most COMM_EXCHANGES under way, waited for in their
     * order; gathers may be begun and waited for between. */
    tare_status (*exchange_begin)(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e);
    tare_status (*exchange_wait)(struct comm *c, struct err *e);
    bool overlaps;

    /* A collective of more than so many seconds is an error that names the ranks that are missing. 0: never. */
    double timeout_s;
    /* Ends the job everywhere with one message on standard error; e is this rank's error. Where ranks are processes it does not return;
     * where they are threads (and in a job of one rank) it marks the communicator, and every collective of any rank fails from here on. */
    void (*abort)(struct comm *c, const struct err *e);
    void (*note)(struct comm *c); /* stage or step has changed; NULL: nobody wants to know */
    /* For communicators built on this one: the rank is in a collective of theirs (NULL: has left it). NULL: not wanted. */
    void (*enter)(struct comm *c, const char *collective);
    void (*free)(struct comm *c); /* a regular end: all ranks call it */

    const char *stage; /* set by comm_stage; a literal */
    int64_t step;
};

enum { COMM_PENDING = 4, COMM_EXCHANGES = 2 };

tare_status comm_self(struct comm *out, struct err *e);
/* The communicator of this process: that of ranks_start (ranks.h), else a job of one rank. ranks: dist.ranks. */
tare_status comm_open(int64_t ranks, struct comm *out, struct err *e);

/* all[R] <- each rank's n. */
tare_status comm_gather_numbers(struct comm *c, int64_t n, int64_t *all, struct err *e);
/* The same of sizes in bytes: one that cannot be is TARE_E_COMM. */
tare_status comm_gather_sizes(struct comm *c, int64_t n, int64_t *sizes, struct err *e);
/* All ranks leave with the same status: OK if every rank gave OK, else the code and message of the lowest rank that failed ("rank 2: ...", but
 * without that when all failed alike; TARE_E_CANCELLED only when nothing worse happened). For places where a rank can fail alone and the others would go on to a collective:
 * the ends of stages. Costs one gather of a few bytes. */
tare_status comm_agree(struct comm *c, tare_status status, struct err *e);
/* Something that must be the same on all ranks: a configuration key, a plugin's file. name and value are text without newlines. */
struct comm_fact {
    const char *name, *value;
};
/* Every rank gives its facts; a name that is missing on a rank or has another value there is an error on all ranks, which names it, the
 * values and the ranks. what: "configuration", ... for the message. */
tare_status comm_same(struct comm *c, const char *what, const struct comm_fact *facts, int64_t n, struct err *e);

/* Says what this rank is doing from here on: messages about a failure name it. stage: a literal ("rollout", "update", "checkpoint", ...).
 *
 * It is also where tests make ranks fail: with TARE_FAULT=rank=1,stage=update,step=2,kind=kill in the environment rank 1 is killed when it
 * enters that stage (base/fault.h). */
tare_status comm_stage(struct comm *c, const char *stage, int64_t step, struct err *e);

#endif
