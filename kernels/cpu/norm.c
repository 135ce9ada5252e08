/* RMSNorm and its gradient (definitions: ref/norm.c). The gradient of the weights is split by
 * columns, with rows in order. */
struct norm_args {
    void *y;
    enum dtype y_dtype;
    float *rms_out, *dx, *dw;
    const float *x, *dy, *w, *rms;
    int64_t ldy, ldx, lddx, lddy, rows, heads, width;
    float eps;
    int accumulate;
};

INLINE int64_t norm_row(int64_t i, int64_t ld, const struct norm_args *s)
{
    return i / s->heads * ld + i % s->heads * s->width;
}

/* Store x r w in a row of y from number `at` on. */
INLINE void norm_scale(const struct norm_args *s, const enum dtype dtype, int64_t at, const float *x, float r)
{
    void *y = s->y;
    const float *w = s->w;
    const vf rv = v_set(r);
    const int64_t n = s->width;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) rows_store(y, dtype, at + j, v_mul(v_mul(v_load(x + j), rv), v_load(w + j)), LANES);
    if (j < n) rows_store(y, dtype, at + j, v_mul(v_mul(v_load_n(x + j, n - j), rv), v_load_n(w + j, n - j)), n - j);
}

static void norm_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct norm_args *s = arg;
    for (int64_t i = begin; i < end; i++) {
        const float *x = s->x + norm_row(i, s->ldx, s);
        vf sum = v_zero();
        for (int64_t j = 0; j < s->width; j += LANES) {
            const vf v = gemm_load(x + j, s->width - j);
            sum = v_fma(v, v, sum);
        }
        const float r = 1.0f / sqrtf(v_sum(sum) / (float)s->width + s->eps);
        const int64_t at = norm_row(i, s->ldy, s);
        if (s->y_dtype == DTYPE_BF16)
            norm_scale(s, DTYPE_BF16, at, x, r);
        else
            norm_scale(s, DTYPE_F32, at, x, r);
        if (s->rms_out) s->rms_out[i] = r;
    }
}

static void cpu_rmsnorm(const struct kctx *c, const struct op_rmsnorm *o)
{
    const struct norm_args s = {.y = o->y,
                                .y_dtype = o->y_dtype,
                                .rms_out = o->rms,
                                .x = o->x,
                                .w = o->w,
                                .ldy = o->ld,
                                .ldx = o->ld,
                                .heads = o->heads,
                                .width = o->width,
                                .eps = o->eps};
    spans(c, o->t * o->heads, o->width, 1, norm_run, &s);
}

static void norm_weight_grad(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct norm_args *s = arg;
    for (int64_t j = begin; j < end; j += LANES) {
        const int64_t left = end - j;
        vf sum = gemm_load(s->dw + j, left);
        for (int64_t i = 0; i < s->rows; i++) {
            const vf g = gemm_load(s->dy + norm_row(i, s->lddy, s) + j, left),
                     v = gemm_load(s->x + norm_row(i, s->ldx, s) + j, left);
            sum = v_fma(v_mul(g, v), v_set(s->rms[i]), sum);
        }
        gemm_store(s->dw + j, sum, left);
    }
}

static void norm_grad_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct norm_args *s = arg;
    for (int64_t i = begin; i < end; i++) {
        const float *x = s->x + norm_row(i, s->ldx, s), *dy = s->dy + norm_row(i, s->lddy, s), r = s->rms[i];
        float *dx = s->dx + norm_row(i, s->lddx, s);
        vf sum = v_zero();
        for (int64_t j = 0; j < s->width; j += LANES) {
            const int64_t left = s->width - j;
            sum = v_fma(v_mul(gemm_load(s->w + j, left), gemm_load(dy + j, left)), gemm_load(x + j, left), sum);
        }
        const vf k = v_set(-(v_sum(sum) * r * r * r / (float)s->width)), rv = v_set(r);
        for (int64_t j = 0; j < s->width; j += LANES) {
            const int64_t left = s->width - j;
            vf d = v_fma(k, gemm_load(x + j, left), v_mul(rv, v_mul(gemm_load(s->w + j, left), gemm_load(dy + j, left))));
            if (s->accumulate) d = v_add(gemm_load(dx + j, left), d);
            gemm_store(dx + j, d, left);
        }
    }
}

static void cpu_rmsnorm_grad(const struct kctx *c, const struct op_rmsnorm_grad *o)
{
    const struct norm_args s = {.dx = o->dx,
                                .dw = o->dw,
                                .x = o->x,
                                .dy = o->dy,
                                .w = o->w,
                                .rms = o->rms,
                                .ldx = o->ld,
                                .lddx = o->ld,
                                .lddy = o->ld,
                                .rows = o->t * o->heads,
                                .heads = o->heads,
                                .width = o->width,
                                .accumulate = o->accumulate};
    /* runs before dx is written, which may be dy */
    if (o->dw) spans(c, o->width, o->t * o->heads, LANES, norm_weight_grad, &s);
    spans(c, o->t * o->heads, o->width, 1, norm_grad_run, &s);
}
