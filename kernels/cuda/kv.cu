/* Writes keys and values to the paged cache, and copies its blocks. Here both k and v are
 * [n_blocks, J, 16, D] in attn_shape's dtype, so that a key is one contiguous row of D, and a block
 * of a head is 16 D contiguous numbers for the tensor cores.
 *
 *   k[slot/16, j, slot%16, :] = qkv[row, H D + j D ..]
 *   v[slot/16, j, slot%16, :] = qkv[row, (H + J) D + j D ..]
 *
 * With rotation before it (rope_kv_write), row i goes to slot i. The slots of one call are
 * distinct, so no two threads write to one place; a slot below 0 is skipped (an empty row of a
 * decode batch). */
#include "rope.cuh"
#include "sizes.h"

enum { KV_THREADS = 256 };

static __device__ void kv_store(float *to, float x)
{
    *to = x;
}

static __device__ void kv_store(uint16_t *to, float x) /* rounds to bf16, nearest even */
{
    *to = bf16_from_f32(x);
}

struct kv_rows {
    const float *qkv;            /* [any, stride] */
    const int64_t *rows, *slots; /* rows of qkv and slots of the cache: one pair per block */
    int64_t stride;
    int heads, kv_heads, dim;
};

/* A block handles the keys and values of a row. S is the cache's element type. */
template <class S> static __global__ void kv_write_kernel(const kv_rows p, S *__restrict__ k, S *__restrict__ v)
{
    const int64_t slot = p.slots[blockIdx.x], block = slot / KV_BLOCK, lane = slot % KV_BLOCK;
    if (slot < 0) return;
    const float *__restrict__ key = p.qkv + p.rows[blockIdx.x] * p.stride + (int64_t)p.heads * p.dim;
    const float *__restrict__ value = key + (int64_t)p.kv_heads * p.dim;
    for (int i = (int)threadIdx.x; i < p.kv_heads * p.dim; i += (int)blockDim.x) {
        const int j = i / p.dim, d = i - j * p.dim;
        const int64_t to = ((block * p.kv_heads + j) * KV_BLOCK + lane) * p.dim + d;
        kv_store(k + to, key[i]);
        kv_store(v + to, value[i]);
    }
}

/* ---- rotation and cache write in one: a block handles a head of a row, q, k or v */

struct kv_turn {
    float *x;
    const float *table;
    const int32_t *pos;
    const int64_t *slots;
    int64_t ld;
    int heads, kv_heads, dim, rotary_dim;
};

template <class S> static __global__ void rope_kv_write_kernel(const kv_turn p, S *__restrict__ k, S *__restrict__ v)
{
    launch_wait();
    const int64_t slot = p.slots[blockIdx.x];
    const int head = (int)blockIdx.y, kv = head - p.heads, half = p.rotary_dim / 2;
    const bool rotates = kv < p.kv_heads;
    const float *__restrict__ angles = p.table + (int64_t)p.pos[blockIdx.x] * p.rotary_dim;
    float *x = p.x + (int64_t)blockIdx.x * p.ld + (int64_t)head * p.dim;
    S *to = nullptr;
    if (kv >= 0 && slot >= 0)
        to = (rotates ? k : v) + ((slot / KV_BLOCK * p.kv_heads + kv % p.kv_heads) * KV_BLOCK + slot % KV_BLOCK) * p.dim;
    for (int i = (int)threadIdx.x; rotates && i < half; i += (int)blockDim.x) {
        const float2 y = rope_rotated(x[i], x[i + half], angles[i], angles[i + half]);
        x[i] = y.x;
        x[i + half] = y.y;
        if (!to) continue;
        kv_store(to + i, y.x);
        kv_store(to + i + half, y.y);
    }
    for (int i = (rotates ? 2 * half : 0) + (int)threadIdx.x; to && i < p.dim; i += (int)blockDim.x) kv_store(to + i, x[i]);
}

/* words: number of 4-byte words in a block of either k or v */
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
    const struct attn_shape s = o->shape;
    const kv_rows p = {o->qkv, o->rows, o->slots, s.stride, (int)s.heads, (int)s.kv_heads, (int)s.head_dim};
    if (s.dtype == DTYPE_BF16)
        CUDA_LAUNCH(c, kv_write_kernel<uint16_t>, (unsigned)o->n, KV_THREADS, 0, p, (uint16_t *)o->kv.k, (uint16_t *)o->kv.v);
    else
        CUDA_LAUNCH(c, kv_write_kernel<float>, (unsigned)o->n, KV_THREADS, 0, p, o->kv.k, o->kv.v);
}

void cuda_rope_kv_write(const struct kctx *c, const struct op_rope *rope, const struct op_kv_write *write)
{
    CUDA_OP(c, "rope_kv_write", "t kv_heads head_dim", rope->t, write->shape.kv_heads, write->shape.head_dim);
    const int dim = (int)write->shape.head_dim, heads = (int)write->shape.heads, kv_heads = (int)write->shape.kv_heads;
    const kv_turn p = {rope->x,      rope->table, rope->pos,
                       write->slots, rope->ld,    heads,
                       kv_heads,     dim,         rope->rotary_dim ? (int)rope->rotary_dim : dim};
    if (rope->t <= 0) return;
    const dim3 grid((unsigned)rope->t, (unsigned)(heads + 2 * kv_heads));
    /* each handles a pair, or two values, of a head of 128 */
    const unsigned threads = dim > 64 ? 64 : 32;
    if (write->shape.dtype == DTYPE_BF16)
        CUDA_LAUNCH_AFTER(c, rope_kv_write_kernel<uint16_t>, grid, threads, 0, p, (uint16_t *)write->kv.k, (uint16_t *)write->kv.v);
    else
        CUDA_LAUNCH_AFTER(c, rope_kv_write_kernel<float>, grid, threads, 0, p, write->kv.k, write->kv.v);
}

void cuda_kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    CUDA_OP(c, "kv_copy", "n kv_heads head_dim", o->n, o->shape.kv_heads, o->shape.head_dim);
    const int64_t words = o->shape.kv_heads * o->shape.head_dim * KV_BLOCK / (o->shape.dtype == DTYPE_BF16 ? 2 : 1);
    if (o->n <= 0 || words <= 0) return;
    const unsigned parts = words > 16 * KV_THREADS ? 8 : 1;
    CUDA_LAUNCH(c, kv_copy_kernel, dim3((unsigned)o->n, parts), KV_THREADS, 0, (uint32_t *)o->kv.k, (uint32_t *)o->kv.v, words,
                o->to, o->from);
}
