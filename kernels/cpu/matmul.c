/* Products of the layers (definitions: ref/matmul.c). Packed weights are panels of NR output
 * columns, [ceil(N/NR)][words][NR] (gemm.c). */
static int64_t matmul_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    if (dtype != DTYPE_F32 && dtype != DTYPE_BF16) return 0;
    return (n + NR - 1) / NR * NR * (dtype == DTYPE_BF16 ? (k + 1) / 2 : k) * 4;
}

/* Transpose sixteen rows of W at a time into sixteen lanes of a panel. Rows are pages apart, so the
 * data that follows is prefetched. */
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
            for (int64_t r = 0; r < LANES && r < rows; r++) v_prefetch(w + r * s->k + k + AHEAD_OF_ROW);
            gemm_columns(x, w + k, DTYPE_F32, s->k, rows, s->k - k);
            for (int64_t j = 0; j < LANES && k + j < s->k; j += 1 + pairs, to += NR)
                v_store(to, pairs ? v_pair_exact(x[j], x[j + 1]) : x[j]);
        }
    }
}

static void cpu_pack(const struct kctx *c, const struct op_pack *o)
{
    struct op_pack s = *o;
    pool_run(c->pool, (o->n + NR - 1) / NR, o->int8 ? pack_int8_task : pack_task, &s);
}

/* Prepare an A of few rows, which is not copied block by block: rounded, and paired if pairs are
 * multiplied; used in place if it already has that form. */
static int matmul_few_rows(const struct kctx *c, struct gemm *g)
{
    const int64_t row = DOT ? gemm_words(g) : g->k;
    const int in_place = DOT && g->a_dtype == DTYPE_BF16 && g->a_row % 2 == 0 && g->k % 2 == 0;
    float *rounded = in_place ? NULL : scratch(c, g->m * row + LANES);
    if (!in_place && !rounded) return 0;
    for (int64_t i = 0; !in_place && i < g->m; i++)
        for (int64_t j = 0; j < g->k; j += LANES) {
            const vf x = rows_load(g->a, g->a_dtype, i * g->a_row + j, g->k - j);
            if (DOT)
                v_store_bf16(rounded + i * row + j / 2, x); /* the next row overwrites the excess */
            else
                gemm_store(rounded + i * row + j, v_round_bf16(x), g->k - j);
        }
    g->a_row = in_place ? g->a_row / 2 : row;
    if (!in_place) g->a = rounded;
    g->a_dtype = DTYPE_F32;
    return 1;
}

/* Number of rows up to which streaming the weights from memory is faster than reusing a part of
 * them: one tile of rows. Two small tiles of fp32 also qualify; with larger ones, or with
 * weights that are split, the blocked path prefetches while it computes. */
static int64_t cpu_few_rows(enum dtype dtype, int int8)
{
    if (int8) return INT8_ROWS;
    return MR < 8 && dtype != DTYPE_BF16 ? 2 * MR : MR;
}

static int64_t few_rows(const struct gemm *g)
{
    return cpu_few_rows(g->bf16 ? DTYPE_BF16 : DTYPE_F32, g->int8 != NULL);
}

static struct gemm matmul_gemm(const struct op_matmul *o)
{
    return (struct gemm){.m = o->t,
                         .n = o->n,
                         .k = o->k,
                         .a = o->x,
                         .a_row = o->k,
                         .a_col = 1,
                         .a_dtype = o->x_dtype,
                         .bf16 = o->dtype == DTYPE_BF16,
                         .panels = o->int8 ? NULL : o->packed,
                         .int8 = o->int8 ? o->packed : NULL,
                         .c = o->y,
                         .c_row = o->n,
                         .bias = o->bias,
                         .residual = o->residual};
}

static void cpu_matmul(const struct kctx *c, const struct op_matmul *o)
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
                         .a_dtype = o->dy_dtype,
                         .bf16 = o->dtype == DTYPE_BF16,
                         .transposed = o->int8 ? NULL : o->packed,
                         .c = o->dx,
                         .c_row = o->k};
}

/* Unpacks rows of W to fp32 from its int8 panels: `rows` of them from `row` on, a multiple of NR; a
 * task handles whole panels. */
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

/* Weights in int8 are first expanded to fp32, part by part. The chain over n resumes where the
 * previous rows ended, so splitting does not change the result. */
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
        g.a = rows_from(whole->a, whole->a_dtype, row);
        g.b = w;
        g.b_row = k;
        g.continues = row > 0;
        pool_run(c->pool, (s.rows + NR - 1) / NR, unpack_int8_task, &s);
        gemm_blocked(c, &g);
        arena_reset(c->scratch);
    }
}

static void cpu_matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
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

/* dW[n,k] += sum_t dy[t,n] x[t,k]: the inner index is t, and A is dy transposed. apart: each
 * complete sum is added to dw. */
static void product_dw(const struct kctx *c, const struct op_matmul_dw *o, int apart)
{
    if (o->t <= 0) return;
    const struct gemm g = {.m = o->n,
                           .n = o->k,
                           .k = o->t,
                           .a = o->dy,
                           .a_row = 1,
                           .a_col = o->n,
                           .a_dtype = o->dy_dtype,
                           .bf16 = o->dtype == DTYPE_BF16,
                           .b = o->x,
                           .b_row = o->k,
                           .b_dtype = o->x_dtype,
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

static void cpu_matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    product_dw(c, o, 0);
}

static void cpu_matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    product_dw(c, o, 1);
}
