/* kernels: the table of operations that the model, the sampler and the optimizer are written against. A backend fills it:
 * kernels/ref defines every operation in plain C, kernels/cpu overrides it for AVX2 and AVX-512, kernels/cuda is a shared object
 * of its own.
 *
 * Memory. Every pointer that an operation gets is the backend's memory (alloc): tensors, index arrays, rows of arguments, results. A device's memory
 * the host must not touch; upload and download reach it. Only descriptors of sequences (attn_seq and attn_seg arrays, and the block lists that they
 * point to) are host memory, read before the operation returns.
 *
 * Failures. Operations return nothing. The first failure of a context stays in its fault, later operations on it do nothing, and the code that
 * walks through a pass asks kernels_finish at its end.
 *
 * Letters: T tokens (rows), C width, H query heads, J key/value heads, D head width, F MLP width, V vocabulary. Row-major.
 *
 * Numbers. Every forward operation is batch-invariant by construction: one output is computed in one order that does not depend on
 * how many rows there are, how they are cut into tiles, or how many threads run.
 *   - A product sums over its inner index k = 0, 1, 2, ... in one chain acc = fma(x[k], w[k], acc) from 0, then adds bias, then residual.
 *     The chain is the definition: ref, AVX2 and AVX-512 give the same bits in fp32.
 *   - A row reduction (sum of squares, sum of exponentials) runs in 16 lanes, lane l taking elements l, l+16, ... in order, then the
 *     lanes are added in the fixed tree  8+8 -> 4+4 -> 2+2 -> 1+1  (lane l with lane l+8, then l+4, l+2, l+1).
 *   - exp and log are our own polynomials, the same sequence of operations in every implementation.
 * Backward operations are deterministic for any thread count: sums over tokens run in row order, never split between threads.
 */
#ifndef TARE_KERNELS_KERNELS_H
#define TARE_KERNELS_KERNELS_H

#include "base/err.h"
#include "base/pool.h"

#include <stdbool.h>
#include <stdint.h>

enum dtype { DTYPE_F32 = 0, DTYPE_BF16 = 1, DTYPE_F16 = 2 };
enum { KV_BLOCK = 16 }; /* keys in a block of the key/value cache */
/* Logits in a chunk of head rows. The head's weights and gradient are read once a chunk, so large chunks are faster; but they take memory. */
enum { HOST_LOGITS_FLOATS = 32 << 20, DEVICE_LOGITS_FLOATS = 160 << 20 };

/* The first failure on a context: which operation on what shapes, and what the machine said. stage and layer are where the caller is. */
struct kernel_fault {
    tare_status code;  /* TARE_OK: none */
    const char *stage; /* "forward pass", ...; a literal */
    int64_t layer;     /* -1: in none */
    char message[700];
};

/* What an operation runs on. */
struct kctx {
    struct pool *pool;          /* CPU threads; NULL: the calling thread */
    void *stream;               /* CUDA; NULL: the process's own */
    struct arena *scratch;      /* owned by the context; operations may use and must give back by arena_reset on return */
    struct kernel_fault *fault; /* owned by the caller; NULL: failures are only logged */
    int batch_invariant;        /* forward operations give a row the same bits in every batch, at some cost; the CPU's always do */
};

/* Where the caller is, for the message of a failure. */
static inline void kernels_at(const struct kctx *c, const char *stage, int64_t layer)
{
    if (!c->fault || c->fault->code) return;
    c->fault->stage = stage;
    c->fault->layer = layer;
}

/* Keys and values of one layer, in blocks of 16 keys. A sequence's key j lives in block blocks[j / 16], lane j % 16.
 *   k: [n_blocks, J, D, 16] (transposed: 16 keys side by side)      v: [n_blocks, J, 16, D]
 * unless the backend decides otherwise (kv_bytes). */
struct kv_layer {
    float *k, *v;
};

/* One sequence's queries in a batch. Query i (row q_begin + i) is at position pos + i and sees keys 0 .. pos + i.
 *
 * shared: its leading keys, in whole blocks, that others may have in common with it (those of its prompt), whether they are in the batch or not. A backend
 * that cuts a single query's keys may cut there, and then the sums of a sequence do not depend on who else is in the batch. 0: nothing is read together. */
