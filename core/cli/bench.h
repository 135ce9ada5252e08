/* What `tare bench` measures: cases of kernels at the shapes of real models, and the peaks of the machine they are compared with. */
#ifndef TARE_CLI_BENCH_H
#define TARE_CLI_BENCH_H

#include "kernels.h"

/* One operation at one shape. flops and bytes are what the definition needs at least, for one run. */
struct bench_case {
    char name[80];
    int (*setup)(struct bench_case *b); /* nonzero: no memory */
    void (*run)(struct bench_case *b);
    const struct kernels *k;
    const struct kctx *c;
    int64_t shape[6];
    double flops, bytes;
    void *memory[12];
    int n_memory;
};

/* Calls visit for every case; stops when it returns nonzero, and returns that. */
int bench_kernels(int (*visit)(const struct bench_case *b, void *arg), void *arg);

/* Fused multiply-add peak of all threads, 10^9 operations a second (2 an fma), with the widest vectors that `isa` has. */
double bench_peak_flops(struct pool *pool, const char *isa);
/* Reading memory far larger than the caches, all threads, 10^9 bytes a second; 0 when there is no memory for it. */
double bench_peak_read(struct pool *pool);

#endif
