/* Gradient of attention (definition: ref/attention.c). Weights are recomputed from m and l
 * (FlashAttention, Dao et al. 2022).
 *
 * The rows of a key/value head are the (query, head) rows of all segments in order, in tiles of up
 * to GRAD_ROWS. The tiles of all heads, one head after another, pass through a window of memory, as
 * many at a time as it holds. With the transposed keys K^T and values V^T of every segment laid out
 * once:
 *
 *   S = Q K^T     P = exp(scale S - m)/l     dP = dO V^T     dS = scale P (dP - delta)
 *   delta = dO . O
 *   dQ = dS K     dK += dS^T Q               dV += P^T dO
 *
 * A tile stores Q, dO, P and dS in the window and finishes dQ; then blocks of keys pass through the
 * window in order. So every sum has one order. As many heads as give every thread the same number
 * are one task each: data read by one core is slow to write from another, so a head's window stays
 * in one core's cache. The remaining heads are split into tasks by tiles first and then by blocks
 * of keys, so that one sequence with few heads keeps all threads busy. */
enum {
    /* small, because on the diagonal a tile also computes keys that its first rows do not see */
    GRAD_ROWS = 2 * MR < 24 ? 24 : 2 * MR,
    GRAD_KEYS = 64 /* keys that a tile processes at a time */,
    GRAD_OWNED = GRAD_ROWS /* keys of a task */
};

struct grad_place { /* position of a segment in kt and vt: rows, whole blocks */
    int64_t prefix, own;
};

struct grad_tile {
    int64_t seg, row, at; /* its first row in the segment and in the head */
    int rows;
};

struct grad_args {
    float *dqkv;
    const float *dout, *stats;
    const void *out, *qkv;
    enum dtype out_dtype;
    enum dtype qkv_dtype;
    struct attn_shape s;
    const struct attn_seg *segs;
    int64_t n_segs, t;
    struct grad_place *places; /* [n_segs] */
    struct grad_tile *tiles;   /* [n_tiles] of a head, `rows` rows */
    int64_t n_tiles, rows;
    float *kt, *vt; /* [J, laid/16, D, 16] */
    float *k;       /* [J, laid, D], with words only */
    int64_t laid;
    int words;                  /* 1: the cache holds keys and values in bf16 (kv_words) */
    float *wq, *wdout, *p, *ds; /* the window: [window, D], [window, columns] */
    int64_t window, columns;
    float *dq;               /* per thread: [GRAD_ROWS, D] */
    int64_t head, heads_end; /* range of key/value heads */
    /* range of tiles in the window; number i is tile i % n_tiles of head i / n_tiles */
    int64_t first, last;
    int64_t begin, end; /* range of the batch's rows that are keys of these tiles */
};

/* The rows of a tile and their place in the window. */
struct grad_rows {
    int n;
    int64_t keys_at, values_at; /* columns of the key and value head in qkv */
    int64_t token[GRAD_ROWS], head[GRAD_ROWS];
    /* first visible row of the batch, of the prefix and of the segment's own rows */
    int64_t first[GRAD_ROWS];
    int64_t first_own[GRAD_ROWS];
    float m[GRAD_ROWS], inverse[GRAD_ROWS], delta[GRAD_ROWS];
    const float *kt, *vt, *k; /* of the head */
    float *q, *dout, *dq, *p, *ds;
    int64_t columns;
};

static int64_t grad_blocks(int64_t rows) /* rounded up to whole blocks */
{
    return (rows + LANES - 1) / LANES * LANES;
}

/* Transpose rows, rounded to bf16 if the cache is. `from` is an index into qkv, here and below. */
static void grad_transpose(const struct grad_args *s, float *to, int64_t from, int64_t rows)
{
    const int64_t dim = s->s.head_dim, stride = s->s.stride;
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t d = 0; d < dim; d += LANES) {
            vf x[LANES];
            gemm_columns(x, rows_from(s->qkv, s->qkv_dtype, from + i * stride + d), s->qkv_dtype, stride, rows - i, dim - d);
            for (int j = 0; j < LANES && d + j < dim; j++) v_store(to + i * dim + (d + j) * LANES, kv_in(s->words, x[j]));
        }
}

static void grad_round(const struct grad_args *s, float *to, int64_t from, int64_t rows)
{
    const int64_t dim = s->s.head_dim;
    for (int64_t i = 0; i < rows; i++, from += s->s.stride, to += dim)
        kv_row(to, rows_from(s->qkv, s->qkv_dtype, from), s->qkv_dtype, dim, s->words);
}

