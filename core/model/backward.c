/* The backward pass, layer by layer from the last. Letters as in layer.h; d before a name is the loss's gradient with respect to it.
 * w and dw are the layer's unit: its fp32 weights, and where its gradient is made. */
#include "model/grads.h"
#include "model/layer.h"
#include "model/shards.h"

struct train_pass {
    struct forward_batch batch;
    const struct attn_seg *segs;
    int64_t n_segs;
    bool recompute;
    struct kv_cache *cache;
    struct arena *arena;
    float **x;               /* [L+1] each layer's input; the last is the stack's output */
    struct layer_acts *acts; /* [L], all the same buffers with recompute */
    float *last, *last_rms;  /* [n_out, C], [n_out]: input of the final norm */
};

static tare_status pass_new(const struct model *m, const struct forward_batch *b, bool recompute, struct arena *a,
                            struct train_pass **out, struct err *e)
{
    const int64_t L = m->shape.layers, C = m->shape.hidden;
    TRY(arena_new(a, struct train_pass, 1, out, e));
    struct train_pass *p = *out;
    p->batch = *b;
    p->recompute = recompute;
    p->arena = a;
    TRY(arena_new(a, float *, L + 1, &p->x, e));
    TRY(arena_new(a, struct layer_acts, L, &p->acts, e));
    for (int64_t l = 0; l <= L; l++) TRY(tensor_new_raw(a, float, b->t *C, &p->x[l], e));
    for (int64_t l = 0; l < L; l++) {
        if (l && recompute)
            p->acts[l] = p->acts[0];
        else
            TRY(layer_acts_new(m, b->t, true, a, &p->acts[l], e));
    }
    TRY(tensor_new_raw(a, float, b->n_out *C, &p->last, e));
    return tensor_new_raw(a, float, b->n_out, &p->last_rms, e);
}

tare_status model_train_forward(struct model *m, struct kv_cache *cache, const struct forward_batch *b, const struct attn_seg *segs,
                                int64_t n_segs, bool recompute, struct arena *acts, struct train_pass **pass, float **hidden,
                                struct err *e)
{
    const int64_t C = m->shape.hidden, L = m->shape.layers;
    TRY(batch_check(m, cache, 1, b, e));
    TRY(pass_new(m, b, recompute, acts, pass, e));
    struct train_pass *p = *pass;
    p->segs = segs, p->n_segs = n_segs;
    p->cache = cache;
    TRY(batch_to_backend(m, b, acts, &p->batch, e));
    b = &p->batch;
    TRY(tensor_new_raw(acts, float, b->n_out *C, hidden, e));
    m->k->embed(&m->ctx, p->x[0], m->table, b->ids, b->t, C);
    for (int64_t l = 0; l < L; l++) layer_forward(m, l, p->x[l], p->x[l + 1], &p->acts[l], cache->layers[0], b);
    kernels_at(&m->ctx, "forward pass", -1);
    m->k->gather_rows(&m->ctx, p->last, p->x[L], b->out_rows, b->n_out, C);
    m->k->rmsnorm(&m->ctx, *hidden, C, p->last_rms, p->last, C, m->final_norm_vector, b->n_out, 1, C, (float)m->shape.rms_eps);
    return TARE_OK;
}

