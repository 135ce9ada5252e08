/* Products by tiles of MR x NR kept in registers (Goto and van de Geijn 2008; BLIS).
 *
 *   C[i,j] = chain over k of A(i,k) B(k,j),  i < m, j < n        A(i,k) = a[i a_row + k a_col]
 *
 * B comes in panels of NR columns, [n/NR][k][NR], the last one padded with zeros: weights are kept so (fp32 or bf16); for the backward
 * products panels are made on the way from a row-major B, KC x NC at a time. A is laid out once by tiles, [tile][k][rows of the tile],
 * unless it has so few rows that this does not pay. Blocking over k stores the partial chain and takes it up again, so no blocking, no
 * tile height and no thread changes a bit.
 */
enum { KC = 512, NC = 64, MC = 1536, CHUNK = 4 << 20 /* floats of A laid out at a time */, LAYOUT_TILES = 16 };

struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;
    int round_a, round_b; /* to bf16 */
    const void *panels;   /* B in panels, or NULL: */
    enum dtype panels_dtype;
    const float *b; /* B(k,j) = b[k b_row + j] */
    int64_t b_row;
    float *c;
    int64_t c_row;
    int continues;                /* the chain starts at C instead of 0 */
    const float *bias, *residual; /* residual has C's stride and may be C */
};

/* One tile's place: rows and columns of C, where its chain starts, and what comes after the chain. */
struct gemm_tile {
    float *c;
    int64_t c_row, columns;
    const float *start; /* partial sums, NULL: 0 */
    int64_t start_row;
    const float *bias, *residual;
};

INLINE vf gemm_load(const float *p, int64_t columns)
{
    return columns >= LANES ? v_load(p) : v_load_n(p, columns > 0 ? columns : 0);
}

INLINE void gemm_store(float *p, vf x, int64_t columns)
{
    if (columns >= LANES)
        v_store(p, x);
    else if (columns > 0)
        v_store_n(p, x, columns);
}

INLINE vf gemm_panel_load(const void *panel, int64_t at, int bf16)
{
    return bf16 ? v_load_bf16((const uint16_t *)panel + at) : v_load((const float *)panel + at);
}

INLINE void gemm_finish(const struct gemm_tile *t, int64_t row, int64_t column, vf x)
{
    const int64_t left = t->columns - column;
    if (left <= 0) return;
    if (t->bias) x = v_add(x, gemm_load(t->bias + column, left));
    if (t->residual) x = v_add(x, gemm_load(t->residual + row * t->c_row + column, left));
    gemm_store(t->c + row * t->c_row + column, x, left);
}

/* rows x (panels * NR): k steps. A element (r,k) at a[k a_col + r] when laid out by tiles (tiled), else at a[r a_row + k]. */
INLINE void gemm_micro(const int rows, const int panels, const int tiled, const int bf16, int64_t k, const float *a, int64_t a_row,
                       const void *b, int64_t panel_size, const struct gemm_tile *t)
{
    vf acc[MR][4 * NRV];
    const int width = panels * NRV;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) acc[r][v] =
        t->start ? gemm_load(t->start + r * t->start_row + v * LANES, t->columns - v * LANES) : v_zero();
    for (int64_t i = 0; i < k; i++) {
        vf w[4 * NRV];
        UNROLL for (int v = 0; v < width; v++) w[v] = gemm_panel_load(b, v / NRV * panel_size + i * NR + v % NRV * LANES, bf16);
        if (!tiled && panels > 1)
            UNROLL for (int v = 0; v < panels; v++)
                _mm_prefetch((const char *)b + (v * panel_size + (i + (bf16 ? 32 : 16)) * NR) * (bf16 ? 2 : 4), _MM_HINT_T0);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vf x = v_set(tiled ? a[i * rows + r] : a[r * a_row + i]);
            UNROLL for (int v = 0; v < width; v++) acc[r][v] = v_fma(x, w[v], acc[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) gemm_finish(t, r, v * LANES, acc[r][v]);
}

#define TILE_CASES(X) X(1) X(2) X(3) X(4) X(5) X(6) TILE_CASES_WIDE(X)
#if defined(__AVX512F__) || defined(CPU_TILE_512)
#define TILE_CASES_WIDE(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define TILE_CASES_WIDE(X)
#endif

/* A tile whose A is laid out, against one fp32 panel. */
static void gemm_tiled(int rows, int64_t k, const float *a, const float *b, const struct gemm_tile *t)
{
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        gemm_micro(R, 1, 1, 0, k, a, 0, b, 0, t);                                                                                  \
        break;
        TILE_CASES(TILE)
#undef TILE
    }
}

