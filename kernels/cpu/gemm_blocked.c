/* ---- many rows
 *
 * A task is a block of rows against a group of panels. Its part of A is laid into tiles, [step][MR], where it stays for all panels of the group, and for
 * the next task of the same thread when that has the same rows; a panel is used by all tiles of the block before the next.
 *
 * How large these are follows from the caches (caches.h) by a model whose shares were measured (docs/dev/performance.md):
 *   steps of a chunk    A tile of A is read once for every panel, B's panel once for every tile, both in sequence; the panel may come from the second cache.
 *                       So a tile of 14 rows takes up to seven eighths of the first cache, one of 6 rows, beside which B's stream is wider, half of that.
 *   tiles of a block    The block of A in a third of the second cache. The rest is left to panels on their way and to C, and half may be a neighbour's.
 *   columns of a group  All, where the chain is complete in one chunk; else the block's partial sums are in a quarter of the second cache.
 */
struct gemm_sizes {
    int64_t steps, tiles, columns;
};

struct gemm_block {
    const struct gemm *g;
    int64_t word, words;               /* of the inner index, from `word` on */
    int64_t tiles, row_blocks, groups; /* of all rows; tasks down and across */
    float *b;                          /* B's panels for these words; NULL: g->panels */
    const char *later;                 /* rows of B that the next panels are made from, fetched meanwhile; NULL: none */
    int64_t later_bytes;
    struct gemm_sizes most;
    int64_t chunks, kept;              /* of these words; of A at a time: 1 or all */
    int64_t a_tile, a_chunk, sums_row; /* floats */
    int64_t own_size;
    float *own;    /* [threads, own_size]: part of A, partial sums, a panel made fp32 */
    int64_t *held; /* [threads] the block of rows whose A lies there, -1: none */
};

/* A task's share, and its memory. */
struct gemm_share {
    int64_t tile, tile_end, panel, panel_end, row;
    float *a, *sums, *wide;
};

/* Words that are made into two steps each. */
static int gemm_splits(const struct gemm *g)
{
    return g->bf16 && !DOT;
}

/* Whether a part of a panel is made into steps before it is multiplied. */
static int gemm_widens(const struct gemm *g)
{
    return gemm_splits(g) || g->int8;
}

/* Words of a chunk at most, and steps of the chain that words from `word` on are. */
static int64_t gemm_chunk(const struct gemm_block *s)
{
    return gemm_splits(s->g) ? s->most.steps / 2 : s->most.steps;
}

static int64_t gemm_steps(const struct gemm *g, int64_t word, int64_t words)
{
    if (!gemm_splits(g)) return words;
    return 2 * (word + words) > g->k ? g->k - 2 * word : 2 * words;
}

static int64_t gemm_tile_row(const struct gemm_block *s, int64_t tile)
{
    return tile * s->g->m / s->tiles;
}

/* LANES steps of a row of A, from a word on, `left` of them there: as it is, in words of two, or the odd one of two first. */
INLINE vf gemm_take(const struct gemm *g, const float *a, int64_t word, int64_t left)
{
    if (!g->bf16) return gemm_load(a + word, left);
#ifdef CPU_DOT
    const int64_t numbers = g->k - 2 * word;
    a += 2 * word;
    return v_words(gemm_load(a, numbers), gemm_load(a + LANES, numbers - LANES));
#else
    const vf x = gemm_load(a + 2 * word, left);
    return v_round_bf16(left < LANES && left % 2 ? v_select_n(v_swap(x), x, left - 1) : v_swap(x));
#endif
}

