/* The policy: a decoder-only transformer (the families of hf_shape.c), its weights, and its forward and backward pass.
 *
 * Forward and backward are written once, in transformer.c and backward.c, against the table of kernels/kernels.h. Sampling and training
 * run the same layer code on the same attention operation, so a logprob recorded while sampling and the one the update computes for the
 * same weights have the same bits.
 *
 *   model_open(&(struct model_source){.folder = "runs/base", .config = &config, .kernels = kernels}, &m, e);
 *   model_forward(m, cache, &batch, scratch, &hidden, e);          hidden: [n_out, C] after the final norm
 *   model_logits(m, hidden, n, logits);                             logits: [n, V]
 *
 * A model with adapters (lora.h) has a frozen base, of which there is only what forward passes read: weights, gradients and moments are the adapters'.
 *
 * Letters as in kernels.h: T tokens, C width, H heads, J kv heads, D head width, F MLP width, V vocabulary, L layers.
 */
#ifndef TARE_CORE_MODEL_MODEL_H
#define TARE_CORE_MODEL_MODEL_H

#include "base/arena.h"
#include "base/pool.h"
#include "config/config.h"
#include "dist/comm.h"
#include "kernels.h"
#include "model/moved.h"

#include <stdbool.h>

enum arch { ARCH_QWEN2, ARCH_LLAMA, ARCH_QWEN3, ARCH_MISTRAL, ARCH_PHI3, ARCH_GRANITE, ARCH_SMOLLM3, ARCH_OLMO2, ARCH_GEMMA3 };
enum norms { NORMS_BEFORE, NORMS_AFTER, NORMS_BOTH };       /* of attention and MLP: of what they get, of what they give */
enum qk_norm { QK_NORM_NONE, QK_NORM_HEAD, QK_NORM_WHOLE }; /* over a head, or over all heads of a row together */

struct rope_scaling { /* factor 0: none; original 0: linear, else llama3 */
    double factor, low, high, original;
};

enum { LAYER_SET = 256 };
struct layer_set { /* bit l: layer l is in it */
    uint64_t bits[LAYER_SET / 64];
};
static inline bool layer_in(const struct layer_set *s, int64_t l)
{
    return l < LAYER_SET && s->bits[l / 64] >> (l % 64) & 1;
}

/* What a model computes. 0 of everything below `tied` is Llama. */
struct model_shape {
    enum arch arch;
    int64_t vocab, hidden, layers, heads, kv_heads, head_dim, intermediate, max_position;
    double rms_eps, rope_theta;
    struct rope_scaling scaling;
    bool tied;
    bool qkv_bias;
    bool fused; /* q, k, v are one tensor of the checkpoint, gate and up another */
    bool gelu;  /* the MLP's activation: GELU by tanh; else silu */
    bool norm_plus_one;
    enum norms norms;
    enum qk_norm qk_norm;
    int64_t turned;                    /* elements of a head with positions; 0: all */
    int64_t window;                    /* of the layers of `sliding` (attn_shape of kernels.h); 0: none */
    double local_theta;                /* rope_theta of those layers; 0: rope_theta, scaled */
    struct layer_set sliding, no_rope; /* no_rope: without positions */
    double embed_scale, residual_scale, attention_scale, logits_divisor; /* 0: 1, of attention 1/sqrt(D) */
};

/* One tensor of the checkpoint: where it lies in the flat buffers (weights, gradients, moments all have this layout). */
struct tensor {
    char name[96];              /* Hugging Face name */
    int64_t offset, rows, cols; /* floats; a vector has rows 1 */
    int unit;                   /* 0: embedding, 1..L: layers, L+1: final norm and head */
    bool vector;                /* stored with one dimension */
};

/* The flat layout in order: embedding | layer 0: q k v (and biases) o, gate up down, norms | ... | final norm, head when untied.
 * q, k, v are adjacent (one [(H+2J)D, C] product), gate and up too ([2F, C]). Units start at multiples of 64 floats; on R ranks
 * each is padded to R equal slices (shards.h). */
enum product_role { PRODUCT_QKV, PRODUCT_OUT, PRODUCT_GATE_UP, PRODUCT_DOWN, PRODUCT_HEAD, LAYER_PRODUCTS = PRODUCT_HEAD };

