/* The operations of the kernel table (kernels.h): their definitions and their arguments.
 *
 * Letters: T tokens (rows), C width, H query heads, J key/value heads, D head width, F MLP width, V
 * vocabulary. All matrices are row-major.
 *
 * Numbers. Every forward operation is batch-invariant by construction: each output is computed in
 * one order, which does not depend on the number of rows, the tiling or the number of threads.
 *   - A matrix product sums over its inner index k = 0, 1, 2, ... in one chain
 *     acc = fma(x[k], w[k], acc) that starts at 0; then bias and then residual are added. This
 *     chain is the definition: ref, AVX2 and AVX-512 are bit-identical in fp32.
 *   - A row reduction (sum of squares, sum of exponentials) runs in 16 lanes. Lane l takes elements
 *     l, l+16, ... in order; then the lanes are added in the fixed tree 8+8 -> 4+4 -> 2+2 -> 1+1
 *     (lane l with lane l+8, then l+4, l+2, l+1).
 *   - exp and log are polynomials of this project, evaluated by the same sequence of operations in
 *     every implementation.
 *
 * Backward operations are deterministic for any number of threads: sums over tokens run in row
 * order and are never split between threads. */
#ifndef TARE_KERNELS_KERNELS_OPS_H
#define TARE_KERNELS_KERNELS_OPS_H

#include <stdint.h>

enum dtype { DTYPE_F32 = 0, DTYPE_BF16 = 1, DTYPE_F16 = 2 };
enum { KV_BLOCK = 16 }; /* keys in a block of the key/value cache */

/* Keys and values of one layer, in blocks of 16 keys. Key j of a sequence is in block
 * blocks[j / 16], lane j % 16.
 *   k: [n_blocks, J, D, 16] (transposed: 16 keys side by side)      v: [n_blocks, J, 16, D]
 * A backend with kv_bytes chooses its own layout instead. */
struct kv_layer {
    float *k, *v;
};

/* Queries of one sequence in a batch. Query i (row q_begin + i) is at position pos + i and sees
 * keys 0 .. pos + i.
 *
 * shared is the number of leading keys, in whole blocks, that other sequences may have in common
 * with this one (its prompt's keys), whether or not those sequences are in the batch. A backend
 * that splits the keys of a single query may split there, so that the order of a sequence's sums
 * does not depend on the rest of the batch. 0: no keys are read together. */
struct attn_seq {
    int64_t q_begin, q_len, pos;
    const int32_t *blocks; /* [ceil((pos + q_len) / 16)] */
    int64_t shared;
};

/* One segment of the backward pass, in rows of the batch. Its keys are rows prefix_begin ..
 * prefix_begin + prefix_len - 1, then its own rows up to the query itself. prefix_len is also the
 * position of its first query. Segments that share a prefix are adjacent in the array. */
struct attn_seg {
    int64_t q_begin, q_len, prefix_begin, prefix_len;
};

struct attn_shape {
    int64_t heads, kv_heads, head_dim; /* H, J, D */
    int64_t stride;                    /* floats in a row of qkv: (H + 2J) D */
    float scale;                       /* 1/sqrt(D) */
    /* of the model's products; a backend may also store keys and values in it (kv_bytes) */
    enum dtype dtype;
    /* the query at position p sees keys above p - window; 0: all keys up to its own */
    int64_t window;
};

/* Sampling arguments of one row. Truncation is applied in the order top-k, top-p, min-p, each on
 * the softmax at `temperature`. */
struct sample_row {
    uint32_t key[2];   /* Philox key of (run seed, purpose, step, prompt, occurrence, rollout) */
    uint64_t position; /* Philox counter */
    /* temperature 0: greedy, ties go to the lowest id; top_p 1 and min_p 0: off */
    float temperature, top_p, min_p;
    int32_t top_k; /* 0: off */
};

/* Gradient of the loss with respect to one head row, as coefficients:
 *   dL/dz = logprob * dlogp/dz + entropy * dH/dz + kl * dKL/dz
 * where z are the logits before division by the temperature. */
