/* RMSNorm and its gradient (definitions: ref/norm.c). Row (t, h) of width C is at t*ld + h*C.
 *
 *   rms = 1/sqrt(sum_c x_c^2 / C + eps)          y_c = (x_c rms) w_c
 *   dx_c (+)= rms (w_c dy_c) - x_c rms^3/C sum_i (w_i dy_i x_i)
 *   dw_c += sum_rows (dy_c x_c) rms
 *
 * Narrow rows (the q and k norms) take a warp each, wide ones a block. The gradient of w is summed
 * in parts of whole rows, then over the parts. */
#include "norm.cuh"

enum { WARPS = 8, SUM_COLUMNS = 32, SUM_LANES = 8, SUM_ROWS = 64, SUM_PARTS = 256 };

struct norm_rows { /* position of a row, the same in x, y and their gradients */
    int64_t rows, heads, width, ld;
};

static __device__ int64_t norm_at(const norm_rows r, int64_t row)
{
    return row / r.heads * r.ld + row % r.heads * r.width;
}

/* THREADS threads per row, blockDim.y rows per block. Y is the element type of o.y. w, here and x
 * below, are the operation's; they are separate arguments because they are only read. x may be y
 * (and dx dy), and a `__restrict__` in the body would let nvcc 13 treat everything read as
 * constant. */
template <int THREADS, typename Y>
static __global__ void rmsnorm_kernel(const struct op_rmsnorm o, const float *__restrict__ w, norm_rows r)
{
    __shared__ float part[THREADS / 32];
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    launch_wait();
    if (row >= r.rows) return;
    const float *from = o.x + norm_at(r, row);
    Y *to = static_cast<Y *>(o.y) + norm_at(r, row);
    float sum = 0;
    for (int64_t j = threadIdx.x; j < r.width; j += THREADS) sum = fmaf(from[j], from[j], sum);
    const float scale = norm_scale<THREADS>(sum, r.width, o.eps, part);
    for (int64_t j = threadIdx.x; j < r.width; j += THREADS) row_store(to + j, from[j] * scale * w[j]);
    if (o.rms && threadIdx.x == 0) o.rms[row] = scale;
}

template <int THREADS>
static __global__ void rmsnorm_dx_kernel(const struct op_rmsnorm_grad o, const float *__restrict__ x, const float *__restrict__ w,
                                         norm_rows r)
{
    __shared__ float part[THREADS / 32];
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= r.rows) return;
    const float *xr = x + norm_at(r, row), *dyr = o.dy + norm_at(r, row), scale = o.rms[row];
    float *dxr = o.dx + norm_at(r, row);
    float sum = 0;
    for (int64_t j = threadIdx.x; j < r.width; j += THREADS) sum = fmaf(w[j] * dyr[j], xr[j], sum);
    sum = block_reduce<add_op, THREADS>(sum, part) * scale * scale * scale / (float)r.width;
    for (int64_t j = threadIdx.x; j < r.width; j += THREADS) {
        const float d = fmaf(-sum, xr[j], scale * (w[j] * dyr[j]));
        dxr[j] = o.accumulate ? dxr[j] + d : d;
    }
}

/* parts[p, c] = sum over the rows of part p of (dy_c x_c) rms: SUM_LANES lanes of rows, lane l
 * taking rows l, l + SUM_LANES, ..., added in order. */
static __global__ void rmsnorm_dw_kernel(float *__restrict__ parts, const float *__restrict__ dy, const float *__restrict__ x,
                                         const float *__restrict__ rms, norm_rows r, int64_t rows_a_part)
{
    __shared__ float lane[SUM_LANES][SUM_COLUMNS];
    const int64_t column = (int64_t)blockIdx.x * SUM_COLUMNS + threadIdx.x;
    const int64_t begin = (int64_t)blockIdx.y * rows_a_part, end = begin + rows_a_part < r.rows ? begin + rows_a_part : r.rows;
    float sum = 0;
    if (column < r.width)
        for (int64_t i = begin + threadIdx.y; i < end; i += SUM_LANES)
            sum = fmaf(dy[norm_at(r, i) + column] * x[norm_at(r, i) + column], rms[i], sum);
    lane[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || column >= r.width) return;
    for (int i = 1; i < SUM_LANES; i++) sum += lane[i][threadIdx.x];
    parts[blockIdx.y * r.width + column] = sum;
}