/* A matrix product of the forward pass, y[T, n] = x[T, k] W[n, k]^T. */
struct model_product {
    int64_t id;             /* index in model.products and lora.groups */
    int64_t layer;          /* L for the head */
    enum product_role role; /* adapters can target every role but the head */
    int64_t n, k;
    int64_t unit, offset; /* of W: offset floats from the start of the unit in the base's flat layout */
    int64_t bias;         /* offset of the bias [n] in the same unit; -1: none */
    bool int8;            /* the compute copy is int8 blocks with scales */
    void *packed;         /* W in the compute copy */
};

struct layer_offsets { /* of vectors, from the start of the layer's unit; -1: absent */
    int64_t norm1, norm2, after1, after2, q_norm, k_norm;
};
struct layer_vectors { /* what the forward pass reads besides the packed products; NULL: absent */
    const float *qkv_bias, *norm1, *norm2, *after1, *after2, *q_norm, *k_norm;
};

/* dist.shard: what of the masters, and of the moments, a rank holds: all (NONE), all masters and its piece of the moments (ZERO1), its piece of both. */
struct unit_window { /* shards.h */
    float *data;
    int64_t unit, version;
    bool pending;
    int64_t at; /* of its pieces (moved.h) */
};
struct model_memory {   /* bytes of the backend's memory on this rank */
    int64_t parameters; /* fp32 masters */
    int64_t sampler;    /* the compute copy: packed products, and with zero3 embedding, norms, biases; the table of positions */
    int64_t windows;    /* units that are gathered at the moment */
};

struct model {
    struct model_shape shape;
    const struct kernels *k;
    struct kctx ctx;
    struct kernel_fault fault; /* of ctx */
    struct arena kernel_scratch;
    struct arena_source source; /* the backend's memory, where the host does not touch it */
    enum dtype dtype;           /* compute precision of products */
    bool int8;                  /* weights that are not trained are int8 by blocks with scales (exact.h); then `lora` is there */
    struct tensor *tensors;
    int64_t n_tensors;
    struct comm *comm; /* the job's; NULL: one rank */
    int ranks, rank;
    enum shard shard;
    int64_t n_params;                /* floats in a flat buffer, padding included */
    int64_t n_own;                   /* n_params / ranks: floats in a buffer of own pieces */
    int64_t *unit_begin;             /* [L+3] */
    int64_t *unit_size, *unit_block; /* [L+2] floats without the padding for ranks; of a block (shards.h) */
    int64_t embed, final_norm, head; /* offsets; head == embed when tied */
    struct layer_offsets *layers;    /* [L] */
    struct model_product *products;  /* [n_products] by layer and role, then the head (model_layer_product, model_head) */
    int64_t n_products;
    float *weights; /* fp32 masters: [n_params], or [n_own] with zero3 on several ranks */
    /* the compute copy, whole on every rank and made by model_refresh: products[i].packed and the fields below */
    const float *table;            /* [V, C] the embedding */
    struct layer_vectors *vectors; /* [L] */
    const float *final_norm_vector;
    float *vector_copy; /* with zero3 or norm_plus_one: where they lie; else they point into the weights */
    struct unit_window window[4];
    struct moved_sums moved; /* units that were gathered since the last model_check_moved */
    struct lora *lora;   /* lora.h: the adapters that are trained in place of the weights, or none on a frozen model; NULL: none */
    bool is_view;        /* model_base_view */
    bool rope_theta_set; /* by model.rope_theta, in place of config.json's */
    int64_t version;     /* of the weights; counts refreshes */
    uint64_t hash;       /* model_hash of that version, on several ranks */
    uint64_t own_hash;   /* of this rank's pieces of it, on several ranks (proof.h, proof_weights_kept) */
    struct model_memory memory;
    float *rope,
        *rope_local; /* [max_position, R] cos | sin, R = positions_rope_width; of the layers of shape.sliding where local_theta says so; positions.h */
    int32_t eos[16]; /* ids that end a completion (generation_config.json, config.json) */
    int64_t n_eos;
    char *config_json;     /* config.json as read, for writing back */
    char folder[4096];     /* where it came from, of an adapter its base's; empty for a new model */
    enum dtype file_dtype; /* of the checkpoint it came from */
};

