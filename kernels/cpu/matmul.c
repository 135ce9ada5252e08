/* Products of the layers (definitions: ref/matmul.c). Packed weights: panels of NR output columns, [ceil(N/NR)][words][NR] (gemm.c). */
static int64_t matmul_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    if (dtype != DTYPE_F32 && dtype != DTYPE_BF16) return 0;
    return (n + NR - 1) / NR * NR * (dtype == DTYPE_BF16 ? (k + 1) / 2 : k) * 4;
}

/* Sixteen rows of W at a time become sixteen lanes of a panel; rows are pages apart, so what comes next of them is fetched. */
static void pack_task(void *arg, int64_t panel, int thread)
{
    (void)thread;
    enum { AHEAD_OF_ROW = 8 * LANES };
    const struct op_pack *s = arg;
    const int pairs = s->dtype == DTYPE_BF16;
    const int64_t words = pairs ? (s->k + 1) / 2 : s->k;
    for (int64_t v = 0; v < NR; v += LANES) {
        const int64_t row = panel * NR + v, rows = s->n - row;
        const float *w = s->w + row * s->k;
        float *to = (float *)s->packed + panel * NR * words + v;
        for (int64_t k = 0; k < s->k; k += LANES) {
            vf x[LANES];
            for (int64_t r = 0; r < LANES && r < rows; r++)
                _mm_prefetch((const char *)(w + r * s->k + k + AHEAD_OF_ROW), _MM_HINT_T0);
            gemm_columns(x, w + k, s->k, rows, s->k - k);
            for (int64_t j = 0; j < LANES && k + j < s->k; j += 1 + pairs, to += NR)
                v_store(to, pairs ? v_pair_exact(x[j], x[j + 1]) : x[j]);
        }
    }
}

static void pack(const struct kctx *c, const struct op_pack *o)
{
    struct op_pack s = *o;
    pool_run(c->pool, (o->n + NR - 1) / NR, o->int8 ? pack_int8_task : pack_task, &s);
}

/* Row a, from a word on, as the chain takes it: as it is, in words of two, or the odd one of two first. */
static void gemm_take_row(const struct gemm *g, float *to, const float *a, int64_t word, int64_t words)
{
    if (!g->bf16) {
        memcpy(to, a + word, (size_t)words * sizeof *to);
        return;
    }
    const int64_t n = 2 * (word + words) > g->k ? g->k - 2 * word : 2 * words;
    a += 2 * word;
    int64_t i = 0;
    if (DOT) {
        for (; i + LANES <= n; i += LANES) v_store_bf16(to + i / 2, v_load(a + i));
        for (; i + 1 < n; i += 2) to[i / 2] = f32_from_bits((uint32_t)bf16_from_f32(a[i + 1]) << 16 | bf16_from_f32(a[i]));
        if (n % 2) to[n / 2] = f32_from_bits(bf16_from_f32(a[n - 1]));
        return;
    }
    for (; i + LANES <= n; i += LANES) v_store(to + i, v_round_bf16(v_swap(v_load(a + i))));
    for (; i + 1 < n; i += 2) {
        to[i] = bf16_round(a[i + 1]);
        to[i + 1] = bf16_round(a[i]);
    }
    if (n % 2) to[n - 1] = bf16_round(a[n - 1]);
}

/* A of few rows, which is not copied block by block: rounded, and paired where that is how it is multiplied. */
static int matmul_few_rows(const struct kctx *c, struct gemm *g)
{
    const int64_t row = DOT ? gemm_words(g) : g->k;
    float *rounded = scratch(c, g->m * row);
    if (!rounded) return 0;
    for (int64_t i = 0; i < g->m; i++) {
        if (DOT)
            gemm_take_row(g, rounded + i * row, g->a + i * g->a_row, 0, row);
        else
            for (int64_t j = 0; j < row; j++) rounded[i * row + j] = bf16_round(g->a[i * g->a_row + j]);
    }
    g->a = rounded;
    g->a_row = row;
    return 1;
}

/* So few rows that weights come from memory faster than a part of them is used again: one tile of them. Two small tiles of fp32 still are, with
 * larger ones, or weights that are split, the blocks fetch what comes next while they compute. */
static int64_t few_rows(const struct gemm *g)
{
    if (g->int8) return INT8_ROWS;
    return MR < 8 && !g->bf16 ? 2 * MR : MR;
}

static struct gemm matmul_gemm(const struct op_matmul *o)
{
    return (struct gemm){.m = o->t,
                         .n = o->n,
                         .k = o->k,
                         .a = o->x,
                         .a_row = o->k,
                         .a_col = 1,
                         .bf16 = o->dtype == DTYPE_BF16,
                         .panels = o->int8 ? NULL : o->packed,
                         .int8 = o->int8 ? o->packed : NULL,
                         .c = o->y,
                         .c_row = o->n,
                         .bias = o->bias,
                         .residual = o->residual};
}

static void matmul(const struct kctx *c, const struct op_matmul *o)
{
    if (o->t <= 0 || o->n <= 0) return;
    struct gemm g = matmul_gemm(o);
    if (o->t > few_rows(&g) && o->k > 1)
        gemm_blocked(c, &g);
    else if (!g.bf16 || matmul_few_rows(c, &g))
        gemm_skinny(c, &g);
    arena_reset(c->scratch);
}

