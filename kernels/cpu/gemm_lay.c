/* ---- many rows
 *
 * A task is a block of rows against a group of panels. Its part of A is packed into tiles,
 * [step][MR], which are reused for all panels of the group, and for the next task of the same
 * thread if that has the same rows. A panel is used by all tiles of the block before the next
 * panel.
 *
 * The sizes follow from the caches (caches.h) by a model whose shares were measured
 * (docs/dev/performance.md):
 *   - steps of a chunk: a tile of A is read once per panel and B's panel once per tile, both
 *     sequentially; the panel may come from the L2 cache. So a tile of 14 rows takes up to
 *     seven eighths of the L1 cache; a tile of 6 rows, next to which B's stream is wider, takes
 *     half of that.
 *   - tiles of a block: the block of A takes a third of the L2 cache. The rest is left to
 *     incoming panels and to C, and half of it may belong to the other logical processor.
 *   - columns of a group: all, if every sum is complete in one chunk of k; otherwise the block's partial
 *     sums take a quarter of the L2 cache. */
struct gemm_sizes {
    int64_t steps, tiles, columns;
};

enum state { NOT_MADE, BEING_MADE, MADE };
/* Panels that are made together from a transposed B: as many as a vector of words of a row
 * covers. */
enum { TRANSPOSED = NR < 2 * LANES ? 2 : 1 };

struct gemm_block {
    const struct gemm *g;
    int64_t word, words;               /* words of the inner index, starting at `word` */
    int64_t tiles, row_blocks, groups; /* tiles of all rows; tasks down and across */
    /* maximum number of tiles in a block; number of whole blocks, the others being parts */
    int64_t block_tiles, whole;
    float *b; /* [copies] B's panels for these words; NULL: they are in g, or */
    int made; /* number of panels that a task makes at a time for its own use; 0: none */
    /* rows of B from which the next panels are made, prefetched meanwhile; NULL: none */
    const char *later;
    int64_t later_bytes;
    struct gemm_sizes most;
    int64_t chunks, kept;              /* chunks of these words; of A at a time: 1 or all */
    int64_t a_tile, a_chunk, sums_row; /* floats */
    /* Floats of a row of U, and of a tile of it used as A; the longest chain of its products, where
     * panels are expanded to fp32. */
    int64_t low_row, low_tile, low_steps;
    int64_t part; /* index of this part of the inner index, 0 for the first */
    int64_t own_size;
    /* [threads, own_size]: part of A, partial sums, U, its tiles, a panel of its products
     * expanded to fp32, a panel, and a panel expanded to fp32. */
    float *own;
    int64_t *held;           /* [threads] block of rows whose A is in memory; -1: none */
    int stay;                /* 1: a thread stays with a block of rows */
    _Atomic int64_t *out;    /* [row_blocks] number of groups of a block already handed out */
    int64_t threads, copies; /* copies of b: one for all threads, or one per thread */
    /* [copies, chunks, panels / TRANSPOSED] state of a b that is made on first use; NULL: b is made
     * before all tasks */
    _Atomic int *state;
};

/* A task's share of the work, and its memory. */
struct gemm_share {
    int64_t tile, tile_end, panel, panel_end, row;
    float *a, *sums, *u, *low, *narrow, *made, *wide;
    float *b; /* its copy of B's panels, and their state */
    _Atomic int *state;
    int first; /* the first of the groups of its rows */
};

/* 1 if a word is expanded to two steps. */
static int gemm_splits(const struct gemm *g)
{
    return g->bf16 && !DOT;
}

/* 1 if a part of a panel is expanded to steps before it is multiplied. */
static int gemm_widens(const struct gemm *g)
{
    return gemm_splits(g) || g->int8;
}

/* Maximum number of words in a chunk, and number of steps that words from `word` on make. */
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

/* The last blocks are split, so that a thread that is late does not delay the others by a whole
 * block. */
enum { BLOCK_PARTS = 2 };

static int64_t gemm_block_tile(const struct gemm_block *s, int64_t block)
{
    const int64_t parts = s->whole * BLOCK_PARTS + s->row_blocks - s->whole;
    return (block < s->whole ? block * BLOCK_PARTS : s->whole * BLOCK_PARTS + block - s->whole) * s->tiles / parts;
}

/* Load LANES steps of the row of A that begins at number `row`, from a word on, of which `left`
 * exist: unchanged, as words of two, or with the odd one of two first. */
INLINE vf gemm_take(const struct gemm *g, int64_t row, int64_t word, int64_t left)
{
    if (!g->bf16) return gemm_load((const float *)g->a + row + word, left);
#ifdef CPU_DOT
    const int64_t numbers = g->k - 2 * word, at = row + 2 * word;
    if (g->a_dtype == DTYPE_BF16 && numbers >= 2 * LANES) return v_load(rows_from(g->a, g->a_dtype, at));
    return v_words(rows_load(g->a, g->a_dtype, at, numbers), rows_load(g->a, g->a_dtype, at + LANES, numbers - LANES));
#else
    const vf x = rows_load(g->a, g->a_dtype, row + 2 * word, left);
    return v_round_bf16(left < LANES && left % 2 ? v_select_n(v_swap(x), x, left - 1) : v_swap(x));
#endif
}

