/* Attention over the blocked cache, and its gradient. Query head h reads key/value head h J/H. A
 * row of qkv has H query, J key and J value heads. Keys j are those visible to the query: up to its
 * own position and, with a window, above position - window.
 *
 *   s_j = scale (chain over d of q_d k_jd)      m = max_j s_j      p_j = exp(s_j - m)
 *   l = sum_j p_j in 16 lanes (lane j % 16)     out_d = (chain over j of p_j v_jd) / l
 *
 * With a cache in bf16 (kv_words), q, k and v are first rounded to bf16. With DTYPE_BF16, out is
 * rounded to bf16.
 *
 *   a_j = p_j / l      dv_j += a_j dout      ds_j = a_j (dout . v_j - dout . out)
 *   dq = scale sum_j ds_j k_j                dk_j += scale ds_j q */
static float *kv_key(struct kv_layer kv, const struct attn_shape *s, int64_t block, int64_t j, int64_t lane, int64_t d)
{
    return kv.k + ((block * s->kv_heads + j) * s->head_dim + d) * KV_BLOCK + lane;
}

static float *kv_value(struct kv_layer kv, const struct attn_shape *s, int64_t block, int64_t j, int64_t lane, int64_t d)
{
    return kv.v + ((block * s->kv_heads + j) * KV_BLOCK + lane) * s->head_dim + d;
}

static void ref_kv_write(const struct kctx *c, const struct op_kv_write *o)
{
    (void)c;
    const struct attn_shape *s = &o->shape;
    uint16_t *k = (uint16_t *)(void *)o->kv.k, *v = (uint16_t *)(void *)o->kv.v;
    for (int64_t i = 0; i < o->n; i++) {
        const int64_t block = o->slots[i] / KV_BLOCK, lane = o->slots[i] % KV_BLOCK;
        const float *key = o->qkv + o->rows[i] * s->stride + s->heads * s->head_dim, *value = key + s->kv_heads * s->head_dim;
        for (int64_t j = 0; j < s->kv_heads; j++)
            for (int64_t d = 0; d < s->head_dim; d++, key++, value++)
                if (kv_words(s)) {
                    k[kv_word_k(s, block, j, lane, d)] = bf16_from_f32(*key);
                    v[kv_word_v(s, block, j, lane, d)] = bf16_from_f32(*value);
                } else {
                    *kv_key(o->kv, s, block, j, lane, d) = *key;
                    *kv_value(o->kv, s, block, j, lane, d) = *value;
                }
    }
}

static void ref_kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    (void)c;
    const int64_t size = cpu_kv_bytes(o->shape, 1);
    for (int64_t i = 0; i < o->n; i++) {
        memcpy((char *)o->kv.k + o->to[i] * size, (char *)o->kv.k + o->from[i] * size, (size_t)size);
        memcpy((char *)o->kv.v + o->to[i] * size, (char *)o->kv.v + o->from[i] * size, (size_t)size);
    }
}

/* First key that the query at a position sees. */
static int64_t attention_first(struct attn_shape s, int64_t position)
{
    return s.window && position >= s.window ? position + 1 - s.window : 0;
}

/* Attention of one query and head over keys first .. n-1. */
struct attention_keys { /* keys of one sequence visible to a query, for one head: up to n - 1 */
    struct kv_layer kv;
    const int32_t *blocks;
    int64_t head, n;
};

static float attention_key(const struct attention_keys *a, const struct attn_shape *s, int64_t j, int64_t d)
{
    const int64_t block = a->blocks[j / KV_BLOCK], lane = j % KV_BLOCK, head = a->head * s->kv_heads / s->heads;
    if (!kv_words(s)) return *kv_key(a->kv, s, block, head, lane, d);
    return bf16_to_f32(((const uint16_t *)(const void *)a->kv.k)[kv_word_k(s, block, head, lane, d)]);
}

static float attention_value(const struct attention_keys *a, const struct attn_shape *s, int64_t j, int64_t d)
{
    const int64_t block = a->blocks[j / KV_BLOCK], lane = j % KV_BLOCK, head = a->head * s->kv_heads / s->heads;
    if (!kv_words(s)) return *kv_value(a->kv, s, block, head, lane, d);
    return bf16_to_f32(((const uint16_t *)(const void *)a->kv.v)[kv_word_v(s, block, head, lane, d)]);
}

