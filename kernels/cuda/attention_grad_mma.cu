/* The gradient of attention on tensor cores. Factors are bf16, including P and dS when they enter a
 * product; sums are fp32.
 *
 * Queries: a warp owns 16 (query, head) rows and iterates over keys 64 at a time, as in the forward
 * pass. Keys: a warp owns 16 keys and computes the transposed S^T = K Q^T and dP^T = V dO^T, 32
 * (query, head) rows at a time. P^T and dS^T in registers then are the A operands of dV += P^T dO
 * and dK += dS^T Q. */
#include "attention_grad.cuh"

enum {
    QUERY_THREADS = 2 * GRAD_MMA_ROWS,
    KEY_THREADS = 2 * GRAD_MMA_KEYS /* a warp has 16 rows */,
    KEYS = TILE_KEYS,
    STEP = 32 /* query rows per step of the kernel over keys */
};

/* ---- tiles in shared memory */

/* rows of a head group: row r < n is (query first + r / group, head r % group) */
struct row_source {
    const __nv_bfloat16 *from; /* [any, ld], at the group's first head */
    int64_t ld, first;
    int n, group; /* for keys and values group is 1 */
};

/* Load rows `row` .. +ROWS-1 into shared memory, with zeros from row n on. */
template <int D, int ROWS> __device__ inline void rows_load(__nv_bfloat16 *tile, const row_source &s, int row)
{
    for (int i = (int)threadIdx.x; i < ROWS * D / 8; i += (int)blockDim.x) {
        const int r = i / (D / 8), column = i % (D / 8) * 8;
        const bool valid = row + r < s.n;
        const int at = valid ? row + r : 0;
        cp_async16(tile_at<D>(tile, r, column), s.from + (s.first + at / s.group) * s.ld + at % s.group * D + column, valid);
    }
}

/* ---- dQ */

/* 64 keys of a tile of queries: rows begin .. +63, of which those below `end` exist. own: visible
 * up to the query's own row. */
struct key_block {
    int begin, end;
    bool own;
};

__device__ inline key_block key_block_at(const grad_queries &t, int i)
{
    const int prefix = (t.prefix_len + KEYS - 1) / KEYS;
    if (i < prefix) return key_block{t.prefix + i * KEYS, t.prefix + t.prefix_len, false};
    return key_block{t.own + (i - prefix) * KEYS, t.row + t.n, true};
}

template <int D>
__device__ inline void key_block_load(__nv_bfloat16 *k, __nv_bfloat16 *v, const grad_args &a, key_block b, int head)
{
    const __nv_bfloat16 *keys = a.qkv16 + (a.heads + head) * D;
    rows_load<D, KEYS>(k, row_source{keys, a.stride, b.begin, b.end - b.begin, 1}, 0);
    rows_load<D, KEYS>(v, row_source{keys + a.kv_heads * D, a.stride, b.begin, b.end - b.begin, 1}, 0);
}

/* scores[16, 64] += A[16, D] B[64, D]^T for the warp's rows of A. */
template <int D> __device__ inline void warp_scores(float s[KEYS / 8][4], __nv_bfloat16 *rows, __nv_bfloat16 *keys)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll 2 /* a larger factor would hoist so many addresses that sums are spilled */
    for (int d = 0; d < D / 16; d++) {
        uint32_t x[4];
        ldmatrix(x, tile_at<D>(rows, warp * 16 + tile_row(lane), d * 16 + tile_col(lane)));
#pragma unroll
        for (int n = 0; n < KEYS / 16; n++) {
            uint32_t y[4];
            ldmatrix(y, tile_at<D>(keys, n * 16 + tile_row_b(lane), d * 16 + tile_col_b(lane)));
            mma_bf16(s[2 * n], x, y);
            mma_bf16(s[2 * n + 1], x, y + 2);
        }
    }
}

struct row_state { /* of the lane's two rows */
    float m[2], inverse[2], delta[2];
    int query[2];
};

/* in shared memory: rows of queries, [GRAD_MMA_ROWS, D], and keys and values of a block, [KEYS,
 * D] */
struct query_tiles {
    __nv_bfloat16 *q, *dout, *k, *v;
};

