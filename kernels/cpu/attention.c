/* Attention over the blocked cache (definition: ref/attention.c).
 *
 * A tile is up to ATTN_ROWS (query, head) rows that share a key/value head: adjacent positions, the
 * heads of the group and, in decoding, adjacent sequences. Attention scores are products of the
 * tile's queries with a block of 16 keys, [rows, D] [D, 16]. Blocks that lead the tables of all
 * sequences of the tile are read once for all of them. A row of scores stays in scratch for the two
 * passes of the softmax; then [rows, keys] [keys, D] continues in one chain from block to block. */
enum {
    ATTN_ROWS = MR,
    ATTN_TILES = 4 /* tiles of a task */,
    /* blocks that a task's tiles process together: their keys fit in the L2 cache */
    ATTN_BLOCKS = 16,
    ATTN_FEW = 3 /* rows for which the few-rows path is used */
};

struct attn_args {
    void *out;
    enum dtype out_dtype;
    float *stats;
    const float *qkv;
    struct kv_layer kv;
    struct attn_shape s;
    const struct attn_seq *seqs;
    const int32_t *query; /* [queries, 2]: sequence, index in it */
    /* heads per key/value head; tasks per key/value head; floats in a row of scores */
    int64_t queries, group, chunks, keys;
    int64_t rows, tiles; /* rows of a tile, at most ATTN_ROWS; tiles of a task, at most ATTN_TILES */
    int words;           /* 1: keys and values are words of two numbers (kv_words) */
    int64_t block;       /* floats, or words, of one head's keys or values in a block */
    float *scratch;      /* per thread: scores [rows, keys], queries and outputs [rows, D] */
    int64_t scratch_size;
};

struct attn_tile {
    int rows, runs;
    int64_t shared;               /* number of leading blocks shared by all sequences of the tile */
    int64_t keys[ATTN_ROWS];      /* number of keys up to a row's position */
    int64_t first[ATTN_ROWS];     /* keys below this one are outside the window */
    int64_t at[ATTN_ROWS];        /* row * H + head in out */
    int run_begin[ATTN_ROWS + 1]; /* ranges of rows that belong to one sequence */
    const int32_t *blocks[ATTN_ROWS];
    int64_t run_blocks[ATTN_ROWS];
    float *score, *q, *o, m[ATTN_ROWS], l[ATTN_ROWS];
};

/* Numbers of q, k or v with the rounding of the cache. */
INLINE vf kv_in(int words, vf x)
{
    return words ? v_round_bf16(x) : x;
}

/* One head's row of such numbers. */
static void kv_row(float *to, const void *from, enum dtype dtype, int64_t dim, int words)
{
    for (int64_t d = 0; d < dim; d += LANES) gemm_store(to + d, kv_in(words, rows_load(from, dtype, d, dim - d)), dim - d);
}

static void attn_tile_begin(struct attn_tile *t, const struct attn_args *s, int64_t head, int64_t row, int rows)
{
    const int64_t dim = s->s.head_dim;
    int32_t last = -1;
    t->rows = rows;
    t->runs = 0;
    for (int r = 0; r < rows; r++) {
        const int32_t *query = s->query + (row + r) / s->group * 2;
        const struct attn_seq *seq = &s->seqs[query[0]];
        const int64_t token = seq->q_begin + query[1], h = head * s->group + (row + r) % s->group;
        if (query[0] != last) {
            last = query[0];
            t->run_begin[t->runs] = r;
            t->blocks[t->runs++] = seq->blocks;
        }
        t->keys[r] = seq->pos + query[1] + 1;
        t->first[r] = s->s.window && t->keys[r] > s->s.window ? t->keys[r] - s->s.window : 0;
        t->at[r] = token * s->s.heads + h;
        t->run_blocks[t->runs - 1] = (t->keys[r] + KV_BLOCK - 1) / KV_BLOCK;
        kv_row(t->q + r * dim, s->qkv + token * s->s.stride + h * dim, DTYPE_F32, dim, s->words);
    }
    t->run_begin[t->runs] = rows;
    t->shared = t->run_blocks[0];
    for (int i = 1; i < t->runs; i++) {
        int64_t same = 0;
        while (same < t->shared && same < t->run_blocks[i] && t->blocks[i][same] == t->blocks[0][same]) same++;
        t->shared = same;
    }
}

