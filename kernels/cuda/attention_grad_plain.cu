/* The gradient of attention without tensor cores, in fp32: 16 (query, head) rows against 16 keys at
 * a time, 128 threads. Dot products are chains over d as in ref/attention.c. */
#include "attention_grad.cuh"

enum { ROWS = GRAD_PLAIN_ROWS, KEYS = GRAD_PLAIN_KEYS, THREADS = 128 };

/* q, dout [ROWS, D+1]; k, v [KEYS, D+1]; weights [ROWS, KEYS]; sums [2][16, D]; values per row */
struct grad_shared {
    float *q, *dout, *k, *v, *p, *ds, *sum, *sum2, *m, *l, *delta;
    int *query;
};

static int64_t grad_plain_bytes(int64_t dim)
{
    return (4 * 16 * (dim + 1) + 2 * 16 * 16 + 2 * 16 * dim + 4 * 16) * (int64_t)sizeof(float);
}

__device__ inline grad_shared grad_shared_at(float *base, int dim)
{
    grad_shared s;
    s.q = base, s.dout = s.q + 16 * (dim + 1), s.k = s.dout + 16 * (dim + 1), s.v = s.k + 16 * (dim + 1);
    s.p = s.v + 16 * (dim + 1), s.ds = s.p + 256, s.sum = s.ds + 256, s.sum2 = s.sum + 16 * dim;
    s.m = s.sum2 + 16 * dim, s.l = s.m + 16, s.delta = s.l + 16, s.query = reinterpret_cast<int *>(s.delta + 16);
    return s;
}

/* (query, head) rows r < n: query first + r / group of the batch, head head * group + r % group */
struct grad_rows {
    int first, n, head, group;
};

__device__ inline float qkv_at(const grad_args &a, int64_t i)
{
    return a.qkv16 ? __bfloat162float(a.qkv16[i]) : a.qkv[i];
}

/* Load rows `row` .. +15 of them. */
__device__ inline void grad_rows_load(const grad_shared &s, const grad_args &a, const grad_rows &q, int row)
{
    for (int i = (int)threadIdx.x; i < ROWS * a.dim; i += THREADS) {
        const int r = row + i / a.dim, d = i % a.dim, at = i / a.dim * (a.dim + 1) + d;
        s.q[at] = s.dout[at] = 0;
        if (r >= q.n) continue;
        const int64_t token = q.first + r / q.group, h = q.head * q.group + r % q.group;
        s.q[at] = qkv_at(a, token * a.stride + h * a.dim + d);
        s.dout[at] = a.dout[(token * a.heads + h) * a.dim + d];
    }
    if (threadIdx.x < ROWS) {
        const int r = row + (int)threadIdx.x;
        const int64_t at = r < q.n ? (int64_t)(q.first + r / q.group) * a.heads + q.head * q.group + r % q.group : -1;
        s.query[threadIdx.x] = r < q.n ? q.first + r / q.group : -1;
        s.m[threadIdx.x] = at < 0 ? 0 : a.stats[at * 2];
        s.l[threadIdx.x] = at < 0 ? 1 : a.stats[at * 2 + 1];
        s.delta[threadIdx.x] = at < 0 ? 0 : a.delta[at];
    }
}

__device__ inline void grad_keys_load(const grad_shared &s, const grad_args &a, int row, int end, int head)
{
    for (int i = (int)threadIdx.x; i < KEYS * a.dim; i += THREADS) {
        const int r = row + i / a.dim, d = i % a.dim, at = i / a.dim * (a.dim + 1) + d;
        const int64_t key = (int64_t)(r < end ? r : row) * a.stride + (a.heads + head) * a.dim + d;
        s.k[at] = r < end ? qkv_at(a, key) : 0;
        s.v[at] = r < end ? qkv_at(a, key + a.kv_heads * a.dim) : 0;
    }
}

/* P and dS of the rows against the keys from `row` on; visible are rows prefix .. prefix_end-1, and
 * own .. the query. */
__device__ inline void grad_weights(const grad_shared &s, const grad_args &a, int row, int prefix, int prefix_end, int own)
{
    for (int i = (int)threadIdx.x; i < ROWS * KEYS; i += THREADS) {
        const int r = i / KEYS, j = i % KEYS, key = row + j, query = s.query[r];
        float x = 0, y = 0;
        for (int d = 0; d < a.dim; d++) {
            x = fmaf(s.q[r * (a.dim + 1) + d], s.k[j * (a.dim + 1) + d], x);
            y = fmaf(s.dout[r * (a.dim + 1) + d], s.v[j * (a.dim + 1) + d], y);
        }
        const bool seen = query >= 0 && ((key >= prefix && key < prefix_end) || (key >= own && key <= query));
        const float p = seen ? exact_exp(x * a.scale - s.m[r]) / s.l[r] : 0;
        s.p[i] = p;
        s.ds[i] = p * (y - s.delta[r]) * a.scale;
    }
}

