/* Products of many rows by blocks: the work of a task, and the division into tasks (gemm_lay.c). */

static void gemm_fetch(const float *p, int64_t row, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++) UNROLL for (int v = 0; v < NRV; v++) v_prefetch(p + r * row + v * LANES);
}

/* Number of prefetches of a tile in the steps of a part. */
static int64_t gemm_fetches(const struct gemm_part *part)
{
    return (part->steps / STEPS + 1) * FETCHES;
}

/* Set up the prefetches of tile i of a panel from chunks that are apart: its share, in whole
 * chunks. */
static void gemm_fetch_runs(const struct gemm_part *part, int64_t tiles, int64_t i, struct gemm_tile *t)
{
    enum { LINE = 64 };
    const int64_t runs = part->next_bytes / part->next_run, first = i * runs / tiles, own = (i + 1) * runs / tiles - first,
                  fetches = gemm_fetches(part), wanted = own * part->next_run / LINE;
    /* a power of two, so that chunks are whole numbers of iterations; so is NR */
    int64_t size = LINE;
    while (size > 1 && size / 2 * fetches >= wanted * LINE) size /= 2;
    if (fetches < wanted && part->next_run % (2 * LINE * FETCHES) == 0)
        size = 2 * LINE; /* processors fetch the other line of a pair themselves */
    t->ahead = part->next + first * part->next_jump;
    t->ahead_step = size;
    t->ahead_run = part->next_run / (size * FETCHES);
    t->ahead_jump = part->next_jump;
}

/* Set up the prefetches of tile i of a panel: its share of the next panel. If there are rows of B
 * to fetch, the first two tiles fetch the panel and the others share the rows. */
static void gemm_fetch_ahead(const struct gemm_block *s, const struct gemm_part *part, int64_t tiles, int64_t i,
                             struct gemm_tile *t)
{
    enum { FIRST = 2 };
    const int rows = s->later && tiles > FIRST;
    const int64_t fetches = gemm_fetches(part);
    if (part->next_run) {
        gemm_fetch_runs(part, tiles, i, t);
        return;
    }
    if (rows && i >= FIRST) {
        const int64_t share = s->later_bytes / (s->row_blocks * s->chunks * ((s->g->n + NR - 1) / NR) * (tiles - FIRST)) + 1;
        t->ahead = s->later + (part->iteration * (tiles - FIRST) + i - FIRST) * share;
        t->ahead_step = (share + fetches - 1) / fetches;
        return;
    }
    const int64_t takes = rows ? FIRST : tiles, share = (part->next_bytes + takes - 1) / takes;
    t->ahead = part->next + i * share;
    t->ahead_step = (share + fetches - 1) / fetches;
}

/* Multiply all tiles of a share by a chunk of one panel. */
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
        if (part->add) gemm_low_tile(s, part, i, end - from, &t);
    }
}

/* Locate words [word, word + words) of panel p for gemm_cached: expanded in `wide`, or in place. */
static void gemm_part_of(const struct gemm_block *s, const struct gemm_share *o, int64_t p, int64_t word, int64_t words,
                         struct gemm_part *out)
{
    const struct gemm *g = s->g;
    const int64_t size = g->int8 ? int8_panel_bytes(g) : (s->b ? s->words : gemm_words(g)) * NR * 4;
    const char *panel = (g->int8 ? (const char *)g->int8 : (const char *)(s->b ? o->b : g->panels)) + p * size;
    const int64_t first = g->int8 ? size * word / gemm_words(g) : word * NR * 4;
    out->next = panel + (out->then - p) * size + first;
    out->next_bytes = g->int8 ? size * words / gemm_words(g) : words * NR * 4;
    out->panel = gemm_widens(g) ? o->wide : (const float *)(const void *)(panel + first);
    if (g->int8)
        int8_widen(g, o->wide, (const uint8_t *)panel, word, words);
    else if (gemm_splits(g))
        gemm_split(o->wide, (const float *)(const void *)(panel + first), out->steps);
}

/* Prefetch the source of the next panel: some words of many adjacent rows of W. */
static void gemm_next_transposed(const struct gemm_block *s, int64_t next, int64_t words, struct gemm_part *out)
{
    const struct gemm *g = s->g;
    const int64_t rows = g->bf16 ? 2 : 1, kept = (g->n + rows - 1) / rows;
    out->next_run = NR / rows * NR * 4;
    out->next_jump = kept * NR * 4;
    out->next_bytes = (words * rows + NR - 1) / NR * out->next_run;
    out->next = (const char *)(g->transposed + out->row / NR * NR * kept + next * NR / rows * NR);
}