static float attention_score(const float *q, const struct attention_keys *a, const struct attn_shape *s, int64_t j)
{
    float acc = 0;
    for (int64_t d = 0; d < s->head_dim; d++) acc = fmaf(kv_words(s) ? bf16_round(q[d]) : q[d], attention_key(a, s, j, d), acc);
    return acc * s->scale;
}

static void attention_row(float *out, float stats[2], const float *q, const struct attention_keys *a, const struct attn_shape *s)
{
    const int64_t first = attention_first(*s, a->n - 1);
    float m = -INFINITY, lane[KV_BLOCK] = {0};
    for (int64_t j = first; j < a->n; j++) {
        const float score = attention_score(q, a, s, j);
        m = score > m ? score : m;
    }
    m += 0.0f; /* turns -0 into +0 */
    memset(out, 0, (size_t)s->head_dim * sizeof *out);
    for (int64_t j = first; j < a->n; j++) {
        const float p = exact_exp(attention_score(q, a, s, j) - m);
        lane[j % KV_BLOCK] += p;
        for (int64_t d = 0; d < s->head_dim; d++) out[d] = fmaf(p, attention_value(a, s, j, d), out[d]);
    }
    stats[0] = m;
    stats[1] = lanes_sum(lane);
    for (int64_t d = 0; d < s->head_dim; d++) out[d] /= stats[1];
}

static void ref_attention(const struct kctx *c, const struct op_attention *o)
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
                              &(struct attention_keys){o->kv, o->seqs[i].blocks, h, o->seqs[i].pos + q + 1}, &o->shape);
            }
}

/* Round to bf16 if the cache has bf16 words. */
static float attention_in(float x, int words)
{
    return words ? bf16_round(x) : x;
}

static float attention_dot(const float *a, int a_words, const float *b, int b_words, int64_t n)
{
    float acc = 0;
    for (int64_t i = 0; i < n; i++) acc = fmaf(attention_in(a[i], a_words), attention_in(b[i], b_words), acc);
    return acc;
}

static void attention_axpy(float *y, float a, const float *x, int64_t n, int words)
{
    for (int64_t i = 0; i < n; i++) y[i] = fmaf(a, attention_in(x[i], words), y[i]);
}

struct attention_point { /* one query head of one row */
    const float *q, *dout, *out, *stats;
    float *dq, delta; /* delta = dout . out */
};

static void attention_grad_key(float *dkey, float *dvalue, const float *key, const float *value, const struct attention_point *p,
                               struct attn_shape s)
{
    const int64_t n = s.head_dim;
    const int words = kv_words(&s);
    const float prob = exact_exp(attention_dot(p->q, words, key, words, n) * s.scale - p->stats[0]) / p->stats[1];
    const float ds = prob * (attention_dot(p->dout, 0, value, words, n) - p->delta) * s.scale;
    attention_axpy(dvalue, prob, p->dout, n, 0);
    attention_axpy(p->dq, ds, key, n, words);
    attention_axpy(dkey, ds, p->q, n, words);
}

static void ref_attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    (void)c;
    const int64_t dim = o->shape.head_dim;
    const float *qkv = o->qkv, *out = o->out;
    memset(o->dqkv, 0, (size_t)(o->t * o->shape.stride) * sizeof *o->dqkv);
    for (int64_t i = 0; i < o->n_segs; i++)
        for (int64_t q = 0; q < o->segs[i].q_len; q++)
            for (int64_t h = 0; h < o->shape.heads; h++) {
                const int64_t row = o->segs[i].q_begin + q, at = row * o->shape.heads + h;
                const int64_t k_at = (o->shape.heads + h * o->shape.kv_heads / o->shape.heads) * dim,
                              v_at = k_at + o->shape.kv_heads * dim;
                struct attention_point p = {qkv + row * o->shape.stride + h * dim,
                                            o->dout + at * dim,
                                            out + at * dim,
                                            o->stats + at * 2,
                                            o->dqkv + row * o->shape.stride + h * dim,
                                            0};
                p.delta = attention_dot(p.dout, 0, p.out, o->shape.dtype == DTYPE_BF16, dim);
                for (int64_t j = attention_first(o->shape, o->segs[i].prefix_len + q); j < o->segs[i].prefix_len + q + 1; j++) {
                    const int64_t key =
                        (j < o->segs[i].prefix_len ? o->segs[i].prefix_begin + j : o->segs[i].q_begin + j - o->segs[i].prefix_len) *
                        o->shape.stride;
                    attention_grad_key(o->dqkv + key + k_at, o->dqkv + key + v_at, qkv + key + k_at, qkv + key + v_at, &p,
                                       o->shape);
                }
            }
}