template <int D>
__device__ inline void grad_query_step(float dq[D / 8][4], const grad_args &a, const row_state &r, key_block b,
                                       const query_tiles &t)
{
    const int lane = (int)threadIdx.x % 32;
    const float scale2 = a.scale * LOG2E;
    float s[KEYS / 8][4], dp[KEYS / 8][4];
    warp_scores<D>(s, t.q, t.k);
    warp_scores<D>(dp, t.dout, t.v);
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = b.begin + n * 8 + lane % 4 * 2 + i % 2;
            const bool seen = key < b.end && (!b.own || key <= r.query[i / 2]);
            const float p = seen ? exp2_fast(fmaf(s[n][i], scale2, -r.m[i / 2])) * r.inverse[i / 2] : 0;
            dp[n][i] = p * (dp[n][i] - r.delta[i / 2]) * a.scale;
        }
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) {
        const uint32_t x[4] = {bf16_pair(dp[2 * n][0], dp[2 * n][1]), bf16_pair(dp[2 * n][2], dp[2 * n][3]),
                               bf16_pair(dp[2 * n + 1][0], dp[2 * n + 1][1]), bf16_pair(dp[2 * n + 1][2], dp[2 * n + 1][3])};
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
            uint32_t y[4];
            ldmatrix_trans(y, tile_at<D>(t.k, n * 16 + tile_row(lane), d * 16 + tile_col(lane)));
            mma_bf16(dq[2 * d], x, y);
            mma_bf16(dq[2 * d + 1], x, y + 2);
        }
    }
}

template <int D> __device__ inline row_state rows_state(const grad_args &a, const grad_queries &t, int head, int group)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    row_state r;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = warp * 16 + lane / 4 + i * 8;
        const bool valid = row < t.n * group;
        const int64_t at = (int64_t)(t.row + (valid ? row / group : 0)) * a.heads + head * group + (valid ? row % group : 0);
        r.query[i] = valid ? t.row + row / group : -1;
        r.m[i] = a.stats[at * 2] * LOG2E, r.inverse[i] = 1 / a.stats[at * 2 + 1], r.delta[i] = a.delta[at];
    }
    return r;
}

template <int D> __global__ void __launch_bounds__(QUERY_THREADS, 1) attention_grad_queries(const grad_args a)
{
    CUDA_SHARED(__nv_bfloat16, shared);
    const grad_queries t = a.queries[blockIdx.x];
    const int head = (int)blockIdx.y, group = a.heads / a.kv_heads, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    __nv_bfloat16 *q = shared, *dout = q + GRAD_MMA_ROWS * D, *k = dout + GRAD_MMA_ROWS * D, *v = k + 2 * KEYS * D;
    const int blocks = (t.prefix_len + KEYS - 1) / KEYS + (t.row + t.n - t.own + KEYS - 1) / KEYS;
    rows_load<D, GRAD_MMA_ROWS>(q, row_source{a.qkv16 + head * group * D, a.stride, t.row, t.n * group, group}, 0);
    rows_load<D, GRAD_MMA_ROWS>(dout, row_source{a.dout16 + head * group * D, (int64_t)a.heads * D, t.row, t.n * group, group}, 0);
    key_block_load<D>(k, v, a, key_block_at(t, 0), head);
    cp_async_commit();
    const row_state r = rows_state<D>(a, t, head, group);
    const bool works = warp * 16 < t.n * group;
    float dq[D / 8][4];
#pragma unroll
    for (int d = 0; d < D / 8; d++) dq[d][0] = dq[d][1] = dq[d][2] = dq[d][3] = 0;
    for (int i = 0; i < blocks; i++) {
        const int stage = i % 2, other = (stage ^ 1) * KEYS * D;
        if (i + 1 < blocks) key_block_load<D>(k + other, v + other, a, key_block_at(t, i + 1), head);
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads();
        if (works)
            grad_query_step<D>(dq, a, r, key_block_at(t, i), query_tiles{q, dout, k + stage * KEYS * D, v + stage * KEYS * D});
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = warp * 16 + lane / 4 + i * 8;
        if (row >= t.n * group) continue;
        float *to = a.dqkv + (t.row + row / group) * a.stride + (head * group + row % group) * D + lane % 4 * 2;
#pragma unroll
        for (int d = 0; d < D / 8; d++) *reinterpret_cast<float2 *>(to + d * 8) = make_float2(dq[d][2 * i], dq[d][2 * i + 1]);
    }
}

/* ---- dK, dV */

struct step_rows { /* STEP query rows of a job, and their addresses in shared memory */
    __nv_bfloat16 *q, *dout;
    float *m, *inverse, *delta; /* m in units of log 2 */
    int *query;                 /* -1: no row */
};

template <int D>
__device__ inline void step_load(const step_rows &s, const grad_args &a, const grad_job &j, int row, int head, int group)
{
    const int n = (j.to - j.from) * group;
    rows_load<D, STEP>(s.q, row_source{a.qkv16 + head * group * D, a.stride, j.from, n, group}, row);
    rows_load<D, STEP>(s.dout, row_source{a.dout16 + head * group * D, (int64_t)a.heads * D, j.from, n, group}, row);
    if ((int)threadIdx.x >= STEP) return;
    const int r = row + (int)threadIdx.x, i = (int)threadIdx.x;
    const bool valid = r < n;
    const int64_t at = (int64_t)(j.from + (valid ? r / group : 0)) * a.heads + head * group + (valid ? r % group : 0);
    s.query[i] = valid ? j.from + r / group : -1;
    s.m[i] = a.stats[at * 2] * LOG2E;
    s.inverse[i] = 1 / a.stats[at * 2 + 1];
    s.delta[i] = a.delta[at];
}

