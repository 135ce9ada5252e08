#include "model/lora.h"

#include "base/rng.h"
#include "model/hf_config.h"
#include "model/layout.h"
#include "model/proof.h"
#include "model/shards.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct lora_kind LORA_KIND[LORA_KINDS] = {
    [LORA_Q_PROJ] = {"q_proj", "self_attn.q_proj", PRODUCT_QKV, LORA_APART},
    [LORA_K_PROJ] = {"k_proj", "self_attn.k_proj", PRODUCT_QKV, LORA_APART},
    [LORA_V_PROJ] = {"v_proj", "self_attn.v_proj", PRODUCT_QKV, LORA_APART},
    [LORA_O_PROJ] = {"o_proj", "self_attn.o_proj", PRODUCT_OUT, LORA_ANY},
    [LORA_GATE_PROJ] = {"gate_proj", "mlp.gate_proj", PRODUCT_GATE_UP, LORA_APART},
    [LORA_UP_PROJ] = {"up_proj", "mlp.up_proj", PRODUCT_GATE_UP, LORA_APART},
    [LORA_DOWN_PROJ] = {"down_proj", "mlp.down_proj", PRODUCT_DOWN, LORA_ANY},
    [LORA_QKV_PROJ] = {"qkv_proj", "self_attn.qkv_proj", PRODUCT_QKV, LORA_FUSED},
    [LORA_GATE_UP_PROJ] = {"gate_up_proj", "mlp.gate_up_proj", PRODUCT_GATE_UP, LORA_FUSED},
};

/* ---- configuration */

tare_status lora_spec_of(const struct config *c, struct lora_spec *out, struct err *e)
{
    *out = (struct lora_spec){.rank = c->lora.rank, .alpha = c->lora.alpha, .rslora = c->lora.rslora};
    return out->rank ? config_lora_targets(c->lora.targets, "lora.targets", &out->targets, e) : TARE_OK;
}

tare_status lora_targets(const struct model_shape *s, unsigned asked, const char *where, unsigned *out, struct err *e)
{
    char missing[160] = "", has[160] = "";
    *out = asked;
    for (int i = 0; i < LORA_KINDS; i++) {
        const bool is_there = LORA_KIND[i].in != (s->fused ? LORA_APART : LORA_FUSED);
        char *const list = is_there ? has : missing;
        if (!is_there) *out &= ~(1u << i);
        if (!is_there && !(asked >> i & 1)) continue;
        snprintf(list + strlen(list), sizeof missing - strlen(list), "%s%s", *list ? ", " : "", LORA_KIND[i].name);
    }
    if (*missing && asked != LORA_ALL)
        FAIL(e, TARE_E_CONFIG,
             "%s: the model (model_type \"%s\") has no %s; its linear layers are %s; all-linear selects all of them", where,
             hf_family(s->arch, NULL), missing, has);
    return TARE_OK;
}

/* ---- life */

/* Returns the columns of a kind in its product. */
static struct lora_part part_of(const struct model_shape *s, int kind)
{
    const int64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, F = s->intermediate;
    const int64_t begin[LORA_KINDS] = {0, q, q + kv, 0, 0, F, 0, 0, 0},
                  n[LORA_KINDS] = {q, kv, kv, s->hidden, F, F, s->hidden, q + 2 * kv, 2 * F};
    return (struct lora_part){.kind = kind, .begin = begin[kind], .n = n[kind]};
}

/* Returns the adapters of product p: A [parts * r, k], and for each part B [n, r]. */
static struct lora_group group_of(const struct model_shape *s, const struct lora_spec *spec, const struct model_product *p)
{
    struct lora_group g = {.k = p->k, .columns = p->n};
    for (int i = 0; i < LORA_KINDS; i++)
        if (LORA_KIND[i].role == p->role && (spec->targets >> i & 1)) g.part[g.n++] = part_of(s, i);
    g.rows = g.n * spec->rank;
    return g;
}

tare_status lora_new(struct model *m, const struct lora_spec *spec, struct err *e)
{
    const struct model_shape *s = &m->shape;
    unsigned targets;
    TRY(lora_targets(s, spec->targets, "lora.targets", &targets, e));
    TRY(mem_new(sizeof *m->lora, (void **)&m->lora, e));
    struct lora *a = m->lora;
    a->spec = *spec;
    a->spec.targets = targets;
    if (spec->rank) a->scale = (float)(spec->alpha / (spec->rslora ? sqrt((double)spec->rank) : (double)spec->rank));
    TRY(mem_new(m->n_products * (int64_t)sizeof *a->groups, (void **)&a->groups, e));
    for (int64_t i = 0; i < m->n_products; i++) a->groups[i] = group_of(s, &a->spec, &m->products[i]);
    return TARE_OK;
}