struct attn_seq {
    int64_t q_begin, q_len, pos;
    const int32_t *blocks; /* [ceil((pos + q_len) / 16)] */
    int64_t shared;
};

/* The same for the backward pass, by rows of the batch: its keys are rows prefix_begin .. +prefix_len-1, then its own rows up to itself.
 * prefix_len is also the position of its first query. Sequences that share a prefix are neighbours in the array. */
struct attn_seg {
    int64_t q_begin, q_len, prefix_begin, prefix_len;
};

struct attn_shape {
    int64_t heads, kv_heads, head_dim; /* H, J, D */
    int64_t stride;                    /* floats in a row of qkv: (H + 2J) D */
    float scale;                       /* 1/sqrt(D) */
    enum dtype dtype;                  /* of the model's products; a backend may keep keys and values in it (kv_bytes) */
    int64_t window;                    /* the query at position p sees keys above p - window; 0: all up to its own */
};

/* Arguments of sampling for one row. Truncation is applied in the order top-k, top-p, min-p, all on the softmax at temperature. */
struct sample_row {
    uint32_t key[2];                 /* Philox key of (run seed, purpose, step, prompt, occurrence, rollout) */
    uint64_t position;               /* counter */
    float temperature, top_p, min_p; /* temperature 0: greedy (ties to the lowest id). top_p 1, min_p 0: off */
    int32_t top_k;                   /* 0: off */
};

/* Gradient of the loss with respect to one head row, as coefficients:
 *   dL/dz = logprob * dlogp/dz + entropy * dH/dz + kl * dKL/dz,   z the logits before division by the temperature. */
struct head_grad_row {
    float logprob, entropy, kl;
};

/* ---- decoding on the device. A session keeps running sequences in fixed places of the backend's memory: the operations of one token are issued on
 * those places once and then replayed, the token that is drawn is the next one's input, and the host hears of it after `tokens` of them. */
struct decode_row {         /* a running sequence */
    int32_t token, pos;     /* its newest token, whose key is not in the cache yet; its position */
    int32_t left;           /* tokens that may still be drawn, at least 1 */
    int32_t shared;         /* as in attn_seq */
    const int32_t *blocks;  /* [ceil((pos + min(tokens, left)) / 16)] */
    struct sample_row draw; /* of the next token; position counts on */
};

struct decode_load {
    const struct decode_row *rows; /* [n]; sequences that share leading blocks are neighbours */
    int64_t n, tokens;             /* 1 .. DECODE_TOKENS */
    const int32_t *stop;           /* ids that end a sequence; it draws no more then */
    int64_t n_stop;
    struct attn_shape shape;
    uint64_t
        addresses; /* a hash of those of the tensors that are issued: under another one nothing is replayed that was recorded before */
};
enum { DECODE_TOKENS = 64 };

/* The places, in the backend's memory, for the batch that is issued: `rows` rows, of which the first n are sequences and the rest write nothing. */
struct decode_places {
    int64_t rows;
    const int32_t *ids, *pos;                         /* [rows] */
    const int64_t *write_row, *write_slot, *out_rows; /* [rows]; a slot below 0: nothing is written */
    const struct sample_row *draw;                    /* [rows] */
    int32_t *token;                                   /* [rows] where the operation `sample` has to leave its results */
    float *logprob, *entropy;
};
struct decode; /* a session */

/* What alloc has handed out, and what it has left, in bytes; see reserve. */
struct kernel_memory {
    int64_t region, held, most;  /* of the region: all, handed out, the most ever handed out. region 0: none was reserved */
    int64_t largest;             /* of the region: the largest piece that is free */
    int64_t beyond, beyond_most; /* taken from the device beside the region; the most ever, since reserve */
    const char *beyond_stage;    /* where the caller was when something first was (kernels_at); NULL: nothing was */
    int64_t taken;               /* how often the device itself was asked since reserve, the region included */
    int64_t device;              /* what the device has left beside the region */
};

/* ---- the operations, each with its arguments. Pointers are the backend's memory unless it says otherwise. */

/* Products.  W [N,K] row-major as in a checkpoint; packed: the backend's own layout in compute precision (packed_bytes), made again after an update */
struct op_pack {
    void *packed;
    const float *w;
    int64_t n, k;
    enum dtype dtype;
    int int8; /* 1: in int8 by blocks with scales (int8_bytes, exact.h); all of w is finite */
};

