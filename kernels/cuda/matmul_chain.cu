/* Products on tensor cores whose results depend neither on T nor on a row's place nor on the tile:
 * those of deterministic = batch_invariant, for any number of rows. K is split into slices, by N
 * and K alone. A slice is one chain of mma.m16n8k16 over its k in order, starting at 0 (an output
 * of mma depends on its row of A, its column of B and the sum that it continues). The slices are
 * added in order, then bias, then residual.
 *
 * Blocks have ROWS rows of x and 128 of W, with 32 inner indices per stage and three stages of
 * cp.async. With few rows, or with more rows but so few tiles that most of the GPU would be idle, a
 * block computes one slice, so that there are enough blocks to read W at memory speed, and a
 * separate kernel adds the slices. Otherwise a block computes one slice after another. More than 32
 * rows use another kernel with the same sums where it exists (matmul_wgmma.cu). */
#include "matmul.h"

enum { MANY_ROWS = 128, COLUMNS = 128, STEP = CHAIN_STEP, STAGES = 3, THREADS = 256, FEW_ROWS = 32 };
enum {
    /* an H100's number, used on every GPU because results depend on how K is split */
    PROCESSORS = 132,
    BLOCKS = 264,    /* wanted for few rows, two for each processor */
    LEAST_STEPS = 8, /* of a slice */
    /* steps that all of them together could compute while a tile's sums of one slice are written
     * and read */
    SUM_STEPS = 20
};

/* Address in a tile of rows x 32 bf16 in shared memory. Chunks of 16 bytes are permuted so that
 * eight rows of an 8x8 matrix are in different banks. */
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

/* Arrangement of warps: 8 across the columns for 16 rows of x, 2 x 4 for 128. */
template <int ROWS> struct chain_shape {
    static constexpr int DOWN = ROWS == 16 ? 1 : 2, ACROSS = 8 / DOWN;
    /* 16 x 16 tiles of a warp */
    static constexpr int M = ROWS / DOWN / 16, N = COLUMNS / ACROSS / 16;
    static constexpr int STAGE = (ROWS + COLUMNS) * STEP, BYTES = STAGES * STAGE * 2;
};

template <int ROWS> struct chain_sums { /* of a thread */
    using S = chain_shape<ROWS>;
    float v[S::M][S::N * 2][4];

    template <typename F> __device__ inline void each(F f)
    {
#pragma unroll
        for (int m = 0; m < S::M; m++)
#pragma unroll
            for (int n = 0; n < S::N * 2; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) f(m, n, i, v[m][n][i]);
    }
    __device__ inline void zero()
    {
        each([](int, int, int, float &x) { x = 0; });
    }
    __device__ inline void add(const chain_sums &other)
    {
        each([&other](int m, int n, int i, float &x) { x += other.v[m][n][i]; });
    }
};

template <int ROWS> __device__ inline void chain_step(chain_sums<ROWS> &acc, __nv_bfloat16 *x, __nv_bfloat16 *w)
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
                mma_bf16(acc.v[m][2 * n], a[m], b[n]);
                mma_bf16(acc.v[m][2 * n + 1], a[m], b[n] + 2);
            }
    }
}

static chain_cut cut_of(const product &p)
{
    const int steps = (int)((p.k + STEP - 1) / STEP), columns = (int)((p.n + COLUMNS - 1) / COLUMNS);
    const int wanted = (BLOCKS + columns - 1) / columns, slice = (steps + wanted - 1) / wanted;
    return chain_cut{steps, slice > LEAST_STEPS ? slice : (int)LEAST_STEPS};
}

/* True if a block computes only one slice. For many rows this holds if there are so few tiles that
 * it takes less time, including the memory traffic of the slices' sums, with PROCESSORS and a tile
 * of 128 x 128 for any kernel. Both ways give the same bits. */
static bool slices_apart(const product &p, const chain_cut &cut)
{
    const int64_t tiles = (p.t + MANY_ROWS - 1) / MANY_ROWS * ((p.n + COLUMNS - 1) / COLUMNS);
    return chain_slices(cut) > 1 && (p.t <= FEW_ROWS || cut.slice * (PROCESSORS - tiles) > SUM_STEPS * tiles);
}

/* Call f(row of x, row of W, sum) for the sums that exist. */
template <int ROWS, typename F> __device__ inline void chain_results(const product &p, chain_sums<ROWS> &sums, F f)
{
    using S = chain_shape<ROWS>;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t row = (int64_t)blockIdx.x * ROWS + warp / S::ACROSS * S::M * 16 + lane / 4;
    const int64_t column = (int64_t)blockIdx.y * COLUMNS + warp % S::ACROSS * S::N * 16 + lane % 4 * 2;
    sums.each([&](int m, int n, int i, float &x) {
        const int64_t r = row + m * 16 + i / 2 * 8, q = column + n * 8 + i % 2;
        if (r < p.t && q < p.n) f(r, q, x);
    });
}

