/* Rows in and out:  x[t,:] = table[ids[t],:]    dtable[ids[t],:] += dx[t,:]    y += x    y[i,:] = x[rows[i],:]    y[rows[i],:] += x[i,:]
 * Sums run over t (or i) in order. */
static void embed(const struct kctx *c, float *x, const float *table, const int32_t *ids, int64_t t, int64_t width)
{
    (void)c;
    for (int64_t i = 0; i < t; i++) memcpy(x + i * width, table + ids[i] * width, (size_t)width * sizeof *x);
}

static void embed_grad(const struct kctx *c, float *dtable, const float *dx, const int32_t *ids, int64_t t, int64_t width)
{
    (void)c;
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < width; j++) dtable[ids[i] * width + j] += dx[i * width + j];
}

static void add(const struct kctx *c, float *y, const float *x, int64_t n)
{
    (void)c;
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

static void gather_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width)
{
    (void)c;
    for (int64_t i = 0; i < n; i++) memcpy(y + i * width, x + rows[i] * width, (size_t)width * sizeof *y);
}

static void scatter_add_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width)
{
    (void)c;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) y[rows[i] * width + j] += x[i * width + j];
}
