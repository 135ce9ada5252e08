/* AdamW (Loshchilov and Hutter 2019) on a flat buffer or a slice of one, and the sum of squares for
 * the gradient norm (definitions: ref/optimizer.c). Bit-identical to the reference.
 *
 *   g' = g scale;  p -= lr decay p;  m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2
 *   p -= lr (m/c1) / (sqrt(v/c2) + eps)
 *
 * Sum of squares: per block of 4096 elements in double, 8 lanes (lane i%8) added in the tree 4+4,
 * 2+2, 1+1; the blocks' sums are added in order. */
#include "cuda.h"

enum { SQUARES_BLOCK = 4096, SQUARES_LANES = 8, SQUARES_THREADS = 256, ADAMW_THREADS = 256 };

/* Sum s is over the part-th 4096 elements of a block; a block has `parts` of them, the last one
 * shorter. */
static __global__ void squares_kernel(double *__restrict__ sums, const float *__restrict__ x, int64_t n, int64_t block,
                                      int64_t parts, int64_t n_sums)
{
    const int lane = (int)(threadIdx.x % SQUARES_LANES);
    const int64_t s = ((int64_t)blockIdx.x * SQUARES_THREADS + threadIdx.x) / SQUARES_LANES;
    const int64_t begin = s / parts * block + s % parts * SQUARES_BLOCK;
    int64_t end = begin + SQUARES_BLOCK;
    if (end > (s / parts + 1) * block) end = (s / parts + 1) * block;
    if (end > n) end = n;
    double sum = 0;
    for (int64_t i = begin + lane; i < end; i += SQUARES_LANES) sum = fma((double)x[i], (double)x[i], sum);
    sum += __shfl_xor_sync(0xffffffffu, sum, 4); /* 0+4, 1+5, 2+6, 3+7 */
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (lane == 0 && s < n_sums) sums[s] = sum;
}

struct adamw_args {
    float scale, lr, beta1, beta2, eps, shrink, r1, r2;
};

static __global__ void adamw_kernel(float *__restrict__ p, const float *__restrict__ g, float *__restrict__ m,
                                    float *__restrict__ v, int64_t n, struct adamw_args a)
{
    const int64_t i = (int64_t)blockIdx.x * ADAMW_THREADS + threadIdx.x;
    if (i >= n) return;
    const float d = g[i] * a.scale, w = fmaf(-a.shrink, p[i], p[i]);
    const float m1 = fmaf(a.beta1, m[i], (1.0f - a.beta1) * d), v1 = fmaf(a.beta2, v[i], (1.0f - a.beta2) * (d * d));
    m[i] = m1;
    v[i] = v1;
    p[i] = w - a.lr * (m1 * a.r1) / (sqrtf(v1 * a.r2) + a.eps);
}

/* Add the parts of a block in order. */
static __global__ void squares_add_kernel(double *__restrict__ out, const double *__restrict__ sums, int64_t blocks, int64_t parts)
{
    const int64_t b = (int64_t)blockIdx.x * SQUARES_THREADS + threadIdx.x;
    if (b >= blocks) return;
    double sum = 0;
    for (int64_t i = 0; i < parts; i++) sum += sums[b * parts + i];
    out[b] = sum;
}

static void launch_squares(const struct kctx *c, const struct op_sum_squares *o)
{
    const int64_t blocks = (o->n + o->block - 1) / o->block, parts = (o->block + SQUARES_BLOCK - 1) / SQUARES_BLOCK;
    double *sums = (double *)cuda_scratch(c, blocks * parts * (int64_t)sizeof *sums);
    if (!sums) return;
    CUDA_LAUNCH(c, squares_kernel, cuda_blocks(blocks * parts * SQUARES_LANES, SQUARES_THREADS), SQUARES_THREADS, 0, sums, o->x,
                o->n, o->block, parts, blocks * parts);
    CUDA_LAUNCH(c, squares_add_kernel, cuda_blocks(blocks, SQUARES_THREADS), SQUARES_THREADS, 0, o->out, sums, blocks, parts);
}

void cuda_sum_squares(const struct kctx *c, const struct op_sum_squares *o)
{
    CUDA_OP(c, "sum_squares", "n block", o->n, o->block);
    if (o->n > 0 && o->block > 0) launch_squares(c, o);
}

void cuda_adamw(const struct kctx *c, const struct op_adamw *o)
{
    CUDA_OP(c, "adamw", "n", o->n);
    const struct adamw_args a = {
        o->grad_scale, o->lr, o->beta1, o->beta2, o->eps, o->lr * o->decay, (float)(1 / o->correct1), (float)(1 / o->correct2)};
    if (o->n > 0) CUDA_LAUNCH(c, adamw_kernel, cuda_blocks(o->n, ADAMW_THREADS), ADAMW_THREADS, 0, o->p, o->g, o->m, o->v, o->n, a);
}
