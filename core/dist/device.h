/* Collectives in a GPU's memory. A communicator is opened before the backend; if the backend's
 * memory is not the host's, device_collectives replaces its collectives in "the backend's memory"
 * (all_gather, all_to_all, gather_begin, exchange_begin):
 *
 *   nccl    by NCCL's, on a separate stream, bootstrapped over the replaced communicator. The
 *           stream follows the backend's by events, so the host issues a layer's work while the
 *           previous transfer runs; only the second halves wait on the host
 *   mpi     (or self, thread) by the same collectives between copies in host memory: slow, but
 *           without further requirements
 *
 * All of them copy. Sums over ranks are computed where they have a fixed order (model/grads.h);
 * NCCL's reductions choose their order by the number of ranks, their links and the size. */
#ifndef TARE_CORE_DIST_DEVICE_H
#define TARE_CORE_DIST_DEVICE_H

#include "config/choices.h"
#include "dist/comm.h"
#include "kernels.h"

/* library: dist.communicator. Changes nothing if k's memory is the host's ("nccl" is an error
 * then), and for one rank unless "nccl" is named explicitly. k and ctx must outlive c.
 * Collective. */
tare_status device_collectives(struct comm *c, const struct kernels *k, const struct kctx *ctx, enum communicator library,
                               struct err *e);
/* Writes "NCCL 2.28.3", or why it is missing. */
tare_status device_nccl_about(char *text, int64_t capacity, struct err *e);

#endif
