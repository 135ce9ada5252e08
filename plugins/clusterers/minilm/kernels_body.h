/* The operations of kernels.h over vectors of the includer:
 *   TARGET            function attribute for the CPU
 *   VEC, IVEC, WIDTH  vector of floats, of int32, and how many; WIDTH divides 16
 *   FMA(a, b, c)      a * b + c, rounded once where the CPU can
 *   MAX(a, b)         larger of two vectors
 *   ROWS              rows of a tile, so that ROWS * 16 / WIDTH accumulators fit into registers
 *   TABLE, KERNELS_NAME  the table to define
 * Included once by each kernels_*.c. */
#include "kernels.h"

#include <math.h>
#include <string.h>

enum { VECS = PANEL / WIDTH, K_BLOCK = 512, T_BLOCK = 120 };
#define INLINE static inline __attribute__((always_inline))

TARGET INLINE VEC splat(float x)
{
    return x - (VEC){0};
}

TARGET INLINE VEC load(const float *p)
{
    VEC v;
    memcpy(&v, p, sizeof v);
    return v;
}

TARGET INLINE void store(float *p, VEC v)
{
    memcpy(p, &v, sizeof v);
}

/* ---------------------------------------------------------------- products */

/* R rows by 16 columns over kb of the inner index; first: from 0, else from y. bias only with the last part. */
TARGET INLINE void tile(const int R, float *y, int64_t ldy, const float *x, int64_t ldx, const float *panel, const float *bias,
                        int64_t kb, int first)
{
    VEC acc[ROWS][VECS];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int v = 0; v < VECS; v++) {
            acc[r][v] = splat(0);
            if (!first) acc[r][v] = load(y + r * ldy + v * WIDTH);
        }
    for (int64_t k = 0; k < kb; k++) {
        VEC w[VECS];
        for (int v = 0; v < VECS; v++) w[v] = load(panel + k * PANEL + v * WIDTH);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const VEC a = splat(x[r * ldx + k]);
#pragma GCC unroll 4
            for (int v = 0; v < VECS; v++) acc[r][v] = FMA(a, w[v], acc[r][v]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int v = 0; v < VECS; v++) {
            if (bias) acc[r][v] += load(bias + v * WIDTH);
            store(y + r * ldy + v * WIDTH, acc[r][v]);
        }
}

TARGET static void product(float *y, int64_t ldy, const float *x, int64_t ldx, const float *packed, const float *bias, int64_t t,
                           int64_t n, int64_t k)
{
    for (int64_t t0 = 0; t0 < t; t0 += T_BLOCK) {
        const int64_t rows = t - t0 < T_BLOCK ? t - t0 : T_BLOCK;
        for (int64_t k0 = 0; k0 < k || !k0; k0 += K_BLOCK) {
            const int64_t kb = k - k0 < K_BLOCK ? k - k0 : K_BLOCK;
            const int last = k0 + kb >= k;
            for (int64_t n0 = 0; n0 < n; n0 += PANEL) {
                const float *panel = packed + n0 * k + k0 * PANEL, *b = bias && last ? bias + n0 : NULL;
                float *to = y + t0 * ldy + n0;
                const float *from = x + t0 * ldx + k0;
                int64_t r = 0;
                for (; r + ROWS <= rows; r += ROWS) tile(ROWS, to + r * ldy, ldy, from + r * ldx, ldx, panel, b, kb, !k0);
                for (; r + 2 <= rows; r += 2) tile(2, to + r * ldy, ldy, from + r * ldx, ldx, panel, b, kb, !k0);
                if (r < rows) tile(1, to + r * ldy, ldy, from + r * ldx, ldx, panel, b, kb, !k0);
            }
        }
    }
}

/* ---------------------------------------------------------------- element-wise */

