/* The gradient of attention: plans on the host and launches the kernels. */
#include "attention_grad.cuh"

#include "convert.h"

#include <algorithm>
#include <vector>

/* delta[t, h] = sum_d dout out. One warp per (row, head); lane i takes elements i, i + 32, ... */
template <typename O>
static __global__ void grad_delta(float *delta, const float *dout, const O *out, int64_t n, int dim, int rounds)
{
    const int64_t at = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (at >= n) return;
    float sum = 0;
    for (int d = (int)threadIdx.x % 32; d < dim; d += 32)
        sum = fmaf(dout[at * dim + d], rounded_if(rounds, row_load(out + at * dim + d)), sum);
    for (int i = 16; i; i /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, i);
    if (threadIdx.x % 32 == 0) delta[at] = sum;
}

struct grad_plan {
    std::vector<grad_queries> queries;
    std::vector<grad_keys> keys;
    std::vector<grad_job> jobs;
    std::vector<grad_rest> rests;
    int32_t parts = 0; /* number of parts outside dqkv */
    int64_t rows = 0;  /* number of rows that are queries of a segment */
};
using grad_tiles = std::vector<std::vector<grad_job>>; /* jobs of each tile of keys */

/* Maximum number of queries in a part. A block's time is proportional to it, so long tiles are
 * split until there are about 1024 blocks, but not below PART_ROWS rows. */
#ifdef TARE_CUDA_SHIM
enum { PART_ROWS = 64, PART_BLOCKS = 1 << 20 }; /* small tests must have parts too */
#else
enum { PART_ROWS = 4096, PART_BLOCKS = 1024 };
#endif

static void plan_queries(grad_plan &p, const struct attn_seg &s, int64_t queries)
{
    for (int64_t at = 0; at < s.q_len; at += queries) {
        const int64_t n = s.q_len - at < queries ? s.q_len - at : queries;
        p.queries.push_back(grad_queries{(int32_t)(s.q_begin + at), (int32_t)n, (int32_t)s.prefix_begin, (int32_t)s.prefix_len,
                                         (int32_t)s.q_begin});
    }
    p.rows += s.q_len;
}

/* Add the jobs of keys begin .. end-1 (in tiles of `width` from row 0 on) that are a segment's own
 * or its prefix. */
static void plan_jobs(grad_tiles &tiles, const struct attn_seg &s, int64_t width)
{
    const grad_job all = {(int32_t)s.q_begin, (int32_t)(s.q_begin + s.q_len), (int32_t)s.prefix_begin,
                          (int32_t)(s.prefix_begin + s.prefix_len), (int32_t)s.q_begin};
    const int64_t first = s.prefix_begin / width, last = s.prefix_len > 0 ? (s.prefix_begin + s.prefix_len - 1) / width : first - 1;
    for (int64_t t = first; t <= last; t++) tiles[(size_t)t].push_back(all);
    for (int64_t t = s.q_begin / width; t <= (s.q_begin + s.q_len - 1) / width; t++) {
        /* all queries of the segment are already listed there */
        if (t >= first && t <= last) continue;
        grad_job own = all;
        own.from = std::max(own.from, (int32_t)(t * width));
        tiles[(size_t)t].push_back(own);
    }
}

static int64_t keys_work(const grad_plan &p, const grad_keys &k)
{
    int64_t n = 0;
    for (int32_t i = k.first; i < k.last; i++) n += p.jobs[(size_t)i].to - p.jobs[(size_t)i].from;
    return n;
}

static int64_t part_of(const grad_tiles &tiles, struct attn_shape s)
{
    const int64_t least = std::max<int64_t>(PART_ROWS / (s.heads / s.kv_heads), 1);
    int64_t all = 0;
    for (const auto &jobs : tiles)
        for (const grad_job &j : jobs) all += j.to - j.from;
    return std::max(least, all * s.kv_heads / PART_BLOCKS);
}

/* Split one tile's jobs into parts of `most` queries, in order. */
static void plan_parts(grad_plan &p, const std::vector<grad_job> &jobs, int32_t row, int32_t n, int64_t most)
{
    const int32_t first_part = p.parts + 1;
    grad_keys part = {row, n, (int32_t)p.jobs.size(), 0, 0};
    int64_t remaining = most;
    for (grad_job j : jobs)
        while (j.from < j.to) {
            if (!remaining) {
                part.last = (int32_t)p.jobs.size();
                p.keys.push_back(part);
                part.first = part.last, part.part = ++p.parts, remaining = most;
            }
            grad_job slice = j;
            slice.to = (int32_t)std::min<int64_t>(j.to, j.from + remaining);
            p.jobs.push_back(slice);
            remaining -= slice.to - slice.from;
            j.from = slice.to;
        }
    part.last = (int32_t)p.jobs.size();
    p.keys.push_back(part);
    if (p.parts >= first_part) p.rests.push_back(grad_rest{row, n, first_part, p.parts});
}

