/* Checksums of data that travels between ranks: gradients on their way to their owners, and weights
 * gathered for a pass. MPI over TCP has no checksums, and those of TCP have 16 bits; a flipped bit
 * would silently be trained on. Each rank adds up digests (kernels.h, op_digest) of the data that
 * it sends and receives, in the memory where the data is; the digests are compared before the
 * weights change. */
#ifndef TARE_CORE_MODEL_MOVED_H
#define TARE_CORE_MODEL_MOVED_H

#include "base/err.h"

struct model;

struct moved_digests {
    uint64_t *digests; /* backend memory: sent to rank q [R], received from rank q [R]; NULL: one rank */
    int64_t words;     /* sent by each rank to each other rank since the last comparison */
};

tare_status moved_new(const struct model *m, struct moved_digests *x, struct err *e);
void moved_free(const struct model *m, struct moved_digests *x);
/* Call before slice q of slices[R, floats] is sent to rank q. Returns the argument `at` for
 * moved_received. */
int64_t moved_send(const struct model *m, struct moved_digests *x, const float *slices, int64_t floats);
/* Call before one slice is sent to all ranks. */
int64_t moved_send_all(const struct model *m, struct moved_digests *x, const float *slice, int64_t floats);
void moved_received(const struct model *m, struct moved_digests *x, const float *slices, int64_t floats, int64_t at);
/* Compares. Collective; every rank returns TARE_E_CORRUPT. what: for the message, "the
 * gradients". */
tare_status moved_check(const struct model *m, struct moved_digests *x, const char *what, struct err *e);

#endif