/* e^x for x <= 0 (and a little above): x = n ln 2 + r, |r| <= ln 2 / 2; a polynomial of degree 6 in r; relative error below 2e-7 */
TARGET INLINE VEC exp_vec(VEC x)
{
    x = MAX(x, splat(-87));
    const VEC shift = splat(12582912.0f), n = FMA(x, splat(1.44269504f), shift) - shift; /* rounds to whole numbers */
    const VEC r = FMA(n, splat(2.12194440e-4f), FMA(n, splat(-0.693359375f), x));
    VEC p = splat(1.9875691500e-4f);
    p = FMA(p, r, splat(1.3981999507e-3f));
    p = FMA(p, r, splat(8.3334519073e-3f));
    p = FMA(p, r, splat(4.1665795894e-2f));
    p = FMA(p, r, splat(1.6666665459e-1f));
    p = FMA(p, r, splat(5.0000001201e-1f));
    p = FMA(p, r * r, r + splat(1));
    union {
        IVEC i;
        VEC f;
    } two = {.i = (__builtin_convertvector(n, IVEC) + 127) << 23};
    return p * two.f;
}

/* erf by Abramowitz and Stegun 7.1.26: absolute error below 2e-7 */
TARGET static void gelu(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += WIDTH) {
        const VEC v = load(x + i), z = v * splat(0.70710678f), a = MAX(z, -z);
        const VEC t = splat(1) / FMA(a, splat(0.3275911f), splat(1));
        VEC p = splat(1.061405429f);
        p = FMA(p, t, splat(-1.453152027f));
        p = FMA(p, t, splat(1.421413741f));
        p = FMA(p, t, splat(-0.284496736f));
        p = FMA(p, t, splat(0.254829592f));
        const VEC tail = p * t * exp_vec(-(a * a)); /* 1 - erf(|z|) */
        const VEC positive = MAX(v, splat(0)), half = splat(0.5f) * MAX(v, -v);
        store(x + i, positive - half * tail); /* x >= 0: x - x tail / 2; x < 0: x tail / 2 */
    }
}

TARGET INLINE float add_all(VEC v)
{
    float lane[WIDTH];
    store(lane, v);
    for (int half = WIDTH / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

TARGET static void softmax(float *x, int64_t ld, int64_t t, int64_t n, float scale)
{
    const int64_t padded = (n + WIDTH - 1) / WIDTH * WIDTH;
    for (int64_t row = 0; row < t; row++) {
        float *p = x + row * ld, most = p[0];
        for (int64_t i = 1; i < n; i++) most = p[i] > most ? p[i] : most;
        for (int64_t i = n; i < padded; i++) p[i] = -INFINITY; /* e^-87 at most; set to 0 below */
        const VEC m = splat(most), s = splat(scale);
        for (int64_t i = 0; i < padded; i += WIDTH) store(p + i, exp_vec((load(p + i) - m) * s));
        for (int64_t i = n; i < ld; i++) p[i] = 0;
        VEC sum = splat(0);
        for (int64_t i = 0; i < padded; i += WIDTH) sum += load(p + i);
        const VEC scaled = splat(1 / add_all(sum));
        for (int64_t i = 0; i < padded; i += WIDTH) store(p + i, load(p + i) * scaled);
    }
}

TARGET static void norm(float *x, const float *y, const float *gain, const float *bias, int64_t t, int64_t n, float eps)
{
    for (int64_t row = 0; row < t; row++) {
        float *p = x + row * n;
        VEC sum = splat(0), squares = splat(0);
        for (int64_t i = 0; i < n; i += WIDTH) {
            VEC v = load(p + i);
            if (y) v += load(y + row * n + i);
            store(p + i, v);
            sum += v;
        }
        const VEC mean = splat(add_all(sum) / (float)n);
        for (int64_t i = 0; i < n; i += WIDTH) {
            const VEC d = load(p + i) - mean;
            squares = FMA(d, d, squares);
        }
        const VEC scale = splat(1 / sqrtf(add_all(squares) / (float)n + eps));
        for (int64_t i = 0; i < n; i += WIDTH) store(p + i, FMA((load(p + i) - mean) * scale, load(gain + i), load(bias + i)));
    }
}

const struct bert_kernels TABLE = {.name = KERNELS_NAME, .product = product, .gelu = gelu, .softmax = softmax, .norm = norm};