/* Lay out a tile whose rows of A are contiguous: LANES steps of the tile, whose first row is
 * `from`, are transposed at a time. Whole vectors are stored; the next step overwrites the
 * excess. */
static void gemm_take_tile(const struct gemm *g, float *to, int64_t from, int64_t rows, int64_t word, int64_t words)
{
    const int64_t steps = gemm_steps(g, word, words);
    for (int64_t i = 0; i < steps; i += LANES) {
        vf x[LANES];
        const int64_t left = steps - i, at = gemm_splits(g) ? word + i / 2 : word + i;
        UNROLL for (int r = 0; r < LANES; r++) x[r] = r < MR && r < rows ? gemm_take(g, (from + r) * g->a_row, at, left) : v_zero();
        v_transpose(x);
        for (int j = 0; j < LANES && j < left; j++) v_store_rows(to + (i + j) * MR, x[j]);
    }
}

static void gemm_take_rows(const struct gemm_block *s, const struct gemm_share *o, float *to, int64_t word, int64_t words)
{
    for (int64_t t = o->tile; t < o->tile_end; t++, to += s->a_tile) {
        const int64_t from = gemm_tile_row(s, t);
        gemm_take_tile(s->g, to, from, gemm_tile_row(s, t + 1) - from, word, words);
    }
}

/* A matrix contiguous along the outer index: A's columns or B's rows. */
struct gemm_rows {
    const void *at;
    enum dtype dtype;
    int64_t row, end; /* row k, k < end, starts at element k * row */
};

/* Load LANES numbers of row k from a column on, as many as exist. */
INLINE vf gemm_across(const struct gemm_rows *r, int64_t k, int64_t column, int64_t left)
{
    return k < r->end ? rows_load(r->at, r->dtype, k * r->row + column, left) : v_zero();
}

/* Load row k and the next one as words. */
INLINE vf gemm_across_words(const struct gemm_rows *r, int64_t k, int64_t column, int64_t left)
{
    if (r->dtype == DTYPE_BF16 && left >= LANES && k + 1 < r->end)
        return v_zip(v_load_half(rows_from(r->at, r->dtype, k * r->row + column)),
                     v_load_half(rows_from(r->at, r->dtype, (k + 1) * r->row + column)), 0);
    return v_pair(gemm_across(r, k, column, left), gemm_across(r, k + 1, column, left));
}

INLINE void gemm_fetch_number(const void *rows, enum dtype dtype, int64_t i)
{
    v_prefetch(rows_from(rows, dtype, i));
}

/* Lay out tiles of an A whose columns are contiguous. */
static void gemm_take_columns(const struct gemm_block *s, const struct gemm_share *o, float *tiles, int64_t word, int64_t words)
{
    /* rows are pages apart, so the hardware does not prefetch them in time */
    enum { ROWS_AHEAD = 8 };
    const struct gemm *g = s->g;
    const int64_t steps = gemm_steps(g, word, words), k = g->bf16 ? 2 * word : word, end = g->k;
    const int pairs = g->bf16 && DOT;
    const struct gemm_rows rows = {g->a, g->a_dtype, g->a_col, end};
    for (int64_t i = 0; i < steps; i++) {
        const int64_t at = pairs ? k + 2 * i : k + (g->bf16 ? bf16_place(i, steps) : i);
        for (int64_t t = o->tile; t < o->tile_end; t++) {
            const int64_t from = gemm_tile_row(s, t), left = g->m - from;
            float *to = tiles + (t - o->tile) * s->a_tile + i * MR;
            if (at + ROWS_AHEAD < end) gemm_fetch_number(g->a, g->a_dtype, (at + ROWS_AHEAD) * g->a_col + from);
            if (pairs && at + ROWS_AHEAD + 1 < end) gemm_fetch_number(g->a, g->a_dtype, (at + ROWS_AHEAD + 1) * g->a_col + from);
            if (pairs)
                v_store(to, gemm_across_words(&rows, at, from, left));
            else if (g->bf16)
                v_store(to, v_round_bf16(gemm_across(&rows, at, from, left)));
            else if (left < LANES)
                v_store(to, gemm_across(&rows, at, from, left));
            else
                v_store_rows(to, v_load((const float *)g->a + at * g->a_col + from));
        }
    }
}

/* Expand words of pairs to steps of fp32; an odd last pair gives only its even half. */
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

/* ---- B's panels of words: all columns at a time, or one panel */
enum { PACK_WORDS = 16 };