/* y[T,N] = x[T,K] W^T (+ bias[N]) (+ residual[T,N]). DTYPE_BF16: x is rounded to bf16 (nearest even) first, products and sums are in fp32; a
 * chain on the CPU takes pairs of the inner index, the odd one first (ref/matmul.c).
 *
 * x_dtype, y_dtype, ...: how rows lie in memory, here and below. DTYPE_BF16 only where the table says bf16_rows: whoever makes the rows has then rounded
 * them already, and a product has the same bits. */
struct op_matmul {
    float *y;
    const void *x;
    const void *packed;
    const float *bias, *residual; /* or NULL; residual may be y */
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype x_dtype;
    int int8; /* as packed is */
};

/* dx[T,K] = dy[T,N] W[N,K], W as matmul reads it. DTYPE_BF16: dy is rounded as x is there. */
struct op_matmul_dx {
    float *dx;
    const void *dy;
    const void *packed;
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype dy_dtype;
    int int8; /* as packed is */
};

/* dw[N,K] += dy[T,N]^T x[T,K];  dbias[N] += sum_t dy */
struct op_matmul_dw {
    float *dw, *dbias; /* dbias or NULL; where there is one dy is fp32, and its sum is not one of rounded terms */
    const void *dy, *x;
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype dy_dtype;
    enum dtype x_dtype;
};

/* Products of a low rank beside a product of the layers (LoRA): A_p [rank, k] and B_p [n_p, rank] of some parts p of y's columns. Every product is a chain
 * of its own, so this is the same as each of them alone and then their sum.
 *   y = x W^T (+ bias) (+ residual), then y[:, columns of p] += u_p B_p^T,    u_p = s (x A_p^T)
 *   dx = dy W, then dx += d A,    d_p = s (dy[:, columns of p] B_p)
 *   dB_p += dy[:, columns of p]^T u_p;    dA += d^T x */
enum { LOW_RANK_PARTS = 3 };
struct low_rank {
    const void *a;                                    /* the A's one after the other, packed as [parts * rank, k] */
    const void *b[LOW_RANK_PARTS];                    /* packed */
    int64_t begin[LOW_RANK_PARTS], n[LOW_RANK_PARTS]; /* columns; begin grows */
    int64_t parts, rank;
    float scale;
};

struct op_matmul_low_rank {
    struct op_matmul product;
    struct low_rank beside;
    float *u; /* [t, parts * rank] or NULL */
};

struct op_matmul_dx_low_rank {
    struct op_matmul_dx product; /* packed; dx NULL: d alone is wanted */
    struct low_rank beside;
    float *d; /* [t, parts * rank] */
};

struct op_low_rank_dw {
    float *da, *db[LOW_RANK_PARTS];
    const float *u, *d;
    const void *dy, *x;
    struct low_rank beside; /* a and b are not read */
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype x_dtype; /* dy is fp32 */
    int apart;          /* 1: as matmul_dw_apart */
};

/* Embedding.  x[t,:] = table[ids[t],:];  dtable[ids[t],:] += dx[t,:] */
struct op_embed {
    float *x;
    const float *table;
    const int32_t *ids;
    int64_t t, width;
};

struct op_embed_grad {
    float *dtable;
    const float *dx;
    const int32_t *ids;
    int64_t t, width;
};

/* RMSNorm.  rms[t] = 1/sqrt(mean_c x^2 + eps);  y = x * rms * w. Row r of x and y starts at r*ld floats (for q/k norms inside qkv: t*heads rows
 * are addressed as row (t, h) at t*ld + h*width). heads = 1 for a plain norm. y may be x; in bf16 it lies elsewhere, its rows too at ld elements. */
struct op_rmsnorm {
    void *y;
    float *rms; /* [t*heads] or NULL */
    const float *x, *w;
    int64_t ld, t, heads, width;
    float eps;
    enum dtype y_dtype;
};

/* dx (+)= ..., dw += ...; x is the norm's input. Rows of dx, dy and x alike are ld floats apart; dx may be dy. */
struct op_rmsnorm_grad {
    float *dx, *dw; /* dw or NULL */
    const float *dy, *x, *w, *rms;
    int64_t ld, t, heads, width;
    int accumulate; /* into dx */
};

