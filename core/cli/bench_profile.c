/* A table of kernels that times another one: every operation goes on to it, and its time, floating-point operations and bytes are added up. */
#include "bench.h"

#include <string.h>

static const char *const NAMES[BENCH_OPS] = {
    "matmul",      "matmul head",  "matmul_dx", "matmul_dx head", "matmul_dw",  "matmul_dw head", "attention",   "attention_grad",
    "rmsnorm",     "rmsnorm_grad", "rope",      "kv_write",       "kv_copy",    "swiglu",         "swiglu_grad", "head_stats",
    "head_kl",     "head_grad",    "sample",    "embed",          "embed_grad", "gather_scatter", "add",         "adamw",
    "sum_squares", "pack",         "zero"};
enum {
    MATMUL,
    MATMUL_HEAD,
    DX,
    DX_HEAD,
    DW,
    DW_HEAD,
    ATTENTION,
    ATTENTION_GRAD,
    RMSNORM,
    RMSNORM_GRAD,
    ROPE,
    KV_WRITE,
    KV_COPY,
    SWIGLU,
    SWIGLU_GRAD,
    HEAD_STATS,
    HEAD_KL,
    HEAD_GRAD,
    SAMPLE,
    EMBED,
    EMBED_GRAD,
    GATHER,
    ADD,
    ADAMW,
    SQUARES,
    PACK,
    ZERO
};

static struct {
    const struct kernels *k; /* what is timed */
    struct kernels table;
    struct bench_profile *into;
    struct pool *pool;
    int64_t vocab;
    double next, tile_seconds, tile_flops; /* samples of bench_tile */
} profiled;                                /* operations carry no argument of the caller's, so one at a time */

static void sample_tile(double now)
{
    profiled.next = now + 0.05;
    profiled.tile_flops += bench_tile(profiled.pool, profiled.k->name);
    profiled.tile_seconds += bench_clock(profiled.pool) - now;
}

static void count(int op, double start, double flops, double bytes)
{
    struct bench_op *o = &profiled.into->op[op];
    const double now = bench_clock(profiled.pool);
    o->calls++;
    o->seconds += now - start;
    o->flops += flops;
    o->bytes += bytes;
    if (now >= profiled.next && profiled.vocab >= 0) sample_tile(now);
}
/* TIMED(op, flops, bytes, operation and its arguments) */
#define TIMED(OP, FLOPS, BYTES, ...)                                                                                               \
    do {                                                                                                                           \
        const double start_ = bench_clock(profiled.pool);                                                                          \
        profiled.k->__VA_ARGS__;                                                                                                   \
        count((OP), start_, (double)(FLOPS), (double)(BYTES));                                                                     \
    } while (0)

static void matmul(const struct kctx *c, float *y, int64_t ldy, const float *x, const void *packed, const float *bias,
                   const float *residual, int64_t t, int64_t n, int64_t k, enum dtype dtype)
{
    TIMED(n == profiled.vocab ? MATMUL_HEAD : MATMUL, 2 * t * n * k, 4 * t * (n + k) + n * k * (dtype == DTYPE_BF16 ? 2 : 4),
          matmul(c, y, ldy, x, packed, bias, residual, t, n, k, dtype));
}
static void matmul_dx(const struct kctx *c, float *dx, const float *dy, const float *w, int64_t t, int64_t n, int64_t k,
                      int accumulate, enum dtype dtype)
{
    TIMED(n == profiled.vocab ? DX_HEAD : DX, 2 * t * n * k, 4 * (t * n + t * k + n * k),
          matmul_dx(c, dx, dy, w, t, n, k, accumulate, dtype));
}
static void matmul_dw(const struct kctx *c, float *dw, float *dbias, const float *dy, const float *x, int64_t t, int64_t n,
                      int64_t k, enum dtype dtype)
{
    TIMED(n == profiled.vocab ? DW_HEAD : DW, 2 * t * n * k, 4 * (t * n + t * k + 2 * n * k),
          matmul_dw(c, dw, dbias, dy, x, t, n, k, dtype));
}
static void matmul_dw_apart(const struct kctx *c, float *dw, float *dbias, const float *dy, const float *x, int64_t t, int64_t n,
                            int64_t k, enum dtype dtype)
{
    TIMED(n == profiled.vocab ? DW_HEAD : DW, 2 * t * n * k, 4 * (t * n + t * k + 2 * n * k),
          matmul_dw_apart(c, dw, dbias, dy, x, t, n, k, dtype));
}
static void pack(const struct kctx *c, void *packed, const float *w, int64_t n, int64_t k, enum dtype dtype)
{
    TIMED(PACK, 0, n * k * (dtype == DTYPE_BF16 ? 6 : 8), pack(c, packed, w, n, k, dtype));
}
static void zero(const struct kctx *c, void *p, int64_t bytes)
{
    TIMED(ZERO, 0, bytes, zero(c, p, bytes));
}