/* ---- layout.c: the product table */
const struct model_product *model_layer_product(const struct model *m, int64_t layer, enum product_role role);
const struct model_product *model_head(const struct model *m);

/* ---- model.c: life, layout */
struct lora_spec;
struct model_source {
    const char *folder;                /* of a model, or of an adapter (adapter.h), which is opened with its base */
    const struct model_config *config; /* its overrides (rope_theta, max_position_embeddings, dtype) apply */
    const struct kernels *kernels;
    struct pool *pool; /* the caller keeps it */
    struct comm *comm; /* the job's, which must outlive the model; each rank reads what it holds. NULL: one rank */
    enum shard shard;
    const struct lora_spec *lora; /* new adapters are put on the model; NULL, or rank 0: none */
    uint64_t seed;                /* of their first values */
    bool trains;                  /* an adapter's folder is refused, and int8 weights without adapters */
};
/* Collective on several ranks. */
tare_status model_open(const struct model_source *source, struct model **out, struct err *e);
/* Every buffer that model_open would make of such a source and shape, on a backend that counts (kernels_counting); no file is read. */
tare_status model_counted(const struct model_source *source, const struct model_shape *shape, struct model **out, struct err *e);
/* A new model of the configuration's init_* shape for a vocabulary of that size: normal weights of deviation 0.02 (residual outputs scaled by 1/sqrt(2L)), drawn from seed. Of the source
 * config, kernels, pool, comm, shard and seed count. */
tare_status model_new(const struct model_source *source, int64_t vocab, const int32_t *eos, int64_t n_eos, struct model **out,
                      struct err *e);
/* Writes a folder that transformers loads: config.json, generation_config.json, model.safetensors (sharded above 5 GB) and the tokenizer files of
 * tokenizer_folder (NULL: none). The folder must exist; the caller makes it atomic. Collective; rank 0 writes. */
tare_status model_save(struct model *m, const char *folder, enum dtype dtype, const char *tokenizer_folder, struct err *e);
/* The files of a tokenizer, as far as they are there. */
tare_status model_copy_tokenizer(const char *from, const char *to, struct err *e);
/* Weights of another folder of the same shape into m; model_refresh comes after. */
tare_status model_read_weights(struct model *m, const char *folder, struct err *e);
/* Makes the compute copy again from the weights; after every change of them. On several ranks collective, and proven: what every rank samples from
 * has the hash of what the owners trained, else TARE_E_CORRUPT. */
tare_status model_refresh(struct model *m, struct err *e);
void model_free(struct model *m);
void model_free_at(struct model **m);
/* The frozen base of m with its adapters off, for forward passes: it shares all memory with m, and lives no longer. */
tare_status model_base_view(const struct model *m, struct model **out, struct err *e);
/* TARE_E_CONFIG: the checkpoint was written by a model that computes something else than m for the same weights. */
tare_status model_check_folder(const struct model *m, const char *folder, struct err *e);
/* XXH3 of the base of adapters; 0 where nothing is frozen. */
uint64_t model_frozen_hash(const struct model *m);
/* Whether the units that were gathered arrived as their owners have them. Collective; TARE_E_CORRUPT names the ranks. */
tare_status model_check_moved(struct model *m, struct err *e);
/* XXH3 of the weights as bytes, unit by unit, the same for every number of ranks; on several ranks as of the last refresh. */
tare_status model_hash(const struct model *m, uint64_t *out, struct err *e);
/* run.deterministic: with "batch_invariant" forward operations from here on (kernels.h). */
void model_set_deterministic(struct model *m, enum deterministic deterministic);
/* An arena whose tensors (tensor_new) lie in the memory of m's backend. m outlives it. */
void model_arena_init(const struct model *m, struct arena *a, const char *name);
/* Host bytes where operations may read them: themselves, or a copy in `room` of the backend's memory. */
const void *model_to_backend(const struct model *m, void *room, const void *host, int64_t bytes);
/* Bytes of the backend where the host may read them: themselves, or a copy in `room` of the host's memory. */
const void *model_from_backend(const struct model *m, void *room, const void *bytes_there, int64_t bytes);
/* The room of the two: model_from_backend's on the host (mem_free gives it back), model_to_backend's in a, an arena of model_arena_init's. NULL where none is
 * needed. out: where the pointer goes. */
