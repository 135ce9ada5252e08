/* The reference backend: every operation in plain C, following its equation. It is built once for
 * any CPU and once with FMA, which only makes it faster: fmaf gives the same bits either way. */
#include "exact.h"
#include "kernels.h"
#include "kernels_cpu.h"

#include "memory.c"

#include "attention.c"
#include "digest.c"
#include "elementwise.c"
#include "head.c"
#include "matmul.c"
#include "norm.c"
#include "optimizer.c"
#include "rope.c"
#include "sample.c"
#include "swiglu.c"

#define ENTRY(NAME) .NAME = ref_##NAME,
const struct kernels REF_TABLE = {
    .name = REF_NAME,
    .backend = &host_backend,
    .windows = 1,
    .row_chains = 1,
    .packed_bytes = matmul_packed_bytes,
    .int8_bytes = matmul_int8_bytes,
    .kv_bytes = cpu_kv_bytes,
    KERNEL_OPERATIONS(ENTRY).matmul_dw_apart = ref_matmul_dw_apart,
};