/* A tile straight from the rows of x, one panel: chains of at most a few rows. */
static void gemm_rows(int rows, int bf16, int64_t k, const float *a, int64_t a_row, const void *b, const struct gemm_tile *t)
{
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        if (bf16)                                                                                                                  \
            gemm_micro(R, 1, 0, 1, k, a, a_row, b, 0, t);                                                                          \
        else                                                                                                                       \
            gemm_micro(R, 1, 0, 0, k, a, a_row, b, 0, t);                                                                          \
        break;
        TILE_CASES(TILE)
#undef TILE
    }
}

/* How many panels the registers hold beside `rows` rows: several streams of weights in flight hide the latency of memory and of the chain. */
static int gemm_streams(int64_t rows)
{
    return rows == 1 ? 4 : rows == 2 ? 3 : rows == 3 ? 2 : 1;
}

static void gemm_streamed(int rows, int bf16, int64_t k, const float *a, int64_t a_row, const void *b, const struct gemm_tile *t)
{
    const int64_t size = k * NR;
    switch (rows * 2 + bf16) {
    case 2:
        gemm_micro(1, 4, 0, 0, k, a, a_row, b, size, t);
        break;
    case 3:
        gemm_micro(1, 4, 0, 1, k, a, a_row, b, size, t);
        break;
    case 4:
        gemm_micro(2, 3, 0, 0, k, a, a_row, b, size, t);
        break;
    case 5:
        gemm_micro(2, 3, 0, 1, k, a, a_row, b, size, t);
        break;
    case 6:
        gemm_micro(3, 2, 0, 0, k, a, a_row, b, size, t);
        break;
    case 7:
        gemm_micro(3, 2, 0, 1, k, a, a_row, b, size, t);
        break;
    }
}

/* ---- few rows: all tiles of rows against a group of panels; every weight is read from memory once. */
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
    const int bf16 = g->panels_dtype == DTYPE_BF16;
    const int64_t end = (task + 1) * s->group < s->panels ? (task + 1) * s->group : s->panels, tiles = gemm_tiles(g->m);
    const int64_t streams = tiles == 1 ? gemm_streams(g->m) : 1, panel_bytes = g->k * NR * (bf16 ? 2 : 4);
    for (int64_t p = task * s->group, step; p < end; p += step) {
        const char *panel = (const char *)g->panels + p * panel_bytes;
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
            if (step > 1)
                gemm_streamed((int)rows, bf16, g->k, a, g->a_row, panel, &t);
            else
                gemm_rows((int)rows, bf16, g->k, a, g->a_row, panel, &t);
        }
    }
}

static void gemm_skinny(const struct kctx *c, const struct gemm *g)
{
    struct gemm_skinny s = {g, (g->n + NR - 1) / NR, 0};
    const int64_t streams = gemm_streams(g->m), threads = pool_threads(c->pool);
    s.group = (s.panels + threads * 8 - 1) / (threads * 8);
    s.group = (s.group + streams - 1) / streams * streams;
    const int64_t tasks = (s.panels + s.group - 1) / s.group;
    pool_run(g->m * g->n * g->k < 32768 ? NULL : c->pool, tasks, gemm_skinny_task, &s);
}

/* ---- many rows */
struct gemm_block {
    const struct gemm *g;
    int64_t row, rows, k, ks;    /* the part of A that is laid out: rows row.., inner index k.. */
    int64_t row_blocks, columns; /* of a task */
    float *tiles, *b;            /* laid out A; KC x NC of B a thread, and beside it a C tile for the partial sums */
    float *partial;
    int first, last;
};

