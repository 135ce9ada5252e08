/* The cases of `tare bench`: every operation at the shapes of a tiny model and of SmolLM2-135M. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct net {
    const char *name;
    int64_t c, h, j, d, f, v;
};
static const struct net MODELS[] = {{"tiny", 128, 4, 2, 32, 384, 256}, {"smollm2", 576, 9, 3, 64, 1536, 49152}};

/* Allocates n floats of a repeating pattern. */
static void *alloc_pattern(struct bench_case *b, int64_t n)
{
    float *p = b->k->backend->alloc(b->c, n * 4 + 64);
    if (!p) return NULL;
    for (int64_t i = 0; i < n; i++) p[i] = 0.01f * (float)((i * 7919) % 199 - 99);
    return b->memory[b->n_memory++] = p;
}

static int alloc_buffers(struct bench_case *b, int n, const int64_t *sizes)
{
    for (int i = 0; i < n; i++)
        if (!alloc_pattern(b, sizes[i])) return 1;
    return 0;
}
#define TAKE(B, ...) alloc_buffers((B), (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

/* ---- products: shape T, N, K */
static int matmul_setup(struct bench_case *b)
{
    const int64_t t = b->shape[0], n = b->shape[1], k = b->shape[2];
    const enum dtype dtype = (enum dtype)b->shape[3];
    if (TAKE(b, t * n, t * k, n * k, (b->k->packed_bytes(n, k, dtype) + 3) / 4)) return 1;
    KERNEL(b->k, b->c, pack, .packed = b->memory[3], .w = b->memory[2], .n = n, .k = k, .dtype = dtype);
    return 0;
}
static void matmul_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, matmul, .y = b->memory[0], .x = b->memory[1], .packed = b->memory[3], .t = b->shape[0], .n = b->shape[1],
           .k = b->shape[2], .dtype = (enum dtype)b->shape[3]);
}
static void dx_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, matmul_dx, .dx = b->memory[1], .dy = b->memory[0], .packed = b->memory[3], .t = b->shape[0],
           .n = b->shape[1], .k = b->shape[2], .dtype = (enum dtype)b->shape[3]);
}
static int dw_setup(struct bench_case *b)
{
    const int64_t t = b->shape[0], n = b->shape[1], k = b->shape[2];
    return TAKE(b, t * k, t * n, n * k);
}
static void dw_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, matmul_dw, .dw = b->memory[2], .dy = b->memory[1], .x = b->memory[0], .t = b->shape[0], .n = b->shape[1],
           .k = b->shape[2], .dtype = DTYPE_F32);
}

/* ---- attention. shape: sequences, queries per sequence, shared keys, own keys before the queries;
 * then the model */
static struct attn_shape shape_of(const struct net *m)
{
    return (struct attn_shape){m->h, m->j, m->d, (m->h + 2 * m->j) * m->d, 1.0f / sqrtf((float)m->d), DTYPE_F32, 0};
}
static int attention_setup(struct bench_case *b)
{
    const struct net *m = &MODELS[b->shape[4]];
    const int64_t n = b->shape[0], q = b->shape[1], shared = b->shape[2] / KV_BLOCK,
                  own = (b->shape[3] + q + KV_BLOCK - 1) / KV_BLOCK;
    const int64_t cache = (shared + n * own) * m->j * m->d * KV_BLOCK;
    if (TAKE(b, n * q * m->h * m->d, n * q * (m->h + 2 * m->j) * m->d, cache, cache, n * (shared + own),
             n * (int64_t)sizeof(struct attn_seq) / 4))
        return 1;
    int32_t *blocks = b->memory[4];
    struct attn_seq *seqs = b->memory[5];
    for (int64_t i = 0; i < n; i++) {
        int32_t *row = blocks + i * (shared + own);
        for (int64_t j = 0; j < shared + own; j++) row[j] = (int32_t)(j < shared ? j : shared + i * own + j - shared);
        seqs[i] = (struct attn_seq){i * q, q, b->shape[2] + b->shape[3], row, 0};
    }
    return 0;
}
static void attention_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, attention, .out = b->memory[0], .qkv = b->memory[1], .kv = (struct kv_layer){b->memory[2], b->memory[3]},
           .shape = shape_of(&MODELS[b->shape[4]]), .seqs = b->memory[5], .n_seqs = b->shape[0]);
}
/* shape: rollouts, their length, prompt length; [4]: the model */
static int attention_grad_setup(struct bench_case *b)
{
    const struct net *m = &MODELS[b->shape[4]];
    const int64_t t = b->shape[0] * b->shape[1] + b->shape[2], stride = (m->h + 2 * m->j) * m->d;
    if (TAKE(b, t * stride, t * m->h * m->d, t * m->h * m->d, t * m->h * 2, t * stride,
             (b->shape[0] + 1) * (int64_t)sizeof(struct attn_seg) / 4))
        return 1;
    float *stats = b->memory[3];
    struct attn_seg *segs = b->memory[5];
    for (int64_t i = 0; i < t * m->h; i++) {
        stats[2 * i] = 1;
        stats[2 * i + 1] = 100;
    }
    segs[0] = (struct attn_seg){0, b->shape[2], 0, 0};
    for (int64_t i = 0; i < b->shape[0]; i++)
        segs[i + 1] = (struct attn_seg){b->shape[2] + i * b->shape[1], b->shape[1], 0, b->shape[2]};
    return 0;
}
static void attention_grad_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, attention_grad, .dqkv = b->memory[0], .dout = b->memory[1], .out = b->memory[2], .stats = b->memory[3],
           .qkv = b->memory[4], .shape = shape_of(&MODELS[b->shape[4]]), .segs = b->memory[5], .n_segs = b->shape[0] + 1,
           .t = b->shape[0] * b->shape[1] + b->shape[2]);
}