/* A's rows are contiguous: LANES steps of a tile are transposed at a time. Whole vectors are stored; the next step overwrites what is too much. */
static void gemm_take_rows(const struct gemm_block *s, const struct gemm_share *o, float *to, int64_t word, int64_t words)
{
    const struct gemm *g = s->g;
    const int64_t steps = gemm_steps(g, word, words);
    for (int64_t t = o->tile; t < o->tile_end; t++, to += s->a_tile) {
        const int64_t from = gemm_tile_row(s, t), rows = gemm_tile_row(s, t + 1) - from;
        for (int64_t i = 0; i < steps; i += LANES) {
            vf x[LANES];
            const int64_t left = steps - i, at = gemm_splits(g) ? word + i / 2 : word + i;
            UNROLL for (int r = 0; r < LANES; r++) x[r] =
                r < MR && r < rows ? gemm_take(g, g->a + (from + r) * g->a_row, at, left) : v_zero();
            v_transpose(x);
            for (int j = 0; j < LANES && j < left; j++) gemm_store_steps(to + (i + j) * MR, x[j]);
        }
    }
}

/* LANES numbers from row k of something contiguous along the other index, as far as there are: A's columns, B's rows. */
INLINE vf gemm_across(const float *p, int64_t row, int64_t k, int64_t end, int64_t left)
{
    return k < end ? gemm_load(p + k * row, left) : v_zero();
}

/* A's columns are contiguous. */
static void gemm_take_columns(const struct gemm_block *s, const struct gemm_share *o, float *tiles, int64_t word, int64_t words)
{
    enum { ROWS_AHEAD = 8 /* rows are pages apart: nobody else fetches them in time */ };
    const struct gemm *g = s->g;
    const int64_t steps = gemm_steps(g, word, words), k = g->bf16 ? 2 * word : word, end = g->k;
    const int pairs = g->bf16 && DOT;
    for (int64_t i = 0; i < steps; i++) {
        const int64_t at = pairs ? k + 2 * i : k + (g->bf16 ? bf16_place(i, steps) : i);
        for (int64_t t = o->tile; t < o->tile_end; t++) {
            const int64_t from = gemm_tile_row(s, t), left = g->m - from;
            float *to = tiles + (t - o->tile) * s->a_tile + i * MR;
            if (at + ROWS_AHEAD < end) _mm_prefetch((const char *)(g->a + (at + ROWS_AHEAD) * g->a_col + from), _MM_HINT_T0);
            if (pairs && at + ROWS_AHEAD + 1 < end)
                _mm_prefetch((const char *)(g->a + (at + ROWS_AHEAD + 1) * g->a_col + from), _MM_HINT_T0);
            if (pairs)
                v_store(to, v_pair(gemm_across(g->a + from, g->a_col, at, end, left),
                                   gemm_across(g->a + from, g->a_col, at + 1, end, left)));
            else if (g->bf16)
                v_store(to, v_round_bf16(gemm_load(g->a + at * g->a_col + from, left)));
            else if (left < LANES)
                v_store(to, gemm_load(g->a + at * g->a_col + from, left));
            else
                gemm_store_steps(to, v_load(g->a + at * g->a_col + from));
        }
    }
}

static void gemm_fetch(const float *p, int64_t row, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < NRV; v++) _mm_prefetch((const char *)(p + r * row + v * LANES), _MM_HINT_T0);
}

/* A chunk of the chain: where its part of A and of the panel lie. */
struct gemm_part {
    const float *a, *panel;
    const char *next; /* the next panel's part as it is in memory */
    int64_t next_bytes, steps;
    int64_t turn; /* of all panels and row blocks */
    int first, last;
};

/* What tile i of a panel fetches: its share of the next panel; where there are rows of B to fetch, the first two tiles take the panel, the others
 * their share of the rows. */
static void gemm_fetch_ahead(const struct gemm_block *s, const struct gemm_part *part, int64_t tiles, int64_t i,
                             struct gemm_tile *t)
{
    enum { FIRST = 2 };
    const int rows = s->later && tiles > FIRST;
    const int64_t turns = part->steps / STEPS + 1;
    if (rows && i >= FIRST) {
        const int64_t share = s->later_bytes / (s->row_blocks * s->chunks * ((s->g->n + NR - 1) / NR) * (tiles - FIRST)) + 1;
        t->ahead = s->later + (part->turn * (tiles - FIRST) + i - FIRST) * share;
        t->ahead_step = (share + turns - 1) / turns;
        return;
    }
    const int64_t takes = rows ? FIRST : tiles, share = (part->next_bytes + takes - 1) / takes;
    t->ahead = part->next + i * share;
    t->ahead_step = (share + turns - 1) / turns;
}

