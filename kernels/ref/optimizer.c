/* AdamW (Loshchilov and Hutter 2019) on one flat buffer, and the sum of squares for the gradient
 * norm.
 *
 *   g' = g scale;  p -= lr decay p;  m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2
 *   p -= lr (m/c1) / (sqrt(v/c2) + eps)
 *
 * Sum of squares: per block of 4096 elements in double, 8 lanes (lane i%8) added in the tree 4+4,
 * 2+2, 1+1; blocks in order. */
enum { SQUARES_BLOCK = 4096 };

static double squares_block(const float *x, int64_t n)
{
    double lane[8] = {0};
    for (int64_t i = 0; i < n; i++) lane[i % 8] = fma((double)x[i], (double)x[i], lane[i % 8]);
    for (int i = 0; i < 4; i++) lane[i] += lane[i + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

static void ref_sum_squares(const struct kctx *c, const struct op_sum_squares *o)
{
    (void)c;
    for (int64_t at = 0, i = 0; at < o->n; at += o->block, i++) {
        const float *x = o->x + at;
        const int64_t n = o->n - at < o->block ? o->n - at : o->block;
        o->out[i] = 0;
        for (int64_t j = 0; j < n; j += SQUARES_BLOCK)
            o->out[i] += squares_block(x + j, n - j < SQUARES_BLOCK ? n - j : SQUARES_BLOCK);
    }
}

static void ref_adamw(const struct kctx *c, const struct op_adamw *o)
{
    (void)c;
    const float shrink = o->lr * o->decay, r1 = (float)(1 / o->correct1), r2 = (float)(1 / o->correct2);
    for (int64_t i = 0; i < o->n; i++) {
        const float d = o->g[i] * o->grad_scale, w = fmaf(-shrink, o->p[i], o->p[i]);
        o->m[i] = fmaf(o->beta1, o->m[i], (1.0f - o->beta1) * d);
        o->v[i] = fmaf(o->beta2, o->v[i], (1.0f - o->beta2) * (d * d));
        o->p[i] = w - o->lr * (o->m[i] * r1) / (sqrtf(o->v[i] * r2) + o->eps);
    }
}
