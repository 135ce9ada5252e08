/* Products of few rows: y[T,N] = x W^T with T <= 32, where the time is that of reading W once. They
 * are computed as W^T x^T on tensor cores, with W's rows as A and x's rows as B. Both go from
 * memory to registers in chunks of 16 bytes: a lane's eight consecutive k of a row serve as columns
 * (2t, 2t+1, 2t+8, 2t+9) of two mma. A and B use the same assignment, so the sum over k is
 * unchanged.
 *
 * A block has 64 rows of W, or 32 or 16 if that would give too few blocks. Its eight warps take 64
 * k in turn, and their sums are added in the order of the warps. A block reads all of x once, T /
 * rows as many bytes as of W, so it has as many rows as possible. K is split into slices if a
 * product is followed by a sum anyway (stream_cut_of); they are added in order (matmul_add.cu). So
 * an output has one order, determined by N and K, for every T and every number of rows in a block.
 * For a gated MLP, half of a block's rows are the gate's and half the corresponding gated rows, and
 * only their product is stored.
 *
 * W comes by cp.async through a separate ring for each warp in shared memory, so that data in
 * flight is not limited by registers. A lane copies the data that it reads itself, so no thread
 * waits for another before the warps' sums are added. The first stages are requested before the
 * preceding launch ends. */
#include "matmul.h"

#include "convert.h"
#include "swiglu.cuh"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 64,
    WARPS = 8,
    /* minimum number of blocks, if there are enough rows: the multiprocessors of an H100, used on
     * every GPU */
    BLOCKS = 132
};

template <typename X> struct stream_x;
template <> struct stream_x<__nv_bfloat16> {
    uint4 v;
    __device__ inline void zero() { v = make_uint4(0, 0, 0, 0); }
    __device__ inline void load(const __nv_bfloat16 *from) { v = *reinterpret_cast<const uint4 *>(from); }
    __device__ inline void pairs(uint32_t r[4]) const { r[0] = v.x, r[1] = v.y, r[2] = v.z, r[3] = v.w; }
};
template <> struct stream_x<float> {
    float4 a, b;
    __device__ inline void zero() { a = b = make_float4(0, 0, 0, 0); }
    __device__ inline void load(const float *from)
    {
        a = *reinterpret_cast<const float4 *>(from);
        b = *reinterpret_cast<const float4 *>(from + 4);
    }
    __device__ inline void pairs(uint32_t r[4]) const
    {
        r[0] = bf16_pair(a.x, a.y), r[1] = bf16_pair(a.z, a.w), r[2] = bf16_pair(b.x, b.y), r[3] = bf16_pair(b.z, b.w);
    }
};

/* A stage of a warp's ring: 64 k of 16 or 32 rows of W, or 32 k of 64 rows; one chunk of 16 bytes
 * of every lane is [lanes]. While a block's warps process the oldest stage, 64 KB (M = 1: 48 KB)
 * are in flight. This fits in the 99 KB that a block has on sm_120. */
template <int M> struct stream_ring {
    static constexpr int HALVES = M == 4 ? 1 : 2; /* of 32 k */
    static constexpr int STAGES = M == 1 ? 4 : 3, STAGE = 2 * M * HALVES * 32, BYTES = WARPS * STAGES * STAGE * 16;

    static __device__ inline void fetch(uint4 *to, const __nv_bfloat16 *const rows[M][2], int64_t k)
    {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int g = 0; g < HALVES; g++) cp_async16(to + ((m * 2 + r) * HALVES + g) * 32, rows[m][r] + k + g * 32, true);
    }

    /* First inner index of the warp's stage i. */
    static __device__ inline int64_t inner(int64_t first, int i)
    {
        return first + (int64_t)(i * HALVES / 2) * WARPS * PIECE + (HALVES == 1 ? i % 2 * 32 : 0);
    }
};

template <int M> struct stream_w { /* a stage: rows lane/4 and lane/4 + 8 of each 16 */
    static constexpr int HALVES = stream_ring<M>::HALVES;
    uint4 w[M][2][HALVES];
    __device__ inline void load(const uint4 *from)
    {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int g = 0; g < HALVES; g++) w[m][r][g] = from[((m * 2 + r) * HALVES + g) * 32];
    }
};

template <int N, typename X, int HALVES> struct stream_tokens { /* the same k of 8 N rows of x */
    stream_x<X> x[N][HALVES];
    __device__ inline void load(const X *const tokens[N], int64_t k)
    {
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int g = 0; g < HALVES; g++)
                if (tokens[n])
                    x[n][g].load(tokens[n] + k + g * 32);
                else
                    x[n][g].zero();
    }
};