/* s[16, STEP] = A[16, D] B[STEP, D]^T for the warp's rows of A. */
template <int D> __device__ inline void step_scores(float s[STEP / 8][4], __nv_bfloat16 *keys, __nv_bfloat16 *rows)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < STEP / 8; n++) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll 2 /* a larger factor would hoist so many addresses that sums are spilled */
    for (int d = 0; d < D / 16; d++) {
        uint32_t x[4];
        ldmatrix(x, tile_at<D>(keys, warp * 16 + tile_row(lane), d * 16 + tile_col(lane)));
#pragma unroll
        for (int n = 0; n < STEP / 16; n++) {
            uint32_t y[4];
            ldmatrix(y, tile_at<D>(rows, n * 16 + tile_row_b(lane), d * 16 + tile_col_b(lane)));
            mma_bf16(s[2 * n], x, y);
            mma_bf16(s[2 * n + 1], x, y + 2);
        }
    }
}

/* sum[16, D] += X[16, STEP] B[STEP, D] */
template <int D> __device__ inline void step_add(float sum[D / 8][4], const float x[STEP / 8][4], __nv_bfloat16 *rows)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < STEP / 16; n++) {
        const uint32_t y[4] = {bf16_pair(x[2 * n][0], x[2 * n][1]), bf16_pair(x[2 * n][2], x[2 * n][3]),
                               bf16_pair(x[2 * n + 1][0], x[2 * n + 1][1]), bf16_pair(x[2 * n + 1][2], x[2 * n + 1][3])};
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
            uint32_t b[4];
            ldmatrix_trans(b, tile_at<D>(rows, n * 16 + tile_row(lane), d * 16 + tile_col(lane)));
            mma_bf16(sum[2 * d], y, b);
            mma_bf16(sum[2 * d + 1], y, b + 2);
        }
    }
}

/* GRAD_MMA_KEYS keys and values in shared memory; first: batch row of the warp's first key */
struct key_tile {
    __nv_bfloat16 *k, *v;
    int first;
};

template <int D>
__device__ inline void grad_key_step(float dk[D / 8][4], float dv[D / 8][4], const grad_args &a, const grad_job &j,
                                     const step_rows &s, const key_tile &t)
{
    const int lane = (int)threadIdx.x % 32;
    const float scale2 = a.scale * LOG2E;
    float p[STEP / 8][4], ds[STEP / 8][4];
    step_scores<D>(p, t.k, s.q);
    step_scores<D>(ds, t.v, s.dout);
#pragma unroll
    for (int n = 0; n < STEP / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = n * 8 + lane % 4 * 2 + i % 2, key = t.first + lane / 4 + i / 2 * 8, query = s.query[row];
            const bool seen = (key >= j.prefix && key < j.prefix_end && query >= 0) || (key >= j.own && key <= query);
            const float w = seen ? exp2_fast(fmaf(p[n][i], scale2, -s.m[row])) * s.inverse[row] : 0;
            p[n][i] = w;
            ds[n][i] = w * (ds[n][i] - s.delta[row]) * a.scale;
        }
    step_add<D>(dv, p, s.dout);
    step_add<D>(dk, ds, s.q);
}

template <int D> struct key_tiles {
    static constexpr int TILE = STEP * D;
    static constexpr int BYTES = (2 * GRAD_MMA_KEYS * D + 4 * TILE) * 2 + 2 * STEP * 16;
};

template <int D> __device__ inline step_rows step_at(__nv_bfloat16 *base, int stage)
{
    step_rows s;
    s.q = base + stage * key_tiles<D>::TILE;
    s.dout = base + (2 + stage) * key_tiles<D>::TILE;
    s.m = reinterpret_cast<float *>(base + 4 * key_tiles<D>::TILE) + stage * STEP;
    s.inverse = s.m + 2 * STEP, s.delta = s.m + 4 * STEP, s.query = reinterpret_cast<int *>(s.m + 6 * STEP);
    return s;
}

template <int D> __device__ inline float *part_at(const grad_args &a, int part, int head)
{
    return a.parts + ((int64_t)(part - 1) * a.kv_heads + head) * GRAD_MMA_KEYS * 2 * D;
}

