/* ---- few rows: all tiles of rows against a group of panels; every weight is read from memory
 * once. */

static void gemm_rows(const struct gemm *g, int rows, const float *a, const float *b, const struct gemm_tile *t)
{
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        if (g->bf16)                                                                                                               \
            gemm_stream(R, 1, (struct gemm_source){g->k, a, b, g->a_row}, t);                                                      \
        else                                                                                                                       \
            gemm_stream(R, 0, (struct gemm_source){g->k, a, b, g->a_row}, t);                                                      \
        break;
        TILE_CASES(TILE)
#undef TILE
    }
}

struct gemm_skinny {
    const struct gemm *g;
    int64_t panels, tasks;
};

static int64_t gemm_tiles(int64_t m)
{
    return (m + MR - 1) / MR;
}

/* First panel of a task. Tasks differ by at most one panel, so that threads get equal shares. */
static int64_t gemm_skinny_panel(const struct gemm_skinny *s, int64_t task)
{
    return (task * s->panels + s->tasks - 1) / s->tasks;
}

static void gemm_skinny_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct gemm_skinny *s = arg;
    const struct gemm *g = s->g;
    const int64_t end = gemm_skinny_panel(s, task + 1), tiles = g->int8 ? (g->m + INT8_ROWS - 1) / INT8_ROWS : gemm_tiles(g->m);
    for (int64_t p = gemm_skinny_panel(s, task); p < end; p++) {
        const int64_t left = g->n - p * NR;
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t row = i * g->m / tiles, rows = (i + 1) * g->m / tiles - row;
            const struct gemm_tile t = {.c = g->c + row * g->c_row + p * NR,
                                        .c_row = g->c_row,
                                        .columns = left < NR ? left : NR,
                                        .bias = g->bias ? g->bias + p * NR : NULL,
                                        .residual = g->residual ? g->residual + row * g->c_row + p * NR : NULL};
            const float *a = (const float *)g->a + row * g->a_row;
            if (g->int8)
                int8_few(g, (int)rows, p, &t, a);
            else
                gemm_rows(g, (int)rows, a, g->panels + p * gemm_words(g) * NR, &t);
        }
    }
}

static void gemm_skinny(const struct kctx *c, const struct gemm *g)
{
    const int64_t panels = (g->n + NR - 1) / NR, most = pool_threads(c->pool) * 8;
    struct gemm_skinny s = {g, panels, panels < most ? panels : most};
    pool_run(g->m * g->n * g->k < 32768 ? NULL : c->pool, s.tasks, gemm_skinny_task, &s);
}
