/* Products, attention and the head in the shapes of Qwen2.5's 0.5B, 1.5B and 7B, on a GPU. The host
 * could not compute them, so a product or an attention on tensor cores is compared with the plain
 * fp32 kernels of the same device on the same numbers, all of them exact in bf16: only the order of
 * sums and the rounding of attention's weights differ. The shim runs a small model. */
#include "device_check.h"

struct size {
    const char *name;
    int64_t hidden, wide, heads, kv_heads, dim, vocab;
    int64_t rows[4]; /* of a product: decoding, and more than a kernel for few rows has */
    int64_t keys, queries, head_rows;
};
static const struct size SMALL = {"small", 576, 32, 2, 1, 64, 136, {1, 9, 17, 33}, 100, 20, 3};
static const struct size QWEN[] = {
    {"0.5B", 896, 4864, 14, 2, 64, 151936, {1, 16, 32, 600}, 4096, 512, 8},
    {"1.5B", 1536, 8960, 12, 2, 128, 151936, {1, 16, 32, 600}, 4096, 512, 8},
    {"7B", 3584, 18944, 28, 4, 128, 152064, {1, 16, 32, 600}, 4096, 512, 8},
};

static const struct kernels *dev;
static const struct kctx *ctx;

/* A multiple of 1/128 in [-1, 1), exact in bf16: element i of stream `seed`. */
static float value(uint64_t seed, int64_t i)
{
    uint64_t x = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u ^ seed * 0xD1B54A32D192ED03u;
    x = (x ^ x >> 31) * 0xBF58476D1CE4E5B9u;
    return (float)((int64_t)(x >> 56) - 128) / 128;
}

struct matrix {
    uint64_t seed;
    int64_t rows, columns;
};

/* The matrix, or its transpose, times scale in the device's memory. */
static float *matrix_on_device(struct matrix m, bool transposed, float scale)
{
    const int64_t n = m.rows * m.columns, columns = transposed ? m.rows : m.columns;
    float *host = malloc((size_t)n * sizeof *host);
    assert_non_null(host);
    for (int64_t i = 0; i < n; i++) host[i] = scale * value(m.seed, transposed ? i % columns * m.columns + i / columns : i);
    float *p = on_device(dev, ctx, host, n * 4);
    free(host);
    return p;
}

static void *packed(const float *w, int64_t n, int64_t k, enum dtype dtype)
{
    void *p = on_device(dev, ctx, NULL, dev->packed_bytes(n, k, dtype));
    KERNEL(dev, ctx, pack, .packed = p, .w = w, .n = n, .k = k, .dtype = dtype);
    return p;
}

/* y [t, n] = x [t, inner] B^T by the plain kernel, for packed fp32 B. */
static float *plain_product(const float *x, const void *b, int64_t t, int64_t n, int64_t inner)
{
    struct kctx plain = *ctx;
    plain.batch_invariant = 1;
    float *y = on_device(dev, ctx, NULL, t * n * 4);
    KERNEL(dev, &plain, matmul, .y = y, .x = x, .packed = b, .t = t, .n = n, .k = inner, .dtype = DTYPE_F32);
    return y;
}

/* Tensor cores truncate sums, so the error grows with the number of terms. */
static void near_product(const char *what, const float *got, const float *expected, int64_t n, int64_t terms)
{
    assert_near(what, from_device(dev, ctx, got, n * 4), from_device(dev, ctx, expected, n * 4), n,
                (double)(terms / 4 + 64) * 0x1p-23);
}

struct weights { /* W [n, k] in the device's memory */
    struct matrix m;
    void *bf16, *plain;
};

/* y = x W^T. */
static void forward_product(const struct weights *w, int64_t t, bool fixed)
{
    const int64_t n = w->m.rows, k = w->m.columns;
    struct kctx c = *ctx;
    c.batch_invariant = fixed;
    const float *x = matrix_on_device((struct matrix){11, t, k}, false, 1);
    float *y = on_device(dev, ctx, NULL, t * n * 4);
    KERNEL(dev, &c, matmul, .y = y, .x = x, .packed = w->bf16, .t = t, .n = n, .k = k, .dtype = DTYPE_BF16);
    near_product("y", y, plain_product(x, w->plain, t, n, k), t * n, k);
}