void lora_free(struct model *m)
{
    struct lora *a = m->lora;
    if (!a) return;
    if (a->groups)
        for (int64_t i = 0; i < m->n_products; i++) {
            if (a->groups[i].packed) m->k->backend->release(&m->ctx, a->groups[i].packed);
            for (int j = 0; j < a->groups[i].n; j++)
                if (a->groups[i].part[j].packed) m->k->backend->release(&m->ctx, a->groups[i].part[j].packed);
        }
    if (a->table) m->k->backend->release(&m->ctx, a->table);
    mem_free(a->groups);
    mem_free(a);
    m->lora = NULL;
}

/* Allocates W[n, k] in compute precision. */
static tare_status packed_alloc(struct model *m, int64_t n, int64_t k, void **out, struct err *e)
{
    const int64_t bytes = m->k->packed_bytes(n, k, m->dtype);
    *out = m->k->backend->alloc(&m->ctx, bytes);
    if (!*out) return kernels_no_memory(m->k, &m->ctx, "the adapters in compute precision", bytes, e);
    m->memory.sampler += bytes;
    return TARE_OK;
}

tare_status lora_copy_new(struct model *m, struct err *e)
{
    const int64_t r = m->lora->spec.rank;
    for (int64_t i = 0; i < m->n_products; i++) {
        struct lora_group *g = &m->lora->groups[i];
        if (!g->n) continue;
        TRY(packed_alloc(m, g->rows, g->k, &g->packed, e));
        for (int j = 0; j < g->n; j++) TRY(packed_alloc(m, g->part[j].n, r, &g->part[j].packed, e));
    }
    return TARE_OK;
}

tare_status lora_init(struct model *m, uint64_t seed, struct err *e)
{
    float *staging;
    int64_t largest = 0;
    for (int64_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].rows * m->tensors[i].cols > largest) largest = m->tensors[i].rows * m->tensors[i].cols;
    TRY(mem_new(largest * (int64_t)sizeof *staging, (void **)&staging, e));
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        const struct rng_key key = rng_derive(rng_key(seed, RNG_INIT), (uint64_t)i);
        const double bound = strstr(t->name, ".lora_A.") ? 1 / sqrt((double)t->cols) : 0; /* kaiming_uniform with a = sqrt(5) */
        const int64_t n = t->rows * t->cols;
        for (int64_t j = 0; j < n; j++) staging[j] = bound > 0 ? (float)(bound * (2 * rng_uniform(key, (uint64_t)j, 0) - 1)) : 0;
        shards_upload(m, t->offset, staging, n);
    }
    mem_free(staging);
    return TARE_OK;
}

/* packed = W[size[0], size[1]] in compute precision. */
static void pack_one(struct model *m, struct refresh_proof *proof, void *packed, const float *w, const int64_t size[2])
{
    KERNEL(m->k, &m->ctx, pack, .packed = packed, .w = w, .n = size[0], .k = size[1], .dtype = m->dtype);
    proof_refresh_copy(m, proof, packed, m->k->packed_bytes(size[0], size[1], m->dtype));
}

void lora_pack(struct model *m, struct refresh_proof *proof, int64_t u, const float *whole)
{
    const int64_t r = m->lora->spec.rank;
    for (int64_t i = 0; i < m->n_products; i++) {
        const struct lora_group *g = lora_group_of(m, &m->products[i]);
        if (!g || m->products[i].unit != u) continue;
        pack_one(m, proof, g->packed, whole + g->a, (const int64_t[2]){g->rows, g->k});
        for (int j = 0; j < g->n; j++)
            pack_one(m, proof, g->part[j].packed, whole + g->part[j].b, (const int64_t[2]){g->part[j].n, r});
    }
}

/* ---- forward and backward */

/* Returns the number of columns of lora_rows.wide: the widest input or part of a product. */
static int64_t widest_rows(const struct model_shape *s)
{
    const int64_t q = s->heads * s->head_dim, most = q > s->hidden ? q : s->hidden;
    return s->intermediate > most ? s->intermediate : most;
}

/* Returns whether the kernels compute adapters together with the base's products. */
static bool has_low_rank(const struct model *m)
{
    return m->k->matmul_low_rank != NULL;
}

