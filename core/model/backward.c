/* The backward pass, layer by layer from the last. Letters as in layer.h; a d before a name is the
 * gradient of the loss with respect to it. dw is the destination of the unit's gradient. With
 * adapters (lora.h) only theirs are computed.
 *
 * dx is computed from the compute copy, as the forward pass is: the fp32 weights stay with the
 * ranks that own them. */
#include "model/grads.h"
#include "model/layer.h"
#include "model/layout.h"
#include "model/shards.h"
#include "sizes.h"

struct train_pass {
    struct forward_batch batch;
    const struct attn_seg *segs;
    int64_t n_segs;
    enum recompute recompute;
    struct kv_cache *cache;
    struct arena *arena;
    float **x;               /* [L+1] each layer's input; the last is the stack's output */
    struct layer_acts *acts; /* [L]; recomputed buffers are shared by all layers */
    float *last, *last_rms;  /* [n_out, C], [n_out]: input of the final norm */
};

/* Sets the buffers that layer l shares with the first layer, and allocates its own bf16 copies next
 * to them. */
static tare_status acts_begin(struct train_pass *p, const struct model *m, int64_t l, struct err *e)
{
    const enum recompute recompute = p->recompute;
    const bool keeps = layer_rows_dtype(m) == DTYPE_BF16 && recompute != RECOMPUTE_LAYER, again = recompute == RECOMPUTE_MLP;
    /* With an odd head width the cache may be fp32. */
    const bool keeps_qkv = keeps && m->shape.head_dim % 2 == 0, keeps_gate_up = keeps && !again;
    const struct layer_acts *first = &p->acts[0];
    const int64_t t = p->batch.t, bytes = dtype_bytes(DTYPE_BF16);
    struct layer_acts *to = &p->acts[l];
    if (l && recompute == RECOMPUTE_LAYER) *to = *first;
    if (l && recompute != RECOMPUTE_NONE) {
        to->norm1 = first->norm1;
        to->norm2 = first->norm2;
        to->act = first->act;
    }
    if (l && keeps_qkv) to->qkv = first->qkv;
    if (l && (keeps_gate_up || again)) to->gate_up = first->gate_up;
    if (keeps_qkv) TRY(arena_push_tensor_raw(p->arena, t * model_attn_shape(m).stride * bytes, &to->kept_qkv, e));
    return keeps_gate_up ? arena_push_tensor_raw(p->arena, t * 2 * m->shape.intermediate * bytes, &to->kept_gate_up, e) : TARE_OK;
}

/* Allocates x [L+1][T, C], the activations of L layers, and the input of the final norm [n_out,
 * C]. */
static tare_status pass_new(const struct model *m, const struct forward_batch *b, enum recompute recompute, struct arena *a,
                            struct train_pass **out, struct err *e)
{
    const int64_t L = m->shape.layers, C = m->shape.hidden;
    TRY(arena_new(a, out, 1, e));
    struct train_pass *p = *out;
    p->batch = *b;
    p->recompute = recompute;
    p->arena = a;
    TRY(arena_new(a, &p->x, L + 1, e));
    TRY(arena_new(a, &p->acts, L, e));
    for (int64_t l = 0; l <= L; l++) TRY(tensor_new_raw(a, &p->x[l], b->t * C, e));
    for (int64_t l = 0; l < L; l++) {
        TRY(acts_begin(p, m, l, e));
        if (!l || recompute != RECOMPUTE_LAYER) TRY(layer_acts_new(m, b->t, true, a, &p->acts[l], e));
        if (l)
            p->acts[l].lora = p->acts[0].lora;
        else
            TRY(lora_rows_new(m, b->t, true, a, &p->acts[0].lora, e));
        /* A recomputed layer omits its last product. */
        TRY(lora_kept_new(m, b->t, l && recompute == RECOMPUTE_LAYER ? PRODUCT_DOWN : PRODUCT_QKV, a, &p->acts[l].lora, e));
    }
    TRY(tensor_new_raw(a, &p->last, b->n_out * C, e));
    return tensor_new_raw(a, &p->last_rms, b->n_out, e);
}

/* hidden[n_out, C] = the final norm of rows out_rows. *pass keeps the activations for
 * model_backward. */