/* dx[t,k] = sum_n dy[t,n] W[n,k]: the inner index is n. */
static struct gemm dx_gemm(const struct op_matmul_dx *o)
{
    return (struct gemm){.m = o->t,
                         .n = o->k,
                         .k = o->n,
                         .a = o->dy,
                         .a_row = o->n,
                         .a_col = 1,
                         .bf16 = o->dtype == DTYPE_BF16,
                         .turned = o->int8 ? NULL : o->packed,
                         .c = o->dx,
                         .c_row = o->k};
}

/* Rows of W as fp32 from its panels of int8: `rows` of them from `row` on, a multiple of NR, whole panels a task. */
struct unpack_args {
    float *to;
    const void *packed;
    int64_t row, rows, k;
    int bf16;
};

/* LANES inner indices of LANES rows at a time, through words. */
static void unpack_int8_task(void *arg, int64_t panel, int thread)
{
    (void)thread;
    const struct unpack_args *s = arg;
    const struct gemm g = {.k = s->k, .bf16 = s->bf16};
    const int64_t first = s->row / NR + panel, columns = s->rows - panel * NR < NR ? s->rows - panel * NR : NR;
    const uint8_t *b = (const uint8_t *)s->packed + first * int8_panel_bytes(&g);
    for (int64_t k = 0; k < s->k; k += LANES) {
        const int64_t n = s->k - k < LANES ? s->k - k : LANES;
        float wide[LANES * NR];
        int8_widen(&g, wide, b, s->bf16 ? k / 2 : k, s->bf16 ? (n + 1) / 2 : n);
        for (int64_t v = 0; v < columns; v += LANES) {
            vf x[LANES];
            for (int64_t i = 0; i < LANES; i++) {
                const int64_t step = DOT && s->bf16 ? i / 2 : s->bf16 ? bf16_place(i, n) : i;
                const vf w = i < n ? v_load(wide + step * NR + v) : v_zero();
                x[i] = !DOT || !s->bf16 ? w : i % 2 ? v_odd(w) : v_even(w);
            }
            v_transpose(x);
            for (int64_t j = 0; j < LANES && v + j < columns; j++) gemm_store(s->to + (panel * NR + v + j) * s->k + k, x[j], n);
        }
    }
}

/* Weights in int8 are made fp32 first, part by part. The chain over n is taken up again where the rows before have left it, so the cut changes no bit. */
static void dx_int8(const struct kctx *c, const struct gemm *whole, const void *packed)
{
    enum { UNPACKED = 4 << 20 /* floats of W at a time */ };
    const int64_t n = whole->k, k = whole->n, all = (n + NR - 1) / NR * NR, fit = UNPACKED / k / NR * NR,
                  most = fit < NR    ? NR
                         : fit < all ? fit
                                     : all;
    for (int64_t row = 0; row < n; row += most) {
        float *w = scratch(c, most * k);
        if (!w) return;
        struct unpack_args s = {w, packed, row, n - row < most ? n - row : most, k, whole->bf16};
        struct gemm g = *whole;
        g.k = s.rows;
        g.a = whole->a + row;
        g.b = w;
        g.b_row = k;
        g.continues = row > 0;
        pool_run(c->pool, (s.rows + NR - 1) / NR, unpack_int8_task, &s);
        gemm_blocked(c, &g);
        arena_reset(c->scratch);
    }
}

static void matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    if (o->t <= 0 || o->k <= 0) return;
    if (o->n <= 0) {
        memset(o->dx, 0, (size_t)(o->t * o->k) * sizeof *o->dx);
        return;
    }
    const struct gemm g = dx_gemm(o);
    if (o->int8)
        dx_int8(c, &g, o->packed);
    else
        gemm_blocked(c, &g);
    arena_reset(c->scratch);
}

struct dbias_args {
    float *dbias;
    const float *dy;
    int64_t t, n;
};

static void dbias_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct dbias_args *s = arg;
    enum { WIDTH = 4 };
    const int64_t from = task * WIDTH * LANES;
    for (int64_t j = from; j < s->n && j < from + WIDTH * LANES; j += LANES) {
        const int64_t left = s->n - j;
        vf sum = gemm_load(s->dbias + j, left);
        for (int64_t i = 0; i < s->t; i++) sum = v_add(sum, gemm_load(s->dy + i * s->n + j, left));
        gemm_store(s->dbias + j, sum, left);
    }
}

/* dW[n,k] += sum_t dy[t,n] x[t,k]: the inner index is t, A is dy transposed. apart: the sum is added to dw when it is complete. */
static void product_dw(const struct kctx *c, const struct op_matmul_dw *o, int apart)
{
    if (o->t <= 0) return;
    const struct gemm g = {.m = o->n,
                           .n = o->k,
                           .k = o->t,
                           .a = o->dy,
                           .a_row = 1,
                           .a_col = o->n,
                           .bf16 = o->dtype == DTYPE_BF16,
                           .b = o->x,
                           .b_row = o->k,
                           .c = o->dw,
                           .c_row = o->k,
                           .continues = !apart,
                           .residual = apart ? o->dw : NULL};
    if (o->n > 0 && o->k > 0) gemm_blocked(c, &g);
    if (o->dbias)
        pool_run(o->t * o->n < 32768 ? NULL : c->pool, (o->n + 63) / 64, dbias_task,
                 &(struct dbias_args){o->dbias, o->dy, o->t, o->n});
    arena_reset(c->scratch);
}

static void matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    product_dw(c, o, 0);
}

static void matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    product_dw(c, o, 1);
}