struct head_grad_row {
    float logprob, entropy, kl;
};

/* ---- The operations, each with its arguments. Pointers are the backend's memory unless stated
 * otherwise. */

/* Pack weights. W [N,K] is row-major as in a checkpoint. packed is the backend's own layout in
 * compute precision (packed_bytes); weights are packed again after every update. */
struct op_pack {
    void *packed;
    const float *w;
    int64_t n, k;
    enum dtype dtype;
    /* 1: pack in int8 by blocks with scales (int8_bytes, exact.h); all of w must be finite */
    int int8;
};

/* Matrix product: y[T,N] = x[T,K] W^T (+ bias[N]) (+ residual[T,N]). With DTYPE_BF16, x is first
 * rounded to bf16 (nearest even), and products and sums are fp32; on the CPU a chain takes pairs of
 * the inner index, the odd one first (ref/matmul.c).
 *
 * x_dtype, y_dtype, ... (here and below) give the storage type of rows. DTYPE_BF16 is allowed only
 * where the table has bf16_rows. Such rows were rounded when they were written, so a product of
 * them is bit-identical to one of fp32 rows. */
struct op_matmul {
    float *y;
    const void *x;
    const void *packed;
    const float *bias, *residual; /* or NULL; residual may be y */
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype x_dtype;
    int int8; /* must match packed */
};

/* Input gradient of a product: dx[T,K] = dy[T,N] W[N,K], with W packed as for matmul. With
 * DTYPE_BF16, dy is first rounded to bf16 as matmul rounds x. */
struct op_matmul_dx {
    float *dx;
    const void *dy;
    const void *packed;
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype dy_dtype;
    int int8; /* must match packed */
};

/* Weight gradient of a product: dw[N,K] += dy[T,N]^T x[T,K] and dbias[N] += sum_t dy. */
struct op_matmul_dw {
    /* dbias may be NULL; if it is set, dy is fp32 and dbias sums the unrounded dy */
    float *dw, *dbias;
    const void *dy, *x;
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype dy_dtype;
    enum dtype x_dtype;
};

/* Low-rank product added to a product of a layer (LoRA): A_p [rank, k] and B_p [n_p, rank] for some
 * column ranges p of y. Each product is a separate chain, so the result equals computing each
 * product alone and then adding them.
 *   y = x W^T (+ bias) (+ residual), then y[:, columns of p] += u_p B_p^T,    u_p = s (x A_p^T)
 *   dx = dy W, then dx += d A,    d_p = s (dy[:, columns of p] B_p)
 *   dB_p += dy[:, columns of p]^T u_p;    dA += d^T x */
enum { LOW_RANK_PARTS = 3 };
struct low_rank {
    const void *a;                                    /* all A_p, packed as [parts * rank, k] */
    const void *b[LOW_RANK_PARTS];                    /* packed */
    int64_t begin[LOW_RANK_PARTS], n[LOW_RANK_PARTS]; /* column ranges of y; begin is increasing */
    int64_t parts, rank;
    float scale;
};

struct op_matmul_low_rank {
    struct op_matmul product;
    struct low_rank adapter;
    float *u; /* [t, parts * rank] or NULL */
};

struct op_matmul_dx_low_rank {
    struct op_matmul_dx product; /* packed; if dx is NULL, only d is computed */
    struct low_rank adapter;
    float *d; /* [t, parts * rank] */
};

struct op_low_rank_dw {
    float *da, *db[LOW_RANK_PARTS];
    const float *u, *d;
    const void *dy, *x;
    struct low_rank adapter; /* a and b are not read */
    int64_t t, n, k;
    enum dtype dtype;
    enum dtype x_dtype; /* dy is always fp32 */
    int apart;          /* 1: accumulate as matmul_dw_apart does */
};

/* Embedding: x[t,:] = table[ids[t],:]. Its gradient: dtable[ids[t],:] += dx[t,:], in the order of
 * t. */
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