/* All tiles of a share against a chunk of one panel. */
static void gemm_panel(const struct gemm_block *s, const struct gemm_share *o, int64_t p, const struct gemm_part *part)
{
    const struct gemm *g = s->g;
    const int64_t column = p * NR, tiles = o->tile_end - o->tile;
    const int continues = part->first && (g->continues || s->word > 0), ends = part->last && s->word + s->words == gemm_words(g);
    for (int64_t i = 0, from = o->row, end; i < tiles; i++, from = end) {
        end = gemm_tile_row(s, o->tile + i + 1);
        float *c = g->c + from * g->c_row + column, *sums = o->sums + (from - o->row) * s->sums_row + (p - o->panel) * NR;
        struct gemm_tile t = {.c = part->last ? c : sums,
                              .c_row = part->last ? g->c_row : s->sums_row,
                              .columns = g->n - column < NR ? g->n - column : NR,
                              .start = continues     ? c
                                       : part->first ? NULL
                                                     : sums,
                              .start_row = continues ? g->c_row : s->sums_row,
                              .bias = ends && g->bias ? g->bias + column : NULL,
                              .residual = ends && g->residual ? g->residual + from * g->c_row + column : NULL};
        gemm_fetch_ahead(s, part, tiles, i, &t);
        if (continues && i + 1 < tiles) gemm_fetch(c + (end - from) * g->c_row, g->c_row, MR);
        if (part->last && !continues) gemm_fetch(c, g->c_row, end - from);
        if (t.residual && g->residual != g->c) gemm_fetch(t.residual, g->c_row, end - from);
        gemm_cached((int)(end - from), g->bf16, part->steps, part->a + i * s->a_tile, part->panel, &t);
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
    if (steps % 2)
        for (int v = 0; v < NRV; v++) v_store(to + (steps - 1) * NR + v * LANES, v_even(v_load(from + v * LANES)));
}

/* Words [word, word + words) of panel p, for gemm_cached: made in `wide`, or where they lie. */
static void gemm_part_of(const struct gemm_block *s, int64_t p, int64_t word, int64_t words, float *wide, struct gemm_part *out)
{
    const struct gemm *g = s->g;
    const int64_t size = g->int8 ? int8_panel_bytes(g) : (s->b ? s->words : gemm_words(g)) * NR * 4;
    const char *panel = (g->int8 ? (const char *)g->int8 : (const char *)(s->b ? s->b : g->panels)) + p * size;
    const int64_t first = g->int8 ? size * word / gemm_words(g) : word * NR * 4;
    out->next = panel + size + first;
    out->next_bytes = g->int8 ? size * words / gemm_words(g) : words * NR * 4;
    out->panel = gemm_widens(g) ? wide : (const float *)(const void *)(panel + first);
    if (g->int8)
        int8_widen(g, wide, (const uint8_t *)panel, word, words);
    else if (gemm_splits(g))
        gemm_split(wide, (const float *)(const void *)(panel + first), out->steps);
}

static void gemm_block_task(void *arg, int64_t task, int thread)
{
    const struct gemm_block *s = arg;
    const struct gemm *g = s->g;
    const int64_t block = task / s->groups, group = task % s->groups, panels = (g->n + NR - 1) / NR;
    struct gemm_share o = {.tile = block * s->tiles / s->row_blocks,
                           .tile_end = (block + 1) * s->tiles / s->row_blocks,
                           .panel = group * panels / s->groups,
                           .panel_end = (group + 1) * panels / s->groups,
                           .a = s->own + thread * s->own_size};
    o.row = gemm_tile_row(s, o.tile);
    o.sums = o.a + s->kept * s->a_chunk;
    o.wide = o.a + s->own_size - s->most.steps * NR;
    for (int64_t c = 0; c < s->chunks; c++) {
        const int64_t word = c * s->words / s->chunks, words = (c + 1) * s->words / s->chunks - word,
                      steps = gemm_steps(g, s->word + word, words);
        float *a = o.a + c % s->kept * s->a_chunk;
        if (s->held[thread] == block)
            ;
        else if (g->a_col != 1)
            gemm_take_columns(s, &o, a, s->word + word, words);
        else
            gemm_take_rows(s, &o, a, s->word + word, words);
        for (int64_t p = o.panel; p < o.panel_end; p++) {
            struct gemm_part part = {
                .a = a, .steps = steps, .turn = (block * s->chunks + c) * panels + p, .first = c == 0, .last = c + 1 == s->chunks};
            gemm_part_of(s, p, word, words, o.wide, &part);
            if (p + 1 == o.panel_end) part.next = (const char *)part.panel;
            gemm_panel(s, &o, p, &part);
        }
    }
    s->held[thread] = s->kept == s->chunks ? block : -1;
}

/* Rows of B into words of panels, panel by panel: both are pages apart, so what comes AHEAD panels later is fetched. */
enum { PACK_WORDS = 16, AHEAD = 2 };

INLINE void gemm_pack_ahead(const float *b, int64_t row, int64_t k, const struct gemm *g)
{
    (void)g;
    _mm_prefetch((const char *)(b + k * row + AHEAD * NR), _MM_HINT_T0);
}

static void gemm_pack_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct gemm_block *s = arg;
    const struct gemm *g = s->g;
    const int64_t begin = task * PACK_WORDS, end = begin + PACK_WORDS < s->words ? begin + PACK_WORDS : s->words,
                  padded = (g->n + NR - 1) / NR * NR;
    for (int64_t j = 0; j < padded; j += NR)
        for (int64_t i = begin; i < end; i++)
            for (int64_t v = j; v < j + NR; v += LANES) {
                const int64_t k = s->word + i, left = g->n - v;
                const float *b = g->b + v;
                float *to = s->b + j * s->words + i * NR + v - j;
                _mm_prefetch((const char *)(to + AHEAD * NR * s->words), _MM_HINT_T0);
                if (g->bf16) {
                    gemm_pack_ahead(b, g->b_row, 2 * k, g);
                    gemm_pack_ahead(b, g->b_row, 2 * k + 1, g);
                    v_store(to,
                            v_pair(gemm_across(b, g->b_row, 2 * k, g->k, left), gemm_across(b, g->b_row, 2 * k + 1, g->k, left)));
                } else {
                    gemm_pack_ahead(b, g->b_row, k, g);
                    v_store(to, gemm_load(b + k * g->b_row, left));
                }
            }
}

