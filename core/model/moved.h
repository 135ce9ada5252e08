/* Sums of what travels between ranks: gradients on their way to their owners, weights that are gathered for a pass. MPI over TCP has no sums of its own, and
 * TCP's are of 16 bits; a bit that turns there would be learnt from in silence. Each rank adds up digests (kernels.h, op_digest) of what it sends and of what it got, where
 * it lies; they are compared before the weights move. */
#ifndef TARE_CORE_MODEL_MOVED_H
#define TARE_CORE_MODEL_MOVED_H

#include "base/err.h"

struct model;

struct moved_sums {
    uint64_t *sums; /* backend memory: sent to rank q [R], got from rank q [R]; NULL: one rank */
    int64_t words;  /* that each rank has sent to each other since the last comparison */
};

tare_status moved_new(const struct model *m, struct moved_sums *x, struct err *e);
void moved_free(const struct model *m, struct moved_sums *x);
/* pieces [R, floats]: piece q is about to go to rank q. Returns what moved_got needs. */
int64_t moved_send(const struct model *m, struct moved_sums *x, const float *pieces, int64_t floats);
/* One piece that is about to go to all. */
int64_t moved_send_all(const struct model *m, struct moved_sums *x, const float *piece, int64_t floats);
void moved_got(const struct model *m, struct moved_sums *x, const float *pieces, int64_t floats, int64_t at);
/* Collective. TARE_E_CORRUPT on all ranks alike. what: for the message, "the gradients". */
tare_status moved_check(const struct model *m, struct moved_sums *x, const char *what, struct err *e);

#endif
