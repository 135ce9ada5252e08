/* The launches of Qwen2.5-7B's shapes: a layer of a decoded token, the head and the draw for several
 * batches, and attention of a training micro-batch. The backend's host code chooses kernels and
 * grids; few blocks run (shim_corners). With TARE_LAUNCHES=FILE the launches are written there for
 * tests/cuda/occupancy.py, one per line: group, operation, blocks, threads, dynamic shared memory,
 * kernel. */
#include "device_check.h"

#ifdef TARE_CUDA_SHIM
extern void (*shim_launched)(const char *kernel, int64_t blocks, int64_t threads, int64_t shared);

enum { C = 3584, F = 18944, V = 152064, H = 28, J = 4, D = 128, STRIDE = (H + 2 * J) * D, ROWS_MOST = 32, KEYS = 2048 };
enum { PROMPT = 200, COMPLETIONS = 8, COMPLETION = 1500, TOKENS = PROMPT + COMPLETIONS * COMPLETION };
static const struct attn_shape SHAPE = {H, J, D, STRIDE, 0.08838835f, DTYPE_BF16, 0};

static struct kernel_fault fault;
static const struct kctx ctx = {.fault = &fault};
static const struct kernels *k;
static void *all[64];
static int n_all, n_launches;
static FILE *to;
static char group[40];
static const char *operation;

static void launched(const char *kernel, int64_t blocks, int64_t threads, int64_t shared)
{
    n_launches++;
    if (to)
        fprintf(to, "%s|%s|%lld|%lld|%lld|%s\n", group, operation, (long long)blocks, (long long)threads, (long long)shared,
                kernel);
}

static void *memory(int64_t bytes)
{
    void *p = k->backend->alloc(&ctx, bytes);
    if (!p) fail_msg("%s: %s", operation, fault.message);
    assert_true(n_all < (int)(sizeof all / sizeof *all));
    return all[n_all++] = p;
}

static float *tensor(int64_t n)
{
    return memory(n * 4);
}

static void begin(void)
{
    const char *path = getenv("TARE_LAUNCHES");
    k = kernels_shim();
    fault = (struct kernel_fault){.layer = -1};
    shim_corners = 1;
    shim_forget();
    if (!shim_watches()) {
        SKIP("the sanitizer's build does not watch accesses");
    }
    if (path) assert_non_null(to = fopen(path, "a"));
    n_launches = 0;
    shim_launched = launched;
}

static void end(int launches)
{
    shim_launched = NULL;
    if (to) assert_int_equal(fclose(to), 0);
    to = NULL;
    while (n_all) k->backend->release(&ctx, all[--n_all]);
    if (shim_found || fault.code) fail_msg("%s: %s", operation, shim_found ? shim_first : fault.message);
    assert_int_equal(n_launches, launches);
}

static void *bf16(int64_t rows, int64_t columns)
{
    return memory(rows * columns * 2);
}

static struct op_matmul product(float *y, void *x, void *w, const float *residual, int64_t n, int64_t inner)
{
    return (struct op_matmul){
        .y = y, .x = x, .x_dtype = DTYPE_BF16, .packed = w, .residual = residual, .n = n, .k = inner, .dtype = DTYPE_BF16};
}

/* One layer's launches and the end of a token, for t sequences of KEYS keys, of which none are
 * shared. */