/* Rotary embedding, half-split form, in place on n_heads heads at the start of each row of x (ld floats apart): of the first R = turned elements of a
 * head, pair (i, i + R/2) is turned by the angle whose cos and sin are table[pos[t]*R + i], table[pos[t]*R + R/2 + i]; the others stay. */
struct op_rope {
    float *x;
    const float *table;
    const int32_t *pos;
    int64_t ld, t, n_heads, head_dim;
    int inverse;    /* 1: the transpose (backward) */
    int64_t turned; /* 0: the whole head */
};

/* Key/value cache. Token rows[i] of qkv goes to slot slots[i] = block*16 + lane; a row may be listed several times */
struct op_kv_write {
    struct kv_layer kv;
    const float *qkv;
    struct attn_shape shape;
    const int64_t *rows, *slots;
    int64_t n;
};

/* Block from[i] to block to[i], in order */
struct op_kv_copy {
    struct kv_layer kv;
    struct attn_shape shape;
    const int32_t *to, *from;
    int64_t n;
};

/* Attention. For query row t and head h (key/value head h*J/H), over the keys j that it sees:  s_j = scale * (chain over d of q_d k_jd);  m = max_j s_j;
 * p_j = exp(s_j - m);  l = sum_j p_j in 16 lanes (lane j%16);  out_d = (chain over j = 0, 1, ... of p_j v_jd) / l. */
struct op_attention {
    void *out;    /* [T, H*D] */
    float *stats; /* [T, H, 2] = m, l for the backward pass, or NULL */
    const float *qkv;
    struct kv_layer kv;
    struct attn_shape shape;
    const struct attn_seq *seqs; /* [n_seqs], host memory */
    int64_t n_seqs;
    enum dtype out_dtype;
};

/* dqkv[T, stride] = gradient for q, k, v of the rows of all segments (overwritten, zero where nothing arrives). With DTYPE_BF16 q, k, v and out are
 * rounded to bf16 first, as attention and the product of its output read them. */
struct op_attention_grad {
    float *dqkv;
    const float *dout, *stats;
    const void *out, *qkv;
    struct attn_shape shape;
    const struct attn_seg *segs; /* [n_segs], host memory */
    int64_t n_segs, t;
    enum dtype out_dtype;
    enum dtype qkv_dtype;
};

/* Gated MLP. gu[T,2F] = gate | up;  act = gate s(h) * up,  s the logistic function. silu: h = gate. gelu: h = 2 sqrt(2/pi) (gate + 0.044715 gate^3),
 * which is GELU by tanh, since (1 + tanh u)/2 = s(2u). DTYPE_BF16: gate and up are rounded to bf16 (nearest even) first, which changes nothing where they
 * lie so. */
struct op_swiglu {
    void *act;
    const void *gu;
    void *kept; /* [T,2F] gu in bf16, for the backward pass; NULL: not wanted, and always without bf16_rows */
    int64_t t, f;
    int gelu; /* 0: silu */
    enum dtype dtype;
    enum dtype act_dtype;
    enum dtype gu_dtype;
};

struct op_swiglu_grad {
    void *dgu;
    const float *dact;
    const void *gu;
    int64_t t, f;
    int gelu;
    enum dtype dtype;
    enum dtype dgu_dtype;
    enum dtype gu_dtype;
};

/* Head. logits [R,V]; p = softmax(logits / temperature).
 * logprob[r] = log p[target[r]];  entropy[r] = -sum p log p;  lse[r] = m, log sum exp(z/temperature - m) as a pair [R,2] */
struct op_head_stats {
    float *logprob, *entropy, *lse; /* entropy or NULL */
    const float *logits;
    const int32_t *target;
    float temperature;
    int64_t r, v;
};

/* kl[r] = sum_v p (log p - log q), q the softmax of ref_logits at the same temperature; lse, ref_lse from head_stats */
struct op_head_kl {
    float *kl;
    const float *logits, *lse, *ref_logits, *ref_lse;
    float temperature;
    int64_t r, v;
};

/* logits <- dL/dlogits in place. entropy, kl: [R] from above (kl, ref_logits, ref_lse NULL when no row has a kl coefficient) */
struct op_head_grad {
    float *logits;
    const int32_t *target;
    const float *lse, *entropy, *ref_logits, *ref_lse, *kl;
    const struct head_grad_row *coef;
    float temperature;
    int64_t r, v;
};