/* dx = dy W. */
static void input_gradient(const struct weights *w, int64_t t)
{
    const int64_t n = w->m.rows, k = w->m.columns;
    const float *dy = matrix_on_device((struct matrix){12, t, n}, false, 1);
    float *dx = on_device(dev, ctx, NULL, t * k * 4);
    KERNEL(dev, ctx, matmul_dx, .dx = dx, .dy = dy, .packed = w->bf16, .t = t, .n = n, .k = k, .dtype = DTYPE_BF16);
    const void *transposed = packed(matrix_on_device(w->m, true, 1), k, n, DTYPE_F32);
    near_product("dx", dx, plain_product(dy, transposed, t, k, n), t * k, n);
}

/* dW = dy^T x, added to zeros. */
static void weight_gradient(const struct weights *w, int64_t t)
{
    const int64_t n = w->m.rows, k = w->m.columns;
    const struct matrix dy = {12, t, n}, x = {11, t, k};
    float *dw = matrix_on_device(w->m, false, 0);
    KERNEL(dev, ctx, matmul_dw, .dw = dw, .dy = matrix_on_device(dy, false, 1), .x = matrix_on_device(x, false, 1), .t = t, .n = n,
           .k = k, .dtype = DTYPE_BF16);
    const void *transposed = packed(matrix_on_device(x, true, 1), k, t, DTYPE_F32);
    near_product("dW", dw, plain_product(matrix_on_device(dy, true, 1), transposed, n, k, t), n * k, t);
}

static void products_of(const struct size *s)
{
    const int64_t qkv = (s->heads + 2 * s->kv_heads) * s->dim, most = s->rows[3];
    const struct matrix all[] = {{1, qkv, s->hidden},
                                 {2, s->hidden, s->heads * s->dim},
                                 {3, 2 * s->wide, s->hidden},
                                 {4, s->hidden, s->wide},
                                 {5, s->vocab, s->hidden}};
    for (int i = 0; i < 5; i++) {
        const float *w = matrix_on_device(all[i], false, 1);
        const struct weights both = {all[i], packed(w, all[i].rows, all[i].columns, DTYPE_BF16),
                                     packed(w, all[i].rows, all[i].columns, DTYPE_F32)};
        for (int r = 0; r < 4; r++) forward_product(&both, s->rows[r], false);
        forward_product(&both, most, true);
        input_gradient(&both, most);
        if (i < 4) weight_gradient(&both, most); /* the head's takes 7 GB of the host */
        device_end(dev, ctx);
    }
}

/* One sequence of s->keys tokens in the cache of a precision. Queries are larger than keys, so that
 * the weights of attention are uneven. */
struct scene {
    struct attn_shape shape;
    struct kv_layer kv;
    float *qkv;
    int32_t *blocks;
};

static struct scene scene_make(const struct size *s, enum dtype dtype)
{
    const int64_t heads = s->heads, all = heads + 2 * s->kv_heads, stride = all * s->dim, n = s->keys * stride;
    struct scene c = {.shape = {heads, s->kv_heads, s->dim, stride, 1 / sqrtf((float)s->dim), dtype, 0}};
    const int64_t n_blocks = (s->keys + KV_BLOCK - 1) / KV_BLOCK;
    float *host = floats(n, 0);
    int64_t *index = malloc((size_t)s->keys * sizeof *index);
    assert_non_null(index);
    c.blocks = (int32_t *)(void *)floats(n_blocks, 0);
    for (int64_t i = 0; i < n_blocks; i++) c.blocks[i] = (int32_t)(n_blocks - 1 - i);
    for (int64_t i = 0; i < n; i++) host[i] = (i % stride < heads * s->dim ? 8 : 1) * value(21, i);
    c.qkv = on_device(dev, ctx, host, n * 4);
    const int64_t bytes = dev->kv_bytes(c.shape, n_blocks);
    c.kv = (struct kv_layer){on_device(dev, ctx, NULL, bytes), on_device(dev, ctx, NULL, bytes)};
    for (int64_t i = 0; i < s->keys; i++) index[i] = i;
    const int64_t *rows = on_device(dev, ctx, index, s->keys * 8);
    for (int64_t i = 0; i < s->keys; i++) index[i] = c.blocks[i / KV_BLOCK] * KV_BLOCK + i % KV_BLOCK;
    KERNEL(dev, ctx, kv_write, .kv = c.kv, .qkv = c.qkv, .shape = c.shape, .rows = rows,
           .slots = on_device(dev, ctx, index, s->keys * 8), .n = s->keys);
    free(index);
    return c;
}

