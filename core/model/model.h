/* The policy: a decoder-only transformer (the families of hf_shape.c), its weights, and its forward
 * and backward pass.
 *
 * Forward and backward are written once, in transformer.c and backward.c, against the table of
 * kernels/kernels.h. Sampling and training run the same layer code on the same attention operation,
 * so for the same weights a logprob recorded while sampling is bit-identical to the one computed by
 * the update.
 *
 *   struct model_source source = {.folder = "runs/base", .config = &config, .kernels = kernels};
 *   model_open(&source, &m, e);
 *   model_forward(m, cache, &batch, scratch, &hidden, e);   hidden: [n_out, C] after the final norm
 *   model_logits(m, hidden, n, logits);                     logits: [n, V]
 *
 * A model with adapters (lora.h) has a frozen base, kept only in its inference copy: weights,
 * gradients and moments are those of the adapters.
 *
 * Letters as in kernels.h: T tokens, C width, H heads, J kv heads, D head width, F MLP width, V
 * vocabulary, L layers. */
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
/* Norms of attention and MLP: of their input, of their output, or of both. */
enum norms { NORMS_BEFORE, NORMS_AFTER, NORMS_BOTH };
/* over each head, or over all heads of a row together */
enum qk_norm { QK_NORM_NONE, QK_NORM_HEAD, QK_NORM_WHOLE };

struct rope_scaling { /* factor 0: none; original 0: linear, else llama3 */
    double factor, low, high, original;
};

enum { LAYER_SET = 256 };
struct layer_set { /* bit l is set if layer l is in the set */
    uint64_t bits[LAYER_SET / 64];
};
static inline bool layer_in(const struct layer_set *s, int64_t l)
{
    return l < LAYER_SET && s->bits[l / 64] >> (l % 64) & 1;
}

/* Defines the computation of a model. If every field below `tied` is 0 it is Llama. */
struct model_shape {
    enum arch arch;
    int64_t vocab, hidden, layers, heads, kv_heads, head_dim, intermediate, max_position;
    double rms_eps, rope_theta;
    struct rope_scaling scaling;
    bool tied;
    bool qkv_bias;
    bool fused; /* q, k, v are one tensor of the checkpoint, gate and up another */
    bool gelu;  /* activation of the MLP: tanh GELU; otherwise silu */
    bool norm_plus_one;
    enum norms norms;
    enum qk_norm qk_norm;
    int64_t rotary_dim;                /* elements of a head that are rotated; 0: all */
    int64_t window;                    /* of the layers in `sliding` (attn_shape of kernels.h); 0: none */
    double local_theta;                /* rope_theta of those layers; 0: rope_theta, scaled */
    struct layer_set sliding, no_rope; /* no_rope: layers without positions */
    /* 0 means 1, for attention_scale 1/sqrt(D). */
    double embed_scale, residual_scale, attention_scale, logits_divisor;
};

/* A tensor of the checkpoint and its place in the flat buffers. Weights, gradients and moments
 * share this layout. */
struct tensor {
    char name[96];              /* Hugging Face name */
    int64_t offset, rows, cols; /* floats; a vector has rows 1 */
    int unit;                   /* 0: embedding, 1..L: layers, L+1: final norm and head */
    bool vector;                /* stored with one dimension */
};

/* The flat layout in order: embedding | layer 0: q k v (and biases) o, gate up down, norms | ... |
 * final norm, head when untied. q, k, v are adjacent (one [(H+2J)D, C] product), gate and up too
 * ([2F, C]). Units start at multiples of 64 floats; on R ranks each is padded to R equal slices
 * (shards.h). */

/* The matrix products of a layer in the order of the layout; the head is the last product of a
 * model. */
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
struct layer_vectors { /* vectors read by the forward pass; NULL: absent */
    const float *qkv_bias, *norm1, *norm2, *after1, *after2, *q_norm, *k_norm;
};

