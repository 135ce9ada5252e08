/* AdamW (Loshchilov and Hutter 2019) on one flat buffer, and the sum of squares for the gradient norm.
 *
 *   g' = g scale;  p -= lr decay p;  m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2;  p -= lr (m/c1) / (sqrt(v/c2) + eps)
 *
 * Sum of squares: per block of 4096 elements in double, 8 lanes (lane i%8) added in the tree 4+4, 2+2, 1+1; blocks in order.
 */
enum { SQUARES_BLOCK = 4096 };

static double squares_block(const float *x, int64_t n)
{
    double lane[8] = {0};
    for (int64_t i = 0; i < n; i++) lane[i % 8] = fma((double)x[i], (double)x[i], lane[i % 8]);
    for (int i = 0; i < 4; i++) lane[i] += lane[i + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

static double sum_squares(const struct kctx *c, const float *x, int64_t n)
{
    (void)c;
    double sum = 0;
    for (int64_t i = 0; i < n; i += SQUARES_BLOCK) sum += squares_block(x + i, n - i < SQUARES_BLOCK ? n - i : SQUARES_BLOCK);
    return sum;
}

static void adamw(const struct kctx *c, float *p, const float *g, float *m, float *v, int64_t n, float grad_scale, float lr,
                  float beta1, float beta2, float eps, float decay, double correct1, double correct2)
{
    (void)c;
    const float shrink = lr * decay, r1 = (float)(1 / correct1), r2 = (float)(1 / correct2);
    for (int64_t i = 0; i < n; i++) {
        const float d = g[i] * grad_scale, w = fmaf(-shrink, p[i], p[i]);
        m[i] = fmaf(beta1, m[i], (1.0f - beta1) * d);
        v[i] = fmaf(beta2, v[i], (1.0f - beta2) * (d * d));
        p[i] = w - lr * (m[i] * r1) / (sqrtf(v[i] * r2) + eps);
    }
}