/* token[r] drawn from row r; logprob[r], entropy[r] of the softmax at temperature before any truncation (greedy: at temperature 1) */
struct op_sample {
    int32_t *token;
    float *logprob, *entropy; /* entropy or NULL */
    const float *logits;
    int64_t ld; /* floats from a row of logits to the next; 0: all rows draw from one */
    const struct sample_row *rows;
    int64_t r, v;
};

/* y[t*ldy + j] (+)= scale * x[t*ldx + j], j < n: some columns of rows into columns of other rows. y may be x where ldy is ldx. */
struct op_add_columns {
    float *y;
    const float *x;
    int64_t ldy, ldx, t, n;
    float scale;
    int accumulate; /* into y */
};

/* y += x */
struct op_add {
    float *y;
    const float *x;
    int64_t n;
};

/* y = x in bf16, nearest even */
struct op_to_bf16 {
    void *y;
    const float *x;
    int64_t n;
};

/* y[i] = x[rows[i]] */
struct op_gather_rows {
    float *y;
    const float *x;
    const int64_t *rows;
    int64_t n, width;
};

/* y[rows[i]] += x[i], in order */
struct op_scatter_add_rows {
    float *y;
    const float *x;
    const int64_t *rows;
    int64_t n, width;
};

/* out[i] = sum of squares of x[i * block ..], ceil(n / block) of them. In double; the parts of 4096 elements of a block are added in order */
struct op_sum_squares {
    double *out;
    const float *x;
    int64_t n, block;
};

/* g' = g * grad_scale; p -= lr*decay*p; m = beta1 m + (1-beta1) g'; v = beta2 v + (1-beta2) g'^2; p -= lr * (m/correct1) / (sqrt(v/correct2) + eps)
 * with correct1 = 1 - beta1^step, correct2 = 1 - beta2^step */
struct op_adamw {
    float *p, *m, *v;
    const float *g;
    int64_t n;
    float grad_scale, lr, beta1, beta2, eps, decay;
    double correct1, correct2;
};

/* *out += the sum over i of digest_word(word i, first + i) (exact.h), modulo 2^64: 32-bit words, little end first, the last one filled up with zeros.
 * The order of a sum does not matter, and the digest of an array is the sum of its pieces' (first: where a piece begins, in words). */
struct op_digest {
    uint64_t *out;
    const void *data; /* aligned to 4 bytes */
    int64_t bytes, first;
};

/* X(NAME) of every operation that all backends have */
#define KERNEL_OPERATIONS(X)                                                                                                       \
    X(pack)                                                                                                                        \
    X(matmul)                                                                                                                      \
    X(matmul_dx)                                                                                                                   \
    X(matmul_dw)                                                                                                                   \
    X(embed)                                                                                                                       \
    X(embed_grad)                                                                                                                  \
    X(rmsnorm)                                                                                                                     \
    X(rmsnorm_grad)                                                                                                                \
    X(rope)                                                                                                                        \
    X(kv_write)                                                                                                                    \
    X(kv_copy)                                                                                                                     \
    X(attention)                                                                                                                   \
    X(attention_grad)                                                                                                              \
    X(swiglu)                                                                                                                      \
    X(swiglu_grad)                                                                                                                 \
    X(head_stats)                                                                                                                  \
    X(head_kl)                                                                                                                     \
    X(head_grad)                                                                                                                   \
    X(sample)                                                                                                                      \
    X(add)                                                                                                                         \
    X(add_columns)                                                                                                                 \
    X(to_bf16)                                                                                                                     \
    X(gather_rows)                                                                                                                 \
    X(scatter_add_rows)                                                                                                            \
    X(sum_squares)                                                                                                                 \
    X(adamw)                                                                                                                       \
    X(digest)

