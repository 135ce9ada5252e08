/* What `tare bench` measures: cases of kernels at the shapes of real models, and the peaks of the machine they are compared with. */
#ifndef TARE_CLI_BENCH_H
#define TARE_CLI_BENCH_H

#include "kernels.h"
#include "model/model.h"

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

/* Seconds: of this thread's CPU time when the pool has one thread (others on the machine count less), of the clock otherwise. */
double bench_clock(struct pool *pool);

/* Fused multiply-add peak of all threads, 10^9 operations a second (2 an fma), with the widest vectors that `isa` has. */
double bench_peak_flops(struct pool *pool, const char *isa);
/* Less than a millisecond of a product's innermost loop in the first cache, on all threads; returns its operations, 0 where there is none. The rate
 * that it has between a stage's operations is what the machine gave a product in those seconds, whatever peak a short burst reaches. */
double bench_tile(struct pool *pool, const char *isa);
/* Reading memory far larger than the caches, all threads, 10^9 bytes a second; 0 when there is no memory for it. */
double bench_peak_read(struct pool *pool);

/* ---- whole stages: bench_profile.c, bench_stage.c */
struct bench_op {
    int64_t calls;
    double seconds, flops, bytes; /* as in bench_case, summed over calls */
};
enum { BENCH_OPS = 29 };
struct bench_profile {
    struct bench_op op[BENCH_OPS];
};
const char *bench_op_name(int op);
/* k with every operation timed. One table at a time, and no call before bench_profile_into. */
const struct kernels *bench_profile_wrap(const struct kernels *k);
/* Where operations are added from now on. m: its products of a vocabulary's width are the head's; NULL while there is none. */
void bench_profile_into(struct bench_profile *p, const struct model *m);
/* bench_clock without the time that samples of bench_tile took; one is taken every 50 ms. */
double bench_profile_clock(void);
/* 10^9 operations a second of all samples since bench_profile_wrap; 0: there was none. */
double bench_profile_tile(void);

/* `tare bench step|train|generate`; argv[1] is that word. */
int bench_stage(int argc, char **argv);

#endif