static __global__ void __launch_bounds__(THREADS, 1) grad_plain_queries(const grad_args a)
{
    CUDA_SHARED(float, shared);
    const grad_queries t = a.queries[blockIdx.x];
    const int head = (int)blockIdx.y, group = a.heads / a.kv_heads;
    const grad_shared s = grad_shared_at(shared, a.dim);
    for (int row = 0; row < t.n * group; row += ROWS) {
        __syncthreads();
        grad_rows_load(s, a, grad_rows{t.row, t.n * group, head, group}, row);
        for (int i = (int)threadIdx.x; i < ROWS * a.dim; i += THREADS) s.sum[i] = 0;
        const int prefix_blocks = (t.prefix_len + KEYS - 1) / KEYS, own_blocks = (t.row + t.n - t.own + KEYS - 1) / KEYS;
        for (int b = 0; b < prefix_blocks + own_blocks; b++) {
            const bool own = b >= prefix_blocks;
            const int key = own ? t.own + (b - prefix_blocks) * KEYS : t.prefix + b * KEYS;
            const int end = own ? t.row + t.n : t.prefix + t.prefix_len;
            __syncthreads();
            grad_keys_load(s, a, key, end, head);
            __syncthreads();
            if (own)
                grad_weights(s, a, key, 0, 0, t.own);
            else
                grad_weights(s, a, key, t.prefix, end, INT32_MAX);
            __syncthreads();
            for (int i = (int)threadIdx.x; i < ROWS * a.dim; i += THREADS) {
                float sum = s.sum[i];
                for (int j = 0; j < KEYS; j++) sum = fmaf(s.ds[i / a.dim * KEYS + j], s.k[j * (a.dim + 1) + i % a.dim], sum);
                s.sum[i] = sum;
            }
        }
        for (int i = (int)threadIdx.x; i < ROWS * a.dim; i += THREADS) {
            const int r = row + i / a.dim;
            if (r < t.n * group) a.dqkv[(t.row + r / group) * a.stride + (head * group + r % group) * a.dim + i % a.dim] = s.sum[i];
        }
    }
}

static __global__ void __launch_bounds__(THREADS, 1) grad_plain_keys(const grad_args a)
{
    CUDA_SHARED(float, shared);
    const grad_keys t = a.keys[blockIdx.x];
    const int head = (int)blockIdx.y, group = a.heads / a.kv_heads;
    const grad_shared s = grad_shared_at(shared, a.dim);
    grad_keys_load(s, a, t.row, t.row + t.n, head);
    for (int i = (int)threadIdx.x; i < KEYS * a.dim; i += THREADS) s.sum[i] = s.sum2[i] = 0;
    for (int job = t.first; job < t.last; job++) {
        const grad_job j = a.jobs[job];
        const int n = (j.to - j.from) * group;
        for (int row = 0; row < n; row += ROWS) {
            __syncthreads();
            grad_rows_load(s, a, grad_rows{j.from, n, head, group}, row);
            __syncthreads();
            grad_weights(s, a, t.row, j.prefix, j.prefix_end, j.own);
            __syncthreads();
            for (int i = (int)threadIdx.x; i < KEYS * a.dim; i += THREADS) {
                const int key = i / a.dim, d = i % a.dim;
                float dk = s.sum[i], dv = s.sum2[i];
                for (int r = 0; r < ROWS; r++) {
                    dk = fmaf(s.ds[r * KEYS + key], s.q[r * (a.dim + 1) + d], dk);
                    dv = fmaf(s.p[r * KEYS + key], s.dout[r * (a.dim + 1) + d], dv);
                }
                s.sum[i] = dk, s.sum2[i] = dv;
            }
        }
    }
    for (int i = (int)threadIdx.x; i < t.n * a.dim; i += THREADS) {
        float *to = a.dqkv + (t.row + i / a.dim) * a.stride + (a.heads + head) * a.dim + i % a.dim;
        to[0] = s.sum[i];
        to[a.kv_heads * a.dim] = s.sum2[i];
    }
}

void attention_grad_plain_launch(const struct kctx *c, const grad_args &a, int64_t n_queries, int64_t n_keys)
{
    const int bytes = (int)grad_plain_bytes(a.dim);
    CUDA_SHARED_LIMIT(c, grad_plain_keys, bytes);
    CUDA_SHARED_LIMIT(c, grad_plain_queries, bytes);
    CUDA_LAUNCH(c, grad_plain_keys, dim3((unsigned)n_keys, (unsigned)a.kv_heads), THREADS, bytes, a);
    CUDA_LAUNCH(c, grad_plain_queries, dim3((unsigned)n_queries, (unsigned)a.kv_heads), THREADS, bytes, a);
}
