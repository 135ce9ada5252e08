/* The vectors of simd.h with AVX-512 F, BW, DQ and VL, and with CPU_DOT also BF16: one register of
 * sixteen floats. */
#ifndef TARE_KERNELS_CPU_ARCH_AVX512_H
#define TARE_KERNELS_CPU_ARCH_AVX512_H

#include <immintrin.h>

enum { MR = 14, NRV = 2 };

typedef __m512 vf;

/* Keep x in its register up to this point. */
INLINE void v_keep(vf x)
{
    __asm__ volatile("" ::"v"(x));
}
INLINE vf v_zero(void)
{
    return _mm512_setzero_ps();
}
INLINE vf v_set(float x)
{
    return _mm512_set1_ps(x);
}
INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
INLINE void v_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}
INLINE __mmask16 v_mask(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}
INLINE vf v_load_int8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
INLINE vf v_load_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
INLINE vf v_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(v_mask(n), p);
}
INLINE void v_store_n(float *p, vf a, int64_t n)
{
    _mm512_mask_storeu_ps(p, v_mask(n), a);
}
INLINE vf v_first_n(vf a, int64_t n)
{
    return _mm512_maskz_mov_ps(v_mask(n), a);
}
INLINE vf v_select_n(vf a, vf b, int64_t n)
{
    return _mm512_mask_mov_ps(b, v_mask(n), a);
}
INLINE vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
INLINE vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
INLINE vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
INLINE vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* Returns b if either is NaN. */
INLINE vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
INLINE vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
INLINE vf v_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
INLINE vf v_neg_abs(vf a)
{
    return _mm512_or_ps(a, _mm512_set1_ps(-0.0f));
}
INLINE vf v_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
INLINE vf v_pow2(vf n)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
INLINE vf v_zero_where_less(vf y, vf a, vf b)
{
    return _mm512_maskz_mov_ps((__mmask16)~_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y);
}
INLINE vf v_where_negative(vf test, vf a, vf b)
{
    return _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(test, _mm512_setzero_ps(), _CMP_LT_OQ), a);
}
INLINE unsigned v_bits_at_least(vf a, uint32_t bound)
{
    return _mm512_cmp_epi32_mask(_mm512_castps_si512(a), _mm512_set1_epi32((int32_t)bound), _MM_CMPINT_NLT);
}

INLINE float v_sum(vf a)
{
    const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}

/* Words hold two bf16 numbers each. v_pair rounds two vectors and makes words; v_even and v_odd are
 * their halves as fp32. v_pair_exact keeps denormals, as bf16_from_f32 does. */
INLINE __m512i bf16_16(vf x)
{
    const __m512i u = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1)),
                  nearest = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_mask_or_epi32(nearest, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
}
INLINE vf v_pair_exact(vf even, vf odd)
{
    const __m512i high = _mm512_and_si512(bf16_16(odd), _mm512_set1_epi32((int)0xffff0000u));
    return _mm512_castsi512_ps(_mm512_or_si512(high, _mm512_srli_epi32(bf16_16(even), 16)));
}
INLINE vf v_swap(vf x) /* swaps adjacent lanes */
{
    return _mm512_permute_ps(x, 0xb1);
}
#ifdef CPU_DOT
/* The instruction flushes denormals to zero, which v_dot would do anyway. */
INLINE void v_store_bf16(void *p, vf x) /* sixteen adjacent numbers: eight words */
{
    _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(x));
}
INLINE vf v_words(vf first, vf second) /* thirty-two adjacent numbers */
{
    return _mm512_castsi512_ps((__m512i)_mm512_cvtne2ps_pbh(second, first));
}
INLINE vf v_pair(vf even, vf odd)
{
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                  place = _mm512_or_si512(low, _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(16)), 16));
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(place, (__m512i)_mm512_cvtne2ps_pbh(odd, even)));
}
#else
INLINE void v_store_bf16(void *p, vf x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_16(x), 16)));
}
INLINE vf v_pair(vf even, vf odd)
{
    return v_pair_exact(even, odd);
}
#endif
INLINE vf v_even(vf words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16));
}
INLINE vf v_odd(vf words)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), _mm512_set1_epi32((int)0xffff0000u)));
}
INLINE vf v_round_bf16(vf x)
{
    return v_odd(_mm512_castsi512_ps(bf16_16(x)));
}
INLINE vf v_round_finite_bf16(vf x)
{
    const __m512i u = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    return v_odd(_mm512_castsi512_ps(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)))));
}
#ifdef CPU_DOT
/* each of the first eight lanes, or of the last eight, twice */
INLINE vf v_twice(vf x, const int half)
{
    const __m512i place = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(_mm512_add_epi32(place, _mm512_set1_epi32(8 * half)), x);
}
/* (sum + odd products) + even products, each rounded once; denormals are treated as zero */
INLINE vf v_dot(vf x, vf y, vf sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(x), (__m512bh)_mm512_castps_si512(y));
}
#endif

