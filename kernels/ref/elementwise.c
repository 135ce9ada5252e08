/* Rows and columns:
 *
 *   x[t,:] = table[ids[t],:]    dtable[ids[t],:] += dx[t,:]    y += x
 *   y[i,:] = x[rows[i],:]       y[rows[i],:] += x[i,:]
 *   y[t,j] = scale x[t,j], or fma(scale, x[t,j], y[t,j]) to accumulate
 *
 * Sums run over t (or i) in order. */
static void ref_embed(const struct kctx *c, const struct op_embed *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t; i++)
        memcpy(o->x + i * o->width, o->table + o->ids[i] * o->width, (size_t)o->width * sizeof *o->x);
}

static void ref_embed_grad(const struct kctx *c, const struct op_embed_grad *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t; i++)
        for (int64_t j = 0; j < o->width; j++) o->dtable[o->ids[i] * o->width + j] += o->dx[i * o->width + j];
}

static void ref_add(const struct kctx *c, const struct op_add *o)
{
    (void)c;
    for (int64_t i = 0; i < o->n; i++) o->y[i] += o->x[i];
}

static void ref_add_columns(const struct kctx *c, const struct op_add_columns *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t; i++)
        for (int64_t j = 0; j < o->n; j++) {
            const float x = o->x[i * o->ldx + j];
            float *y = o->y + i * o->ldy + j;
            *y = o->accumulate ? fmaf(o->scale, x, *y) : o->scale * x;
        }
}

static void ref_to_bf16(const struct kctx *c, const struct op_to_bf16 *o)
{
    uint16_t *y = o->y;
    (void)c;
    for (int64_t i = 0; i < o->n; i++) y[i] = bf16_from_f32(o->x[i]);
}

static void ref_gather_rows(const struct kctx *c, const struct op_gather_rows *o)
{
    (void)c;
    for (int64_t i = 0; i < o->n; i++) memcpy(o->y + i * o->width, o->x + o->rows[i] * o->width, (size_t)o->width * sizeof *o->y);
}

static void ref_scatter_add_rows(const struct kctx *c, const struct op_scatter_add_rows *o)
{
    (void)c;
    for (int64_t i = 0; i < o->n; i++)
        for (int64_t j = 0; j < o->width; j++) o->y[o->rows[i] * o->width + j] += o->x[i * o->width + j];
}
