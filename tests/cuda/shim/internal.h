/* Interfaces between the files of the shim. */
#ifndef TARE_SHIM_INTERNAL_H
#define TARE_SHIM_INTERNAL_H

#include "shim.h"

/* run.cc: the running thread */
struct shim_block_view {
    bool running; /* true while a thread of a kernel runs */
    const char *kernel;
    int thread;          /* linear index */
    bool early;          /* it has not yet waited for the preceding launch */
    uint32_t warp_syncs; /* of the thread's warp in this block */
    /* the thread's stack; the launch's arguments */
    uintptr_t stack_begin, stack_end, args_begin, args_end;
    uintptr_t shared_begin, shared_end, shared_all_begin,
        shared_all_end; /* dynamic shared memory: the launch's part, and all of it */
};
extern struct shim_block_view shim_view;
void shim_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* graph.cc: during a capture, records the launch and returns true */
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
bool shim_refuses(const char *call); /* reports a finding during a capture */

/* run.cc: the thread sleeps until shim_wake is called with the same address */
void shim_sleep(const void *on);
void shim_wake(const void *on);

/* wgmma.cc: called if no thread can continue; completes a pending copy. False: nothing was pending */
bool shim_async_step(void);
void shim_async_end(void); /* ends a block */

/* mma.cc: sum + the 16 products of an instruction. bits 0: one after another, each rounded;
 * otherwise all in one addition, each truncated that many bits below the largest exponent, with the
 * result truncated to fp32 */
float shim_mma_sum(float sum, const float *x, const float *w, int bits);
extern "C" int mma_host_rounds; /* 1: the result is rounded to nearest instead of truncated */
/* 1: products with a factor 0 also have an exponent, that of the smallest number */
extern "C" int mma_host_zeros;

/* watch.cc */
void watch_launch(bool follows);
void watch_block(void);
void watch_barrier(void);
void watch_add(void *p, size_t bytes); /* register and unregister device memory */
void watch_remove(void *p);

#endif
