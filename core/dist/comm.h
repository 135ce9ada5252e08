/* Ranks of one job. One interface for all communicators; a stage that needs other ranks calls these and nothing else. Collectives are
 * called by all ranks in the same order; a rank that fails aborts the job with its message.
 *
 * comm_self: a job of one rank, where every collective is a copy. */
#ifndef TARE_CORE_COMM_H
#define TARE_CORE_COMM_H

#include "base/err.h"

struct comm {
    int rank, size;
    const char *kind; /* "self" */
    void *self;
    /* out[r] of out_bytes[r] bytes back to back in rank order; every rank gives in of n bytes. out must hold the sum. */
    tare_status (*gather)(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e);
    tare_status (*broadcast)(struct comm *c, void *data, int64_t n, int root, struct err *e);
    tare_status (*barrier)(struct comm *c, struct err *e);
    void (*free)(struct comm *c);
};

tare_status comm_self(struct comm *out, struct err *e);
/* ranks: dist.ranks. More than one needs a communicator that this build may lack: the error says what to install. */
tare_status comm_open(int64_t ranks, struct comm *out, struct err *e);

#endif
