/* Sixteen floats as one value: a __m512 or a pair of __m256. Every build of the CPU backend is
 * written against this type, so lane l of a reduction and lane l of a block of 16 keys are the same
 * everywhere. Functions repeat exact.h lane by lane. MR x NR is the tile of a product that the
 * registers hold; NRV vectors make NR columns. */
#ifndef TARE_KERNELS_CPU_SIMD_H
#define TARE_KERNELS_CPU_SIMD_H

#include "exact.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
/* A tile held in registers is compiled separately for every number of rows. The emulation of
 * AVX-512 lacks the registers for it, so there one function serves all. */
#ifdef CPU_TILE_512
#define TILE_FUNCTION static __attribute__((noinline))
#define UNROLL
#elif defined(__clang__)
#define TILE_FUNCTION INLINE
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define TILE_FUNCTION INLINE
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { LANES = 16 };

#if defined(__AVX512F__)
#include "arch/avx512.h"
#elif defined(__AVX2__)
#include "arch/avx2.h"
#elif defined(__ARM_NEON)
#include "arch/neon.h"
#else
#error "no header in arch/ for this instruction set"
#endif

INLINE void v_prefetch(const void *p)
{
    __builtin_prefetch(p, 0, 3);
}

#ifndef __AVX512F__
/* Store the lanes whose bits are set in keep next to each other; what follows them up to LANES is
 * overwritten. */
INLINE void v_store_kept(float *to, vf x, unsigned keep)
{
    float lanes[LANES];
    v_store(lanes, x);
    for (; keep; keep &= keep - 1) *to++ = lanes[__builtin_ctz(keep)];
}

#ifdef CPU_DOT
typedef struct {
    int none;
} vbias;
INLINE vbias vbias_make(void)
{
    return (vbias){0};
}
INLINE vf v_biased(const uint8_t *row, const int n, const vbias *c)
{
    float x[LANES];
    (void)c;
    for (int i = 0; i < LANES; i++) x[i] = 0x1p15f + row[4 * i + n];
    return v_load(x);
}
#endif
#endif

enum { NR = NRV * LANES };

INLINE float v_max_of(vf x)
{
    float lane[16], m;
    v_store(lane, x);
    m = lane[0];
    for (int i = 1; i < 16; i++) m = lane[i] > m ? lane[i] : m;
    return m;
}

INLINE vf v_exp(vf x)
{
    const vf low = v_set(EXP_LOW), c = v_max(low, v_min(v_set(EXP_HIGH), x)); /* NaN passes both */
    const vf n = v_round(v_mul(c, v_set(EXP_LOG2E)));
    vf r = v_fma(n, v_set(-EXP_LN2_HIGH), c);
    r = v_fma(n, v_set(-EXP_LN2_LOW), r);
    vf p = v_set(EXP_P0);
    p = v_fma(p, r, v_set(EXP_P1));
    p = v_fma(p, r, v_set(EXP_P2));
    p = v_fma(p, r, v_set(EXP_P3));
    p = v_fma(p, r, v_set(EXP_P4));
    p = v_fma(p, r, v_set(EXP_P5));
    const vf y = v_add(v_fma(p, v_mul(r, r), r), v_set(1.0f));
    return v_zero_where_less(v_mul(y, v_pow2(n)), x, low);
}

#endif
