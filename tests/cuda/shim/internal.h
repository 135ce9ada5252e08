/* Between the files of the shim. */
#ifndef TARE_SHIM_INTERNAL_H
#define TARE_SHIM_INTERNAL_H

#include "shim.h"

/* run.cc: what runs now */
struct shim_block_view {
    bool running; /* a kernel's thread runs */
    const char *kernel;
    int thread;                                             /* linear index */
    bool early;                                             /* it has not waited for the launch in front yet */
    uint32_t warp_syncs;                                    /* of the thread's warp in this block */
    uintptr_t stack_begin, stack_end, args_begin, args_end; /* the thread's stack; the launch's arguments */
    uintptr_t shared_begin, shared_end, shared_all_begin,
        shared_all_end; /* dynamic shared memory: the launch's, and what there is */
};
extern struct shim_block_view shim_view;
void shim_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* graph.cc: in a capture, keeps it and is true */
struct shim_kept_launch {
    struct kctx context;
    const char *kernel;
    struct dim3 grid, block;
    size_t shared, args_bytes;
    void (*thread)(void *);
    bool follows;
};
bool shim_keep_launch(const struct shim_kept_launch &launch, const void *args);
bool shim_keep_copy(void *to, const void *from, size_t bytes);
bool shim_keep_fill(void *p, int value, size_t bytes);
bool shim_refuses(const char *call); /* in a capture: a finding */

/* run.cc: the thread gives way until somebody wakes those who sleep on the same */
void shim_sleep(const void *on);
void shim_wake(const void *on);

/* wgmma.cc: no thread can go on; makes a copy that is under way. False: there is none */
bool shim_async_step(void);
void shim_async_end(void); /* of a block */

/* mma.cc: sum + the 16 products of an instruction. bits: 0: one after the other, rounded each time; else all in one addition, each cut so many bits below the
 * largest exponent, the result cut to fp32 */
float shim_mma_sum(float sum, const float *x, const float *w, int bits);
extern "C" int mma_host_rounds; /* 1: the result is rounded to the nearest and not cut */
extern "C" int mma_host_zeros;  /* 1: products with a factor 0 have an exponent too, as if it were the smallest number */

/* watch.cc */
void watch_launch(bool follows);
void watch_block(void);
void watch_barrier(void);
void watch_add(void *p, size_t bytes); /* device memory */
void watch_remove(void *p);

#endif
