/* Definitions shared by the attention kernels: the tiles that blocks process, and tiles of bf16
 * rows in shared memory.
 *
 * A tile is n queries that see the same keys (apart from their own limits), times the `group` = H/J
 * query heads that share a key/value head. Its rows are (query, head) pairs, query by query. A
 * block processes one (tile, key/value head). The cache is [n_blocks, J, 16, D] in shape.dtype, for
 * both k and v. */
#ifndef TARE_KERNELS_CUDA_ATTENTION_CUH
#define TARE_KERNELS_CUDA_ATTENTION_CUH

#include "convert.h"

struct attn_tile {
    int32_t row, n;     /* rows row .. row+n-1 of the batch; n 0: nothing to do */
    int32_t begin, end; /* keys begin .. end-1, from the block table at `table` */
    int32_t limit;      /* query i sees keys below limit + i */
    /* -1: the result goes to out; otherwise the index of the first of its n partial results, which
     * a separate kernel combines */
    int32_t part;
    int64_t table;
};

/* Partial results of a query: those of two runs of tiles, in ascending order of keys. The result of
 * tile i of run u is at first[u] + i * stride[u]. */
struct attn_parts {
    int32_t first[2], stride[2], count[2];
};

struct attn_args {
    void *out;    /* [T, H, D] in out_dtype */
    float *stats; /* [T, H, 2] or NULL */
    const float *qkv;
    const void *k, *v;
    const struct attn_tile *tiles;
    const int32_t *tables;
    float *part, *part_stats; /* [n_parts, H, D] sums not divided by l; [n_parts, H, 2] m, l */
    int64_t stride;           /* of qkv */
    int heads, kv_heads, dim;
    float scale;
    enum dtype out_dtype;
};

enum {
    SPLIT_KEYS = 256 /* keys of a tile in split decoding */,
    TILE_KEYS = 64 /* keys that pass through the tensor cores together */
};

#define LOG2E 1.44269504088896341f

/* Address in a tile of bf16 rows of D in shared memory. The 16-byte chunks of a row are permuted by
 * row, so that the eight rows of an 8x8 matrix are in different banks. column must be a multiple of
 * 8. */
template <int D> __device__ inline __nv_bfloat16 *tile_at(__nv_bfloat16 *tile, int row, int column)
{
    return tile + row * D + ((column / 8) ^ (row % 8)) * 8;
}

/* Store fp32 values of a row to a tile in bf16. */
template <int D> __device__ inline void tile_store4(__nv_bfloat16 *tile, int row, int column, float4 x)
{
    uint2 *to = reinterpret_cast<uint2 *>(tile_at<D>(tile, row, column & ~7) + (column & 4));
    *to = make_uint2(bf16_pair(x.x, x.y), bf16_pair(x.z, x.w));
}

__device__ inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ inline float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Destination of row r of the tile: its index in out (or among the partial results) in units of D,
 * and in stats in units of 2. */
__device__ inline int64_t attention_result_at(const struct attn_args &a, const struct attn_tile &t, int head, int group, int row)
{
    return (int64_t)((t.part >= 0 ? t.part : t.row) + row / group) * a.heads + head * group + row % group;
}

/* Store one element of out. */
__device__ inline void attention_out(const struct attn_args &a, int64_t at, float x)
{
    if (a.out_dtype == DTYPE_BF16)
        row_store(static_cast<__nv_bfloat16 *>(a.out) + at, x);
    else
        row_store(static_cast<float *>(a.out) + at, x);
}

/* Launchers; tiles are on the device. attention_mma_fits: true if a tensor-core kernel exists for
 * dtype and shape. */
bool attention_mma_fits(struct attn_shape s);
void attention_mma_launch(const struct kctx *c, const struct attn_args &a, int64_t n_tiles, int rows);
void attention_plain_launch(const struct kctx *c, const struct attn_args &a, int64_t n_tiles, enum dtype dtype);
void attention_combine_launch(const struct kctx *c, const struct attn_args &a, const struct attn_parts *parts, int64_t n_queries);

#endif