struct row_grads {               /* one layer's, reused for all */
    float *dx;                   /* [T, C] of the residual stream: comes in for the layer's output, leaves for its input */
    float *norm, *wide, *narrow; /* [T, C], [T, max(2F, (H+2J)D)], [T, max(F, HD, (H+2J)D for Qwen3)] */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static tare_status row_grads_new(const struct model *m, int64_t t, struct arena *a, struct row_grads *g, struct err *e)
{
    const struct model_shape *s = &m->shape;
    const int64_t stride = model_attn_shape(m).stride, q = s->heads * s->head_dim;
    TRY(tensor_new(a, float, t * s->hidden, &g->dx, e));
    TRY(tensor_new_raw(a, float, t * s->hidden, &g->norm, e));
    TRY(tensor_new_raw(a, float, t *larger(2 * s->intermediate, stride), &g->wide, e));
    return tensor_new_raw(a, float, t *larger(s->intermediate, s->qk_norm ? stride : q), &g->narrow, e);
}

/* dx[T,K] = dy[T,N] W[N,K] for packed product i: from the compute copy where the backend takes it, else from the weights w. */
static void product_dx(const struct model *m, int64_t i, float *dx, const float *dy, const float *w, int64_t t, int64_t n,
                       int64_t k)
{
    if (m->k->matmul_dx_packed)
        m->k->matmul_dx_packed(&m->ctx, dx, dy, m->packed[i], t, n, k, 0, m->dtype);
    else
        m->k->matmul_dx(&m->ctx, dx, dy, w, t, n, k, 0, m->dtype);
}

/* dW[N,K] at `offset` of a unit += dy[T,N]^T x[T,K], and its bias at `bias` (-1: none). */
static void product_dw(const struct model *m, const struct unit_grads *to, int64_t offset, int64_t bias, const float *dy,
                       const float *x, int64_t t, int64_t n, int64_t k)
{
    float *dbias = bias < 0 ? NULL : to->vector + bias;
    if (to->apart)
        m->k->matmul_dw_apart(&m->ctx, to->matrix + offset, dbias, dy, x, t, n, k, m->dtype);
    else
        m->k->matmul_dw(&m->ctx, to->matrix + offset, dbias, dy, x, t, n, k, m->dtype);
}

/* out = x2 + m Wdown^T,  m = silu(gate) * up,  gate | up = rms(x2) Wgu^T */
static void mlp_backward(const struct model *m, int64_t l, const struct layer_acts *a, struct row_grads *g, int64_t t,
                         const float *w, const struct unit_grads *dw)
{
    const struct kernels *k = m->k;
    const struct kctx *c = &m->ctx;
    const struct layer_offsets *o = &m->layers[l];
    const int64_t C = m->shape.hidden, F = m->shape.intermediate;
    float *dact = g->narrow, *dgu = g->wide, *dnorm = g->norm;
    product_dw(m, dw, o->down, -1, g->dx, a->act, t, C, F);
    product_dx(m, 4 * l + 3, dact, g->dx, w + o->down, t, C, F);
    k->swiglu_grad(c, dgu, dact, a->gate_up, t, F);
    product_dw(m, dw, o->gate_up, -1, dgu, a->norm2, t, 2 * F, C);
    product_dx(m, 4 * l + 2, dnorm, dgu, w + o->gate_up, t, 2 * F, C);
    k->rmsnorm_grad(c, g->dx, C, dw->vector + o->norm2, dnorm, C, a->mid, C, m->vectors[l].norm2, a->rms2, t, 1, C, 1);
}

/* Through the per-head norms of q and k; v passes. */
static void qk_norm_backward(const struct model *m, int64_t l, const struct layer_acts *a, float *dqkv, float *copy, int64_t t,
                             float *dw)
{
    const struct layer_offsets *o = &m->layers[l];
    const struct layer_vectors *v = &m->vectors[l];
    const struct model_shape *s = &m->shape;
    const int64_t stride = model_attn_shape(m).stride, D = s->head_dim, at = s->heads * D;
    m->k->zero(&m->ctx, copy, t * stride * 4);
    m->k->add(&m->ctx, copy, dqkv, t * stride);
    m->k->rmsnorm_grad(&m->ctx, dqkv, stride, dw + o->q_norm, copy, stride, a->raw, stride, v->q_norm, a->rms_q, t, s->heads, D, 0);
    m->k->rmsnorm_grad(&m->ctx, dqkv + at, stride, dw + o->k_norm, copy + at, stride, a->raw + at, stride, v->k_norm, a->rms_k, t,
                       s->kv_heads, D, 0);
}

/* x2 = x + attention(qkv) Wo^T,  qkv = rms(x) Wqkv^T + b, q and k normed (Qwen3) and turned */
static void attention_backward(const struct model *m, int64_t l, const struct train_pass *p, struct row_grads *g, const float *w,
                               const struct unit_grads *dw)
{
    const struct kernels *k = m->k;
    const struct kctx *c = &m->ctx;
    const struct layer_offsets *o = &m->layers[l];
    const struct layer_acts *a = &p->acts[l];
    const struct attn_shape as = model_attn_shape(m);
    const int64_t t = p->batch.t, C = m->shape.hidden, q = as.heads * as.head_dim;
    float *datt = g->narrow, *dqkv = g->wide, *dnorm = g->norm;
    product_dw(m, dw, o->o, -1, g->dx, a->att, t, C, q);
    product_dx(m, 4 * l + 1, datt, g->dx, w + o->o, t, C, q);
    k->attention_grad(c, dqkv, datt, a->att, a->stats, a->qkv, as, p->segs, p->n_segs, t);
    k->rope(c, dqkv, as.stride, m->rope, p->batch.pos, t, as.heads + as.kv_heads, as.head_dim, 1);
    if (m->shape.qk_norm) qk_norm_backward(m, l, a, dqkv, g->narrow, t, dw->vector);
    product_dw(m, dw, o->qkv, o->qkv_bias, dqkv, a->norm1, t, as.stride, C);
    product_dx(m, 4 * l, dnorm, dqkv, w + o->qkv, t, as.stride, C);
    k->rmsnorm_grad(c, g->dx, C, dw->vector + o->norm1, dnorm, C, p->x[l], C, m->vectors[l].norm1, a->rms1, t, 1, C, 1);
}

/* ---- units, in the same order on ranks with and without a micro-batch */

/* The fp32 weights of unit u. A backend that takes the compute copy needs none: nothing is gathered for it. */
static tare_status backward_weights(struct model *m, int64_t u, const float **w, struct err *e)
{
    *w = m->weights;
    return m->k->matmul_dx_packed ? TARE_OK : unit_weights(m, u, w, e);
}

/* The unit of the head, and the last layer's on its way. */
static tare_status head_weights(struct model *m, struct err *e)
{
    const float *w;
    TRY(backward_weights(m, model_head_unit(m), &w, e));
    return m->k->matmul_dx_packed ? TARE_OK : unit_prefetch(m, m->shape.layers, e);
}

tare_status model_backward_begin(struct model *m, struct grads *g, struct err *e)
{
    TRY(head_weights(m, e));
    grads_begin(g, model_head_unit(m));
    return TARE_OK;
}

tare_status model_logits_grad(struct model *m, const float *dlogits, const float *hidden, int64_t n, float *dhidden,
                              struct grads *g, struct err *e)
{
    const int64_t V = m->shape.vocab, C = m->shape.hidden, u = model_head_unit(m), at = m->head - m->unit_begin[u];
    const float *w;
    TRY(backward_weights(m, u, &w, e)); /* model_backward_begin has brought it */
    kernels_at(&m->ctx, "the head's gradient", -1);
    product_dx(m, 4 * m->shape.layers, dhidden, dlogits, w + at, n, V, C);
    m->k->matmul_dw(&m->ctx, grads_head(g) + at, NULL, dlogits, hidden, n, V, C, m->dtype);
    return TARE_OK;
}

/* The unit of layer l, and the next one on its way. */
static tare_status layer_weights(struct model *m, int64_t l, const float **w, struct err *e)
{
    TRY(backward_weights(m, l + 1, w, e));
    return l && !m->k->matmul_dx_packed ? unit_prefetch(m, l, e) : TARE_OK;
}

static tare_status final_norm_backward(struct model *m, struct train_pass *p, const float *dhidden, struct row_grads *d,
                                       struct grads *g, struct err *e)
{
    const struct forward_batch *b = &p->batch;
    const int64_t C = m->shape.hidden, u = m->shape.layers + 1;
    float *dlast, *dw = m->shape.tied ? grads_begin(g, u).vector : grads_head(g);
    TRY(tensor_new_raw(p->arena, float, b->n_out *C, &dlast, e));
    m->k->rmsnorm_grad(&m->ctx, dlast, C, dw + m->final_norm - m->unit_begin[u], dhidden, C, p->last, C, m->final_norm_vector,
                       p->last_rms, b->n_out, 1, C, 0);
    m->k->scatter_add_rows(&m->ctx, d->dx, dlast, b->out_rows, b->n_out, C);
    return grads_end(g, u, e);
}

tare_status model_backward(struct model *m, struct train_pass *p, const float *dhidden, struct grads *g, struct err *e)
{
    const struct forward_batch *b = &p->batch;
    const int64_t C = m->shape.hidden, L = m->shape.layers;
    struct row_grads d;
    kernels_at(&m->ctx, "backward pass", -1);
    TRY(row_grads_new(m, b->t, p->arena, &d, e));
    TRY(final_norm_backward(m, p, dhidden, &d, g, e));
    for (int64_t l = L - 1; l >= 0; l--) {
        const float *w;
        TRY(layer_weights(m, l, &w, e));
        const struct unit_grads dw = grads_begin(g, l + 1);
        if (p->recompute && l != L - 1) layer_forward(m, l, p->x[l], NULL, &p->acts[l], p->cache->layers[0], b);
        kernels_at(&m->ctx, "backward pass", l);
        mlp_backward(m, l, &p->acts[l], &d, b->t, w, &dw);
        attention_backward(m, l, p, &d, w, &dw);
        TRY(grads_end(g, l + 1, e));
    }
    kernels_at(&m->ctx, "backward pass", -1);
    float *dtable = m->shape.tied ? grads_head(g) : grads_begin(g, 0).matrix;
    m->k->embed_grad(&m->ctx, dtable + m->embed, d.dx, b->ids, b->t, C);
    return grads_end(g, 0, e);
}

tare_status model_backward_idle(struct model *m, struct grads *g, struct err *e)
{
    const int64_t L = m->shape.layers;
    const float *w;
    TRY(head_weights(m, e));
    TRY(grads_end(g, L + 1, e));
    for (int64_t l = L - 1; l >= 0; l--) {
        TRY(layer_weights(m, l, &w, e));
        TRY(grads_end(g, l + 1, e));
    }
    return grads_end(g, 0, e);
}
