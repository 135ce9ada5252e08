/* Rotary embedding (Su et al. 2021), half-split form: pair (i, i + D/2) of every head turned by the angle of (position, i).
 *
 *   a' = a cos - b sin      b' = b cos + a sin      (inverse: sin -> -sin)
 */
static void rope(const struct kctx *c, float *x, int64_t ld, const float *table, const int32_t *pos, int64_t t, int64_t n_heads,
                 int64_t head_dim, int inverse)
{
    (void)c;
    const int64_t half = head_dim / 2;
    for (int64_t i = 0; i < t * n_heads; i++) {
        float *row = x + i / n_heads * ld + i % n_heads * head_dim;
        const float *turn = table + pos[i / n_heads] * head_dim;
        for (int64_t j = 0; j < half; j++) {
            const float a = row[j], b = row[j + half], cosine = turn[j], sine = inverse ? -turn[j + half] : turn[j + half];
            row[j] = fmaf(a, cosine, -(b * sine));
            row[j + half] = fmaf(b, cosine, a * sine);
        }
    }
}
