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

/* Interleave the first or the last 16 numbers of two rows of 32 bf16 numbers as words: x's number
 * in the low half, y's in the high half. */
#ifdef __AVX512F__
INLINE vf v_zip(vf x, vf y, const int half)
{
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                  from = _mm512_add_epi32(low, _mm512_set1_epi32(16 * half)),
                  place = _mm512_or_si512(from, _mm512_slli_epi32(_mm512_add_epi32(from, _mm512_set1_epi32(32)), 16));
    return _mm512_castsi512_ps(_mm512_permutex2var_epi16(_mm512_castps_si512(x), place, _mm512_castps_si512(y)));
}
/* loads the first sixteen of 32 numbers; the others are unspecified */
INLINE vf v_load_half(const void *p)
{
    return _mm512_castsi512_ps(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p)));
}
#else
INLINE vf v_zip(vf x, vf y, const int half)
{
    const __m256i a = _mm256_castps_si256(half ? x.b : x.a), b = _mm256_castps_si256(half ? y.b : y.a),
                  low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
    return (vf){_mm256_castsi256_ps(_mm256_permute2x128_si256(low, high, 0x20)),
                _mm256_castsi256_ps(_mm256_permute2x128_si256(low, high, 0x31))};
}
INLINE vf v_load_half(const void *p)
{
    return (vf){_mm256_loadu_ps(p), _mm256_setzero_ps()};
}
#endif
INLINE vf v_wide(vf words, const int half) /* the first or the last 16 of 32 bf16 numbers as fp32 */
{
    return v_zip(v_zero(), words, half);
}

/* sum += x y in place. A compiler that may choose the form of the instruction moves sums between
 * registers until none is free, and spills some to the stack (tests/tile_code.py). */
#ifdef __AVX512F__
INLINE void v_fma_to(vf *sum, vf x, vf y)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(y));
}
#else
INLINE void v_fma_to(vf *sum, vf x, vf y)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum->a) : "x"(x.a), "x"(y.a));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum->b) : "x"(x.b), "x"(y.b));
}
#endif
#if defined(CPU_DOT) && defined(__AVX512F__)
INLINE void v_dot_to(vf *sum, vf x, vf y)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(y));
}
#elif defined(CPU_DOT)
INLINE void v_dot_to(vf *sum, vf x, vf y)
{
    *sum = v_dot(x, y, *sum);
}
#endif

#endif