tare_status model_host_alloc(const struct model *m, int64_t bytes, void **out, struct err *e);
tare_status model_backend_alloc(const struct model *m, struct arena *a, int64_t bytes, void *out, struct err *e);
/* Waits for what was asked of the backend and reports the first failure since the model was made. */
tare_status model_finish(const struct model *m, struct err *e);
/* More positions than the model has are an error that names both numbers. */
tare_status model_positions(const struct model *m, int64_t n, struct err *e);

/* ---- transformer.c */
struct kv_cache {
    struct kv_layer *layers; /* [n_layers] */
    int64_t n_layers, n_blocks;
};
/* Bytes of one layer's keys (its values need as many). */
int64_t kv_cache_bytes(const struct model *m, int64_t n_blocks);
tare_status kv_cache_new(const struct model *m, int64_t n_layers, int64_t n_blocks, struct kv_cache *out, struct err *e);
void kv_cache_free(const struct model *m, struct kv_cache *c);

/* T tokens of any number of sequences, packed. */
struct forward_batch {
    int64_t t;
    const int32_t *ids, *pos; /* [T] */
    const int64_t *write_row,
        *write_slot; /* [n_writes] which row's key and value go to which slot (block*16 + lane); a row may be listed often */
    int64_t n_writes;
    bool row_by_row;             /* every row has one slot: n_writes is T and write_row[i] is i */
    const struct attn_seq *seqs; /* keys by cache block */
    int64_t n_seqs;
    bool out_all;            /* all of them, in order: n_out is T and out_rows[i] is i */
    const int64_t *out_rows; /* [n_out] rows whose output of the final norm is wanted */
    int64_t n_out;
};
/* hidden: [n_out, C], in scratch (the backend's memory). Scratch is not reset here; made by model_arena_init where the backend is a device. */
tare_status model_forward(struct model *m, struct kv_cache *cache, const struct forward_batch *b, struct arena *scratch,
                          float **hidden, struct err *e);
/* logits[n, V] = hidden[n, C] head^T */
void model_logits(struct model *m, const float *hidden, int64_t n, float *logits);

/* ---- backward.c. A training forward keeps what the backward pass needs in `acts` (an arena of its own, reset by the caller). */
struct train_pass;
struct grads;
struct train_input {
    struct kv_cache *cache;
    const struct forward_batch *batch;
    const struct attn_seg *segs;
    int64_t n_segs;
    enum recompute recompute;
};
/* segs: the same sequences by rows (kernels.h). recompute: RECOMPUTE_NORMS keeps what products and attention give, RECOMPUTE_MLP that of attention alone,
 * RECOMPUTE_LAYER only each layer's input; the rest is computed again in the backward pass. The cache needs one layer with enough blocks. */
tare_status model_train_forward(struct model *m, const struct train_input *in, struct arena *acts, struct train_pass **pass,
                                float **hidden, struct err *e);
/* A micro-batch: model_backward_begin, model_logits_grad for the head rows (in any number of calls), model_backward; its gradient is then in the sums of
 * g (grads.h). The last is collective; a rank without a micro-batch calls model_backward_idle in its place. */
void model_backward_begin(struct model *m, struct grads *g);
struct logits_grad {
    const float *dlogits, *hidden; /* [n, V] and [n, C] */
    int64_t n;
    float *dhidden; /* [n, C], made here */
};
/* From dlogits[n, V]: dhidden[n, C] (overwritten), the head's gradient */
void model_logits_grad(struct model *m, const struct logits_grad *x, struct grads *g);
/* dhidden: [n_out, C] */
tare_status model_backward(struct model *m, struct train_pass *pass, const float *dhidden, struct grads *g, struct err *e);
tare_status model_backward_idle(struct model *m, struct grads *g, struct err *e);

#endif
