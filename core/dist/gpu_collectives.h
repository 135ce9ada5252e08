/* Collectives between GPUs: a thin shared object around NCCL and the CUDA runtime, loaded at run
 * time. libtare_nccl.so exports `tare_gpu_collectives`. One GPU a process, one thread at a time.
 * Functions return nonzero with the reason in error.
 *
 * All work is issued to a separate stream, which first waits for the work issued to the compute
 * stream so far; nothing waits on the host. */
#ifndef TARE_CORE_DIST_GPU_COLLECTIVES_H
#define TARE_CORE_DIST_GPU_COLLECTIVES_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_COLLECTIVES_ABI 3
#define GPU_COLLECTIVES_SYMBOL "tare_gpu_collectives"
enum { GPU_ID_BYTES = 128, GPU_SLOTS = 8 };

struct gpu_collectives {
    int abi;
    char about[128]; /* "NCCL 2.28.3", after describe */
    char error[900];

    void (*describe)(struct gpu_collectives *g);
    /* rank 0 makes it; all ranks pass it to open */
    int (*make_id)(struct gpu_collectives *g, char id[GPU_ID_BYTES]);
    /* Makes what a rank needs of its own, without the others. compute: the CUDA stream whose results
     * are sent; NULL: the caller has waited for them. */
    int (*prepare)(struct gpu_collectives *g, int rank, int size, void *compute);
    /* After all ranks have prepared. Collective: waits for every rank, without a limit. */
    int (*open)(struct gpu_collectives *g, const char id[GPU_ID_BYTES]);
    /* slot: the one to query with `done` */
    int (*all_gather)(struct gpu_collectives *g, int slot, const void *in, int64_t bytes, void *out);
    int (*all_to_all)(struct gpu_collectives *g, int slot, const void *in, int64_t bytes, void *out);
    /* Sets *done if the slot's work is complete; an error of any rank's connection is an error
     * here. Never waits. */
    int (*done)(struct gpu_collectives *g, int slot, bool *done);
    int (*close)(struct gpu_collectives *g, bool regular); /* not regular: abandons work in progress */
};

#endif
