/* Rotary embedding (Su et al. 2021), half-split form: pair (i, i + R/2) of every head is rotated by
 * the angle of (position, i). R is D, or less if only the first elements of a head are rotated.
 *
 *   a' = a cos - b sin      b' = b cos + a sin      (inverse: sin -> -sin) */
static void ref_rope(const struct kctx *c, const struct op_rope *o)
{
    (void)c;
    const int64_t rotary_dim = o->rotary_dim ? o->rotary_dim : o->head_dim, half = rotary_dim / 2;
    for (int64_t i = 0; i < o->t * o->n_heads; i++) {
        float *row = o->x + i / o->n_heads * o->ld + i % o->n_heads * o->head_dim;
        const float *angles = o->table + o->pos[i / o->n_heads] * rotary_dim;
        for (int64_t j = 0; j < half; j++) {
            const float a = row[j], b = row[j + half], cosine = angles[j], sine = o->inverse ? -angles[j + half] : angles[j + half];
            row[j] = fmaf(a, cosine, -(b * sine));
            row[j + half] = fmaf(b, cosine, a * sine);
        }
    }
}
