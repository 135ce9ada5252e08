/* Attention over the blocked cache, and its gradient. Query head h reads key/value head h J/H. Rows of qkv: H query, J key, J value heads.
 *
 *   s_j = scale (chain over d of q_d k_jd)      m = max_j s_j      p_j = exp(s_j - m)      l = sum_j p_j in 16 lanes (lane j % 16)
 *   over the keys j that the query sees: up to its own position and, with a window, above position - window
 *   out_d = (chain over j of p_j v_jd) / l
 *
 *   a_j = p_j / l      dv_j += a_j dout      ds_j = a_j (dout . v_j - dout . out)      dq = scale sum_j ds_j k_j      dk_j += scale ds_j q
 */
static void kv_write(const struct kctx *c, const struct op_kv_write *o)
{
    (void)c;
    const int64_t dim = o->shape.head_dim;
    for (int64_t i = 0; i < o->n; i++) {
        const int64_t block = o->slots[i] / KV_BLOCK, lane = o->slots[i] % KV_BLOCK;
        const float *key = o->qkv + o->rows[i] * o->shape.stride + o->shape.heads * dim, *value = key + o->shape.kv_heads * dim;
        for (int64_t j = 0; j < o->shape.kv_heads; j++)
            for (int64_t d = 0; d < dim; d++) {
                o->kv.k[((block * o->shape.kv_heads + j) * dim + d) * KV_BLOCK + lane] = key[j * dim + d];
                o->kv.v[((block * o->shape.kv_heads + j) * KV_BLOCK + lane) * dim + d] = value[j * dim + d];
            }
    }
}

static void kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    (void)c;
    const int64_t size = o->shape.kv_heads * o->shape.head_dim * KV_BLOCK;
    for (int64_t i = 0; i < o->n; i++) {
        memcpy(o->kv.k + o->to[i] * size, o->kv.k + o->from[i] * size, (size_t)size * sizeof *o->kv.k);
        memcpy(o->kv.v + o->to[i] * size, o->kv.v + o->from[i] * size, (size_t)size * sizeof *o->kv.v);
    }
}

static float attention_score(const float *q, const float *key_block, int64_t lane, struct attn_shape s)
{
    float acc = 0;
    for (int64_t d = 0; d < s.head_dim; d++) acc = fmaf(q[d], key_block[d * KV_BLOCK + lane], acc);
    return acc * s.scale;
}

/* The first key that the query at a position sees. */
static int64_t attention_first(struct attn_shape s, int64_t position)
{
    return s.window && position >= s.window ? position + 1 - s.window : 0;
}

/* One query and head against keys first .. n-1. */
struct attention_keys { /* what one head of a sequence's query sees: keys up to n - 1 */
    struct kv_layer kv;
    const int32_t *blocks;
    int64_t head, n;
};

static void attention_row(float *out, float stats[2], const float *q, const struct attention_keys *a, struct attn_shape s)
{
    const struct kv_layer kv = a->kv;
    const int32_t *blocks = a->blocks;
    const int64_t n = a->n;
    const int64_t dim = s.head_dim, kv_head = a->head * s.kv_heads / s.heads, first = attention_first(s, n - 1);
    float m = -INFINITY, lane[KV_BLOCK] = {0};
    for (int64_t j = first; j < n; j++) {
        const int64_t at = (blocks[j / KV_BLOCK] * s.kv_heads + kv_head) * dim * KV_BLOCK;
        const float score = attention_score(q, kv.k + at, j % KV_BLOCK, s);
        m = score > m ? score : m;
    }
    m += 0.0f; /* a maximum of 0 has one sign */
    memset(out, 0, (size_t)dim * sizeof *out);
    for (int64_t j = first; j < n; j++) {
        const int64_t at = (blocks[j / KV_BLOCK] * s.kv_heads + kv_head) * dim * KV_BLOCK;
        const float p = exact_exp(attention_score(q, kv.k + at, j % KV_BLOCK, s) - m);
        lane[j % KV_BLOCK] += p;
        for (int64_t d = 0; d < dim; d++) out[d] = fmaf(p, kv.v[at + j % KV_BLOCK * dim + d], out[d]);
    }
    stats[0] = m;
    stats[1] = lanes_sum(lane);
    for (int64_t d = 0; d < dim; d++) out[d] /= stats[1];
}

static void attention(const struct kctx *c, const struct op_attention *o)
{
    (void)c;
    for (int64_t i = 0; i < o->n_seqs; i++)
        for (int64_t q = 0; q < o->seqs[i].q_len; q++)
            for (int64_t h = 0; h < o->shape.heads; h++) {
                const int64_t row = o->seqs[i].q_begin + q;
                float own[2];
                attention_row((float *)o->out + (row * o->shape.heads + h) * o->shape.head_dim,
                              o->stats ? o->stats + (row * o->shape.heads + h) * 2 : own,
                              o->qkv + row * o->shape.stride + h * o->shape.head_dim,
                              &(struct attention_keys){o->kv, o->seqs[i].blocks, h, o->seqs[i].pos + q + 1}, o->shape);
            }
}

static float attention_dot(const float *a, const float *b, int64_t n)
{
    float acc = 0;
    for (int64_t i = 0; i < n; i++) acc = fmaf(a[i], b[i], acc);
    return acc;
}

static void attention_axpy(float *y, float a, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = fmaf(a, x[i], y[i]);
}

struct attention_point { /* one query head of one row */
    const float *q, *dout, *out, *stats;
    float *dq, delta; /* delta = dout . out */
};

static void attention_grad_key(float *dkey, float *dvalue, const float *key, const float *value, const struct attention_point *p,
                               struct attn_shape s)
{
    const float prob = exact_exp(attention_dot(p->q, key, s.head_dim) * s.scale - p->stats[0]) / p->stats[1];
    const float ds = prob * (attention_dot(p->dout, value, s.head_dim) - p->delta) * s.scale;
    attention_axpy(dvalue, prob, p->dout, s.head_dim);
    attention_axpy(p->dq, ds, key, s.head_dim);
    attention_axpy(dkey, ds, p->q, s.head_dim);
}

static void attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    (void)c;
    const int64_t dim = o->shape.head_dim;
    memset(o->dqkv, 0, (size_t)(o->t * o->shape.stride) * sizeof *o->dqkv);
    for (int64_t i = 0; i < o->n_segs; i++)
        for (int64_t q = 0; q < o->segs[i].q_len; q++)
            for (int64_t h = 0; h < o->shape.heads; h++) {
                const int64_t row = o->segs[i].q_begin + q, at = row * o->shape.heads + h;
                const int64_t k_at = (o->shape.heads + h * o->shape.kv_heads / o->shape.heads) * dim,
                              v_at = k_at + o->shape.kv_heads * dim;
                struct attention_point p = {o->qkv + row * o->shape.stride + h * dim,
                                            o->dout + at * dim,
                                            o->out + at * dim,
                                            o->stats + at * 2,
                                            o->dqkv + row * o->shape.stride + h * dim,
                                            0};
                p.delta = attention_dot(p.dout, p.out, dim);
                for (int64_t j = attention_first(o->shape, o->segs[i].prefix_len + q); j < o->segs[i].prefix_len + q + 1; j++) {
                    const int64_t key =
                        (j < o->segs[i].prefix_len ? o->segs[i].prefix_begin + j : o->segs[i].q_begin + j - o->segs[i].prefix_len) *
                        o->shape.stride;
                    attention_grad_key(o->dqkv + key + k_at, o->dqkv + key + v_at, o->qkv + key + k_at, o->qkv + key + v_at, &p,
                                       o->shape);
                }
            }
}