tare_status lora_rows_new(const struct model *m, int64_t t, bool training, struct arena *a, struct lora_rows *out, struct err *e)
{
    *out = (struct lora_rows){0};
    if (!m->lora || !m->lora->spec.rank) return TARE_OK;
    if (training || !has_low_rank(m)) TRY(tensor_new_raw(a, &out->all, t * LORA_PARTS * m->lora->spec.rank, e));
    if (has_low_rank(m)) return TARE_OK;
    TRY(tensor_new_raw(a, &out->part, t * m->lora->spec.rank, e));
    return tensor_new_raw(a, &out->wide, t * widest_rows(&m->shape), e);
}

tare_status lora_kept_new(const struct model *m, int64_t t, enum product_role first, struct arena *a, struct lora_rows *out,
                          struct err *e)
{
    if (!m->lora || !has_low_rank(m)) return TARE_OK;
    for (int role = first; role < LAYER_PRODUCTS; role++) {
        /* All layers have the same adapters. */
        const struct lora_group *g = lora_group_of(m, model_layer_product(m, 0, (enum product_role)role));
        if (g) TRY(tensor_new_raw(a, &out->u[role], t * g->rows, e));
    }
    return TARE_OK;
}

/* r->all[t, parts * rank] = x A^T */
static void project_down(const struct model *m, const struct lora_group *g, struct product_rows x, int64_t t,
                         const struct lora_rows *r)
{
    KERNEL(m->k, &m->ctx, matmul, .y = r->all, .x = x.at, .x_dtype = x.dtype, .packed = g->packed, .t = t, .n = g->rows, .k = g->k,
           .dtype = m->dtype);
}

/* r->part[t, rank] = s times the columns of part j in r->all */
static void scale_part(const struct model *m, const struct lora_group *g, int j, int64_t t, const struct lora_rows *r)
{
    const int64_t rank = m->lora->spec.rank;
    KERNEL(m->k, &m->ctx, add_columns, .y = r->part, .ldy = rank, .x = r->all + j * rank, .ldx = g->rows, .t = t, .n = rank,
           .scale = m->lora->scale);
}

/* y[t, columns] of a product += s (x A^T) B^T of its adapters. */
static void add_adapters(const struct model *m, const struct lora_group *g, float *y, struct product_rows x, int64_t t,
                         const struct lora_rows *r)
{
    project_down(m, g, x, t, r);
    for (int j = 0; j < g->n; j++) {
        const struct lora_part *p = &g->part[j];
        const bool all = p->n == g->columns; /* spans the product: added in place */
        scale_part(m, g, j, t, r);
        KERNEL(m->k, &m->ctx, matmul, .y = all ? y : r->wide, .x = r->part, .packed = p->packed, .residual = all ? y : NULL, .t = t,
               .n = p->n, .k = m->lora->spec.rank, .dtype = m->dtype);
        if (!all)
            KERNEL(m->k, &m->ctx, add_columns, .y = y + p->begin, .ldy = g->columns, .x = r->wide, .ldx = p->n, .t = t, .n = p->n,
                   .scale = 1, .accumulate = 1);
    }
}

/* Describes the adapters of a product for the kernels. */
static struct low_rank low_rank_of(const struct model *m, const struct lora_group *g)
{
    struct low_rank l = {.a = g->packed, .parts = g->n, .rank = m->lora->spec.rank, .scale = m->lora->scale};
    for (int i = 0; i < g->n; i++) {
        l.b[i] = g->part[i].packed;
        l.begin[i] = g->part[i].begin;
        l.n[i] = g->part[i].n;
    }
    return l;
}

/* o.y[t, n] = o.x[t, k] W^T + s (x A^T) B^T */
void lora_product(const struct model *m, const struct model_product *p, struct op_matmul o, const struct lora_rows *r)
{
    const struct lora_group *g = lora_group_of(m, p);
    o.packed = p->packed;
    o.n = p->n;
    o.k = p->k;
    o.dtype = m->dtype;
    o.int8 = p->int8;
    if (g && has_low_rank(m)) {
        KERNEL(m->k, &m->ctx, matmul_low_rank, .product = o, .adapter = low_rank_of(m, g), .u = r->u[p->role]);
        return;
    }
    m->k->matmul(&m->ctx, &o);
    if (g) add_adapters(m, g, o.y, (struct product_rows){o.x, o.x_dtype}, o.t, r);
}

/* dw[n, k] += dy[t, n]^T x[t, k] */
static void product_dw(const struct model *m, const struct unit_grads *to, struct op_matmul_dw o)
{
    o.dtype = m->dtype;
    (to->apart ? m->k->matmul_dw_apart : m->k->matmul_dw)(&m->ctx, &o);
}