/* Make words from rows of B. Rows and panels are pages apart, so data `ahead` columns later is
 * prefetched. */
INLINE void gemm_pack_word(const struct gemm *g, float *to, int64_t word, int64_t column, const int64_t ahead_columns)
{
    const int64_t k = g->bf16 ? 2 * word : word;
    const struct gemm_rows rows = {g->b, g->b_dtype, g->b_row, g->k};
    for (int64_t v = column; v < column + NR; v += LANES, to += LANES) {
        const int64_t left = g->n - v, ahead = k * g->b_row + v + ahead_columns;
        gemm_fetch_number(g->b, g->b_dtype, ahead);
        if (g->bf16) {
            gemm_fetch_number(g->b, g->b_dtype, ahead + g->b_row);
            v_store(to, gemm_across_words(&rows, k, v, left));
        } else {
            v_store(to, gemm_across(&rows, k, v, left));
        }
    }
}

static void gemm_pack_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    enum { AHEAD = 2 };
    const struct gemm_block *s = arg;
    const struct gemm *g = s->g;
    const int64_t begin = task * PACK_WORDS, end = begin + PACK_WORDS < s->words ? begin + PACK_WORDS : s->words,
                  padded = (g->n + NR - 1) / NR * NR;
    for (int64_t j = 0; j < padded; j += NR)
        for (int64_t i = begin; i < end; i++) {
            float *to = s->b + j * s->words + i * NR;
            UNROLL for (int v = 0; v < NRV; v++) v_prefetch(to + AHEAD * NR * s->words + v * LANES);
            gemm_pack_word(g, to, s->word + i, j, AHEAD * NR);
        }
}

/* Panels of B to be made from those of its transpose W: `words` words from `word` on, a multiple of
 * PACK_WORDS, of columns [column, end); panels are `panel` floats apart. */
struct gemm_transpose {
    float *to;
    int64_t panel, word, words, column, end;
};

/* Transpose rows [row, row + LANES) of W, counted from the first word, in as many columns as LANES
 * words of a row have. `rows` of W make a word, 2 in bf16; it is a compile-time constant, since a
 * division by a variable costs more than a tile. */
INLINE void gemm_transpose_tile(const struct gemm *g, const struct gemm_transpose *t, int64_t row, int64_t column, const int rows)
{
    const int64_t kept = (g->n + rows - 1) / rows, at = t->word * rows + row,
                  first = column / rows; /* words of a row; the row; its word */
    const float *from = g->transposed + at / NR * NR * kept + at % NR + first * NR;
    vf x[LANES];
    UNROLL for (int i = 0; i < LANES; i++) x[i] = first + i < kept ? v_load(from + i * NR) : v_zero();
    v_transpose(x);
    for (int half = 0; half < rows && column < t->end; half++, column += LANES) {
        float *to = t->to + (column - t->column) / NR * t->panel + column % NR;
        for (int r = 0; r < LANES && (row + r) / rows < t->words; r += rows)
            v_store(to + (row + r) / rows * NR, rows == 1 ? x[r] : half ? v_zip(x[r], x[r + 1], 1) : v_zip(x[r], x[r + 1], 0));
    }
}

/* Number of times that panels of all columns of B are made. */
static int64_t gemm_transposed(const struct gemm *g)
{
    return ((g->n + NR - 1) / NR + TRANSPOSED - 1) / TRANSPOSED;
}

static void gemm_transpose_panels(const struct gemm *g, const struct gemm_transpose *t)
{
    for (int64_t row = 0; g->bf16 && row < 2 * t->words; row += LANES)
        for (int64_t column = t->column; column < t->end; column += 2 * LANES) gemm_transpose_tile(g, t, row, column, 2);
    for (int64_t row = 0; !g->bf16 && row < t->words; row += LANES)
        for (int64_t column = t->column; column < t->end; column += LANES) gemm_transpose_tile(g, t, row, column, 1);
}

/* Make words [word, word + words) of `panels` panels from p on, of a transposed B. */
static void gemm_make_transposed(const struct gemm_block *s, float *to, int64_t p, int64_t panels, int64_t word, int64_t words)
{
    gemm_transpose_panels(s->g, &(struct gemm_transpose){to, words * NR, s->word + word, words, p * NR, (p + panels) * NR});
}

/* Make them from rows of B: the columns of a row in memory order, prefetching the data some rows
 * later. */
static void gemm_make_rows(const struct gemm_block *s, float *to, int64_t p, int64_t panels, int64_t word, int64_t words)
{
    enum { ROWS_LATER = 8 };
    const struct gemm *g = s->g;
    for (int64_t i = 0; i < words; i++)
        for (int64_t j = 0; j < panels; j++)
            gemm_pack_word(g, to + (j * words + i) * NR, s->word + word + i, (p + j) * NR, ROWS_LATER * g->b_row);
}