/* Prefetch a share of the rows of the panels that are made next. `at` is the index of this panel
 * among those made together. */
static void gemm_next_rows(const struct gemm_block *s, const struct gemm_share *o, int64_t p, int64_t words, struct gemm_part *out)
{
    const struct gemm *g = s->g;
    const int64_t at = (p - o->panel) % s->made, rows = g->bf16 ? 2 : 1, all = words * rows, share = (all + s->made - 1) / s->made,
                  first = at * share, n = all - first < share ? all - first : share, next = p - at + s->made;
    if (next >= o->panel_end || n <= 0) return;
    out->next_run = (o->panel_end - next < s->made ? o->panel_end - next : s->made) * NR * dtype_bytes(g->b_dtype);
    out->next_jump = g->b_row * dtype_bytes(g->b_dtype);
    out->next_bytes = n * out->next_run;
    out->next = rows_from(g->b, g->b_dtype, (out->row + first) * g->b_row + next * NR);
}

/* Locate words [word, word + words) of a panel that this task makes. */
static void gemm_part_made(const struct gemm_block *s, const struct gemm_share *o, int64_t p, int64_t word, int64_t words,
                           struct gemm_part *out)
{
    const int64_t at = (p - o->panel) % s->made, left = o->panel_end - p;
    if (at == 0)
        (s->g->transposed ? gemm_make_transposed : gemm_make_rows)(s, o->made, p, left < s->made ? left : s->made, word, words);
    out->panel = o->made + at * words * NR;
    out->next = (const char *)s->own;
    out->next_bytes = 64;
    out->row = (s->word + word) * (s->g->bf16 ? 2 : 1);
    if (!s->g->transposed)
        gemm_next_rows(s, o, p, words, out);
    else if (p - at + s->made < o->panel_end)
        gemm_next_transposed(s, p - at + s->made, words, out);
    if (!gemm_splits(s->g)) return;
    gemm_split(o->wide, out->panel, out->steps);
    out->panel = o->wide;
}

/* Make TRANSPOSED panels from p on: the words of [word, word + words), rounded to blocks of W's
 * rows. Words before them were made with the previous chunk. */
static void gemm_make_chunk(const struct gemm_block *s, float *b, int64_t p, int64_t word, int64_t words)
{
    const int64_t panels = (s->g->n + NR - 1) / NR, first = (word + PACK_WORDS - 1) / PACK_WORDS * PACK_WORDS,
                  end = (word + words + PACK_WORDS - 1) / PACK_WORDS * PACK_WORDS, last = end < s->words ? end : s->words;
    gemm_transpose_panels(s->g,
                          &(struct gemm_transpose){b + (p * s->words + first) * NR, s->words * NR, s->word + first, last - first,
                                                   p * NR, (p + TRANSPOSED < panels ? p + TRANSPOSED : panels) * NR});
}

/* A panel is made by the first thread to reach it, which uses it while it is cached; later threads
 * wait. */
static void gemm_part_once(const struct gemm_block *s, const struct gemm_share *o, int64_t p, int64_t word, int64_t words,
                           struct gemm_part *out)
{
    enum { SPINS = 1000 };
    _Atomic int *states = o->state + out->chunk * gemm_transposed(s->g);
    _Atomic int *state = states + p / TRANSPOSED;
    int none = NOT_MADE;
    if (atomic_load_explicit(state, memory_order_acquire) == NOT_MADE && atomic_compare_exchange_strong(state, &none, BEING_MADE)) {
        gemm_make_chunk(s, o->b, p / TRANSPOSED * TRANSPOSED, word, words);
        atomic_store_explicit(state, MADE, memory_order_release);
    }
    for (int i = 0; atomic_load_explicit(state, memory_order_acquire) != MADE; i++) {
        if (i < SPINS)
            cpu_pause();
        else
            sched_yield();
    }
    gemm_part_of(s, o, p, word, words, out);
    out->row = (s->word + word) * (s->g->bf16 ? 2 : 1);
    if (atomic_load_explicit(states + out->then / TRANSPOSED, memory_order_relaxed) == NOT_MADE)
        gemm_next_transposed(s, out->then, words, out);
}

