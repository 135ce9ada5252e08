/* Attention on tensor cores (definition: ref/attention.c), with the memory use of FlashAttention
 * (Dao 2023, "FlashAttention-2", Algorithm 1): keys are processed in blocks of 64, and each row
 * keeps its maximum m, its sum l and its output O, which are rescaled when m grows.
 *
 *   S = scale Q K^T     m' = max(m, max_j S)     P = exp(S - m')
 *   l = l exp(m - m') + sum_j P     O = O exp(m - m') + P V     out = O / l
 *
 * Q, K, V and P are rounded to bf16; sums and the softmax are fp32. A warp owns 16 rows of the tile
 * and all keys: warps exchange nothing but the keys and values in shared memory, in two stages of
 * cp.async. Blocks of keys begin at multiples of 64, and a block beyond a row's limit does not
 * change the row (p = 0, factor 1), so without splitting a row's result does not depend on its tile
 * or batch. */
#include "attention.cuh"

template <int D, int WARPS> struct mma_tiles {
    static constexpr int ROWS = 16 * WARPS, THREADS = 32 * WARPS;
    static constexpr int KEYS_BYTES = TILE_KEYS * D * 2, Q_BYTES = ROWS * D * 2;
    static constexpr int BYTES = Q_BYTES + 4 * KEYS_BYTES; /* Q; K and V of two stages */
};

struct key_source {    /* keys, or values, of one head in the cache */
    const void *cache; /* [n_blocks, kv_heads, KV_BLOCK, D] in bf16 */
    const int32_t *table;
    int end, kv_heads, head; /* keys from `end` on do not exist */
};

/* Load keys begin .. +63, with zeros from the end on. */
template <int D, int THREADS> __device__ inline void keys_load(__nv_bfloat16 *tile, const key_source &s, int begin)
{
    const __nv_bfloat16 *base = static_cast<const __nv_bfloat16 *>(s.cache);
    for (int i = (int)threadIdx.x; i < TILE_KEYS * D / 8; i += THREADS) {
        const int row = i / (D / 8), column = i % (D / 8) * 8, key = begin + row;
        const bool valid = key < s.end;
        const int64_t block = valid ? s.table[key / KV_BLOCK] : 0;
        const __nv_bfloat16 *from = base + ((block * s.kv_heads + s.head) * KV_BLOCK + key % KV_BLOCK) * D + column;
        cp_async16(tile_at<D>(tile, row, column), from, valid);
    }
}

/* Load the tile's queries into shared memory, with zeros after the last row. */
template <int D, int ROWS, int THREADS>
__device__ inline void queries_load(__nv_bfloat16 *tile, const attn_args &a, const attn_tile &t, int head, int group)
{
    for (int i = (int)threadIdx.x; i < ROWS * D / 4; i += THREADS) {
        const int row = i / (D / 4), column = i % (D / 4) * 4;
        float4 x = make_float4(0, 0, 0, 0);
        if (row < t.n * group)
            x = *reinterpret_cast<const float4 *>(a.qkv + (t.row + row / group) * a.stride + (head * group + row % group) * D +
                                                  column);
        tile_store4<D>(tile, row, column, x);
    }
}

/* State of a warp's 16 rows across keys, as held by the lane (mma.cuh): output, and maximum and sum
 * of its two rows. These are references, since arrays of the kernel become registers more reliably
 * than those of a struct (sm_100: 187 registers instead of 195). */
template <int D> struct attn_sums {
    float (&o)[D / 8][4], (&m)[2], (&l)[2];
};

/* One block of 64 keys and values in shared memory, [TILE_KEYS, D] each. */
struct attn_keys {
    __nv_bfloat16 *k, *v;
    int begin; /* the first key */
};

/* s[16, 64] = Q K^T for the warp's rows. */
template <int D>
__device__ __forceinline__ void attend_scores(float (&s)[TILE_KEYS / 8][4], const uint32_t (&q)[D / 16][4], __nv_bfloat16 *k)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < TILE_KEYS / 8; n++) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
    for (int d = 0; d < D / 16; d++)
#pragma unroll
        for (int n = 0; n < TILE_KEYS / 16; n++) {
            uint32_t b[4];
            ldmatrix(b, tile_at<D>(k, n * 16 + tile_row_b(lane), d * 16 + tile_col_b(lane)));
            mma_bf16(s[2 * n], q[d], b);
            mma_bf16(s[2 * n + 1], q[d], b + 2);
        }
}

/* Processes row r of the lane's two: replaces s by exp(scale (s - m)) with the new maximum m, 0 for
 * keys from `seen` on (counted from the lane's first), and adds it to l. Returns exp(scale (m -
 * m')), by which the output must be multiplied. scale2 is scale in units of log 2. */