/* ---- rows: shape T, width */
static int rows_setup(struct bench_case *b)
{
    const int64_t n = b->shape[0] * b->shape[1];
    return TAKE(b, n, n, 2 * n, 2 * n, b->shape[1], b->shape[0]);
}
static void rmsnorm_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, rmsnorm, .y = b->memory[0], .ld = b->shape[1], .rms = b->memory[5], .x = b->memory[1], .w = b->memory[4],
           .t = b->shape[0], .heads = 1, .width = b->shape[1], .eps = 1e-5f);
}
static void rmsnorm_grad_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, rmsnorm_grad, .dx = b->memory[0], .ld = b->shape[1], .dw = b->memory[4], .dy = b->memory[1],
           .x = b->memory[2], .w = b->memory[4], .rms = b->memory[5], .t = b->shape[0], .heads = 1, .width = b->shape[1],
           .accumulate = 1);
}
static void swiglu_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, swiglu, .act = b->memory[0], .gu = b->memory[2], .t = b->shape[0], .f = b->shape[1]);
}
static void swiglu_grad_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, swiglu_grad, .dgu = b->memory[3], .dact = b->memory[0], .gu = b->memory[2], .t = b->shape[0],
           .f = b->shape[1]);
}

/* ---- head: shape R, V */
static int head_setup(struct bench_case *b)
{
    const int64_t r = b->shape[0], v = b->shape[1];
    if (TAKE(b, r * v, r, r, 2 * r, r, r * (int64_t)sizeof(struct sample_row) / 4, r * (int64_t)sizeof(struct head_grad_row) / 4))
        return 1;
    struct sample_row *rows = b->memory[5];
    memset(b->memory[4], 0, (size_t)r * 4);
    for (int64_t i = 0; i < r; i++)
        rows[i] = (struct sample_row){{1, 2}, (uint64_t)i, 1, b->shape[2] ? 0.9f : 1, 0, b->shape[2] ? 50 : 0};
    KERNEL(b->k, b->c, head_stats, .logprob = b->memory[1], .entropy = b->memory[2], .lse = b->memory[3], .logits = b->memory[0],
           .target = b->memory[4], .temperature = 1, .r = r, .v = v);
    return 0;
}
static void head_stats_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, head_stats, .logprob = b->memory[1], .entropy = b->memory[2], .lse = b->memory[3], .logits = b->memory[0],
           .target = b->memory[4], .temperature = 1, .r = b->shape[0], .v = b->shape[1]);
}
static void head_grad_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, head_grad, .logits = b->memory[0], .target = b->memory[4], .lse = b->memory[3], .entropy = b->memory[2],
           .coef = b->memory[6], .temperature = 1, .r = b->shape[0], .v = b->shape[1]);
}
static void sample_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, sample, .token = b->memory[4], .logprob = b->memory[1], .entropy = b->memory[2], .logits = b->memory[0],
           .ld = b->shape[1], .rows = b->memory[5], .r = b->shape[0], .v = b->shape[1]);
}