/* dx[t, k] = dy[t, n] W[n, k] */
static void product_dx(const struct model *m, struct op_matmul_dx o)
{
    o.dtype = m->dtype;
    m->k->matmul_dx(&m->ctx, &o);
}

/* With u = s x A^T of a part: dB[n, rank] = dy^T u, and d(x A^T) = s dy B, which replaces x A^T in
 * r->all. */
static void part_backward(const struct model *m, const struct lora_group *g, int j, const struct unit_grads *to,
                          const struct layer_product *p, const struct lora_rows *r)
{
    const struct lora_part *part = &g->part[j];
    const int64_t rank = m->lora->spec.rank, t = p->t, n = part->n;
    const float *dy = p->dy.at;
    scale_part(m, g, j, t, r);
    if (n != g->columns) {
        KERNEL(m->k, &m->ctx, add_columns, .y = r->wide, .ldy = n, .x = dy + part->begin, .ldx = g->columns, .t = t, .n = n,
               .scale = 1);
        dy = r->wide;
    }
    product_dw(m, to, (struct op_matmul_dw){.dw = to->matrix + part->b, .dy = dy, .x = r->part, .t = t, .n = n, .k = rank});
    product_dx(m, (struct op_matmul_dx){.dx = r->part, .dy = dy, .packed = part->packed, .t = t, .n = n, .k = rank});
    KERNEL(m->k, &m->ctx, add_columns, .y = r->all + j * rank, .ldy = g->rows, .x = r->part, .ldx = rank, .t = t, .n = rank,
           .scale = m->lora->scale);
}

/* Computes the gradients of A and B, and adds those of x to dx[t, k]. */
static void adapters_backward(const struct model *m, const struct lora_group *g, const struct unit_grads *to,
                              const struct layer_product *p, const struct lora_rows *r)
{
    const int64_t t = p->t;
    project_down(m, g, p->x, t, r); /* recomputed: keeping it would cost more memory than it saves time */
    for (int j = 0; j < g->n; j++) part_backward(m, g, j, to, p, r);
    product_dw(m, to,
               (struct op_matmul_dw){
                   .dw = to->matrix + g->a, .dy = r->all, .x = p->x.at, .x_dtype = p->x.dtype, .t = t, .n = g->rows, .k = g->k});
    if (!p->dx) return;
    product_dx(m, (struct op_matmul_dx){.dx = r->wide, .dy = r->all, .packed = g->packed, .t = t, .n = g->rows, .k = g->k});
    KERNEL(m->k, &m->ctx, add, .y = p->dx, .x = r->wide, .n = t * g->k);
}

/* dx[t, k] of the product with its adapters, dA [parts * r, k] and dB [n, r] in the operations of
 * the kernels. */
static void low_rank_backward(const struct model *m, const struct lora_group *g, const struct unit_grads *to,
                              const struct layer_product *p, const struct lora_rows *r)
{
    struct op_low_rank_dw o = {.da = to->matrix + g->a,
                               .u = r->u[p->product->role],
                               .d = r->all,
                               .dy = p->dy.at,
                               .x = p->x.at,
                               .adapter = low_rank_of(m, g),
                               .t = p->t,
                               .n = g->columns,
                               .k = g->k,
                               .dtype = m->dtype,
                               .x_dtype = p->x.dtype,
                               .apart = to->apart};
    for (int j = 0; j < g->n; j++) o.db[j] = to->matrix + g->part[j].b;
    KERNEL(m->k, &m->ctx, matmul_dx_low_rank,
           .product = {.dx = p->dx,
                       .dy = p->dy.at,
                       .packed = p->product->packed,
                       .t = p->t,
                       .n = g->columns,
                       .k = g->k,
                       .dtype = m->dtype,
                       .int8 = p->product->int8},
           .adapter = o.adapter, .d = r->all);
    m->k->low_rank_dw(&m->ctx, &o);
}

/* dx[t, k] = dy[t, n] W + s (dy B) A, and the gradients of A and B. */
void lora_backward(const struct model *m, const struct unit_grads *to, const struct layer_product *p, const struct lora_rows *r)
{
    const struct model_product *base = p->product;
    const struct lora_group *g = lora_group_of(m, base);
    if (g && has_low_rank(m)) {
        low_rank_backward(m, g, to, p, r);
        return;
    }
    if (p->dx)
        product_dx(m, (struct op_matmul_dx){.dx = p->dx,
                                            .dy = p->dy.at,
                                            .packed = base->packed,
                                            .dy_dtype = p->dy.dtype,
                                            .t = p->t,
                                            .n = base->n,
                                            .k = base->k,
                                            .int8 = base->int8});
    if (g) adapters_backward(m, g, to, p, r);
}
