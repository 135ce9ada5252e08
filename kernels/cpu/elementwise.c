/* Gathering, scattering and adding rows (definitions: ref/elementwise.c). Sums into rows are split
 * by columns, so that each sum runs over t in order. */
struct rows_args {
    float *to;
    const float *from;
    const int32_t *ids; /* only one of ids and rows is set */
    const int64_t *rows;
    int64_t n, width;
};

static int64_t rows_at(const struct rows_args *s, int64_t i)
{
    return s->ids ? s->ids[i] : s->rows[i];
}

static void rows_gather(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rows_args *s = arg;
    for (int64_t i = begin; i < end; i++)
        memcpy(s->to + i * s->width, s->from + rows_at(s, i) * s->width, (size_t)s->width * sizeof *s->to);
}

INLINE void v_accumulate(float *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) v_store(y + i, v_add(v_load(y + i), v_load(x + i)));
    if (i < n) v_store_n(y + i, v_add(v_load_n(y + i, n - i), v_load_n(x + i, n - i)), n - i);
}

static void rows_scatter(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rows_args *s = arg;
    for (int64_t i = 0; i < s->n; i++)
        v_accumulate(s->to + rows_at(s, i) * s->width + begin, s->from + i * s->width + begin, end - begin);
}

static void cpu_embed(const struct kctx *c, const struct op_embed *o)
{
    spans(c, o->t, o->width, 1, rows_gather, &(struct rows_args){o->x, o->table, o->ids, NULL, o->t, o->width});
}

static void cpu_embed_grad(const struct kctx *c, const struct op_embed_grad *o)
{
    spans(c, o->width, o->t, LANES, rows_scatter, &(struct rows_args){o->dtable, o->dx, o->ids, NULL, o->t, o->width});
}

static void cpu_gather_rows(const struct kctx *c, const struct op_gather_rows *o)
{
    spans(c, o->n, o->width, 1, rows_gather, &(struct rows_args){o->y, o->x, NULL, o->rows, o->n, o->width});
}

static void cpu_scatter_add_rows(const struct kctx *c, const struct op_scatter_add_rows *o)
{
    spans(c, o->width, o->n, LANES, rows_scatter, &(struct rows_args){o->y, o->x, NULL, o->rows, o->n, o->width});
}

static void to_bf16_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct op_to_bf16 *o = arg;
    for (int64_t i = begin; i < end; i += LANES) rows_store(o->y, DTYPE_BF16, i, gemm_load(o->x + i, end - i), end - i);
}

static void cpu_to_bf16(const struct kctx *c, const struct op_to_bf16 *o)
{
    spans(c, o->n, 1, LANES, to_bf16_run, o);
}

static void add_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rows_args *s = arg;
    v_accumulate(s->to + begin, s->from + begin, end - begin);
}

static void cpu_add(const struct kctx *c, const struct op_add *o)
{
    spans(c, o->n, 1, LANES, add_run, &(struct rows_args){.to = o->y, .from = o->x});
}

INLINE vf column_sum(const struct op_add_columns *o, vf y, vf x)
{
    return o->accumulate ? v_fma(v_set(o->scale), x, y) : v_mul(v_set(o->scale), x);
}

static void add_columns_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct op_add_columns *o = arg;
    for (int64_t i = begin; i < end; i++) {
        float *y = o->y + i * o->ldy;
        const float *x = o->x + i * o->ldx;
        int64_t j = 0;
        for (; j + LANES <= o->n; j += LANES) v_store(y + j, column_sum(o, v_load(y + j), v_load(x + j)));
        if (j < o->n) v_store_n(y + j, column_sum(o, v_load_n(y + j, o->n - j), v_load_n(x + j, o->n - j)), o->n - j);
    }
}

static void cpu_add_columns(const struct kctx *c, const struct op_add_columns *o)
{
    spans(c, o->t, o->n, 1, add_columns_run, o);
}
