/* AdamW and the sum of squares (definitions: ref/optimizer.c). */
enum { SQUARES_BLOCK = 4096 };

struct squares_args {
    const float *x;
    double *sums;
    int64_t n;
};

static double squares_block(const float *x, int64_t n)
{
    vd8 sums = vd8_zero();
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) sums = vd8_add_squares(sums, x + i);
    double lane[8];
    vd8_store(lane, sums);
    for (int j = 0; i < n; i++, j++) lane[j] = fma((double)x[i], (double)x[i], lane[j]);
    for (int j = 0; j < 4; j++) lane[j] += lane[j + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

static void squares_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct squares_args *s = arg;
    for (int64_t b = begin; b < end; b++) {
        const int64_t left = s->n - b * SQUARES_BLOCK;
        s->sums[b] = squares_block(s->x + b * SQUARES_BLOCK, left < SQUARES_BLOCK ? left : SQUARES_BLOCK);
    }
}

static double block_squares(const struct kctx *c, const float *x, int64_t n)
{
    const int64_t blocks = (n + SQUARES_BLOCK - 1) / SQUARES_BLOCK;
    const struct squares_args s = {x, scratch(c, 2 * blocks), n};
    double sum = 0;
    if (!s.sums) return 0;
    spans(c, blocks, SQUARES_BLOCK, 1, squares_run, &s);
    for (int64_t b = 0; b < blocks; b++) sum += s.sums[b];
    arena_reset(c->scratch);
    return sum;
}

static void cpu_sum_squares(const struct kctx *c, const struct op_sum_squares *o)
{
    for (int64_t at = 0, i = 0; at < o->n; at += o->block, i++)
        o->out[i] = block_squares(c, o->x + at, o->n - at < o->block ? o->n - at : o->block);
}

struct adamw_args {
    float *p, *m, *v;
    const float *g;
    float scale, lr, beta1, beta2, eps, shrink, r1, r2;
};

static void adamw_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct adamw_args *s = arg;
    const vf b1 = v_set(s->beta1), b2 = v_set(s->beta2), c1 = v_set(1.0f - s->beta1), c2 = v_set(1.0f - s->beta2);
    const vf scale = v_set(s->scale), lr = v_set(s->lr), eps = v_set(s->eps), shrink = v_set(-s->shrink), r1 = v_set(s->r1),
             r2 = v_set(s->r2);
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t left = end - i;
        const vf d = v_mul(gemm_load(s->g + i, left), scale), p = gemm_load(s->p + i, left), w = v_fma(shrink, p, p);
        const vf m = v_fma(b1, gemm_load(s->m + i, left), v_mul(c1, d)),
                 v = v_fma(b2, gemm_load(s->v + i, left), v_mul(c2, v_mul(d, d)));
        gemm_store(s->m + i, m, left);
        gemm_store(s->v + i, v, left);
        gemm_store(s->p + i, v_sub(w, v_div(v_mul(lr, v_mul(m, r1)), v_add(v_sqrt(v_mul(v, r2)), eps))), left);
    }
}

static void cpu_adamw(const struct kctx *c, const struct op_adamw *o)
{
    const struct adamw_args s = {o->p,
                                 o->m,
                                 o->v,
                                 o->g,
                                 o->grad_scale,
                                 o->lr,
                                 o->beta1,
                                 o->beta2,
                                 o->eps,
                                 o->lr * o->decay,
                                 (float)(1 / o->correct1),
                                 (float)(1 / o->correct2)};
    spans(c, o->n, 4, LANES, adamw_run, &s);
}