static struct gemm_sizes gemm_most(void)
{
    enum { STEP = 64 };
    const struct caches c = caches_of_this_machine();
    struct gemm_sizes most = {.steps = c.first / (MR < 8 ? 16 : 8) * 7 / (MR * 4) / STEP * STEP};
    if (most.steps < STEP) most.steps = STEP;
    most.tiles = c.second / 3 / (most.steps * MR * 4);
    if (most.tiles < 2) most.tiles = 2;
    most.columns = c.second / 4 / (most.tiles * MR * 4) / NR * NR;
    if (most.columns < 2 * NR) most.columns = 2 * NR;
    return most;
}

/* Tasks down and across: enough for the threads. With one block of rows B comes from memory, so its panels are dealt to the threads and not the
 * rows. */
static void gemm_cut(struct gemm_block *s, int64_t threads)
{
    const int64_t panels = (s->g->n + NR - 1) / NR, chunk = gemm_chunk(s);
    s->chunks = (s->words + chunk - 1) / chunk;
    s->tiles = gemm_tiles(s->g->m);
    s->row_blocks = (s->tiles + s->most.tiles - 1) / s->most.tiles;
    if (s->row_blocks > 1) s->row_blocks = (s->row_blocks + threads - 1) / threads * threads;
    if (s->row_blocks > s->tiles) s->row_blocks = s->tiles;
    s->groups = 1;
    if (s->chunks > 1) {
        s->groups = (panels * NR + s->most.columns - 1) / s->most.columns;
        while (s->groups * s->most.columns < (panels + s->groups - 1) / s->groups * s->groups * NR) s->groups++;
    }
    const int64_t least = s->row_blocks > 1 ? 6 : 2, tasks = threads * (s->g->m * s->words <= 1 << 20 ? 4 : 2);
    int64_t wanted = (tasks + s->row_blocks - 1) / s->row_blocks;
    if (wanted * least > panels) wanted = panels / least;
    if (threads > 1 && s->groups < wanted) s->groups = wanted;
}

