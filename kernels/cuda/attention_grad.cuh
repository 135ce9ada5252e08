/* Definitions shared by the kernels of attention's gradient (definition: ref/attention.c). They
 * work on rows of the batch, not on the cache:
 *
 *   P = exp(scale Q K^T - m) / l      dP = dO V^T      dS = scale P (dP - delta),  delta = dO . O
 *   dQ = dS K                         dK = dS^T Q      dV = P^T dO
 *
 * dQ and (dK, dV) have separate kernels, so that each sum has one owner, one order and no atomics.
 * A block owns queries and iterates over their keys, or owns keys and iterates, segment by segment
 * in the order of the array, over the queries that see them.
 *
 * Keys seen by very many queries (a prompt shared by a group, the head of a long sequence) would
 * occupy only a few blocks of the device. So a tile's jobs are split into parts of about equally
 * many query rows, by the batch's shape alone: the first part writes to dqkv, every other part to
 * separate memory, and grad_keys_add adds them in order. */
#ifndef TARE_KERNELS_CUDA_ATTENTION_GRAD_CUH
#define TARE_KERNELS_CUDA_ATTENTION_GRAD_CUH

#include "attention.cuh"

/* n queries from batch row `row`; they see rows prefix .. +prefix_len-1, and own .. themselves */
struct grad_queries {
    int32_t row, n, prefix, prefix_len, own;
};

/* n keys from batch row `row`; jobs first .. last-1. part is the destination of the sums: 0 for
 * dqkv, i for block i - 1 of parts. */
struct grad_keys {
    int32_t row, n, first, last, part;
};

/* parts first .. last of n keys from batch row `row`, to be added to dqkv in this order */
struct grad_rest {
    int32_t row, n, first, last;
};

/* queries from .. to-1 of a segment that sees rows prefix .. prefix_end-1, and own .. the query */
struct grad_job {
    int32_t from, to, prefix, prefix_end, own;
};

struct grad_args {
    float *dqkv;
    const float *qkv;                    /* or */
    const __nv_bfloat16 *qkv16, *dout16; /* qkv16 with a cache in bf16; dout16 with mma */
    const float *dout, *stats;
    const float *delta; /* [T, H] */
    const struct grad_queries *queries;
    const struct grad_keys *keys;
    const struct grad_job *jobs;
    const struct grad_rest *rests;
    float *parts; /* [parts, J, GRAD_MMA_KEYS, 2, D]: sums of keys, of values */
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
