/* The vectors of simd.h with AVX2 and FMA: two registers of eight floats. CPU_TILE_512 emulates the
 * tiles of AVX-512 with them, for tests. */
#ifndef TARE_KERNELS_CPU_ARCH_AVX2_H
#define TARE_KERNELS_CPU_ARCH_AVX2_H

#include <immintrin.h>

#ifdef CPU_TILE_512
enum { MR = 14, NRV = 2 };
#else
enum { MR = 6, NRV = 1 };
#endif

typedef struct {
    __m256 a, b;
} vf;

INLINE void v_keep(vf x)
{
    __asm__ volatile("" ::"x"(x.a), "x"(x.b));
}

#define PAIR(F, X) ((vf){F((X).a), F((X).b)})
#define PAIR2(F, X, Y) ((vf){F((X).a, (Y).a), F((X).b, (Y).b)})

INLINE __m256i v_mask(int64_t n)
{
    static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(mask + 8 - (n < 0 ? 0 : n > 8 ? 8 : n)));
}

INLINE vf v_zero(void)
{
    return (vf){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
INLINE vf v_set(float x)
{
    return (vf){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
INLINE vf v_load(const float *p)
{
    return (vf){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
INLINE vf v_load_int8(const void *p)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)p);
    return (vf){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}
INLINE vf v_load_bf16(const void *p)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)p);
    return (vf){_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)), 16)),
                _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1)), 16))};
}
INLINE void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
INLINE vf v_load_n(const float *p, int64_t n)
{
    return (vf){_mm256_maskload_ps(p, v_mask(n)), n > 8 ? _mm256_maskload_ps(p + 8, v_mask(n - 8)) : _mm256_setzero_ps()};
}
INLINE void v_store_n(float *p, vf x, int64_t n)
{
    _mm256_maskstore_ps(p, v_mask(n), x.a);
    if (n > 8) _mm256_maskstore_ps(p + 8, v_mask(n - 8), x.b);
}
INLINE vf v_first_n(vf x, int64_t n)
{
    return (vf){_mm256_and_ps(x.a, _mm256_castsi256_ps(v_mask(n))), _mm256_and_ps(x.b, _mm256_castsi256_ps(v_mask(n - 8)))};
}
INLINE vf v_select_n(vf x, vf y, int64_t n)
{
    return (vf){_mm256_blendv_ps(y.a, x.a, _mm256_castsi256_ps(v_mask(n))),
                _mm256_blendv_ps(y.b, x.b, _mm256_castsi256_ps(v_mask(n - 8)))};
}
INLINE vf v_add(vf x, vf y)
{
    return PAIR2(_mm256_add_ps, x, y);
}
INLINE vf v_sub(vf x, vf y)
{
    return PAIR2(_mm256_sub_ps, x, y);
}
INLINE vf v_mul(vf x, vf y)
{
    return PAIR2(_mm256_mul_ps, x, y);
}
INLINE vf v_div(vf x, vf y)
{
    return PAIR2(_mm256_div_ps, x, y);
}
INLINE vf v_fma(vf x, vf y, vf z)
{
    return (vf){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
/* Returns y if either is NaN. */
INLINE vf v_max(vf x, vf y)
{
    return PAIR2(_mm256_max_ps, x, y);
}
INLINE vf v_min(vf x, vf y)
{
    return PAIR2(_mm256_min_ps, x, y);
}
INLINE vf v_sqrt(vf x)
{
    return PAIR(_mm256_sqrt_ps, x);
}
INLINE vf v_neg_abs(vf x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (vf){_mm256_or_ps(x.a, sign), _mm256_or_ps(x.b, sign)};
}
#define ROUND8(X) _mm256_round_ps((X), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
INLINE vf v_round(vf x)
{
    return PAIR(ROUND8, x);
}
INLINE __m256 pow2_8(__m256 n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
INLINE vf v_pow2(vf n)
{
    return PAIR(pow2_8, n);
}
INLINE vf v_zero_where_less(vf y, vf x, vf b)
{
    return (vf){_mm256_andnot_ps(_mm256_cmp_ps(x.a, b.a, _CMP_LT_OQ), y.a),
                _mm256_andnot_ps(_mm256_cmp_ps(x.b, b.b, _CMP_LT_OQ), y.b)};
}
INLINE vf v_where_negative(vf test, vf x, vf y) /* test is not -0 */
{
    return (vf){_mm256_blendv_ps(y.a, x.a, test.a), _mm256_blendv_ps(y.b, x.b, test.b)};
}
INLINE unsigned v_bits_at_least(vf x, uint32_t bound)
{
    const __m256i limit = _mm256_set1_epi32((int32_t)bound - 1);
    const unsigned low = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_castps_si256(x.a), limit)));
    const unsigned high = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_castps_si256(x.b), limit)));
    return low | high << 8;
}

INLINE float v_sum(vf x)
{
    const __m256 b = _mm256_add_ps(x.a, x.b);
    const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}

