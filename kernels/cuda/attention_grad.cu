/* The gradient of attention: plans on the host, launches. */
#include "attention_grad.cuh"

#include "convert.h"

#include <algorithm>
#include <vector>

/* delta[t, h] = sum_d dout out. A warp a (row, head); lane i takes elements i, i + 32, ... */
static __global__ void grad_delta(float *delta, const float *dout, const float *out, int64_t n, int dim)
{
    const int64_t at = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (at >= n) return;
    float sum = 0;
    for (int d = (int)threadIdx.x % 32; d < dim; d += 32) sum = fmaf(dout[at * dim + d], out[at * dim + d], sum);
    for (int i = 16; i; i /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, i);
    if (threadIdx.x % 32 == 0) delta[at] = sum;
}

struct grad_plan {
    std::vector<grad_queries> queries;
    std::vector<grad_keys> keys;
    std::vector<grad_job> jobs;
    int64_t rows = 0; /* that are some segment's queries */
};

static void plan_queries(grad_plan &p, const struct attn_seg &s, int64_t queries)
{
    for (int64_t at = 0; at < s.q_len; at += queries) {
        const int64_t n = s.q_len - at < queries ? s.q_len - at : queries;
        p.queries.push_back(grad_queries{(int32_t)(s.q_begin + at), (int32_t)n, (int32_t)s.prefix_begin, (int32_t)s.prefix_len,
                                         (int32_t)s.q_begin});
    }
    p.rows += s.q_len;
}

/* Jobs of the keys begin .. end-1 (in tiles of `width` from row 0 on) that are a segment's own or its prefix. */
static void plan_jobs(std::vector<std::vector<grad_job>> &tiles, const struct attn_seg &s, int64_t width)
{
    const grad_job all = {(int32_t)s.q_begin, (int32_t)(s.q_begin + s.q_len), (int32_t)s.prefix_begin,
                          (int32_t)(s.prefix_begin + s.prefix_len), (int32_t)s.q_begin};
    const int64_t first = s.prefix_begin / width, last = s.prefix_len > 0 ? (s.prefix_begin + s.prefix_len - 1) / width : first - 1;
    for (int64_t t = first; t <= last; t++) tiles[(size_t)t].push_back(all);
    for (int64_t t = s.q_begin / width; t <= (s.q_begin + s.q_len - 1) / width; t++) {
        if (t >= first && t <= last) continue; /* all of the segment's queries are listed there already */
        grad_job own = all;
        own.from = std::max(own.from, (int32_t)(t * width));
        tiles[(size_t)t].push_back(own);
    }
}

static int64_t work(const grad_plan &p, const grad_keys &k)
{
    int64_t n = 0;
    for (int32_t i = k.first; i < k.last; i++) n += p.jobs[(size_t)i].to - p.jobs[(size_t)i].from;
    return n;
}

static void plan_make(grad_plan &p, const struct attn_seg *segs, int64_t n_segs, int64_t t, int64_t queries, int64_t width)
{
    std::vector<std::vector<grad_job>> tiles((size_t)((t + width - 1) / width));
    for (int64_t i = 0; i < n_segs; i++) {
        if (segs[i].q_len <= 0) continue;
        plan_queries(p, segs[i], queries);
        plan_jobs(tiles, segs[i], width);
    }
    for (size_t i = 0; i < tiles.size(); i++) {
        const int32_t first = (int32_t)p.jobs.size(), row = (int32_t)((int64_t)i * width);
        p.jobs.insert(p.jobs.end(), tiles[i].begin(), tiles[i].end());
        p.keys.push_back(grad_keys{row, (int32_t)std::min(width, t - row), first, (int32_t)p.jobs.size()});
    }
    /* Blocks start in the order of the grid: those with most work first. */
    std::stable_sort(p.keys.begin(), p.keys.end(),
                     [&p](const grad_keys &a, const grad_keys &b) { return work(p, a) > work(p, b); });
    std::stable_sort(p.queries.begin(), p.queries.end(), [](const grad_queries &a, const grad_queries &b) {
        return a.prefix_len + a.row - a.own > b.prefix_len + b.row - b.own;
    });
}

static bool plan_upload(const struct kctx *c, const grad_plan &p, grad_args &a)
{
    a.queries = static_cast<const grad_queries *>(
        cuda_upload_args(c, p.queries.data(), (int64_t)(p.queries.size() * sizeof(grad_queries))));
    a.keys = static_cast<const grad_keys *>(cuda_upload_args(c, p.keys.data(), (int64_t)(p.keys.size() * sizeof(grad_keys))));
    a.jobs = static_cast<const grad_job *>(cuda_upload_args(c, p.jobs.data(), (int64_t)(p.jobs.size() * sizeof(grad_job))));
    return !kernel_faulted(c);
}

static bool fits_mma(struct attn_shape s)
{
    return attention_mma_fits(s) && s.stride % 8 == 0;
}

void cuda_attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    CUDA_OP(c, "attention_grad", "heads kv_heads head_dim segments t", o->shape.heads, o->shape.kv_heads, o->shape.head_dim,
            o->n_segs, o->t);
    if (o->t <= 0) return;
    const bool mma = fits_mma(o->shape);
    const int64_t group = o->shape.heads / o->shape.kv_heads, rows = mma ? GRAD_MMA_ROWS : GRAD_PLAIN_ROWS;
    grad_plan p;
    plan_make(p, o->segs, o->n_segs, o->t, rows / group > 0 ? rows / group : 1, mma ? GRAD_MMA_KEYS : GRAD_PLAIN_KEYS);
    if (p.rows < o->t &&
        !CUDA_TRY(c, cudaMemsetAsync(o->dqkv, 0, (size_t)(o->t * o->shape.stride) * sizeof(float), cuda_stream(c))))
        return;
    if (p.queries.empty()) return;
    grad_args a = {};
    a.dqkv = o->dqkv, a.qkv = o->qkv, a.dout = o->dout, a.stats = o->stats, a.stride = o->shape.stride, a.scale = o->shape.scale;
    a.heads = (int)o->shape.heads, a.kv_heads = (int)o->shape.kv_heads, a.dim = (int)o->shape.head_dim;
    const int64_t width = o->shape.heads * o->shape.head_dim, n_delta = (o->t * o->shape.heads + 127) / 128 * 128;
    float *delta = static_cast<float *>(cuda_scratch(c, n_delta * 4 + (mma ? o->t * (o->shape.stride + width) * 2 : 0)));
    if (!delta || !plan_upload(c, p, a)) return;
    a.delta = delta;
    CUDA_LAUNCH(c, grad_delta, (unsigned)((o->t * o->shape.heads + 3) / 4), 128, 0, delta, o->dout, o->out, o->t * o->shape.heads,
                a.dim);
    if (!mma) {
        attention_grad_plain_launch(c, a, (int64_t)p.queries.size(), (int64_t)p.keys.size());
        return;
    }
    __nv_bfloat16 *qkv16 = reinterpret_cast<__nv_bfloat16 *>(delta + n_delta), *dout16 = qkv16 + o->t * o->shape.stride;
    to_bf16(c, qkv16, o->qkv, o->t * o->shape.stride);
    to_bf16(c, dout16, o->dout, o->t * width);
    a.qkv16 = qkv16, a.dout16 = dout16;
    attention_grad_mma_launch(c, a, (int64_t)p.queries.size(), (int64_t)p.keys.size());
}
