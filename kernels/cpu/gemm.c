/* Products by tiles of MR x NR kept in registers (Goto and van de Geijn 2008; BLIS).
 *
 *   C[i,j] = chain over k of A(i,k) B(k,j),  i < m, j < n        A(i,k) = a[i a_row + k a_col]
 *
 * B comes in panels of NR columns, [n/NR][words][NR], the last one padded with zeros: weights are kept so; for the backward products panels
 * are made from a row-major B. A word is an fp32 number, or two bf16 numbers, k even and k odd, of which the chain takes the odd one first, as
 * vdpbf16ps does (CPU_DOT). Without that instruction a word of two is made into two steps of fp32; the bits are the same.
 * With many rows a task is a block of rows against a group of panels, KC steps at a time: its part of A lies in the second cache, a panel's
 * part in the first. Blocking over k stores the partial chain and takes it up again, so no blocking, no tile height and no thread changes a bit.
 */
#ifdef CPU_DOT
enum { DOT = 1 };
#else
enum { DOT = 0 };
INLINE vf v_dot(vf x, vf y, vf sum) /* not called */
{
    (void)x, (void)y;
    return sum;
}
#endif

enum {
    KC = MR < 8 ? 576 : 288, /* steps: partial sums cost more than a panel that is fetched from the second cache once more */
    MC_TILES = 8,            /* tiles of a block of rows */
    NC = MR < 8 ? 192 : 384, /* columns of a group, at most: sums and A leave half of the second cache free */
    PACKED = 4 << 20         /* words of B made into panels at a time */
};

struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col; /* one of them 1 */
    int bf16;             /* A and B are rounded; A of few rows already is (matmul_few_rows), and panels are */
    const float *panels;  /* B in panels, or NULL: */
    const float *b;       /* B(k,j) = b[k b_row + j] */
    int64_t b_row;
    float *c;
    int64_t c_row;
    int continues;                /* the chain starts at C instead of 0 */
    const float *bias, *residual; /* added to the complete chain; residual has C's stride and may be C */
};

/* One tile's place: rows and columns of C, where its chain starts, and what comes after the chain. */
struct gemm_tile {
    float *c;
    int64_t c_row, columns;
    const float *start; /* partial sums, NULL: 0 */
    int64_t start_row;
    const float *bias, *residual;
    const char *ahead; /* fetched meanwhile, so many bytes every STEPS steps */
    int64_t ahead_step;
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

static int64_t gemm_words(const struct gemm *g)
{
    return g->bf16 ? (g->k + 1) / 2 : g->k;
}

INLINE void gemm_finish(const struct gemm_tile *t, int64_t row, int64_t column, vf x)
{
    const int64_t left = t->columns - column;
    if (left <= 0) return;
    if (t->bias) x = v_add(x, gemm_load(t->bias + column, left));
    if (t->residual) x = v_add(x, gemm_load(t->residual + row * t->c_row + column, left));
    gemm_store(t->c + row * t->c_row + column, x, left);
}

INLINE void gemm_begin(vf acc[][4 * NRV], const int rows, const int width, const struct gemm_tile *t)
{
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) acc[r][v] =
        t->start ? gemm_load(t->start + r * t->start_row + v * LANES, t->columns - v * LANES) : v_zero();
}

INLINE void gemm_end(vf acc[][4 * NRV], const int rows, const int width, const struct gemm_tile *t)
{
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) gemm_finish(t, r, v * LANES, acc[r][v]);
}

enum half { WHOLE, ODD, EVEN, BOTH }; /* of a word: it is fp32; one number of a pair; the pair, by v_dot */

INLINE vf gemm_half(vf words, const enum half half)
{
    return half == ODD ? v_odd(words) : half == EVEN ? v_even(words) : words;
}

