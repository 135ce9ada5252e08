/* Sizes in bytes of data that a GPU stores in its own format, for the CUDA backend and for planning
 * a run without a GPU. */
#ifndef TARE_KERNELS_SIZES_H
#define TARE_KERNELS_SIZES_H

#include "kernels.h"

/* Bytes of one element. */
static inline int64_t dtype_bytes(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 4 : 2;
}

/* Packed weights are W itself, [N,K], in the precision of the computation. */
static inline int64_t gpu_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    return dtype == DTYPE_F16 ? 0 : n * k * (dtype == DTYPE_BF16 ? 2 : 4);
}

/* Keys, and likewise values, have the precision of the products. */
static inline int64_t gpu_kv_bytes(struct attn_shape s, int64_t n_blocks)
{
    return n_blocks * s.kv_heads * KV_BLOCK * s.head_dim * (s.dtype == DTYPE_BF16 ? 2 : 4);
}

#endif
