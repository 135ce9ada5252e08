/* The flat layout of the parameters and the product table; see model.h. */
#include "model/layout.h"

#include "model/lora.h"
#include "model/safetensors.h"
#include "model/shards.h"

#include <stdio.h>
#include <string.h>

enum { UNIT_ALIGN = 64, GROUP_ALIGN = 16 }; /* floats */

static void align_offset(int64_t *at, int64_t to)
{
    *at = (*at + to - 1) / to * to;
}

struct extent {
    int64_t rows, cols; /* rows 0: a vector */
};

/* Appends a tensor to the layout and returns its offset. group: it starts an (aligned) product;
 * otherwise it is adjacent to the previous tensor. */
static int64_t add_tensor(struct model *m, int64_t *at, const char *name, struct extent x, int unit, bool group)
{
    if (group) align_offset(at, GROUP_ALIGN);
    struct tensor *t = &m->tensors[m->n_tensors++];
    const int64_t rows = x.rows ? x.rows : 1;
    *t = (struct tensor){.offset = *at, .rows = rows, .cols = x.cols, .unit = unit, .vector = !x.rows};
    snprintf(t->name, sizeof t->name, "%s", name);
    *at += rows * x.cols;
    return t->offset;
}

static int64_t add_layer_tensor(struct model *m, int64_t *at, int64_t layer, const char *part, struct extent x, bool group)
{
    char name[96];
    snprintf(name, sizeof name, "model.layers.%lld.%s", (long long)layer, part);
    return add_tensor(m, at, name, x, (int)layer + 1, group);
}

/* Appends q, k and v, adjacent as separate tensors or fused in one; add_gate_up does the same for
 * gate and up. Returns the offset of the first. */
static int64_t add_qkv(struct model *m, int64_t *at, int64_t l)
{
    const struct model_shape *s = &m->shape;
    const int64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, C = s->hidden;
    if (s->fused) return add_layer_tensor(m, at, l, "self_attn.qkv_proj.weight", (struct extent){q + 2 * kv, C}, true);
    const int64_t first = add_layer_tensor(m, at, l, "self_attn.q_proj.weight", (struct extent){q, C}, true);
    add_layer_tensor(m, at, l, "self_attn.k_proj.weight", (struct extent){kv, C}, false);
    add_layer_tensor(m, at, l, "self_attn.v_proj.weight", (struct extent){kv, C}, false);
    return first;
}

static int64_t add_gate_up(struct model *m, int64_t *at, int64_t l)
{
    const int64_t C = m->shape.hidden, F = m->shape.intermediate;
    if (m->shape.fused) return add_layer_tensor(m, at, l, "mlp.gate_up_proj.weight", (struct extent){2 * F, C}, true);
    const int64_t first = add_layer_tensor(m, at, l, "mlp.gate_proj.weight", (struct extent){F, C}, true);
    add_layer_tensor(m, at, l, "mlp.up_proj.weight", (struct extent){F, C}, false);
    return first;
}

static int64_t add_bias(struct model *m, int64_t *at, int64_t l)
{
    const struct model_shape *s = &m->shape;
    const int64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim,
                  first = add_layer_tensor(m, at, l, "self_attn.q_proj.bias", (struct extent){0, q}, true);
    add_layer_tensor(m, at, l, "self_attn.k_proj.bias", (struct extent){0, kv}, false);
    add_layer_tensor(m, at, l, "self_attn.v_proj.bias", (struct extent){0, kv}, false);
    return first;
}

/* Appends the norms of a layer. post_attention_layernorm is the norm before the MLP in Llama, and
 * the one after attention in families that have one. */
static void add_norms(struct model *m, int64_t *at, int64_t l, int64_t begin)
{
    const struct model_shape *s = &m->shape;
    const int64_t C = s->hidden;
    struct layer_offsets *o = &m->layers[l];
    if (s->norms != NORMS_AFTER)
        o->norm1 = add_layer_tensor(m, at, l, "input_layernorm.weight", (struct extent){0, C}, true) - begin;
    int64_t *const post = s->norms == NORMS_BEFORE ? &o->norm2 : &o->after1;
    *post = add_layer_tensor(m, at, l, "post_attention_layernorm.weight", (struct extent){0, C}, true) - begin;
    if (s->norms == NORMS_BEFORE) return;
    if (s->norms == NORMS_BOTH)
        o->norm2 = add_layer_tensor(m, at, l, "pre_feedforward_layernorm.weight", (struct extent){0, C}, true) - begin;
    o->after2 = add_layer_tensor(m, at, l, "post_feedforward_layernorm.weight", (struct extent){0, C}, true) - begin;
}

/* Returns the shape of W[n, k] of each role. */
static struct extent product_extent(const struct model_shape *s, enum product_role role)
{
    const int64_t C = s->hidden, q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    switch (role) {
    case PRODUCT_QKV:
        return (struct extent){q + 2 * kv, C};
    case PRODUCT_OUT:
        return (struct extent){C, q};
    case PRODUCT_GATE_UP:
        return (struct extent){2 * s->intermediate, C};
    case PRODUCT_DOWN:
        return (struct extent){C, s->intermediate};
    default:
        return (struct extent){s->vocab, C};
    }
}

