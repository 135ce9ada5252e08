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

/* A block of rows goes through all panels, K_BLOCK steps at a time, so that its part of x stays in
 * the second-level cache. */
enum { VECS = PANEL / WIDTH, K_BLOCK = 512, BLOCK_TILES = ROWS < 8 ? 16 : 8 };
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

/* The position of a tile of rows by 16 columns, and the data to prefetch meanwhile: each tile
 * fetches a share of the next panel. */
struct tile {
    float *y;
    int64_t ldy;
    const float *x;
    int64_t ldx;
    const float *panel, *bias; /* bias: NULL except for the last part of the inner index */
    const char *ahead;
    int64_t ahead_step; /* bytes to prefetch for each STEPS of the inner index */
    int first;          /* the chain starts from 0, otherwise from y */
};

/* steps of the inner index in one iteration of the loop; 4 are 8 % slower on Zen 3 */
enum { STEPS = 2 };

TARGET INLINE void tile_step(const int R, VEC acc[ROWS][VECS], const float *x, int64_t ldx, const float *panel)
{
    VEC w[VECS];
    for (int v = 0; v < VECS; v++) w[v] = load(panel + v * WIDTH);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
        const VEC a = splat(x[r * ldx]);
#pragma GCC unroll 4
        for (int v = 0; v < VECS; v++) acc[r][v] = FMA(a, w[v], acc[r][v]);
    }
}

/* Computes R rows by 16 columns over kb of the inner index. */
TARGET INLINE void tile(const int R, const struct tile *t, int64_t kb)
{
    VEC acc[ROWS][VECS];
    const char *ahead = t->ahead;
    const int64_t ldx = t->ldx, step = t->ahead_step;
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int v = 0; v < VECS; v++) {
            acc[r][v] = splat(0);
            if (!t->first) acc[r][v] = load(t->y + r * t->ldy + v * WIDTH);
        }
    int64_t k = 0;
    for (; k + STEPS <= kb; k += STEPS, ahead += step) {
        __builtin_prefetch(ahead);
#pragma GCC unroll 4
        for (int j = 0; j < STEPS; j++) tile_step(R, acc, t->x + k + j, ldx, t->panel + (k + j) * PANEL);
    }
    for (; k < kb; k++) tile_step(R, acc, t->x + k, ldx, t->panel + k * PANEL);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int v = 0; v < VECS; v++) {
            if (t->bias) acc[r][v] += load(t->bias + v * WIDTH);
            store(t->y + r * t->ldy + v * WIDTH, acc[r][v]);
        }
}

TARGET static void tile_rows(int rows, const struct tile *t, int64_t kb)
{
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        if (R <= ROWS) tile(R, t, kb);                                                                                             \
        break;
        TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#undef TILE
    }
}

/* Multiplies tiles of rows row[0] .. row[tiles] with all panels, for kb steps of the inner index
 * from k0 on. o is passed by value: through a pointer clang 14 keeps less of it in registers. */
TARGET static void block_product(const struct bert_product o, int64_t k0, int64_t kb, const int64_t *row, int64_t tiles)
{
    const int64_t n = o.n, k = o.k, iterations = kb / STEPS + 1;
    const int64_t share = (kb * PANEL * (int64_t)sizeof *o.packed + tiles - 1) / tiles;
    struct tile at = {.ldy = o.ldy, .ldx = o.ldx, .ahead_step = (share + iterations - 1) / iterations, .first = !k0};
    for (int64_t n0 = 0; n0 < n; n0 += PANEL) {
        at.panel = o.packed + n0 * k + k0 * PANEL;
        at.ahead = (const char *)(n0 + PANEL < n ? at.panel + k * PANEL : at.panel);
        at.bias = o.bias && k0 + kb >= k ? o.bias + n0 : NULL;
        for (int64_t i = 0; i < tiles; i++, at.ahead += share) {
            at.y = o.y + row[i] * o.ldy + n0;
            at.x = o.x + row[i] * o.ldx + k0;
            tile_rows((int)(row[i + 1] - row[i]), &at, kb);
        }
    }
}

TARGET static void product(const struct bert_product *o)
{
    const int64_t t = o->t, k = o->k, tiles = (t + ROWS - 1) / ROWS, blocks = (tiles + BLOCK_TILES - 1) / BLOCK_TILES;
    int64_t row[BLOCK_TILES + 1];
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t begin = block * tiles / blocks, end = (block + 1) * tiles / blocks;
        for (int64_t i = begin; i <= end; i++) row[i - begin] = i * t / tiles;
        for (int64_t k0 = 0; k0 < k || !k0; k0 += K_BLOCK)
            block_product(*o, k0, k - k0 < K_BLOCK ? k - k0 : K_BLOCK, row, end - begin);
    }
}