enum { SEQUENCES = 16 };

/* The last s->queries tokens in one pass, then SEQUENCES tokens as a batch of decoding, the first
 * half with shared keys. Copies of out and statistics on the host. */
static float *attention_of(const struct size *s, enum dtype dtype, float **stats, int64_t *n)
{
    const struct scene c = scene_make(s, dtype);
    const int64_t width = s->heads * s->dim, rows = s->queries + SEQUENCES;
    float *out = on_device(dev, ctx, NULL, rows * width * 4), *st = on_device(dev, ctx, NULL, rows * s->heads * 8);
    const int64_t first = s->keys - s->queries;
    KERNEL(dev, ctx, attention, .out = out, .stats = st, .qkv = c.qkv + first * c.shape.stride, .kv = c.kv, .shape = c.shape,
           .seqs = &(struct attn_seq){0, s->queries, first, c.blocks, 0}, .n_seqs = 1);
    struct attn_seq few[SEQUENCES];
    for (int i = 0; i < SEQUENCES; i++)
        few[i] = (struct attn_seq){i, 1, s->keys - 1 - 3 * i, c.blocks, i < SEQUENCES / 2 ? s->keys / 32 * KV_BLOCK : 0};
    KERNEL(dev, ctx, attention, .out = out + s->queries * width, .stats = st + s->queries * s->heads * 2, .qkv = c.qkv, .kv = c.kv,
           .shape = c.shape, .seqs = few, .n_seqs = SEQUENCES);
    *n = rows * width;
    *stats = from_device(dev, ctx, st, rows * s->heads * 8);
    return from_device(dev, ctx, out, rows * width * 4);
}

static void attention_forward(const struct size *s)
{
    float *stats[2], *out[2];
    int64_t n;
    for (enum dtype dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++)
        out[dtype == DTYPE_BF16] = attention_of(s, dtype, &stats[dtype == DTYPE_BF16], &n);
    assert_near("attention", out[1], out[0], n, 0x1p-7);
    assert_near("attention's statistics", stats[1], stats[0], n / s->dim * 2, 1e-4);
    device_end(dev, ctx);
}

/* A prompt and two completions, together s->queries rows. */
static float *gradient_of(const struct size *s, enum dtype dtype, int64_t *n)
{
    const struct scene c = scene_make(s, dtype);
    const int64_t width = s->heads * s->dim, t = s->queries, prompt = t / 4, half = (t - prompt) / 2;
    float *out = on_device(dev, ctx, NULL, t * width * 4), *st = on_device(dev, ctx, NULL, t * s->heads * 8);
    float *dqkv = on_device(dev, ctx, NULL, t * c.shape.stride * 4);
    const struct attn_seg segs[] = {{0, prompt, 0, 0}, {prompt, half, 0, prompt}, {prompt + half, t - prompt - half, 0, prompt}};
    /* Statistics of one chain of t tokens: their maxima are not below those of the segments, and
     * both precisions get nearly the same, which is enough for a comparison. */
    KERNEL(dev, ctx, attention, .out = out, .stats = st, .qkv = c.qkv, .kv = c.kv, .shape = c.shape,
           .seqs = &(struct attn_seq){0, t, 0, c.blocks, 0}, .n_seqs = 1);
    KERNEL(dev, ctx, attention_grad, .dqkv = dqkv, .dout = matrix_on_device((struct matrix){22, t, width}, false, 1), .out = out,
           .stats = st, .qkv = c.qkv, .shape = c.shape, .segs = segs, .n_segs = 3, .t = t);
    *n = t * c.shape.stride;
    return from_device(dev, ctx, dqkv, *n * 4);
}

