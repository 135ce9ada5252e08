/* Costs of operations by their definition in kernels.h: floating-point operations, and bytes of
 * memory when every operand is moved once. Keys and values are fp32, as the CPU backends keep them;
 * rows have the precision that the operation names. Benchmarks compare with these. */
#ifndef TARE_KERNELS_COST_H
#define TARE_KERNELS_COST_H

#include "kernels.h"

struct kernel_cost {
    double flops, bytes;
};

/* struct kernel_cost cost_NAME(const struct op_NAME *) */
#define COST_ENTRY(NAME) struct kernel_cost cost_##NAME(const struct op_##NAME *o);
KERNEL_OPERATIONS(COST_ENTRY)
COST_ENTRY(matmul_low_rank)
COST_ENTRY(matmul_dx_low_rank)
COST_ENTRY(low_rank_dw)
#undef COST_ENTRY

#endif