static void attention(const struct kctx *c, float *out, float *stats, const float *qkv, struct kv_layer kv, struct attn_shape s,
                      const struct attn_seq *seqs, int64_t n_seqs)
{
    double pairs = 0, keys = 0, rows = 0;
    for (int64_t i = 0; i < n_seqs; i++) {
        const struct attn_seq *q = &seqs[i];
        int64_t shared = 0, blocks = (q->pos + q->q_len + KV_BLOCK - 1) / KV_BLOCK;
        while (i && shared < blocks && shared * KV_BLOCK < q[-1].pos + q[-1].q_len && q->blocks[shared] == q[-1].blocks[shared])
            shared++;
        pairs += (double)q->q_len * ((double)q->pos + 0.5 * (double)(q->q_len + 1));
        keys += (double)(blocks - shared) * KV_BLOCK;
        rows += (double)q->q_len;
    }
    TIMED(ATTENTION, 4 * pairs * (double)(s.heads * s.head_dim),
          8 * keys * (double)(s.kv_heads * s.head_dim) + 8 * rows * (double)(s.heads * s.head_dim),
          attention(c, out, stats, qkv, kv, s, seqs, n_seqs));
}
static void attention_grad(const struct kctx *c, float *dqkv, const float *dout, const float *out, const float *stats,
                           const float *qkv, struct attn_shape s, const struct attn_seg *segs, int64_t n_segs, int64_t t)
{
    double pairs = 0;
    for (int64_t i = 0; i < n_segs; i++)
        pairs += (double)segs[i].q_len * ((double)segs[i].prefix_len + 0.5 * (double)(segs[i].q_len + 1));
    TIMED(ATTENTION_GRAD, 10 * pairs * (double)(s.heads * s.head_dim), 8 * t * (s.heads * s.head_dim + s.stride),
          attention_grad(c, dqkv, dout, out, stats, qkv, s, segs, n_segs, t));
}
static void kv_write(const struct kctx *c, struct kv_layer kv, const float *qkv, struct attn_shape s, const int64_t *rows,
                     const int64_t *slots, int64_t n)
{
    TIMED(KV_WRITE, 0, 16 * n * s.kv_heads * s.head_dim, kv_write(c, kv, qkv, s, rows, slots, n));
}
static void kv_copy(const struct kctx *c, struct kv_layer kv, struct attn_shape s, const int32_t *to, const int32_t *from,
                    int64_t n)
{
    TIMED(KV_COPY, 0, 16 * n * KV_BLOCK * s.kv_heads * s.head_dim, kv_copy(c, kv, s, to, from, n));
}

static void rmsnorm(const struct kctx *c, float *y, int64_t ldy, float *rms, const float *x, int64_t ldx, const float *w, int64_t t,
                    int64_t heads, int64_t width, float eps)
{
    TIMED(RMSNORM, 4 * t * heads * width, 8 * t * heads * width, rmsnorm(c, y, ldy, rms, x, ldx, w, t, heads, width, eps));
}
static void rmsnorm_grad(const struct kctx *c, float *dx, int64_t lddx, float *dw, const float *dy, int64_t lddy, const float *x,
                         int64_t ldx, const float *w, const float *rms, int64_t t, int64_t heads, int64_t width, int accumulate)
{
    TIMED(RMSNORM_GRAD, 11 * t * heads * width, 16 * t * heads * width,
          rmsnorm_grad(c, dx, lddx, dw, dy, lddy, x, ldx, w, rms, t, heads, width, accumulate));
}
static void rope(const struct kctx *c, float *x, int64_t ld, const float *table, const int32_t *pos, int64_t t, int64_t n_heads,
                 int64_t head_dim, int inverse)
{
    TIMED(ROPE, 3 * t * n_heads * head_dim, 8 * t * n_heads * head_dim, rope(c, x, ld, table, pos, t, n_heads, head_dim, inverse));
}
static void swiglu(const struct kctx *c, float *act, const float *gu, int64_t t, int64_t f)
{
    TIMED(SWIGLU, 20 * t * f, 12 * t * f, swiglu(c, act, gu, t, f));
}
static void swiglu_grad(const struct kctx *c, float *dgu, const float *dact, const float *gu, int64_t t, int64_t f)
{
    TIMED(SWIGLU_GRAD, 26 * t * f, 20 * t * f, swiglu_grad(c, dgu, dact, gu, t, f));
}