/* ---- optimizer: shape n */
static int adamw_setup(struct bench_case *b)
{
    if (TAKE(b, b->shape[0], b->shape[0], b->shape[0], b->shape[0])) return 1;
    memset(b->memory[3], 0, (size_t)b->shape[0] * 4);
    return 0;
}
static void adamw_run(struct bench_case *b)
{
    KERNEL(b->k, b->c, adamw, .p = b->memory[0], .g = b->memory[1], .m = b->memory[2], .v = b->memory[3], .n = b->shape[0],
           .grad_scale = 1, .lr = 1e-6f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .decay = 0, .correct1 = 0.1,
           .correct2 = 0.001);
}
static void squares_run(struct bench_case *b)
{
    double sum;
    KERNEL(b->k, b->c, sum_squares, .out = &sum, .x = b->memory[0], .n = b->shape[0], .block = b->shape[0]);
}
static void digest_run(struct bench_case *b)
{
    uint64_t sum = 0;
    KERNEL(b->k, b->c, digest, .out = &sum, .data = b->memory[0], .bytes = 4 * b->shape[0]);
}

/* ---- the list */
struct visitor {
    int (*visit)(const struct bench_case *b, void *arg);
    void *arg;
    int stop;
};

static void visit_case(struct visitor *v, struct bench_case b, const char *op, const char *model, const char *what)
{
    snprintf(b.name, sizeof b.name, "%s %s %s", op, model, what);
    if (!v->stop) v->stop = v->visit(&b, v->arg);
}

static void visit_products(struct visitor *v, const struct net *m, int64_t t)
{
    const struct {
        const char *name;
        int64_t n, k;
    } layers[] = {{"qkv", (m->h + 2 * m->j) * m->d, m->c}, {"up", 2 * m->f, m->c}, {"down", m->c, m->f}, {"head", m->v, m->c}};
    for (int i = 0; i < 4; i++) {
        const int64_t n = layers[i].n, k = layers[i].k;
        const double flops = 2.0 * (double)(t * n * k), data = 4.0 * (double)(t * n + t * k);
        char what[40];
        if (t * n > 8 << 20) continue;
        snprintf(what, sizeof what, "%s T=%lld", layers[i].name, (long long)t);
        visit_case(v,
                   (struct bench_case){.setup = matmul_setup,
                                       .run = matmul_run,
                                       .shape = {t, n, k, DTYPE_F32},
                                       .flops = flops,
                                       .bytes = data + 4.0 * (double)(n * k)},
                   "matmul", m->name, what);
        if (i == 2)
            visit_case(v,
                       (struct bench_case){.setup = matmul_setup,
                                           .run = matmul_run,
                                           .shape = {t, n, k, DTYPE_BF16},
                                           .flops = flops,
                                           .bytes = data + 2.0 * (double)(n * k)},
                       "matmul_bf16", m->name, what);
        if (t < 128) continue;
        struct bench_case grad = {.setup = matmul_setup,
                                  .run = dx_run,
                                  .shape = {t, n, k, DTYPE_F32},
                                  .flops = flops,
                                  .bytes = data + 4.0 * (double)(n * k)};
        visit_case(v, grad, "matmul_dx", m->name, what);
        grad.setup = dw_setup;
        grad.run = dw_run;
        visit_case(v, grad, "matmul_dw", m->name, what);
    }
}

static void visit_attention(struct visitor *v, const struct net *m, int64_t index)
{
    static const struct {
        const char *name;
        int64_t n, q, shared, own;
    } cases[] = {{"prefill 128", 1, 128, 0, 0},
                 {"prefill 1024", 1, 1024, 0, 0},
                 {"decode 1x512", 1, 1, 0, 511},
                 {"decode 32x(256+256)", 32, 1, 256, 255}};
    for (int i = 0; i < 4; i++) {
        const double q = (double)(cases[i].n * cases[i].q), before = (double)(cases[i].shared + cases[i].own);
        const double pairs = q * (before + 0.5 * (double)(cases[i].q + 1)) * (double)(m->h * m->d);
        const double keys = (double)cases[i].shared + (double)cases[i].n * (double)(cases[i].own + cases[i].q);
        visit_case(v,
                   (struct bench_case){.setup = attention_setup,
                                       .run = attention_run,
                                       .shape = {cases[i].n, cases[i].q, cases[i].shared, cases[i].own, index},
                                       .flops = 4 * pairs,
                                       .bytes = 8 * keys * (double)(m->j * m->d) + 8 * q * (double)(m->h * m->d)},
                   "attention", m->name, cases[i].name);
    }
    static const int64_t grads[][3] = {{0, 0, 128}, {0, 0, 1024}, {8, 128, 128}};
    static const char *const names[] = {"128", "1024", "128+8x128"};
    for (int i = 0; i < 3; i++) {
        const double n = (double)grads[i][0], len = (double)grads[i][1], p = (double)grads[i][2];
        const double pairs = (p * (p + 1) / 2 + n * len * (p + (len + 1) / 2)) * (double)(m->h * m->d), rows = n * len + p;
        visit_case(v,
                   (struct bench_case){.setup = attention_grad_setup,
                                       .run = attention_grad_run,
                                       .shape = {grads[i][0], grads[i][1], grads[i][2], 0, index},
                                       .flops = 10 * pairs,
                                       .bytes = 8 * rows * (double)((2 * m->h + 2 * m->j) * m->d)},
                   "attention_grad", m->name, names[i]);
    }
}

