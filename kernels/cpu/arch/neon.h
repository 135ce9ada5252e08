/* The vectors of simd.h with Advanced SIMD (NEON) on aarch64: four registers of four floats. BFDOT
 * rounds in another way than exact.h and is not used. */
#ifndef TARE_KERNELS_CPU_ARCH_NEON_H
#define TARE_KERNELS_CPU_ARCH_NEON_H

#include <arm_neon.h>
#include <string.h>

/* 24 registers hold a tile, four a row of B, and the rest rows of A. */
enum { MR = 6, NRV = 1 };

typedef struct {
    float32x4_t v[4];
} vf;

/* An expression of x.v[i], ..., for the four registers. */
#define FOUR(X) ((vf){{X(0), X(1), X(2), X(3)}})
#define BITS(X) vreinterpretq_u32_f32(X)
#define FLOATS(X) vreinterpretq_f32_u32(X)

INLINE void v_keep(vf x)
{
    __asm__ volatile("" ::"w"(x.v[0]), "w"(x.v[1]), "w"(x.v[2]), "w"(x.v[3]));
}
INLINE vf v_set(float x)
{
#define X(I) vdupq_n_f32(x)
    return FOUR(X);
#undef X
}
INLINE vf v_zero(void)
{
    return v_set(0);
}
INLINE vf v_load(const float *p)
{
#define X(I) vld1q_f32(p + 4 * (I))
    return FOUR(X);
#undef X
}
INLINE void v_store(float *p, vf x)
{
    for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, x.v[i]);
}
INLINE vf v_load_int8(const void *p)
{
    const int8x16_t x = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_s8(vget_high_s8(x));
    return (vf){{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}
INLINE vf v_load_bf16(const void *p)
{
#define X(I) FLOATS(vshll_n_u16(vld1_u16((const uint16_t *)p + 4 * (I)), 16))
    return FOUR(X);
#undef X
}
INLINE vf v_load_n(const float *p, int64_t n)
{
    float some[LANES] = {0};
    memcpy(some, p, (size_t)(n < LANES ? n : LANES) * sizeof *some);
    return v_load(some);
}
INLINE void v_store_n(float *p, vf x, int64_t n)
{
    float some[LANES];
    v_store(some, x);
    memcpy(p, some, (size_t)(n < LANES ? n : LANES) * sizeof *some);
}
INLINE vf v_select_n(vf x, vf y, int64_t n) /* the first n lanes of x, the others of y */
{
    static const int32_t lanes[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int32x4_t limit = vdupq_n_s32((int32_t)(n < 0 ? 0 : n > LANES ? LANES : n));
#define X(I) vbslq_f32(vcltq_s32(vld1q_s32(lanes + 4 * (I)), limit), x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_first_n(vf x, int64_t n)
{
    return v_select_n(x, v_zero(), n);
}
INLINE vf v_add(vf x, vf y)
{
#define X(I) vaddq_f32(x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_sub(vf x, vf y)
{
#define X(I) vsubq_f32(x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_mul(vf x, vf y)
{
#define X(I) vmulq_f32(x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_div(vf x, vf y)
{
#define X(I) vdivq_f32(x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_fma(vf x, vf y, vf z)
{
#define X(I) vfmaq_f32(z.v[I], x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
/* Returns y if either is NaN, and if both are zeros: the comparison is that of the other sets, not of
 * FMAX. */
INLINE vf v_max(vf x, vf y)
{
#define X(I) vbslq_f32(vcgtq_f32(x.v[I], y.v[I]), x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_min(vf x, vf y)
{
#define X(I) vbslq_f32(vcltq_f32(x.v[I], y.v[I]), x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_sqrt(vf x)
{
#define X(I) vsqrtq_f32(x.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_neg_abs(vf x)
{
#define X(I) FLOATS(vorrq_u32(BITS(x.v[I]), vdupq_n_u32(0x80000000u)))
    return FOUR(X);
#undef X
}
INLINE vf v_round(vf x)
{
#define X(I) vrndnq_f32(x.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_pow2(vf n)
{
#define X(I) vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n.v[I]), vdupq_n_s32(127)), 23))
    return FOUR(X);
#undef X
}
INLINE vf v_zero_where_less(vf y, vf x, vf b)
{
#define X(I) FLOATS(vbicq_u32(BITS(y.v[I]), vcltq_f32(x.v[I], b.v[I])))
    return FOUR(X);
#undef X
}
INLINE vf v_where_negative(vf test, vf x, vf y) /* test is not -0 */
{
#define X(I) vbslq_f32(vcltzq_f32(test.v[I]), x.v[I], y.v[I])
    return FOUR(X);
#undef X
}
INLINE unsigned v_bits_at_least(vf x, uint32_t bound)
{
    static const uint32_t places[LANES] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    const int32x4_t limit = vdupq_n_s32((int32_t)bound);
    uint32x4_t all = vdupq_n_u32(0);
    for (int i = 0; i < 4; i++)
        all = vorrq_u32(all, vandq_u32(vcgeq_s32(vreinterpretq_s32_f32(x.v[i]), limit), vld1q_u32(places + 4 * i)));
    return vaddvq_u32(all);
}

INLINE float v_sum(vf x)
{
    const float32x4_t low = vaddq_f32(x.v[0], x.v[2]), high = vaddq_f32(x.v[1], x.v[3]), c = vaddq_f32(low, high);
    const float32x2_t d = vadd_f32(vget_low_f32(c), vget_high_f32(c));
    return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}

/* Rounds to bf16 in the upper half of each word; a NaN becomes quiet. */
INLINE uint32x4_t bf16_4(float32x4_t x)
{
    const uint32x4_t u = BITS(x), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1)),
                     nearest = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff))), quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    return vbslq_u32(vceqq_f32(x, x), nearest, quiet);
}
INLINE float32x4_t odd_4(uint32x4_t words)
{
    return FLOATS(vandq_u32(words, vdupq_n_u32(0xffff0000u)));
}
INLINE void v_store_bf16(void *p, vf x)
{
    for (int i = 0; i < 4; i++) vst1_u16((uint16_t *)p + 4 * i, vshrn_n_u32(bf16_4(x.v[i]), 16));
}
INLINE vf v_swap(vf x)
{
#define X(I) vrev64q_f32(x.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_round_bf16(vf x)
{
#define X(I) odd_4(bf16_4(x.v[I]))
    return FOUR(X);
#undef X
}
INLINE float32x4_t round_finite_4(float32x4_t x)
{
    const uint32x4_t u = BITS(x), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    return odd_4(vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff))));
}
INLINE vf v_round_finite_bf16(vf x)
{
#define X(I) round_finite_4(x.v[I])
    return FOUR(X);
#undef X
}
INLINE vf v_pair_exact(vf even, vf odd)
{
#define X(I) FLOATS(vsriq_n_u32(BITS(odd_4(bf16_4(odd.v[I]))), bf16_4(even.v[I]), 16))
    return FOUR(X);
#undef X
}
INLINE vf v_pair(vf even, vf odd)
{
    return v_pair_exact(even, odd);
}
INLINE vf v_even(vf words)
{
#define X(I) FLOATS(vshlq_n_u32(BITS(words.v[I]), 16))
    return FOUR(X);
#undef X
}
INLINE vf v_odd(vf words)
{
#define X(I) odd_4(BITS(words.v[I]))
    return FOUR(X);
#undef X
}

INLINE void transpose_4(float32x4_t x[4])
{
    const float32x4x2_t a = vtrnq_f32(x[0], x[1]), b = vtrnq_f32(x[2], x[3]);
    x[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    x[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    x[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    x[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}
INLINE void v_transpose(vf x[LANES]) /* swaps lane j of x[i] and lane i of x[j] */
{
    vf y[LANES];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            float32x4_t t[4];
            for (int k = 0; k < 4; k++) t[k] = x[4 * i + k].v[j];
            transpose_4(t);
            for (int k = 0; k < 4; k++) y[4 * j + k].v[i] = t[k];
        }
    for (int i = 0; i < LANES; i++) x[i] = y[i];
}

typedef struct {
    int32x4_t high, low;
} vmass; /* four lanes hold the sums of sixteen */
INLINE vmass vmass_zero(void)
{
    return (vmass){vdupq_n_s32(0), vdupq_n_s32(0)};
}
INLINE vmass vmass_add(vmass s, vf e)
{
    const float32x4_t unit = vdupq_n_f32(0x1p22f), zero = vdupq_n_f32(0);
    for (int i = 0; i < 4; i++) {
        const float32x4_t scaled = vmulq_f32(vbslq_f32(vcgtq_f32(e.v[i], zero), e.v[i], zero), unit);
        const int32x4_t high = vcvtq_s32_f32(scaled);
        const float32x4_t rest = vsubq_f32(scaled, vcvtq_f32_s32(high));
        s.high = vaddq_s32(s.high, high);
        s.low = vaddq_s32(s.low, vcvtq_s32_f32(vmulq_f32(rest, unit)));
    }
    return s;
}
INLINE uint64_t vmass_sum(vmass s)
{
    int32_t high[4], low[4];
    uint64_t sum = 0;
    vst1q_s32(high, s.high);
    vst1q_s32(low, s.low);
    for (int i = 0; i < 4; i++) sum += ((uint64_t)(uint32_t)high[i] << 22) + (uint64_t)(uint32_t)low[i];
    return sum;
}

/* Store MR numbers of a step of A's tile; the next step overwrites anything beyond them. */
INLINE void v_store_rows(float *to, vf x)
{
    vst1q_f32(to, x.v[0]);
    vst1q_f32(to + 4, x.v[1]);
}

/* Interleave the first or the last 16 numbers of two rows of 32 bf16 numbers as words: x's number
 * in the low half, y's in the high half. */
INLINE vf v_zip(vf x, vf y, const int half)
{
    const uint16x8_t a = vreinterpretq_u16_f32(x.v[2 * half]), b = vreinterpretq_u16_f32(y.v[2 * half]),
                     c = vreinterpretq_u16_f32(x.v[2 * half + 1]), d = vreinterpretq_u16_f32(y.v[2 * half + 1]);
    return (vf){{vreinterpretq_f32_u16(vzip1q_u16(a, b)), vreinterpretq_f32_u16(vzip2q_u16(a, b)),
                 vreinterpretq_f32_u16(vzip1q_u16(c, d)), vreinterpretq_f32_u16(vzip2q_u16(c, d))}};
}
/* loads the first sixteen of 32 numbers; the others are unspecified */
INLINE vf v_load_half(const void *p)
{
    const float32x4_t zero = vdupq_n_f32(0);
    return (vf){{vld1q_f32(p), vld1q_f32((const float *)p + 4), zero, zero}};
}

INLINE void v_fma_to(vf *sum, vf x, vf y) /* sum += x y */
{
    *sum = v_fma(x, y, *sum);
}

/* Eight sums in double. */
typedef struct {
    float64x2_t v[4];
} vd8;
INLINE vd8 vd8_zero(void)
{
    const float64x2_t zero = vdupq_n_f64(0);
    return (vd8){{zero, zero, zero, zero}};
}
INLINE vd8 vd8_add_squares(vd8 s, const float *x)
{
    for (int i = 0; i < 4; i++) {
        const float64x2_t a = vcvt_f64_f32(vld1_f32(x + 2 * i));
        s.v[i] = vfmaq_f64(s.v[i], a, a);
    }
    return s;
}
INLINE void vd8_store(double lane[8], vd8 s)
{
    for (int i = 0; i < 4; i++) vst1q_f64(lane + 2 * i, s.v[i]);
}

INLINE void cpu_pause(void)
{
    __asm__ volatile("yield");
}

#endif