static void head_stats(const struct kctx *c, float *logprob, float *entropy, float *lse, const float *logits, int64_t ld,
                       const int32_t *target, float temperature, int64_t r, int64_t v)
{
    TIMED(HEAD_STATS, 22 * r * v, 4 * r * v, head_stats(c, logprob, entropy, lse, logits, ld, target, temperature, r, v));
}
static void head_kl(const struct kctx *c, float *kl, const float *logits, const float *lse, const float *ref_logits,
                    const float *ref_lse, int64_t ld, float temperature, int64_t r, int64_t v)
{
    TIMED(HEAD_KL, 24 * r * v, 8 * r * v, head_kl(c, kl, logits, lse, ref_logits, ref_lse, ld, temperature, r, v));
}
static void head_grad(const struct kctx *c, float *logits, int64_t ld, const int32_t *target, const float *lse,
                      const float *entropy, const float *ref_logits, const float *ref_lse, const float *kl,
                      const struct head_grad_row *coef, float temperature, int64_t r, int64_t v)
{
    TIMED(HEAD_GRAD, 22 * r * v, 8 * r * v,
          head_grad(c, logits, ld, target, lse, entropy, ref_logits, ref_lse, kl, coef, temperature, r, v));
}
static void sample(const struct kctx *c, int32_t *token, float *logprob, float *entropy, const float *logits, int64_t ld,
                   const struct sample_row *rows, int64_t r, int64_t v)
{
    TIMED(SAMPLE, 24 * r * v, 4 * (ld ? r : 1) * v, sample(c, token, logprob, entropy, logits, ld, rows, r, v));
}

static void embed(const struct kctx *c, float *x, const float *table, const int32_t *ids, int64_t t, int64_t width)
{
    TIMED(EMBED, 0, 8 * t * width, embed(c, x, table, ids, t, width));
}
static void embed_grad(const struct kctx *c, float *dtable, const float *dx, const int32_t *ids, int64_t t, int64_t width)
{
    TIMED(EMBED_GRAD, t * width, 12 * t * width, embed_grad(c, dtable, dx, ids, t, width));
}
static void gather_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width)
{
    TIMED(GATHER, 0, 8 * n * width, gather_rows(c, y, x, rows, n, width));
}
static void scatter_add_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width)
{
    TIMED(GATHER, n * width, 12 * n * width, scatter_add_rows(c, y, x, rows, n, width));
}
static void add(const struct kctx *c, float *y, const float *x, int64_t n)
{
    TIMED(ADD, n, 12 * n, add(c, y, x, n));
}
static double sum_squares(const struct kctx *c, const float *x, int64_t n)
{
    const double start = bench_clock(profiled.pool), sum = profiled.k->sum_squares(c, x, n);
    count(SQUARES, start, 2.0 * (double)n, 4.0 * (double)n);
    return sum;
}
static void adamw(const struct kctx *c, float *p, const float *g, float *m, float *v, int64_t n, float grad_scale, float lr,
                  float beta1, float beta2, float eps, float decay, double correct1, double correct2)
{
    TIMED(ADAMW, 14 * n, 28 * n, adamw(c, p, g, m, v, n, grad_scale, lr, beta1, beta2, eps, decay, correct1, correct2));
}

const struct kernels *bench_profile_wrap(const struct kernels *k)
{
    struct kernels *t = &profiled.table;
    profiled.k = k;
    *t = *k; /* memory operations stay as they are */
    t->zero = zero, t->pack = pack;
    t->matmul = matmul, t->matmul_dx = matmul_dx, t->matmul_dw = matmul_dw;
    if (t->matmul_dw_apart) t->matmul_dw_apart = matmul_dw_apart;
    t->embed = embed, t->embed_grad = embed_grad;
    t->rmsnorm = rmsnorm, t->rmsnorm_grad = rmsnorm_grad;
    t->rope = rope, t->kv_write = kv_write, t->kv_copy = kv_copy;
    t->attention = attention, t->attention_grad = attention_grad;
    t->swiglu = swiglu, t->swiglu_grad = swiglu_grad;
    t->head_stats = head_stats, t->head_kl = head_kl, t->head_grad = head_grad, t->sample = sample;
    t->add = add, t->gather_rows = gather_rows, t->scatter_add_rows = scatter_add_rows;
    t->sum_squares = sum_squares, t->adamw = adamw;
    return t;
}

void bench_profile_into(struct bench_profile *p, const struct model *m)
{
    profiled.into = p;
    profiled.pool = m ? m->ctx.pool : NULL;
    profiled.vocab = m ? m->shape.vocab : -1;
}

double bench_profile_clock(void)
{
    return bench_clock(profiled.pool) - profiled.tile_seconds;
}

double bench_profile_tile(void)
{
    return profiled.tile_flops > 0 ? profiled.tile_flops / profiled.tile_seconds * 1e-9 : 0;
}

const char *bench_op_name(int op)
{
    return NAMES[op];
}
