/* Matrix products. W [N,K] is as in a checkpoint; here packed is W itself, in the precision of the
 * computation.
 *
 *   y[t,n]  = sum_k x[t,k] W[n,k]  (+ bias[n]) (+ residual[t,n])
 *             acc = fma(x, w, acc) for k = 0, 1, ... from 0
 *   dx[t,k] = sum_n dy[t,n] W[n,k]
 *             the chain starts at 0, or at dx to accumulate
 *   dW[n,k] += sum_t dy[t,n] x[t,k];   dbias[n] += sum_t dy[t,n]
 *             the chain starts at dW
 *
 * DTYPE_BF16 rounds both factors to bf16 (nearest even). Products of two bf16 numbers are exact in
 * fp32, and sums are fp32. Its chains run over pairs of the inner index, the odd one first
 * (bf16_place): the order of vdpbf16ps, so that CPUs with and without that instruction give
 * bit-identical results. The instruction treats denormals as zero, which does not affect sums of
 * ordinary magnitude. */
static int64_t matmul_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
        return n * k * 4;
    case DTYPE_BF16:
        return n * k * 2;
    default:
        return 0; /* this precision is not supported */
    }
}

/* A row of int8 weights is a sequence of blocks, each a scale and its numbers; all blocks have the
 * same length. */
struct int8_block {
    uint16_t scale;
    int8_t q[INT8_BLOCK];
};

static int64_t int8_blocks(int64_t k)
{
    return (k + INT8_BLOCK - 1) / INT8_BLOCK;
}

static int64_t matmul_int8_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    return matmul_packed_bytes(1, 1, dtype) ? n * int8_blocks(k) * (int64_t)sizeof(struct int8_block) : 0;
}

static void pack_int8(const struct op_pack *o)
{
    struct int8_block *b = o->packed;
    for (int64_t j = 0; j < o->n; j++)
        for (int64_t k = 0; k < o->k; k += INT8_BLOCK, b++) {
            const float *w = o->w + j * o->k + k;
            const int64_t n = o->k - k < INT8_BLOCK ? o->k - k : INT8_BLOCK;
            *b = (struct int8_block){.scale = int8_scale(w, n)};
            for (int64_t i = 0; i < n; i++) b->q[i] = int8_from_f32(w[i], b->scale);
        }
}

/* Number q of row j of packed weights whose rows have k numbers. */
static float packed_weight(const void *packed, int int8, enum dtype dtype, int64_t k, int64_t j, int64_t q)
{
    if (int8) {
        const struct int8_block *b = (const struct int8_block *)packed + j * int8_blocks(k) + q / INT8_BLOCK;
        return int8_to_f32(b->q[q % INT8_BLOCK], b->scale, dtype == DTYPE_BF16);
    }
    return dtype == DTYPE_BF16 ? bf16_to_f32(((const uint16_t *)packed)[j * k + q]) : ((const float *)packed)[j * k + q];
}

static void ref_pack(const struct kctx *c, const struct op_pack *o)
{
    (void)c;
    if (o->int8) {
        pack_int8(o);
        return;
    }
    if (o->dtype == DTYPE_F32) {
        memcpy(o->packed, o->w, (size_t)(o->n * o->k) * sizeof *o->w);
        return;
    }
    uint16_t *h = o->packed;
    for (int64_t i = 0; i < o->n * o->k; i++) h[i] = bf16_from_f32(o->w[i]);
}

static float matmul_value(float x, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? bf16_round(x) : x;
}

/* A chain, term by term. With REF_TILES, products in bf16 have the order of tiles/tiles.h. */
enum order { IN_ORDER, PAIRS, TILES };
struct chain {
    float sum, part[2];
};

static enum order matmul_order(enum dtype dtype)
{
    if (dtype != DTYPE_BF16) return IN_ORDER;
#ifdef REF_TILES
    return TILES;
#else
    return PAIRS;
#endif
}

/* Index of the i-th term of a chain over n. */
static int64_t matmul_place(int64_t i, int64_t n, enum order order)
{
    return order == PAIRS ? bf16_place(i, n) : i;
}

/* Add x w as the i-th of n terms. */
static void chain_add(struct chain *c, float x, float w, int64_t i, int64_t n, enum order order)
{
    enum { BLOCK = 32 };
    if (order != TILES) {
        c->sum = fmaf(x, w, c->sum);
        return;
    }
    c->part[i % 2] = fmaf(x, w, c->part[i % 2]);
    if (i % BLOCK != BLOCK - 1 && i != n - 1) return;
    c->sum += c->part[0] + c->part[1];
    c->part[0] = c->part[1] = 0;
}

static void ref_matmul(const struct kctx *c, const struct op_matmul *o)
{
    (void)c;
    const float *x = o->x;
    const enum order order = matmul_order(o->dtype);
    for (int64_t i = 0; i < o->t; i++)
        for (int64_t j = 0; j < o->n; j++) {
            struct chain sum = {0};
            for (int64_t p = 0; p < o->k; p++) {
                const int64_t q = matmul_place(p, o->k, order);
                chain_add(&sum, matmul_value(x[i * o->k + q], o->dtype), packed_weight(o->packed, o->int8, o->dtype, o->k, j, q), p,
                          o->k, order);
            }
            float acc = sum.sum;
            if (o->bias) acc += o->bias[j];
            if (o->residual) acc += o->residual[i * o->n + j];
            o->y[i * o->n + j] = acc;
        }
}

static void matmul_dx_row(const struct op_matmul_dx *o, int64_t i)
{
    const float *dy = (const float *)o->dy + i * o->n;
    float *row = o->dx + i * o->k;
    const enum order order = matmul_order(o->dtype);
    for (int64_t q = 0; q < o->k; q++) {
        struct chain sum = {0};
        for (int64_t p = 0; p < o->n; p++) {
            const int64_t j = matmul_place(p, o->n, order);
            chain_add(&sum, matmul_value(dy[j], o->dtype), packed_weight(o->packed, o->int8, o->dtype, o->k, j, q), p, o->n, order);
        }
        row[q] = sum.sum;
    }
}

static void ref_matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t; i++) matmul_dx_row(o, i);
}

/* Sum for dw[j,q], term by term, starting at `start`. */
static float matmul_dw_sum(const struct op_matmul_dw *o, int64_t j, int64_t q, float start)
{
    const float *dy = o->dy, *x = o->x;
    const enum order order = matmul_order(o->dtype);
    struct chain sum = {.sum = start};
    for (int64_t p = 0; p < o->t; p++) {
        const int64_t i = matmul_place(p, o->t, order);
        chain_add(&sum, matmul_value(dy[i * o->n + j], o->dtype), matmul_value(x[i * o->k + q], o->dtype), p, o->t, order);
    }
    return sum.sum;
}

static void matmul_dbias(const struct op_matmul_dw *o)
{
    const float *dy = o->dy;
    for (int64_t i = 0; o->dbias && i < o->t; i++)
        for (int64_t j = 0; j < o->n; j++) o->dbias[j] += dy[i * o->n + j];
}

static void ref_matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    (void)c;
    matmul_dbias(o);
    for (int64_t j = 0; j < o->n; j++)
        for (int64_t q = 0; q < o->k; q++) o->dw[j * o->k + q] = matmul_dw_sum(o, j, q, o->dw[j * o->k + q]);
}

static void ref_matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    (void)c;
    matmul_dbias(o);
    for (int64_t j = 0; j < o->n; j++)
        for (int64_t q = 0; q < o->k; q++) o->dw[j * o->k + q] += matmul_dw_sum(o, j, q, 0);
}