/* Choose the block of rows and the group of a thread's next task. A thread that stays with a block
 * computes its U once and reads all of B; then it continues with an untouched block, and finally
 * with the remaining groups of other threads' blocks. Otherwise it computes all of U, but reads the
 * same part of B for every block. There are as many tasks as groups of all blocks, so it finds
 * one. */
static int64_t gemm_next(const struct gemm_block *s, int64_t task, int thread, int64_t *group)
{
    int64_t block = s->held[thread];
    if (!s->stay) {
        *group = task % s->groups;
        return task / s->groups;
    }
    if (block >= 0 && (*group = atomic_fetch_add(&s->out[block], 1)) < s->groups) return block;
    for (block = 0; block < s->row_blocks; block++) {
        int64_t none = 0;
        *group = 0;
        if (atomic_compare_exchange_strong(&s->out[block], &none, 1)) return block;
    }
    for (block = 0; block + 1 < s->row_blocks; block++)
        if (atomic_load(&s->out[block]) < s->groups && (*group = atomic_fetch_add(&s->out[block], 1)) < s->groups) return block;
    *group = atomic_fetch_add(&s->out[block], 1);
    return block;
}

static void gemm_block_task(void *arg, int64_t task, int thread)
{
    const struct gemm_block *s = arg;
    const struct gemm *g = s->g;
    int64_t group;
    const int64_t block = gemm_next(s, task, thread, &group), panels = (g->n + NR - 1) / NR;
    const int64_t copy = s->copies > 1 ? thread : 0;
    struct gemm_share o = {.tile = gemm_block_tile(s, block),
                           .tile_end = gemm_block_tile(s, block + 1),
                           .panel = group * panels / s->groups,
                           .panel_end = (group + 1) * panels / s->groups,
                           .a = s->own + thread * s->own_size,
                           .b = s->b ? s->b + copy * panels * NR * s->words : NULL,
                           .state = s->state ? s->state + copy * s->chunks * gemm_transposed(g) : NULL,
                           .first = group == 0};
    const int64_t most = s->block_tiles;
    const int held = s->held[thread] == block;
    o.row = gemm_tile_row(s, o.tile);
    o.sums = o.a + s->kept * s->a_chunk;
    o.u = o.sums + most * MR * s->sums_row;
    o.low = o.u + most * MR * s->low_row;
    o.narrow = o.low + most * s->low_tile;
    o.wide = o.a + s->own_size - s->most.steps * NR;
    o.made = o.narrow + s->low_steps * NR;
    /* if panels are made for all threads, each thread starts with different ones */
    const int64_t own = o.panel_end - o.panel, shift = s->state && s->copies == 1 ? thread * own / s->threads : 0;
    for (int64_t c = 0; c < s->chunks; c++) {
        const int64_t word = c * s->words / s->chunks, words = (c + 1) * s->words / s->chunks - word,
                      steps = gemm_steps(g, s->word + word, words);
        float *a = o.a + c % s->kept * s->a_chunk;
        if (!held && g->a_col != 1)
            gemm_take_columns(s, &o, a, s->word + word, words);
        else if (!held)
            gemm_take_rows(s, &o, a, s->word + word, words);
        gemm_low_chunk(s, &o, a, c, held);
        for (int64_t i = 0, p = o.panel + shift, then; i < own; i++, p = then) {
            then = i + 1 == own ? p : p + 1 == o.panel_end ? o.panel : p + 1;
            struct gemm_part part = {.a = a,
                                     .steps = steps,
                                     .chunk = c,
                                     .then = then,
                                     .iteration = (block * s->chunks + c) * panels + p,
                                     .first = c == 0,
                                     .last = c + 1 == s->chunks};
            (s->made ? gemm_part_made : s->state ? gemm_part_once : gemm_part_of)(s, &o, p, word, words, &part);
            gemm_low_panel(s, &o, p, &part);
            gemm_panel(s, &o, p, &part);
        }
    }
    s->held[thread] = s->kept == s->chunks ? block : -1;
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

/* Choose the number of groups, from `least` to `wanted`, that minimises the longest
 * thread: the largest group times the tasks of a thread. On ties, choose the largest number. */
static int64_t gemm_even_groups(const struct gemm_block *s, int64_t panels, int64_t least, int64_t wanted, int64_t threads)
{
    int64_t best = wanted, time = INT64_MAX;
    for (int64_t groups = wanted; groups >= least && groups > 0; groups--) {
        const int64_t longest = (s->row_blocks * groups + threads - 1) / threads * ((panels + groups - 1) / groups);
        if (longest >= time) continue;
        time = longest;
        best = groups;
    }
    return best;
}

/* Divide the work into tasks down and across, enough for the threads. With one block of rows, B
 * comes from memory, so its panels are divided among the threads instead of the rows. */
static void gemm_cut(struct gemm_block *s, int64_t threads)
{
    const int64_t panels = (s->g->n + NR - 1) / NR, chunk = gemm_chunk(s);
    s->chunks = (s->words + chunk - 1) / chunk;
    s->tiles = gemm_tiles(s->g->m);
    s->row_blocks = s->made ? 1 : (s->tiles + s->most.tiles - 1) / s->most.tiles;
    if (s->row_blocks > 1) s->row_blocks = (s->row_blocks + threads - 1) / threads * threads;
    if (s->row_blocks > s->tiles) s->row_blocks = s->tiles;
    s->block_tiles = (s->tiles + s->row_blocks - 1) / s->row_blocks;
    s->stay = s->g->low && s->row_blocks > 1 && s->words * panels * NR < 4 * s->g->m * s->g->k;
    s->groups = 1;
    if (s->chunks > 1) {
        s->groups = (panels * NR + s->most.columns - 1) / s->most.columns;
        while (s->groups * s->most.columns < (panels + s->groups - 1) / s->groups * s->groups * NR) s->groups++;
    }
    const int64_t least = s->row_blocks > 1 ? 6 : 2, tasks = threads * (s->g->m * s->words <= 1 << 20 ? 4 : 2);
    int64_t wanted = (tasks + s->row_blocks - 1) / s->row_blocks;
    if (wanted * least > panels) wanted = panels / least;
    if (threads > 1 && s->groups < wanted) s->groups = gemm_even_groups(s, panels, s->groups, wanted, threads);
    s->whole = s->row_blocks;
    /* reading A's columns in narrower parts costs more than that */
    if (threads == 1 || s->groups > 1 || s->g->a_col != 1) return;
    if (s->row_blocks < 2 * threads || s->block_tiles < 2 * BLOCK_PARTS) return;
    s->whole -= threads;
    s->row_blocks += threads * (BLOCK_PARTS - 1);
}

/* Lay out a thread's memory for the first part, whose chunks and groups are the largest. */
static void gemm_layout(struct gemm_block *s)
{
    const int64_t panels = (s->g->n + NR - 1) / NR, tiles = s->block_tiles;
    const int64_t words = (s->words + s->chunks - 1) / s->chunks, steps = gemm_splits(s->g) ? 2 * words : words;
    s->a_tile = (steps * MR + 2 * LANES - 1) / LANES * LANES;
    s->a_chunk = tiles * s->a_tile;
    s->kept = s->chunks * s->a_chunk * 4 <= caches_of_this_machine().second / 2 ? s->chunks : 1;
    s->sums_row = s->chunks > 1 ? (panels + s->groups - 1) / s->groups * NR : 0;
    s->own_size = s->kept * s->a_chunk + tiles * MR * s->sums_row + gemm_low_layout(s, tiles) + s->made * words * NR +
                  (gemm_widens(s->g) ? s->most.steps * NR : 0);
}

/* Set the source of `words` words of B's panels from `word` on, to be prefetched. */
static void gemm_later(struct gemm_block *s, int64_t word, int64_t words)
{
    const int64_t rows = s->g->bf16 ? 2 : 1;
    s->later = words > 0 ? rows_from(s->g->b, s->g->b_dtype, rows * word * s->g->b_row) : NULL;
    s->later_bytes = rows * words * s->g->b_row * dtype_bytes(s->g->b_dtype);
}

/* About `fit` of `all` words: whole chunks, or equal parts of at most a chunk, so that no later
 * part has larger chunks than the first. The result is a multiple of PACK_WORDS, as chunks are, so
 * that transposed panels are split between blocks of their rows. */
static int64_t gemm_words_at_once(int64_t all, int64_t fit, int64_t chunk)
{
    if (fit >= 2 * chunk) return fit / chunk * chunk;
    const int64_t times = (all + chunk - 1) / chunk;
    return ((all + times - 1) / times + PACK_WORDS - 1) / PACK_WORDS * PACK_WORDS;
}

/* Number of B's panels that a task makes at a time where it uses them; 0: none. For transposed
 * weights it is one, if A is small enough to share the L2 cache, since the weights are then
 * read only once in any case. For rows of B it is several, if so few tiles use a panel that writing
 * it for all threads costs as much as using it: the part read of a row is then long enough for the
 * hardware prefetcher to recognise. */
static int gemm_makes(const struct gemm_block *s, int64_t words)
{
    enum { FEW = 4, TOGETHER = 4 };
    const struct gemm *g = s->g;
    const int64_t tiles = gemm_tiles(g->m);
    if (g->panels || g->int8) return 0;
    if (!g->transposed) return g->a_col != 1 && tiles <= FEW ? TOGETHER : 0;
    return words <= gemm_chunk(s) && tiles * s->most.steps * MR * 4 <= caches_of_this_machine().second / 2 ? TRANSPOSED : 0;
}

/* Number of copies of panels that are made where they are used. A thread with many tiles per panel
 * makes all of them for itself, which is faster than transferring them from another core's caches
 * and invalidating their lines there when they are made again. */
static int64_t gemm_copies(const struct gemm_block *s)
{
    enum { MANY = 8, MOST = 1 << 20 /* words of a copy */ };
    const int64_t padded = (s->g->n + NR - 1) / NR * NR;
    return s->g->transposed && s->tiles >= MANY * s->threads && padded * s->words <= MOST ? s->threads : 1;
}

static void gemm_blocked(const struct kctx *c, const struct gemm *g)
{
    /* Words of B that are made into panels at a time. With few, the rows of the next ones are
     * prefetched while these are used; but if A's columns are contiguous, C is the larger matrix,
     * and each part stores its partial sums there. */
    const int64_t packed = g->a_col == 1 ? 1 << 19 : 4 << 20;
    const int64_t threads = pool_threads(c->pool), padded = (g->n + NR - 1) / NR * NR, all = gemm_words(g);
    struct gemm_block s = {.g = g, .most = gemm_most()};
    const int64_t chunk = gemm_chunk(&s), part = gemm_words_at_once(all, 0, chunk);
    const int in_panels = g->panels || g->int8;
    int64_t most = all;
    s.made = gemm_makes(&s, g->residual ? all : part);
    if (!in_panels && !g->residual && g->transposed && s.made)
        most = part;
    else if (!in_panels && !s.made && !g->residual && padded * all > packed)
        most = gemm_words_at_once(all, packed / padded, chunk);
    s.words = most < all ? most : all;
    gemm_cut(&s, threads);
    gemm_layout(&s);
    s.own = scratch(c, threads * s.own_size);
    s.held = scratch(c, 2 * threads);
    /* a later part may split blocks that the first does not */
    s.out = scratch(c, 2 * (s.row_blocks + threads * (BLOCK_PARTS - 1)));
    s.threads = threads;
    s.copies = gemm_copies(&s);
    if (!in_panels && !s.made) s.b = scratch(c, s.copies * padded * s.words);
    if (s.b && g->transposed) s.state = scratch(c, s.copies * s.chunks * gemm_transposed(g));
    if (!s.own || !s.held || !s.out || (!in_panels && !s.made && !s.b) || (s.b && g->transposed && !s.state)) return;
    for (s.word = 0; s.word < all; s.word += most) {
        s.words = all - s.word < most ? all - s.word : most;
        s.part = s.word / most;
        if (s.word > 0) gemm_cut(&s, threads);
        if (s.b && !g->transposed) gemm_later(&s, s.word + s.words, all - s.word - s.words < most ? all - s.word - s.words : most);
        for (int64_t i = 0; i < threads; i++) s.held[i] = -1;
        for (int64_t i = 0; i < s.row_blocks; i++) atomic_init(&s.out[i], 0);
        for (int64_t i = 0; s.state && i < s.copies * s.chunks * gemm_transposed(g); i++) atomic_init(&s.state[i], NOT_MADE);
        if (s.b && !s.state) pool_run(c->pool, (s.words + PACK_WORDS - 1) / PACK_WORDS, gemm_pack_task, &s);
        pool_run(c->pool, s.row_blocks * s.groups, gemm_block_task, &s);
    }
}