/* The rows of A as they are serve when a row is contiguous and not to be rounded. */
static int gemm_direct(const struct gemm *g)
{
    return g->a_col == 1 && !g->round_a;
}

static void gemm_layout_tile(const struct gemm_block *s, int64_t from, int64_t rows)
{
    const struct gemm *g = s->g;
    const float *a = g->a + (s->row + from) * g->a_row + s->k * g->a_col;
    float *to = s->tiles + from * s->ks;
    for (int64_t i = 0; i < s->ks; i++)
        for (int64_t r = 0; r < rows; r++) to[i * rows + r] = a[r * g->a_row + i * g->a_col];
}

/* A's columns are contiguous: neighbouring tiles take their parts of a line together. */
static void gemm_layout_columns(const struct gemm_block *s, int64_t tile, int64_t tile_end, int64_t tiles)
{
    const struct gemm *g = s->g;
    for (int64_t i = 0; i < s->ks; i++) {
        const float *a = g->a + s->row + (s->k + i) * g->a_col;
        for (int64_t t = tile; t < tile_end; t++) {
            const int64_t from = t * s->rows / tiles, rows = (t + 1) * s->rows / tiles - from;
            float *to = s->tiles + from * s->ks + i * rows;
            for (int64_t r = 0; r < rows; r++) to[r] = a[from + r];
        }
    }
}

static void gemm_layout_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct gemm_block *s = arg;
    const int64_t tiles = gemm_tiles(s->rows), tile = task * LAYOUT_TILES,
                  end = tile + LAYOUT_TILES < tiles ? tile + LAYOUT_TILES : tiles;
    if (s->g->a_row == 1)
        gemm_layout_columns(s, tile, end, tiles);
    else
        for (int64_t t = tile; t < end; t++)
            gemm_layout_tile(s, t * s->rows / tiles, (t + 1) * s->rows / tiles - t * s->rows / tiles);
    if (!s->g->round_a) return;
    for (int64_t i = tile * s->rows / tiles * s->ks; i < end * s->rows / tiles * s->ks; i++) s->tiles[i] = bf16_round(s->tiles[i]);
}

/* kc x columns of B into panels of fp32. */
static void gemm_panels(const struct gemm *g, float *to, int64_t k, int64_t kc, int64_t column, int64_t columns)
{
    enum { AHEAD = 8 }; /* rows are pages apart: nobody else fetches them in time */
    for (int64_t i = 0; i < kc; i++)
        for (int64_t j = 0; j < columns; j += LANES) {
            if (i + AHEAD < kc) _mm_prefetch((const char *)(g->b + (k + i + AHEAD) * g->b_row + column + j), _MM_HINT_T0);
            float *p = to + j / NR * kc * NR + i * NR + j % NR;
            v_store(p, gemm_load(g->b + (k + i) * g->b_row + column + j, columns - j));
        }
    if (columns % NR) /* the last panel's padding beyond whole vectors */
        for (int64_t i = 0; i < kc; i++)
            for (int64_t j = (columns + LANES - 1) / LANES * LANES; j % NR; j += LANES)
                v_store(to + j / NR * kc * NR + i * NR + j % NR, v_zero());
    if (g->round_b)
        for (int64_t i = 0; i < (columns + NR - 1) / NR * kc * NR; i++) to[i] = bf16_round(to[i]);
}

static void gemm_widen(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) v_store(to + i, v_load_bf16(from + i));
}

