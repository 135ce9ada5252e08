/* The compute copy of the weights, which forward passes read in sampling and in training. Every
 * rank has it whole. */
#include "model/layout.h"
#include "model/lora.h"
#include "model/proof.h"
#include "model/shards.h"

#include <string.h>

enum { ALIGN = 16 }; /* floats */

/* Returns whether vectors are stored apart from the masters: those are sharded or not kept, or
 * norms multiply by 1 + w, which the copy holds. */
static bool is_apart(const struct model *m)
{
    return m->lora || !model_is_whole(m) || m->shape.norm_plus_one;
}

/* Returns the offset of tensor i in the vector copy. Vectors follow the order of the layout;
 * adjacent ones stay adjacent (the biases of q, k, v). */
static int64_t vector_place(const struct model *m, int64_t i)
{
    int64_t at = 0, end = -1;
    for (int64_t j = 0;; j++) {
        const struct tensor *t = &m->tensors[j];
        if (t->vector && t->offset != end) at = (at + ALIGN - 1) / ALIGN * ALIGN;
        if (j == i) return at;
        if (!t->vector) continue;
        at += t->cols;
        end = t->offset + t->cols;
    }
}

/* Returns the vector at an offset of the flat layout: in the vector copy, or in the weights. */
static const float *vector_at(const struct model *m, int64_t offset)
{
    if (!is_apart(m)) return m->weights + offset;
    for (int64_t i = 0;; i++)
        if (m->tensors[i].offset == offset) return m->vector_copy + vector_place(m, i);
}

/* Returns the vector of layer l at an offset of its unit; NULL for -1. */
static const float *layer_vector(const struct model *m, int64_t l, int64_t offset)
{
    return offset < 0 ? NULL : vector_at(m, m->unit_begin[l + 1] + offset);
}

/* Sets m->vectors and final_norm_vector. */
static void point_to_vectors(struct model *m)
{
    for (int64_t l = 0; l < m->shape.layers; l++) {
        const struct layer_offsets *o = &m->layers[l];
        m->vectors[l] = (struct layer_vectors){.qkv_bias = layer_vector(m, l, model_layer_product(m, l, PRODUCT_QKV)->bias),
                                               .norm1 = layer_vector(m, l, o->norm1),
                                               .norm2 = layer_vector(m, l, o->norm2),
                                               .after1 = layer_vector(m, l, o->after1),
                                               .after2 = layer_vector(m, l, o->after2),
                                               .q_norm = layer_vector(m, l, o->q_norm),
                                               .k_norm = layer_vector(m, l, o->k_norm)};
    }
    m->final_norm_vector = vector_at(m, m->final_norm);
}

/* Returns the size of the vector copy. */
static int64_t vector_floats(const struct model *m)
{
    int64_t i = m->n_tensors - 1;
    while (!m->tensors[i].vector) i--;
    return vector_place(m, i) + m->tensors[i].cols;
}

static tare_status copy_alloc(struct model *m, int64_t bytes, void *out, struct err *e)
{
    void *p = m->k->backend->alloc(&m->ctx, bytes);
    if (!p) return kernels_no_memory(m->k, &m->ctx, "the weights in compute precision", bytes, e);
    memcpy(out, &p, sizeof p);
    m->memory.sampler += bytes;
    return TARE_OK;
}

/* Allocates all products as one block: single products are too small for huge pages, and every
 * token reads all of them from memory. */
