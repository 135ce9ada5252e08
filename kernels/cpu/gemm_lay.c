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

enum state { NOT_MADE, BEING_MADE, MADE };
/* Panels that are made together of a B that is turned: as many as a vector of words of a row covers. */
enum { TURNED = NR < 2 * LANES ? 2 : 1 };

struct gemm_block {
    const struct gemm *g;
    int64_t word, words;               /* of the inner index, from `word` on */
    int64_t tiles, row_blocks, groups; /* of all rows; tasks down and across */
    int64_t block_tiles, whole;        /* tiles of a block at most; so many blocks are whole, the others a part */
    float *b;                          /* [copies] B's panels for these words; NULL: they lie in g, or */
    int made;                          /* so many at a time a task makes itself, of those that it uses; 0: none */
    const char *later;                 /* rows of B that the next panels are made from, fetched meanwhile; NULL: none */
    int64_t later_bytes;
    struct gemm_sizes most;
    int64_t chunks, kept;              /* of these words; of A at a time: 1 or all */
    int64_t a_tile, a_chunk, sums_row; /* floats */
    int64_t low_row, low_tile,
        low_steps; /* floats of a row of U, of a tile of it as A of its products; their longest chain where panels are made fp32 */
    int64_t part;  /* of the inner index, 0 the first */
    int64_t own_size;
    float *
        own; /* [threads, own_size]: part of A, partial sums, U, its tiles, a panel of its products made fp32, a panel, one made fp32 */
    int64_t *held;           /* [threads] the block of rows whose A lies there, -1: none */
    int stay;                /* 1: a thread stays with a block of rows */
    _Atomic int64_t *out;    /* [row_blocks] groups of a block that have been given out */
    int64_t threads, copies; /* of b: one for all threads, or for each its own */
    /* [copies, chunks, panels / TURNED], of a b that is made where it is used first; NULL: made before all tasks */
    _Atomic int *state;
};

/* A task's share, and its memory. */
struct gemm_share {
    int64_t tile, tile_end, panel, panel_end, row;
    float *a, *sums, *u, *low, *narrow, *made, *wide;
    float *b; /* its copy of B's panels, and their state */
    _Atomic int *state;
    int first; /* of the groups of its rows */
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

/* The last blocks are in parts, so that who is late with one does not keep the others for the time of a whole one. */
enum { BLOCK_PARTS = 2 };

static int64_t gemm_block_tile(const struct gemm_block *s, int64_t block)
{
    const int64_t parts = s->whole * BLOCK_PARTS + s->row_blocks - s->whole;
    return (block < s->whole ? block * BLOCK_PARTS : s->whole * BLOCK_PARTS + block - s->whole) * s->tiles / parts;
}

/* LANES steps of the row of A that begins with number `row`, from a word on, `left` of them there: as it is, in words of two, or the odd one of two
 * first. */
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

/* A's rows are contiguous: LANES steps of a tile, whose first row is `from`, are transposed at a time. Whole vectors are stored; the next step overwrites
 * what is too much. */
static void gemm_take_tile(const struct gemm *g, float *to, int64_t from, int64_t rows, int64_t word, int64_t words)
{
    const int64_t steps = gemm_steps(g, word, words);
    for (int64_t i = 0; i < steps; i += LANES) {
        vf x[LANES];
        const int64_t left = steps - i, at = gemm_splits(g) ? word + i / 2 : word + i;
        UNROLL for (int r = 0; r < LANES; r++) x[r] = r < MR && r < rows ? gemm_take(g, (from + r) * g->a_row, at, left) : v_zero();
        v_transpose(x);
        for (int j = 0; j < LANES && j < left; j++) gemm_store_steps(to + (i + j) * MR, x[j]);
    }
}

static void gemm_take_rows(const struct gemm_block *s, const struct gemm_share *o, float *to, int64_t word, int64_t words)
{
    for (int64_t t = o->tile; t < o->tile_end; t++, to += s->a_tile) {
        const int64_t from = gemm_tile_row(s, t);
        gemm_take_tile(s->g, to, from, gemm_tile_row(s, t + 1) - from, word, words);
    }
}

/* Something contiguous along the index that is not the inner one: A's columns, B's rows. */
struct gemm_rows {
    const void *at;
    enum dtype dtype;
    int64_t row, end; /* row k, one of `end`, begins with number k row */
};

/* LANES numbers of row k from a column on, as far as there are. */
INLINE vf gemm_across(const struct gemm_rows *r, int64_t k, int64_t column, int64_t left)
{
    return k < r->end ? rows_load(r->at, r->dtype, k * r->row + column, left) : v_zero();
}

/* Of row k and the next, as words. */
INLINE vf gemm_across_words(const struct gemm_rows *r, int64_t k, int64_t column, int64_t left)
{
    if (r->dtype == DTYPE_BF16 && left >= LANES && k + 1 < r->end)
        return v_zip(v_load_half(rows_from(r->at, r->dtype, k * r->row + column)),
                     v_load_half(rows_from(r->at, r->dtype, (k + 1) * r->row + column)), 0);
    return v_pair(gemm_across(r, k, column, left), gemm_across(r, k + 1, column, left));
}

INLINE void gemm_fetch_number(const void *rows, enum dtype dtype, int64_t i)
{
    _mm_prefetch(rows_from(rows, dtype, i), _MM_HINT_T0);
}

/* A's columns are contiguous. */
static void gemm_take_columns(const struct gemm_block *s, const struct gemm_share *o, float *tiles, int64_t word, int64_t words)
{
    enum { ROWS_AHEAD = 8 /* rows are pages apart: nobody else fetches them in time */ };
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
                gemm_store_steps(to, v_load((const float *)g->a + at * g->a_col + from));
        }
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

/* ---- B's panels of words, all columns at a time or one panel */
enum { PACK_WORDS = 16 };

/* Words from rows of B: both rows and panels are pages apart, so what comes `ahead` columns later is fetched. */
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
            UNROLL for (int v = 0; v < NRV; v++) _mm_prefetch((const char *)(to + AHEAD * NR * s->words + v * LANES), _MM_HINT_T0);
            gemm_pack_word(g, to, s->word + i, j, AHEAD * NR);
        }
}