/* One step of A, a[r] or a[r a_row], against `width` vectors of words; those of one panel lie together, the next panel's `panel_size` on. */
INLINE void gemm_step(vf acc[][4 * NRV], const int rows, const int width, const enum half half, const int tiled, const float *a,
                      int64_t a_row, const float *b, int64_t panel_size)
{
    vf w[4 * NRV];
    UNROLL for (int v = 0; v < width; v++) w[v] = gemm_half(v_load(b + v / NRV * panel_size + v % NRV * LANES), half);
    UNROLL for (int r = 0; r < rows; r++)
    {
        const vf x = v_set(tiled ? a[r] : a[r * a_row]);
        UNROLL for (int v = 0; v < width; v++) acc[r][v] = half == BOTH ? v_dot(x, w[v], acc[r][v]) : v_fma(x, w[v], acc[r][v]);
    }
}

/* rows x (panels * NR) straight from the rows of x: a[r a_row + k]. Weights come from memory. */
TILE_FUNCTION void gemm_stream(const int rows, const int panels, const int bf16, int64_t k, const float *a, int64_t a_row,
                               const float *b, int64_t panel_size, const struct gemm_tile *t)
{
    vf acc[MR][4 * NRV];
    const int width = panels * NRV;
    const int64_t words = bf16 ? k / 2 : k;
    gemm_begin(acc, rows, width, t);
    for (int64_t i = 0; i < words; i++, b += NR) {
        if (panels > 1)
            UNROLL for (int v = 0; v < panels; v++) _mm_prefetch((const char *)(b + v * panel_size + 16 * NR), _MM_HINT_T0);
        if (bf16 && !DOT) {
            gemm_step(acc, rows, width, ODD, 0, a + 2 * i + 1, a_row, b, panel_size);
            gemm_step(acc, rows, width, EVEN, 0, a + 2 * i, a_row, b, panel_size);
        } else {
            gemm_step(acc, rows, width, bf16 ? BOTH : WHOLE, 0, a + i, a_row, b, panel_size);
        }
    }
    if (bf16 && k % 2) gemm_step(acc, rows, width, DOT ? BOTH : EVEN, 0, a + (DOT ? words : k - 1), a_row, b, panel_size);
    gemm_end(acc, rows, width, t);
}

enum { STEPS = MR < 8 ? 4 : 2 };

/* rows x NR, everything in the caches. A(r,k): a[k MR + r] (tiled) or a[r a_row + k]. */
TILE_FUNCTION void gemm_micro(const int rows, const enum half half, const int tiled, int64_t k, const float *a, int64_t a_row,
                              const float *b, const struct gemm_tile *t)
{
    vf acc[MR][4 * NRV];
    const int64_t a_step = tiled ? MR : 1;
    const char *ahead = t->ahead;
    int64_t i = 0;
    gemm_begin(acc, rows, NRV, t);
    for (; i + STEPS <= k; i += STEPS, ahead += t->ahead_step) {
        _mm_prefetch(ahead, _MM_HINT_T0);
        UNROLL for (int j = 0; j < STEPS; j++)
            gemm_step(acc, rows, NRV, half, tiled, a + (i + j) * a_step, a_row, b + (i + j) * NR, 0);
    }
    for (; i < k; i++) gemm_step(acc, rows, NRV, half, tiled, a + i * a_step, a_row, b + i * NR, 0);
    gemm_end(acc, rows, NRV, t);
}

#define TILE_CASES(X) X(1) X(2) X(3) X(4) X(5) X(6) TILE_CASES_WIDE(X)
#if defined(__AVX512F__) || defined(CPU_TILE_512)
#define TILE_CASES_WIDE(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define TILE_CASES_WIDE(X)
#endif

