/* Collectives in a GPU's memory. A communicator is opened before the backend is; when the backend's memory is not the host's, its collectives in
 * "the backend's memory" (all_gather, all_to_all, gather_begin, exchange_begin) are replaced here:
 *
 *   nccl    by NCCL's, on a stream of their own, bootstrapped over the communicator that is replaced. It follows the backend's stream by events, so the host
 *           gives out a layer's work while the last one's transfer runs; only the second halves wait on the host
 *   mpi     (or self, thread) by the same collectives between copies in host memory: slow, needs nothing
 *
 * All of them copy. Sums over ranks are made where they have an order of their own (model/grads.h); NCCL's reductions choose theirs from the number
 * of ranks, their wires and the size. */
#ifndef TARE_CORE_DIST_DEVICE_H
#define TARE_CORE_DIST_DEVICE_H

#include "config/choices.h"
#include "dist/comm.h"
#include "kernels.h"

/* library: dist.communicator. Nothing changes where k's memory is the host's (then "nccl" is an error), and
 * for one rank unless "nccl" is asked for by name. k and ctx live longer than c.
 * Collective. */
tare_status comm_device(struct comm *c, const struct kernels *k, const struct kctx *ctx, enum communicator library, struct err *e);
/* "NCCL 2.28.3" or why there is none. */
tare_status comm_nccl_about(char *text, int64_t room, struct err *e);

#endif
