/* Low-rank products added to a product of many rows (gemm.c, struct gemm_low). U of a block of rows
 * is computed when its part of A is laid into tiles, and stored next to it. Its contribution to a
 * panel's columns is added to a tile of C when that is complete and still in the L1 cache. */
/* A chunk of the chain: the locations of its part of A and of the panel. */
struct gemm_part {
    const float *a, *panel;
    const char *next; /* the next panel's part in memory */
    int64_t next_bytes, steps;
    /* it consists of chunks of next_run bytes, next_jump bytes apart; 0: contiguous */
    int64_t next_run, next_jump;
    int64_t row;       /* its first row of B */
    int64_t iteration; /* counter over all panels and row blocks */
    /* index of the chunk of the inner index; the panel that comes next, or this one */
    int64_t chunk, then;
    int first, last;
    /* added to this panel's columns when their chain is complete; NULL: nothing */
    const struct gemm_add *add;
    const float *added, *added_a; /* its panel; U's first tile for it */
    int64_t added_columns;        /* columns of it, counted from this panel's first */
};

/* Number of words of a row of U that a product with it uses. */
static int64_t gemm_low_words(const struct gemm *g, const struct gemm_add *add)
{
    return g->bf16 ? (add->k + 1) / 2 : add->k;
}

static int64_t gemm_low_steps(const struct gemm *g, const struct gemm_add *add)
{
    return gemm_splits(g) ? add->k : gemm_low_words(g, add);
}

/* Offset of the steps of add in a tile of U; for add number `adds`, their end. */
static int64_t gemm_low_at(const struct gemm *g, int64_t add)
{
    int64_t at = 0;
    for (int64_t i = 0; i < add; i++) at += (gemm_low_steps(g, &g->low->add[i]) * MR + 2 * LANES - 1) / LANES * LANES;
    return at;
}

/* Compute one entry over words [range[1], range[2]) of the inner index, of a chunk whose part of A
 * is laid out and begins at word range[0]. */
static void gemm_low_sum(const struct gemm_block *s, const struct gemm_share *o, const struct gemm_sum *m, const float *a,
                         const int64_t range[3])
{
    const struct gemm *g = s->g;
    const int64_t word = range[1], steps = gemm_steps(g, word, range[2] - word);
    a += (word - range[0]) * (gemm_splits(g) ? 2 : 1) * MR;
    for (int64_t q = 0; q < m->n; q += NR) {
        const float *panel = m->panels + q * m->words + (word - m->word) * NR;
        if (gemm_splits(g)) gemm_split(o->wide, panel, steps);
        for (int64_t i = 0, row = o->row, end; i < o->tile_end - o->tile; i++, row = end) {
            end = gemm_tile_row(s, o->tile + i + 1);
            float *u = o->u + (row - o->row) * s->low_row + m->from + q;
            const struct gemm_tile t = {.c = u,
                                        .c_row = s->low_row,
                                        .columns = m->n - q < NR ? m->n - q : NR,
                                        .start = word > m->word ? u : NULL,
                                        .start_row = s->low_row,
                                        .ahead = (const char *)panel};
            gemm_cached((int)(end - row), g->bf16, steps, a + i * s->a_tile, gemm_splits(g) ? o->wide : panel, &t);
        }
    }
}

/* Computes U = A x (low-rank factor) over one chunk of k, whose part of A is packed. The first chunk
 * starts from the partial U of the previous part of k. */
static void gemm_low_sums(const struct gemm_block *s, const struct gemm_share *o, const float *a, int64_t c)
{
    const struct gemm_low *low = s->g->low;
    const int64_t from = s->word + c * s->words / s->chunks, to = s->word + (c + 1) * s->words / s->chunks;
    for (int64_t row = o->row; c == 0 && s->word > 0 && row < gemm_tile_row(s, o->tile_end); row++)
        memcpy(o->u + (row - o->row) * s->low_row, low->part[s->part % 2] + row * low->rows, (size_t)low->rows * sizeof *o->u);
    for (int64_t i = 0; i < low->sums; i++) {
        const struct gemm_sum *m = &low->sum[i];
        const int64_t begin = m->word > from ? m->word : from, end = m->word + m->words < to ? m->word + m->words : to;
        if (begin < end) gemm_low_sum(s, o, m, a, (const int64_t[]){from, begin, end});
    }
}

