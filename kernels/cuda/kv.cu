/* Keys and values into the paged cache, and copies of its blocks. Here both k and v are [n_blocks, J, 16, D] in attn_shape's dtype, so that a
 * key is one contiguous row of D and a block of a head one piece of 16 D for the tensor cores.
 *
 *   k[slot/16, j, slot%16, :] = qkv[row, H D + j D ..]        v[slot/16, j, slot%16, :] = qkv[row, (H + J) D + j D ..]
 *
 * Slots of one call are distinct, so no two threads write one place; a slot below 0 is none (an empty row of a decode batch). */
#include "cuda.h"
#include "sizes.h"

enum { KV_THREADS = 256 };

static __device__ void kv_store(float *to, float x)
{
    *to = x;
}

static __device__ void kv_store(uint16_t *to, float x) /* bf16, nearest even */
{
    *to = bf16_from_f32(x);
}

template <class S>
static __global__ void kv_write_kernel(S *__restrict__ k, S *__restrict__ v, const float *__restrict__ qkv, int64_t stride,
                                       int heads, int kv_heads, int dim, const int64_t *__restrict__ rows,
                                       const int64_t *__restrict__ slots)
{
    const int64_t slot = slots[blockIdx.x], block = slot / KV_BLOCK, lane = slot % KV_BLOCK;
    if (slot < 0) return;
    const float *key = qkv + rows[blockIdx.x] * stride + (int64_t)heads * dim, *value = key + (int64_t)kv_heads * dim;
    for (int i = (int)threadIdx.x; i < kv_heads * dim; i += (int)blockDim.x) {
        const int j = i / dim, d = i - j * dim;
        const int64_t to = ((block * kv_heads + j) * KV_BLOCK + lane) * dim + d;
        kv_store(k + to, key[i]);
        kv_store(v + to, value[i]);
    }
}

/* words: 4-byte words in a block of one of k, v */
static __global__ void kv_copy_kernel(uint32_t *k, uint32_t *v, int64_t words, const int32_t *__restrict__ to_block,
                                      const int32_t *__restrict__ from_block)
{
    const int64_t to = to_block[blockIdx.x] * words, from = from_block[blockIdx.x] * words;
    for (int64_t i = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; i < words; i += (int64_t)gridDim.y * blockDim.x) {
        k[to + i] = k[from + i];
        v[to + i] = v[from + i];
    }
}

int64_t cuda_kv_bytes(struct attn_shape s, int64_t n_blocks)
{
    return gpu_kv_bytes(s, n_blocks);
}

void cuda_kv_write(const struct kctx *c, const struct op_kv_write *o)
{
    CUDA_OP(c, "kv_write", "n kv_heads head_dim", o->n, o->shape.kv_heads, o->shape.head_dim);
    if (o->n <= 0) return;
    if (o->shape.dtype == DTYPE_BF16)
        CUDA_LAUNCH(c, kv_write_kernel<uint16_t>, (unsigned)o->n, KV_THREADS, 0, (uint16_t *)o->kv.k, (uint16_t *)o->kv.v, o->qkv,
                    o->shape.stride, (int)o->shape.heads, (int)o->shape.kv_heads, (int)o->shape.head_dim, o->rows, o->slots);
    else
        CUDA_LAUNCH(c, kv_write_kernel<float>, (unsigned)o->n, KV_THREADS, 0, o->kv.k, o->kv.v, o->qkv, o->shape.stride,
                    (int)o->shape.heads, (int)o->shape.kv_heads, (int)o->shape.head_dim, o->rows, o->slots);
}

void cuda_kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    CUDA_OP(c, "kv_copy", "n kv_heads head_dim", o->n, o->shape.kv_heads, o->shape.head_dim);
    const int64_t words = o->shape.kv_heads * o->shape.head_dim * KV_BLOCK / (o->shape.dtype == DTYPE_BF16 ? 2 : 1);
    if (o->n <= 0 || words <= 0) return;
    const unsigned pieces = words > 16 * KV_THREADS ? 8 : 1;
    CUDA_LAUNCH(c, kv_copy_kernel, dim3((unsigned)o->n, pieces), KV_THREADS, 0, (uint32_t *)o->kv.k, (uint32_t *)o->kv.v, words,
                o->to, o->from);
}