/* Where operations run: its memory and its queue. Transfers: after upload the host's bytes may change; after download they are there. */
struct backend {
    int device;            /* 1: the host must not touch alloc's memory, and operations run without the host until finish */
    int counts;            /* 1: alloc counts; the tensors that a pass needs for a moment are taken from it too */
    int64_t logits_floats; /* how many logits a chunk of head rows is to have */
    /* Waits for everything that was asked for; a failure of it is in c->fault then. NULL: operations are done when they return. */
    void (*finish)(const struct kctx *c);
    void *(*alloc)(const struct kctx *c, int64_t bytes); /* zeroed, 64-byte aligned; NULL when there is none */
    void (*release)(const struct kctx *c, void *p);
    void (*upload)(const struct kctx *c, void *dst, const void *host, int64_t bytes);
    void (*download)(const struct kctx *c, void *host, const void *src, int64_t bytes);
    void (*zero)(const struct kctx *c, void *p, int64_t bytes);
    /* Bytes that a key/value cache without a size from the user may take: half of what a device has left, a quarter of the host's memory */
    int64_t (*cache_most)(const struct kctx *c);
    /* The rest is a device's; NULL on the host. memory: bytes that alloc has still to give, about */
    int64_t (*memory)(const struct kctx *c);
    /* Takes one region of the device's memory, once a process; from then on alloc and the operations' own memory are pieces of it. What does not
     * fit into the region is taken from the device beside it, and counted. 0: the device has not that many bytes in one piece, or there is a region
     * with pieces handed out; an empty one is given back for the new one (bytes 0: for none). */
    int (*reserve)(const struct kctx *c, int64_t bytes);
    void (*memory_use)(const struct kctx *c, struct kernel_memory *out);
    /* The stream of the device that operations are issued to, for whoever orders transfers after them; NULL: there is none */
    void *(*stream)(const struct kctx *c);
    /* A line about what was found out on this device and decides how its operations go; finds it out where that has not been done, which takes a moment. 0:
     * somebody should know. NULL: there is nothing to say */
    int (*about)(const struct kctx *c, char *text, int64_t size);
};

struct kernels {
    const char *name; /* "ref", "avx2", "avx512", "cuda" */
    const struct backend *backend;

    /* The operations of KERNEL_OPERATIONS: void NAME(const struct kctx *, const struct op_NAME *) */
#define KERNEL_ENTRY(NAME) void (*NAME)(const struct kctx *c, const struct op_##NAME *o);
    KERNEL_OPERATIONS(KERNEL_ENTRY)
#undef KERNEL_ENTRY

    int windows; /* 1: attention and its gradient go by attn_shape.window; 0: it has to be 0 */
    int bf16_rows; /* 1: operations that make rows can write them in bf16, and products read them so (op_matmul); 0: all rows are fp32 */
    int64_t (*packed_bytes)(int64_t n, int64_t k, enum dtype dtype); /* of packed weights; 0: there are none of this dtype */
    /* The same of weights in int8; NULL: there are none, and `int8` of the operations has to be 0 */
    int64_t (*int8_bytes)(int64_t n, int64_t k, enum dtype dtype);
    /* Bytes of k (v needs as many) for n_blocks blocks of the key/value cache; NULL: fp32 in the layout of struct kv_layer. A backend that has
     * this decides precision and layout, and only its own operations read k and v. */
    int64_t (*kv_bytes)(struct attn_shape s, int64_t n_blocks);
    /* Rows are fp32, W packed. NULL, all three: the caller makes them of the operations above */
    void (*matmul_low_rank)(const struct kctx *c, const struct op_matmul_low_rank *o);
    void (*matmul_dx_low_rank)(const struct kctx *c, const struct op_matmul_dx_low_rank *o);
    void (*low_rank_dw)(const struct kctx *c, const struct op_low_rank_dw *o);
    /* matmul_dw, but a sum over t is a chain of its own, from 0, which is then added to dw: the bits of matmul_dw into zeros and `add`. dbias as
     * there. NULL: the caller does those two. */
    void (*matmul_dw_apart)(const struct kctx *c, const struct op_matmul_dw *o);

    /* Two operations in one launch: rope of the rows of `turn`, not inverse, then keys and values of the same rows into the cache, row i to slots[i]
     * (write.n is turn.t, and write.rows[i] is i). The bits of the two. NULL: the caller does them. */
    void (*rope_kv_write)(const struct kctx *c, const struct op_rope *turn, const struct op_kv_write *write);
    /* A product without residual and swiglu of its result: product.n is 2 act.f, act.gu is product.y, act.kept NULL. The bits of the two; what y holds afterwards is not
     * said. NULL: the caller does them. */
    void (*matmul_swiglu)(const struct kctx *c, const struct op_matmul *product, const struct op_swiglu *act);
    /* A product and rmsnorm of its result: norm.x is product.y, norm.heads 1, norm.width and norm.ld are product.n. The bits of the two. NULL: the caller
     * does them. */
    void (*matmul_rmsnorm)(const struct kctx *c, const struct op_matmul *product, const struct op_rmsnorm *norm);

