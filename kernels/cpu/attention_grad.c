/* Gradient of attention (definition: ref/attention.c), with the memory of FlashAttention (Dao et al. 2022): weights are made again from m and l.
 *
 * A task is a key/value head of a group of segments that share keys; it walks segments, tiles of GRAD_ROWS (query, head) rows and blocks of
 * GRAD_KEYS keys in order, so sums into keys have one order. With the transposed keys K^T and values V^T of the group laid out once:
 *
 *   S = Q K^T     P = exp(scale S - m)/l     dP = dO V^T     dS = scale P (dP - delta),  delta = dO . O
 *   dQ += dS K    dK += dS^T Q               dV += P^T dO
 */
enum { GRAD_ROWS = 4 * MR < 48 ? 48 : 4 * MR, GRAD_KEYS = 64 };

struct grad_group {
    int64_t first, last; /* segments */
    int64_t begin, end;  /* rows that they touch */
};

struct grad_args {
    float *dqkv;
    const float *dout, *out, *stats, *qkv;
    struct attn_shape s;
    const struct attn_seg *segs;
    const struct grad_group *groups;
    float *scratch;
    int64_t scratch_size, rows; /* a thread: K^T and V^T of `rows` rows, then the tile */
};

struct grad_tile {
    int rows;
    int64_t keys_at, values_at; /* columns of the key and value head in qkv */
    int64_t token[GRAD_ROWS], head[GRAD_ROWS];
    int64_t first[GRAD_ROWS]; /* the first row of the batch that is seen, of the prefix and of the segment's own */
    int64_t first_own[GRAD_ROWS];
    float m[GRAD_ROWS], inverse[GRAD_ROWS], delta[GRAD_ROWS];
    float *kt, *vt;       /* [rows/16, D, 16]: the prefix, then from the next whole block on the segment */
    float *q, *dout, *dq; /* [GRAD_ROWS, D] */
    float *p, *ds;        /* [GRAD_ROWS, GRAD_KEYS] */
};

static int64_t grad_blocks(int64_t rows) /* rounded up to whole blocks */
{
    return (rows + LANES - 1) / LANES * LANES;
}

static void grad_transpose(float *to, const float *from, int64_t stride, int64_t rows, int64_t dim)
{
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t d = 0; d < dim; d += LANES) {
            vf x[LANES];
            gemm_columns(x, from + i * stride + d, stride, rows - i, dim - d);
            for (int j = 0; j < LANES && d + j < dim; j++) v_store(to + i * dim + (d + j) * LANES, x[j]);
        }
}

static void grad_tile_begin(struct grad_tile *t, const struct grad_args *s, const struct attn_seg *seg, int64_t kv_head,
                            int64_t row, int rows)
{
    const int64_t dim = s->s.head_dim, group = s->s.heads / s->s.kv_heads;
    t->rows = rows;
    for (int r = 0; r < rows; r++) {
        const int64_t token = seg->q_begin + (row + r) / group, head = kv_head * group + (row + r) % group,
                      at = token * s->s.heads + head;
        const float *o = s->out + at * dim;
        t->token[r] = token;
        t->head[r] = head;
        const int64_t hidden =
            s->s.window ? seg->prefix_len + token - seg->q_begin + 1 - s->s.window : 0; /* keys before the window */
        t->first[r] = seg->prefix_begin + hidden;
        t->first_own[r] = seg->q_begin + hidden - seg->prefix_len;
        t->m[r] = s->stats[at * 2];
        t->inverse[r] = 1.0f / s->stats[at * 2 + 1];
        memcpy(t->q + r * dim, s->qkv + token * s->s.stride + head * dim, (size_t)dim * sizeof(float));
        memcpy(t->dout + r * dim, s->dout + at * dim, (size_t)dim * sizeof(float));
        vf sum = v_zero();
        for (int64_t d = 0; d < dim; d += LANES)
            sum = v_fma(gemm_load(o + d, dim - d), gemm_load(t->dout + r * dim + d, dim - d), sum);
        t->delta[r] = v_sum(sum);
    }
    memset(t->dq, 0, (size_t)(rows * dim) * sizeof(float));
}

