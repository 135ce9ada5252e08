/* Indices at the shapes of large models: 65,536 rows (16,384 for attention) of a model with the
 * widths of Qwen2.5-7B, where products of sizes exceed 2^31. The first, the middle and the last
 * block of every launch run on the shim, in memory that exists only where it is accessed
 * (shim_corners). An address outside its tensor is found. Results are not checked. */
#include "device_check.h"

#ifdef TARE_CUDA_SHIM
void planted_run(const struct kctx *c, const char *what, float *y, const float *x, int64_t n);

enum { ROWS = 65536, TOKENS = 16384, C = 3584, F = 18944, V = 152064, H = 28, J = 4, D = 128, STRIDE = (H + 2 * J) * D };
static const struct attn_shape SHAPE = {H, J, D, STRIDE, 0.08838835f, DTYPE_BF16, 0};

static struct kernel_fault fault;
static const struct kctx ctx = {.fault = &fault};
static const struct kernels *k;

static void *all[64];
static int n_all;

static void *memory(int64_t bytes)
{
    void *p = k->backend->alloc(&ctx, bytes);
    assert_non_null(p);
    assert_true(n_all < (int)(sizeof all / sizeof *all));
    return all[n_all++] = p;
}

static void end(void)
{
    while (n_all) k->backend->release(&ctx, all[--n_all]);
}

static float *tensor(int64_t n)
{
    return memory(n * 4);
}

/* n numbers of `bytes` bytes, the last ones the largest: index i is most - (n - 1 - i), at least
 * 0. */
static void *indices(int64_t n, int64_t most, int64_t bytes)
{
    char *host = malloc((size_t)(n * bytes));
    assert_non_null(host);
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = most - (n - 1 - i) > 0 ? most - (n - 1 - i) : 0;
        memcpy(host + i * bytes, &x, (size_t)bytes); /* little-endian */
    }
    void *p = memory(n * bytes);
    k->backend->upload(&ctx, p, host, n * bytes);
    free(host);
    return p;
}

static void begin(void)
{
    k = kernels_shim();
    fault = (struct kernel_fault){.layer = -1};
    shim_corners = 1;
    shim_forget();
    if (!shim_watches()) {
        SKIP("the sanitizer's build does not watch accesses");
    }
}