    /* ---- decoding on the device; all NULL where the host issues every token. One session of a context at a time.
     *   decode_load(c, d, &load, &places);
     *   for each of load.tokens: if (decode_begin(c, d)) { ... the model on places, attention with no sequences, sample ...; decode_end(c, d); }
     *   decode_read(c, d, token, logprob, entropy);
     * Results are [tokens, n]; after the end of a sequence the token is -1. Tensors that are issued keep their addresses from a load to its read;
     * the next load says with `addresses` whether one has moved since. */
    struct decode *(*decode_open)(const struct kctx *c); /* NULL: no memory */
    void (*decode_close)(const struct kctx *c, struct decode *d);
    void (*decode_load)(const struct kctx *c, struct decode *d, const struct decode_load *load, struct decode_places *places);
    int (*decode_begin)(const struct kctx *c, struct decode *d); /* 0: the token was replayed, there is nothing to issue */
    void (*decode_end)(const struct kctx *c, struct decode *d);
    void (*decode_read)(const struct kctx *c, struct decode *d, int32_t *token, float *logprob, float *entropy); /* waits */
};

/* An operation with its arguments by name, those that are left out 0 or NULL:  KERNEL(k, c, add, .y = y, .x = x, .n = n); */
#define KERNEL(K, C, NAME, ...) (K)->NAME((C), &(struct op_##NAME){__VA_ARGS__})

/* The fastest table this CPU can run; TARE_CPU=ref|avx2|avx512|avx512bf16|amx (or name, when not NULL) masks the choice. An unknown name, or one this CPU
 * cannot run, is an error. */
tare_status kernels_cpu(const char *name, const struct kernels **out, struct err *e);
/* A table that computes nothing: what alloc gives has a size and no bytes, operations return at once, every token drawn is 0. Who asks what a run
 * would take (core/plan) runs the run's own allocations on it and reads memory_use, which counts for the calling thread; reserve says how much memory
 * the machine has (0: not known). like: whose sizes to take; NULL: the CUDA backend's. */
void kernels_counting(const struct kernels *like, struct kernels *out);
/* libtare_cuda.so (TARE_CUDA=FILE, beside the program, in ../lib/tare, or where the loader looks), opened once a process, on GPU `local` modulo
 * those there are: the process's number among those of this machine. No object, driver or GPU: an error of one line that says which. */
tare_status kernels_cuda(int local, const struct kernels **out, struct err *e);
/* Bytes where operations can read them, and where the host can. room: kernels_room(k, bytes) bytes there, 0 (room NULL) where both are one
 * memory; then the result is the bytes themselves. */
int64_t kernels_room(const struct kernels *k, int64_t bytes);
const void *kernels_place(const struct kernels *k, const struct kctx *c, void *room, const void *host, int64_t bytes);
const void *kernels_fetch(const struct kernels *k, const struct kctx *c, void *room, const void *bytes_there, int64_t bytes);
/* What run.device and run.kernels ask for: kernels "auto" or a name of kernels_cpu's (device = cpu). */
tare_status kernels_open(bool cuda, const char *name, int local, const struct kernels **out, struct err *e);
/* Waits, and turns a fault of the context into an error: stage, layer, operation, shapes. */
tare_status kernels_finish(const struct kernels *k, const struct kctx *c, struct err *e);

/* Why alloc gave nothing: the fault of the context, else TARE_E_NOMEM that names what the memory was for, the bytes asked and what is left where. */
tare_status kernels_no_memory(const struct kernels *k, const struct kctx *c, const char *what, int64_t bytes, struct err *e);

/* Between the program and libtare_cuda.so: its one symbol. abi: KERNELS_ABI; text gets the reason of a failure, in one line. */
#define KERNELS_ABI ((UINT64_C(5) << 32) + (sizeof(struct kernels) + sizeof(struct backend)) * 4096 + sizeof(struct kctx))
typedef const struct kernels *(*kernels_cuda_entry)(uint64_t abi, int local, char *text, int64_t size);
#define KERNELS_CUDA_ENTRY "tare_cuda_open"

#endif