static tare_status products_new(struct model *m, struct err *e)
{
    enum { CACHE_LINE = 64 /* bytes: a cache line */ };
    int64_t all = 0;
    char *at = NULL;
    for (int64_t i = 0; i < m->n_products; i++) {
        const int64_t bytes = model_product_bytes(m, &m->products[i]);
        if (bytes <= 0) FAIL(e, TARE_E_UNSUPPORTED, "the %s kernels do not support this model.dtype; use f32", m->k->name);
        all += (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    }
    TRY(copy_alloc(m, all, &at, e));
    for (int64_t i = 0; i < m->n_products; i++) {
        m->products[i].packed = at;
        at += (model_product_bytes(m, &m->products[i]) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    }
    return TARE_OK;
}

tare_status compute_copy_new(struct model *m, struct err *e)
{
    if (m->int8 && !m->k->int8_bytes)
        FAIL(e, TARE_E_UNSUPPORTED,
             "model.weights = int8: supported on the CPU only; set run.device = cpu, or model.weights = dtype");
    TRY(mem_new(m->shape.layers * (int64_t)sizeof *m->vectors, (void **)&m->vectors, e));
    TRY(products_new(m, e));
    if (is_apart(m)) TRY(copy_alloc(m, vector_floats(m) * (int64_t)sizeof(float), &m->vector_copy, e));
    if (m->lora) TRY(copy_alloc(m, m->shape.vocab * m->shape.hidden * (int64_t)sizeof(float), &m->lora->table, e));
    m->table = m->lora ? m->lora->table : model_is_whole(m) ? m->weights + m->embed : m->window[3].data;
    point_to_vectors(m);
    return TARE_OK;
}

void compute_copy_free(struct model *m)
{
    if (m->products && m->products[0].packed) m->k->backend->release(&m->ctx, m->products[0].packed);
    if (m->vector_copy) m->k->backend->release(&m->ctx, m->vector_copy);
    mem_free(m->vectors);
}

/* Copies the vectors of unit u from `whole`, as 1 + w with norm_plus_one. */
static tare_status copy_vectors(struct model *m, int64_t u, const float *whole, struct err *e)
{
    float *host = NULL;
    if (!is_apart(m)) return TARE_OK;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        if (!t->vector || t->unit != u) continue;
        const int64_t bytes = t->cols * (int64_t)sizeof(float);
        TRY(mem_new(bytes, (void **)&host, e));
        m->k->backend->download(&m->ctx, host, whole + t->offset - m->unit_begin[u], bytes);
        /* Such a family has no other vectors. */
        for (int64_t j = 0; m->shape.norm_plus_one && j < t->cols; j++) host[j] += 1.0f;
        m->k->backend->upload(&m->ctx, m->vector_copy + vector_place(m, i), host, bytes);
        mem_free(host);
    }
    return TARE_OK;
}

/* Packs W[n, k] of every product of unit u from `whole`. */
static void pack_unit(struct model *m, struct refresh_proof *proof, int64_t u, const float *whole)
{
    for (int64_t i = 0; i < m->n_products; i++) {
        const struct model_product *p = &m->products[i];
        if (p->unit != u) continue;
        KERNEL(m->k, &m->ctx, pack, .packed = p->packed, .w = whole + p->offset, .n = p->n, .k = p->k, .dtype = m->dtype,
               .int8 = p->int8);
        proof_refresh_copy(m, proof, p->packed, model_product_bytes(m, p));
    }
}

tare_status model_copy_unit(struct model *m, struct refresh_proof *proof, int64_t u, const float *whole, struct err *e)
{
    TRY(copy_vectors(m, u, whole, e));
    pack_unit(m, proof, u, whole);
    return TARE_OK;
}

/* Starts gathering unit u. With zero1 every rank holds the weights whole and has trained its
 * slices, so this gathers the slices of the other ranks. */
static tare_status gather_start(struct model *m, int64_t u, struct err *e)
{
    if (model_is_whole(m))
        return m->comm->gather_begin(m->comm, m->weights + shards_unit_own_weights(m, u),
                                     shards_unit_slice(m, u) * (int64_t)sizeof(float), m->weights + m->unit_begin[u], e);
    return shards_unit_prefetch(m, u, e);
}

/* Returns unit u, whole and up to date, and starts the transfer of the next one. */
static tare_status gather_unit(struct model *m, int64_t u, const float **whole, struct err *e)
{
    const bool sends = m->ranks > 1 && m->shard != SHARD_NONE;
    if (sends && u == shards_unit_first(m)) TRY(gather_start(m, u, e));
    if (sends && model_is_whole(m)) TRY(m->comm->gather_wait(m->comm, e));
    TRY(shards_unit_weights(m, u, whole, e));
    return sends && u + 1 < shards_unit_end(m) ? gather_start(m, u + 1, e) : TARE_OK;
}

/* Rebuilds the compute copy unit by unit, and proves it on several ranks. */
static tare_status refresh_units(struct model *m, struct refresh_proof *proof, struct err *e)
{
    TRY(proof_refresh_begin(m, proof, e));
    m->own_hash = proof_refresh_own(m, proof);
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++) {
        const float *whole;
        TRY(gather_unit(m, u, &whole, e));
        TRY(proof_gathered_fault(m, u, whole, e));
        proof_refresh_unit(m, proof, u, whole);
        if (m->lora)
            lora_pack(m, proof, u, whole);
        else
            TRY(model_copy_unit(m, proof, u, whole, e));
    }
    if (m->vector_copy && !m->lora) proof_refresh_copy(m, proof, m->vector_copy, vector_floats(m) * (int64_t)sizeof(float));
    TRY(proof_refresh_end(m, proof, &m->hash, e));
    return model_finish(m, e);
}

tare_status model_refresh(struct model *m, struct err *e)
{
    struct refresh_proof proof = {0};
    kernels_at(&m->ctx, "the compute copy of the weights", -1);
    m->version++;
    const tare_status status = refresh_units(m, &proof, e);
    proof_refresh_free(m, &proof);
    return status;
}