tare_status model_train_forward(struct model *m, const struct train_input *in, struct arena *acts, struct train_pass **pass,
                                float **hidden, struct err *e)
{
    const struct forward_batch *b = in->batch;
    const int64_t C = m->shape.hidden, L = m->shape.layers;
    TRY(layer_check_batch(m, in->cache, 1, b, e));
    TRY(pass_new(m, b, in->recompute, acts, pass, e));
    struct train_pass *p = *pass;
    p->segs = in->segs;
    p->n_segs = in->n_segs;
    p->cache = in->cache;
    TRY(layer_batch_to_backend(m, b, acts, &p->batch, e));
    b = &p->batch;
    TRY(tensor_new_raw(acts, hidden, b->n_out * C, e));
    layer_embed_rows(m, b, p->x[0]);
    for (int64_t l = 0; l < L; l++)
        layer_forward(m, l, (struct layer_rows){.x = p->x[l], .out = p->x[l + 1]}, &p->acts[l], in->cache->layers[0], b);
    kernels_at(&m->ctx, "forward pass", -1);
    KERNEL(m->k, &m->ctx, gather_rows, .y = p->last, .x = p->x[L], .rows = b->out_rows, .n = b->n_out, .width = C);
    layer_final_norm(m, p->last, p->last_rms, *hidden, b->n_out);
    return TARE_OK;
}

struct row_grads { /* of one layer, reused for all */
    /* [T, C] of the residual stream: gradient of the layer's output, replaced by that of its
     * input */
    float *dx;
    float *norm, *narrow; /* [T, C], [T, max(F, HD, (H+2J)D with q and k norms)] */
    void *wide;           /* [T, 2F] of gate and up in dgu_dtype; then [T, (H+2J)D] of q, k and v in fp32 */
    enum dtype dgu_dtype; /* only products read dgu; adapters read columns of it, in fp32 */
    float *branch;        /* [T, C] of the output of attention or the MLP; NULL if that is dx itself */
};

