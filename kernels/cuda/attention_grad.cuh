/* What the kernels of attention's gradient share (definition: ref/attention.c). By rows of the batch, not by the cache:
 *
 *   P = exp(scale Q K^T - m) / l      dP = dO V^T      dS = scale P (dP - delta),  delta = dO . O
 *   dQ = dS K                         dK = dS^T Q      dV = P^T dO
 *
 * dQ and (dK, dV) are kernels of their own, so that each sum has one owner and one order and no atomics: a block owns queries and walks their keys, or
 * owns keys and walks, segment by segment in the order of the array, the queries that see them.
 *
 * Keys that very many queries see (a prompt that a group shares, the head of a long sequence) would leave the device to a few blocks. So a tile's jobs
 * are cut into parts of about as many query rows each, by the batch's shape alone: the first part writes to dqkv, every other one to memory of its own,
 * and grad_keys_add adds them in their order.
 */
#ifndef TARE_KERNELS_CUDA_ATTENTION_GRAD_CUH
#define TARE_KERNELS_CUDA_ATTENTION_GRAD_CUH

#include "attention.cuh"

struct grad_queries { /* n queries from batch row `row`; they see rows prefix .. +prefix_len-1 and own .. themselves */
    int32_t row, n, prefix, prefix_len, own;
};

/* n keys from batch row `row`; jobs first .. last-1; part: where the sums go, 0: dqkv, i: block i - 1 of parts */
struct grad_keys {
    int32_t row, n, first, last, part;
};

struct grad_rest { /* parts first .. last of n keys from batch row `row`, to be added to dqkv in this order */
    int32_t row, n, first, last;
};

struct grad_job { /* queries from .. to-1, of a segment that sees rows prefix .. prefix_end-1 and own .. the query */
    int32_t from, to, prefix, prefix_end, own;
};

struct grad_args {
    float *dqkv;
    const float *qkv;                    /* or */
    const __nv_bfloat16 *qkv16, *dout16; /* qkv16 with a cache in bf16; dout16 by mma */
    const float *dout, *stats;
    const float *delta; /* [T, H] */
    const struct grad_queries *queries;
    const struct grad_keys *keys;
    const struct grad_job *jobs;
    const struct grad_rest *rests;
    float *parts; /* [parts, J, GRAD_MMA_KEYS, 2, D]: of keys, of values */
    int64_t stride;
    int heads, kv_heads, dim;
    float scale;
};

struct grad_sizes {
    int64_t queries, keys, rests;
};
void attention_grad_mma_launch(const struct kctx *c, const struct grad_args &a, grad_sizes n);
void attention_grad_plain_launch(const struct kctx *c, const struct grad_args &a, int64_t n_queries, int64_t n_keys);
enum { GRAD_MMA_ROWS = 64, GRAD_MMA_KEYS = 128, GRAD_PLAIN_ROWS = 16, GRAD_PLAIN_KEYS = 16 };

#endif