template <int M, int N, typename X>
__device__ inline void stream_add(float acc[M][N][4], const stream_w<M> &w, const stream_tokens<N, X, stream_w<M>::HALVES> &x)
{
#pragma unroll
    for (int g = 0; g < stream_w<M>::HALVES; g++)
#pragma unroll
        for (int n = 0; n < N; n++) {
            uint32_t b[4];
            x.x[n][g].pairs(b);
#pragma unroll
            for (int m = 0; m < M; m++) {
                const uint4 up = w.w[m][0][g], down = w.w[m][1][g];
                const uint32_t first[4] = {up.x, down.x, up.y, down.y}, second[4] = {up.z, down.z, up.w, down.w};
                mma_bf16(acc[m][n], first, b);
                mma_bf16(acc[m][n], second, b + 2);
            }
        }
}

/* Sums of 16 M rows of W with 8 N tokens over groups first .. end-1 of 64 k, per warp: [WARPS][16
 * M][8 N] in shared memory, which replaces the ring. GATED: 8 M rows of the gate and the
 * corresponding gated rows. */
template <int M, int N, typename X, bool GATED>
__device__ inline void stream_sums(unsigned char *shared, const product &p, int64_t row, int64_t first, int64_t end)
{
    using R = stream_ring<M>;
    const int64_t n_rows = GATED ? p.n / 2 : p.n;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    uint4 *ring = reinterpret_cast<uint4 *>(shared) + warp * R::STAGES * R::STAGE + lane;
    float *sums = reinterpret_cast<float *>(shared);
    const __nv_bfloat16 *rows[M][2];
    const X *tokens[N];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const bool gates = GATED && m >= M / 2;
            const int64_t n = row + (gates ? m - M / 2 : m) * 16 + r * 8 + lane / 4, at = n < n_rows ? n : n_rows - 1;
            rows[m][r] = static_cast<const __nv_bfloat16 *>(p.w) + (at + (gates ? n_rows : 0)) * p.k + lane % 4 * 8;
        }
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int64_t t = n * 8 + lane / 4;
        tokens[n] = t < p.t ? static_cast<const X *>(p.x) + t * p.k + lane % 4 * 8 : nullptr;
    }
    float acc[M][N][4];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++) acc[m][n][0] = acc[m][n][1] = acc[m][n][2] = acc[m][n][3] = 0;
    const int64_t k = (first + warp) * PIECE;
    const int groups = (int)((end - first - warp + WARPS - 1) / WARPS),
              iterations = groups * 2 / R::HALVES; /* below 1: the warp has no group */
    for (int i = 0; i < R::STAGES; i++) {
        if (i < iterations) R::fetch(ring + i * R::STAGE, rows, R::inner(k, i));
        cp_async_commit();
    }
    launch_wait(); /* W is being copied; x may still be written by the preceding launch */
    for (int i = 0, stage = 0; i < iterations; i++, stage = stage + 1 < R::STAGES ? stage + 1 : 0) {
        stream_tokens<N, X, R::HALVES> x;
        stream_w<M> w;
        x.load(tokens, R::inner(k, i));
        cp_async_wait<R::STAGES - 1>();
        w.load(ring + stage * R::STAGE);
        stream_add<M, N, X>(acc, w, x);
        if (i + R::STAGES < iterations) R::fetch(ring + stage * R::STAGE, rows, R::inner(k, i + R::STAGES));
        cp_async_commit();
    }
    __syncthreads(); /* no copy into any ring is in flight */
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums[(warp * 16 * M + m * 16 + lane / 4 + i / 2 * 8) * 8 * N + n * 8 + lane % 4 * 2 + i % 2] = acc[m][n][i];
    __syncthreads();
}

/* Sum of the block's row r and token t: the warps' sums in order. */
template <int M, int N> __device__ inline float stream_sum(const float *sums, int r, int64_t t)
{
    float y = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) y += sums[(w * 16 * M + r) * 8 * N + t];
    return y;
}

/* parts: the sums of slice blockIdx.y go to parts [slices, T, N]; NULL: there is one slice, and y
 * is finished here. */
template <int M, int N, typename X>
static __global__ void __launch_bounds__(32 * WARPS, 1) product_stream(const product p, int groups, float *parts)
{
    CUDA_SHARED(unsigned char, shared);
    const float *sums = reinterpret_cast<const float *>(shared);
    const int64_t row = (int64_t)blockIdx.x * 16 * M, first = (int64_t)blockIdx.y * groups, all = p.k / PIECE;
    stream_sums<M, N, X, false>(shared, p, row, first, min(all, first + groups));
    for (int i = (int)threadIdx.x; i < 16 * M * 8 * N; i += (int)blockDim.x) {
        const int64_t n = row + i % (16 * M), t = i / (16 * M);
        if (n >= p.n || t >= p.t) continue;
        float y = stream_sum<M, N>(sums, i % (16 * M), t);
        if (parts) {
            parts[(blockIdx.y * p.t + t) * p.n + n] = y;
            continue;
        }
        if (p.bias) y += p.bias[n];
        if (p.residual) y += p.residual[t * p.ldy + n];
        p.y[t * p.ldy + n] = y;
    }
}

