/* The start of the collectives between GPUs (device.c): NCCL's settings, a deadline for everything
 * from its first call to the end of a trial, and the trial itself.
 *
 * NCCL's first calls are where it hangs, and they may do so inside the library or the driver. The
 * deadline is therefore watched by a thread, which ends the job on all ranks. */
#ifndef TARE_CORE_DIST_GPU_START_H
#define TARE_CORE_DIST_GPU_START_H

#include "dist/comm.h"
#include "kernels.h"

#include <pthread.h>

/* What to try when NCCL fails or hangs at the start; ends the messages. */
#define GPU_START_ADVICE                                                                                                           \
    "NCCL_DEBUG=INFO shows NCCL's reason; try NCCL_P2P_DISABLE=1 (GPUs on PCIe with IOMMU or ACS), NCCL_SOCKET_IFNAME=<interface> (several networks), a larger /dev/shm (docker: --shm-size=8g), or dist.communicator = mpi"

struct gpu_deadline {
    struct comm *host; /* ends the job */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over;
    double seconds;
    const char *what; /* being done; a literal */
    bool ended;
};

/* Sets what tare wants of NCCL in the environment, unless the user has set it: no NVLS, which only
 * reductions use and which fails in many containers, and at most 8 channels to a peer, which bounds
 * NCCL's memory and the processors that it occupies. Before NCCL's first call. */
void gpu_start_settings(void);
/* timeout_s: of the communicator; the deadline is the smaller one. */
tare_status gpu_deadline_begin(struct gpu_deadline *d, struct comm *host, double timeout_s, struct err *e);
void gpu_deadline_note(struct gpu_deadline *d, const char *what);
void gpu_deadline_end(struct gpu_deadline *d);
/* Runs a small and a large all_gather and all_to_all in k's memory and compares every byte. NCCL
 * connects peers and allocates its buffers at their first transfer, so this also makes it take its
 * memory before the engine cuts its region. All ranks return the same status. Collective. */
tare_status gpu_start_try(struct comm *c, const struct kernels *k, const struct kctx *ctx, struct err *e);

#endif