__device__ __forceinline__ float attend_softmax(float (&s)[TILE_KEYS / 8][4], int r, float &m, float &l, int seen, float scale2)
{
    float top = m;
#pragma unroll
    for (int n = 0; n < TILE_KEYS / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float &x = s[n][2 * r + i];
            if (n * 8 + i >= seen) x = -INFINITY;
            top = fmaxf(top, x);
        }
    top = quad_max(top);
    const float zero = top == -INFINITY ? 0 : top * scale2, factor = exp2_fast(fmaf(m, scale2, -zero));
    m = top;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < TILE_KEYS / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float &x = s[n][2 * r + i];
            x = exp2_fast(fmaf(x, scale2, -zero));
            sum += x;
        }
    l = fmaf(l, factor, sum);
    return factor;
}

/* Process one block of keys for a warp's 16 rows. limit: end of the visible keys for the lane's two
 * rows. */
template <int D>
__device__ __forceinline__ void attend(attn_sums<D> &a, const uint32_t (&q)[D / 16][4], const attn_keys &keys,
                                       const int (&limit)[2], float scale2)
{
    const int lane = (int)threadIdx.x % 32;
    float s[TILE_KEYS / 8][4];
    attend_scores<D>(s, q, keys.k);
    float factor[2];
#pragma unroll
    for (int r = 0; r < 2; r++) factor[r] = attend_softmax(s, r, a.m[r], a.l[r], limit[r] - keys.begin - lane % 4 * 2, scale2);
#pragma unroll
    for (int d = 0; d < D / 8; d++) {
        a.o[d][0] *= factor[0], a.o[d][1] *= factor[0];
        a.o[d][2] *= factor[1], a.o[d][3] *= factor[1];
    }
#pragma unroll
    for (int n = 0; n < TILE_KEYS / 16; n++) {
        const uint32_t p[4] = {bf16_pair(s[2 * n][0], s[2 * n][1]), bf16_pair(s[2 * n][2], s[2 * n][3]),
                               bf16_pair(s[2 * n + 1][0], s[2 * n + 1][1]), bf16_pair(s[2 * n + 1][2], s[2 * n + 1][3])};
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
            uint32_t b[4];
            ldmatrix_trans(b, tile_at<D>(keys.v, n * 16 + tile_row(lane), d * 16 + tile_col(lane)));
            mma_bf16(a.o[2 * d], p, b);
            mma_bf16(a.o[2 * d + 1], p, b + 2);
        }
    }
}

template <int D>
__device__ inline void results_store(const attn_args &a, const attn_tile &t, int head, int group, const attn_sums<D> &sums)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = warp * 16 + lane / 4 + r * 8;
        const float total = quad_sum(sums.l[r]);
        if (row >= t.n * group) continue;
        const int64_t at = attention_result_at(a, t, head, group, row);
        const bool partial = t.part >= 0;
        const float inverse = partial ? 1 : 1 / total;
        const int64_t column = at * D + lane % 4 * 2;
        float *to = (partial ? a.part : static_cast<float *>(a.out)) + column, *stats = partial ? a.part_stats : a.stats;
        if (!partial && a.out_dtype == DTYPE_BF16) {
            __nv_bfloat16 *pairs = static_cast<__nv_bfloat16 *>(a.out) + column;
#pragma unroll
            for (int d = 0; d < D / 8; d++)
                *reinterpret_cast<uint32_t *>(pairs + d * 8) =
                    bf16_pair(sums.o[d][2 * r] * inverse, sums.o[d][2 * r + 1] * inverse);
        } else {
#pragma unroll
            for (int d = 0; d < D / 8; d++)
                *reinterpret_cast<float2 *>(to + d * 8) = make_float2(sums.o[d][2 * r] * inverse, sums.o[d][2 * r + 1] * inverse);
        }
        if (stats && lane % 4 == 0) *reinterpret_cast<float2 *>(stats + at * 2) = make_float2(sums.m[r] * a.scale, total);
    }
}

