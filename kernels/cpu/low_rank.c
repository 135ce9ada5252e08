/* Low-rank products added to a product of the layers (kernels_ops.h, struct low_rank). With many
 * rows they are computed block by block together with it (gemm.c, struct gemm_low). With few rows,
 * or if a column range begins inside a panel, they are computed one after another. Both give the
 * same bits. */

static int64_t low_rows(const struct low_rank *l)
{
    return l->parts * l->rank;
}

static void low_product(const struct kctx *c, struct gemm *g)
{
    if (g->m > few_rows(g) && g->k > 1)
        gemm_blocked(c, g);
    else if (!g->bf16 || matmul_few_rows(c, g))
        gemm_skinny(c, g);
}

struct low_scale {
    float *x;
    float scale;
};

static void low_scale_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct low_scale *s = arg;
    for (int64_t i = begin; i < end; i += LANES)
        gemm_store(s->x + i, v_mul(v_set(s->scale), gemm_load(s->x + i, end - i)), end - i);
}

static void low_scale(const struct kctx *c, float *x, int64_t n, float scale)
{
    spans(c, n, 1, LANES, low_scale_run, &(struct low_scale){x, scale});
}

/* 1 if every column range begins where a panel does and there are enough rows for blocks. */
static int low_in_blocks(const struct gemm *g, const struct low_rank *l)
{
    int starts = g->m > few_rows(g) && g->k > 1 && l->parts > 0;
    for (int64_t i = 0; i < l->parts; i++) starts &= l->begin[i] % NR == 0;
    return starts;
}

static void low_beside(const struct kctx *c, struct gemm *g, const struct low_rank *l, float *u)
{
    struct gemm_low low = {.sum = {{.panels = l->a, .words = gemm_words(g), .n = low_rows(l)}},
                           .sums = 1,
                           .rows = low_rows(l),
                           .scale = l->scale,
                           .u = u,
                           .adds = l->parts};
    for (int64_t i = 0; i < l->parts; i++)
        low.add[i] = (struct gemm_add){.b = l->b[i], .from = i * l->rank, .k = l->rank, .begin = l->begin[i], .n = l->n[i]};
    g->low = &low;
    gemm_blocked(c, g);
}

static void low_after(const struct kctx *c, struct gemm *g, const struct low_rank *l, float *u)
{
    const int64_t rows = low_rows(l);
    struct gemm first = *g;
    if (!u) u = scratch(c, g->m * rows);
    if (!u) return;
    first.n = rows;
    first.panels = l->a;
    first.int8 = NULL;
    first.bias = first.residual = NULL;
    first.c = u;
    first.c_row = rows;
    low_product(c, &first);
    low_product(c, g);
    low_scale(c, u, g->m * rows, l->scale);
    for (int64_t i = 0; i < l->parts; i++) {
        float *y = g->c + l->begin[i];
        struct gemm add = {.m = g->m,
                           .n = l->n[i],
                           .k = l->rank,
                           .a = u + i * l->rank,
                           .a_row = rows,
                           .a_col = 1,
                           .bf16 = g->bf16,
                           .panels = l->b[i],
                           .c = y,
                           .c_row = g->c_row,
                           .residual = y};
        low_product(c, &add);
    }
}

static void cpu_matmul_low_rank(const struct kctx *c, const struct op_matmul_low_rank *o)
{
    const struct op_matmul *p = &o->product;
    if (p->t <= 0 || p->n <= 0) return;
    struct gemm g = matmul_gemm(p);
    if (low_in_blocks(&g, &o->adapter))
        low_beside(c, &g, &o->adapter, o->u);
    else
        low_after(c, &g, &o->adapter, o->u);
    arena_reset(c->scratch);
}

/* ---- backward */

/* Pack a row-major matrix [k, n] in panels, as B of a product whose inner index is k. */
static const float *low_panels(const struct kctx *c, const float *w, int64_t k, int64_t n, int bf16)
{
    const struct gemm g = {.n = n, .k = k, .bf16 = bf16, .b = w, .b_row = n};
    struct gemm_block s = {.g = &g, .words = gemm_words(&g)};
    s.b = scratch(c, (n + NR - 1) / NR * NR * s.words);
    if (s.b) pool_run(c->pool, (s.words + PACK_WORDS - 1) / PACK_WORDS, gemm_pack_task, &s);
    return s.b;
}

/* Unpack the numbers of packed weights [n, k], row by row, `stride` apart. */
static void low_unpack(float *to, int64_t stride, const float *packed, const int64_t size[2], int bf16)
{
    const int64_t n = size[0], k = size[1], words = bf16 ? (k + 1) / 2 : k;
    for (int64_t row = 0; row < n; row += LANES)
        for (int64_t word = 0; word < words; word += LANES) {
            vf x[LANES];
            const float *from = packed + row / NR * NR * words + word * NR + row % NR;
            for (int64_t i = 0; i < LANES; i++) x[i] = word + i < words ? v_load(from + i * NR) : v_zero();
            v_transpose(x);
            for (int64_t r = 0; r < LANES && row + r < n; r++) {
                float *at = to + (row + r) * stride + (bf16 ? 2 * word : word);
                const int64_t left = bf16 ? k - 2 * word : k - word;
                gemm_store(at, bf16 ? v_wide(x[r], 0) : x[r], left);
                if (bf16) gemm_store(at + LANES, v_wide(x[r], 1), left - LANES);
            }
        }
}