/* Memory of a thread for the first cut, whose chunks and groups are the largest. */
static void gemm_layout(struct gemm_block *s)
{
    const int64_t panels = (s->g->n + NR - 1) / NR, tiles = (s->tiles + s->row_blocks - 1) / s->row_blocks;
    const int64_t words = (s->words + s->chunks - 1) / s->chunks, steps = gemm_splits(s->g) ? 2 * words : words;
    s->a_tile = (steps * MR + 2 * LANES - 1) / LANES * LANES;
    s->a_chunk = tiles * s->a_tile;
    s->kept = s->chunks * s->a_chunk * 4 <= caches_of_this_machine().second / 2 ? s->chunks : 1;
    s->sums_row = s->chunks > 1 ? (panels + s->groups - 1) / s->groups * NR : 0;
    s->own_size = s->kept * s->a_chunk + tiles * MR * s->sums_row + (gemm_widens(s->g) ? s->most.steps * NR : 0);
}

/* The rows of B that `words` words from `word` on are made from. */
static void gemm_later(struct gemm_block *s, int64_t word, int64_t words)
{
    const int64_t rows = s->g->bf16 ? 2 : 1;
    s->later = words > 0 ? (const char *)(s->g->b + rows * word * s->g->b_row) : NULL;
    s->later_bytes = rows * words * s->g->b_row * 4;
}

/* About `fit` words of `all`: whole chunks, or equal parts of a chunk at most, so that no later part has larger chunks than the first. */
static int64_t gemm_words_at_once(int64_t all, int64_t fit, int64_t chunk)
{
    if (fit >= 2 * chunk) return fit / chunk * chunk;
    const int64_t times = (all + chunk - 1) / chunk;
    return (all + times - 1) / times;
}

static void gemm_blocked(const struct kctx *c, const struct gemm *g)
{
    /* Words of B made into panels at a time. With few, the rows of the next ones are fetched while these are used; but where A's columns are
     * contiguous C is the larger matrix, and every time leaves its partial sums there. */
    const int64_t packed = g->a_col == 1 ? 1 << 19 : 4 << 20;
    const int64_t threads = pool_threads(c->pool), padded = (g->n + NR - 1) / NR * NR, all = gemm_words(g);
    struct gemm_block s = {.g = g, .most = gemm_most()};
    const int64_t chunk = gemm_chunk(&s);
    const int lies = g->panels || g->int8; /* as panels, which need not be made */
    int64_t most = all;
    if (!lies && !g->residual && padded * all > packed) most = gemm_words_at_once(all, packed / padded, chunk);
    s.words = most < all ? most : all;
    gemm_cut(&s, threads);
    gemm_layout(&s);
    s.own = scratch(c, threads * s.own_size);
    s.held = scratch(c, 2 * threads);
    if (!lies) s.b = scratch(c, padded * s.words);
    if (!s.own || !s.held || (!lies && !s.b)) return;
    for (s.word = 0; s.word < all; s.word += most) {
        s.words = all - s.word < most ? all - s.word : most;
        if (s.word > 0) gemm_cut(&s, threads);
        if (s.b) gemm_later(&s, s.word + s.words, all - s.word - s.words < most ? all - s.word - s.words : most);
        for (int64_t i = 0; i < threads; i++) s.held[i] = -1;
        if (s.b) pool_run(c->pool, (s.words + PACK_WORDS - 1) / PACK_WORDS, gemm_pack_task, &s);
        pool_run(c->pool, s.row_blocks * s.groups, gemm_block_task, &s);
    }
}
