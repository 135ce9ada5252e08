/* AdamW (Loshchilov and Hutter 2019) on a flat buffer or a piece of one, and the sum of squares for the gradient norm (definitions:
 * ref/optimizer.c).
 *
 *   g' = g scale;  p -= lr decay p;  m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2;  p -= lr (m/c1) / (sqrt(v/c2) + eps)
 *
 * Sum of squares: per block of 4096 elements in double, 8 lanes (lane i%8) added in the tree 4+4, 2+2, 1+1; the blocks' sums are added in order
 * on the host. The bits are the reference's. */
#include "cuda.h"

#include <stdlib.h>

enum { SQUARES_BLOCK = 4096, SQUARES_LANES = 8, SQUARES_THREADS = 256, ADAMW_THREADS = 256 };

/* Sum s is of the part-th 4096 elements of a block: `parts` to a block, the last one short. */
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

/* One launch and one wait for all blocks; their parts are added in order here. */
static void squares(const struct kctx *c, double *out, const float *x, int64_t n, int64_t block)
{
    const int64_t blocks = (n + block - 1) / block, parts = (block + SQUARES_BLOCK - 1) / SQUARES_BLOCK, n_sums = blocks * parts;
    const int64_t bytes = n_sums * (int64_t)sizeof(double);
    double *sums = (double *)cuda_scratch(c, bytes), *host = (double *)malloc((size_t)bytes);
    for (int64_t i = 0; i < blocks; i++) out[i] = 0;
    if (!host) cuda_failed(c, TARE_E_NOMEM, "the sums of blocks", "no memory on the host");
    if (sums && host) {
        CUDA_LAUNCH(c, squares_kernel, cuda_blocks(n_sums * SQUARES_LANES, SQUARES_THREADS), SQUARES_THREADS, 0, sums, x, n, block,
                    parts, n_sums);
        if (CUDA_TRY(c, cudaMemcpyAsync(host, sums, (size_t)bytes, cudaMemcpyDeviceToHost, cuda_stream(c))) &&
            CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c))))
            for (int64_t i = 0; i < n_sums; i++) out[i / parts] += host[i];
    }
    free(host);
}

void cuda_sum_squares(const struct kctx *c, const struct op_sum_squares *o)
{
    CUDA_OP(c, "sum_squares", "n block", o->n, o->block);
    if (o->n > 0 && o->block > 0) squares(c, o->out, o->x, o->n, o->block);
}

void cuda_adamw(const struct kctx *c, const struct op_adamw *o)
{
    CUDA_OP(c, "adamw", "n", o->n);
    const struct adamw_args a = {
        o->grad_scale, o->lr, o->beta1, o->beta2, o->eps, o->lr * o->decay, (float)(1 / o->correct1), (float)(1 / o->correct2)};
    if (o->n > 0) CUDA_LAUNCH(c, adamw_kernel, cuda_blocks(o->n, ADAMW_THREADS), ADAMW_THREADS, 0, o->p, o->g, o->m, o->v, o->n, a);
}