/* All tiles of a row block against the panels of one column block, for kc steps from k (counted inside the laid out part). */
static void gemm_block_step(const struct gemm_block *s, int64_t tile, int64_t tile_end, int64_t column, int64_t columns, int64_t k,
                            int64_t kc, float *b, float *partial)
{
    const struct gemm *g = s->g;
    const int64_t tiles = gemm_tiles(s->rows);
    const int starts = k > 0 || !s->first || g->continues, ends = s->last && k + kc == s->ks;
    if (!g->panels) gemm_panels(g, b, s->k + k, kc, column, columns);
    for (int64_t j = 0; j < columns; j += NR) {
        const int64_t whole = (column + j) * g->k + (s->k + k) * NR; /* in weights kept as panels */
        const float *panel = b + j * kc;
        if (g->panels && g->panels_dtype == DTYPE_F32) panel = (const float *)g->panels + whole;
        if (g->panels && g->panels_dtype == DTYPE_BF16) gemm_widen(b, (const uint16_t *)g->panels + whole, kc * NR), panel = b;
        for (int64_t i = tile; i < tile_end; i++) {
            const int64_t from = i * s->rows / tiles, rows = (i + 1) * s->rows / tiles - from, first = tile * s->rows / tiles;
            float *c = g->c + (s->row + from) * g->c_row + column + j, *hold = partial ? partial + (from - first) * NC + j : c;
            const int64_t hold_row = partial ? NC : g->c_row;
            const struct gemm_tile t = {.c = ends ? c : hold,
                                        .c_row = ends ? g->c_row : hold_row,
                                        .columns = columns - j < NR ? columns - j : NR,
                                        .start = starts ? hold : NULL,
                                        .start_row = hold_row,
                                        .bias = ends && g->bias ? g->bias + column + j : NULL,
                                        .residual =
                                            ends && g->residual ? g->residual + (s->row + from) * g->c_row + column + j : NULL};
            if (s->tiles)
                gemm_tiled((int)rows, kc, s->tiles + from * s->ks + k * rows, panel, &t);
            else
                gemm_rows((int)rows, 0, kc, g->a + (s->row + from) * g->a_row + s->k + k, g->a_row, panel, &t);
        }
    }
}

static void gemm_block_task(void *arg, int64_t task, int thread)
{
    const struct gemm_block *s = arg;
    const int64_t column = task / s->row_blocks * s->columns, block = task % s->row_blocks, tiles = gemm_tiles(s->rows);
    const int64_t columns = s->g->n - column < s->columns ? s->g->n - column : s->columns;
    const int64_t tile = block * tiles / s->row_blocks, tile_end = (block + 1) * tiles / s->row_blocks;
    float *b = s->b + (int64_t)thread * KC * NC, *partial = s->partial ? s->partial + (int64_t)thread * (MC + MR) * NC : NULL;
    for (int64_t k = 0; k < s->ks; k += KC)
        gemm_block_step(s, tile, tile_end, column, columns, k, s->ks - k < KC ? s->ks - k : KC, b, partial);
}

static void gemm_blocked(const struct kctx *c, const struct gemm *g)
{
    const int64_t threads = pool_threads(c->pool);
    const int64_t m_step = g->m < 8192 ? g->m : 8192;
    int64_t k_step = CHUNK / m_step / KC * KC;
    if (k_step < KC) k_step = KC;
    if (g->residual || k_step > g->k) k_step = g->k; /* with a residual the partial sums live only within a task */
    struct gemm_block s = {.g = g};
    if (!gemm_direct(g)) s.tiles = scratch(c, m_step * k_step);
    s.b = scratch(c, threads * KC * NC);
    if (g->residual && g->k > KC) s.partial = scratch(c, threads * (MC + MR) * NC);
    for (s.row = 0; s.row < g->m; s.row += m_step)
        for (s.k = 0; s.k < g->k; s.k += k_step) {
            s.rows = g->m - s.row < m_step ? g->m - s.row : m_step;
            s.ks = g->k - s.k < k_step ? g->k - s.k : k_step;
            s.first = s.k == 0, s.last = s.k + s.ks == g->k;
            s.row_blocks = (gemm_tiles(s.rows) * MR + MC - 1) / MC;
            s.columns = g->n / (threads * 4) / NR * NR; /* enough tasks to share, wide enough to reuse what is packed */
            if (s.columns > NC) s.columns = NC;
            if (s.columns < (g->panels ? NR : 2 * NR)) s.columns = g->panels ? NR : 2 * NR;
            if (s.tiles) pool_run(c->pool, (gemm_tiles(s.rows) + LAYOUT_TILES - 1) / LAYOUT_TILES, gemm_layout_task, &s);
            pool_run(c->pool, (g->n + s.columns - 1) / s.columns * s.row_blocks, gemm_block_task, &s);
        }
}