INLINE void v_transpose(vf x[LANES]) /* swaps lane j of x[i] and lane i of x[j] */
{
    vf t[LANES];
    UNROLL for (int i = 0; i < LANES; i += 2)
    {
        t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    UNROLL for (int i = 0; i < LANES; i += 4) UNROLL for (int j = 0; j < 2; j++)
    {
        const __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + j + 2]);
        x[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        x[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
    UNROLL for (int i = 0; i < LANES; i += 8) UNROLL for (int j = 0; j < 4; j++)
    {
        t[i + j] = _mm512_shuffle_f32x4(x[i + j], x[i + j + 4], 0x88);
        t[i + j + 4] = _mm512_shuffle_f32x4(x[i + j], x[i + j + 4], 0xdd);
    }
    UNROLL for (int j = 0; j < 8; j++)
    {
        x[j] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0x88);
        x[j + 8] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0xdd);
    }
}

/* The mass (exact.h) in two parts of 22 bits, added in 32-bit lanes. The maximum with 0 is 0 where
 * e is NaN. */
typedef struct {
    __m512i high, low;
} vmass;
INLINE vmass vmass_zero(void)
{
    return (vmass){_mm512_setzero_si512(), _mm512_setzero_si512()};
}
INLINE vmass vmass_add(vmass s, vf e)
{
    const vf scaled = v_mul(v_max(e, v_zero()), v_set(0x1p22f));
    const __m512i high = _mm512_cvttps_epi32(scaled);
    const vf rest = v_sub(scaled, _mm512_cvtepi32_ps(high));
    return (vmass){_mm512_add_epi32(s.high, high), _mm512_add_epi32(s.low, _mm512_cvttps_epi32(v_mul(rest, v_set(0x1p22f))))};
}
INLINE uint64_t vmass_sum(vmass s)
{
    int32_t high[16], low[16];
    uint64_t sum = 0;
    _mm512_storeu_si512(high, s.high);
    _mm512_storeu_si512(low, s.low);
    for (int i = 0; i < 16; i++) sum += ((uint64_t)high[i] << 22) + (uint64_t)low[i];
    return sum;
}

/* Store MR numbers of a step of A's tile; the next step overwrites anything beyond them. */
INLINE void v_store_rows(float *to, vf x)
{
    v_store(to, x);
}

/* Interleave the first or the last 16 numbers of two rows of 32 bf16 numbers as words: x's number
 * in the low half, y's in the high half. */
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

/* sum += x y in place. A compiler that may choose the form of the instruction moves sums between
 * registers until none is free, and spills some to the stack (tests/tile_code.py). */
INLINE void v_fma_to(vf *sum, vf x, vf y)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(y));
}
#ifdef CPU_DOT
INLINE void v_dot_to(vf *sum, vf x, vf y)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(y));
}
#endif

/* Store the lanes whose bits are set in keep next to each other; what follows them up to LANES is
 * overwritten. */
INLINE void v_store_kept(float *to, vf x, unsigned keep)
{
    v_store(to, _mm512_maskz_compress_ps((__mmask16)keep, x));
}

/* Eight sums in double. */
typedef struct {
    __m256d low, high;
} vd8;
INLINE vd8 vd8_zero(void)
{
    return (vd8){_mm256_setzero_pd(), _mm256_setzero_pd()};
}
INLINE vd8 vd8_add_squares(vd8 s, const float *x)
{
    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x)), b = _mm256_cvtps_pd(_mm_loadu_ps(x + 4));
    return (vd8){_mm256_fmadd_pd(a, a, s.low), _mm256_fmadd_pd(b, b, s.high)};
}
INLINE void vd8_store(double lane[8], vd8 s)
{
    _mm256_storeu_pd(lane, s.low);
    _mm256_storeu_pd(lane + 4, s.high);
}

#ifdef CPU_DOT
/* Constants of v_biased. GCC 14 would keep them on the stack and read them in every step; values of
 * unknown origin stay in registers. */
typedef struct {
    __m512i byte, exponent; /* 0xff00, 0x47000000 in each lane */
} vbias;
INLINE vbias vbias_make(void)
{
    vbias c = {_mm512_set1_epi32(0xff00), _mm512_set1_epi32(0x47000000)};
    __asm__("" : "+v"(c.byte), "+v"(c.exponent));
    return c;
}
/* 2^15 + byte n of each of sixteen words: a float of exponent 15 counts whole numbers from its bit 8
 * up, so a shift puts the byte there. */
INLINE vf v_biased(const uint8_t *row, const int n, const vbias *c)
{
    __m512i x = _mm512_loadu_si512(row);
    if (n == 0) x = _mm512_slli_epi32(x, 8);
    if (n == 2) x = _mm512_srli_epi32(x, 8);
    if (n == 3) x = _mm512_srli_epi32(x, 16);
    /* and, or */
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(x, c->byte, c->exponent, 0xea));
}
#endif

INLINE void cpu_pause(void)
{
    _mm_pause();
}

#endif
