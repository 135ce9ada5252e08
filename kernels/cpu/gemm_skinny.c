/* ---- few rows: all tiles of rows against a group of panels; every weight is read from memory once. */

static void gemm_rows(const struct gemm *g, int rows, const float *a, const float *b, const struct gemm_tile *t)
{
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        if (g->bf16)                                                                                                               \
            gemm_stream(R, 1, 1, (struct gemm_source){g->k, a, b, g->a_row, 0}, t);                                                \
        else                                                                                                                       \
            gemm_stream(R, 1, 0, (struct gemm_source){g->k, a, b, g->a_row, 0}, t);                                                \
        break;
        TILE_CASES(TILE)
#undef TILE
    }
}

/* How many panels the registers hold beside `rows` rows: several streams of weights in flight hide the latency of memory and of the chain. */
static int64_t gemm_streams(const struct gemm *g, int64_t rows)
{
    if (g->int8) return int8_panels(rows);
    return rows == 1 ? 4 : rows == 2 ? 3 : rows == 3 ? 2 : 1;
}

static void gemm_streamed(const struct gemm *g, int rows, const float *a, const float *b, const struct gemm_tile *t)
{
    const struct gemm_source s = {g->k, a, b, g->a_row, gemm_words(g) * NR};
    switch (rows * 2 + g->bf16) {
    case 2:
        gemm_stream(1, 4, 0, s, t);
        break;
    case 3:
        gemm_stream(1, 4, 1, s, t);
        break;
    case 4:
        gemm_stream(2, 3, 0, s, t);
        break;
    case 5:
        gemm_stream(2, 3, 1, s, t);
        break;
    case 6:
        gemm_stream(3, 2, 0, s, t);
        break;
    case 7:
        gemm_stream(3, 2, 1, s, t);
        break;
    }
}

struct gemm_skinny {
    const struct gemm *g;
    int64_t panels, group;
};

static int64_t gemm_tiles(int64_t m)
{
    return (m + MR - 1) / MR;
}

static void gemm_skinny_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct gemm_skinny *s = arg;
    const struct gemm *g = s->g;
    const int64_t end = (task + 1) * s->group < s->panels ? (task + 1) * s->group : s->panels,
                  tiles = g->int8 ? (g->m + INT8_ROWS - 1) / INT8_ROWS : gemm_tiles(g->m);
    const int64_t streams = tiles == 1 ? gemm_streams(g, g->m) : 1;
    for (int64_t p = task * s->group, step; p < end; p += step) {
        const float *panel = g->int8 ? NULL : g->panels + p * gemm_words(g) * NR;
        const int64_t left = g->n - p * NR;
        step = end - p >= streams ? streams : 1;
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t row = i * g->m / tiles, rows = (i + 1) * g->m / tiles - row;
            const struct gemm_tile t = {.c = g->c + row * g->c_row + p * NR,
                                        .c_row = g->c_row,
                                        .columns = left < step * NR ? left : step * NR,
                                        .bias = g->bias ? g->bias + p * NR : NULL,
                                        .residual = g->residual ? g->residual + row * g->c_row + p * NR : NULL};
            const float *a = g->a + row * g->a_row;
            if (g->int8)
                int8_few(g, (int)rows, step > 1, p, &t, a);
            else if (step > 1)
                gemm_streamed(g, (int)rows, a, panel, &t);
            else
                gemm_rows(g, (int)rows, a, panel, &t);
        }
    }
}

static void gemm_skinny(const struct kctx *c, const struct gemm *g)
{
    struct gemm_skinny s = {g, (g->n + NR - 1) / NR, 0};
    const int64_t streams = gemm_streams(g, g->m), threads = pool_threads(c->pool);
    s.group = (s.panels + threads * 8 - 1) / (threads * 8);
    s.group = (s.group + streams - 1) / streams * streams;
    const int64_t tasks = (s.panels + s.group - 1) / s.group;
    pool_run(g->m * g->n * g->k < 32768 ? NULL : c->pool, tasks, gemm_skinny_task, &s);
}