/* dist.shard selects what a rank holds of the masters and of the moments: all of both (NONE), all
 * masters and its slice of the moments (ZERO1), or its slice of both (ZERO3). A window holds one
 * gathered unit (shards.h). */
struct unit_window {
    float *data;
    int64_t unit, version;
    bool pending;
    int64_t at; /* offset of its slices (moved.h) */
};
struct model_memory {   /* bytes of the backend's memory on this rank */
    int64_t parameters; /* fp32 masters */
    /* compute copy: packed products, the table of positions, and with zero3 embedding, norms and
     * biases */
    int64_t sampler;
    int64_t windows; /* currently gathered units */
};

struct model {
    struct model_shape shape;
    const struct kernels *k;
    struct kctx ctx;
    struct kernel_fault fault; /* of ctx */
    struct arena kernel_scratch;
    struct arena_source source; /* the backend's memory, where the host does not touch it */
    enum dtype dtype;           /* compute precision of products */
    /* Weights that are not trained are stored as int8 blocks with scales (exact.h); `lora` is then
     * set. */
    bool int8;
    struct tensor *tensors;
    int64_t n_tensors;
    struct comm *comm; /* the job's; NULL: one rank */
    int ranks, rank;
    enum shard shard;
    int64_t n_params;    /* floats in a flat buffer, padding included */
    int64_t n_own;       /* n_params / ranks: floats in a buffer of own slices */
    int64_t *unit_begin; /* [L+3] */
    /* [L+2] floats without the padding for ranks; floats of a block (shards.h) */
    int64_t *unit_size, *unit_block;
    int64_t embed, final_norm, head; /* offsets; head == embed when tied */
    struct layer_offsets *layers;    /* [L] */
    struct model_product *products;  /* [n_products] by layer and role, then the head */
    int64_t n_products;
    float *weights; /* fp32 masters: [n_params], or [n_own] with zero3 on several ranks */
    /* The compute copy, whole on every rank and made by model_refresh: products[i].packed and the
     * fields below. */
    const float *table;            /* [V, C] the embedding */
    struct layer_vectors *vectors; /* [L] */
    const float *final_norm_vector;
    /* Storage of the vectors with zero3, norm_plus_one or adapters; otherwise they point into the
     * weights. */
    float *vector_copy;
    struct unit_window window[4];
    struct moved_digests moved; /* units gathered since the last model_check_moved */
    /* The adapters trained instead of the weights (lora.h); rank 0: a frozen model. NULL: the
     * weights are trained. */
    struct lora *lora;
    bool is_view;        /* made by model_base_view */
    bool rope_theta_set; /* model.rope_theta overrides config.json */
    int64_t version;     /* of the weights; counts refreshes */
    uint64_t hash;       /* model_hash of that version, on several ranks */
    uint64_t own_hash;   /* hash of this rank's slices, on several ranks (proof.h, proof_weights_kept) */
    struct model_memory memory;
    /* [max_position, R] cos | sin, R = positions_rope_width (positions.h); rope_local is for the
     * layers of shape.sliding if local_theta is set. */
    float *rope, *rope_local;
    int32_t eos[16]; /* ids that end a completion (generation_config.json, config.json) */
    int64_t n_eos;
    char *config_json;     /* config.json as read, for writing back */
    char folder[4096];     /* folder that it was read from, for an adapter the base's; empty for a new model */
    enum dtype file_dtype; /* precision of the checkpoint that it was read from */
};

/* ---- layout.c: the product table */
const struct model_product *model_layer_product(const struct model *m, int64_t layer, enum product_role role);
const struct model_product *model_head(const struct model *m);