static void attention_backward(const struct size *s)
{
    int64_t n;
    const float *plain = gradient_of(s, DTYPE_F32, &n), *mma = gradient_of(s, DTYPE_BF16, &n);
    assert_near("attention's gradient", mma, plain, n, 0x1p-6);
    device_end(dev, ctx);
}

/* Statistics and gradient over the vocabulary, against the host. */
static void head_of(const struct size *s)
{
    const int64_t r = s->head_rows, v = s->vocab, n = r * v;
    float *z = floats(n, 0), *logprob = floats(r, 0), *entropy = floats(r, 0), *lse = floats(2 * r, 0);
    int32_t target[8];
    struct head_grad_row coef[8];
    for (int64_t i = 0; i < n; i++) z[i] = 12 * value(31, i);
    for (int64_t j = 0; j < r; j++)
        target[j] = (int32_t)(v - 1 - 17 * j), coef[j] = (struct head_grad_row){0.5f - (float)j, 0.01f, 0};
    float *gz = on_device(dev, ctx, z, 4 * n), *glogprob = on_device(dev, ctx, NULL, 4 * r),
          *gentropy = on_device(dev, ctx, NULL, 4 * r), *glse = on_device(dev, ctx, NULL, 8 * r);
    const int32_t *gtarget = on_device(dev, ctx, target, 4 * r);
    KERNEL(dev, ctx, head_stats, .logprob = glogprob, .entropy = gentropy, .lse = glse, .logits = gz, .target = gtarget,
           .temperature = 1, .r = r, .v = v);
    KERNEL(ref, &contexts[0], head_stats, .logprob = logprob, .entropy = entropy, .lse = lse, .logits = z, .target = target,
           .temperature = 1, .r = r, .v = v);
    assert_near("logprob", from_device(dev, ctx, glogprob, 4 * r), logprob, r, 1e-5);
    assert_near("entropy", from_device(dev, ctx, gentropy, 4 * r), entropy, r, 1e-5);
    dev->backend->upload(ctx, glse, lse, 8 * r); /* the same statistics: the same bits */
    dev->backend->upload(ctx, gentropy, entropy, 4 * r);
    KERNEL(dev, ctx, head_grad, .logits = gz, .target = gtarget, .lse = glse, .entropy = gentropy,
           .coef = on_device(dev, ctx, coef, (int64_t)sizeof *coef * r), .temperature = 1, .r = r, .v = v);
    KERNEL(ref, &contexts[0], head_grad, .logits = z, .target = target, .lse = lse, .entropy = entropy, .coef = coef,
           .temperature = 1, .r = r, .v = v);
    assert_bits("head_grad", from_device(dev, ctx, gz, 4 * n), z, n);
    device_end(dev, ctx);
}

/* Call f for every model, on the shim for the small one. */
static void each_size(const struct kernels *k, const struct kctx *c, void (*f)(const struct size *))
{
    const bool shim = !strcmp(k->name, "shim");
    dev = k, ctx = c;
    for (int i = 0; i < (shim ? 1 : 3); i++) {
        const struct size *s = shim ? &SMALL : &QWEN[i];
        print_message("%s\n", s->name);
        f(s);
    }
}

static void products(const struct kernels *k, const struct kctx *c)
{
    each_size(k, c, products_of);
}
DEVICE_TEST(products)

static void attention(const struct kernels *k, const struct kctx *c)
{
    each_size(k, c, attention_forward);
    each_size(k, c, attention_backward);
}
DEVICE_TEST(attention)

static void head(const struct kernels *k, const struct kctx *c)
{
    each_size(k, c, head_of);
}
DEVICE_TEST(head)

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(products), device_test(attention), device_test(head)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