/* RMSNorm: rms[t] = 1/sqrt(mean_c x^2 + eps) and y = x * rms * w. Row r of x and y starts at r*ld
 * floats. For the q and k norms inside qkv, the t*heads rows are addressed as row (t, h) at t*ld +
 * h*width; a plain norm has heads = 1. y may be x, except in bf16, where y is separate and its rows
 * are also ld elements apart. */
struct op_rmsnorm {
    void *y;
    float *rms; /* [t*heads] or NULL */
    const float *x, *w;
    int64_t ld, t, heads, width;
    float eps;
    enum dtype y_dtype;
};

/* Gradient of RMSNorm: dx (+)= ..., dw += ... (equations in ref/norm.c). x is the norm's input. The
 * rows of dx, dy and x are all ld floats apart; dx may be dy. */
struct op_rmsnorm_grad {
    float *dx, *dw; /* dw may be NULL */
    const float *dy, *x, *w, *rms;
    int64_t ld, t, heads, width;
    int accumulate; /* 1: add to dx; 0: overwrite it */
};

/* Rotary embedding, half-split form, in place on the first n_heads heads of each row of x (rows ld
 * floats apart). Of the first R = rotary_dim elements of a head, pair (i, i + R/2) is rotated by
 * the angle whose cosine and sine are table[pos[t]*R + i] and table[pos[t]*R + R/2 + i]; the other
 * elements are unchanged. */
struct op_rope {
    float *x;
    const float *table;
    const int32_t *pos;
    int64_t ld, t, n_heads, head_dim;
    int inverse;        /* 1: the transpose, for the backward pass */
    int64_t rotary_dim; /* 0: the whole head */
};

/* Write keys and values to the cache: those of row rows[i] of qkv go to slot slots[i] = block*16 +
 * lane. A row may be listed several times. */
struct op_kv_write {
    struct kv_layer kv;
    const float *qkv;
    struct attn_shape shape;
    const int64_t *rows, *slots;
    int64_t n;
};

/* Copy block from[i] of the cache to block to[i], in the order of i. */
struct op_kv_copy {
    struct kv_layer kv;
    struct attn_shape shape;
    const int32_t *to, *from;
    int64_t n;
};

/* Attention. For query row t and head h (key/value head h*J/H), over the keys j visible to it:
 *   s_j = scale * (chain over d of q_d k_jd)      m = max_j s_j      p_j = exp(s_j - m)
 *   l = sum_j p_j in 16 lanes (lane j % 16)
 *   out_d = (chain over j = 0, 1, ... of p_j v_jd) / l */
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

/* Gradient of attention: dqkv[T, stride], the gradient with respect to q, k and v of the rows of
 * all segments. dqkv is overwritten, with 0 where no gradient arrives. With DTYPE_BF16, q, k, v and
 * out are first rounded to bf16, as attention and the output projection read them. */
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

/* Gated MLP: gu[T,2F] = gate | up and act = gate s(h) * up, where s is the logistic function. For
 * SiLU h = gate; for GELU h = 2 sqrt(2/pi) (gate + 0.044715 gate^3), the tanh form of GELU, since
 * (1 + tanh u)/2 = s(2u). With DTYPE_BF16, gate and up are first rounded to bf16 (nearest even),
 * which changes nothing if they are stored in bf16. */
