/* Softmax statistics of rows of logits z[V] at temperature T, and the gradient of a loss through
 * them (definitions: ref/head.c).
 *
 *   l = sum_v e^d_v      w = sum_v e^d_v d_v      log p_v = d_v - log l      H = log l - w/l
 *   lse = (m, log l)     KL = sum_v p (log p - log q)
 *   dL/dz_v = (1/T) [ p_v (-a - b (log p_v + H) + c (log p_v - log q_v - KL)) + a [v = target] ]
 *             for dL = a dlogp[target] + b dH + c dKL
 *
 * Statistics use one block per row; the gradient splits a row into parts, one block each. */
#include "softmax.cuh"

enum { HEAD_THREADS = 512, GRAD_THREADS = 256, GRAD_COLUMNS = 8 * GRAD_THREADS };

/* scale is 1/T, here and below. logits (and ref_logits) are the operation's; they are separate
 * arguments because they are only read. */
static __global__ void head_stats_kernel(const struct op_head_stats o, const float *__restrict__ logits, float scale)
{
    __shared__ float part[HEAD_THREADS / 32];
    const int64_t row = blockIdx.x;
    const float *z = logits + row * o.v;
    const float m = softmax_max<HEAD_THREADS>(z, scale, o.v, part);
    float l = 0, w = 0;
    for (int64_t i = threadIdx.x; i < o.v; i += HEAD_THREADS) {
        const float d = softmax_shifted(z[i], scale, m), e = exact_exp(d);
        l += e;
        w = fmaf(e, d, w);
    }
    l = block_reduce<add_op, HEAD_THREADS>(l, part);
    w = block_reduce<add_op, HEAD_THREADS>(w, part);
    if (threadIdx.x) return;
    const float log_l = exact_log(l);
    o.lse[2 * row] = m;
    o.lse[2 * row + 1] = log_l;
    if (o.entropy) o.entropy[row] = log_l - w / l;
    o.logprob[row] = softmax_shifted(z[o.target[row]], scale, m) - log_l;
}

static __global__ void head_kl_kernel(const struct op_head_kl o, const float *__restrict__ logits,
                                      const float *__restrict__ ref_logits, float scale)
{
    __shared__ float part[HEAD_THREADS / 32];
    const int64_t row = blockIdx.x;
    const float *z = logits + row * o.v, *ref_z = ref_logits + row * o.v;
    const float m = o.lse[2 * row], log_l = o.lse[2 * row + 1], ref_m = o.ref_lse[2 * row], ref_log_l = o.ref_lse[2 * row + 1];
    float sum = 0;
    for (int64_t i = threadIdx.x; i < o.v; i += HEAD_THREADS) {
        const float logp = softmax_shifted(z[i], scale, m) - log_l;
        const float logq = softmax_shifted(ref_z[i], scale, ref_m) - ref_log_l;
        sum = fmaf(exact_exp(logp), logp - logq, sum);
    }
    sum = block_reduce<add_op, HEAD_THREADS>(sum, part);
    if (threadIdx.x == 0) o.kl[row] = sum;
}

/* entropy NULL: no entropy term; kl NULL: no reference. parts: blocks per row. */
static __global__ void head_grad_kernel(const struct op_head_grad o, float scale, unsigned parts)
{
    const int64_t row = blockIdx.x / parts, begin = (int64_t)(blockIdx.x % parts) * GRAD_COLUMNS + threadIdx.x;
    const struct head_grad_row g = o.coef[row];
    const float m = o.lse[2 * row], log_l = o.lse[2 * row + 1], h = o.entropy ? o.entropy[row] : 0;
    const float ref_m = o.kl ? o.ref_lse[2 * row] : 0, ref_log_l = o.kl ? o.ref_lse[2 * row + 1] : 0, kl = o.kl ? o.kl[row] : 0;
    const int64_t chosen = o.target[row];
    float *__restrict__ z = o.logits + row * o.v;
    for (int64_t j = begin; j < o.v && j < begin + GRAD_COLUMNS; j += GRAD_THREADS) {
        const float logp = softmax_shifted(z[j], scale, m) - log_l;
        float s = -g.logprob;
        if (o.entropy) s = fmaf(-g.entropy, logp + h, s);
        if (o.kl) s = fmaf(g.kl, logp - (softmax_shifted(o.ref_logits[row * o.v + j], scale, ref_m) - ref_log_l) - kl, s);
        float d = exact_exp(logp) * s * scale;
        if (j == chosen) d += g.logprob * scale;
        z[j] = d;
    }
}

void cuda_head_stats(const struct kctx *c, const struct op_head_stats *o)
{
    CUDA_OP(c, "head_stats", "rows vocab", o->r, o->v);
    if (o->r > 0 && o->v > 0)
        CUDA_LAUNCH(c, head_stats_kernel, (unsigned)o->r, HEAD_THREADS, 0, *o, o->logits, 1.0f / o->temperature);
}

void cuda_head_kl(const struct kctx *c, const struct op_head_kl *o)
{
    CUDA_OP(c, "head_kl", "rows vocab", o->r, o->v);
    if (o->r > 0 && o->v > 0)
        CUDA_LAUNCH(c, head_kl_kernel, (unsigned)o->r, HEAD_THREADS, 0, *o, o->logits, o->ref_logits, 1.0f / o->temperature);
}

void cuda_head_grad(const struct kctx *c, const struct op_head_grad *o)
{
    CUDA_OP(c, "head_grad", "rows vocab", o->r, o->v);
    const unsigned parts = cuda_blocks(o->v, GRAD_COLUMNS);
    if (o->r > 0 && o->v > 0)
        CUDA_LAUNCH(c, head_grad_kernel, (unsigned)o->r * parts, GRAD_THREADS, 0, *o, 1.0f / o->temperature, parts);
}