/* ---- model.c: opening, saving, freeing */
struct lora_spec;
struct model_source {
    const char *folder;                /* of a model, or of an adapter (adapter.h), which is opened with its base */
    const struct model_config *config; /* its overrides (rope_theta, max_position_embeddings, dtype) apply */
    const struct kernels *kernels;
    struct pool *pool; /* owned by the caller */
    /* The job's communicator, which must outlive the model; each rank reads what it holds. NULL:
     * one rank. */
    struct comm *comm;
    enum shard shard;
    const struct lora_spec *lora; /* put new adapters on the model; NULL, or rank 0: none */
    uint64_t seed;                /* for their initial values */
    bool trains;                  /* refuse an adapter's folder, and int8 weights without adapters */
};
/* Opens a model. Collective on several ranks. */
tare_status model_open(const struct model_source *source, struct model **out, struct err *e);
/* Allocates every buffer that model_open would for this source and shape, on a backend that counts
 * (kernels_counting); reads no file. */
tare_status model_counted(const struct model_source *source, const struct model_shape *shape, struct model **out, struct err *e);
/* Creates a model of the configuration's init_* shape with a vocabulary of that size: normal
 * weights of deviation 0.02 (residual outputs scaled by 1/sqrt(2L)), drawn from seed. Uses config,
 * kernels, pool, comm, shard and seed of the source. */
tare_status model_new(const struct model_source *source, int64_t vocab, const int32_t *eos, int64_t n_eos, struct model **out,
                      struct err *e);
/* Writes a folder that transformers loads: config.json, generation_config.json, model.safetensors
 * (sharded above 5 GB) and the tokenizer files of tokenizer_folder (NULL: none). The folder must
 * exist; the caller makes it atomic. Collective; rank 0 writes. */
tare_status model_save(struct model *m, const char *folder, enum dtype dtype, const char *tokenizer_folder, struct err *e);
/* Copies the files of a tokenizer that exist in `from`. */
tare_status model_copy_tokenizer(const char *from, const char *to, struct err *e);
/* Reads weights from another folder of the same shape into m. Call model_refresh afterwards. */
tare_status model_read_weights(struct model *m, const char *folder, struct err *e);
/* Rebuilds the compute copy from the weights; call it after every change of them. On several ranks
 * it is collective and verified: the hash of every rank's sampling weights must equal that of the
 * weights trained by their owners, else TARE_E_CORRUPT. */
tare_status model_refresh(struct model *m, struct err *e);
void model_free(struct model *m);
void model_free_at(struct model **m);
/* Returns the frozen base of m with its adapters off, for forward passes. It shares all memory with
 * m and must not outlive it. */
tare_status model_base_view(const struct model *m, struct model **out, struct err *e);
/* TARE_E_CONFIG if the checkpoint was written by a model that computes something else than m from
 * the same weights. */
tare_status model_check_folder(const struct model *m, const char *folder, struct err *e);
/* Returns XXH3 of the base of adapters; 0 if nothing is frozen. */
uint64_t model_frozen_hash(const struct model *m);
/* Checks that gathered units arrived as their owners hold them. Collective; TARE_E_CORRUPT names
 * the ranks. */
tare_status model_check_moved(struct model *m, struct err *e);
/* Computes XXH3 of the weights as bytes, unit by unit, equal for every number of ranks; on several
 * ranks as of the last refresh. */
tare_status model_hash(const struct model *m, uint64_t *out, struct err *e);
/* Applies run.deterministic: "batch_invariant" makes later forward operations batch-invariant
 * (kernels.h). */
void model_set_deterministic(struct model *m, enum deterministic deterministic);
/* Initialises an arena whose tensors (tensor_new) are in the memory of m's backend. m must outlive
 * it. */
void model_arena_init(const struct model *m, struct arena *a, const char *name);
/* Returns host bytes where operations can read them: the same pointer, or a copy in `staging` in
 * the backend's memory. */
const void *model_to_backend(const struct model *m, void *staging, const void *host, int64_t bytes);
/* Returns backend bytes where the host can read them: the same pointer, or a copy in `staging` in
 * host memory. */
const void *model_from_backend(const struct model *m, void *staging, const void *bytes_there, int64_t bytes);
/* Allocate the staging of the two: for model_from_backend in host memory (free it with mem_free),
 * for model_to_backend in a, an arena of model_arena_init. *out is NULL where none is needed. */
