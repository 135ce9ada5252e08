/* Measurements of `tare bench`: kernels at the shapes of real models, and the peaks of the machine
 * that they are compared with. */
#ifndef TARE_CLI_BENCH_H
#define TARE_CLI_BENCH_H

#include "kernels.h"
#include "model/model.h"

/* One operation at one shape. flops and bytes are the minimum that its definition needs for a run.
 */
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

/* Seconds of this thread's CPU time if the pool has one thread, which other work on the machine
 * disturbs less; seconds of wall-clock time otherwise. */
double bench_clock(struct pool *pool);

/* Fused multiply-add peak of all threads in 10^9 operations per second (an fma counts 2), with the
 * widest vectors of `isa`. */
double bench_peak_flops(struct pool *pool, const char *isa);
/* Runs a matrix product's innermost loop in the first-level cache for less than a millisecond on
 * all threads. Returns its operations, 0 if there is no such loop. Its rate between the operations
 * of a stage is the rate available to a product at that time, regardless of the peak of a short
 * burst. */
double bench_tile(struct pool *pool, const char *isa);
/* Rate of reading memory far larger than the caches on all threads, in 10^9 bytes per second; 0 if
 * the allocation fails. */
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
/* Returns a table that times every operation of k. One table at a time; bench_profile_into must be
 * called before its first operation. */
const struct kernels *bench_profile_wrap(const struct kernels *k);
/* Sets the profile that receives operations from now on. Products of m's vocabulary width count as
 * the head's; m may be NULL. */
void bench_profile_into(struct bench_profile *p, const struct model *m);
/* bench_clock minus the time spent in samples of bench_tile, taken every 50 ms. */
double bench_profile_clock(void);
/* Rate of all samples since bench_profile_wrap, in 10^9 operations per second; 0 without samples.
 */
double bench_profile_tile(void);

/* Runs `tare bench step|train|generate`; argv[1] is that word. */
int bench_stage(int argc, char **argv);

#endif