/* ---------------------------------------------------------------- element-wise */

/* e^x for x <= 0 (and a little above): x = n ln 2 + r, |r| <= ln 2 / 2; a polynomial of degree 6 in
 * r; relative error below 2e-7 */
TARGET INLINE VEC exp_vec(VEC x)
{
    x = MAX(x, splat(-87));
    /* rounds to whole numbers */
    const VEC shift = splat(12582912.0f), n = FMA(x, splat(1.44269504f), shift) - shift;
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

/* Adds sixteen lanes in one tree, whatever the width of a vector. */
TARGET INLINE float add_all(const VEC v[VECS])
{
    float lane[PANEL];
    for (int i = 0; i < VECS; i++) store(lane + i * WIDTH, v[i]);
#pragma GCC unroll 4
    for (int half = PANEL / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

TARGET INLINE float largest(VEC v)
{
    float lane[WIDTH];
    store(lane, v);
#pragma GCC unroll 4
    for (int half = WIDTH / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int l = 0; l < half; l++) lane[l] = lane[l] > lane[l + half] ? lane[l] : lane[l + half];
    return lane[0];
}

/* The steps of a row depend on each other, so several rows take each step together. */
enum { SOFTMAX_ROWS = 8 };

TARGET static void softmax(float *x, int64_t ld, int64_t t, int64_t n, float scale)
{
    const int64_t padded = (n + PANEL - 1) / PANEL * PANEL;
    const VEC s = splat(scale);
    for (int64_t row = 0; row < t; row += SOFTMAX_ROWS, x += SOFTMAX_ROWS * ld) {
        const int64_t rows = t - row < SOFTMAX_ROWS ? t - row : SOFTMAX_ROWS;
        float most[SOFTMAX_ROWS], sums[SOFTMAX_ROWS];
        for (int64_t r = 0; r < rows; r++) {
            float *p = x + r * ld;
            /* exp_vec clamps e^-inf to at most e^-87; the padding is set to 0 below */
            for (int64_t i = n; i < padded; i++) p[i] = -INFINITY;
            VEC m = load(p);
            for (int64_t i = WIDTH; i < padded; i += WIDTH) m = MAX(m, load(p + i));
            most[r] = largest(m);
        }
        for (int64_t r = 0; r < rows; r++) {
            float *p = x + r * ld;
            const VEC m = splat(most[r]);
            VEC sum[VECS];
            for (int v = 0; v < VECS; v++) sum[v] = splat(0);
            for (int64_t i = 0; i < padded; i += PANEL)
                for (int v = 0; v < VECS; v++) {
                    const VEC e = exp_vec((load(p + i + v * WIDTH) - m) * s);
                    store(p + i + v * WIDTH, e);
                    sum[v] += e;
                }
            sums[r] = add_all(sum);
        }
        for (int64_t r = 0; r < rows; r++) {
            float *p = x + r * ld;
            const VEC scaled = splat(1 / sums[r]);
            for (int64_t i = n; i < ld; i++) p[i] = 0;
            for (int64_t i = 0; i < padded; i += WIDTH) store(p + i, load(p + i) * scaled);
        }
    }
}

TARGET static void norm(const struct bert_norm *o)
{
    const int64_t t = o->t, n = o->n;
    const float *y = o->y, *gain = o->gain, *bias = o->bias, eps = o->eps;
    float *x = o->x;
    for (int64_t row = 0; row < t; row++) {
        float *p = x + row * n;
        VEC sum[VECS], squares[VECS];
        for (int v = 0; v < VECS; v++) sum[v] = squares[v] = splat(0);
        for (int64_t i = 0; i < n; i += PANEL)
            for (int v = 0; v < VECS; v++) {
                VEC x_new = load(p + i + v * WIDTH);
                if (y) x_new += load(y + row * n + i + v * WIDTH);
                store(p + i + v * WIDTH, x_new);
                sum[v] += x_new;
            }
        const VEC mean = splat(add_all(sum) / (float)n);
        for (int64_t i = 0; i < n; i += PANEL)
            for (int v = 0; v < VECS; v++) {
                const VEC d = load(p + i + v * WIDTH) - mean;
                squares[v] = FMA(d, d, squares[v]);
            }
        const VEC scale = splat(1 / sqrtf(add_all(squares) / (float)n + eps));
        for (int64_t i = 0; i < n; i += WIDTH) store(p + i, FMA((load(p + i) - mean) * scale, load(gain + i), load(bias + i)));
    }
}

const struct bert_kernels TABLE = {.name = KERNELS_NAME, .product = product, .gelu = gelu, .softmax = softmax, .norm = norm};