/* P and dS of the tile against rows begin .. begin + keys-1 of the batch; own: of the segment itself, seen up to the query's own row.
 * S stands in p and dP in ds before. */
static void grad_weights(const struct grad_tile *t, int own, int64_t begin, int64_t keys, float scale)
{
    const vf sv = v_set(scale);
    for (int r = 0; r < t->rows; r++) {
        const int64_t seen = t->token[r] + 1 - begin, n = own && seen < keys ? seen : keys;
        const int64_t first = (own ? t->first_own[r] : t->first[r]) - begin;
        const vf m = v_set(t->m[r]), inverse = v_set(t->inverse[r]), delta = v_set(t->delta[r]);
        for (int64_t j = 0; j < keys; j += LANES) {
            float *p = t->p + r * GRAD_KEYS + j, *ds = t->ds + r * GRAD_KEYS + j;
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

/* keys <= GRAD_KEYS rows of the batch from `begin`, which stand in kt and vt from block at / 16 on. */
static void grad_block(const struct grad_tile *t, const struct grad_args *s, int own, int64_t begin, int64_t keys, int64_t at)
{
    const int64_t dim = s->s.head_dim, stride = s->s.stride;
    struct small p = {.m = t->rows,
                      .n = grad_blocks(keys),
                      .k = dim,
                      .a_row = dim,
                      .a_col = 1,
                      .b_row = LANES,
                      .b_next = LANES * dim,
                      .c_row = GRAD_KEYS};
    p.a = t->q;
    p.b = t->kt + at * dim;
    p.c = t->p;
    small_product(&p);
    p.a = t->dout;
    p.b = t->vt + at * dim;
    p.c = t->ds;
    small_product(&p);
    grad_weights(t, own, begin, keys, s->s.scale);
    const float *key = s->qkv + begin * stride + t->keys_at;
    float *dkey = s->dqkv + begin * stride + t->keys_at, *dvalue = s->dqkv + begin * stride + t->values_at;
    small_product(&(struct small){t->rows, dim, keys, t->ds, GRAD_KEYS, 1, key, stride, t->dq, dim, 1, 0});
    small_product(&(struct small){keys, dim, t->rows, t->ds, 1, GRAD_KEYS, t->q, dim, dkey, stride, 1, 0});
    small_product(&(struct small){keys, dim, t->rows, t->p, 1, GRAD_KEYS, t->dout, dim, dvalue, stride, 1, 0});
}

static void grad_keys(const struct grad_tile *t, const struct grad_args *s, int own, int64_t begin, int64_t n, int64_t at)
{
    for (int64_t i = 0; i < n; i += GRAD_KEYS) grad_block(t, s, own, begin + i, n - i < GRAD_KEYS ? n - i : GRAD_KEYS, at + i);
}

static void grad_segment(struct grad_tile *t, const struct grad_args *s, const struct attn_seg *seg, int64_t kv_head)
{
    const int64_t dim = s->s.head_dim, group = s->s.heads / s->s.kv_heads, rows = seg->q_len * group;
    for (int64_t row = 0; row < rows; row += GRAD_ROWS) {
        grad_tile_begin(t, s, seg, kv_head, row, (int)(rows - row < GRAD_ROWS ? rows - row : GRAD_ROWS));
        grad_keys(t, s, 0, seg->prefix_begin, seg->prefix_len, 0);
        grad_keys(t, s, 1, seg->q_begin, t->token[t->rows - 1] + 1 - seg->q_begin, grad_blocks(seg->prefix_len));
        for (int r = 0; r < t->rows; r++)
            memcpy(s->dqkv + t->token[r] * s->s.stride + t->head[r] * dim, t->dq + r * dim, (size_t)dim * sizeof(float));
    }
}

static void grad_task(void *arg, int64_t task, int thread)
{
    const struct grad_args *s = arg;
    const struct grad_group *g = &s->groups[task / s->s.kv_heads];
    const int64_t kv_head = task % s->s.kv_heads, dim = s->s.head_dim, stride = s->s.stride;
    struct grad_tile t = {.keys_at = (s->s.heads + kv_head) * dim, .values_at = (s->s.heads + s->s.kv_heads + kv_head) * dim};
    t.kt = s->scratch + thread * s->scratch_size;
    t.vt = t.kt + s->rows * dim;
    t.q = t.vt + s->rows * dim;
    t.dout = t.q + GRAD_ROWS * dim;
    t.dq = t.dout + GRAD_ROWS * dim;
    t.p = t.dq + GRAD_ROWS * dim;
    t.ds = t.p + GRAD_ROWS * GRAD_KEYS;
    const struct attn_seg *before = NULL;
    for (int64_t i = g->first; i < g->last; i++) {
        const struct attn_seg *seg = &s->segs[i];
        const int64_t own = grad_blocks(seg->prefix_len) * dim;
        if (!before || before->prefix_begin != seg->prefix_begin || before->prefix_len != seg->prefix_len) {
            grad_transpose(t.kt, s->qkv + seg->prefix_begin * stride + t.keys_at, stride, seg->prefix_len, dim);
            grad_transpose(t.vt, s->qkv + seg->prefix_begin * stride + t.values_at, stride, seg->prefix_len, dim);
        }
        grad_transpose(t.kt + own, s->qkv + seg->q_begin * stride + t.keys_at, stride, seg->q_len, dim);
        grad_transpose(t.vt + own, s->qkv + seg->q_begin * stride + t.values_at, stride, seg->q_len, dim);
        grad_segment(&t, s, seg, kv_head);
        before = seg;
    }
}

static void grad_zero_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct grad_args *s = arg;
    memset(s->dqkv + begin * s->s.stride, 0, (size_t)((end - begin) * s->s.stride) * sizeof(float));
}

/* Neighbouring segments go together when one's prefix lies in rows that those before it touch. */
static int64_t grad_groups(struct grad_group *out, const struct attn_seg *segs, int64_t n)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < n; i++) {
        const struct attn_seg *s = &segs[i];
        if (s->q_len <= 0) continue;
        int64_t begin = s->q_begin, end = s->q_begin + s->q_len;
        if (s->prefix_len > 0) {
            begin = s->prefix_begin < begin ? s->prefix_begin : begin;
            end = s->prefix_begin + s->prefix_len > end ? s->prefix_begin + s->prefix_len : end;
        }
        struct grad_group *g = groups ? &out[groups - 1] : NULL;
        if (g && begin < g->end && g->begin < end) {
            g->last = i + 1;
            g->begin = begin < g->begin ? begin : g->begin;
            g->end = end > g->end ? end : g->end;
        } else {
            out[groups++] = (struct grad_group){i, i + 1, begin, end};
        }
    }
    return groups;
}

static void attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    struct grad_args a = {
        .dqkv = o->dqkv, .dout = o->dout, .out = o->out, .stats = o->stats, .qkv = o->qkv, .s = o->shape, .segs = o->segs};
    struct grad_group *groups = scratch(c, o->n_segs * (int64_t)sizeof *groups / 4);
    if (!groups) return;
    const int64_t n = grad_groups(groups, o->segs, o->n_segs);
    a.groups = groups;
    for (int64_t i = 0; i < o->n_segs; i++) {
        const int64_t rows = grad_blocks(o->segs[i].prefix_len) + grad_blocks(o->segs[i].q_len);
        a.rows = rows > a.rows ? rows : a.rows;
    }
    a.scratch_size = (2 * a.rows + 3 * GRAD_ROWS) * o->shape.head_dim + 2 * GRAD_ROWS * GRAD_KEYS;
    a.scratch_size = (a.scratch_size + LANES - 1) / LANES * LANES;
    a.scratch = scratch(c, a.scratch_size * pool_threads(c->pool));
    if (!a.scratch) return;
    spans(c, o->t, o->shape.stride, 1, grad_zero_run, &a);
    pool_run(c->pool, n * o->shape.kv_heads, grad_task, &a);
    arena_reset(c->scratch);
}
