/* Products on tensor cores in which an output is one chain of mma.m16n8k16 over k = 0, 16, 32, ..., starting from 0, then bias, then residual. An
 * output of mma depends on its row of A, its column of B and the sum it continues, so its bits depend on neither T nor the row's place nor the
 * tile: this is the product of deterministic = batch_invariant, for any number of rows, with one order for all.
 *
 * Blocks of ROWS rows of x and 128 of W; 32 inner indices a stage, three stages of cp.async.
 */
#include "matmul.h"

enum { COLUMNS = 128, STEP = 32, STAGES = 3, THREADS = 256 };

/* rows x 32 bf16 in shared memory, chunks of 16 bytes moved so that eight rows of an 8x8 matrix lie in different banks. */
__device__ inline __nv_bfloat16 *chain_at(__nv_bfloat16 *tile, int row, int column)
{
    return tile + row * STEP + ((column / 8) ^ (row / 2 % 4)) * 8;
}

template <int ROWS>
__device__ inline void chain_load(__nv_bfloat16 *tile, const void *from, int64_t first, int64_t rows, int64_t k, int64_t inner)
{
    for (int i = (int)threadIdx.x; i < ROWS * STEP / 8; i += THREADS) {
        const int r = i / (STEP / 8), column = i % (STEP / 8) * 8;
        const bool valid = first + r < rows && k + column < inner;
        const int64_t at = valid ? (first + r) * inner + k + column : 0;
        cp_async16(chain_at(tile, r, column), static_cast<const __nv_bfloat16 *>(from) + at, valid);
    }
}

/* Warps: 8 side by side over the columns for 16 rows of x, 2 x 4 for 128. */
template <int ROWS> struct chain_shape {
    static constexpr int DOWN = ROWS == 16 ? 1 : 2, ACROSS = 8 / DOWN;
    static constexpr int M = ROWS / DOWN / 16, N = COLUMNS / ACROSS / 16; /* 16 x 16 tiles of a warp */
    static constexpr int STAGE = (ROWS + COLUMNS) * STEP, BYTES = STAGES * STAGE * 2;
};

template <int ROWS> __device__ inline void chain_step(float acc[][chain_shape<ROWS>::N * 2][4], __nv_bfloat16 *x, __nv_bfloat16 *w)
{
    using S = chain_shape<ROWS>;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int row = warp / S::ACROSS * S::M * 16, column = warp % S::ACROSS * S::N * 16;
#pragma unroll
    for (int k = 0; k < STEP; k += 16) {
        uint32_t a[S::M][4], b[S::N][4];
#pragma unroll
        for (int m = 0; m < S::M; m++) ldmatrix(a[m], chain_at(x, row + m * 16 + tile_row(lane), k + tile_col(lane)));
#pragma unroll
        for (int n = 0; n < S::N; n++) ldmatrix(b[n], chain_at(w, column + n * 16 + tile_row_b(lane), k + tile_col_b(lane)));
#pragma unroll
        for (int m = 0; m < S::M; m++)
#pragma unroll
            for (int n = 0; n < S::N; n++) {
                mma_bf16(acc[m][2 * n], a[m], b[n]);
                mma_bf16(acc[m][2 * n + 1], a[m], b[n] + 2);
            }
    }
}

template <int ROWS> static __global__ void __launch_bounds__(THREADS, 1) product_chain(const product p)
{
    using S = chain_shape<ROWS>;
    CUDA_SHARED(__nv_bfloat16, shared);
    const int64_t row = (int64_t)blockIdx.x * ROWS, column = (int64_t)blockIdx.y * COLUMNS;
    float acc[S::M][S::N * 2][4];
#pragma unroll
    for (int m = 0; m < S::M; m++)
#pragma unroll
        for (int n = 0; n < S::N * 2; n++) acc[m][n][0] = acc[m][n][1] = acc[m][n][2] = acc[m][n][3] = 0;
    const int64_t steps = (p.k + STEP - 1) / STEP;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) {
            chain_load<ROWS>(shared + s * S::STAGE, p.x, row, p.t, s * STEP, p.k);
            chain_load<COLUMNS>(shared + s * S::STAGE + ROWS * STEP, p.w, column, p.n, s * STEP, p.k);
        }
        cp_async_commit();
    }
    for (int64_t s = 0; s < steps; s++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        const int64_t next = s + STAGES - 1;
        if (next < steps) {
            __nv_bfloat16 *stage = shared + next % STAGES * S::STAGE;
            chain_load<ROWS>(stage, p.x, row, p.t, next * STEP, p.k);
            chain_load<COLUMNS>(stage + ROWS * STEP, p.w, column, p.n, next * STEP, p.k);
        }
        cp_async_commit();
        __nv_bfloat16 *stage = shared + s % STAGES * S::STAGE;
        chain_step<ROWS>(acc, stage, stage + ROWS * STEP);
    }
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int m = 0; m < S::M; m++)
#pragma unroll
        for (int n = 0; n < S::N * 2; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int64_t r = row + (warp / S::ACROSS * S::M + m) * 16 + lane / 4 + i / 2 * 8;
                const int64_t q = column + warp % S::ACROSS * S::N * 16 + n * 8 + lane % 4 * 2 + i % 2;
                if (r >= p.t || q >= p.n) continue;
                float y = acc[m][n][i];
                if (p.bias) y += p.bias[q];
                if (p.residual) y += p.residual[r * p.ldy + q];
                p.y[r * p.ldy + q] = y;
            }
}

template <int ROWS> static void chain_launch(const struct kctx *c, const product &p)
{
    const dim3 grid((unsigned)((p.t + ROWS - 1) / ROWS), (unsigned)((p.n + COLUMNS - 1) / COLUMNS));
    CUDA_SHARED_LIMIT(c, product_chain<ROWS>, chain_shape<ROWS>::BYTES);
    CUDA_LAUNCH(c, product_chain<ROWS>, grid, THREADS, chain_shape<ROWS>::BYTES, p);
}

void matmul_chain(const struct kctx *c, const product &p)
{
    if (p.t <= 32)
        chain_launch<16>(c, p);
    else
        chain_launch<128>(c, p);
}
