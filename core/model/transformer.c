#include "model/model.h"

#include "model/layer.h"
#include "model/layout.h"
#include "sizes.h"

#include <math.h>
#include <stdio.h>

int64_t kv_cache_bytes(const struct model *m, int64_t n_blocks)
{
    const struct attn_shape s = model_attn_shape(m);
    return m->k->kv_bytes ? m->k->kv_bytes(s, n_blocks) : n_blocks * s.kv_heads * s.head_dim * KV_BLOCK * (int64_t)sizeof(float);
}

tare_status kv_cache_new(const struct model *m, int64_t n_layers, int64_t n_blocks, struct kv_cache *out, struct err *e)
{
    const int64_t bytes = kv_cache_bytes(m, n_blocks > 0 ? n_blocks : 1);
    *out = (struct kv_cache){.n_layers = n_layers, .n_blocks = n_blocks};
    TRY(mem_new(n_layers * (int64_t)sizeof *out->layers, (void **)&out->layers, e));
    for (int64_t l = 0; l < n_layers; l++) {
        out->layers[l].k = m->k->backend->alloc(&m->ctx, bytes);
        out->layers[l].v = out->layers[l].k ? m->k->backend->alloc(&m->ctx, bytes) : NULL;
        if (out->layers[l].v) continue;
        char what[120];
        snprintf(what, sizeof what, "a key/value cache of %lld tokens in %lld layers (rollout.kv_tokens)",
                 (long long)(n_blocks * KV_BLOCK), (long long)n_layers);
        kv_cache_free(m, out);
        return kernels_no_memory(m->k, &m->ctx, what, 2 * bytes * n_layers, e);
    }
    return TARE_OK;
}

void kv_cache_free(const struct model *m, struct kv_cache *c)
{
    if (c->layers)
        for (int64_t l = 0; l < c->n_layers; l++) {
            if (c->layers[l].k) m->k->backend->release(&m->ctx, c->layers[l].k);
            if (c->layers[l].v) m->k->backend->release(&m->ctx, c->layers[l].v);
        }
    mem_free(c->layers);
    *c = (struct kv_cache){0};
}

struct attn_shape model_attn_shape(const struct model *m)
{
    const struct model_shape *s = &m->shape;
    return (struct attn_shape){.heads = s->heads,
                               .kv_heads = s->kv_heads,
                               .head_dim = s->head_dim,
                               .stride = (s->heads + 2 * s->kv_heads) * s->head_dim,
                               .scale = (float)(s->attention_scale > 0 ? s->attention_scale : 1 / sqrt((double)s->head_dim)),
                               .dtype = m->dtype};
}