static void visit_row_operations(struct visitor *v, const struct net *m, int64_t t)
{
    char what[40];
    snprintf(what, sizeof what, "T=%lld", (long long)t);
    const double c = (double)(t * m->c), f = (double)(t * m->f), z = (double)(t * m->v);
    visit_case(v, (struct bench_case){.setup = rows_setup, .run = rmsnorm_run, .shape = {t, m->c}, .flops = 4 * c, .bytes = 8 * c},
               "rmsnorm", m->name, what);
    visit_case(
        v, (struct bench_case){.setup = rows_setup, .run = rmsnorm_grad_run, .shape = {t, m->c}, .flops = 11 * c, .bytes = 16 * c},
        "rmsnorm_grad", m->name, what);
    visit_case(v, (struct bench_case){.setup = rows_setup, .run = swiglu_run, .shape = {t, m->f}, .flops = 20 * f, .bytes = 12 * f},
               "swiglu", m->name, what);
    visit_case(
        v, (struct bench_case){.setup = rows_setup, .run = swiglu_grad_run, .shape = {t, m->f}, .flops = 26 * f, .bytes = 20 * f},
        "swiglu_grad", m->name, what);
    if (t > 32) return;
    visit_case(v,
               (struct bench_case){.setup = head_setup, .run = head_stats_run, .shape = {t, m->v}, .flops = 22 * z, .bytes = 4 * z},
               "head_stats", m->name, what);
    visit_case(v,
               (struct bench_case){.setup = head_setup, .run = head_grad_run, .shape = {t, m->v}, .flops = 22 * z, .bytes = 8 * z},
               "head_grad", m->name, what);
    visit_case(v,
               (struct bench_case){.setup = head_setup, .run = sample_run, .shape = {t, m->v, 0}, .flops = 24 * z, .bytes = 4 * z},
               "sample", m->name, what);
    visit_case(v,
               (struct bench_case){.setup = head_setup, .run = sample_run, .shape = {t, m->v, 1}, .flops = 24 * z, .bytes = 4 * z},
               "sample_truncated", m->name, what);
}

int bench_kernels(int (*visit)(const struct bench_case *b, void *arg), void *arg)
{
    static const int64_t batch[] = {1, 8, 32, 128, 1024, 2048};
    struct visitor v = {visit, arg, 0};
    for (int i = 0; i < 2; i++) {
        const struct net *m = &MODELS[i];
        for (int j = 0; j < 6; j++) visit_products(&v, m, batch[j]);
        visit_attention(&v, m, i);
        visit_row_operations(&v, m, 1);
        visit_row_operations(&v, m, 32);
        visit_row_operations(&v, m, 1024);
    }
    const int64_t n = 4 << 20;
    visit_case(&v,
               (struct bench_case){
                   .setup = adamw_setup, .run = adamw_run, .shape = {n}, .flops = 14.0 * (double)n, .bytes = 28.0 * (double)n},
               "adamw", "-", "n=4Mi");
    visit_case(&v,
               (struct bench_case){
                   .setup = adamw_setup, .run = squares_run, .shape = {n}, .flops = 2.0 * (double)n, .bytes = 4.0 * (double)n},
               "sum_squares", "-", "n=4Mi");
    visit_case(&v, (struct bench_case){.setup = adamw_setup, .run = digest_run, .shape = {n}, .bytes = 4.0 * (double)n}, "digest",
               "-", "n=4Mi");
    return v.stop;
}
