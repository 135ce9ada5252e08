/* Attention without tensor cores, for fp32 and for head widths that they do not support: the same
 * tiles, blocks of 16 keys. Attention scores are chains over d as in ref/attention.c; m, l and O
 * are updated block by block as in attention_mma.cu. 128 threads; eight share a row of scores. */
#include "attention.cuh"

enum { PLAIN_ROWS = 16, PLAIN_KEYS = 16, PLAIN_THREADS = 128, PLAIN_LANES = PLAIN_THREADS / PLAIN_ROWS };

__device__ inline float cache_value(float x)
{
    return x;
}
__device__ inline float cache_value(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
/* Convert to the precision of the product, which is the cache's. */
template <typename T> __device__ inline float query_value(float x);
template <> __device__ inline float query_value<float>(float x)
{
    return x;
}
template <> __device__ inline float query_value<__nv_bfloat16>(float x)
{
    return __bfloat162float(__float2bfloat16_rn(x));
}

struct plain_shared { /* arrays in dynamic shared memory */
    float *q, *o, *k, *v, *p, *factor, *sum;
};

__device__ inline plain_shared plain_shared_at(float *base, int dim)
{
    plain_shared s;
    s.q = base, s.o = s.q + PLAIN_ROWS * dim, s.v = s.o + PLAIN_ROWS * dim, s.k = s.v + PLAIN_KEYS * dim;
    s.p = s.k + PLAIN_KEYS * (dim + 1), s.factor = s.p + PLAIN_ROWS * PLAIN_KEYS, s.sum = s.factor + PLAIN_ROWS;
    return s;
}

static int64_t plain_bytes(int64_t dim)
{
    return (PLAIN_ROWS * 2 * dim + PLAIN_KEYS * (2 * dim + 1) + PLAIN_ROWS * (PLAIN_KEYS + 2)) * (int64_t)sizeof(float);
}

/* Maximum and sum over the eight threads of a row. */
__device__ inline float row_max(float x)
{
    for (int i = 1; i < PLAIN_LANES; i *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
}

__device__ inline float row_sum(float x)
{
    for (int i = 1; i < PLAIN_LANES; i *= 2) x += __shfl_xor_sync(0xffffffffu, x, i);
    return x;
}

template <typename T>
__device__ inline void plain_keys_load(const plain_shared &s, const attn_args &a, const int32_t *table, int begin, int end,
                                       int head)
{
    for (int i = (int)threadIdx.x; i < PLAIN_KEYS * a.dim; i += PLAIN_THREADS) {
        const int key = begin + i / a.dim, d = i % a.dim;
        float k = 0, v = 0;
        if (key < end) {
            const int64_t at = (((int64_t)table[key / KV_BLOCK] * a.kv_heads + head) * KV_BLOCK + key % KV_BLOCK) * a.dim + d;
            k = cache_value(static_cast<const T *>(a.k)[at]);
            v = cache_value(static_cast<const T *>(a.v)[at]);
        }
        s.k[i / a.dim * (a.dim + 1) + d] = k;
        s.v[i] = v;
    }
}

/* Compute the weights of a block of keys for the thread's row, and the row's new m and l. */
template <typename T>
__device__ inline void plain_weights(const plain_shared &s, const attn_args &a, int begin, int limit, float &m, float &l)
{
    const int row = (int)threadIdx.x / PLAIN_LANES, lane = (int)threadIdx.x % PLAIN_LANES;
    float score[PLAIN_KEYS / PLAIN_LANES], top = m;
    for (int i = 0; i < PLAIN_KEYS / PLAIN_LANES; i++) {
        const int key = i * PLAIN_LANES + lane;
        float acc = 0;
        for (int d = 0; d < a.dim; d++) acc = fmaf(s.q[row * a.dim + d], s.k[key * (a.dim + 1) + d], acc);
        score[i] = begin + key < limit ? acc * a.scale : -INFINITY;
        top = fmaxf(top, score[i]);
    }
    top = row_max(top);
    const float zero = top == -INFINITY ? 0 : top, factor = exact_exp(m - zero);
    float sum = 0;
    for (int i = 0; i < PLAIN_KEYS / PLAIN_LANES; i++) {
        const float p = exact_exp(score[i] - zero);
        sum += p;
        s.p[row * PLAIN_KEYS + i * PLAIN_LANES + lane] = query_value<T>(p);
    }
    l = fmaf(l, factor, row_sum(sum));
    m = top;
    if (lane == 0) s.factor[row] = factor;
}

/* Update the outputs of all rows after a block of keys. */
__device__ inline void plain_values(const plain_shared &s, int dim)
{
    for (int i = (int)threadIdx.x; i < PLAIN_ROWS * dim; i += PLAIN_THREADS) {
        const int r = i / dim, d = i % dim;
        float o = s.o[i] * s.factor[r];
        for (int key = 0; key < PLAIN_KEYS; key++) o = fmaf(s.p[r * PLAIN_KEYS + key], s.v[key * dim + d], o);
        s.o[i] = o;
    }
}

/* Store the results of rows first .. of the tile. m, l: the values of the thread's row. */
__device__ inline void plain_results(const plain_shared &s, const attn_args &a, const attn_tile &t, int first, float m, float l)
{
    const int group = a.heads / a.kv_heads, head = (int)blockIdx.y, rows = min(PLAIN_ROWS, t.n * group - first);
    const int row = (int)threadIdx.x / PLAIN_LANES, lane = (int)threadIdx.x % PLAIN_LANES;
    if (lane == 0) s.sum[row] = l;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < rows * a.dim; i += PLAIN_THREADS) {
        const int r = i / a.dim;
        const int64_t at = attention_result_at(a, t, head, group, first + r);
        if (t.part >= 0)
            a.part[at * a.dim + i % a.dim] = s.o[i];
        else
            attention_out(a, at * a.dim + i % a.dim, s.o[i] / s.sum[r]);
    }
    float *stats = t.part >= 0 ? a.part_stats : a.stats;
    if (stats && lane == 0 && row < rows) {
        const int64_t at = attention_result_at(a, t, head, group, first + row);
        stats[at * 2] = m, stats[at * 2 + 1] = l;
    }
}

/* Process rows first .. of the tile. */
template <typename T> __device__ inline void plain_rows(const plain_shared &s, const attn_args &a, const attn_tile &t, int first)
{
    const int group = a.heads / a.kv_heads, rows = min(PLAIN_ROWS, t.n * group - first), head = (int)blockIdx.y;
    const int row = (int)threadIdx.x / PLAIN_LANES;
    for (int i = (int)threadIdx.x; i < PLAIN_ROWS * a.dim; i += PLAIN_THREADS) {
        const int r = first + i / a.dim;
        s.o[i] = 0;
        s.q[i] = r - first < rows
                     ? query_value<T>(a.qkv[(t.row + r / group) * a.stride + (head * group + r % group) * a.dim + i % a.dim])
                     : 0;
    }
    const int limit = min(t.end, t.limit + min(first + row, t.n * group - 1) / group);
    float m = -INFINITY, l = 0;
    for (int begin = t.begin; begin < t.end; begin += PLAIN_KEYS) {
        __syncthreads();
        plain_keys_load<T>(s, a, a.tables + t.table, begin, t.end, head);
        __syncthreads();
        plain_weights<T>(s, a, begin, limit, m, l);
        __syncthreads();
        plain_values(s, a.dim);
    }
    plain_results(s, a, t, first, m, l);
}

template <typename T> __global__ void __launch_bounds__(PLAIN_THREADS, 1) attention_plain(const attn_args a)
{
    CUDA_SHARED(float, shared);
    launch_wait();
    const attn_tile t = a.tiles[blockIdx.x];
    if (t.n <= 0 || t.begin >= t.end) return;
    const plain_shared s = plain_shared_at(shared, a.dim);
    for (int first = 0; first < t.n * (a.heads / a.kv_heads); first += PLAIN_ROWS) {
        __syncthreads();
        plain_rows<T>(s, a, t, first);
    }
}

void attention_plain_launch(const struct kctx *c, const attn_args &a, int64_t n_tiles, enum dtype dtype)
{
    const int bytes = (int)plain_bytes(a.dim);
    const dim3 grid((unsigned)n_tiles, (unsigned)a.kv_heads);
    if (dtype == DTYPE_BF16) {
        CUDA_SHARED_LIMIT(c, attention_plain<__nv_bfloat16>, bytes);
        CUDA_LAUNCH_AFTER(c, attention_plain<__nv_bfloat16>, grid, PLAIN_THREADS, bytes, a);
    } else {
        CUDA_SHARED_LIMIT(c, attention_plain<float>, bytes);
        CUDA_LAUNCH_AFTER(c, attention_plain<float>, grid, PLAIN_THREADS, bytes, a);
    }
}
