/* Rotary embedding, half-split form (definition: ref/rope.c): pair (i, i + D/2) of every head turned by the angle of (position, i).
 *
 *   a' = a cos - b sin      b' = b cos + a sin      (inverse: sin -> -sin)
 *
 * A block takes a token's row: [n_heads, D/2] pairs, a thread each. */
#include "cuda.h"

static __global__ void rope_kernel(float *x, int64_t ld, const float *__restrict__ table, const int32_t *__restrict__ pos,
                                   int n_heads, int head_dim, int inverse)
{
    const int half = head_dim / 2;
    float *row = x + (int64_t)blockIdx.x * ld;
    const float *turn = table + (int64_t)pos[blockIdx.x] * head_dim;
    for (int i = (int)threadIdx.x; i < n_heads * half; i += (int)blockDim.x) {
        const int head = i / half, j = i - head * half;
        float *pair = row + head * head_dim + j;
        const float a = pair[0], b = pair[half], cosine = turn[j], sine = inverse ? -turn[j + half] : turn[j + half];
        pair[0] = fmaf(a, cosine, -(b * sine));
        pair[half] = fmaf(b, cosine, a * sine);
    }
}

void cuda_rope(const struct kctx *c, const struct op_rope *o)
{
    CUDA_OP(c, "rope", "t heads head_dim", o->t, o->n_heads, o->head_dim);
    const int64_t pairs = o->n_heads * (o->head_dim / 2);
    if (o->t <= 0 || pairs <= 0) return;
    const int threads = pairs >= 256 ? 256 : (int)((pairs + 31) / 32 * 32);
    CUDA_LAUNCH(c, rope_kernel, (unsigned)o->t, threads, 0, o->x, o->ld, o->table, o->pos, (int)o->n_heads, (int)o->head_dim,
                o->inverse);
}