/* Set up D = s dy L^T: one entry per column range, which reads only its own columns of dy. */
static int low_sums_of_b(const struct kctx *c, const struct low_rank *l, int bf16, struct gemm_low *low)
{
    for (int64_t i = 0; i < l->parts; i++) {
        float *w = scratch(c, l->n[i] * l->rank);
        if (!w) return 0;
        low_unpack(w, l->rank, l->b[i], (const int64_t[2]){l->n[i], l->rank}, bf16);
        low->sum[i] = (struct gemm_sum){.panels = low_panels(c, w, l->n[i], l->rank, bf16),
                                        .word = bf16 ? l->begin[i] / 2 : l->begin[i],
                                        .words = bf16 ? (l->n[i] + 1) / 2 : l->n[i],
                                        .from = i * l->rank,
                                        .n = l->rank};
        if (!low->sum[i].panels) return 0;
    }
    low->sums = l->parts;
    return 1;
}

static const float *low_all_a(const struct kctx *c, const struct low_rank *l, int64_t k, int bf16)
{
    float *w = scratch(c, low_rows(l) * k);
    if (!w) return NULL;
    low_unpack(w, k, l->a, (const int64_t[2]){low_rows(l), k}, bf16);
    return low_panels(c, w, low_rows(l), k, bf16);
}

static void low_dx_beside(const struct kctx *c, struct gemm *g, const struct low_rank *l, float *d)
{
    const int64_t rows = low_rows(l);
    struct gemm_low low = {.rows = rows, .scale = l->scale, .u = d, .adds = 1};
    if (!low_sums_of_b(c, l, g->bf16, &low)) return;
    low.add[0] = (struct gemm_add){.b = low_all_a(c, l, g->n, g->bf16), .k = rows, .n = g->n};
    for (int i = 0; i < 2; i++) low.part[i] = scratch(c, g->m * rows);
    if (!low.add[0].b || !low.part[0] || !low.part[1]) return;
    g->low = &low;
    gemm_blocked(c, g);
}

/* Compute only d. */
static void low_d(const struct kctx *c, const struct gemm *g, const struct low_rank *l, float *d)
{
    const int64_t rows = low_rows(l);
    for (int64_t i = 0; i < l->parts; i++) {
        const struct gemm part = {.m = g->m,
                                  .n = l->rank,
                                  .k = l->n[i],
                                  .a = rows_from(g->a, g->a_dtype, l->begin[i]),
                                  .a_row = g->a_row,
                                  .a_col = 1,
                                  .a_dtype = g->a_dtype,
                                  .bf16 = g->bf16,
                                  .transposed = l->b[i],
                                  .c = d + i * l->rank,
                                  .c_row = rows};
        gemm_blocked(c, &part);
    }
    low_scale(c, d, g->m * rows, l->scale);
    arena_reset(c->scratch);
}

static void cpu_matmul_dx_low_rank(const struct kctx *c, const struct op_matmul_dx_low_rank *o)
{
    const struct op_matmul_dx *p = &o->product;
    const struct low_rank *l = &o->adapter;
    if (p->t <= 0 || p->k <= 0 || p->n <= 0) return;
    struct gemm g = dx_gemm(p);
    if (p->dx && !p->int8 && low_in_blocks(&g, l)) {
        low_dx_beside(c, &g, l, o->d);
        arena_reset(c->scratch);
        return;
    }
    low_d(c, &g, l, o->d);
    if (!p->dx) return;
    cpu_matmul_dx(c, p);
    const struct gemm add = {.m = g.m,
                             .n = g.n,
                             .k = low_rows(l),
                             .a = o->d,
                             .a_row = low_rows(l),
                             .a_col = 1,
                             .bf16 = g.bf16,
                             .transposed = l->a,
                             .c = g.c,
                             .c_row = g.c_row,
                             .residual = g.c};
    gemm_blocked(c, &add);
    arena_reset(c->scratch);
}

/* ---- gradients of A and B: few rows of C, which are columns of u and d, against all columns of dy
 * and x */

static void low_transpose(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t j = 0; j < columns; j += LANES) {
            vf x[LANES];
            gemm_columns(x, from + i * columns + j, DTYPE_F32, columns, rows - i, columns - j);
            for (int64_t r = 0; r < LANES && j + r < columns; r++) gemm_store(to + (j + r) * rows + i, x[r], rows - i);
        }
}

/* c[n, k] += a^T b, where a's columns are some columns of rows of a_row numbers, and b's of
 * b_row. */
static void low_dw(const struct kctx *c, const struct op_low_rank_dw *o, struct gemm g)
{
    g.k = o->t;
    g.a_row = 1;
    g.bf16 = o->dtype == DTYPE_BF16;
    g.c_row = g.n;
    g.continues = !o->apart;
    g.residual = o->apart ? g.c : NULL;
    gemm_blocked(c, &g);
}

static void cpu_low_rank_dw(const struct kctx *c, const struct op_low_rank_dw *o)
{
    const struct low_rank *l = &o->adapter;
    const int64_t rows = low_rows(l);
    if (o->t <= 0 || rows <= 0) return;
    for (int64_t i = 0; i < l->parts; i++) {
        float *sum = scratch(c, l->rank * l->n[i]);
        if (!sum) return;
        low_transpose(sum, o->db[i], l->n[i], l->rank);
        low_dw(c, o,
               (struct gemm){.m = l->rank,
                             .n = l->n[i],
                             .a = o->u + i * l->rank,
                             .a_col = rows,
                             .b = (const float *)o->dy + l->begin[i],
                             .b_row = o->n,
                             .c = sum});
        low_transpose(o->db[i], sum, l->rank, l->n[i]);
        arena_reset(c->scratch);
    }
    low_dw(
        c, o,
        (struct gemm){.m = rows, .n = o->k, .a = o->d, .a_col = rows, .b = o->x, .b_row = o->k, .b_dtype = o->x_dtype, .c = o->da});
    arena_reset(c->scratch);
}