static void gemm_cached(int rows, int dot, int tiled, int64_t k, const float *a, int64_t a_row, const float *b,
                        const struct gemm_tile *t)
{
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        if (DOT && dot && tiled)                                                                                                   \
            gemm_micro(R, BOTH, 1, k, a, 0, b, t);                                                                                 \
        else if (DOT && dot)                                                                                                       \
            gemm_micro(R, BOTH, 0, k, a, a_row, b, t);                                                                             \
        else if (tiled)                                                                                                            \
            gemm_micro(R, WHOLE, 1, k, a, 0, b, t);                                                                                \
        else                                                                                                                       \
            gemm_micro(R, WHOLE, 0, k, a, a_row, b, t);                                                                            \
        break;
        TILE_CASES(TILE)
#undef TILE
    }
}

static void gemm_rows(int rows, int bf16, int64_t k, const float *a, int64_t a_row, const float *b, const struct gemm_tile *t)
{
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        if (bf16)                                                                                                                  \
            gemm_stream(R, 1, 1, k, a, a_row, b, 0, t);                                                                            \
        else                                                                                                                       \
            gemm_stream(R, 1, 0, k, a, a_row, b, 0, t);                                                                            \
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

static void gemm_streamed(int rows, int bf16, int64_t k, const float *a, int64_t a_row, const float *b, const struct gemm_tile *t)
{
    const int64_t size = (bf16 ? (k + 1) / 2 : k) * NR;
    switch (rows * 2 + bf16) {
    case 2:
        gemm_stream(1, 4, 0, k, a, a_row, b, size, t);
        break;
    case 3:
        gemm_stream(1, 4, 1, k, a, a_row, b, size, t);
        break;
    case 4:
        gemm_stream(2, 3, 0, k, a, a_row, b, size, t);
        break;
    case 5:
        gemm_stream(2, 3, 1, k, a, a_row, b, size, t);
        break;
    case 6:
        gemm_stream(3, 2, 0, k, a, a_row, b, size, t);
        break;
    case 7:
        gemm_stream(3, 2, 1, k, a, a_row, b, size, t);
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
    const int64_t end = (task + 1) * s->group < s->panels ? (task + 1) * s->group : s->panels, tiles = gemm_tiles(g->m);
    const int64_t streams = tiles == 1 ? gemm_streams(g->m) : 1;
    for (int64_t p = task * s->group, step; p < end; p += step) {
        const float *panel = g->panels + p * gemm_words(g) * NR;
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
                gemm_streamed((int)rows, g->bf16, g->k, a, g->a_row, panel, &t);
            else
                gemm_rows((int)rows, g->bf16, g->k, a, g->a_row, panel, &t);
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
enum {
    A_ROW = KC + LANES,       /* floats from row to row: an odd number of cache lines */
    A_TILE = KC * MR + LANES, /* a tile of columns, [KC][MR], and room for a vector's end */
    OWN_A = MC_TILES * MR * A_ROW + LANES,
    OWN_SUMS = MC_TILES * MR * NC,
    OWN = OWN_A + OWN_SUMS + KC * NR
};

struct gemm_block {
    const struct gemm *g;
    int64_t word, words;               /* of the inner index, from `word` on */
    int64_t tiles, row_blocks, groups; /* of all rows; tasks down and across */
    float *b;                          /* B's panels for these words; NULL: g->panels */
    float *own;                        /* [threads, OWN]: part of A, partial sums, a panel made fp32 */
};

/* Words that are made into two steps each. */
static int gemm_splits(const struct gemm *g)
{
    return g->bf16 && !DOT;
}

/* Words of a chunk at most, and steps of the chain that words from `word` on are. */
static int64_t gemm_chunk(const struct gemm *g)
{
    return gemm_splits(g) ? KC / 2 : KC;
}

static int64_t gemm_steps(const struct gemm *g, int64_t word, int64_t words)
{
    if (!gemm_splits(g)) return words;
    return 2 * (word + words) > g->k ? g->k - 2 * word : 2 * words;
}

/* A task's share, and its memory. */
struct gemm_share {
    int64_t tile, tile_end, panel, panel_end, row;
    float *a, *sums, *wide;
};

static int64_t gemm_tile_row(const struct gemm_block *s, int64_t tile)
{
    return tile * s->g->m / s->tiles;
}

/* Row a, from a word on, as the chain takes it: as it is, in words of two, or the odd one of two first. */
static void gemm_take_row(const struct gemm *g, float *to, const float *a, int64_t word, int64_t words)
{
    if (!g->bf16) {
        memcpy(to, a + word, (size_t)words * sizeof *to);
        return;
    }
    const int64_t n = 2 * (word + words) > g->k ? g->k - 2 * word : 2 * words;
    a += 2 * word;
    int64_t i = 0;
    if (DOT) {
        for (; i + LANES <= n; i += LANES) v_store_bf16(to + i / 2, v_load(a + i));
        for (; i + 1 < n; i += 2) to[i / 2] = f32_from_bits((uint32_t)bf16_from_f32(a[i + 1]) << 16 | bf16_from_f32(a[i]));
        if (n % 2) to[n / 2] = f32_from_bits(bf16_from_f32(a[n - 1]));
        return;
    }
    for (; i + LANES <= n; i += LANES) v_store(to + i, v_round_bf16(v_swap(v_load(a + i))));
    for (; i + 1 < n; i += 2) to[i] = bf16_round(a[i + 1]), to[i + 1] = bf16_round(a[i]);
    if (n % 2) to[n - 1] = bf16_round(a[n - 1]);
}

/* A's rows are contiguous. They are copied because rows whole pages apart would meet in one set of the cache. */
static void gemm_take_rows(const struct gemm_block *s, const struct gemm_share *o, int64_t word, int64_t words)
{
    const struct gemm *g = s->g;
    const int64_t end = gemm_tile_row(s, o->tile_end);
    for (int64_t r = o->row; r < end; r++) gemm_take_row(g, o->a + (r - o->row) * A_ROW, g->a + r * g->a_row, word, words);
}

/* LANES numbers from row k of something contiguous along the other index, as far as there are: A's columns, B's rows. */
INLINE vf gemm_across(const float *p, int64_t row, int64_t k, int64_t end, int64_t left)
{
    return k < end ? gemm_load(p + k * row, left) : v_zero();
}

/* A's columns are contiguous: tiles as [step][MR]. Whole vectors are stored; the next step writes over what is too much. */
static void gemm_take_columns(const struct gemm_block *s, const struct gemm_share *o, int64_t word, int64_t words)
{
    enum { AHEAD = 8 /* rows are pages apart: nobody else fetches them in time */ };
    const struct gemm *g = s->g;
    const int64_t steps = gemm_steps(g, word, words), k = g->bf16 ? 2 * word : word, end = g->k;
    const int pairs = g->bf16 && DOT;
    for (int64_t i = 0; i < steps; i++) {
        const int64_t at = pairs ? k + 2 * i : k + (g->bf16 ? bf16_place(i, steps) : i);
        for (int64_t t = o->tile; t < o->tile_end; t++) {
            const int64_t from = gemm_tile_row(s, t), left = g->m - from;
            float *to = o->a + (t - o->tile) * A_TILE + i * MR;
            if (at + AHEAD < end) _mm_prefetch((const char *)(g->a + (at + AHEAD) * g->a_col + from), _MM_HINT_T0);
            if (pairs && at + AHEAD + 1 < end) _mm_prefetch((const char *)(g->a + (at + AHEAD + 1) * g->a_col + from), _MM_HINT_T0);
            if (pairs)
                v_store(to, v_pair(gemm_across(g->a + from, g->a_col, at, end, left),
                                   gemm_across(g->a + from, g->a_col, at + 1, end, left)));
            else if (g->bf16)
                v_store(to, v_round_bf16(gemm_load(g->a + at * g->a_col + from, left)));
            else if (MR > 8 || left < 8)
                v_store(to, gemm_load(g->a + at * g->a_col + from, left));
            else
                _mm256_storeu_ps(to, _mm256_loadu_ps(g->a + at * g->a_col + from));
        }
    }
}

static void gemm_fetch(const float *p, int64_t row, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++) _mm_prefetch((const char *)(p + r * row), _MM_HINT_T0);
}

/* All tiles of a share against kc steps, `words` words, of one panel: the first, the last of their chains or neither. */
static void gemm_panel(const struct gemm_block *s, const struct gemm_share *o, int64_t p, const float *panel, const float *next,
                       int64_t words, int64_t kc, int first, int last)
{
    const struct gemm *g = s->g;
    const int64_t column = p * NR, tiles = o->tile_end - o->tile, share = (words * NR * 4 + tiles - 1) / tiles;
    const int continues = first && (g->continues || s->word > 0), ends = last && s->word + s->words == gemm_words(g),
              tiled = g->a_col != 1;
    for (int64_t i = 0, from = o->row, end; i < tiles; i++, from = end) {
        end = gemm_tile_row(s, o->tile + i + 1);
        float *c = g->c + from * g->c_row + column, *sums = o->sums + (from - o->row) * NC + (p - o->panel) * NR;
        const struct gemm_tile t = {.c = last ? c : sums,
                                    .c_row = last ? g->c_row : NC,
                                    .columns = g->n - column < NR ? g->n - column : NR,
                                    .start = continues ? c
                                             : first   ? NULL
                                                       : sums,
                                    .start_row = continues ? g->c_row : NC,
                                    .bias = ends && g->bias ? g->bias + column : NULL,
                                    .residual = ends && g->residual ? g->residual + from * g->c_row + column : NULL,
                                    .ahead = (const char *)next + i * share,
                                    .ahead_step = (share + kc / STEPS) / (kc / STEPS + 1)};
        if (continues && i + 1 < tiles) gemm_fetch(c + (end - from) * g->c_row, g->c_row, MR);
        if (t.residual) gemm_fetch(t.residual, g->c_row, end - from);
        gemm_cached((int)(end - from), g->bf16, tiled, kc, o->a + (tiled ? i * A_TILE : (from - o->row) * A_ROW), A_ROW, panel, &t);
    }
}

/* Words of pairs as steps of fp32; of an odd last one only the even half. */
static void gemm_split(float *to, const float *from, int64_t steps)
{
    for (int64_t i = 0; i + 1 < steps; i += 2, from += NR)
        for (int v = 0; v < NRV; v++) {
            v_store(to + i * NR + v * LANES, v_odd(v_load(from + v * LANES)));
            v_store(to + (i + 1) * NR + v * LANES, v_even(v_load(from + v * LANES)));
        }
    for (int v = 0; steps % 2 && v < NRV; v++) v_store(to + (steps - 1) * NR + v * LANES, v_even(v_load(from + v * LANES)));
}

static void gemm_block_task(void *arg, int64_t task, int thread)
{
    const struct gemm_block *s = arg;
    const struct gemm *g = s->g;
    const int64_t block = task % s->row_blocks, group = task / s->row_blocks, panels = (g->n + NR - 1) / NR;
    const int64_t chunks = (s->words + gemm_chunk(g) - 1) / gemm_chunk(g), stride = (s->b ? s->words : gemm_words(g)) * NR;
    const float *b = s->b ? s->b : g->panels;
    struct gemm_share o = {.tile = block * s->tiles / s->row_blocks,
                           .tile_end = (block + 1) * s->tiles / s->row_blocks,
                           .panel = group * panels / s->groups,
                           .panel_end = (group + 1) * panels / s->groups,
                           .a = s->own + thread * OWN};
    o.row = gemm_tile_row(s, o.tile), o.sums = o.a + OWN_A, o.wide = o.sums + OWN_SUMS;
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t word = c * s->words / chunks, words = (c + 1) * s->words / chunks - word,
                      steps = gemm_steps(g, s->word + word, words);
        if (g->a_col != 1)
            gemm_take_columns(s, &o, s->word + word, words);
        else
            gemm_take_rows(s, &o, s->word + word, words);
        for (int64_t p = o.panel; p < o.panel_end; p++) {
            const float *panel = b + p * stride + word * NR, *next = p + 1 < o.panel_end ? panel + stride : panel;
            if (gemm_splits(g)) gemm_split(o.wide, panel, steps);
            gemm_panel(s, &o, p, gemm_splits(g) ? o.wide : panel, next, words, steps, c == 0, c + 1 == chunks);
        }
    }
}

/* Rows of B into words of panels. */
enum { PACK_WORDS = 16 };
static void gemm_pack_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct gemm_block *s = arg;
    const struct gemm *g = s->g;
    const int64_t begin = task * PACK_WORDS, end = begin + PACK_WORDS < s->words ? begin + PACK_WORDS : s->words,
                  padded = (g->n + NR - 1) / NR * NR;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < padded; j += LANES) {
            const int64_t k = s->word + i, left = g->n - j;
            const float *b = g->b + j;
            float *to = s->b + j / NR * s->words * NR + i * NR + j % NR;
            if (g->bf16)
                v_store(to, v_pair(gemm_across(b, g->b_row, 2 * k, g->k, left), gemm_across(b, g->b_row, 2 * k + 1, g->k, left)));
            else
                v_store(to, gemm_load(b + k * g->b_row, left));
        }
}

