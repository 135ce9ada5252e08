/* What the CUDA backend launches for an operation: kernels/cuda, in words. docs/dev/cuda.md, "Products" and "Attention". */
#include "cost.h"
#include "plan/launches.h"
#include "sizes.h"

#include <string.h>

enum { STREAM_ROWS = 32, STREAM_PIECE = 64, STREAM_FP32_ROWS = 16, STREAM_FP32_INNER = 4096 }; /* matmul_stream.cu, matmul_bf16 */
enum { STREAM_BLOCKS = 132, STREAM_WARPS = 8, NORM_WARP_WIDTH = 256 };                         /* matmul_stream.cu, norm.cuh */
enum { CHAIN_ROWS = 32, CHAIN_TILE = 128, CHAIN_STEP = 32, CHAIN_BLOCKS = 264, CHAIN_LEAST = 8 }; /* matmul_chain.cu, cut_of, */
enum { CHAIN_PROCESSORS = 132, CHAIN_SUM = 20 };                                                  /* apart */
enum { WGMMA_INNER = 64 };                                                                        /* matmul_wgmma.cu */
enum { SPLIT_KEYS = 256 };                                                                        /* attention.cuh */

static _Thread_local struct {
    struct kernels inner;
    struct backend backend;
    struct launch_rates rates;
    struct launch_stage_cost *into;
    const void *rounded; /* the dy that the last operation, a product's gradient, left in bf16 */
    struct attention_work decode;
    double parts; /* partial results of its sequences */
} tally;

static void launch(const char *kernel, double flops, double bytes)
{
    struct launch_stage_cost *s = tally.into;
    int i = 0;
    if (!s) return;
    while (i < s->n && strcmp(s->kernel[i].kernel, kernel)) i++;
    if (i == LAUNCH_KERNELS) return;
    if (i == s->n) s->kernel[s->n++] = (struct launch){.kernel = kernel};
    const double compute = flops / tally.rates.flops, memory = bytes / tally.rates.bandwidth;
    struct launch *l = &s->kernel[i];
    l->launches++;
    l->flops += flops;
    l->bytes += bytes;
    l->seconds += compute > memory ? compute : memory;
    l->of_compute += compute > memory ? compute : 0;
    s->seconds += compute > memory ? compute : memory;
}

/* Of an operation that is no product's gradient. */
static void launch_other(const char *kernel, double flops, double bytes)
{
    tally.rounded = NULL;
    launch(kernel, flops, bytes);
}

static void useful(const struct kctx *c, double flops)
{
    const char *stage = c->fault && c->fault->stage ? c->fault->stage : "";
    if (tally.into && strcmp(stage, "forward pass again")) tally.into->useful += flops; /* transformer.c names it so */
}

/* Rows of n elements to bf16, unless they are. */
static void convert(int64_t n, enum dtype dtype)
{
    if (dtype != DTYPE_BF16) launch("convert", 0, 6.0 * (double)n);
}

static void converted_dy(const void *dy, int64_t n, enum dtype dtype)
{
    if (tally.rounded != dy) convert(n, dtype);
    if (dtype != DTYPE_BF16) tally.rounded = dy;
}

/* D[rows, cols] of `inner` terms; once: times that D moves, read or written; ab: bytes of a factor's element. */
static void product(const char *kernel, double rows, double cols, double inner, double ab, double once)
{
    launch(kernel, 2 * rows * cols * inner, ab * inner * (rows + cols) + 4 * once * rows * cols);
}

/* What K is cut into where the bits of a product must not depend on its rows: slices, and the steps of each. */
struct chain {
    int64_t slices, steps;
};

static struct chain chain_of(int64_t n, int64_t k)
{
    const int64_t steps = (k + CHAIN_STEP - 1) / CHAIN_STEP, columns = (n + CHAIN_TILE - 1) / CHAIN_TILE,
                  wanted = (CHAIN_BLOCKS + columns - 1) / columns, slice = (steps + wanted - 1) / wanted,
                  own = slice > CHAIN_LEAST ? slice : CHAIN_LEAST;
    return (struct chain){(steps + own - 1) / own, own};
}