template <int M, int N, typename X>
static __global__ void __launch_bounds__(32 * WARPS, 1) product_gated(const product p, const product_gate g)
{
    CUDA_SHARED(unsigned char, shared);
    const float *sums = reinterpret_cast<const float *>(shared);
    const int64_t row = (int64_t)blockIdx.x * 8 * M;
    stream_sums<M, N, X, true>(shared, p, row, 0, p.k / PIECE);
    for (int i = (int)threadIdx.x; i < 8 * M * 8 * N; i += (int)blockDim.x) {
        const int64_t n = row + i % (8 * M), t = i / (8 * M);
        if (n >= g.f || t >= p.t) continue;
        const float gate = rounded_if(g.rounds, stream_sum<M, N>(sums, i % (8 * M), t)),
                    up = rounded_if(g.rounds, stream_sum<M, N>(sums, i % (8 * M) + 8 * M, t));
        const float act = gate * (g.gelu ? swiglu_gate<1>(gate) : swiglu_gate<0>(gate)) * up;
        if (g.dtype == DTYPE_BF16)
            row_store(static_cast<__nv_bfloat16 *>(g.act) + t * g.f + n, act);
        else
            row_store(static_cast<float *>(g.act) + t * g.f + n, act);
    }
}

/* How a product is split and launched; the split and the rows per block follow from its shape. */
struct stream_job {
    const product &p;
    const product_gate *gate;
    stream_cut cut;
    float *parts;
};

/* true if that many rows of W per block keep the whole GPU busy */
static bool fills_device(const stream_job &j, int64_t rows)
{
    return (j.p.n + rows - 1) / rows * j.cut.slices >= BLOCKS;
}

template <int M, int N, typename X> static void stream_launch(const struct kctx *c, const stream_job &j)
{
    static_assert(stream_ring<M>::BYTES >= WARPS * 16 * M * 8 * N * 4, "the sums reuse the ring's shared memory");
    const dim3 grid((unsigned)((j.p.n + 16 * M - 1) / (16 * M)), (unsigned)j.cut.slices);
    CUDA_SHARED_LIMIT(c, (product_stream<M, N, X>), stream_ring<M>::BYTES);
    CUDA_LAUNCH_AFTER(c, (product_stream<M, N, X>), grid, 32 * WARPS, stream_ring<M>::BYTES, j.p, j.cut.groups, j.parts);
}

template <int M, int N, typename X> static void gated_launch(const struct kctx *c, const stream_job &j)
{
    const unsigned blocks = (unsigned)((j.gate->f + 8 * M - 1) / (8 * M));
    CUDA_SHARED_LIMIT(c, (product_gated<M, N, X>), stream_ring<M>::BYTES);
    CUDA_LAUNCH_AFTER(c, (product_gated<M, N, X>), blocks, 32 * WARPS, stream_ring<M>::BYTES, j.p, *j.gate);
}

template <int N, typename X> static void stream_rows(const struct kctx *c, const stream_job &j)
{
    if (j.gate && fills_device(j, 64))
        gated_launch<4, N, X>(c, j);
    else if (j.gate)
        gated_launch<2, N, X>(c, j);
    else if (fills_device(j, 64))
        stream_launch<4, N, X>(c, j);
    else if (fills_device(j, 32))
        stream_launch<2, N, X>(c, j);
    else
        stream_launch<1, N, X>(c, j);
}

template <typename X> static void stream_run(const struct kctx *c, const stream_job &j)
{
    if (j.p.t <= 8)
        stream_rows<1, X>(c, j);
    else if (j.p.t <= 16)
        stream_rows<2, X>(c, j);
    else
        stream_rows<4, X>(c, j);
}

/* TARE_CUDA_STREAM=0: products of few rows by cuBLASLt too. */
static bool stream_wanted(void)
{
    static const char *const asked = getenv("TARE_CUDA_STREAM");
    return !(asked && !strcmp(asked, "0"));
}

bool matmul_stream_fits(int64_t t, int64_t k)
{
    return stream_wanted() && t <= STREAM_ROWS && k > 0 && k % PIECE == 0;
}

stream_cut stream_cut_of(const product &p)
{
    const int64_t tiles = (p.n + 63) / 64, all = p.k / PIECE, wanted = (BLOCKS + tiles - 1) / tiles, most = all / WARPS;
    const int64_t slices = wanted < most ? wanted : most;
    if (!p.residual || (p.n + 31) / 32 >= BLOCKS || slices < 2) return stream_cut{1, (int)all};
    const int64_t groups = (all + slices - 1) / slices;
    return stream_cut{(int)((all + groups - 1) / groups), (int)groups};
}

void matmul_stream(const struct kctx *c, const product &p, bool x_is_bf16, const product_gate *gate, float *parts)
{
    const stream_job j = {p, gate, gate ? stream_cut{1, 0} : stream_cut_of(p), parts};
    if (x_is_bf16)
        stream_run<__nv_bfloat16>(c, j);
    else
        stream_run<float>(c, j);
}
