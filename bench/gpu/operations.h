/* Timing of single operations (operations.c). */
#ifndef TARE_BENCH_GPU_OPERATIONS_H
#define TARE_BENCH_GPU_OPERATIONS_H

#include "kernels.h"

struct operations_shape {
    const char *name;
    int64_t hidden, heads, kv_heads, head_dim, intermediate, vocab;
    bool batch_invariant;
};

/* Print one JSON object per line for each operation on that many rows. */
tare_status operations_run(const struct kernels *k, const struct operations_shape *s, int64_t rows, struct err *e);

#endif
