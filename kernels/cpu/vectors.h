/* Helpers shared by all products: vectors at the edges of a matrix, transposing rows to columns,
 * and sums kept in registers. */
#ifndef TARE_KERNELS_CPU_VECTORS_H
#define TARE_KERNELS_CPU_VECTORS_H

#include "kernels.h"
#include "simd.h"
#include "sizes.h"

#include <string.h>

INLINE vf gemm_load(const float *p, int64_t columns)
{
    return columns >= LANES ? v_load(p) : v_load_n(p, columns > 0 ? columns : 0);
}

INLINE void gemm_store(float *p, vf x, int64_t columns)
{
    if (columns >= LANES)
        v_store(p, x);
    else if (columns > 0)
        v_store_n(p, x, columns);
}

/* Address of number i of rows in fp32 or in bf16 (kernels_ops.h, x_dtype, ...). */
INLINE const void *rows_from(const void *rows, enum dtype dtype, int64_t i)
{
    return (const char *)rows + i * dtype_bytes(dtype);
}

INLINE vf rows_load(const void *rows, enum dtype dtype, int64_t i, int64_t columns)
{
    const void *from = rows_from(rows, dtype, i);
    uint16_t some[LANES] = {0};
    if (dtype != DTYPE_BF16) return gemm_load(from, columns);
    if (columns >= LANES) return v_load_bf16(from);
    memcpy(some, from, columns > 0 ? (size_t)columns * sizeof *some : 0);
    return v_load_bf16(some);
}

INLINE void rows_store(void *rows, enum dtype dtype, int64_t i, vf x, int64_t columns)
{
    uint16_t some[LANES], *to = (uint16_t *)rows + i;
    if (dtype != DTYPE_BF16) {
        gemm_store((float *)rows + i, x, columns);
    } else if (columns >= LANES) {
        v_store_bf16(to, x);
    } else if (columns > 0) {
        v_store_bf16(some, x);
        memcpy(to, some, (size_t)columns * sizeof *some);
    }
}

/* Load x[j]: number j of up to sixteen rows, `stride` apart; 0 beyond `rows` and `columns`. */
INLINE void gemm_columns(vf x[LANES], const void *from, enum dtype dtype, int64_t stride, int64_t rows, int64_t columns)
{
    UNROLL for (int r = 0; r < LANES; r++) x[r] = r < rows ? rows_load(from, dtype, r * stride, columns) : v_zero();
    v_transpose(x);
}

INLINE vf v_wide(vf words, const int half) /* the first or the last 16 of 32 bf16 numbers as fp32 */
{
    return v_zip(v_zero(), words, half);
}

#endif