template <int D, int WARPS> __global__ void __launch_bounds__(32 * WARPS) attention_mma(const attn_args a)
{
    using T = mma_tiles<D, WARPS>;
    CUDA_SHARED(__nv_bfloat16, shared);
    launch_wait();
    const attn_tile t = a.tiles[blockIdx.x];
    if (t.n <= 0 || t.begin >= t.end) return;
    const int head = (int)blockIdx.y, group = a.heads / a.kv_heads, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const key_source keys = {a.k, a.tables + t.table, t.end, a.kv_heads, head};
    const key_source values = {a.v, a.tables + t.table, t.end, a.kv_heads, head};
    __nv_bfloat16 *q_tile = shared, *k_tile = q_tile + T::ROWS * D, *v_tile = k_tile + 2 * TILE_KEYS * D;
    const bool works = warp * 16 < t.n * group;
    keys_load<D, T::THREADS>(k_tile, keys, t.begin);
    keys_load<D, T::THREADS>(v_tile, values, t.begin);
    cp_async_commit();
    queries_load<D, T::ROWS, T::THREADS>(q_tile, a, t, head, group);
    __syncthreads();
    uint32_t q[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; d++) ldmatrix(q[d], tile_at<D>(q_tile, warp * 16 + tile_row(lane), d * 16 + tile_col(lane)));
    float o[D / 8][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0};
    attn_sums<D> sums = {o, m, l};
#pragma unroll
    for (int d = 0; d < D / 8; d++) sums.o[d][0] = sums.o[d][1] = sums.o[d][2] = sums.o[d][3] = 0;
    int limit[2];
#pragma unroll
    /* rows after the last see the same keys as the last query: finite, and not stored */
    for (int r = 0; r < 2; r++) {
        const int query = (warp * 16 + lane / 4 + r * 8) / group;
        limit[r] = min(t.end, t.limit + min(query, t.n - 1));
    }
    int stage = 0;
    for (int begin = t.begin; begin < t.end; begin += TILE_KEYS, stage ^= 1) {
        const int next = begin + TILE_KEYS;
        if (next < t.end) {
            keys_load<D, T::THREADS>(k_tile + (stage ^ 1) * TILE_KEYS * D, keys, next);
            keys_load<D, T::THREADS>(v_tile + (stage ^ 1) * TILE_KEYS * D, values, next);
        }
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads();
        if (works)
            attend<D>(sums, q, attn_keys{k_tile + stage * TILE_KEYS * D, v_tile + stage * TILE_KEYS * D, begin}, limit,
                      a.scale * LOG2E);
        __syncthreads();
    }
    if (works) results_store<D>(a, t, head, group, sums);
}

/* Combine the partial results of a (query, head) in the order of their keys. Grid (queries, H), D
 * threads. */
__global__ void attention_combine(const attn_args a, const attn_parts *parts)
{
    launch_wait();
    const attn_parts p = parts[blockIdx.x];
    const int head = (int)blockIdx.y, d = (int)threadIdx.x;
    float m = -INFINITY, l = 0, o = 0;
    for (int u = 0; u < 2; u++)
        for (int i = 0; i < p.count[u]; i++)
            m = fmaxf(m, a.part_stats[((int64_t)(p.first[u] + i * p.stride[u]) * a.heads + head) * 2]);
    for (int u = 0; u < 2; u++)
        for (int i = 0; i < p.count[u]; i++) {
            const int64_t at = (int64_t)(p.first[u] + i * p.stride[u]) * a.heads + head;
            const float w = exact_exp(a.part_stats[at * 2] - m);
            l = fmaf(w, a.part_stats[at * 2 + 1], l);
            o = fmaf(w, a.part[at * a.dim + d], o);
        }
    const int64_t at = (int64_t)blockIdx.x * a.heads + head;
    if (p.count[0] + p.count[1] <= 0) return;
    attention_out(a, at * a.dim + d, o / l);
    if (a.stats && d == 0) a.stats[at * 2] = m, a.stats[at * 2 + 1] = l;
}

bool attention_mma_fits(struct attn_shape s)
{
    return s.dtype == DTYPE_BF16 && (s.head_dim == 64 || s.head_dim == 128) && s.heads / s.kv_heads <= 64 && s.stride % 4 == 0;
}

template <int D, int WARPS> static void mma_launch(const struct kctx *c, const attn_args &a, int64_t n_tiles)
{
    using T = mma_tiles<D, WARPS>;
    CUDA_SHARED_LIMIT(c, (attention_mma<D, WARPS>), T::BYTES);
    CUDA_LAUNCH_AFTER(c, (attention_mma<D, WARPS>), dim3((unsigned)n_tiles, (unsigned)a.kv_heads), T::THREADS, T::BYTES, a);
}

/* rows: rows of a tile, 64 or 128. */
void attention_mma_launch(const struct kctx *c, const attn_args &a, int64_t n_tiles, int rows)
{
    if (a.dim == 64 && rows == 64)
        mma_launch<64, 4>(c, a, n_tiles);
    else if (a.dim == 64)
        mma_launch<64, 8>(c, a, n_tiles);
    else if (rows == 64)
        mma_launch<128, 4>(c, a, n_tiles);
    else
        mma_launch<128, 8>(c, a, n_tiles);
}

void attention_combine_launch(const struct kctx *c, const attn_args &a, const attn_parts *parts, int64_t n_queries)
{
    CUDA_LAUNCH_AFTER(c, attention_combine, dim3((unsigned)n_queries, (unsigned)a.heads), (unsigned)a.dim, 0, a, parts);
}
