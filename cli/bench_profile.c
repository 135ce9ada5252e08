/* A table of kernels that forwards every operation to another table and accumulates its time,
 * floating-point operations and bytes. */
#include "bench.h"
#include "cost.h"

#include <string.h>

static const char *const NAMES[BENCH_OPS] = {
    "matmul",  "matmul head",  "matmul_dx", "matmul_dx head", "matmul_dw",  "matmul_dw head", "attention",   "attention_grad",
    "rmsnorm", "rmsnorm_grad", "rope",      "kv_write",       "kv_copy",    "swiglu",         "swiglu_grad", "head_stats",
    "head_kl", "head_grad",    "sample",    "embed",          "embed_grad", "gather_scatter", "to_bf16",     "add",
    "adamw",   "sum_squares",  "digest",    "pack",           "zero"};
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
    TO_BF16,
    ADD,
    ADAMW,
    SQUARES,
    DIGEST,
    PACK,
    ZERO
};

static struct {
    const struct kernels *k; /* the table that is timed */
    struct kernels table;
    struct backend backend;
    struct bench_profile *into;
    struct pool *pool;
    int64_t vocab;
    double next, tile_seconds, tile_flops; /* samples of bench_tile */
} profiled;                                /* a global, because operations carry no context of the caller */

static void sample_tile(double now)
{
    profiled.next = now + 0.05;
    profiled.tile_flops += bench_tile(profiled.pool, profiled.k->name);
    profiled.tile_seconds += bench_clock(profiled.pool) - now;
}

static void count(int op, double start, struct kernel_cost cost)
{
    struct bench_op *o = &profiled.into->op[op];
    const double now = bench_clock(profiled.pool);
    o->calls++;
    o->seconds += now - start;
    o->flops += cost.flops;
    o->bytes += cost.bytes;
    if (now >= profiled.next && profiled.vocab >= 0) sample_tile(now);
}

/* TIMED(op, operation, operation with the same cost): calls it with the arguments o. */
#define TIMED(OP, NAME, COST)                                                                                                      \
    do {                                                                                                                           \
        const double start_ = bench_clock(profiled.pool);                                                                          \
        profiled.k->NAME(c, o);                                                                                                    \
        count((OP), start_, cost_##COST(o));                                                                                       \
    } while (0)

/* A product of the vocabulary's width counts as the head's. */
static void matmul(const struct kctx *c, const struct op_matmul *o)
{
    TIMED(o->n == profiled.vocab ? MATMUL_HEAD : MATMUL, matmul, matmul);
}
static void matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    TIMED(o->n == profiled.vocab ? DX_HEAD : DX, matmul_dx, matmul_dx);
}
static void matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    TIMED(o->n == profiled.vocab ? DW_HEAD : DW, matmul_dw, matmul_dw);
}
static void matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    TIMED(o->n == profiled.vocab ? DW_HEAD : DW, matmul_dw_apart, matmul_dw);
}
static void matmul_low_rank(const struct kctx *c, const struct op_matmul_low_rank *o)
{
    TIMED(MATMUL, matmul_low_rank, matmul_low_rank);
}
static void matmul_dx_low_rank(const struct kctx *c, const struct op_matmul_dx_low_rank *o)
{
    TIMED(DX, matmul_dx_low_rank, matmul_dx_low_rank);
}
static void low_rank_dw(const struct kctx *c, const struct op_low_rank_dw *o)
{
    TIMED(DW, low_rank_dw, low_rank_dw);
}
static void zero(const struct kctx *c, void *p, int64_t bytes)
{
    const double start = bench_clock(profiled.pool);
    profiled.k->backend->zero(c, p, bytes);
    count(ZERO, start, (struct kernel_cost){0, (double)bytes});
}

static void rope_kv_write(const struct kctx *c, const struct op_rope *rotation, const struct op_kv_write *write)
{
    const struct kernel_cost a = cost_rope(rotation), b = cost_kv_write(write);
    const double start = bench_clock(profiled.pool);
    profiled.k->rope_kv_write(c, rotation, write);
    count(KV_WRITE, start, (struct kernel_cost){a.flops + b.flops, a.bytes + b.bytes});
}

static void matmul_swiglu(const struct kctx *c, const struct op_matmul *product, const struct op_swiglu *act)
{
    const struct kernel_cost a = cost_matmul(product), b = cost_swiglu(act);
    const double start = bench_clock(profiled.pool);
    profiled.k->matmul_swiglu(c, product, act);
    count(MATMUL, start, (struct kernel_cost){a.flops + b.flops, a.bytes + b.bytes});
}

static void matmul_rmsnorm(const struct kctx *c, const struct op_matmul *product, const struct op_rmsnorm *norm)
{
    const struct kernel_cost a = cost_matmul(product), b = cost_rmsnorm(norm);
    const double start = bench_clock(profiled.pool);
    profiled.k->matmul_rmsnorm(c, product, norm);
    count(MATMUL, start, (struct kernel_cost){a.flops + b.flops, a.bytes + b.bytes});
}

#define OPERATION(OP, NAME)                                                                                                        \
    static void NAME(const struct kctx *c, const struct op_##NAME *o)                                                              \
    {                                                                                                                              \
        TIMED(OP, NAME, NAME);                                                                                                     \
    }
OPERATION(PACK, pack)
OPERATION(ATTENTION, attention)
OPERATION(ATTENTION_GRAD, attention_grad)
OPERATION(KV_WRITE, kv_write)
OPERATION(KV_COPY, kv_copy)
OPERATION(RMSNORM, rmsnorm)
OPERATION(RMSNORM_GRAD, rmsnorm_grad)
OPERATION(ROPE, rope)
OPERATION(SWIGLU, swiglu)
OPERATION(SWIGLU_GRAD, swiglu_grad)
OPERATION(HEAD_STATS, head_stats)
OPERATION(HEAD_KL, head_kl)
OPERATION(HEAD_GRAD, head_grad)
OPERATION(SAMPLE, sample)
OPERATION(EMBED, embed)
OPERATION(EMBED_GRAD, embed_grad)
OPERATION(GATHER, gather_rows)
OPERATION(TO_BF16, to_bf16)
OPERATION(GATHER, scatter_add_rows)
OPERATION(ADD, add)
OPERATION(ADD, add_columns)
OPERATION(SQUARES, sum_squares)
OPERATION(DIGEST, digest)
OPERATION(ADAMW, adamw)

const struct kernels *bench_profile_wrap(const struct kernels *k)
{
    struct kernels *t = &profiled.table;
    profiled.k = k;
    *t = *k; /* memory operations are not timed */
    profiled.backend = *k->backend;
    profiled.backend.zero = zero;
    t->backend = &profiled.backend;
#define ENTRY(NAME) t->NAME = NAME;
    KERNEL_OPERATIONS(ENTRY)
#undef ENTRY
    if (t->matmul_dw_apart) t->matmul_dw_apart = matmul_dw_apart;
    if (t->rope_kv_write) t->rope_kv_write = rope_kv_write;
    if (t->matmul_swiglu) t->matmul_swiglu = matmul_swiglu;
    if (t->matmul_rmsnorm) t->matmul_rmsnorm = matmul_rmsnorm;
    if (t->matmul_low_rank) {
        t->matmul_low_rank = matmul_low_rank;
        t->matmul_dx_low_rank = matmul_dx_low_rank;
        t->low_rank_dw = low_rank_dw;
    }
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
