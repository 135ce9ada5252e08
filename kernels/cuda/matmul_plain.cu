/* Products without tensor cores in the order that kernels_ops.h defines: acc = fma(a[k], b[k], acc)
 * for k = 0, 1, ..., then bias, then residual. Blocks of 64 x 64, 256 threads with 4 x 4 outputs
 * each, 16 inner indices at a time. */
#include "matmul.h"

enum { TILE = 64, STEP = 16, THREADS = 256 };

/* Load rows x STEP of a factor into shared memory, transposed: to[k][row]. The inner loop runs
 * along the contiguous index. */
struct plain_factor {
    const void *from;
    int64_t rows, row_step, k_step;
    enum dtype dtype;
    int round;
};

__device__ inline void plain_load(float (*to)[TILE + 1], const plain_factor &f, int64_t first, int64_t k, int64_t inner)
{
    for (int i = (int)threadIdx.x; i < TILE * STEP; i += THREADS) {
        const int r = f.row_step == 1 ? i % TILE : i / STEP, j = f.row_step == 1 ? i / TILE : i % STEP;
        const int64_t at = (first + r) * f.row_step + (k + j) * f.k_step;
        float x = 0;
        if (first + r < f.rows && k + j < inner)
            x = f.dtype == DTYPE_BF16 ? __bfloat162float(static_cast<const __nv_bfloat16 *>(f.from)[at])
                                      : static_cast<const float *>(f.from)[at];
        to[j][r] = f.round ? __bfloat162float(__float2bfloat16_rn(x)) : x;
    }
}

static __global__ void __launch_bounds__(THREADS, 1) product_plain(const plain_product p)
{
    __shared__ float a[STEP][TILE + 1], b[STEP][TILE + 1];
    const int64_t row = (int64_t)blockIdx.y * TILE, column = (int64_t)blockIdx.x * TILE;
    const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
    float acc[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int64_t r = row + ty + i * 16, q = column + tx + j * 16;
            acc[i][j] = p.continues && r < p.m && q < p.n ? p.c[r * p.c_row + q] : 0;
        }
    for (int64_t k = 0; k < p.k; k += STEP) {
        __syncthreads();
        plain_load(a, plain_factor{p.a, p.m, p.a_row, p.a_col, p.a_dtype, p.round}, row, k, p.k);
        plain_load(b, plain_factor{p.b, p.n, p.b_col, p.b_row, p.b_dtype, p.round}, column, k, p.k);
        __syncthreads();
        const int most = p.k - k < STEP ? (int)(p.k - k) : STEP;
        for (int q = 0; q < most; q++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) acc[i][j] = fmaf(a[q][ty + i * 16], b[q][tx + j * 16], acc[i][j]);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int64_t r = row + ty + i * 16, q = column + tx + j * 16;
            if (r >= p.m || q >= p.n) continue;
            float y = acc[i][j];
            if (p.bias) y += p.bias[q];
            if (p.residual) y += p.residual[r * p.c_row + q];
            p.c[r * p.c_row + q] = y;
        }
}

void matmul_plain(const struct kctx *c, const plain_product &p)
{
    if (p.m <= 0 || p.n <= 0) return;
    CUDA_LAUNCH(c, product_plain, dim3((unsigned)((p.n + TILE - 1) / TILE), (unsigned)((p.m + TILE - 1) / TILE)), THREADS, 0, p);
}