__device__ inline void chain_finish(const product &p, int64_t r, int64_t q, float y)
{
    if (p.bias) y += p.bias[q];
    if (p.residual) y += p.residual[r * p.ldy + q];
    p.y[r * p.ldy + q] = y;
}

/* parts: one slice per block, blockIdx.z of them, to parts [slices, T, N]; NULL: all slices, to
 * y. */
template <int ROWS, bool PARTS>
static __global__ void __launch_bounds__(THREADS, 1) product_chain(const product p, const chain_cut cut, float *parts)
{
    using S = chain_shape<ROWS>;
    CUDA_SHARED(__nv_bfloat16, shared);
    const int64_t row = (int64_t)blockIdx.x * ROWS, column = (int64_t)blockIdx.y * COLUMNS;
    const int first = PARTS ? (int)blockIdx.z * cut.slice : 0, end = PARTS ? min(cut.steps, first + cut.slice) : cut.steps;
    chain_sums<ROWS> acc, total;
    acc.zero();
    total.zero();
    const auto load = [&](int s) {
        __nv_bfloat16 *stage = shared + (s - first) % STAGES * S::STAGE;
        if (s < end) {
            chain_load<ROWS>(stage, p.x, row, p.t, s * STEP, p.k);
            chain_load<COLUMNS>(stage + ROWS * STEP, p.w, column, p.n, s * STEP, p.k);
        }
        cp_async_commit();
    };
    for (int s = first; s < first + STAGES - 1; s++) load(s);
    for (int s = first, left = cut.slice; s < end; s++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        load(s + STAGES - 1);
        __nv_bfloat16 *stage = shared + (s - first) % STAGES * S::STAGE;
        chain_step<ROWS>(acc, stage, stage + ROWS * STEP);
        if (PARTS || --left || s + 1 == end) continue;
        total.add(acc);
        acc.zero();
        left = cut.slice;
    }
    if (!PARTS && cut.steps > cut.slice) {
        total.add(acc);
        acc = total;
    }
    chain_results<ROWS>(p, acc, [&](int64_t r, int64_t q, float x) {
        if (PARTS)
            parts[(blockIdx.z * p.t + r) * p.n + q] = x;
        else
            chain_finish(p, r, q, x);
    });
}

template <int ROWS, bool PARTS> static void chain_launch(const struct kctx *c, const product &p, const chain_cut &cut, float *parts)
{
    const dim3 grid((unsigned)((p.t + ROWS - 1) / ROWS), (unsigned)((p.n + COLUMNS - 1) / COLUMNS),
                    PARTS ? (unsigned)chain_slices(cut) : 1u);
    CUDA_SHARED_LIMIT(c, (product_chain<ROWS, PARTS>), chain_shape<ROWS>::BYTES);
    CUDA_LAUNCH(c, (product_chain<ROWS, PARTS>), grid, THREADS, chain_shape<ROWS>::BYTES, p, cut, parts);
}

template <int ROWS> static void chain_launch(const struct kctx *c, const product &p, const chain_cut &cut, float *parts)
{
    if (parts)
        chain_launch<ROWS, true>(c, p, cut, parts);
    else
        chain_launch<ROWS, false>(c, p, cut, nullptr);
}

void matmul_chain_many(const struct kctx *c, const product &p, const chain_cut &cut, float *parts)
{
    chain_launch<MANY_ROWS>(c, p, cut, parts);
}

int64_t matmul_chain_bytes(const product &p)
{
    const chain_cut cut = cut_of(p);
    return slices_apart(p, cut) ? chain_slices(cut) * p.t * p.n * (int64_t)sizeof(float) : 0;
}

bool matmul_chain(const struct kctx *c, const product &p, void *scratch, const product_norm *norm)
{
    const chain_cut cut = cut_of(p);
    float *parts = slices_apart(p, cut) ? static_cast<float *>(scratch) : nullptr;
    if (p.t <= FEW_ROWS)
        chain_launch<16>(c, p, cut, parts);
    else if (!matmul_wgmma_fits(p) || !matmul_wgmma_taken(c) || !matmul_wgmma(c, p, cut, parts, 0))
        matmul_chain_many(c, p, cut, parts);
    if (!parts) return false;
    matmul_add(c, p, parts, chain_slices(cut), norm);
    return norm;
}