static void decode_token(int64_t t)
{
    static int32_t tables[ROWS_MOST][KEYS / KV_BLOCK];
    struct attn_seq seqs[ROWS_MOST];
    const int64_t blocks = ROWS_MOST * KEYS / KV_BLOCK;
    for (int64_t i = 0; i < t; i++) {
        for (int64_t b = 0; b < KEYS / KV_BLOCK; b++) tables[i][b] = (int32_t)(i * KEYS / KV_BLOCK + b);
        seqs[i] = (struct attn_seq){.q_begin = i, .q_len = 1, .pos = KEYS - 1, .blocks = tables[i]};
    }
    snprintf(group, sizeof group, "decode, %lld rows", (long long)t);
    const struct kv_layer kv = {memory(k->kv_bytes(SHAPE, blocks)), memory(k->kv_bytes(SHAPE, blocks))};
    float *qkv = tensor(t * STRIDE), *x = tensor(t * C), *norm_w = tensor(C), *logits = tensor(t * V);
    void *normed = bf16(t, C), *att = bf16(t, H * D), *act = bf16(t, F);
    struct op_matmul qkv_product = product(qkv, normed, bf16(STRIDE, C), NULL, STRIDE, C);
    struct op_matmul out = product(x, att, bf16(C, H * D), x, C, H * D), down = product(x, act, bf16(C, F), x, C, F);
    struct op_matmul up = product(tensor(t * 2 * F), normed, bf16(2 * F, C), NULL, 2 * F, C);
    struct op_matmul head = product(logits, normed, bf16(V, C), NULL, V, C);
    const struct op_swiglu gate = {.act = act, .act_dtype = DTYPE_BF16, .gu = up.y, .t = t, .f = F, .dtype = DTYPE_BF16};
    const struct op_rmsnorm norm = {
        .y = normed, .y_dtype = DTYPE_BF16, .ld = C, .x = x, .w = norm_w, .t = t, .heads = 1, .width = C, .eps = 1e-6f};
    int64_t slot[ROWS_MOST], *slots = memory(t * 8);
    for (int64_t i = 0; i < t; i++) slot[i] = (i + 1) * KEYS - 1;
    k->backend->upload(&ctx, slots, slot, t * 8);
    qkv_product.bias = tensor(STRIDE);
    qkv_product.t = out.t = down.t = up.t = head.t = t;
    operation = "q, k, v";
    k->matmul(&ctx, &qkv_product);
    operation = "rope, cache";
    k->rope_kv_write(
        &ctx,
        &(struct op_rope){
            .x = qkv, .table = tensor(t * D), .pos = memory(t * 4), .ld = STRIDE, .t = t, .n_heads = H + J, .head_dim = D},
        &(struct op_kv_write){.kv = kv, .qkv = qkv, .shape = SHAPE, .slots = slots, .n = t});
    operation = "attention";
    KERNEL(k, &ctx, attention, .out = att, .out_dtype = DTYPE_BF16, .qkv = qkv, .kv = kv, .shape = SHAPE, .seqs = seqs,
           .n_seqs = t);
    operation = "attention's output, norm";
    k->matmul_rmsnorm(&ctx, &out, &norm);
    operation = "gate, up";
    k->matmul_swiglu(&ctx, &up, &gate);
    operation = "down, norm";
    k->matmul_rmsnorm(&ctx, &down, &norm);
    operation = "head";
    k->matmul(&ctx, &head);
    operation = "draw";
    KERNEL(k, &ctx, sample, .token = memory(t * 4), .logprob = tensor(t), .entropy = tensor(t), .logits = logits, .ld = V,
           .rows = memory(t * (int64_t)sizeof(struct sample_row)), .r = t, .v = V);
}

static void decode(int64_t t, int launches)
{
    begin();
    decode_token(t);
    end(launches);
}

static void test_decode_8(void **state)
{
    (void)state;
    decode(8, 11);
}

static void test_decode_16(void **state)
{
    (void)state;
    decode(16, 11);
}

static void test_decode_32(void **state)
{
    (void)state;
    decode(32, 11);
}

/* A prompt and eight completions after it. */
static void test_train(void **state)
{
    (void)state;
    begin();
    snprintf(group, sizeof group, "train, %d rows", TOKENS);
    struct attn_seg segs[1 + COMPLETIONS] = {{.q_len = PROMPT}};
    for (int i = 0; i < COMPLETIONS; i++)
        segs[1 + i] = (struct attn_seg){.q_begin = PROMPT + i * COMPLETION, .q_len = COMPLETION, .prefix_len = PROMPT};
    void *out = bf16(TOKENS, H * D);
    float *qkv = tensor((int64_t)TOKENS * STRIDE), *stats = tensor((int64_t)TOKENS * H * 2);
    float *dout = tensor((int64_t)TOKENS * H * D), *dqkv = tensor((int64_t)TOKENS * STRIDE);
    operation = "attention, backward";
    KERNEL(k, &ctx, attention_grad, .dqkv = dqkv, .dout = dout, .out = out, .out_dtype = DTYPE_BF16, .stats = stats, .qkv = qkv,
           .shape = SHAPE, .segs = segs, .n_segs = 1 + COMPLETIONS, .t = TOKENS);
    end(6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decode_8), cmocka_unit_test(test_decode_16),
                                       cmocka_unit_test(test_decode_32), cmocka_unit_test(test_train)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
#else
static void test_launches(void **state)
{
    (void)state;
    SKIP("the kernels were not built for the host (no C++ compiler, or the thread sanitizer)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
