/* Rotary embedding (Su et al. 2021), half-split form: pair (i, i + R/2) of every head turned by the angle of (position, i). R is D, or less where only
 * the first elements of a head are turned.
 *
 *   a' = a cos - b sin      b' = b cos + a sin      (inverse: sin -> -sin)
 */
static void rope(const struct kctx *c, const struct op_rope *o)
{
    (void)c;
    const int64_t turned = o->rotary_dim ? o->rotary_dim : o->head_dim, half = turned / 2;
    for (int64_t i = 0; i < o->t * o->n_heads; i++) {
        float *row = o->x + i / o->n_heads * o->ld + i % o->n_heads * o->head_dim;
        const float *turn = o->table + o->pos[i / o->n_heads] * turned;
        for (int64_t j = 0; j < half; j++) {
            const float a = row[j], b = row[j + half], cosine = turn[j], sine = o->inverse ? -turn[j + half] : turn[j + half];
            row[j] = fmaf(a, cosine, -(b * sine));
            row[j + half] = fmaf(b, cosine, a * sine);
        }
    }
}
