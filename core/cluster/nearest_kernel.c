/* The product of nearest.c: rows against a panel of 16 centroids. acc[row, lane] stays in registers
 * over all of D: 6 rows x 2 vectors on AVX2 (12 accumulators, 2 loads of the panel, 1 broadcast),
 * 12 rows x 1 vector on AVX-512, 6 rows x 4 vectors on NEON. */
#include "cluster/nearest.h"

#include <stdlib.h>
#include <string.h>

static void scores_plain(const float *const *x, int64_t rows, const struct nearest_panel *panel, struct lane_best *best,
                         float *dots)
{
    for (int64_t r = 0; r < rows; r++) {
        float acc[NEAREST_LANES] = {0};
        for (int64_t i = 0; i < panel->d; i++)
            for (int l = 0; l < NEAREST_LANES; l++) acc[l] += x[r][i] * panel->centroids[i * NEAREST_LANES + l];
        if (dots) {
            memcpy(dots + r * NEAREST_LANES, acc, sizeof acc);
            continue;
        }
        for (int l = 0; l < NEAREST_LANES; l++) {
            const float s = panel->half_norms[l] - acc[l], was = best[r].best[l], larger = s > was ? s : was;
            best[r].second[l] = larger < best[r].second[l] ? larger : best[r].second[l];
            best[r].panel[l] = s < was ? panel->index : best[r].panel[l];
            best[r].best[l] = s < was ? s : was;
        }
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))

AVX2 static inline __attribute__((always_inline)) void take_avx2(__m256 s, int32_t index, float *best, float *second,
                                                                 int32_t *panel)
{
    const __m256 was = _mm256_load_ps(best), less = _mm256_cmp_ps(s, was, _CMP_LT_OQ);
    const __m256 at =
        _mm256_blendv_ps(_mm256_load_ps((const float *)(const void *)panel), _mm256_castsi256_ps(_mm256_set1_epi32(index)), less);
    _mm256_store_ps(second, _mm256_min_ps(_mm256_max_ps(s, was), _mm256_load_ps(second)));
    _mm256_store_ps((float *)(void *)panel, at);
    _mm256_store_ps(best, _mm256_min_ps(s, was));
}

/* R is a constant at every call. Every loop over it must unroll; otherwise acc is an array in
 * memory that is stored in each step. */