static void attn_fetch(const float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) v_prefetch(p + i);
}

/* Rows of a tile against blocks begin .. end-1 of one table, and the blocks needed after them. */
struct attn_span {
    int from, to;
    const int32_t *blocks;
    int64_t begin, end;
    const int32_t *then;
    int64_t thens;
};

/* Block b of the span, or of the blocks that follow it. With few rows the time goes to waiting for
 * memory, so blocks are prefetched line by line while others are computed. */
static int64_t attn_block(const struct attn_span *p, int64_t b)
{
    return b < p->end ? p->blocks[b] : b - p->end < p->thens ? p->then[b - p->end] : p->blocks[p->end - 1];
}

/* Compute a few rows of p against two blocks of keys, k[0] and k[1], because the chains of one
 * block alone would wait for each other. The next two blocks are prefetched. */
TILE_FUNCTION void attn_scores_pair(const int rows, const int words, const struct small *p, const float *const k[4])
{
    const float *q = p->a;
    const int64_t dim = p->k;
    vf acc[ATTN_FEW][2];
    UNROLL for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = v_zero();
    for (int64_t d = 0, at = 0; d < dim; at += KV_BLOCK) {
        const vf a = v_load(k[0] + at), b = v_load(k[1] + at);
        v_prefetch(k[2] + at);
        v_prefetch(k[3] + at);
        UNROLL for (int second = 0; second < 1 + words; second++, d++)
        {
            const vf first = small_numbers(a, words, second), next = small_numbers(b, words, second);
            UNROLL for (int r = 0; r < rows; r++)
            {
                const vf x = v_set(q[r * dim + d]);
                acc[r][0] = v_fma(x, first, acc[r][0]);
                acc[r][1] = v_fma(x, next, acc[r][1]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
    {
        v_store(p->c + r * p->c_row, acc[r][0]);
        v_store(p->c + r * p->c_row + KV_BLOCK, acc[r][1]);
    }
}

static void attn_scores_few(int rows, const struct small *p, const float *const k[4])
{
    switch (2 * rows + p->words) {
#define TILE(R)                                                                                                                    \
    case 2 * R:                                                                                                                    \
        attn_scores_pair(R, 0, p, k);                                                                                              \
        break;                                                                                                                     \
    case 2 * R + 1:                                                                                                                \
        attn_scores_pair(R, 1, p, k);                                                                                              \
        break;
        TILE(1) TILE(2) TILE(3)
#undef TILE
    }
}

static void attn_scores(const struct attn_tile *t, const struct attn_args *s, int64_t head, const struct attn_span *span)
{
    const int64_t dim = s->s.head_dim, size = s->block, step = s->s.kv_heads * size;
    const int rows = span->to - span->from;
    const float *keys = s->kv.k + head * size;
    struct small p = {.m = rows,
                      .k = dim,
                      .a = t->q + span->from * dim,
                      .a_row = dim,
                      .a_col = 1,
                      .b_row = KV_BLOCK,
                      .c_row = s->keys,
                      .words = s->words};
    for (int64_t b = span->begin; b < span->end; b++) {
        p.b = keys + span->blocks[b] * step;
        p.c = t->score + span->from * s->keys + b * KV_BLOCK;
        if (rows <= ATTN_FEW && b + 1 < span->end) {
            const float *const k[4] = {p.b, keys + span->blocks[b + 1] * step, keys + attn_block(span, b + 2) * step,
                                       keys + attn_block(span, b + 3) * step};
            attn_scores_few(rows, &p, k);
            b++;
            continue;
        }
        if (2 * rows <= MR) attn_fetch(keys + attn_block(span, b + 1) * step, size);
        p.n = KV_BLOCK;
        if (NRV > 1 && b + 1 < span->end) {
            p.n = NR;
            p.b_next = keys + span->blocks[++b] * step - p.b;
        }
        small_rows(&p, 0, rows);
    }
}

struct attn_values {
    const struct attn_span *span;
    const float *p;          /* [rows, keys] weights */
    int64_t keys, dim, most; /* most: the largest number of keys of a row */
    const float *v;          /* values of this head in block 0 */
    int64_t block_size;      /* stride between blocks: values of all heads */
    float *o;
};

/* A block of values, or its part to the right of a column, and the next block, which is
 * prefetched. */
struct attn_values_block {
    /* v, next: rows `dim` apart; p: the block's weights of the first row */
    const float *v, *p, *next;
    int64_t n, left;   /* keys; remaining columns */
    int64_t dim, keys; /* floats between rows of v and of p */
};

INLINE void attn_values_add(vf acc[MR][2], const int rows, const int width, const vf x[2], const float *p, int64_t keys)
{
    UNROLL for (int r = 0; r < rows; r++)
    {
        const vf a = v_set(p[r * keys]);
        UNROLL for (int w = 0; w < width; w++) acc[r][w] = v_fma(a, x[w], acc[r][w]);
    }
}

/* Add one row of values: one key, or two in words, of which the second may be missing. */
INLINE void attn_values_row(vf acc[MR][2], const int rows, const int width, const int words, const struct attn_values_block *b,
                            int64_t i)
{
    const int whole = b->left >= width * LANES;
    const int64_t key = i << words;
    vf x[2], y[2];
    UNROLL for (int w = 0; w < width; w++)
    {
        x[w] = whole ? v_load(b->v + i * b->dim + w * LANES) : v_load_n(b->v + i * b->dim, b->left);
        if (2 * rows <= MR) v_prefetch(b->next + i * b->dim + w * LANES);
    }
    UNROLL for (int w = 0; w < width; w++) y[w] = small_numbers(x[w], words, 0);
    attn_values_add(acc, rows, width, y, b->p + key, b->keys);
    if (!words || key + 1 >= b->n) return;
    UNROLL for (int w = 0; w < width; w++) y[w] = small_numbers(x[w], words, 1);
    attn_values_add(acc, rows, width, y, b->p + key + 1, b->keys);
}

/* Compute rows x 16 `width` columns of the output, keeping the chain in registers across blocks. */
TILE_FUNCTION void attn_values_tile(const int rows, const int width, const int words, const struct attn_values *s, int64_t column)
{
    vf acc[MR][2];
    const struct attn_span *span = s->span;
    const int64_t left = s->dim - column;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int w = 0; w < width; w++) acc[r][w] =
        span->begin ? gemm_load(s->o + r * s->dim + column + w * LANES, left - w * LANES) : v_zero();
    for (int64_t b = span->begin; b < span->end; b++) {
        const struct attn_values_block at = {.v = s->v + span->blocks[b] * s->block_size + column,
                                             .p = s->p + b * KV_BLOCK,
                                             .next = s->v + attn_block(span, b + 1) * s->block_size + column,
                                             .n = s->most - b * KV_BLOCK < KV_BLOCK ? s->most - b * KV_BLOCK : KV_BLOCK,
                                             .left = left,
                                             .dim = s->dim,
                                             .keys = s->keys};
        int64_t i = 0;
        for (; i << words < at.n; i++) attn_values_row(acc, rows, width, words, &at, i);
        for (; 2 * rows <= MR && i < KV_BLOCK >> words; i++)
            UNROLL for (int w = 0; w < width; w++) v_prefetch(at.next + i * s->dim + w * LANES);
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int w = 0; w < width; w++)
        gemm_store(s->o + r * s->dim + column + w * LANES, acc[r][w], left - w * LANES);
}

/* R rows where they are needed, with words and without. */
#define VALUES_TILE(R, WANTED, WIDTH)                                                                                              \
    case 2 * R:                                                                                                                    \
        if (WANTED) attn_values_tile(R, WIDTH, 0, &s, column);                                                                     \
        break;                                                                                                                     \
    case 2 * R + 1:                                                                                                                \
        if (WANTED) attn_values_tile(R, WIDTH, 1, &s, column);                                                                     \
        break;

static void attn_values(const struct attn_tile *t, const struct attn_args *a, int64_t head, const struct attn_span *span)
{
    const int64_t dim = a->s.head_dim;
    const int rows = span->to - span->from;
    if (span->begin >= span->end) return;
    struct attn_values s = {.span = span,
                            .p = t->score + span->from * a->keys,
                            .keys = a->keys,
                            .dim = dim,
                            .v = a->kv.v + head * a->block,
                            .block_size = a->s.kv_heads * a->block,
                            .o = t->o + span->from * dim};
    for (int r = span->from; r < span->to; r++) s.most = t->keys[r] > s.most ? t->keys[r] : s.most;
    int64_t column = 0;
    for (; (NRV > 1 || rows <= ATTN_FEW) && dim - column >= 2 * LANES; column += 2 * LANES) switch (2 * rows + a->words) {
#define TILE(R) VALUES_TILE(R, NRV > 1 || R <= ATTN_FEW, 2)
            TILE_CASES(TILE)
#undef TILE
        }
    for (; column < dim; column += LANES) switch (2 * rows + a->words) {
#define TILE(R) VALUES_TILE(R, 1, 1)
            TILE_CASES(TILE)
#undef TILE
        }
}

/* Mask scores before a window, so that their weights are 0. */
static void attn_mask(float *score, int64_t first)
{
    const vf low = v_set(-INFINITY);
    int64_t j = 0;
    for (; j + LANES <= first; j += LANES) v_store(score + j, low);
    if (j < first) v_store(score + j, v_select_n(low, v_load(score + j), first - j));
}

/* Turn scores into weights exp(s - m) and return l. Weights beyond the row's keys, up to `width`,
 * are 0. */
static float attn_softmax(float *score, int64_t keys, int64_t width, float scale, float *top)
{
    const vf sv = v_set(scale), low = v_set(-INFINITY);
    vf m = low, l = v_zero();
    for (int64_t j = 0; j < keys; j += LANES) {
        vf x = v_mul(v_load(score + j), sv);
        if (keys - j < LANES) x = v_select_n(x, low, keys - j);
        v_store(score + j, x);
        m = v_max(x, m);
    }
    *top = v_max_of(m) + 0.0f;
    const vf mv = v_set(*top);
    for (int64_t j = 0; j < keys; j += LANES) {
        const vf p = v_exp(v_sub(v_load(score + j), mv));
        v_store(score + j, p);
        l = v_add(l, p);
    }
    for (int64_t j = (keys + LANES - 1) / LANES * LANES; j < width; j += LANES) v_store(score + j, v_zero());
    return v_sum(l);
}

typedef void (*attn_step)(const struct attn_tile *t, const struct attn_args *s, int64_t head, const struct attn_span *span);

/* Apply a step to blocks begin .. end-1: shared blocks for all rows, the others per sequence. */
static void attn_walk(attn_step step, const struct attn_tile *t, const struct attn_args *s, int64_t head, int64_t begin,
                      int64_t end)
{
    const int64_t middle = t->shared < end ? t->shared : end, own = begin > t->shared ? begin : t->shared;
    struct attn_span span = {.from = 0, .to = t->rows, .blocks = t->blocks[0], .begin = begin, .end = middle};
    if (begin < middle) step(t, s, head, &span);
    for (int i = 0; i < t->runs; i++) {
        const int64_t last = t->run_blocks[i] < end ? t->run_blocks[i] : end;
        span = (struct attn_span){t->run_begin[i], t->run_begin[i + 1], t->blocks[i], own, last, NULL, 0};
        if (i + 1 < t->runs && own < t->run_blocks[i + 1]) {
            span.then = t->blocks[i + 1] + own;
            span.thens = t->run_blocks[i + 1] - own;
        }
        if (own < last) step(t, s, head, &span);
    }
}

static void attn_tile_softmax(struct attn_tile *t, const struct attn_args *s)
{
    for (int i = 0; i < t->runs; i++)
        for (int r = t->run_begin[i]; r < t->run_begin[i + 1]; r++) {
            if (t->first[r]) attn_mask(t->score + r * s->keys, t->first[r]);
            t->l[r] = attn_softmax(t->score + r * s->keys, t->keys[r], t->run_blocks[i] * KV_BLOCK, s->s.scale, &t->m[r]);
        }
}

static void attn_tile_end(const struct attn_tile *t, const struct attn_args *s)
{
    const int64_t dim = s->s.head_dim;
    for (int r = 0; r < t->rows; r++) {
        for (int64_t d = 0; d < dim; d += LANES)
            rows_store(s->out, s->out_dtype, t->at[r] * dim + d, v_div(gemm_load(t->o + r * dim + d, dim - d), v_set(t->l[r])),
                       dim - d);
        if (s->stats) {
            s->stats[t->at[r] * 2] = t->m[r];
            s->stats[t->at[r] * 2 + 1] = t->l[r];
        }
    }
}

static void attn_task(void *arg, int64_t task, int thread)
{
    const struct attn_args *s = arg;
    /* late positions cost most and are processed first, so that the threads finish together */
    const int64_t head = task % s->s.kv_heads, chunk = s->chunks - 1 - task / s->s.kv_heads, rows = s->queries * s->group;
    float *own = s->scratch + thread * s->scratch_size;
    struct attn_tile tiles[ATTN_TILES];
    int64_t blocks = 0;
    int n = 0;
    for (; n < s->tiles; n++) {
        const int64_t row = (chunk * s->tiles + n) * s->rows;
        if (row >= rows) break;
        struct attn_tile *t = &tiles[n];
        t->score = own;
        t->q = t->score + ATTN_ROWS * s->keys;
        t->o = t->q + ATTN_ROWS * s->s.head_dim;
        own = t->o + ATTN_ROWS * s->s.head_dim;
        attn_tile_begin(t, s, head, row, (int)(rows - row < s->rows ? rows - row : s->rows));
        for (int i = 0; i < t->runs; i++) blocks = t->run_blocks[i] > blocks ? t->run_blocks[i] : blocks;
    }
    for (int64_t b = 0; b < blocks; b += ATTN_BLOCKS)
        for (int i = 0; i < n; i++) attn_walk(attn_scores, &tiles[i], s, head, b, b + ATTN_BLOCKS);
    for (int i = 0; i < n; i++) attn_tile_softmax(&tiles[i], s);
    for (int64_t b = 0; b < blocks; b += ATTN_BLOCKS)
        for (int i = 0; i < n; i++) attn_walk(attn_values, &tiles[i], s, head, b, b + ATTN_BLOCKS);
    for (int i = 0; i < n; i++) attn_tile_end(&tiles[i], s);
}

/* Few rows are split into smaller tasks, so that the threads finish together. The heads of a query
 * stay together, since they read the same keys. */
static void attn_cut(struct attn_args *a, int64_t threads)
{
    const int64_t rows = a->queries * a->group, wanted = threads > 1 ? (2 * threads + a->s.kv_heads - 1) / a->s.kv_heads : 1;
    a->rows = ATTN_ROWS;
    a->tiles = ATTN_TILES;
    while (a->tiles > 1 && (rows + a->rows * a->tiles - 1) / (a->rows * a->tiles) < wanted) a->tiles--;
    const int64_t share = (a->queries + wanted - 1) / wanted * a->group;
    if (a->tiles == 1 && share < a->rows) a->rows = share;
    a->chunks = (rows + a->rows * a->tiles - 1) / (a->rows * a->tiles);
}

static void cpu_attention(const struct kctx *c, const struct op_attention *o)
{
    struct attn_args a = {.out = o->out,
                          .out_dtype = o->out_dtype,
                          .stats = o->stats,
                          .qkv = o->qkv,
                          .kv = o->kv,
                          .s = o->shape,
                          .seqs = o->seqs,
                          .group = o->shape.heads / o->shape.kv_heads,
                          .words = kv_words(&o->shape)};
    int64_t work = 0;
    for (int64_t i = 0; i < o->n_seqs; i++) {
        const int64_t keys = (o->seqs[i].pos + o->seqs[i].q_len + KV_BLOCK - 1) / KV_BLOCK * KV_BLOCK;
        a.queries += o->seqs[i].q_len;
        a.keys = keys > a.keys ? keys : a.keys;
        work += o->seqs[i].q_len * keys * o->shape.heads * o->shape.head_dim;
    }
    if (!a.queries) return;
    int32_t *query = scratch(c, 2 * a.queries), *at = query;
    if (!query) return;
    for (int64_t i = 0; i < o->n_seqs; i++)
        for (int64_t j = 0; j < o->seqs[i].q_len; j++) {
            *at++ = (int32_t)i;
            *at++ = (int32_t)j;
        }
    a.query = query;
    a.block = (o->shape.head_dim * KV_BLOCK) >> a.words;
    a.keys += LANES; /* rows of scores a power of two apart would map to the same cache sets */
    a.scratch_size = ATTN_TILES * ATTN_ROWS * (a.keys + 2 * o->shape.head_dim) + LANES;
    a.scratch = scratch(c, a.scratch_size * pool_threads(c->pool));
    if (!a.scratch) return;
    struct pool *pool = work < 65536 ? NULL : c->pool;
    attn_cut(&a, pool_threads(pool));
    pool_run(pool, a.chunks * o->shape.kv_heads, attn_task, &a);
    arena_reset(c->scratch);
}

/* ---- the cache */
struct kv_args {
    struct kv_layer kv;
    const float *qkv;
    struct attn_shape s;
    const int64_t *rows, *slots;
    const int32_t *to, *from;
};

/* Store one head's key and value in bf16. */
static void kv_write_words(const struct kv_args *a, const float *key, const float *value, int64_t slot, int64_t head)
{
    const int64_t block = slot / KV_BLOCK, lane = slot % KV_BLOCK;
    uint16_t *k = (uint16_t *)(void *)a->kv.k, *v = (uint16_t *)(void *)a->kv.v + kv_word_v(&a->s, block, head, lane, 0);
    for (int64_t d = 0; d < a->s.head_dim; d++) {
        k[kv_word_k(&a->s, block, head, lane, d)] = bf16_from_f32(key[d]);
        v[2 * d] = bf16_from_f32(value[d]);
    }
}

static void kv_write_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct kv_args *a = arg;
    const int64_t dim = a->s.head_dim, heads = a->s.kv_heads;
    const int words = kv_words(&a->s);
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = a->slots[i] / KV_BLOCK, lane = a->slots[i] % KV_BLOCK;
        const float *key = a->qkv + a->rows[i] * a->s.stride + a->s.heads * dim, *value = key + heads * dim;
        for (int64_t j = 0; j < heads; j++) {
            if (words) {
                kv_write_words(a, key + j * dim, value + j * dim, a->slots[i], j);
                continue;
            }
            float *k = a->kv.k + (block * heads + j) * dim * KV_BLOCK + lane;
            for (int64_t d = 0; d < dim; d++) k[d * KV_BLOCK] = key[j * dim + d];
            memcpy(a->kv.v + ((block * heads + j) * KV_BLOCK + lane) * dim, value + j * dim, (size_t)dim * sizeof(float));
        }
    }
}

static void cpu_kv_write(const struct kctx *c, const struct op_kv_write *o)
{
    spans(c, o->n, 4 * o->shape.kv_heads * o->shape.head_dim, 1, kv_write_run,
          &(struct kv_args){.kv = o->kv, .qkv = o->qkv, .s = o->shape, .rows = o->rows, .slots = o->slots});
}

static void kv_copy_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct kv_args *a = arg;
    const int64_t size = (a->s.kv_heads * a->s.head_dim * KV_BLOCK) >> kv_words(&a->s);
    for (int64_t i = begin; i < end; i++) {
        memcpy(a->kv.k + a->to[i] * size, a->kv.k + a->from[i] * size, (size_t)size * sizeof(float));
        memcpy(a->kv.v + a->to[i] * size, a->kv.v + a->from[i] * size, (size_t)size * sizeof(float));
    }
}

static void cpu_kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    /* runs on the calling thread, since a later copy may read what an earlier one wrote */
    const struct kv_args a = {.kv = o->kv, .s = o->shape, .to = o->to, .from = o->from};
    (void)c;
    kv_copy_run(&a, 0, o->n, 0);
}
