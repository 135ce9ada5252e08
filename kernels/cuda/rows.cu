/* Gathering, scattering and adding rows (definitions: ref/elementwise.c).
 *
 *   x[t,:] = table[ids[t],:]         y[i,:] = x[rows[i],:]         y += x
 *   dtable[ids[t],:] += dx[t,:]      y[rows[i],:] += x[i,:]
 *
 * Sums into rows run over t (or i) in order, without atomics: each row that occurs is linked to its
 * next occurrence, and the block of a first occurrence follows the chain with the sum in a
 * register. So they are bit-identical to the reference. */
#include "cuda.h"

enum { ROW_THREADS = 256, CHAIN_END = -1 };

template <class I>
static __global__ void gather_kernel(float *__restrict__ y, const float *__restrict__ x, const I *__restrict__ rows, int64_t n,
                                     int64_t width)
{
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        const float *from = x + (int64_t)rows[i] * width;
        for (int64_t j = threadIdx.x; j < width; j += blockDim.x) y[i * width + j] = from[j];
    }
}

/* next[i]: the next i with the same row, or CHAIN_END; first[i]: 1 for the first occurrence. At
 * most n^2/2 comparisons of cached words. */
template <class I>
static __global__ void chain_kernel(int32_t *__restrict__ next, int32_t *__restrict__ first, const I *__restrict__ rows, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const I row = rows[i];
    int64_t j = i + 1;
    while (j < n && rows[j] != row) j++;
    next[i] = j < n ? (int32_t)j : CHAIN_END;
    j = i - 1;
    while (j >= 0 && rows[j] != row) j--;
    first[i] = j < 0;
}

template <class I> struct scatter_rows { /* y[rows[i], :] += x[i, :] */
    float *y;                            /* [any, width] */
    const float *x;                      /* [n, width] */
    const I *rows;                       /* [n] */
    const int32_t *next, *first;         /* [n], from chain_kernel */
    int64_t n, width;
};

template <class I> static __global__ void scatter_kernel(const scatter_rows<I> o)
{
    float *__restrict__ y = o.y;
    const float *__restrict__ x = o.x;
    const I *__restrict__ rows = o.rows;
    const int32_t *__restrict__ next = o.next, *__restrict__ first = o.first;
    const int64_t n = o.n, width = o.width;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        if (!first[i]) continue;
        float *to = y + (int64_t)rows[i] * width;
        for (int64_t j = threadIdx.x; j < width; j += blockDim.x) {
            float sum = to[j];
            for (int64_t k = i; k != CHAIN_END; k = next[k]) sum += x[k * width + j];
            to[j] = sum;
        }
    }
}

static __global__ void add_kernel(float *__restrict__ y, const float *__restrict__ x, int64_t n)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] += x[i];
}

static __global__ void add_columns_kernel(struct op_add_columns o)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < o.t * o.n; i += stride) {
        float *y = o.y + i / o.n * o.ldy + i % o.n;
        const float x = o.x[i / o.n * o.ldx + i % o.n];
        *y = o.accumulate ? fmaf(o.scale, x, *y) : o.scale * x;
    }
}

template <class I>
static void launch_gather(const struct kctx *c, float *y, const float *x, const I *rows, int64_t n, int64_t width)
{
    if (n > 0 && width > 0) CUDA_LAUNCH(c, gather_kernel<I>, cuda_blocks(n, 1), ROW_THREADS, 0, y, x, rows, n, width);
}

template <class I>
static void launch_scatter(const struct kctx *c, float *y, const float *x, const I *rows, int64_t n, int64_t width)
{
    if (n <= 0 || width <= 0) return;
    int32_t *next = (int32_t *)cuda_scratch(c, 2 * n * (int64_t)sizeof *next);
    if (!next) return;
    CUDA_LAUNCH(c, chain_kernel<I>, cuda_blocks(n, ROW_THREADS), ROW_THREADS, 0, next, next + n, rows, n);
    CUDA_LAUNCH(c, scatter_kernel<I>, cuda_blocks(n, 1), ROW_THREADS, 0, (scatter_rows<I>{y, x, rows, next, next + n, n, width}));
}

void cuda_embed(const struct kctx *c, const struct op_embed *o)
{
    CUDA_OP(c, "embed", "t width", o->t, o->width);
    launch_gather(c, o->x, o->table, o->ids, o->t, o->width);
}

void cuda_embed_grad(const struct kctx *c, const struct op_embed_grad *o)
{
    CUDA_OP(c, "embed_grad", "t width", o->t, o->width);
    launch_scatter(c, o->dtable, o->dx, o->ids, o->t, o->width);
}

void cuda_gather_rows(const struct kctx *c, const struct op_gather_rows *o)
{
    CUDA_OP(c, "gather_rows", "n width", o->n, o->width);
    launch_gather(c, o->y, o->x, o->rows, o->n, o->width);
}

void cuda_scatter_add_rows(const struct kctx *c, const struct op_scatter_add_rows *o)
{
    CUDA_OP(c, "scatter_add_rows", "n width", o->n, o->width);
    launch_scatter(c, o->y, o->x, o->rows, o->n, o->width);
}

void cuda_add(const struct kctx *c, const struct op_add *o)
{
    CUDA_OP(c, "add", "n", o->n);
    if (o->n > 0) CUDA_LAUNCH(c, add_kernel, cuda_blocks(o->n, ROW_THREADS), ROW_THREADS, 0, o->y, o->x, o->n);
}

void cuda_add_columns(const struct kctx *c, const struct op_add_columns *o)
{
    CUDA_OP(c, "add_columns", "t n", o->t, o->n);
    if (o->t > 0 && o->n > 0) CUDA_LAUNCH(c, add_columns_kernel, cuda_blocks(o->t * o->n, ROW_THREADS), ROW_THREADS, 0, *o);
}
