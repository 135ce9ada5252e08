/* A table of kernels that times another one: every operation goes on to it, and its time, floating-point operations and bytes are added up. */
#include "bench.h"

#include <string.h>

static const char *const NAMES[BENCH_OPS] = {
    "matmul",         "matmul head", "matmul_dx",    "matmul_dx head", "matmul_dw", "matmul_dw head", "attention",
    "attention_grad", "rmsnorm",     "rmsnorm_grad", "rope",           "kv_write",  "kv_copy",        "swiglu",
    "swiglu_grad",    "head_stats",  "head_kl",      "head_grad",      "sample",    "embed",          "embed_grad",
    "gather_scatter", "add",         "adamw",        "sum_squares",    "digest",    "pack",           "zero"};
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
    DIGEST,
    PACK,
    ZERO
};

static struct {
    const struct kernels *k; /* what is timed */
    struct kernels table;
    struct backend backend;
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
/* TIMED(op, flops, bytes, operation) of the arguments o */
#define TIMED(OP, FLOPS, BYTES, NAME)                                                                                              \
    do {                                                                                                                           \
        const double start_ = bench_clock(profiled.pool);                                                                          \
        profiled.k->NAME(c, o);                                                                                                    \
        count((OP), start_, (double)(FLOPS), (double)(BYTES));                                                                     \
    } while (0)

static void matmul(const struct kctx *c, const struct op_matmul *o)
{
    TIMED(o->n == profiled.vocab ? MATMUL_HEAD : MATMUL, 2 * o->t * o->n * o->k,
          4 * o->t * (o->n + o->k) + o->n * o->k * (o->dtype == DTYPE_BF16 ? 2 : 4), matmul);
}
static void matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    TIMED(o->n == profiled.vocab ? DX_HEAD : DX, 2 * o->t * o->n * o->k, 4 * (o->t * o->n + o->t * o->k + o->n * o->k), matmul_dx);
}
static void matmul_dx_packed(const struct kctx *c, const struct op_matmul_dx *o)
{
    TIMED(o->n == profiled.vocab ? DX_HEAD : DX, 2 * o->t * o->n * o->k, 4 * (o->t * o->n + o->t * o->k + o->n * o->k),
          matmul_dx_packed);
}
static void matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    TIMED(o->n == profiled.vocab ? DW_HEAD : DW, 2 * o->t * o->n * o->k, 4 * (o->t * o->n + o->t * o->k + 2 * o->n * o->k),
          matmul_dw);
}
static void matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    TIMED(o->n == profiled.vocab ? DW_HEAD : DW, 2 * o->t * o->n * o->k, 4 * (o->t * o->n + o->t * o->k + 2 * o->n * o->k),
          matmul_dw_apart);
}
static void pack(const struct kctx *c, const struct op_pack *o)
{
    TIMED(PACK, 0, o->n * o->k * (o->dtype == DTYPE_BF16 ? 6 : 8), pack);
}
static void zero(const struct kctx *c, void *p, int64_t bytes)
{
    const double start = bench_clock(profiled.pool);
    profiled.k->backend->zero(c, p, bytes);
    count(ZERO, start, 0, (double)bytes);
}

