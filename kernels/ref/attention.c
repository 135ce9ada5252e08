/* Attention over the blocked cache, and its gradient. Query head h reads key/value head h J/H. Rows of qkv: H query, J key, J value heads.
 *
 *   s_j = scale (chain over d of q_d k_jd)      m = max_j s_j      p_j = exp(s_j - m)      l = sum_j p_j in 16 lanes (lane j % 16)
 *   out_d = (chain over j of p_j v_jd) / l
 *
 *   a_j = p_j / l      dv_j += a_j dout      ds_j = a_j (dout . v_j - dout . out)      dq = scale sum_j ds_j k_j      dk_j += scale ds_j q
 */
static void kv_write(const struct kctx *c, struct kv_layer kv, const float *qkv, struct attn_shape s, const int64_t *rows,
                     const int64_t *slots, int64_t n)
{
    (void)c;
    const int64_t dim = s.head_dim;
    for (int64_t i = 0; i < n; i++) {
        const int64_t block = slots[i] / KV_BLOCK, lane = slots[i] % KV_BLOCK;
        const float *key = qkv + rows[i] * s.stride + s.heads * dim, *value = key + s.kv_heads * dim;
        for (int64_t j = 0; j < s.kv_heads; j++)
            for (int64_t d = 0; d < dim; d++) {
                kv.k[((block * s.kv_heads + j) * dim + d) * KV_BLOCK + lane] = key[j * dim + d];
                kv.v[((block * s.kv_heads + j) * KV_BLOCK + lane) * dim + d] = value[j * dim + d];
            }
    }
}

static void kv_copy(const struct kctx *c, struct kv_layer kv, struct attn_shape s, const int32_t *to_block,
                    const int32_t *from_block, int64_t n)
{
    (void)c;
    const int64_t size = s.kv_heads * s.head_dim * KV_BLOCK;
    for (int64_t i = 0; i < n; i++) {
        memcpy(kv.k + to_block[i] * size, kv.k + from_block[i] * size, (size_t)size * sizeof *kv.k);
        memcpy(kv.v + to_block[i] * size, kv.v + from_block[i] * size, (size_t)size * sizeof *kv.v);
    }
}

static float attention_score(const float *q, const float *key_block, int64_t lane, struct attn_shape s)
{
    float acc = 0;
    for (int64_t d = 0; d < s.head_dim; d++) acc = fmaf(q[d], key_block[d * KV_BLOCK + lane], acc);
    return acc * s.scale;
}

/* One query and head against keys 0 .. n-1. */
static void attention_row(float *out, float stats[2], const float *q, struct kv_layer kv, const int32_t *blocks, int64_t head,
                          struct attn_shape s, int64_t n)
{
    const int64_t dim = s.head_dim, kv_head = head * s.kv_heads / s.heads;
    float m = -INFINITY, lane[KV_BLOCK] = {0};
    for (int64_t j = 0; j < n; j++) {
        const int64_t at = (blocks[j / KV_BLOCK] * s.kv_heads + kv_head) * dim * KV_BLOCK;
        const float score = attention_score(q, kv.k + at, j % KV_BLOCK, s);
        m = score > m ? score : m;
    }
    m += 0.0f; /* a maximum of 0 has one sign */
    memset(out, 0, (size_t)dim * sizeof *out);
    for (int64_t j = 0; j < n; j++) {
        const int64_t at = (blocks[j / KV_BLOCK] * s.kv_heads + kv_head) * dim * KV_BLOCK;
        const float p = exact_exp(attention_score(q, kv.k + at, j % KV_BLOCK, s) - m);
        lane[j % KV_BLOCK] += p;
        for (int64_t d = 0; d < dim; d++) out[d] = fmaf(p, kv.v[at + j % KV_BLOCK * dim + d], out[d]);
    }
    stats[0] = m;
    stats[1] = lanes_sum(lane);
    for (int64_t d = 0; d < dim; d++) out[d] /= stats[1];
}

static void attention(const struct kctx *c, float *out, float *stats, const float *qkv, struct kv_layer kv, struct attn_shape s,
                      const struct attn_seq *seqs, int64_t n_seqs)
{
    (void)c;
    for (int64_t i = 0; i < n_seqs; i++)
        for (int64_t q = 0; q < seqs[i].q_len; q++)
            for (int64_t h = 0; h < s.heads; h++) {
                const int64_t row = seqs[i].q_begin + q;
                float own[2];
                attention_row(out + (row * s.heads + h) * s.head_dim, stats ? stats + (row * s.heads + h) * 2 : own,
                              qkv + row * s.stride + h * s.head_dim, kv, seqs[i].blocks, h, s, seqs[i].pos + q + 1);
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
    float *dq;
};

static void attention_grad_key(float *dkey, float *dvalue, const float *key, const float *value, const struct attention_point *p,
                               float delta, struct attn_shape s)
{
    const float prob = exact_exp(attention_dot(p->q, key, s.head_dim) * s.scale - p->stats[0]) / p->stats[1];
    const float ds = prob * (attention_dot(p->dout, value, s.head_dim) - delta) * s.scale;
    attention_axpy(dvalue, prob, p->dout, s.head_dim);
    attention_axpy(p->dq, ds, key, s.head_dim);
    attention_axpy(dkey, ds, p->q, s.head_dim);
}

static void attention_grad(const struct kctx *c, float *dqkv, const float *dout, const float *out, const float *stats,
                           const float *qkv, struct attn_shape s, const struct attn_seg *segs, int64_t n_segs, int64_t t)
{
    (void)c;
    const int64_t dim = s.head_dim;
    memset(dqkv, 0, (size_t)(t * s.stride) * sizeof *dqkv);
    for (int64_t i = 0; i < n_segs; i++)
        for (int64_t q = 0; q < segs[i].q_len; q++)
            for (int64_t h = 0; h < s.heads; h++) {
                const int64_t row = segs[i].q_begin + q, at = row * s.heads + h;
                const int64_t k_at = (s.heads + h * s.kv_heads / s.heads) * dim, v_at = k_at + s.kv_heads * dim;
                const struct attention_point p = {qkv + row * s.stride + h * dim, dout + at * dim, out + at * dim, stats + at * 2,
                                                  dqkv + row * s.stride + h * dim};
                const float delta = attention_dot(p.dout, p.out, dim);
                for (int64_t j = 0; j < segs[i].prefix_len + q + 1; j++) {
                    const int64_t key =
                        (j < segs[i].prefix_len ? segs[i].prefix_begin + j : segs[i].q_begin + j - segs[i].prefix_len) * s.stride;
                    attention_grad_key(dqkv + key + k_at, dqkv + key + v_at, qkv + key + k_at, qkv + key + v_at, &p, delta, s);
                }
            }
}