/* the segment shares the prefix of the one before it */
static int grad_same_prefix(const struct attn_seg *segs, int64_t i)
{
    return i && segs[i].prefix_begin == segs[i - 1].prefix_begin && segs[i].prefix_len == segs[i - 1].prefix_len;
}

/* Lay out K^T or V^T of a segment and of its prefix, and K if it is rounded. */
static void grad_lay_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct grad_args *s = arg;
    const int64_t heads = s->heads_end - s->head, i = task / 2 / heads, kv_head = s->head + task / 2 % heads, values = task % 2,
                  dim = s->s.head_dim;
    const struct attn_seg *seg = &s->segs[i];
    const int64_t column = (s->s.heads + values * s->s.kv_heads + kv_head) * dim, prefix = column + seg->prefix_begin * s->s.stride,
                  own = column + seg->q_begin * s->s.stride;
    const int64_t head = kv_head * s->laid * dim, to_prefix = head + s->places[i].prefix * dim,
                  to_own = head + s->places[i].own * dim;
    float *to = values ? s->vt : s->kt;
    if (!grad_same_prefix(s->segs, i)) grad_transpose(s, to + to_prefix, prefix, seg->prefix_len);
    grad_transpose(s, to + to_own, own, seg->q_len);
    if (!s->words || values) return;
    if (!grad_same_prefix(s->segs, i)) grad_round(s, s->k + to_prefix, prefix, seg->prefix_len);
    grad_round(s, s->k + to_own, own, seg->q_len);
}

/* Zero the gradients to which a head adds, and the rows outside all segments. */
static void grad_zero_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct grad_args *s = arg;
    const int64_t dim = s->s.head_dim, group = s->s.heads / s->s.kv_heads;
    for (int64_t i = begin; i < end; i++) {
        float *row = s->dqkv + i * s->s.stride, *key = row + s->s.heads * dim, *value = key + s->s.kv_heads * dim;
        memset(row + s->head * group * dim, 0, (size_t)((s->heads_end - s->head) * group * dim) * sizeof *row);
        memset(key + s->head * dim, 0, (size_t)((s->heads_end - s->head) * dim) * sizeof *row);
        memset(value + s->head * dim, 0, (size_t)((s->heads_end - s->head) * dim) * sizeof *row);
    }
}

/* row of the tile in the window */
static int64_t grad_row_of(const struct grad_args *s, int64_t tile)
{
    const int64_t first = s->first / s->n_tiles * s->rows + s->tiles[s->first % s->n_tiles].at;
    return tile / s->n_tiles * s->rows + s->tiles[tile % s->n_tiles].at - first;
}

static void grad_rows_begin(struct grad_rows *t, const struct grad_args *s, const struct grad_tile *tile, int64_t kv_head)
{
    const struct attn_seg *seg = &s->segs[tile->seg];
    const int64_t dim = s->s.head_dim, group = s->s.heads / s->s.kv_heads;
    for (int r = 0; r < t->n; r++) {
        const int64_t token = seg->q_begin + (tile->row + r) / group, head = kv_head * group + (tile->row + r) % group,
                      at = token * s->s.heads + head;
        t->token[r] = token;
        t->head[r] = head;
        const int64_t hidden =
            /* keys before the window */
            s->s.window ? seg->prefix_len + token - seg->q_begin + 1 - s->s.window : 0;
        t->first[r] = seg->prefix_begin + hidden;
        t->first_own[r] = seg->q_begin + hidden - seg->prefix_len;
        t->m[r] = s->stats[at * 2];
        t->inverse[r] = 1.0f / s->stats[at * 2 + 1];
        grad_round(s, t->q + r * dim, token * s->s.stride + head * dim, 1);
        memcpy(t->dout + r * dim, s->dout + at * dim, (size_t)dim * sizeof(float));
        vf sum = v_zero();
        for (int64_t d = 0; d < dim; d += LANES)
            sum = v_fma(kv_in(s->s.dtype == DTYPE_BF16, rows_load(s->out, s->out_dtype, at * dim + d, dim - d)),
                        gemm_load(t->dout + r * dim + d, dim - d), sum);
        t->delta[r] = v_sum(sum);
    }
    memset(t->dq, 0, (size_t)(t->n * dim) * sizeof(float));
}

/* n rows of the batch from `begin`. They start at row `at` of kt and vt and use the columns of p
 * and ds from `column` on. */
struct grad_span {
    int own; /* 1: rows of the segment itself */
    int64_t begin, n, at, column;
};

/* Compute P and dS of the tile against a span. Of the segment's own rows, only those up to the
 * query's are visible. On entry p holds S and ds holds dP. */