struct op_swiglu {
    void *act;
    const void *gu;
    /* [T,2F] gu in bf16 for the backward pass; NULL: not stored (always without bf16_rows) */
    void *kept;
    int64_t t, f;
    int gelu; /* 1: GELU; 0: SiLU */
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

/* Head statistics of logits [R,V], with p = softmax(logits / temperature): logprob[r] = log
 * p[target[r]], entropy[r] = -sum p log p, and lse[R,2] holds the pair m, log sum exp(z/temperature
 * - m). */
struct op_head_stats {
    float *logprob, *entropy, *lse; /* entropy may be NULL */
    const float *logits;
    const int32_t *target;
    float temperature;
    int64_t r, v;
};

/* KL divergence: kl[r] = sum_v p (log p - log q), where q is the softmax of ref_logits at the same
 * temperature; lse and ref_lse come from head_stats. */
struct op_head_kl {
    float *kl;
    const float *logits, *lse, *ref_logits, *ref_lse;
    float temperature;
    int64_t r, v;
};

/* Gradient of the loss through the head, in place: logits becomes dL/dlogits. entropy and kl are
 * the [R] results above; kl, ref_logits and ref_lse are NULL if no row has a kl coefficient. */
struct op_head_grad {
    float *logits;
    const int32_t *target;
    const float *lse, *entropy, *ref_logits, *ref_lse, *kl;
    const struct head_grad_row *coef;
    float temperature;
    int64_t r, v;
};

/* Sample one token for each row: token[r]. logprob[r] and entropy[r] are those of the softmax at
 * `temperature` before any truncation (greedy: at temperature 1). */
struct op_sample {
    int32_t *token;
    float *logprob, *entropy; /* entropy may be NULL */
    const float *logits;
    /* floats between consecutive rows of logits; 0: all rows sample from one row of logits */
    int64_t ld;
    const struct sample_row *rows;
    int64_t r, v;
};

/* Copy or add columns: y[t*ldy + j] (+)= scale * x[t*ldx + j] for j < n. y may be x if ldy =
 * ldx. */
struct op_add_columns {
    float *y;
    const float *x;
    int64_t ldy, ldx, t, n;
    float scale;
    int accumulate; /* 1: add to y; 0: overwrite it */
};

/* y += x, for n elements. */
struct op_add {
    float *y;
    const float *x;
    int64_t n;
};

/* y = x rounded to bf16 (nearest even), for n elements. */
struct op_to_bf16 {
    void *y;
    const float *x;
    int64_t n;
};

/* Gather rows: y[i,:] = x[rows[i],:]. */
struct op_gather_rows {
    float *y;
    const float *x;
    const int64_t *rows;
    int64_t n, width;
};

/* Add rows to given places: y[rows[i],:] += x[i,:], in the order of i. */
struct op_scatter_add_rows {
    float *y;
    const float *x;
    const int64_t *rows;
    int64_t n, width;
};

/* Sums of squares: out[i] is the sum over x[i*block .. i*block + block - 1], for ceil(n / block)
 * blocks. Sums are in double; the parts of 4096 elements of a block are added in order. */
struct op_sum_squares {
    double *out;
    const float *x;
    int64_t n, block;
};

/* AdamW, with correct1 = 1 - beta1^step and correct2 = 1 - beta2^step:
 *   g' = g * grad_scale;   p -= lr*decay*p
 *   m = beta1 m + (1-beta1) g';   v = beta2 v + (1-beta2) g'^2
 *   p -= lr * (m/correct1) / (sqrt(v/correct2) + eps) */
struct op_adamw {
    float *p, *m, *v;
    const float *g;
    int64_t n;
    float grad_scale, lr, beta1, beta2, eps, decay;
    double correct1, correct2;
};

/* Digest of an array: *out += sum over i of digest_word(word i, first + i) (exact.h), modulo 2^64.
 * Words are 32 bits, little-endian; the last one is padded with zeros. The order of the sum does
 * not matter, so the digest of an array is the sum of the digests of its slices, where first is the
 * index of a slice's first word. */
struct op_digest {
    uint64_t *out;
    const void *data; /* aligned to 4 bytes */
    int64_t bytes, first;
};

/* X(NAME) for every operation that all backends have. */
/* clang-format off */
#define KERNEL_OPERATIONS(X) \
    X(pack) \
    X(matmul) \
    X(matmul_dx) \
    X(matmul_dw) \
    X(embed) \
    X(embed_grad) \
    X(rmsnorm) \
    X(rmsnorm_grad) \
    X(rope) \
    X(kv_write) \
    X(kv_copy) \
    X(attention) \
    X(attention_grad) \
    X(swiglu) \
    X(swiglu_grad) \
    X(head_stats) \
    X(head_kl) \
    X(head_grad) \
    X(sample) \
    X(add) \
    X(add_columns) \
    X(to_bf16) \
    X(gather_rows) \
    X(scatter_add_rows) \
    X(sum_squares) \
    X(adamw) \
    X(digest)
/* clang-format on */

#endif