/* Whether the sums of slices are added by a launch of their own. */
static bool chain_apart(int64_t t, int64_t n, int64_t k)
{
    const struct chain cut = chain_of(n, k);
    const int64_t tiles = (t + CHAIN_TILE - 1) / CHAIN_TILE * ((n + CHAIN_TILE - 1) / CHAIN_TILE);
    return cut.slices > 1 && (t <= CHAIN_ROWS || cut.steps * (CHAIN_PROCESSORS - tiles) > CHAIN_SUM * tiles);
}

int64_t launches_parts_bytes(int64_t n, int64_t k)
{
    int64_t t = CHAIN_PROCESSORS * CHAIN_TILE; /* no more rows than that */
    while (t > CHAIN_ROWS && !chain_apart(t, n, k)) t = t > CHAIN_TILE ? (t - 1) / CHAIN_TILE * CHAIN_TILE : CHAIN_ROWS;
    return chain_apart(t, n, k) ? chain_of(n, k).slices * t * n * (int64_t)sizeof(float) : 0;
}

/* Few rows: W is read once. */
static bool streams(const struct op_matmul *o)
{
    return o->dtype == DTYPE_BF16 && !tally.rates.batch_invariant && o->t <= STREAM_ROWS && o->k % STREAM_PIECE == 0;
}

/* What K of a product with a residual is cut into where it would have few blocks. */
static int64_t stream_slices(const struct op_matmul *o)
{
    const int64_t tiles = (o->n + 63) / 64, all = o->k / STREAM_PIECE, wanted = (STREAM_BLOCKS + tiles - 1) / tiles,
                  most = all / STREAM_WARPS, slices = wanted < most ? wanted : most;
    if (!o->residual || (o->n + 31) / 32 >= STREAM_BLOCKS || slices < 2) return 1;
    const int64_t pieces = (all + slices - 1) / slices;
    return (all + pieces - 1) / pieces;
}

/* Sums of slices of K, fp32; norm: NULL, or done in the same launch. True: it was. */
static bool sum_of_slices(const struct op_matmul *o, double parts, const struct op_rmsnorm *norm)
{
    const double y = (double)(o->t * o->n), once = o->residual ? 2 : 1;
    if (norm && o->n > NORM_WARP_WIDTH) {
        launch("product_add_norm", 0, 4 * (parts + once) * y + (double)dtype_bytes(norm->y_dtype) * y);
        return true;
    }
    launch("product_add", 0, 4 * (parts + once) * y);
    return false;
}

/* results: bytes that are written, or read besides W and x. */
static void stream(const char *kernel, const struct op_matmul *o, double results)
{
    const double t = (double)o->t, n = (double)o->n, k = (double)o->k;
    const bool as_it_is = o->x_dtype == DTYPE_F32 && o->k <= STREAM_FP32_INNER && o->t <= STREAM_FP32_ROWS;
    if (!as_it_is) convert(o->t * o->k, o->x_dtype);
    launch(kernel, 2 * t * n * k, 2 * n * k + (as_it_is ? 4 : 2) * t * k + results);
}

/* norm: NULL, or to be done too where slices of K are added. True: it was. */
static bool matmul(const struct kctx *c, const struct op_matmul *o, const struct op_rmsnorm *norm)
{
    const double t = (double)o->t, n = (double)o->n, k = (double)o->k, once = o->residual ? 2 : 1;
    useful(c, cost_matmul(o).flops);
    if (o->dtype != DTYPE_BF16) {
        product(tally.rates.batch_invariant ? "product_plain" : "cublaslt", t, n, k, 4, once);
        return false;
    }
    if (streams(o)) {
        const double parts = (double)stream_slices(o);
        stream("product_stream", o, 4 * (parts > 1 ? parts : once) * t * n);
        return parts > 1 && sum_of_slices(o, parts, norm);
    }
    convert(o->t * o->k, o->x_dtype);
    const bool wgmma = tally.rates.wgmma && o->t > CHAIN_ROWS && o->n % 2 == 0 && o->k % 8 == 0 && o->k >= WGMMA_INNER;
    const char *kernel = !tally.rates.batch_invariant ? "cublaslt" : wgmma ? "product_wgmma" : "product_chain";
    const bool apart = tally.rates.batch_invariant && chain_apart(o->t, o->n, o->k);
    const double parts = (double)chain_of(o->n, o->k).slices;
    product(kernel, t, n, k, 2, apart ? parts : once);
    return apart && sum_of_slices(o, parts, norm);
}

static void tally_matmul(const struct kctx *c, const struct op_matmul *o)
{
    matmul(c, o, NULL);
}

