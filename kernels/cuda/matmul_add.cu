/* Adds the slices of a product over K in order, then bias and residual. If the rows' norm follows,
 * the block that has the row computes that too. */
#include "matmul.h"
#include "norm.cuh"

/* columns that a thread adds at a time; as many reads of a slice are in flight together */
enum { COLUMNS = 16 };

static __global__ void product_add(const product p, const float *parts, int slices)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, all = p.t * p.n;
    launch_wait();
    if (i >= all) return;
    const int64_t t = i / p.n, n = i % p.n;
    float y = 0;
    for (int s = 0; s < slices; s++) y += parts[s * all + i];
    if (p.bias) y += p.bias[n];
    if (p.residual) y += p.residual[t * p.ldy + n];
    p.y[t * p.ldy + n] = y;
}

struct add_columns { /* columns of a thread: first, first + NORM_THREADS, ... below n */
    float v[COLUMNS];

    /* Read values from `from` into v, or add them to v; the same number of reads is in flight
     * together. */
    template <bool ADDS> __device__ inline void read(const float *from, int64_t first, int64_t n)
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if (first + c * NORM_THREADS < n) v[c] = (ADDS ? v[c] : 0) + from[first + c * NORM_THREADS];
    }
    template <typename F> __device__ inline void each(int64_t first, int64_t n, F f)
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if (first + c * NORM_THREADS < n) f(first + c * NORM_THREADS, v[c], c);
    }
};

/* One block per row. A thread has columns thread, thread + NORM_THREADS, ... as in rmsnorm_kernel,
 * COLUMNS of them at a time: the last ones stay in registers; for wider rows the others are read
 * again. */
template <typename Y>
static __global__ void __launch_bounds__(NORM_THREADS, 1)
    product_add_norm(const product p, const float *parts, int slices, const product_norm norm)
{
    __shared__ float part[NORM_THREADS / 32];
    const int64_t t = blockIdx.x, step = COLUMNS * NORM_THREADS, last = (p.n - 1) / step * step;
    const int thread = (int)threadIdx.x;
    float *to = p.y + t * p.ldy;
    Y *normed = static_cast<Y *>(norm.y) + t * p.n;
    add_columns y, w;
    float squares = 0;
    launch_wait();
    for (int64_t first = thread; first < last + step; first += step) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) y.v[c] = 0;
        for (int s = 0; s < slices; s++) y.read<true>(parts + (s * p.t + t) * p.n, first, p.n);
        if (p.bias) y.read<true>(p.bias, first, p.n);
        if (p.residual) y.read<true>(p.residual + t * p.ldy, first, p.n);
        y.each(first, p.n, [&](int64_t n, float x, int) {
            to[n] = x;
            squares = fmaf(x, x, squares);
        });
    }
    w.read<false>(norm.w, last + thread, p.n);
    const float scale = norm_scale<NORM_THREADS>(squares, p.n, norm.eps, part);
    for (int64_t n = thread; n < last; n += NORM_THREADS)
        row_store(normed + n, to[n] * scale * norm.w[n]); /* written by this thread */
    y.each(last + thread, p.n, [&](int64_t n, float x, int c) { row_store(normed + n, x * scale * w.v[c]); });
    if (norm.rms && thread == 0) norm.rms[t] = scale;
}

bool matmul_add_norms(int64_t width)
{
    return width > NORM_WARP_WIDTH;
}

void matmul_add(const struct kctx *c, const product &p, const float *parts, int slices, const product_norm *norm)
{
    if (!norm)
        CUDA_LAUNCH_AFTER(c, product_add, cuda_blocks(p.t * p.n, 256), 256, 0, p, parts, slices);
    else if (norm->dtype == DTYPE_BF16)
        CUDA_LAUNCH_AFTER(c, product_add_norm<__nv_bfloat16>, (unsigned)p.t, NORM_THREADS, 0, p, parts, slices, *norm);
    else
        CUDA_LAUNCH_AFTER(c, product_add_norm<float>, (unsigned)p.t, NORM_THREADS, 0, p, parts, slices, *norm);
}