static void grad_weights(const struct grad_rows *t, const struct grad_span *k, float scale)
{
    const vf sv = v_set(scale);
    for (int r = 0; r < t->n; r++) {
        const int64_t seen = t->token[r] + 1 - k->begin, n = k->own && seen < k->n ? seen : k->n;
        const int64_t first = (k->own ? t->first_own[r] : t->first[r]) - k->begin;
        const vf m = v_set(t->m[r]), inverse = v_set(t->inverse[r]), delta = v_set(t->delta[r]);
        for (int64_t j = 0; j < k->n; j += LANES) {
            float *p = t->p + r * t->columns + k->column + j, *ds = t->ds + r * t->columns + k->column + j;
            const int64_t left = n - j;
            vf w = v_mul(v_exp(v_sub(v_mul(v_load(p), sv), m)), inverse);
            vf g = v_mul(v_mul(w, v_sub(v_load(ds), delta)), sv);
            if (left < LANES) {
                w = v_first_n(w, left > 0 ? left : 0);
                g = v_first_n(g, left > 0 ? left : 0);
            }
            if (first > j) {
                const int64_t n_hidden = first - j < LANES ? first - j : LANES;
                w = v_select_n(v_zero(), w, n_hidden);
                g = v_select_n(v_zero(), g, n_hidden);
            }
            v_store(p, w);
            v_store(ds, g);
        }
    }
}

/* Process the tile against a span, in order. */
static void grad_keys(const struct grad_rows *t, const struct grad_args *s, const struct grad_span *k)
{
    const int64_t dim = s->s.head_dim, stride = s->s.stride;
    struct small p = {.m = t->n, .k = dim, .a_row = dim, .a_col = 1, .b_row = LANES, .b_next = LANES * dim, .c_row = t->columns};
    for (int64_t i = 0; i < k->n; i += GRAD_KEYS) {
        const int64_t keys = k->n - i < GRAD_KEYS ? k->n - i : GRAD_KEYS, begin = k->begin + i, column = k->column + i;
        p.n = grad_blocks(keys);
        p.a = t->q;
        p.b = t->kt + (k->at + i) * dim;
        p.c = t->p + column;
        small_product(&p);
        p.a = t->dout;
        p.b = t->vt + (k->at + i) * dim;
        p.c = t->ds + column;
        small_product(&p);
        grad_weights(t, &(struct grad_span){k->own, begin, keys, k->at + i, column}, s->s.scale);
        const float *rows = s->words ? t->k + (k->at + i) * dim : (const float *)s->qkv + begin * stride + t->keys_at;
        small_product(
            &(struct small){t->n, dim, keys, t->ds + column, t->columns, 1, rows, s->words ? dim : stride, t->dq, dim, 1, 0, 0});
    }
}

static void grad_tile_task(void *arg, int64_t task, int thread)
{
    const struct grad_args *s = arg;
    /* late rows of a segment see most keys and are processed first, so that the threads finish
     * together */
    const int64_t i = s->last - 1 - task, kv_head = i / s->n_tiles, dim = s->s.head_dim, row = grad_row_of(s, i);
    const struct grad_tile *tile = &s->tiles[i % s->n_tiles];
    const struct attn_seg *seg = &s->segs[tile->seg];
    const struct grad_place *place = &s->places[tile->seg];
    struct grad_rows t = {.n = tile->rows,
                          .keys_at = (s->s.heads + kv_head) * dim,
                          .kt = s->kt + kv_head * s->laid * dim,
                          .vt = s->vt + kv_head * s->laid * dim,
                          .k = s->words ? s->k + kv_head * s->laid * dim : NULL,
                          .q = s->wq + row * dim,
                          .dout = s->wdout + row * dim,
                          .dq = s->dq + thread * GRAD_ROWS * dim,
                          .p = s->p + row * s->columns,
                          .ds = s->ds + row * s->columns,
                          .columns = s->columns};
    grad_rows_begin(&t, s, tile, kv_head);
    grad_keys(&t, s, &(struct grad_span){0, seg->prefix_begin, seg->prefix_len, place->prefix, 0});
    grad_keys(&t, s,
              &(struct grad_span){1, seg->q_begin, t.token[t.n - 1] + 1 - seg->q_begin, place->own, grad_blocks(seg->prefix_len)});
    for (int r = 0; r < t.n; r++)
        memcpy(s->dqkv + t.token[r] * s->s.stride + t.head[r] * dim, t.dq + r * dim, (size_t)dim * sizeof(float));
}

/* Keys begin .. end-1 of the batch, columns of the window from `column` on, and adjacent rows of
 * the window that see these keys. */
struct grad_sum {
    int64_t kv_head, begin, end, column, row, rows;
};