/* Tasks down and across: enough for the threads, but A is copied once for every group, which is cheap only while it stays in the cache. With one
 * block of rows B comes from memory, so its panels are dealt to the threads and not the rows. */
static void gemm_cut(struct gemm_block *s, int64_t threads)
{
    const int64_t panels = (s->g->n + NR - 1) / NR;
    s->tiles = gemm_tiles(s->g->m);
    s->row_blocks = (s->tiles + MC_TILES - 1) / MC_TILES;
    if (s->row_blocks > 1) s->row_blocks = (s->row_blocks + threads - 1) / threads * threads;
    if (s->row_blocks > s->tiles) s->row_blocks = s->tiles;
    s->groups = (panels * NR + NC - 1) / NC;
    while (s->groups * NC < (panels + s->groups - 1) / s->groups * s->groups * NR) s->groups++;
    const int64_t least = s->row_blocks > 1 ? 6 : 2, tasks = threads * (s->g->m * s->words <= 1 << 20 ? 4 : 2);
    int64_t wanted = (tasks + s->row_blocks - 1) / s->row_blocks;
    if (wanted * least > panels) wanted = panels / least;
    if (threads > 1 && s->groups < wanted) s->groups = wanted;
}

static void gemm_blocked(const struct kctx *c, const struct gemm *g)
{
    const int64_t threads = pool_threads(c->pool), padded = (g->n + NR - 1) / NR * NR, all = gemm_words(g), chunk = gemm_chunk(g);
    int64_t most = all;
    if (!g->panels && !g->residual && padded * all > PACKED) /* steps in between leave partial sums in C */
        most = PACKED / padded > chunk ? PACKED / padded / chunk * chunk : chunk;
    struct gemm_block s = {.g = g, .own = scratch(c, threads * OWN)};
    if (!g->panels) s.b = scratch(c, padded * (most < all ? most : all));
    if (!s.own || (!g->panels && !s.b)) return;
    for (s.word = 0; s.word < all; s.word += most) {
        s.words = all - s.word < most ? all - s.word : most;
        gemm_cut(&s, threads);
        if (s.b) pool_run(c->pool, (s.words + PACK_WORDS - 1) / PACK_WORDS, gemm_pack_task, &s);
        pool_run(c->pool, s.row_blocks * s.groups, gemm_block_task, &s);
    }
}