static void plan_make(grad_plan &p, const struct op_attention_grad *o, int64_t queries, int64_t width, bool cut)
{
    const struct attn_seg *segs = o->segs;
    const int64_t n_segs = o->n_segs, t = o->t;
    grad_tiles tiles((size_t)((t + width - 1) / width));
    for (int64_t i = 0; i < n_segs; i++) {
        if (segs[i].q_len <= 0) continue;
        plan_queries(p, segs[i], queries);
        plan_jobs(tiles, segs[i], width);
    }
    const int64_t most = cut ? part_of(tiles, o->shape) : INT32_MAX;
    for (size_t i = 0; i < tiles.size(); i++) {
        const int64_t row = (int64_t)i * width;
        plan_parts(p, tiles[i], (int32_t)row, (int32_t)std::min(width, t - row), most);
    }
    /* Blocks start in grid order: those with most work come first. */
    std::stable_sort(p.keys.begin(), p.keys.end(),
                     [&p](const grad_keys &a, const grad_keys &b) { return keys_work(p, a) > keys_work(p, b); });
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
    if (!p.rests.empty())
        a.rests =
            static_cast<const grad_rest *>(cuda_upload_args(c, p.rests.data(), (int64_t)(p.rests.size() * sizeof(grad_rest))));
    return !kernel_faulted(c);
}

static bool fits_mma(struct attn_shape s)
{
    return attention_mma_fits(s) && s.stride % 8 == 0;
}

static void delta_of(const struct kctx *c, const struct op_attention_grad *o, float *delta)
{
    const int64_t n = o->t * o->shape.heads;
    const unsigned blocks = (unsigned)((n + 3) / 4);
    const int dim = (int)o->shape.head_dim, rounds = o->shape.dtype == DTYPE_BF16;
    if (o->out_dtype == DTYPE_BF16)
        CUDA_LAUNCH(c, grad_delta<__nv_bfloat16>, blocks, 128, 0, delta, o->dout, static_cast<const __nv_bfloat16 *>(o->out), n,
                    dim, rounds);
    else
        CUDA_LAUNCH(c, grad_delta<float>, blocks, 128, 0, delta, o->dout, static_cast<const float *>(o->out), n, dim, rounds);
}

/* Allocate delta, memory for parts and, in bf16, qkv and (mma) dout as the kernels read them. */
static bool working_memory(const struct kctx *c, const struct op_attention_grad *o, const grad_plan &p, bool mma, grad_args &a)
{
    const int64_t width = o->shape.heads * o->shape.head_dim, n_delta = (o->t * o->shape.heads + 127) / 128 * 128,
                  n_parts = p.parts * o->shape.kv_heads * GRAD_MMA_KEYS * 2 * o->shape.head_dim, n_qkv = o->t * o->shape.stride,
                  n_dout = mma ? o->t * width : 0;
    const bool bf16 = o->shape.dtype == DTYPE_BF16, kept = o->qkv_dtype == DTYPE_BF16;
    float *delta = static_cast<float *>(cuda_scratch(c, (n_delta + n_parts) * 4 + ((bf16 && !kept ? n_qkv : 0) + n_dout) * 2));
    if (!delta) return false;
    a.delta = delta, a.parts = delta + n_delta;
    delta_of(c, o, delta);
    __nv_bfloat16 *rounded = reinterpret_cast<__nv_bfloat16 *>(delta + n_delta + n_parts);
    if (mma) {
        to_bf16(c, rounded, o->dout, n_dout);
        a.dout16 = rounded;
        rounded += n_dout;
    }
    if (kept)
        a.qkv16 = static_cast<const __nv_bfloat16 *>(o->qkv);
    else if (bf16) {
        to_bf16(c, rounded, static_cast<const float *>(o->qkv), n_qkv);
        a.qkv16 = rounded;
    } else
        a.qkv = static_cast<const float *>(o->qkv);
    return true;
}

void cuda_attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    CUDA_OP(c, "attention_grad", "heads kv_heads head_dim segments t", o->shape.heads, o->shape.kv_heads, o->shape.head_dim,
            o->n_segs, o->t);
    if (o->t <= 0) return;
    const bool mma = fits_mma(o->shape);
    const int64_t group = o->shape.heads / o->shape.kv_heads, rows = mma ? GRAD_MMA_ROWS : GRAD_PLAIN_ROWS;
    grad_plan p;
    plan_make(p, o, rows / group > 0 ? rows / group : 1, mma ? GRAD_MMA_KEYS : GRAD_PLAIN_KEYS, mma);
    if (p.rows < o->t &&
        !CUDA_TRY(c, cudaMemsetAsync(o->dqkv, 0, (size_t)(o->t * o->shape.stride) * sizeof(float), cuda_stream(c))))
        return;
    if (p.queries.empty()) return;
    grad_args a = {};
    a.dqkv = o->dqkv, a.dout = o->dout, a.stats = o->stats, a.stride = o->shape.stride, a.scale = o->shape.scale;
    a.heads = (int)o->shape.heads, a.kv_heads = (int)o->shape.kv_heads, a.dim = (int)o->shape.head_dim;
    if (!working_memory(c, o, p, mma, a) || !plan_upload(c, p, a)) return;
    if (mma)
        attention_grad_mma_launch(c, a, grad_sizes{(int64_t)p.queries.size(), (int64_t)p.keys.size(), (int64_t)p.rests.size()});
    else
        attention_grad_plain_launch(c, a, (int64_t)p.queries.size(), (int64_t)p.keys.size());
}