AVX2 static inline __attribute__((always_inline)) void
tile_avx2(const int R, const float *const *x, const struct nearest_panel *panel, struct lane_best *best, float *dots)
{
    const float *const c = panel->centroids, *const half_norms = panel->half_norms;
    const int64_t d = panel->d;
    const int32_t index = panel->index;
    __m256 low[6], high[6];
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) low[r] = high[r] = _mm256_setzero_ps();
    for (int64_t i = 0; i < d; i++) {
        const __m256 b0 = _mm256_load_ps(c + i * NEAREST_LANES), b1 = _mm256_load_ps(c + i * NEAREST_LANES + 8);
#pragma GCC unroll 6
        for (int r = 0; r < R; r++) {
            const __m256 a = _mm256_broadcast_ss(x[r] + i);
            low[r] = _mm256_fmadd_ps(a, b0, low[r]);
            high[r] = _mm256_fmadd_ps(a, b1, high[r]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
        if (dots) {
            _mm256_storeu_ps(dots + r * NEAREST_LANES, low[r]);
            _mm256_storeu_ps(dots + r * NEAREST_LANES + 8, high[r]);
        } else {
            take_avx2(_mm256_sub_ps(_mm256_load_ps(half_norms), low[r]), index, best[r].best, best[r].second, best[r].panel);
            take_avx2(_mm256_sub_ps(_mm256_load_ps(half_norms + 8), high[r]), index, best[r].best + 8, best[r].second + 8,
                      best[r].panel + 8);
        }
    }
}

AVX2 static void scores_avx2(const float *const *x, int64_t rows, const struct nearest_panel *panel, struct lane_best *best,
                             float *dots)
{
    int64_t r = 0;
    for (; r + 6 <= rows; r += 6) tile_avx2(6, x + r, panel, best ? best + r : NULL, dots ? dots + r * NEAREST_LANES : NULL);
    for (; r < rows; r++) tile_avx2(1, x + r, panel, best ? best + r : NULL, dots ? dots + r * NEAREST_LANES : NULL);
}

AVX512 static inline __attribute__((always_inline)) void
tile_avx512(const int R, const float *const *x, const struct nearest_panel *panel, struct lane_best *best, float *dots)
{
    const float *const c = panel->centroids, *const half_norms = panel->half_norms;
    const int64_t d = panel->d;
    const int32_t index = panel->index;
    __m512 acc[12];
#pragma GCC unroll 12
    for (int r = 0; r < R; r++) acc[r] = _mm512_setzero_ps();
    for (int64_t i = 0; i < d; i++) {
        const __m512 b = _mm512_load_ps(c + i * NEAREST_LANES);
#pragma GCC unroll 12
        for (int r = 0; r < R; r++) acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(x[r][i]), b, acc[r]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; r++) {
        if (dots) {
            _mm512_storeu_ps(dots + r * NEAREST_LANES, acc[r]);
            continue;
        }
        struct lane_best *b = &best[r];
        const __m512 s = _mm512_sub_ps(_mm512_load_ps(half_norms), acc[r]), was = _mm512_load_ps(b->best);
        const __mmask16 less = _mm512_cmp_ps_mask(s, was, _CMP_LT_OQ);
        _mm512_store_ps(b->second, _mm512_min_ps(_mm512_max_ps(s, was), _mm512_load_ps(b->second)));
        _mm512_mask_store_epi32(b->panel, less, _mm512_set1_epi32(index));
        _mm512_store_ps(b->best, _mm512_min_ps(s, was));
    }
}

AVX512 static void scores_avx512(const float *const *x, int64_t rows, const struct nearest_panel *panel, struct lane_best *best,
                                 float *dots)
{
    int64_t r = 0;
    for (; r + 12 <= rows; r += 12) tile_avx512(12, x + r, panel, best ? best + r : NULL, dots ? dots + r * NEAREST_LANES : NULL);
    for (; r < rows; r++) tile_avx512(1, x + r, panel, best ? best + r : NULL, dots ? dots + r * NEAREST_LANES : NULL);
}
#elif defined(__aarch64__)
#include "kernels/cpu/simd.h"

INLINE void take_neon(vf s, int32_t index, struct lane_best *b)
{
    const vf was = v_load(b->best);
    for (int i = 0; i < 4; i++) {
        const int32x4_t at = vbslq_s32(vcltq_f32(s.v[i], was.v[i]), vdupq_n_s32(index), vld1q_s32(b->panel + 4 * i));
        vst1q_s32(b->panel + 4 * i, at);
    }
    v_store(b->second, v_min(v_max(s, was), v_load(b->second)));
    v_store(b->best, v_min(s, was));
}

INLINE void tile_neon(const int R, const float *const *x, const struct nearest_panel *panel, struct lane_best *best, float *dots)
{
    vf acc[6];
    UNROLL for (int r = 0; r < R; r++) acc[r] = v_zero();
    for (int64_t i = 0; i < panel->d; i++) {
        const vf b = v_load(panel->centroids + i * NEAREST_LANES);
        UNROLL for (int r = 0; r < R; r++) acc[r] = v_fma(v_set(x[r][i]), b, acc[r]);
    }
    UNROLL for (int r = 0; r < R; r++)
    {
        if (dots)
            v_store(dots + r * NEAREST_LANES, acc[r]);
        else
            take_neon(v_sub(v_load(panel->half_norms), acc[r]), panel->index, best + r);
    }
}

static void scores_neon(const float *const *x, int64_t rows, const struct nearest_panel *panel, struct lane_best *best, float *dots)
{
    int64_t r = 0;
    for (; r + 6 <= rows; r += 6) tile_neon(6, x + r, panel, best ? best + r : NULL, dots ? dots + r * NEAREST_LANES : NULL);
    for (; r < rows; r++) tile_neon(1, x + r, panel, best ? best + r : NULL, dots ? dots + r * NEAREST_LANES : NULL);
}
#endif

nearest_kernel nearest_best_kernel(void)
{
    const char *mask = getenv("TARE_CPU");
    if (mask && !strcmp(mask, "ref")) return scores_plain;
#if defined(__x86_64__)
    const int only_avx2 = mask && !strcmp(mask, "avx2");
    if (!only_avx2 && __builtin_cpu_supports("avx512f")) return scores_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return scores_avx2;
    return scores_plain;
#elif defined(__aarch64__)
    return scores_neon;
#else
    return scores_plain;
#endif
}
