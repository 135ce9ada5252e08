/* Single operations of a decoded token, and of a pass over many rows, in the shapes of a model.
 * Each is issued many times between two waits. Its operands alternate between copies, so that
 * weights come from memory and not from the second cache. */
#include "operations.h"

#include "base/clock.h"
#include "cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES_MOST = 64, PIECES = 256, ISSUED = 128, CONTEXT = 2048 };
/* bytes of copies: several times the second cache */
static const int64_t SPREAD = INT64_C(256) << 20;

struct room {
    const struct kernels *k;
    struct kctx c;
    struct kernel_fault fault;
    void *piece[PIECES];
    int n;
};

struct operation {
    const char *name;
    struct kernel_cost cost;
    int64_t rows;
};

static void *take(struct room *r, int64_t bytes)
{
    void *p = r->n < PIECES && !r->fault.code ? r->k->backend->alloc(&r->c, bytes) : NULL;
    if (p) r->piece[r->n++] = p;
    return p;
}

static void give(struct room *r)
{
    while (r->n) r->k->backend->release(&r->c, r->piece[--r->n]);
}

/* run.deterministic, which selects the kernels for products of many rows */
static const char *mode = "true";

static void mode_of(const struct room *r)
{
    char text[400] = "";
    if (!r->c.batch_invariant) return;
    if (r->k->backend->about) r->k->backend->about(&r->c, text, sizeof text);
    mode = strstr(text, "go by wgmma") ? "batch_invariant, wgmma" : "batch_invariant, mma";
}

static int64_t copies_of(int64_t bytes)
{
    const int64_t n = (SPREAD + bytes - 1) / bytes;
    return n < 1 ? 1 : n < COPIES_MOST ? n : COPIES_MOST;
}