enum dtype layer_rows_dtype(const struct model *m)
{
    return m->k->bf16_rows && m->dtype == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

struct product_rows layer_kept_qkv(const struct layer_acts *a)
{
    return a->kept_qkv ? (struct product_rows){a->kept_qkv, DTYPE_BF16} : (struct product_rows){a->qkv, DTYPE_F32};
}

struct product_rows layer_kept_gate_up(const struct layer_acts *a)
{
    return a->kept_gate_up ? (struct product_rows){a->kept_gate_up, DTYPE_BF16} : (struct product_rows){a->gate_up, DTYPE_F32};
}

/* Allocates n elements unless *out is set. */
static tare_status rows_new(struct arena *a, void **out, int64_t n, enum dtype dtype, struct err *e)
{
    return *out ? TARE_OK : arena_push_tensor_raw(a, n * dtype_bytes(dtype), out, e);
}

tare_status layer_acts_new(const struct model *m, int64_t t, bool training, struct arena *a, struct layer_acts *out, struct err *e)
{
    const struct model_shape *s = &m->shape;
    const int64_t C = s->hidden, F = s->intermediate, stride = model_attn_shape(m).stride;
    out->dtype = layer_rows_dtype(m);
    TRY(rows_new(a, &out->norm1, t * C, out->dtype, e));
    if (!out->qkv) TRY(tensor_new_raw(a, &out->qkv, t * stride, e));
    TRY(rows_new(a, &out->att, t * s->heads * s->head_dim, out->dtype, e));
    TRY(tensor_new_raw(a, &out->mid, t * C, e));
    if (!out->gate_up) TRY(tensor_new_raw(a, &out->gate_up, t * 2 * F, e));
    TRY(rows_new(a, &out->act, t * F, out->dtype, e));
    if (s->norms != NORMS_BEFORE) TRY(tensor_new_raw(a, &out->after1, t * C, e));
    if (!training) {
        out->norm2 = out->norm1;
        out->after2 = out->after1;
        return TARE_OK;
    }
    TRY(rows_new(a, &out->norm2, t * C, out->dtype, e));
    TRY(tensor_new_raw(a, &out->rms1, t, e));
    TRY(tensor_new_raw(a, &out->rms2, t, e));
    TRY(tensor_new_raw(a, &out->stats, t * s->heads * 2, e));
    if (s->norms != NORMS_BEFORE) {
        TRY(tensor_new_raw(a, &out->after2, t * C, e));
        TRY(tensor_new_raw(a, &out->rms_after1, t, e));
        TRY(tensor_new_raw(a, &out->rms_after2, t, e));
    }
    if (s->qk_norm == QK_NORM_NONE) return TARE_OK;
    TRY(tensor_new_raw(a, &out->raw, t * stride, e));
    TRY(tensor_new_raw(a, &out->rms_q, t * s->heads, e));
    return tensor_new_raw(a, &out->rms_k, t * s->kv_heads, e);
}

int64_t layer_window(const struct model_shape *s, int64_t l)
{
    return layer_in(&s->sliding, l) && s->window < s->max_position ? s->window : 0;
}

const float *layer_rope(const struct model *m, int64_t l)
{
    if (layer_in(&m->shape.no_rope, l)) return NULL;
    return m->rope_local && layer_in(&m->shape.sliding, l) ? m->rope_local : m->rope;
}

static struct op_rope rope_operation(const struct model *m, int64_t l, float *qkv, const struct forward_batch *b)
{
    const struct model_shape *s = &m->shape;
    return (struct op_rope){.x = qkv,
                            .ld = model_attn_shape(m).stride,
                            .table = layer_rope(m, l),
                            .pos = b->pos,
                            .t = b->t,
                            .n_heads = s->heads + s->kv_heads,
                            .head_dim = s->head_dim,
                            .rotary_dim = s->rotary_dim};
}

/* qkv[T, (H+2J)D]: rotates the heads of q and k in place; v is unchanged. */
void layer_rotate(const struct model *m, int64_t l, float *qkv, const struct forward_batch *b, int inverse)
{
    struct op_rope o = rope_operation(m, l, qkv, b);
    o.inverse = inverse;
    if (o.table) m->k->rope(&m->ctx, &o);
}

/* Rotates q and k of qkv[T, (H+2J)D] and writes keys and values to the cache. */
static void rotate_and_write(const struct model *m, int64_t l, const struct op_kv_write *write, float *qkv,
                             const struct forward_batch *b)
{
    const struct op_rope rope = rope_operation(m, l, qkv, b);
    if (m->k->rope_kv_write && b->row_by_row && rope.table) {
        m->k->rope_kv_write(&m->ctx, &rope, write);
        return;
    }
    layer_rotate(m, l, qkv, b, 0);
    m->k->kv_write(&m->ctx, write);
}

/* a->qkv[t, (H+2J)D]: norms q and k in place, over each head or over all heads of a row. a->raw
 * keeps the values before, for the backward pass. */
static void norm_q_and_k(const struct model *m, const struct layer_vectors *v, const struct layer_acts *a, int64_t t)
{
    const struct model_shape *s = &m->shape;
    const int64_t stride = model_attn_shape(m).stride, q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const bool whole = s->qk_norm == QK_NORM_WHOLE;
    float *k = a->qkv + q;
    if (a->raw) {
        m->k->backend->zero(&m->ctx, a->raw, t * stride * 4);
        KERNEL(m->k, &m->ctx, add, .y = a->raw, .x = a->qkv, .n = t * stride);
    }
    KERNEL(m->k, &m->ctx, rmsnorm, .y = a->qkv, .ld = stride, .rms = a->rms_q, .x = a->qkv, .w = v->q_norm, .t = t,
           .heads = whole ? 1 : s->heads, .width = whole ? q : s->head_dim, .eps = (float)s->rms_eps);
    KERNEL(m->k, &m->ctx, rmsnorm, .y = k, .ld = stride, .rms = a->rms_k, .x = k, .w = v->k_norm, .t = t,
           .heads = whole ? 1 : s->kv_heads, .width = whole ? kv : s->head_dim, .eps = (float)s->rms_eps);
}

/* x[t, C] *= scale */
void layer_scale_rows(const struct model *m, float *x, int64_t t, double scale)
{
    const int64_t C = m->shape.hidden;
    if (scale > 0) KERNEL(m->k, &m->ctx, add_columns, .y = x, .ldy = C, .x = x, .ldx = C, .t = t, .n = C, .scale = (float)scale);
}

/* Output of a norm over rows of C. */
struct norm_out {
    void *y;
    enum dtype dtype;
    float *rms; /* or NULL */
};

/* Describes n.y[t, C] = rms(x[t, C]) w. */
static struct op_rmsnorm norm_operation(const struct model *m, const float *x, const float *w, struct norm_out n, int64_t t)
{
    const int64_t C = m->shape.hidden;
    return (struct op_rmsnorm){.y = n.y,
                               .y_dtype = n.dtype,
                               .ld = C,
                               .rms = n.rms,
                               .x = x,
                               .w = w,
                               .t = t,
                               .heads = 1,
                               .width = C,
                               .eps = (float)m->shape.rms_eps};
}

/* n.y[t, C] = rms(x[t, C]) w */
static void norm_rows(const struct model *m, const float *x, const float *w, struct norm_out n, int64_t t)
{
    const struct op_rmsnorm o = norm_operation(m, x, w, n, t);
    m->k->rmsnorm(&m->ctx, &o);
}

/* n.y[t, C] = rms(x) w, the input of attention or the MLP; returns x itself if the family has no
 * norm there (w NULL). */
static struct product_rows branch_input_forward(const struct model *m, const float *x, const float *w, struct norm_out n, int64_t t)
{
    if (!w) return (struct product_rows){x, DTYPE_F32};
    norm_rows(m, x, w, n, t);
    return (struct product_rows){n.y, n.dtype};
}

/* The norm of the residual stream that follows a branch; w NULL: none. */
struct next_norm {
    const float *w;
    struct norm_out to;
};

/* The end of attention or of the MLP:  out[T, C] = x + r N(in W^T). after and rms keep in W^T for
 * its norm N. */
struct branch {
    const struct model_product *product; /* W */
    struct product_rows in;
    const float *x, *norm;
    float *out, *after, *rms;
    struct next_norm next;
};

/* y[t, n] = in[t, k] W^T without adapters. */
static struct op_matmul product_operation(const struct model *m, const struct model_product *p, float *y, struct product_rows in,
                                          int64_t t)
{
    return (struct op_matmul){.y = y,
                              .x = in.at,
                              .x_dtype = in.dtype,
                              .packed = p->packed,
                              .t = t,
                              .n = p->n,
                              .k = p->k,
                              .dtype = m->dtype,
                              .int8 = p->int8};
}

/* Computes product, residual and the following norm in one operation, if the backend has it and
 * nothing comes between. */
static bool branch_output_fused(const struct model *m, const struct branch *b, int64_t t)
{
    const bool between = b->norm || m->shape.residual_scale > 0 || lora_group_of(m, b->product);
    if (!m->k->matmul_rmsnorm || !b->next.w || between) return false;
    struct op_matmul product = product_operation(m, b->product, b->out, b->in, t);
    product.residual = b->x;
    const struct op_rmsnorm norm = norm_operation(m, b->out, b->next.w, b->next.to, t);
    m->k->matmul_rmsnorm(&m->ctx, &product, &norm);
    return true;
}

/* b->out[t, C] = x + r N(in W^T). Returns true if the following norm (b->next) was computed too. */
static bool branch_output_forward(const struct model *m, const struct branch *b, int64_t t, const struct lora_rows *lora)
{
    if (branch_output_fused(m, b, t)) return true;
    const struct model_shape *s = &m->shape;
    const int64_t C = s->hidden;
    const bool plain = !b->norm && !(s->residual_scale > 0);
    float *y = b->norm ? b->after : b->out;
    struct op_matmul product = product_operation(m, b->product, y, b->in, t);
    product.residual = plain ? b->x : NULL;
    lora_product(m, b->product, product, lora);
    if (plain) return false;
    if (b->norm) norm_rows(m, y, b->norm, (struct norm_out){.y = b->out, .rms = b->rms}, t);
    layer_scale_rows(m, b->out, t, s->residual_scale);
    KERNEL(m->k, &m->ctx, add, .y = b->out, .x = b->x, .n = t * C);
    return false;
}

/* mid[T, C] = x + r N(attention(qkv) Wo^T). Returns the input rows of the MLP, [T, C]. */
static struct product_rows attention_forward(const struct model *m, int64_t l, struct layer_rows r, const struct layer_acts *a,
                                             struct kv_layer kv, const struct forward_batch *b)
{
    const float *x = r.x;
    const struct model_shape *s = &m->shape;
    const struct kctx *c = &m->ctx;
    const struct layer_vectors *v = &m->vectors[l];
    struct attn_shape as = model_attn_shape(m);
    const int64_t T = b->t;
    as.window = layer_window(s, l);
    const struct norm_out first = {a->norm1, a->dtype, a->rms1}, second = {a->norm2, a->dtype, a->rms2};
    const struct product_rows in =
        r.normed ? (struct product_rows){a->norm1, a->dtype} : branch_input_forward(m, x, v->norm1, first, T);
    const struct model_product *to_qkv = model_layer_product(m, l, PRODUCT_QKV);
    struct op_matmul product = product_operation(m, to_qkv, a->qkv, in, T);
    product.bias = v->qkv_bias;
    lora_product(m, to_qkv, product, &a->lora);
    if (s->qk_norm != QK_NORM_NONE) norm_q_and_k(m, v, a, T);
    rotate_and_write(m, l, &(struct op_kv_write){kv, a->qkv, as, b->write_row, b->write_slot, b->n_writes}, a->qkv, b);
    if (a->kept_qkv) KERNEL(m->k, c, to_bf16, .y = a->kept_qkv, .x = a->qkv, .n = T * as.stride);
    KERNEL(m->k, c, attention, .out = a->att, .out_dtype = a->dtype, .stats = a->stats, .qkv = a->qkv, .kv = kv, .shape = as,
           .seqs = b->seqs, .n_seqs = b->n_seqs);
    const struct branch out = {.product = model_layer_product(m, l, PRODUCT_OUT),
                               .in = {a->att, a->dtype},
                               .x = x,
                               .norm = v->after1,
                               .out = a->mid,
                               .after = a->after1,
                               .rms = a->rms_after1,
                               .next = {v->norm2, second}};
    return branch_output_forward(m, &out, T, &a->lora) ? (struct product_rows){a->norm2, a->dtype}
                                                       : branch_input_forward(m, a->mid, v->norm2, second, T);
}

/* act[t, F] = silu(gate) * up of the rows gate | up in `in`. */
static struct op_swiglu activation_operation(const struct model *m, struct product_rows in, const struct layer_acts *a, int64_t t)
{
    return (struct op_swiglu){.act = a->act,
                              .act_dtype = a->dtype,
                              .gu = in.at,
                              .gu_dtype = in.dtype,
                              .t = t,
                              .f = m->shape.intermediate,
                              .gelu = m->shape.gelu,
                              .dtype = m->dtype};
}

/* gate_up[t, 2F] = in[t, C] Wgu^T */
static void gate_up_forward(const struct model *m, int64_t l, struct product_rows in, const struct layer_acts *a, int64_t t)
{
    const struct model_product *p = model_layer_product(m, l, PRODUCT_GATE_UP);
    lora_product(m, p, product_operation(m, p, a->gate_up, in, t), &a->lora);
}

/* act[t, F] = silu(gate) * up. One operation if no backward pass will read gate_up and the backend
 * has it. */
static void mlp_forward(const struct model *m, int64_t l, struct product_rows in, const struct layer_acts *a, int64_t t)
{
    const struct model_product *p = model_layer_product(m, l, PRODUCT_GATE_UP);
    const bool backward = a->rms2, adapted = lora_group_of(m, p);
    struct op_swiglu act = activation_operation(m, (struct product_rows){a->gate_up, DTYPE_F32}, a, t);
    if (m->k->matmul_swiglu && !backward && !adapted) {
        const struct op_matmul product = product_operation(m, p, a->gate_up, in, t);
        m->k->matmul_swiglu(&m->ctx, &product, &act);
        return;
    }
    gate_up_forward(m, l, in, a, t);
    act.kept = a->kept_gate_up;
    m->k->swiglu(&m->ctx, &act);
}

/* norm1[t, C], norm2[t, C] and act[t, F] as layer_forward computed them. */
void layer_recompute(const struct model *m, int64_t l, const float *x, const struct layer_acts *a, int64_t t,
                     enum recompute recompute)
{
    const struct layer_vectors *v = &m->vectors[l];
    kernels_at(&m->ctx, "forward pass again", l);
    branch_input_forward(m, x, v->norm1, (struct norm_out){a->norm1, a->dtype, a->rms1}, t);
    const struct product_rows in = branch_input_forward(m, a->mid, v->norm2, (struct norm_out){a->norm2, a->dtype, a->rms2}, t);
    if (recompute == RECOMPUTE_MLP) gate_up_forward(m, l, in, a, t);
    const struct op_swiglu o = activation_operation(m, layer_kept_gate_up(a), a, t);
    m->k->swiglu(&m->ctx, &o);
}

/* r.out[T, C] = x2 + r N(m Wdown^T), m[T, F] from x2[T, C], which attention computes from r.x[T,
 * C]. */
bool layer_forward(const struct model *m, int64_t l, struct layer_rows r, const struct layer_acts *a, struct kv_layer kv,
                   const struct forward_batch *b)
{
    kernels_at(&m->ctx, r.out ? "forward pass" : "forward pass again", l);
    mlp_forward(m, l, attention_forward(m, l, r, a, kv, b), a, b->t);
    if (!r.out) return false;
    const struct branch out = {.product = model_layer_product(m, l, PRODUCT_DOWN),
                               .in = {a->act, a->dtype},
                               .x = a->mid,
                               .norm = m->vectors[l].after2,
                               .out = r.out,
                               .after = a->after2,
                               .rms = a->rms_after2,
                               .next = {r.next, {r.next_y, r.next_dtype, NULL}}};
    return branch_output_forward(m, &out, b->t, &a->lora);
}

static tare_status check_blocks(const struct kv_cache *cache, const struct forward_batch *b, struct err *e)
{
    for (int64_t i = 0; i < b->n_writes; i++) {
        if (b->write_row[i] < 0 || b->write_row[i] >= b->t || b->write_slot[i] < 0 ||
            b->write_slot[i] >= cache->n_blocks * KV_BLOCK)
            FAIL(e, TARE_E_RANGE, "row %lld of %lld to cache slot %lld of %lld", (long long)b->write_row[i], (long long)b->t,
                 (long long)b->write_slot[i], (long long)(cache->n_blocks * KV_BLOCK));
    }
    for (int64_t i = 0; i < b->n_seqs; i++) {
        const struct attn_seq *q = &b->seqs[i];
        if (q->q_begin < 0 || q->q_len < 0 || q->q_begin + q->q_len > b->t || q->pos < 0)
            FAIL(e, TARE_E_RANGE, "sequence %lld: rows %lld to %lld of %lld", (long long)i, (long long)q->q_begin,
                 (long long)(q->q_begin + q->q_len), (long long)b->t);
        for (int64_t j = 0; j < (q->pos + q->q_len + KV_BLOCK - 1) / KV_BLOCK; j++)
            if (q->blocks[j] < 0 || q->blocks[j] >= cache->n_blocks)
                FAIL(e, TARE_E_RANGE, "sequence %lld: cache block %d of %lld", (long long)i, q->blocks[j],
                     (long long)cache->n_blocks);
    }
    return TARE_OK;
}

tare_status layer_check_batch(struct model *m, const struct kv_cache *cache, int64_t n_layers, const struct forward_batch *b,
                              struct err *e)
{
    int64_t positions = 0;
    if (cache->n_layers < n_layers)
        FAIL(e, TARE_E_SHAPE, "the cache has %lld layers, %lld are needed", (long long)cache->n_layers, (long long)n_layers);
    for (int64_t i = 0; i < b->t; i++) {
        if (b->ids[i] < 0 || b->ids[i] >= m->shape.vocab)
            FAIL(e, TARE_E_RANGE, "token id %d: must be 0 to %lld", b->ids[i], (long long)m->shape.vocab - 1);
        if (b->pos[i] < 0) FAIL(e, TARE_E_RANGE, "row %lld at position %d", (long long)i, b->pos[i]);
        if (b->pos[i] >= positions) positions = (int64_t)b->pos[i] + 1;
    }
    for (int64_t i = 0; i < b->n_out; i++)
        if (b->out_rows[i] < 0 || b->out_rows[i] >= b->t)
            FAIL(e, TARE_E_RANGE, "output row %lld: there are %lld rows", (long long)b->out_rows[i], (long long)b->t);
    TRY(check_blocks(cache, b, e));
    return model_positions(m, positions, e);
}

static tare_status array_to_backend(const struct model *m, const void *host, int64_t bytes, struct arena *a, const void **out,
                                    struct err *e)
{
    void *staging;
    TRY(model_backend_alloc(m, a, bytes, &staging, e));
    *out = model_to_backend(m, staging, host, bytes);
    return TARE_OK;
}

tare_status layer_batch_to_backend(const struct model *m, const struct forward_batch *b, struct arena *a, struct forward_batch *out,
                                   struct err *e)
{
    const void *ids, *pos, *row, *slot, *rows;
    kernels_at(&m->ctx, "forward pass", -1);
    TRY(array_to_backend(m, b->ids, b->t * (int64_t)sizeof *b->ids, a, &ids, e));
    TRY(array_to_backend(m, b->pos, b->t * (int64_t)sizeof *b->pos, a, &pos, e));
    TRY(array_to_backend(m, b->write_row, b->n_writes * (int64_t)sizeof *b->write_row, a, &row, e));
    TRY(array_to_backend(m, b->write_slot, b->n_writes * (int64_t)sizeof *b->write_slot, a, &slot, e));
    TRY(array_to_backend(m, b->out_rows, b->n_out * (int64_t)sizeof *b->out_rows, a, &rows, e));
    *out = *b;
    out->ids = ids;
    out->pos = pos;
    out->write_row = row;
    out->write_slot = slot;
    out->out_rows = rows;
    return TARE_OK;
}

/* x[T, C] = table[ids] * embed_scale */
void layer_embed_rows(const struct model *m, const struct forward_batch *b, float *x)
{
    KERNEL(m->k, &m->ctx, embed, .x = x, .table = m->table, .ids = b->ids, .t = b->t, .width = m->shape.hidden);
    layer_scale_rows(m, x, b->t, m->shape.embed_scale);
}

/* hidden[n, C] /= logits_divisor */
static void divide_hidden(const struct model *m, float *hidden, int64_t n)
{
    if (m->shape.logits_divisor > 0) layer_scale_rows(m, hidden, n, 1 / m->shape.logits_divisor);
}

/* hidden[n, C] = rms(x[n, C]) w / logits_divisor */
void layer_final_norm(const struct model *m, const float *x, float *rms, float *hidden, int64_t n)
{
    norm_rows(m, x, m->final_norm_vector, (struct norm_out){.y = hidden, .rms = rms}, n);
    divide_hidden(m, hidden, n);
}

/* hidden[n_out, C] = the final norm of rows out_rows after L layers. x[T, C] holds the residual
 * stream. */
void layer_forward_rows(struct model *m, struct kv_cache *cache, const struct forward_batch *b, const struct layer_acts *acts,
                        float *x, float *hidden)
{
    const int64_t C = m->shape.hidden, L = m->shape.layers;
    struct layer_rows r = {.x = x, .out = x};
    layer_embed_rows(m, b, x);
    for (int64_t l = 0; l < L; l++) {
        const bool last = l + 1 == L;
        r.next = !last ? m->vectors[l + 1].norm1 : b->out_all ? m->final_norm_vector : NULL;
        r.next_y = last ? hidden : acts->norm1;
        r.next_dtype = last ? DTYPE_F32 : acts->dtype;
        r.normed = layer_forward(m, l, r, acts, cache->layers[l], b);
    }
    kernels_at(&m->ctx, "forward pass", -1);
    if (r.normed) {
        divide_hidden(m, hidden, b->n_out);
        return;
    }
    KERNEL(m->k, &m->ctx, gather_rows, .y = hidden, .x = x, .rows = b->out_rows, .n = b->n_out, .width = C);
    layer_final_norm(m, hidden, NULL, hidden, b->n_out);
}

tare_status model_forward(struct model *m, struct kv_cache *cache, const struct forward_batch *b, struct arena *scratch,
                          float **hidden, struct err *e)
{
    const int64_t C = m->shape.hidden;
    struct layer_acts acts = {0};
    struct forward_batch there;
    float *x;
    TRY(layer_check_batch(m, cache, m->shape.layers, b, e));
    TRY(layer_batch_to_backend(m, b, scratch, &there, e));
    b = &there;
    TRY(tensor_new_raw(scratch, hidden, b->n_out * C, e));
    TRY(tensor_new_raw(scratch, &x, b->t * C, e));
    TRY(layer_acts_new(m, b->t, false, scratch, &acts, e));
    TRY(lora_rows_new(m, b->t, false, scratch, &acts.lora, e));
    layer_forward_rows(m, cache, b, &acts, x, *hidden);
    return TARE_OK;
}

/* logits[n, V] = hidden[n, C] head^T */
void model_logits(struct model *m, const float *hidden, int64_t n, float *logits)
{
    kernels_at(&m->ctx, "the head", -1);
    const struct op_matmul o = product_operation(m, model_head(m), logits, (struct product_rows){hidden, DTYPE_F32}, n);
    m->k->matmul(&m->ctx, &o);
}
