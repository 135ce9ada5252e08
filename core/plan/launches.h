/* The kernels that the CUDA backend launches for a run, by arithmetic: for each of them launches, operations, bytes and the seconds that a device's peaks
 * allow at least (a roofline). Nothing is measured, and nothing runs: the model's own code is walked on the backend that counts (kernels_counting), and
 * each operation is taken apart into the launches of kernels/cuda.
 *
 * Bytes are those of the device's memory when a launch reads and writes each operand once; what stays in the second cache between two launches is not
 * known here, so small launches may be faster than said. */
#ifndef TARE_CORE_PLAN_LAUNCHES_H
#define TARE_CORE_PLAN_LAUNCHES_H

#include "plan/plan.h"

struct launch {
    const char *kernel;
    int64_t launches;
    double flops, bytes, seconds; /* flops: of tensor cores only */
    double of_compute;            /* the seconds that operations and not bytes decide */
};

enum launch_stage { LAUNCH_PREFILL, LAUNCH_DECODE, LAUNCH_MICRO_BATCH, LAUNCH_OPTIMIZER, LAUNCH_STAGES };
extern const char *const LAUNCH_STAGE_NAMES[LAUNCH_STAGES];

enum { LAUNCH_KERNELS = 48 };
struct launch_stage_cost {
    char what[96]; /* "a micro-batch of 16384 rows" */
    struct launch kernel[LAUNCH_KERNELS];
    int n;
    double useful; /* operations of the products and of attention by their definition, recomputation left out */
    double seconds;
};

struct launches {
    struct launch_stage_cost stage[LAUNCH_STAGES];
};

/* p: made, of a GPU whose flops and bandwidth are known (else TARE_E_CONFIG). */
tare_status launches_make(const struct plan *p, struct launches *out, struct err *e);
tare_status launches_print(const struct plan *p, const struct launches *l, struct str *out, struct err *e);
/* A new list: one object a stage. */
tare_status launches_json(const struct launches *l, json_t **out, struct err *e);

/* ---- launches_tally.c: kernels that go on to another table and add what the CUDA backend would launch to `into`. One at a time on a thread. */
struct launch_rates {
    double flops, bandwidth;
    bool batch_invariant, wgmma; /* wgmma: a GPU that has it */
};
void launches_tally(struct kernels *k, struct launch_rates rates);
void launches_into(struct launch_stage_cost *into); /* NULL: nowhere */
/* With batch_invariant: the most room that a product in bf16 takes for the sums of what K is cut into, whatever its rows. */
int64_t launches_parts_bytes(int64_t n, int64_t k);

#endif
