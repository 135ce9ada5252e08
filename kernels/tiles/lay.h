/* The layout of a product's operands, and copying them into blocks. */
#ifndef TARE_KERNELS_TILES_LAY_H
#define TARE_KERNELS_TILES_LAY_H

#include "multiply.h"

/*   C[i,j] = chain over k of A(i,k) B(k,j),  i < m, j < n        A(i,k) = a[i a_row + k a_col] */
struct product {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;    /* one of them is 1 */
    const float *packed;     /* B in panels of 32 columns, [ceil(n/32)][ceil(k/32)] blocks; or */
    const float *transposed; /* packed weights, the transpose of B; or */
    const float *b;          /* B(k,j) = b[k b_row + j] */
    int64_t b_row;
    float *c;
    int64_t c_row;
    int continues; /* the chain starts at C instead of 0 */
    /* added to the complete chain; residual has C's stride and may be C */
    const float *bias, *residual;
};

static int64_t blocks_of(int64_t n)
{
    return (n + SIDE - 1) / SIDE;
}

/* Copy rows [row, row + rows) of A, blocks [from, from + blocks), into `to`: [tiles of 32
 * rows][blocks] blocks; missing rows are 0. */
static void lay_rows(const struct product *p, float *to, int64_t row, int64_t rows, int64_t from, int64_t blocks)
{
    for (int64_t r = 0; r < blocks_of(rows) * SIDE; r++) {
        const float *a = p->a + (row + r) * p->a_row;
        float *out = to + r / SIDE * blocks * BLOCK + r % SIDE * TILE;
        for (int64_t i = 0; i < blocks; i++, out += BLOCK) {
            const int64_t k = (from + i) * SIDE, left = r < rows ? p->k - k : 0;
            const vf low = left > 0 ? gemm_load(a + k, left) : v_zero(),
                     high = left > LANES ? gemm_load(a + k + LANES, left - LANES) : v_zero();
            v_store_bf16(out, low);
            v_store_bf16(out + LANES / 2, high);
        }
    }
}

/* Like lay_rows, for an A with contiguous columns. */
static void lay_columns(const struct product *p, float *to, int64_t row, int64_t rows, int64_t from, int64_t blocks)
{
    for (int64_t i = 0; i < blocks; i++)
        for (int64_t r = 0; r < blocks_of(rows) * SIDE; r += LANES) {
            const int64_t left = rows - r;
            vf x[LANES];
            for (int w = 0; w < TILE; w++) {
                const int64_t k = (from + i) * SIDE + 2 * w;
                const float *a = p->a + k * p->a_col + row + r;
                x[w] = v_pair(left > 0 && k < p->k ? gemm_load(a, left) : v_zero(),
                              left > 0 && k + 1 < p->k ? gemm_load(a + p->a_col, left) : v_zero());
            }
            v_transpose(x);
            float *out = to + (r / SIDE * blocks + i) * BLOCK + r % SIDE * TILE;
            for (int w = 0; w < TILE; w++) v_store(out + w * TILE, x[w]);
        }
}

/* Make a block of panel j of B from rows of B: block k of the inner index. */
static void lay_b(const struct product *p, float *to, int64_t j, int64_t k)
{
    const int64_t left = p->n - j * SIDE;
    const float *b = p->b + k * SIDE * p->b_row + j * SIDE;
    for (int64_t w = 0; w < TILE; w++, b += 2 * p->b_row)
        for (int64_t v = 0; v < SIDE; v += LANES) {
            const int64_t at = k * SIDE + 2 * w;
            v_store(to + w * SIDE + v, v_pair(at < p->k ? gemm_load(b + v, left - v) : v_zero(),
                                              at + 1 < p->k ? gemm_load(b + p->b_row + v, left - v) : v_zero()));
        }
}

/* Make such a block from packed weights W: the inner index is W's rows, 32 of which are a panel,
 * and columns j are its words. */
static void lay_transposed(const struct product *p, float *to, int64_t j, int64_t k)
{
    const float *from = p->transposed + (k * blocks_of(p->n) + j) * BLOCK;
    for (int64_t half = 0; half < SIDE; half += LANES) {
        vf x[LANES];
        for (int w = 0; w < TILE; w++) x[w] = v_load(from + w * SIDE + half);
        v_transpose(x);
        for (int r = 0; r < LANES; r += 2) {
            float *out = to + (half + r) / 2 * SIDE;
            v_store(out, v_zip(x[r], x[r + 1], 0));
            v_store(out + LANES, v_zip(x[r], x[r + 1], 1));
        }
    }
}

/* Pack weights W [n, k] for products; one panel per task. */
static void lay_weights(void *arg, int64_t panel, int thread)
{
    (void)thread;
    const struct op_pack *o = arg;
    float *to = (float *)o->packed + panel * blocks_of(o->k) * BLOCK;
    for (int64_t v = 0; v < SIDE; v += LANES) {
        const int64_t row = panel * SIDE + v;
        for (int64_t k = 0; k < blocks_of(o->k) * SIDE; k += LANES) {
            vf x[LANES];
            gemm_columns(x, o->w + (k < o->k ? row * o->k + k : 0), DTYPE_F32, o->k, o->n - row, o->k - k);
            for (int64_t i = 0; i < LANES; i += 2) v_store(to + (k + i) / 2 * SIDE + v, v_pair_exact(x[i], x[i + 1]));
        }
    }
}

#endif