static void attention(const struct kctx *c, const struct op_attention *o)
{
    const double width = (double)(o->shape.heads * o->shape.head_dim);
    double pairs = 0, keys = 0, rows = 0;
    for (int64_t i = 0; i < o->n_seqs; i++) {
        const struct attn_seq *q = &o->seqs[i];
        int64_t shared = 0, blocks = (q->pos + q->q_len + KV_BLOCK - 1) / KV_BLOCK;
        while (i && shared < blocks && shared * KV_BLOCK < q[-1].pos + q[-1].q_len && q->blocks[shared] == q[-1].blocks[shared])
            shared++;
        pairs += (double)q->q_len * ((double)q->pos + 0.5 * (double)(q->q_len + 1));
        keys += (double)(blocks - shared) * KV_BLOCK;
        rows += (double)q->q_len;
    }
    TIMED(ATTENTION, 4 * pairs * width, 8 * keys * (double)(o->shape.kv_heads * o->shape.head_dim) + 8 * rows * width, attention);
}
static void attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    const int64_t width = o->shape.heads * o->shape.head_dim;
    double pairs = 0;
    for (int64_t i = 0; i < o->n_segs; i++)
        pairs += (double)o->segs[i].q_len * ((double)o->segs[i].prefix_len + 0.5 * (double)(o->segs[i].q_len + 1));
    TIMED(ATTENTION_GRAD, 10 * pairs * (double)width, 8 * o->t * (width + o->shape.stride), attention_grad);
}
static void kv_write(const struct kctx *c, const struct op_kv_write *o)
{
    TIMED(KV_WRITE, 0, 16 * o->n * o->shape.kv_heads * o->shape.head_dim, kv_write);
}
static void kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    TIMED(KV_COPY, 0, 16 * o->n * KV_BLOCK * o->shape.kv_heads * o->shape.head_dim, kv_copy);
}
static void rmsnorm(const struct kctx *c, const struct op_rmsnorm *o)
{
    TIMED(RMSNORM, 4 * o->t * o->heads * o->width, 8 * o->t * o->heads * o->width, rmsnorm);
}
static void rmsnorm_grad(const struct kctx *c, const struct op_rmsnorm_grad *o)
{
    TIMED(RMSNORM_GRAD, 11 * o->t * o->heads * o->width, 16 * o->t * o->heads * o->width, rmsnorm_grad);
}
static void rope(const struct kctx *c, const struct op_rope *o)
{
    TIMED(ROPE, 3 * o->t * o->n_heads * o->head_dim, 8 * o->t * o->n_heads * o->head_dim, rope);
}
static void swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    TIMED(SWIGLU, 20 * o->t * o->f, 12 * o->t * o->f, swiglu);
}
static void swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    TIMED(SWIGLU_GRAD, 26 * o->t * o->f, 20 * o->t * o->f, swiglu_grad);
}
static void head_stats(const struct kctx *c, const struct op_head_stats *o)
{
    TIMED(HEAD_STATS, 22 * o->r * o->v, 4 * o->r * o->v, head_stats);
}
static void head_kl(const struct kctx *c, const struct op_head_kl *o)
{
    TIMED(HEAD_KL, 24 * o->r * o->v, 8 * o->r * o->v, head_kl);
}
static void head_grad(const struct kctx *c, const struct op_head_grad *o)
{
    TIMED(HEAD_GRAD, 22 * o->r * o->v, 8 * o->r * o->v, head_grad);
}
static void sample(const struct kctx *c, const struct op_sample *o)
{
    TIMED(SAMPLE, 24 * o->r * o->v, 4 * (o->ld ? o->r : 1) * o->v, sample);
}
static void embed(const struct kctx *c, const struct op_embed *o)
{
    TIMED(EMBED, 0, 8 * o->t * o->width, embed);
}
static void embed_grad(const struct kctx *c, const struct op_embed_grad *o)
{
    TIMED(EMBED_GRAD, o->t * o->width, 12 * o->t * o->width, embed_grad);
}
static void gather_rows(const struct kctx *c, const struct op_gather_rows *o)
{
    TIMED(GATHER, 0, 8 * o->n * o->width, gather_rows);
}
static void scatter_add_rows(const struct kctx *c, const struct op_scatter_add_rows *o)
{
    TIMED(GATHER, o->n * o->width, 12 * o->n * o->width, scatter_add_rows);
}
static void add(const struct kctx *c, const struct op_add *o)
{
    TIMED(ADD, o->n, 12 * o->n, add);
}
static void add_columns(const struct kctx *c, const struct op_add_columns *o)
{
    TIMED(ADD, o->t * o->n, 12 * o->t * o->n, add_columns);
}
static void sum_squares(const struct kctx *c, const struct op_sum_squares *o)
{
    TIMED(SQUARES, 2 * o->n, 4 * o->n, sum_squares);
}
static void digest(const struct kctx *c, const struct op_digest *o)
{
    TIMED(DIGEST, 0, o->bytes, digest);
}
static void adamw(const struct kctx *c, const struct op_adamw *o)
{
    TIMED(ADAMW, 14 * o->n, 28 * o->n, adamw);
}

const struct kernels *bench_profile_wrap(const struct kernels *k)
{
    struct kernels *t = &profiled.table;
    profiled.k = k;
    *t = *k; /* memory operations stay as they are */
    profiled.backend = *k->backend;
    profiled.backend.zero = zero;
    t->backend = &profiled.backend;
#define ENTRY(NAME) t->NAME = NAME;
    KERNEL_OPERATIONS(ENTRY)
#undef ENTRY
    if (t->matmul_dw_apart) t->matmul_dw_apart = matmul_dw_apart;
    if (t->matmul_dx_packed) t->matmul_dx_packed = matmul_dx_packed;
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