static void grad_add(const struct grad_args *s, const struct grad_sum *u)
{
    if (!u->rows) return;
    const int64_t dim = s->s.head_dim, stride = s->s.stride, from = u->row * s->columns + u->column, n = u->end - u->begin;
    float *dkey = s->dqkv + u->begin * stride + (s->s.heads + u->kv_head) * dim, *dvalue = dkey + s->s.kv_heads * dim;
    small_product(&(struct small){n, dim, u->rows, s->ds + from, 1, s->columns, s->wq + u->row * dim, dim, dkey, stride, 1, 0, 0});
    small_product(
        &(struct small){n, dim, u->rows, s->p + from, 1, s->columns, s->wdout + u->row * dim, dim, dvalue, stride, 1, 0, 0});
}

/* Add a tile's rows that see keys of the task: merge them with the rows before if they are adjacent
 * and see the same keys, otherwise sum those first. */
static void grad_see(const struct grad_args *s, struct grad_sum *u, const struct grad_sum *next)
{
    if (next->begin >= next->end) return;
    if (u->rows && u->begin == next->begin && u->end == next->end && u->column == next->column && u->row + u->rows == next->row) {
        u->rows += next->rows;
        return;
    }
    grad_add(s, u);
    *u = *next;
}

static void grad_key_task(void *arg, int64_t task, int thread)
{
    (void)thread;
    const struct grad_args *s = arg;
    const int64_t blocks = (s->end - s->begin + GRAD_OWNED - 1) / GRAD_OWNED, kv_head = s->first / s->n_tiles + task / blocks,
                  group = s->s.heads / s->s.kv_heads;
    const int64_t begin = s->begin + task % blocks * GRAD_OWNED, end = begin + GRAD_OWNED < s->end ? begin + GRAD_OWNED : s->end,
                  next_head = (kv_head + 1) * s->n_tiles;
    struct grad_sum sum = {.rows = 0};
    for (int64_t i = s->first > kv_head * s->n_tiles ? s->first : kv_head * s->n_tiles; i < s->last && i < next_head; i++) {
        const struct grad_tile *tile = &s->tiles[i % s->n_tiles];
        const struct attn_seg *seg = &s->segs[tile->seg];
        const int64_t prefix_end = seg->prefix_begin + seg->prefix_len, row = grad_row_of(s, i),
                      own_end = seg->q_begin + (tile->row + tile->rows - 1) / group + 1;
        struct grad_sum next = {.kv_head = kv_head, .row = row, .rows = tile->rows};
        next.begin = begin > seg->prefix_begin ? begin : seg->prefix_begin;
        next.end = end < prefix_end ? end : prefix_end;
        next.column = next.begin - seg->prefix_begin;
        grad_see(s, &sum, &next);
        next.begin = begin > seg->q_begin ? begin : seg->q_begin;
        next.end = end < own_end ? end : own_end;
        next.column = grad_blocks(seg->prefix_len) + next.begin - seg->q_begin;
        grad_see(s, &sum, &next);
    }
    grad_add(s, &sum);
}

/* Compute the places of segments and their tiles. */
static void grad_cut(struct grad_args *s)
{
    const int64_t group = s->s.heads / s->s.kv_heads;
    for (int64_t i = 0; i < s->n_segs; i++) {
        const struct attn_seg *seg = &s->segs[i];
        const int64_t prefix = grad_blocks(seg->prefix_len), own = grad_blocks(seg->q_len), rows = seg->q_len * group;
        struct grad_place *place = &s->places[i];
        place->prefix = grad_same_prefix(s->segs, i) ? place[-1].prefix : s->laid;
        if (!grad_same_prefix(s->segs, i)) s->laid += prefix;
        place->own = s->laid;
        s->laid += own;
        s->columns = prefix + own > s->columns ? prefix + own : s->columns;
        for (int64_t row = 0; row < rows; row += GRAD_ROWS) {
            const int n = (int)(rows - row < GRAD_ROWS ? rows - row : GRAD_ROWS);
            s->tiles[s->n_tiles++] = (struct grad_tile){i, row, s->rows, n};
            s->rows += n;
        }
    }
    s->columns += LANES; /* rows a power of two apart would map to the same cache sets */
}