template <int D> __global__ void __launch_bounds__(KEY_THREADS, 1) attention_grad_keys(const grad_args a)
{
    CUDA_SHARED(__nv_bfloat16, shared);
    const grad_keys t = a.keys[blockIdx.x];
    const int head = (int)blockIdx.y, group = a.heads / a.kv_heads, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    __nv_bfloat16 *k = shared, *v = k + GRAD_MMA_KEYS * D, *steps = v + GRAD_MMA_KEYS * D;
    const __nv_bfloat16 *keys = a.qkv16 + (a.heads + head) * D;
    rows_load<D, GRAD_MMA_KEYS>(k, row_source{keys, a.stride, t.row, t.n, 1}, 0);
    rows_load<D, GRAD_MMA_KEYS>(v, row_source{keys + a.kv_heads * D, a.stride, t.row, t.n, 1}, 0);
    float dk[D / 8][4], dv[D / 8][4];
#pragma unroll
    for (int d = 0; d < D / 8; d++)
#pragma unroll
        for (int i = 0; i < 4; i++) dk[d][i] = dv[d][i] = 0;
    int stage = 0, job = t.first, row = 0; /* of the step being loaded */
    if (job < t.last) step_load<D>(step_at<D>(steps, 0), a, a.jobs[job], 0, head, group);
    cp_async_commit();
    while (job < t.last) {
        const grad_job now = a.jobs[job];
        int next = job, next_row = row + STEP;
        if (next_row >= (now.to - now.from) * group) next++, next_row = 0;
        if (next < t.last) step_load<D>(step_at<D>(steps, stage ^ 1), a, a.jobs[next], next_row, head, group);
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads();
        grad_key_step<D>(dk, dv, a, now, step_at<D>(steps, stage), key_tile{k, v, t.row + warp * 16});
        __syncthreads();
        job = next, row = next_row, stage ^= 1;
    }
    cp_async_wait<0>(); /* copies of keys without queries may still be in flight */
    float *sums = t.part ? part_at<D>(a, t.part, head) : a.dqkv + t.row * a.stride + (a.heads + head) * D;
    const int64_t ld = t.part ? 2 * D : a.stride, values = t.part ? D : a.kv_heads * D;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int key = warp * 16 + lane / 4 + i * 8;
        if (key >= t.n) continue;
        float *to = sums + key * ld + lane % 4 * 2;
#pragma unroll
        for (int d = 0; d < D / 8; d++) {
            *reinterpret_cast<float2 *>(to + d * 8) = make_float2(dk[d][2 * i], dk[d][2 * i + 1]);
            *reinterpret_cast<float2 *>(to + values + d * 8) = make_float2(dv[d][2 * i], dv[d][2 * i + 1]);
        }
    }
}

/* A block handles four keys, one per warp: the gradient of the key, then of its value. */
template <int D> static __global__ void grad_keys_add(const grad_args a)
{
    const grad_rest r = a.rests[blockIdx.x];
    const int head = (int)blockIdx.y, key = (int)blockIdx.z * 4 + (int)threadIdx.x / 32;
    if (key >= r.n) return;
    float *to = a.dqkv + (r.row + key) * a.stride + (a.heads + head) * D;
    for (int d = (int)threadIdx.x % 32; d < 2 * D; d += 32) {
        float *sum = to + (d < D ? d : a.kv_heads * D + d - D), x = *sum;
        for (int part = r.first; part <= r.last; part++) x += part_at<D>(a, part, head)[key * 2 * D + d];
        *sum = x;
    }
}

/* ---- launch */

template <int D> static void grad_launch(const struct kctx *c, const grad_args &a, grad_sizes n)
{
    const int queries = (2 * GRAD_MMA_ROWS + 4 * KEYS) * D * 2, keys = key_tiles<D>::BYTES;
    CUDA_SHARED_LIMIT(c, attention_grad_queries<D>, queries);
    CUDA_SHARED_LIMIT(c, attention_grad_keys<D>, keys);
    const unsigned heads = (unsigned)a.kv_heads;
    CUDA_LAUNCH(c, attention_grad_keys<D>, dim3((unsigned)n.keys, heads), KEY_THREADS, keys, a);
    if (n.rests) CUDA_LAUNCH(c, grad_keys_add<D>, dim3((unsigned)n.rests, heads, GRAD_MMA_KEYS / 4), 128, 0, a);
    CUDA_LAUNCH(c, attention_grad_queries<D>, dim3((unsigned)n.queries, heads), QUERY_THREADS, queries, a);
}

void attention_grad_mma_launch(const struct kctx *c, const grad_args &a, grad_sizes n)
{
    if (a.dim == 64)
        grad_launch<64>(c, a, n);
    else
        grad_launch<128>(c, a, n);
}