tare_status model_host_alloc(const struct model *m, int64_t bytes, void **out, struct err *e);
tare_status model_backend_alloc(const struct model *m, struct arena *a, int64_t bytes, void *out, struct err *e);
/* Waits for all operations of the backend and reports the first failure since the model was
 * made. */
tare_status model_finish(const struct model *m, struct err *e);
/* Fails with both numbers in the message if n is more positions than the model has. */
tare_status model_positions(const struct model *m, int64_t n, struct err *e);

/* ---- transformer.c */
struct kv_cache {
    struct kv_layer *layers; /* [n_layers] */
    int64_t n_layers, n_blocks;
};
/* Bytes of one layer's keys; its values take as many. */
int64_t kv_cache_bytes(const struct model *m, int64_t n_blocks);
tare_status kv_cache_new(const struct model *m, int64_t n_layers, int64_t n_blocks, struct kv_cache *out, struct err *e);
void kv_cache_free(const struct model *m, struct kv_cache *c);

/* T tokens of any number of sequences, packed. */
struct forward_batch {
    int64_t t;
    const int32_t *ids, *pos; /* [T] */
    /* [n_writes] key and value of row write_row[i] go to slot write_slot[i] (block*16 + lane); a
     * row may be listed more than once. */
    const int64_t *write_row, *write_slot;
    int64_t n_writes;
    bool row_by_row;             /* every row has one slot: n_writes is T and write_row[i] is i */
    const struct attn_seq *seqs; /* keys by cache block */
    int64_t n_seqs;
    bool out_all;            /* all rows, in order: n_out is T and out_rows[i] is i */
    const int64_t *out_rows; /* [n_out] rows for which the final norm is computed */
    int64_t n_out;
};
/* hidden[n_out, C] = the final norm of rows out_rows, allocated from scratch in the backend's
 * memory. The caller resets scratch; on a device it is made by model_arena_init. */
tare_status model_forward(struct model *m, struct kv_cache *cache, const struct forward_batch *b, struct arena *scratch,
                          float **hidden, struct err *e);
/* logits[n, V] = hidden[n, C] head^T */
void model_logits(struct model *m, const float *hidden, int64_t n, float *logits);

/* ---- backward.c. A training forward pass keeps the inputs of the backward pass in `acts`, a
 * separate arena that the caller resets. */
struct train_pass;
struct grads;
struct train_input {
    struct kv_cache *cache;
    const struct forward_batch *batch;
    const struct attn_seg *segs;
    int64_t n_segs;
    enum recompute recompute;
};
/* segs: the same sequences by rows (kernels.h). recompute: RECOMPUTE_NORMS keeps the outputs of
 * products and attention, RECOMPUTE_MLP those of attention only, RECOMPUTE_LAYER only each layer's
 * input; the backward pass recomputes the rest. The cache needs one layer with enough blocks. */
tare_status model_train_forward(struct model *m, const struct train_input *in, struct arena *acts, struct train_pass **pass,
                                float **hidden, struct err *e);
/* The calls for a micro-batch are model_backward_begin, model_logits_grad for the head rows (any
 * number of calls) and model_backward; the gradient is then in the sums of g (grads.h).
 * model_backward is collective; a rank without a micro-batch calls model_backward_idle instead. */
void model_backward_begin(struct model *m, struct grads *g);
struct logits_grad {
    const float *dlogits, *hidden; /* [n, V] and [n, C] */
    int64_t n;
    float *dhidden; /* [n, C], output */
};
/* Computes dhidden[n, C] (overwritten) and the head's gradient from dlogits[n, V]. */
void model_logits_grad(struct model *m, const struct logits_grad *x, struct grads *g);
/* dhidden: [n_out, C] */
tare_status model_backward(struct model *m, struct train_pass *pass, const float *dhidden, struct grads *g, struct err *e);
tare_status model_backward_idle(struct model *m, struct grads *g, struct err *e);

#endif