static int64_t larger_size(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns whether a norm or a scale comes between the output of attention or the MLP and the
 * residual. */
static bool has_branch(const struct model_shape *s)
{
    return s->norms != NORMS_BEFORE || s->residual_scale > 0;
}

/* Allocates the gradients of one layer for t rows; dx[t, C] starts at zero. */
static tare_status row_grads_new(const struct model *m, int64_t t, struct arena *a, struct row_grads *g, struct err *e)
{
    const struct model_shape *s = &m->shape;
    const int64_t stride = model_attn_shape(m).stride, q = s->heads * s->head_dim;
    TRY(tensor_new(a, &g->dx, t * s->hidden, e));
    TRY(tensor_new_raw(a, &g->norm, t * s->hidden, e));
    if (has_branch(s)) TRY(tensor_new_raw(a, &g->branch, t * s->hidden, e));
    g->dgu_dtype = m->lora ? DTYPE_F32 : layer_rows_dtype(m);
    TRY(arena_push_tensor_raw(a, t * larger_size(2 * s->intermediate * dtype_bytes(g->dgu_dtype), stride * dtype_bytes(DTYPE_F32)),
                              &g->wide, e));
    return tensor_new_raw(a, &g->narrow, t * larger_size(s->intermediate, s->qk_norm != QK_NORM_NONE ? stride : q), e);
}

/* dx[T, k] = dy[T, n] W[n, k] */
static void product_dx(const struct model *m, const struct model_product *p, struct op_matmul_dx o)
{
    o.packed = p->packed;
    o.n = p->n;
    o.k = p->k;
    o.dtype = m->dtype;
    o.int8 = p->int8;
    m->k->matmul_dx(&m->ctx, &o);
}

/* dx[T, k] = dy[T, n] W, and the gradients dW[n, k] = dy^T x and of the bias [n]; with adapters the
 * gradients of A and B instead. */
static void product_backward(const struct model *m, const struct unit_grads *to, struct layer_product p, const struct lora_rows *r)
{
    if (m->lora) {
        lora_backward(m, to, &p, r);
        return;
    }
    const struct model_product *w = p.product;
    const struct op_matmul_dw o = {.dw = to->matrix + w->offset,
                                   .dbias = w->bias < 0 ? NULL : to->vector + w->bias,
                                   .dy = p.dy.at,
                                   .dy_dtype = p.dy.dtype,
                                   .x = p.x.at,
                                   .x_dtype = p.x.dtype,
                                   .t = p.t,
                                   .n = w->n,
                                   .k = w->k,
                                   .dtype = m->dtype};
    (to->apart ? m->k->matmul_dw_apart : m->k->matmul_dw)(&m->ctx, &o);
    product_dx(m, w, (struct op_matmul_dx){.dx = p.dx, .dy = p.dy.at, .dy_dtype = p.dy.dtype, .t = p.t});
}

/* Returns the destination of the gradient of a norm at `offset` of the unit; NULL if it is
 * frozen. */
static float *norm_grad(const struct model *m, const struct unit_grads *dw, int64_t offset)
{
    return m->lora ? NULL : dw->vector + offset;
}

/* A norm over rows of C, as the backward pass needs it. */
struct row_norm {
    int64_t offset; /* offset of its weights in the unit */
    const float *x, *w, *rms;
};

/* Returns the gradient [T, C] with respect to y of out = x + r N(y), from g->dx, the gradient of
 * out. Backward of branch_output_forward without its product y = in W^T. */
static const float *branch_output_backward(const struct model *m, const struct row_norm *n, const struct row_grads *g, int64_t t,
                                           const struct unit_grads *dw)
{
    const struct model_shape *s = &m->shape;
    const int64_t C = s->hidden;
    if (!has_branch(s)) return g->dx;
    KERNEL(m->k, &m->ctx, add_columns, .y = g->branch, .ldy = C, .x = g->dx, .ldx = C, .t = t, .n = C,
           .scale = s->residual_scale > 0 ? (float)s->residual_scale : 1.0f);
    if (n->w)
        KERNEL(m->k, &m->ctx, rmsnorm_grad, .dx = g->branch, .ld = C, .dw = norm_grad(m, dw, n->offset), .dy = g->branch, .x = n->x,
               .w = n->w, .rms = n->rms, .t = t, .heads = 1, .width = C);
    return g->branch;
}

/* g->dx[T, C] += the gradient with respect to x of n = rms(x), or of n = x, from g->norm, the
 * gradient of n. Backward of branch_input_forward. */
static void branch_input_backward(const struct model *m, const struct row_norm *n, const struct row_grads *g, int64_t t,
                                  const struct unit_grads *dw)
{
    const int64_t C = m->shape.hidden;
    if (n->w)
        KERNEL(m->k, &m->ctx, rmsnorm_grad, .dx = g->dx, .ld = C, .dw = norm_grad(m, dw, n->offset), .dy = g->norm, .x = n->x,
               .w = n->w, .rms = n->rms, .t = t, .heads = 1, .width = C, .accumulate = 1);
    else
        KERNEL(m->k, &m->ctx, add, .y = g->dx, .x = g->norm, .n = t * C);
}

/* Backward of out = x2 + r N(m Wdown^T), m = silu(gate) * up, gate | up = rms(x2) Wgu^T: g->dx[T,
 * C] from d out to d x2. */
static void mlp_backward(const struct model *m, int64_t l, const struct train_pass *p, struct row_grads *g,
                         const struct unit_grads *dw)
{
    const struct layer_offsets o = model_layer_offsets(m, l);
    const struct layer_acts *a = &p->acts[l];
    const struct layer_vectors *v = &m->vectors[l];
    const int64_t F = m->shape.intermediate, t = p->batch.t;
    float *dact = g->narrow;
    const struct product_rows kept = layer_kept_gate_up(a), dgu = {g->wide, g->dgu_dtype},
                              in = v->norm2 ? (struct product_rows){a->norm2, a->dtype} : (struct product_rows){a->mid, DTYPE_F32};
    const float *dy = branch_output_backward(m, &(struct row_norm){o.after2, a->after2, v->after2, a->rms_after2}, g, t, dw);
    product_backward(m, dw,
                     (struct layer_product){model_layer_product(m, l, PRODUCT_DOWN), {a->act, a->dtype}, {dy, DTYPE_F32}, dact, t},
                     &a->lora);
    KERNEL(m->k, &m->ctx, swiglu_grad, .dgu = g->wide, .dgu_dtype = g->dgu_dtype, .dact = dact, .gu = kept.at,
           .gu_dtype = kept.dtype, .t = t, .f = F, .gelu = m->shape.gelu, .dtype = m->dtype);
    product_backward(m, dw, (struct layer_product){model_layer_product(m, l, PRODUCT_GATE_UP), in, dgu, g->norm, t}, &a->lora);
    branch_input_backward(m, &(struct row_norm){o.norm2, a->mid, v->norm2, a->rms2}, g, t, dw);
}

/* dqkv[T, (H+2J)D]: backward of the norms of q and k; the columns of v are unchanged. */
static void qk_norm_backward(const struct model *m, int64_t l, const struct train_pass *p, float *dqkv, float *copy,
                             const struct unit_grads *dw)
{
    const struct layer_offsets o = model_layer_offsets(m, l);
    const struct layer_acts *a = &p->acts[l];
    const struct layer_vectors *v = &m->vectors[l];
    const struct model_shape *s = &m->shape;
    const int64_t stride = model_attn_shape(m).stride, D = s->head_dim, at = s->heads * D, t = p->batch.t;
    const bool whole = s->qk_norm == QK_NORM_WHOLE;
    m->k->backend->zero(&m->ctx, copy, t * stride * 4);
    KERNEL(m->k, &m->ctx, add, .y = copy, .x = dqkv, .n = t * stride);
    KERNEL(m->k, &m->ctx, rmsnorm_grad, .dx = dqkv, .ld = stride, .dw = norm_grad(m, dw, o.q_norm), .dy = copy, .x = a->raw,
           .w = v->q_norm, .rms = a->rms_q, .t = t, .heads = whole ? 1 : s->heads, .width = whole ? at : D, .accumulate = 0);
    KERNEL(m->k, &m->ctx, rmsnorm_grad, .dx = dqkv + at, .ld = stride, .dw = norm_grad(m, dw, o.k_norm), .dy = copy + at,
           .x = a->raw + at, .w = v->k_norm, .rms = a->rms_k, .t = t, .heads = whole ? 1 : s->kv_heads,
           .width = whole ? s->kv_heads * D : D, .accumulate = 0);
}

/* Backward of x2 = x + r N(attention(qkv) Wo^T), qkv = rms(x) Wqkv^T + b, q and k normed and
 * rotated: g->dx[T, C] from d x2 to d x. */
static void attention_backward(const struct model *m, int64_t l, const struct train_pass *p, struct row_grads *g,
                               const struct unit_grads *dw)
{
    const struct layer_offsets o = model_layer_offsets(m, l);
    const struct layer_acts *a = &p->acts[l];
    const struct layer_vectors *v = &m->vectors[l];
    struct attn_shape as = model_attn_shape(m);
    const int64_t t = p->batch.t;
    float *datt = g->narrow, *dqkv = g->wide;
    const struct product_rows kept = layer_kept_qkv(a),
                              in = v->norm1 ? (struct product_rows){a->norm1, a->dtype} : (struct product_rows){p->x[l], DTYPE_F32};
    as.window = layer_window(&m->shape, l);
    const float *dy = branch_output_backward(m, &(struct row_norm){o.after1, a->after1, v->after1, a->rms_after1}, g, t, dw);
    product_backward(m, dw,
                     (struct layer_product){model_layer_product(m, l, PRODUCT_OUT), {a->att, a->dtype}, {dy, DTYPE_F32}, datt, t},
                     &a->lora);
    KERNEL(m->k, &m->ctx, attention_grad, .dqkv = dqkv, .dout = datt, .out = a->att, .out_dtype = a->dtype, .stats = a->stats,
           .qkv = kept.at, .qkv_dtype = kept.dtype, .shape = as, .segs = p->segs, .n_segs = p->n_segs, .t = t);
    layer_rotate(m, l, dqkv, &p->batch, 1);
    if (m->shape.qk_norm != QK_NORM_NONE) qk_norm_backward(m, l, p, dqkv, g->narrow, dw);
    const bool ends = m->lora && l == 0; /* the embedding is frozen too */
    product_backward(
        m, dw, (struct layer_product){model_layer_product(m, l, PRODUCT_QKV), in, {dqkv, DTYPE_F32}, ends ? NULL : g->norm, t},
        &a->lora);
    if (!ends) branch_input_backward(m, &(struct row_norm){o.norm1, p->x[l], v->norm1, a->rms1}, g, t, dw);
}

/* ---- units, in the same order on ranks with and without a micro-batch */

void model_backward_begin(struct model *m, struct grads *g)
{
    if (!m->lora) grads_begin(g, model_head_unit(m));
}

/* dhidden[n, C] = dlogits[n, V] head, and dhead[V, C] += dlogits^T hidden. */
void model_logits_grad(struct model *m, const struct logits_grad *x, struct grads *g)
{
    const struct model_product *head = model_head(m);
    kernels_at(&m->ctx, "the head's gradient", -1);
    product_dx(m, head, (struct op_matmul_dx){.dx = x->dhidden, .dy = x->dlogits, .t = x->n});
    if (m->lora) return;
    KERNEL(m->k, &m->ctx, matmul_dw, .dw = grads_head(g) + head->offset, .dy = x->dlogits, .x = x->hidden, .t = x->n, .n = head->n,
           .k = head->k, .dtype = m->dtype);
}

/* d->dx[T, C] = the gradient of the last layer's output, from dhidden[n_out, C]; rows not in
 * out_rows are zero. */
static tare_status final_norm_backward(struct model *m, struct train_pass *p, const float *dhidden, struct row_grads *d,
                                       struct grads *g, struct err *e)
{
    const struct forward_batch *b = &p->batch;
    const int64_t C = m->shape.hidden, u = m->shape.layers + 1;
    float *dlast, *dw = m->lora ? NULL : m->shape.tied ? grads_begin(g, u).vector : grads_head(g);
    TRY(tensor_new_raw(p->arena, &dlast, b->n_out * C, e));
    if (dw) dw += m->final_norm - m->unit_begin[u];
    const float *dnorm = dhidden;
    if (m->shape.logits_divisor > 0) {
        KERNEL(m->k, &m->ctx, add_columns, .y = dlast, .ldy = C, .x = dhidden, .ldx = C, .t = b->n_out, .n = C,
               .scale = (float)(1 / m->shape.logits_divisor));
        dnorm = dlast;
    }
    KERNEL(m->k, &m->ctx, rmsnorm_grad, .dx = dlast, .ld = C, .dw = dw, .dy = dnorm, .x = p->last, .w = m->final_norm_vector,
           .rms = p->last_rms, .t = b->n_out, .heads = 1, .width = C, .accumulate = 0);
    KERNEL(m->k, &m->ctx, scatter_add_rows, .y = d->dx, .x = dlast, .rows = b->out_rows, .n = b->n_out, .width = C);
    return dw ? grads_end(g, u, e) : TARE_OK;
}

/* Adds the gradients of all units to the sums of g, from dhidden[n_out, C]. */
tare_status model_backward(struct model *m, struct train_pass *p, const float *dhidden, struct grads *g, struct err *e)
{
    const struct forward_batch *b = &p->batch;
    const int64_t C = m->shape.hidden, L = m->shape.layers;
    struct row_grads d = {0};
    kernels_at(&m->ctx, "backward pass", -1);
    TRY(row_grads_new(m, b->t, p->arena, &d, e));
    TRY(final_norm_backward(m, p, dhidden, &d, g, e));
    for (int64_t l = L - 1; l >= 0; l--) {
        const struct unit_grads dw = grads_begin(g, l + 1);
        /* A norm after the MLP needs the MLP's output; the layer's output goes to its old place,
         * which is no longer needed. */
        float *out = m->shape.norms == NORMS_BEFORE ? NULL : p->x[l + 1];
        if (l != L - 1 && p->recompute == RECOMPUTE_LAYER)
            layer_forward(m, l, (struct layer_rows){.x = p->x[l], .out = out}, &p->acts[l], p->cache->layers[0], b);
        else if (l != L - 1 && p->recompute != RECOMPUTE_NONE)
            layer_recompute(m, l, p->x[l], &p->acts[l], b->t, p->recompute);
        kernels_at(&m->ctx, "backward pass", l);
        mlp_backward(m, l, p, &d, &dw);
        attention_backward(m, l, p, &d, &dw);
        TRY(grads_end(g, l + 1, e));
    }
    if (m->lora) return TARE_OK;
    kernels_at(&m->ctx, "backward pass", -1);
    layer_scale_rows(m, d.dx, b->t, m->shape.embed_scale);
    float *dtable = m->shape.tied ? grads_head(g) : grads_begin(g, 0).matrix;
    KERNEL(m->k, &m->ctx, embed_grad, .dtable = dtable + m->embed, .dx = d.dx, .ids = b->ids, .t = b->t, .width = C);
    return grads_end(g, 0, e);
}

/* Takes part in the collectives of model_backward without a micro-batch. */
tare_status model_backward_idle(struct model *m, struct grads *g, struct err *e)
{
    const int64_t L = m->shape.layers;
    if (!m->lora) TRY(grads_end(g, L + 1, e));
    for (int64_t l = L - 1; l >= 0; l--) TRY(grads_end(g, l + 1, e));
    return m->lora ? TARE_OK : grads_end(g, 0, e);
}