static void tally_matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    const bool bf16 = o->dtype == DTYPE_BF16;
    useful(c, cost_matmul_dx(o).flops);
    if (bf16) converted_dy(o->dy, o->t * o->n, o->dy_dtype);
    product("cublaslt dx", (double)o->t, (double)o->k, (double)o->n, bf16 ? 2 : 4, 1);
}

static void tally_matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    const bool bf16 = o->dtype == DTYPE_BF16;
    useful(c, cost_matmul_dw(o).flops);
    if (o->dbias) launch("product_dbias", 0, 4.0 * (double)(o->t * o->n));
    if (bf16) {
        converted_dy(o->dy, o->t * o->n, o->dy_dtype);
        convert(o->t * o->k, o->x_dtype);
    }
    product("cublaslt dw", (double)o->n, (double)o->k, (double)o->t, bf16 ? 2 : 4, 2);
}

/* ---- attention */

static void attention_launches(const struct kctx *c, const struct op_attention *o, struct attention_work w, bool decodes)
{
    const struct attn_shape *s = &o->shape;
    const double width = (double)(s->heads * s->head_dim), kv = (double)(s->kv_heads * s->head_dim);
    const double element = (double)dtype_bytes(s->dtype), out = (double)dtype_bytes(o->out_dtype);
    const bool combined = decodes && !tally.rates.batch_invariant;
    const double results =
        combined ? 4 * tally.parts * (width + 2 * (double)s->heads) : out * w.rows * width; /* a part has two statistics a head */
    useful(c, 4 * w.pairs * width);
    launch_other(decodes ? "attention decode" : "attention", 4 * w.pairs * width,
                 2 * element * w.keys * kv + 4 * w.rows * width + results);
    if (combined) launch("attention combine", 0, results + out * w.rows * width);
}

/* On a session's places an operation has no sequences: they are those of its load. */
static void tally_attention(const struct kctx *c, const struct op_attention *o)
{
    attention_launches(c, o, o->n_seqs ? attention_work(o) : tally.decode, !o->n_seqs);
}

/* S and dP are computed for the queries and once more for the keys (attention_grad.cuh). */
static void tally_attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    const double t = (double)o->t, width = (double)(o->shape.heads * o->shape.head_dim), stride = (double)o->shape.stride;
    const double one = 2 * cost_attention_grad_pairs(o) * width, rows = t * (stride + width), kv = stride - width;
    const bool bf16 = o->shape.dtype == DTYPE_BF16;
    useful(c, cost_attention_grad(o).flops);
    launch_other("grad_delta", 0, (4 + (double)dtype_bytes(o->out_dtype)) * t * width);
    if (bf16) {
        convert((int64_t)(t * stride), o->qkv_dtype);
        convert((int64_t)(t * width), DTYPE_F32);
    }
    launch_other("attention_grad keys", 4 * one, (bf16 ? 2 : 4) * rows + 4 * t * kv);
    launch_other("attention_grad queries", 3 * one, (bf16 ? 2 : 4) * rows + 4 * t * width);
}

static void tally_kv_write(const struct kctx *c, const struct op_kv_write *o)
{
    (void)c;
    launch_other("kv_write", 0, (double)(o->n * o->shape.kv_heads * o->shape.head_dim) * (o->shape.dtype == DTYPE_BF16 ? 12 : 16));
}

/* k is read once for both. */
static void tally_rope_kv_write(const struct kctx *c, const struct op_rope *turn, const struct op_kv_write *write)
{
    const double kv = (double)(write->n * write->shape.kv_heads * write->shape.head_dim);
    (void)c;
    launch_other("rope_kv_write", 0, cost_rope(turn).bytes + kv * (write->shape.dtype == DTYPE_BF16 ? 8 : 12));
}

static void tally_kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    (void)c;
    launch_other("kv_copy", 0,
                 (double)(o->n * KV_BLOCK * o->shape.kv_heads * o->shape.head_dim) * (o->shape.dtype == DTYPE_BF16 ? 8 : 16));
}

/* ---- one launch each, bound by memory */