static void report(const struct operation *o, const char *shape, double seconds)
{
    printf(
        "{\"bench\":\"operation\",\"peer\":\"tare\",\"deterministic\":\"%s\",\"operation\":\"%s\",\"shape\":\"%s\",\"rows\":%lld,\"seconds\":%.9f,\"gbs\":%.1f,\"tflops\":%.2f}\n",
        mode, o->name, shape, (long long)o->rows, seconds, 1e-9 * o->cost.bytes / seconds, 1e-12 * o->cost.flops / seconds);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Seconds of one operation: `issued` of them between two waits, the median of five rounds after one
 * that is not counted. run issues number i. */
static tare_status timed(struct room *r, void (*run)(const struct room *r, const void *args, int64_t i), const void *args,
                         int64_t issued, double *seconds, struct err *e)
{
    enum { ROUNDS = 5 };
    double took[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        TRY(kernels_finish(r->k, &r->c, e));
        const double start = clock_seconds();
        for (int64_t i = 0; i < issued; i++) run(r, args, i);
        TRY(kernels_finish(r->k, &r->c, e));
        if (round >= 0) took[round] = (clock_seconds() - start) / (double)issued;
    }
    qsort(took, ROUNDS, sizeof *took, ascending);
    *seconds = took[ROUNDS / 2];
    return TARE_OK;
}

/* ---- products. act.act: gate and up with the activation; norm.y: with residual and the norm after
 * it; each in one operation if there is one, as in the model */
struct product {
    struct op_matmul w[COPIES_MOST];
    int64_t copies;
    struct op_swiglu act;
    struct op_rmsnorm norm;
};

static void product_run(const struct room *r, const void *args, int64_t i)
{
    const struct product *p = args;
    const struct op_matmul *w = &p->w[i % p->copies];
    if (p->act.act && r->k->matmul_swiglu) {
        r->k->matmul_swiglu(&r->c, w, &p->act);
        return;
    }
    if (p->norm.y && r->k->matmul_rmsnorm) {
        r->k->matmul_rmsnorm(&r->c, w, &p->norm);
        return;
    }
    r->k->matmul(&r->c, w);
    if (p->act.act) r->k->swiglu(&r->c, &p->act);
    if (p->norm.y) r->k->rmsnorm(&r->c, &p->norm);
}

/* RMSNorm of a product's result y. */
static struct op_rmsnorm norm_of(struct room *r, const struct op_matmul *o)
{
    return (struct op_rmsnorm){.y = take(r, o->t * o->n * 4),
                               .x = o->y,
                               .w = take(r, o->n * 4),
                               .ld = o->n,
                               .t = o->t,
                               .heads = 1,
                               .width = o->n,
                               .eps = 1e-6f,
                               .y_dtype = o->x_dtype};
}

static tare_status product(struct room *r, const struct operations_shape *s, struct op_matmul o, const char *name, struct err *e)
{
    const int64_t bytes = r->k->packed_bytes(o.n, o.k, o.dtype);
    const bool gated = o.n == 2 * s->intermediate, joins = o.n == s->hidden;
    struct product p = {.copies = copies_of(bytes), .act = {.t = o.t, .f = o.n / 2, .act_dtype = o.x_dtype}};
    double seconds;
    o.x = take(r, o.t * o.k * 4);
    o.y = take(r, o.t * o.n * 4);
    p.act.gu = o.y;
    p.act.act = gated ? take(r, o.t * o.n * 2) : NULL;
    if (joins) p.norm = norm_of(r, &o), o.residual = take(r, o.t * o.n * 4);
    for (int64_t i = 0; i < p.copies; i++) {
        p.w[i] = o;
        p.w[i].packed = take(r, bytes);
    }
    if (!p.w[p.copies - 1].packed) return kernels_no_memory(r->k, &r->c, name, bytes, e);
    TRY(timed(r, product_run, &p, ISSUED, &seconds, e));
    report(&(struct operation){name, cost_matmul(&o), o.t}, s->name, seconds);
    give(r);
    return TARE_OK;
}

static tare_status products(struct room *r, const struct operations_shape *s, int64_t rows, struct err *e)
{
    const int64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, C = s->hidden, F = s->intermediate;
    const struct {
        const char *name;
        int64_t n, k;
    } list[] = {
        {"qkv", q + 2 * kv, C}, {"o, norm", C, q}, {"gate, up, activation", 2 * F, C}, {"down, norm", C, F}, {"head", s->vocab, C}};
    for (int i = 0; i < 5; i++) {
        const bool head = i == 4;
        const struct op_matmul o = {.t = rows,
                                    .n = list[i].n,
                                    .k = list[i].k,
                                    .dtype = DTYPE_BF16,
                                    .x_dtype = r->k->bf16_rows && !head ? DTYPE_BF16 : DTYPE_F32};
        if (!head || rows <= 1024) TRY(product(r, s, o, list[i].name, e));
    }
    return TARE_OK;
}

/* ---- rows */
static void norm_run(const struct room *r, const void *args, int64_t i)
{
    (void)i;
    r->k->rmsnorm(&r->c, args);
}

static tare_status norm(struct room *r, const struct operations_shape *s, int64_t rows, struct err *e)
{
    const enum dtype dtype = r->k->bf16_rows ? DTYPE_BF16 : DTYPE_F32;
    struct op_rmsnorm o = {.ld = s->hidden, .t = rows, .heads = 1, .width = s->hidden, .eps = 1e-6f, .y_dtype = dtype};
    double seconds;
    o.x = take(r, rows * s->hidden * 4);
    o.w = take(r, s->hidden * 4);
    o.y = take(r, rows * s->hidden * 4);
    if (!o.y) return kernels_no_memory(r->k, &r->c, "rows", rows * s->hidden * 4, e);
    TRY(timed(r, norm_run, &o, ISSUED, &seconds, e));
    report(&(struct operation){"rmsnorm", cost_rmsnorm(&o), rows}, s->name, seconds);
    give(r);
    return TARE_OK;
}

static void sample_run(const struct room *r, const void *args, int64_t i)
{
    (void)i;
    r->k->sample(&r->c, args);
}

/* Sums of four uniform numbers between -4 and 4, about as spread as a model's logits. */
static void fill_logits(const struct room *r, const struct op_sample *o, float *logits, float *row)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < o->v; i++) {
        row[i] = 0;
        for (int j = 0; j < 4; j++) {
            state = state * 1664525u + 1013904223u;
            row[i] += (float)(state >> 8) * 0x1p-21f - 4;
        }
    }
    for (int64_t i = 0; i < o->r; i++) r->k->backend->upload(&r->c, logits + i * o->v, row, o->v * 4);
}