static void nothing_found(const char *what)
{
    if (shim_found || fault.code) fail_msg("%s: %s", what, shim_found ? shim_first : fault.message);
}
#define RUN(NAME, ...)                                                                                                             \
    do {                                                                                                                           \
        KERNEL(k, &ctx, NAME, __VA_ARGS__);                                                                                        \
        nothing_found(#NAME);                                                                                                      \
    } while (0)

/* A kernel that counts its elements in 32 bits is found; the same kernel with 64 bits is not
 * reported. */
static void test_planted(void **state)
{
    (void)state;
    begin();
    const int64_t n = (int64_t)ROWS * 2 * F;
    float *y = tensor(n), *x = tensor(n);
    planted_run(&ctx, "many", y, x, n);
    nothing_found("64 bits");
    planted_run(&ctx, "too many for 32 bits", y, x, n);
    assert_true(shim_found > 0);
    shim_forget();
    end();
}

static void test_rows(void **state)
{
    (void)state;
    begin();
    float *x = tensor((int64_t)ROWS * C), *y = tensor((int64_t)ROWS * C), *w = tensor(C), *rms = tensor(ROWS);
    float *gu = tensor((int64_t)ROWS * 2 * F), *dgu = tensor((int64_t)ROWS * 2 * F), *act = tensor((int64_t)ROWS * F);
    float *table = tensor((int64_t)V * C), *wide = tensor((int64_t)ROWS * STRIDE), *turns = tensor((int64_t)ROWS * D);
    const int32_t *ids = indices(ROWS, V - 1, 4), *pos = indices(ROWS, ROWS - 1, 4);
    const int64_t *rows = indices(ROWS, ROWS - 1, 8);
    RUN(embed, .x = x, .table = table, .ids = ids, .t = ROWS, .width = C);
    RUN(rmsnorm, .y = y, .rms = rms, .x = x, .w = w, .ld = C, .t = ROWS, .heads = 1, .width = C, .eps = 1e-6f);
    RUN(rmsnorm, .y = wide, .x = wide, .w = w, .ld = STRIDE, .t = ROWS, .heads = H, .width = D, .eps = 1e-6f);
    RUN(rope, .x = wide, .table = turns, .pos = pos, .ld = STRIDE, .t = ROWS, .n_heads = H + J, .head_dim = D);
    RUN(swiglu, .act = act, .gu = gu, .t = ROWS, .f = F);
    RUN(swiglu_grad, .dgu = dgu, .dact = act, .gu = gu, .t = ROWS, .f = F);
    RUN(gather_rows, .y = y, .x = x, .rows = rows, .n = ROWS, .width = C);
    RUN(scatter_add_rows, .y = y, .x = x, .rows = rows, .n = ROWS, .width = C);
    RUN(add, .y = dgu, .x = gu, .n = (int64_t)ROWS * 2 * F);
    RUN(add_columns, .y = wide, .x = wide, .ldy = STRIDE, .ldx = STRIDE, .t = ROWS, .n = C, .scale = 1);
    end();
}

static void test_head(void **state)
{
    (void)state;
    begin();
    float *logits = tensor((int64_t)ROWS / 4 * V), *logprob = tensor(ROWS), *entropy = tensor(ROWS), *lse = tensor(2 * ROWS);
    const int32_t *target = indices(ROWS / 4, V - 1, 4);
    const struct head_grad_row *coef = memory(ROWS * (int64_t)sizeof *coef);
    RUN(head_stats, .logprob = logprob, .entropy = entropy, .lse = lse, .logits = logits, .target = target, .temperature = 1,
        .r = ROWS / 4, .v = V);
    RUN(head_grad, .logits = logits, .target = target, .lse = lse, .entropy = entropy, .coef = coef, .temperature = 1,
        .r = ROWS / 4, .v = V);
    end();
}

/* The weights of a whole model in one tensor. */
static void test_weights(void **state)
{
    (void)state;
    begin();
    const int64_t n = 7615616512;
    float *p = tensor(n), *m = tensor(n), *v = tensor(n), *g = tensor(n);
    RUN(adamw, .p = p, .m = m, .v = v, .g = g, .n = n, .grad_scale = 1, .lr = 1, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f,
        .correct1 = 0.1, .correct2 = 0.001);
    RUN(sum_squares, .out = memory((n / (1 << 22) + 1) * 8), .x = g, .n = n, .block = 1 << 22);
    RUN(digest, .out = memory(8), .data = g, .bytes = n * 4);
    RUN(pack, .packed = memory((int64_t)V * C * 2), .w = p, .n = V, .k = C, .dtype = DTYPE_BF16);
    end();
}

static void test_products(void **state)
{
    (void)state;
    begin();
    float *x = tensor((int64_t)ROWS * C), *y = tensor((int64_t)ROWS / 4 * V), *gu = tensor((int64_t)ROWS * 2 * F);
    void *head = memory((int64_t)V * C * 2), *up = memory((int64_t)2 * F * C * 2);
    RUN(matmul, .y = gu, .x = x, .packed = up, .t = ROWS, .n = 2 * F, .k = C, .dtype = DTYPE_BF16);
    RUN(matmul, .y = y, .x = x, .packed = head, .t = ROWS / 4, .n = V, .k = C, .dtype = DTYPE_BF16);
    RUN(matmul, .y = y, .x = x, .packed = head, .t = 16, .n = V, .k = C, .dtype = DTYPE_BF16);
    RUN(matmul_dw, .dw = tensor((int64_t)V * C), .dy = y, .x = x, .t = 32, .n = V, .k = C, .dtype = DTYPE_BF16);
    RUN(matmul_dx, .dx = x, .dy = gu, .packed = up, .t = ROWS, .n = 64, .k = C, .dtype = DTYPE_BF16);
    end();
}

static void test_cache(void **state)
{
    (void)state;
    begin();
    const int64_t blocks = 1 << 21; /* 32 million keys */
    const int64_t bytes = k->kv_bytes(SHAPE, blocks);
    const struct kv_layer kv = {memory(bytes), memory(bytes)};
    RUN(kv_write, .kv = kv, .qkv = tensor((int64_t)TOKENS * STRIDE), .shape = SHAPE, .rows = indices(TOKENS, TOKENS - 1, 8),
        .slots = indices(TOKENS, blocks * KV_BLOCK - 1, 8), .n = TOKENS);
    float *qkv = tensor((int64_t)TOKENS * STRIDE);
    k->rope_kv_write(&ctx,
                     &(struct op_rope){.x = qkv,
                                       .table = tensor((int64_t)TOKENS * D),
                                       .pos = indices(TOKENS, TOKENS - 1, 4),
                                       .ld = STRIDE,
                                       .t = TOKENS,
                                       .n_heads = H + J,
                                       .head_dim = D},
                     &(struct op_kv_write){
                         .kv = kv, .qkv = qkv, .shape = SHAPE, .slots = indices(TOKENS, blocks * KV_BLOCK - 1, 8), .n = TOKENS});
    nothing_found("rope_kv_write");
    RUN(kv_copy, .kv = kv, .shape = SHAPE, .to = indices(64, blocks - 1, 4), .from = indices(64, blocks - 65, 4), .n = 64);
    end();
}

/* A prompt of 16 tokens with a completion of all the rest, and the same tokens as a decoding batch
 * of 1,024 sequences. */
static void test_attention(void **state)
{
    (void)state;
    begin();
    enum { SEQS = 1024, PROMPT = 16, KEYS = TOKENS };
    const int64_t blocks = (int64_t)SEQS * (KEYS / KV_BLOCK), bytes = k->kv_bytes(SHAPE, blocks);
    const struct kv_layer kv = {memory(bytes), memory(bytes)};
    float *qkv = tensor((int64_t)TOKENS * STRIDE), *out = tensor((int64_t)TOKENS * H * D), *stats = tensor((int64_t)TOKENS * H * 2);
    static int32_t own[TOKENS / KV_BLOCK], table[SEQS][4];
    struct attn_seq few[SEQS];
    for (int64_t i = 0; i < KEYS / KV_BLOCK; i++) own[i] = (int32_t)(blocks - 1 - i);
    RUN(attention, .out = out, .stats = stats, .qkv = qkv, .kv = kv, .shape = SHAPE, .n_seqs = 1,
        .seqs = &(struct attn_seq){.q_len = TOKENS, .blocks = own});
    for (int i = 0; i < SEQS; i++) {
        for (int j = 0; j < 4; j++) table[i][j] = (int32_t)(blocks - 1 - 4 * i - j);
        few[i] = (struct attn_seq){.q_begin = i, .q_len = 1, .pos = 63, .blocks = table[i]};
    }
    RUN(attention, .out = out, .qkv = qkv, .kv = kv, .shape = SHAPE, .n_seqs = SEQS, .seqs = few);
    const struct attn_seg segs[] = {{.q_len = PROMPT}, {PROMPT, TOKENS - PROMPT, 0, PROMPT}};
    RUN(attention_grad, .dqkv = tensor((int64_t)TOKENS * STRIDE), .dout = out, .out = out, .stats = stats, .qkv = qkv,
        .shape = SHAPE, .segs = segs, .n_segs = 2, .t = TOKENS);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted),  cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_head),     cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_products), cmocka_unit_test(test_cache),
                                       cmocka_unit_test(test_attention)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
#else
static void test_kernels_on_the_host(void **state)
{
    (void)state;
    SKIP("the kernels were not built for the host (no C++ compiler, or the thread sanitizer)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_on_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