INLINE __m256i bf16_8(__m256 x)
{
    const __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1)),
                  nearest = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
                  quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    return _mm256_blendv_epi8(nearest, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
INLINE __m256 odd_8(__m256 words)
{
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(words), _mm256_set1_epi32((int)0xffff0000u)));
}
INLINE __m256 even_8(__m256 words)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16));
}
INLINE __m256 pair_8(__m256 even, __m256 odd)
{
    const __m256i high = _mm256_castps_si256(odd_8(_mm256_castsi256_ps(bf16_8(odd))));
    return _mm256_castsi256_ps(_mm256_or_si256(high, _mm256_srli_epi32(bf16_8(even), 16)));
}
INLINE void v_store_bf16(void *p, vf x)
{
    const __m256i words = _mm256_packus_epi32(_mm256_srli_epi32(bf16_8(x.a), 16), _mm256_srli_epi32(bf16_8(x.b), 16));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(words, 0xd8));
}
INLINE vf v_swap(vf x)
{
    return (vf){_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)};
}
INLINE vf v_round_bf16(vf x)
{
    return (vf){odd_8(_mm256_castsi256_ps(bf16_8(x.a))), odd_8(_mm256_castsi256_ps(bf16_8(x.b)))};
}
INLINE __m256 round_finite_8(__m256 x)
{
    const __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return odd_8(_mm256_castsi256_ps(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)))));
}
INLINE vf v_round_finite_bf16(vf x)
{
    return PAIR(round_finite_8, x);
}
INLINE vf v_pair_exact(vf even, vf odd)
{
    return (vf){pair_8(even.a, odd.a), pair_8(even.b, odd.b)};
}
INLINE vf v_pair(vf even, vf odd)
{
    return v_pair_exact(even, odd);
}
INLINE vf v_even(vf words)
{
    return (vf){even_8(words.a), even_8(words.b)};
}
INLINE vf v_odd(vf words)
{
    return (vf){odd_8(words.a), odd_8(words.b)};
}
#ifdef CPU_DOT /* emulates the instruction as documented, for tests on a machine without it */
INLINE vf v_dot(vf x, vf y, vf sum)
{
    return v_fma(v_even(x), v_even(y), v_fma(v_odd(x), v_odd(y), sum));
}
INLINE vf v_twice(vf x, const int half)
{
    const __m256 eight = half ? x.b : x.a;
    return (vf){_mm256_permutevar8x32_ps(eight, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
                _mm256_permutevar8x32_ps(eight, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
}
INLINE vf v_words(vf first, vf second)
{
    float words[LANES];
    v_store_bf16(words, first);
    v_store_bf16(words + LANES / 2, second);
    return v_load(words);
}
#endif

INLINE void transpose_8(__m256 x[8])
{
    __m256 t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            x[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
            x[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
        }
    for (int j = 0; j < 4; j++) {
        t[j] = _mm256_permute2f128_ps(x[j], x[j + 4], 0x20);
        t[j + 4] = _mm256_permute2f128_ps(x[j], x[j + 4], 0x31);
    }
    for (int j = 0; j < 8; j++) x[j] = t[j];
}
INLINE void v_transpose(vf x[LANES])
{
    __m256 t[4][8];
    for (int i = 0; i < 8; i++) {
        t[0][i] = x[i].a;
        t[1][i] = x[i + 8].a;
        t[2][i] = x[i].b;
        t[3][i] = x[i + 8].b;
    }
    for (int i = 0; i < 4; i++) transpose_8(t[i]);
    for (int i = 0; i < 8; i++) x[i] = (vf){t[0][i], t[1][i]}, x[i + 8] = (vf){t[2][i], t[3][i]};
}

typedef struct {
    __m256i high, low;
} vmass; /* eight lanes hold both halves of sixteen */
INLINE vmass vmass_zero(void)
{
    return (vmass){_mm256_setzero_si256(), _mm256_setzero_si256()};
}
INLINE vmass vmass_add8(vmass s, __m256 e)
{
    const __m256 unit = _mm256_set1_ps(0x1p22f), scaled = _mm256_mul_ps(_mm256_max_ps(e, _mm256_setzero_ps()), unit);
    const __m256i high = _mm256_cvttps_epi32(scaled);
    const __m256 rest = _mm256_sub_ps(scaled, _mm256_cvtepi32_ps(high));
    return (vmass){_mm256_add_epi32(s.high, high), _mm256_add_epi32(s.low, _mm256_cvttps_epi32(_mm256_mul_ps(rest, unit)))};
}
INLINE vmass vmass_add(vmass s, vf e)
{
    return vmass_add8(vmass_add8(s, e.a), e.b);
}
INLINE uint64_t vmass_sum(vmass s)
{
    int32_t high[8], low[8];
    uint64_t sum = 0;
    _mm256_storeu_si256((__m256i *)high, s.high);
    _mm256_storeu_si256((__m256i *)low, s.low);
    for (int i = 0; i < 8; i++) sum += ((uint64_t)high[i] << 22) + (uint64_t)low[i];
    return sum;
}

/* Store MR numbers of a step of A's tile; the next step overwrites anything beyond them. */
INLINE void v_store_rows(float *to, vf x)
{
#ifdef CPU_TILE_512
    v_store(to, x);
#else
    _mm256_storeu_ps(to, x.a);
#endif
}

/* Interleave the first or the last 16 numbers of two rows of 32 bf16 numbers as words: x's number
 * in the low half, y's in the high half. */
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

/* sum += x y in place. A compiler that may choose the form of the instruction moves sums between
 * registers until none is free, and spills some to the stack (tests/tile_code.py). */
INLINE void v_fma_to(vf *sum, vf x, vf y)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum->a) : "x"(x.a), "x"(y.a));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum->b) : "x"(x.b), "x"(y.b));
}
#ifdef CPU_DOT
INLINE void v_dot_to(vf *sum, vf x, vf y)
{
    *sum = v_dot(x, y, *sum);
}
#endif

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

INLINE void cpu_pause(void)
{
    _mm_pause();
}

#endif