static __global__ void add_parts_kernel(float *__restrict__ y, const float *__restrict__ parts, int64_t n_parts, int64_t width)
{
    const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= width) return;
    float sum = 0;
    for (int64_t p = 0; p < n_parts; p++) sum += parts[p * width + j];
    y[j] += sum;
}

template <typename Y> static void rmsnorm_to(const struct kctx *c, const struct op_rmsnorm *o, norm_rows r)
{
    if (o->width <= NORM_WARP_WIDTH)
        CUDA_LAUNCH_AFTER(c, (rmsnorm_kernel<32, Y>), cuda_blocks(r.rows, WARPS), dim3(32, WARPS), 0, *o, o->w, r);
    else
        CUDA_LAUNCH_AFTER(c, (rmsnorm_kernel<NORM_THREADS, Y>), (unsigned)r.rows, NORM_THREADS, 0, *o, o->w, r);
}

void cuda_rmsnorm(const struct kctx *c, const struct op_rmsnorm *o)
{
    CUDA_OP(c, "rmsnorm", "t heads width", o->t, o->heads, o->width);
    const norm_rows r = {o->t * o->heads, o->heads, o->width, o->ld};
    if (r.rows <= 0 || o->width <= 0) return;
    if (o->y_dtype == DTYPE_BF16)
        rmsnorm_to<__nv_bfloat16>(c, o, r);
    else
        rmsnorm_to<float>(c, o, r);
}

/* Compute dw; returns 0 if out of memory. */
static int weight_grad(const struct kctx *c, const struct op_rmsnorm_grad *o, norm_rows r)
{
    int64_t parts = (r.rows + SUM_ROWS - 1) / SUM_ROWS;
    if (parts > SUM_PARTS) parts = SUM_PARTS;
    const int64_t rows_a_part = (r.rows + parts - 1) / parts;
    parts = (r.rows + rows_a_part - 1) / rows_a_part;
    float *sums = (float *)cuda_scratch(c, parts * o->width * (int64_t)sizeof *sums);
    if (!sums) return 0;
    CUDA_LAUNCH(c, rmsnorm_dw_kernel, dim3((unsigned)((o->width + SUM_COLUMNS - 1) / SUM_COLUMNS), (unsigned)parts),
                dim3(SUM_COLUMNS, SUM_LANES), 0, sums, o->dy, o->x, o->rms, r, rows_a_part);
    CUDA_LAUNCH(c, add_parts_kernel, cuda_blocks(o->width, 256), 256, 0, o->dw, sums, parts, o->width);
    return 1;
}

void cuda_rmsnorm_grad(const struct kctx *c, const struct op_rmsnorm_grad *o)
{
    CUDA_OP(c, "rmsnorm_grad", "t heads width", o->t, o->heads, o->width);
    const norm_rows r = {o->t * o->heads, o->heads, o->width, o->ld};
    if (r.rows <= 0 || o->width <= 0) return;
    if (o->dw && !weight_grad(c, o, r)) return; /* runs before dx is written, which may be dy */
    if (o->width <= NORM_WARP_WIDTH)
        CUDA_LAUNCH(c, rmsnorm_dx_kernel<32>, cuda_blocks(r.rows, WARPS), dim3(32, WARPS), 0, *o, o->x, o->w, r);
    else
        CUDA_LAUNCH(c, rmsnorm_dx_kernel<NORM_THREADS>, (unsigned)r.rows, NORM_THREADS, 0, *o, o->x, o->w, r);
}