/* Select the tiles from `first` on that the window holds, and the keys that they see. */
static void grad_fill(struct grad_args *s, int64_t first)
{
    s->first = s->last = first;
    s->begin = s->t;
    s->end = 0;
    for (; s->last < s->n_tiles * s->heads_end; s->last++) {
        const struct grad_tile *tile = &s->tiles[s->last % s->n_tiles];
        const struct attn_seg *seg = &s->segs[tile->seg];
        if (grad_row_of(s, s->last) + tile->rows > s->window) break;
        const int64_t prefix = seg->prefix_len > 0 ? seg->prefix_begin : seg->q_begin,
                      prefix_end = seg->prefix_len > 0 ? prefix + seg->prefix_len : prefix;
        s->begin = prefix < s->begin ? prefix : s->begin;
        s->begin = seg->q_begin < s->begin ? seg->q_begin : s->begin;
        s->end = prefix_end > s->end ? prefix_end : s->end;
        s->end = seg->q_begin + seg->q_len > s->end ? seg->q_begin + seg->q_len : s->end;
    }
}

static float *grad_scratch(const struct kctx *c, struct grad_args *a)
{
    const int64_t dim = a->s.head_dim, threads = pool_threads(c->pool), tile = GRAD_ROWS * (a->columns + dim) * 2,
                  share = caches_of_this_machine().second / 2 / 4 / tile;
    a->window = (share > 2 ? share : 2) * GRAD_ROWS;
    if (a->window > a->rows) a->window = a->rows;
    a->kt = scratch(c, (2 + a->words) * a->s.kv_heads * a->laid * dim + 2 * threads * a->window * (a->columns + dim) +
                           threads * GRAD_ROWS * dim);
    if (!a->kt) return NULL;
    a->vt = a->kt + a->s.kv_heads * a->laid * dim;
    a->p = a->vt + a->s.kv_heads * a->laid * dim;
    a->ds = a->p + threads * a->window * a->columns;
    a->wq = a->ds + threads * a->window * a->columns;
    a->wdout = a->wq + threads * a->window * dim;
    a->dq = a->wdout + threads * a->window * dim;
    a->k = a->dq + threads * GRAD_ROWS * dim;
    return a->kt;
}

/* Process heads `head` to `heads_end` of a on a pool. */
static void grad_heads(struct grad_args *a, struct pool *pool)
{
    const struct kctx c = {.pool = pool};
    spans(&c, a->t, a->s.stride, 1, grad_zero_run, a);
    pool_run(pool, 2 * (a->heads_end - a->head) * a->n_segs, grad_lay_task, a);
    for (int64_t first = a->n_tiles * a->head; first < a->n_tiles * a->heads_end; first = a->last) {
        grad_fill(a, first);
        pool_run(pool, a->last - first, grad_tile_task, a);
        const int64_t heads = (a->last - 1) / a->n_tiles - first / a->n_tiles + 1,
                      blocks = (a->end - a->begin + GRAD_OWNED - 1) / GRAD_OWNED;
        pool_run(pool, heads * blocks, grad_key_task, a);
    }
}

/* Process one head on one thread, with the thread's part of the window. */
static void grad_head_task(void *arg, int64_t task, int thread)
{
    struct grad_args a = *(const struct grad_args *)arg;
    const int64_t dim = a.s.head_dim, row = thread * a.window;
    a.head = task;
    a.heads_end = task + 1;
    a.p += row * a.columns;
    a.ds += row * a.columns;
    a.wq += row * dim;
    a.wdout += row * dim;
    a.dq += thread * GRAD_ROWS * dim;
    grad_heads(&a, NULL);
}

static void cpu_attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    struct grad_args a = {.dqkv = o->dqkv,
                          .dout = o->dout,
                          .stats = o->stats,
                          .out = o->out,
                          .qkv = o->qkv,
                          .out_dtype = o->out_dtype,
                          .qkv_dtype = o->qkv_dtype,
                          .s = o->shape,
                          .segs = o->segs,
                          .n_segs = o->n_segs,
                          .t = o->t,
                          .words = kv_words(&o->shape)};
    const int64_t group = o->shape.heads / o->shape.kv_heads;
    int64_t tiles = 0;
    for (int64_t i = 0; i < o->n_segs; i++) tiles += (o->segs[i].q_len * group + GRAD_ROWS - 1) / GRAD_ROWS;
    a.places = scratch(c, o->n_segs * (int64_t)sizeof *a.places / 4);
    a.tiles = scratch(c, tiles * (int64_t)sizeof *a.tiles / 4);
    if (!a.places || !a.tiles) return;
    grad_cut(&a);
    if (!grad_scratch(c, &a)) return;
    const int64_t threads = pool_threads(c->pool);
    a.head = o->shape.kv_heads / threads * threads;
    a.heads_end = o->shape.kv_heads;
    pool_run(c->pool, a.head, grad_head_task, &a);
    a.window *= threads;
    if (a.head < a.heads_end) grad_heads(&a, c->pool);
    arena_reset(c->scratch);
}