/* Panels of B to be made of those of its transpose W: `words` words from `word` on, a multiple of PACK_WORDS, of columns [column, end), `panel`
 * floats from one panel to the next. */
struct gemm_turn {
    float *to;
    int64_t panel, word, words, column, end;
};

/* Rows [row, row + LANES) of W, counted from the first word, in as many columns as LANES words of a row have; `rows` of W are a word, 2 in bf16: a
 * constant, since to divide by what is read costs more than a tile. */
INLINE void gemm_turn_tile(const struct gemm *g, const struct gemm_turn *t, int64_t row, int64_t column, const int rows)
{
    const int64_t kept = (g->n + rows - 1) / rows, at = t->word * rows + row,
                  first = column / rows; /* words of a row; the row; its word */
    const float *from = g->turned + at / NR * NR * kept + at % NR + first * NR;
    vf x[LANES];
    UNROLL for (int i = 0; i < LANES; i++) x[i] = first + i < kept ? v_load(from + i * NR) : v_zero();
    v_transpose(x);
    for (int half = 0; half < rows && column < t->end; half++, column += LANES) {
        float *to = t->to + (column - t->column) / NR * t->panel + column % NR;
        for (int r = 0; r < LANES && (row + r) / rows < t->words; r += rows)
            v_store(to + (row + r) / rows * NR, rows == 1 ? x[r] : half ? v_zip(x[r], x[r + 1], 1) : v_zip(x[r], x[r + 1], 0));
    }
}

/* So often panels of B are made, of all its columns. */
static int64_t gemm_turned(const struct gemm *g)
{
    return ((g->n + NR - 1) / NR + TURNED - 1) / TURNED;
}

static void gemm_turn_panels(const struct gemm *g, const struct gemm_turn *t)
{
    for (int64_t row = 0; g->bf16 && row < 2 * t->words; row += LANES)
        for (int64_t column = t->column; column < t->end; column += 2 * LANES) gemm_turn_tile(g, t, row, column, 2);
    for (int64_t row = 0; !g->bf16 && row < t->words; row += LANES)
        for (int64_t column = t->column; column < t->end; column += LANES) gemm_turn_tile(g, t, row, column, 1);
}

/* Words [word, word + words) of `panels` panels from p on, of a B that is turned. */
static void gemm_make_turned(const struct gemm_block *s, float *to, int64_t p, int64_t panels, int64_t word, int64_t words)
{
    gemm_turn_panels(s->g, &(struct gemm_turn){to, words * NR, s->word + word, words, p * NR, (p + panels) * NR});
}

/* The same from rows of B: a row's columns one after the other, as they are in memory, and what comes some rows later is fetched. */
static void gemm_make_rows(const struct gemm_block *s, float *to, int64_t p, int64_t panels, int64_t word, int64_t words)
{
    enum { ROWS_LATER = 8 };
    const struct gemm *g = s->g;
    for (int64_t i = 0; i < words; i++)
        for (int64_t j = 0; j < panels; j++)
            gemm_pack_word(g, to + (j * words + i) * NR, s->word + word + i, (p + j) * NR, ROWS_LATER * g->b_row);
}