#define ONE_LAUNCH(NAME)                                                                                                           \
    static void tally_##NAME(const struct kctx *c, const struct op_##NAME *o)                                                      \
    {                                                                                                                              \
        (void)c;                                                                                                                   \
        launch_other(#NAME, 0, cost_##NAME(o).bytes);                                                                              \
    }
ONE_LAUNCH(pack)
ONE_LAUNCH(embed)
ONE_LAUNCH(embed_grad)
ONE_LAUNCH(rmsnorm)
ONE_LAUNCH(rmsnorm_grad)
ONE_LAUNCH(rope)
ONE_LAUNCH(swiglu)
ONE_LAUNCH(swiglu_grad)
ONE_LAUNCH(head_stats)
ONE_LAUNCH(head_kl)
ONE_LAUNCH(head_grad)
ONE_LAUNCH(add)
ONE_LAUNCH(add_columns)
ONE_LAUNCH(gather_rows)
ONE_LAUNCH(to_bf16)
ONE_LAUNCH(scatter_add_rows)
ONE_LAUNCH(sum_squares)
ONE_LAUNCH(adamw)
ONE_LAUNCH(digest)

static void tally_sample(const struct kctx *c, const struct op_sample *o)
{
    launch_other("sample", 0, cost_sample(o).bytes);
    if (o->token) tally.inner.sample(c, o); /* the host reads what was drawn */
}

static void tally_zero(const struct kctx *c, void *p, int64_t bytes)
{
    launch("memset", 0, (double)bytes);
    tally.inner.backend->zero(c, p, bytes);
}

/* ---- a decode session: one token is issued, with the sequences of its load */

static int64_t pieces(int64_t keys)
{
    return (keys + SPLIT_KEYS - 1) / SPLIT_KEYS;
}

static void tally_decode_load(const struct kctx *c, struct decode *d, const struct decode_load *load, struct decode_places *places)
{
    struct attention_work *w = &tally.decode;
    *w = (struct attention_work){.rows = (double)load->n};
    tally.parts = 0;
    for (int64_t i = 0; i < load->n; i++) {
        const struct decode_row *r = &load->rows[i];
        int64_t shared = 0;
        const int64_t full = i ? (r->pos < r[-1].pos ? r->pos : r[-1].pos) / KV_BLOCK : 0;
        while (shared < full && r->blocks[shared] == r[-1].blocks[shared]) shared++;
        tally.parts += (double)(pieces(r->shared) + pieces(r->pos + 1 - r->shared));
        w->pairs += (double)(r->pos + 1);
        w->keys += (double)(r->pos + 1 - shared * KV_BLOCK);
    }
    tally.inner.decode_load(c, d, load, places);
}

static int tally_decode_begin(const struct kctx *c, struct decode *d)
{
    (void)c, (void)d;
    return 1;
}

static void tally_decode_end(const struct kctx *c, struct decode *d)
{
    (void)c, (void)d;
}

static void tally_matmul_swiglu(const struct kctx *c, const struct op_matmul *o, const struct op_swiglu *act)
{
    if (!streams(o) || o->bias) {
        tally_matmul(c, o);
        tally_swiglu(c, act);
        return;
    }
    useful(c, cost_matmul(o).flops);
    stream("product_gated", o, (double)(act->t * act->f * dtype_bytes(act->act_dtype)));
}

static void tally_matmul_rmsnorm(const struct kctx *c, const struct op_matmul *o, const struct op_rmsnorm *norm)
{
    if (!matmul(c, o, norm)) tally_rmsnorm(c, norm);
}

void launches_tally(struct kernels *k, struct launch_rates rates)
{
    tally.inner = *k;
    tally.backend = *k->backend;
    tally.rates = rates;
    tally.into = NULL;
    tally.rounded = NULL;
    tally.backend.zero = tally_zero;
    k->backend = &tally.backend;
#define ENTRY(NAME) k->NAME = tally_##NAME;
    KERNEL_OPERATIONS(ENTRY)
#undef ENTRY
    k->matmul_dw_apart = tally_matmul_dw;
    if (k->rope_kv_write) k->rope_kv_write = tally_rope_kv_write;
    if (k->matmul_swiglu) k->matmul_swiglu = tally_matmul_swiglu;
    if (k->matmul_rmsnorm) k->matmul_rmsnorm = tally_matmul_rmsnorm;
    k->decode_load = tally_decode_load;
    k->decode_begin = tally_decode_begin;
    k->decode_end = tally_decode_end;
}

void launches_into(struct launch_stage_cost *into)
{
    tally.into = into;
}