static tare_status sample(struct room *r, const struct operations_shape *s, int64_t rows, const char *name, struct sample_row how,
                          struct err *e)
{
    struct sample_row *host = malloc((size_t)rows * sizeof *host);
    float *row = malloc((size_t)s->vocab * sizeof *row), *logits = take(r, rows * s->vocab * 4);
    void *there = take(r, rows * (int64_t)sizeof *host);
    const struct op_sample o = {.token = take(r, rows * 4),
                                .logprob = take(r, rows * 4),
                                .entropy = take(r, rows * 4),
                                .logits = logits,
                                .ld = s->vocab,
                                .rows = there,
                                .r = rows,
                                .v = s->vocab};
    double seconds;
    tare_status status = TARE_OK;
    if (!host || !row || !o.entropy) {
        status = kernels_no_memory(r->k, &r->c, "logits", rows * s->vocab * 4, e);
    } else {
        for (int64_t i = 0; i < rows; i++) host[i] = how;
        r->k->backend->upload(&r->c, there, host, rows * (int64_t)sizeof *host);
        fill_logits(r, &o, logits, row);
        status = timed(r, sample_run, &o, ISSUED / 4, &seconds, e);
    }
    if (!status) report(&(struct operation){name, cost_sample(&o), rows}, s->name, seconds);
    free(host);
    free(row);
    give(r);
    return status;
}

static void attention_run(const struct room *r, const void *args, int64_t i)
{
    (void)i;
    r->k->attention(&r->c, args);
}

/* Rows that are each the newest of a sequence with CONTEXT separate keys. The host plans tiles in
 * every call, which a decode session does once. */
static tare_status attend(struct room *r, const struct operations_shape *s, int64_t rows, struct err *e)
{
    enum { BLOCKS = CONTEXT / KV_BLOCK };
    const int64_t stride = (s->heads + 2 * s->kv_heads) * s->head_dim;
    const struct attn_shape shape = {s->heads, s->kv_heads, s->head_dim, stride, 0.1f, DTYPE_BF16, 0};
    const int64_t bytes = r->k->kv_bytes ? r->k->kv_bytes(shape, rows * BLOCKS) : rows * BLOCKS * s->kv_heads * s->head_dim * 64;
    struct attn_seq *seqs = calloc((size_t)rows, sizeof *seqs);
    int32_t *blocks = calloc((size_t)(rows * BLOCKS), sizeof *blocks);
    struct op_attention o = {.out = take(r, rows * s->heads * s->head_dim * 4),
                             .qkv = take(r, rows * stride * 4),
                             .kv = {take(r, bytes), take(r, bytes)},
                             .shape = shape,
                             .seqs = seqs,
                             .n_seqs = rows};
    double seconds = 0;
    tare_status status = TARE_OK;
    if (!seqs || !blocks || !o.kv.v) status = kernels_no_memory(r->k, &r->c, "keys and values", bytes, e);
    for (int64_t i = 0; !status && i < rows; i++) {
        for (int64_t j = 0; j < BLOCKS; j++) blocks[i * BLOCKS + j] = (int32_t)(i * BLOCKS + j);
        seqs[i] = (struct attn_seq){i, 1, CONTEXT - 1, blocks + i * BLOCKS, 0};
    }
    if (!status) status = timed(r, attention_run, &o, ISSUED / 8, &seconds, e);
    /* keys and values as stored */
    const double moved = 2 * (double)bytes + 8 * (double)(rows * s->heads * s->head_dim);
    if (!status) report(&(struct operation){"attention", {cost_attention(&o).flops, moved}, rows}, s->name, seconds);
    free(blocks);
    free(seqs);
    give(r);
    return status;
}

tare_status operations_run(const struct kernels *k, const struct operations_shape *s, int64_t rows, struct err *e)
{
    struct room r = {.k = k, .fault = {.layer = -1}};
    r.c.fault = &r.fault;
    r.c.batch_invariant = s->batch_invariant;
    mode_of(&r);
    tare_status status = products(&r, s, rows, e);
    if (!status) status = norm(&r, s, rows, e);
    if (!status && rows <= 256) {
        const struct sample_row plain = {.temperature = 1, .top_p = 1}, top_k = {.temperature = 1, .top_p = 1, .top_k = 50},
                                top_p = {.temperature = 1, .top_p = 0.95f};
        status = sample(&r, s, rows, "sample", plain, e);
        if (!status) status = sample(&r, s, rows, "sample top-k", top_k, e);
        if (!status) status = sample(&r, s, rows, "sample top-p", top_p, e);
        if (!status) status = attend(&r, s, rows, e);
    }
    give(&r);
    return status;
}
