/* Rotary embedding, half-split form (definition: ref/rope.c): pair (i, i + R/2) of every head is
 * rotated by the angle of (position, i). R is D, or less if only the first elements of a head are
 * rotated.
 *
 *   a' = a cos - b sin      b' = b cos + a sin      (inverse: sin -> -sin)
 *
 * A block handles a token's row: [n_heads, R/2] pairs, one per thread. */
#include "rope.cuh"

static __global__ void rope_kernel(struct op_rope o)
{
    const int half = (int)o.rotary_dim / 2, n_heads = (int)o.n_heads, head_dim = (int)o.head_dim;
    float *row = o.x + (int64_t)blockIdx.x * o.ld;
    const float *__restrict__ angles = o.table + (int64_t)o.pos[blockIdx.x] * o.rotary_dim;
    for (int i = (int)threadIdx.x; i < n_heads * half; i += (int)blockDim.x) {
        const int head = i / half, j = i - head * half;
        float *pair = row + head * head_dim + j;
        const float2 x = rope_rotated(pair[0], pair[half], angles[j], o.inverse ? -angles[j + half] : angles[j + half]);
        pair[0] = x.x;
        pair[half] = x.y;
    }
}

void cuda_rope(const struct kctx *c, const struct op_rope *o)
{
    CUDA_OP(c, "rope", "t heads head_dim", o->t, o->n_heads, o->head_dim);
    struct op_rope own = *o;
    if (!own.rotary_dim) own.rotary_dim = o->head_dim;
    const int64_t pairs = o->n_heads * (own.rotary_dim / 2);
    if (o->t <= 0 || pairs <= 0) return;
    const int threads = pairs >= 256 ? 256 : (int)((pairs + 31) / 32 * 32);
    CUDA_LAUNCH(c, rope_kernel, (unsigned)o->t, threads, 0, own);
}