/* Appends a product without bias; its W is at `offset` of the flat layout. */
static struct model_product *add_product(struct model *m, int64_t layer, enum product_role role, int64_t offset)
{
    const int64_t id = m->n_products++, unit = role == PRODUCT_HEAD ? model_head_unit(m) : layer + 1;
    const struct extent w = product_extent(&m->shape, role);
    m->products[id] = (struct model_product){.id = id,
                                             .layer = layer,
                                             .role = role,
                                             .n = w.rows,
                                             .k = w.cols,
                                             .unit = unit,
                                             .offset = offset - m->unit_begin[unit],
                                             .bias = -1,
                                             .int8 = m->int8};
    return &m->products[id];
}

/* Appends the tensors and products of layer l. */
static void add_layer(struct model *m, int64_t *at, int64_t l)
{
    const struct model_shape *s = &m->shape;
    const int64_t C = s->hidden, begin = *at, D = s->head_dim;
    struct layer_offsets *o = &m->layers[l];
    *o = (struct layer_offsets){.norm1 = -1, .norm2 = -1, .after1 = -1, .after2 = -1, .q_norm = -1, .k_norm = -1};
    const int64_t qkv = add_qkv(m, at, l), bias = s->qkv_bias ? add_bias(m, at, l) - begin : -1,
                  out = add_layer_tensor(m, at, l, "self_attn.o_proj.weight", (struct extent){C, s->heads * D}, true),
                  gate_up = add_gate_up(m, at, l),
                  down = add_layer_tensor(m, at, l, "mlp.down_proj.weight", (struct extent){C, s->intermediate}, true);
    add_product(m, l, PRODUCT_QKV, qkv)->bias = bias;
    add_product(m, l, PRODUCT_OUT, out);
    add_product(m, l, PRODUCT_GATE_UP, gate_up);
    add_product(m, l, PRODUCT_DOWN, down);
    add_norms(m, at, l, begin);
    if (s->qk_norm == QK_NORM_NONE) return;
    const bool whole = s->qk_norm == QK_NORM_WHOLE;
    o->q_norm = add_layer_tensor(m, at, l, "self_attn.q_norm.weight", (struct extent){0, whole ? s->heads * D : D}, true) - begin;
    o->k_norm =
        add_layer_tensor(m, at, l, "self_attn.k_norm.weight", (struct extent){0, whole ? s->kv_heads * D : D}, true) - begin;
}

/* Ends unit u: sets its blocks, and pads it to R slices of whole blocks. One rank needs no
 * padding. */
static void end_unit(struct model *m, int64_t *at, int64_t u)
{
    align_offset(at, UNIT_ALIGN);
    const int64_t size = *at - m->unit_begin[u],
                  block = size ? (size + UNIT_BLOCKS * UNIT_ALIGN - 1) / (UNIT_BLOCKS * UNIT_ALIGN) * UNIT_ALIGN : UNIT_ALIGN;
    const int64_t blocks = (size + block - 1) / block;
    m->unit_size[u] = size;
    m->unit_block[u] = block;
    if (m->ranks > 1) *at = m->unit_begin[u] + (blocks + m->ranks - 1) / m->ranks * block * m->ranks;
    m->unit_begin[u + 1] = *at;
}

/* Refuses shapes whose flat buffer could not be addressed, before any size is multiplied in 64
 * bits. */
static tare_status check_size(const struct model_shape *s, struct err *e)
{
    const double c = (double)s->hidden,
                 width = (double)(2 * s->heads + 2 * s->kv_heads) * (double)s->head_dim + 3 * (double)s->intermediate;
    const double total = (double)s->layers * c * width + 2 * (double)s->vocab * c;
    if (total > 1e13) FAIL(e, TARE_E_RANGE, "the model would have %.3g parameters; at most 1e13 are supported", total);
    return TARE_OK;
}

enum { LAYER_TENSORS = 16 }; /* maximum per layer, and per layer of adapters */

static tare_status new_arrays(struct model *m, struct err *e)
{
    const int64_t L = m->shape.layers;
    m->n_tensors = 0;
    TRY(check_size(&m->shape, e));
    TRY(mem_new((LAYER_TENSORS * L + 3) * (int64_t)sizeof *m->tensors, (void **)&m->tensors, e));
    TRY(mem_new((L + 3) * 8, (void **)&m->unit_begin, e));
    TRY(mem_new((L + 2) * 8, (void **)&m->unit_size, e));
    return mem_new((L + 2) * 8, (void **)&m->unit_block, e);
}

static void free_arrays(struct model *m)
{
    mem_free(m->tensors);
    mem_free(m->unit_begin);
    mem_free(m->unit_size);
    mem_free(m->unit_block);
    mem_free(m->layers);
    m->tensors = NULL;
    m->unit_begin = m->unit_size = m->unit_block = NULL;
    m->layers = NULL;
}

void layout_free(struct model *m)
{
    free_arrays(m);
    mem_free(m->products);
    m->products = NULL;
    m->n_products = 0;
}