/* Scale the complete U and lay it into tiles. */
static void gemm_low_tiles(const struct gemm_block *s, const struct gemm_share *o)
{
    const struct gemm *g = s->g;
    const vf scale = v_set(g->low->scale);
    for (int64_t i = 0, row = o->row, end; i < o->tile_end - o->tile; i++, row = end) {
        end = gemm_tile_row(s, o->tile + i + 1);
        float *u = o->u + (row - o->row) * s->low_row;
        for (int64_t j = 0; j < (end - row) * s->low_row; j += LANES) v_store(u + j, v_mul(scale, v_load(u + j)));
        for (int64_t j = 0; j < g->low->adds; j++) {
            const struct gemm_add *add = &g->low->add[j];
            const struct gemm of = {.k = add->k, .a = u + add->from, .a_row = s->low_row, .bf16 = g->bf16};
            gemm_take_tile(&of, o->low + i * s->low_tile + gemm_low_at(g, j), 0, end - row, 0, gemm_low_words(g, add));
        }
    }
}

/* Store U's rows, for the caller or for the next part of the inner index. One group writes them for
 * all. */
static void gemm_low_keep(const struct gemm_block *s, const struct gemm_share *o, float *to)
{
    const int64_t rows = s->g->low->rows;
    if (!to || !o->first) return;
    for (int64_t row = o->row; row < gemm_tile_row(s, o->tile_end); row++)
        memcpy(to + row * rows, o->u + (row - o->row) * s->low_row, (size_t)rows * sizeof *to);
}

/* Called after a chunk of A is laid out. held: it already was, with U. */
static void gemm_low_chunk(const struct gemm_block *s, const struct gemm_share *o, const float *a, int64_t c, int held)
{
    const struct gemm_low *low = s->g->low;
    const int ends = s->word + s->words == gemm_words(s->g);
    if (!low) return;
    if (!held) gemm_low_sums(s, o, a, c);
    if (c + 1 < s->chunks) return;
    if (ends && !held) gemm_low_tiles(s, o);
    gemm_low_keep(s, o, ends ? low->u : low->part[(s->part + 1) % 2]);
}

/* Set up the addition to panel p. */
static void gemm_low_panel(const struct gemm_block *s, const struct gemm_share *o, int64_t p, struct gemm_part *part)
{
    const struct gemm *g = s->g;
    if (!g->low || !part->last || s->word + s->words < gemm_words(g)) return;
    for (int64_t i = 0; i < g->low->adds; i++) {
        const struct gemm_add *add = &g->low->add[i];
        const int64_t column = p * NR - add->begin;
        if (column < 0 || column >= add->n) continue;
        part->add = add;
        part->added = add->b + column * gemm_low_words(g, add);
        part->added_a = o->low + gemm_low_at(g, i);
        part->added_columns = add->n - column;
        if (!gemm_splits(g)) continue;
        gemm_split(o->narrow, part->added, add->k);
        part->added = o->narrow;
    }
}

/* Add to a finished tile of C (done), `rows` rows, number i of the share. */
static void gemm_low_tile(const struct gemm_block *s, const struct gemm_part *part, int64_t i, int64_t rows,
                          const struct gemm_tile *done)
{
    const struct gemm *g = s->g;
    const struct gemm_tile t = {.c = done->c,
                                .c_row = g->c_row,
                                .columns = part->added_columns < done->columns ? part->added_columns : done->columns,
                                .residual = done->c,
                                .ahead = (const char *)part->added};
    gemm_cached((int)rows, g->bf16, gemm_low_steps(g, part->add), part->added_a + i * s->low_tile, part->added, &t);
}

/* Lay out a thread's memory for U: its rows, its tiles, a panel. */
static int64_t gemm_low_layout(struct gemm_block *s, int64_t tiles)
{
    const struct gemm *g = s->g;
    if (!g->low) return 0;
    s->low_row = (g->low->rows + NR - 1) / NR * NR;
    s->low_tile = gemm_low_at(g, g->low->adds);
    s->low_steps = 0;
    for (int64_t i = 0; gemm_splits(g) && i < g->low->adds; i++)
        if (g->low->add[i].k > s->low_steps) s->low_steps = g->low->add[i].k;
    return tiles * (MR * s->low_row + s->low_tile) + s->low_steps * NR;
}