const struct model_product *model_layer_product(const struct model *m, int64_t layer, enum product_role role)
{
    return &m->products[layer * LAYER_PRODUCTS + role];
}

const struct model_product *model_head(const struct model *m)
{
    return &m->products[m->n_products - 1];
}

int64_t model_product_bytes(const struct model *m, const struct model_product *p)
{
    return (p->int8 ? m->k->int8_bytes : m->k->packed_bytes)(p->n, p->k, m->dtype);
}

struct layer_offsets model_layer_offsets(const struct model *m, int64_t l)
{
    return m->layers ? m->layers[l] : (struct layer_offsets){0};
}

/* Appends the adapters of a product: the A's are adjacent, and each B starts a product. */
static void add_group(struct model *m, int64_t *at, int64_t l, struct lora_group *g)
{
    const int64_t begin = m->unit_begin[l + 1], r = m->lora->spec.rank;
    char name[96];
    for (int half = 0; half < 2; half++)
        for (int j = 0; j < g->n; j++) {
            snprintf(name, sizeof name, "base_model.model.model.layers.%lld.%s.lora_%c.weight", (long long)l,
                     LORA_KIND[g->part[j].kind].path, half ? 'B' : 'A');
            const int64_t offset =
                add_tensor(m, at, name, (struct extent){half ? g->part[j].n : r, half ? r : g->k}, (int)l + 1, half || j == 0) -
                begin;
            if (half)
                g->part[j].b = offset;
            else if (j == 0)
                g->a = offset;
        }
}

tare_status layout_make_adapters(struct model *m, struct err *e)
{
    const int64_t L = m->shape.layers;
    int64_t at = 0;
    free_arrays(m);
    TRY(new_arrays(m, e));
    m->unit_block[0] = m->unit_block[L + 1] = UNIT_ALIGN;
    for (int64_t l = 0; l < L; l++) {
        for (int role = 0; role < LAYER_PRODUCTS; role++)
            add_group(m, &at, l, &m->lora->groups[model_layer_product(m, l, (enum product_role)role)->id]);
        end_unit(m, &at, l + 1);
    }
    m->unit_begin[L + 2] = at;
    m->n_params = at;
    m->n_own = at / m->ranks;
    return TARE_OK;
}

tare_status layout_make(struct model *m, struct err *e)
{
    const struct model_shape *s = &m->shape;
    const int64_t L = s->layers;
    int64_t at = 0;
    TRY(new_arrays(m, e));
    TRY(mem_new(L * (int64_t)sizeof *m->layers, (void **)&m->layers, e));
    m->n_products = 0;
    TRY(mem_new((LAYER_PRODUCTS * L + 1) * (int64_t)sizeof *m->products, (void **)&m->products, e));
    m->embed = add_tensor(m, &at, "model.embed_tokens.weight", (struct extent){s->vocab, s->hidden}, 0, true);
    end_unit(m, &at, 0);
    for (int64_t l = 0; l < L; l++) {
        add_layer(m, &at, l);
        end_unit(m, &at, l + 1);
    }
    m->final_norm = add_tensor(m, &at, "model.norm.weight", (struct extent){0, s->hidden}, (int)L + 1, true);
    m->head = s->tied ? m->embed : add_tensor(m, &at, "lm_head.weight", (struct extent){s->vocab, s->hidden}, (int)L + 1, true);
    add_product(m, L, PRODUCT_HEAD, m->head);
    end_unit(m, &at, L + 1);
    m->n_params = at;
    m->n_own = at / m->ranks;
    return TARE_OK;
}

bool layout_has(const struct model *m, const char *name)
{
    for (int64_t i = 0; i < m->n_tensors; i++)
        if (!strcmp(m->tensors[i].name, name)) return true;
    return false;
}

/* Refuses a head that differs from the tied embedding: the model was trained with both. */
static tare_status check_tied_head(const struct safetensors *file, const struct st_tensor *head, const char *folder, struct err *e)
{
    const struct st_tensor *embed = safetensors_find(file, "model.embed_tokens.weight");
    bool same = true;
    if (embed) TRY(safetensors_equal(file, embed, head, &same, e));
    if (!same)
        FAIL(
            e, TARE_E_UNSUPPORTED,
            "%s: lm_head.weight differs from model.embed_tokens.weight, but config.json has tie_word_embeddings = true, or leaves it out where true is the default; set it to false to use the head, or remove lm_head.weight from the file",
            folder);
    return TARE_OK;
}

tare_status layout_check_names(const struct model *m, const struct safetensors *file, const char *folder, struct err *e)
{
    for (int64_t i = 0; i < file->n_tensors; i++) {
        const char *name = file->tensors[i].name;
        if (str_ends_with(name, "rotary_emb.inv_freq")) continue;
        if (m->shape.tied && !strcmp(name, "lm_head.weight")) {
            TRY(check_tied_head(file, &file->tensors[i], folder, e));
            continue;
        }
        if (!layout_has(m, name))
            FAIL(
                e, TARE_E_UNSUPPORTED,
                "%s: unknown tensor %s, which is not part of the model of its config.json and would be lost in every checkpoint; correct config.json, or remove the tensor from the file",
                folder, name);
    }
    return TARE_OK;
}
