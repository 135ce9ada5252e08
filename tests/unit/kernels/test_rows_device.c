/* Rows in bf16 on a device and on the CPU (kernels.h, bf16_rows): an operation writes its fp32
 * result rounded, and a product that reads bf16 rows gives the same bits as one that rounds fp32
 * rows. */
#include "device_check.h"

/* Bits of a row of bf16, compared with fp32 results of the same kernel, rounded here. */
static void assert_rounded(const char *what, const uint16_t *got, const float *exact, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (got[i] != bf16_from_f32(exact[i]))
            fail_msg("%s, element %lld: %04x, of %g", what, (long long)i, got[i], (double)exact[i]);
}

static const uint16_t *halves(const struct kernels *k, const struct kctx *c, const void *device, int64_t n)
{
    return (const uint16_t *)from_device(k, c, device, 2 * n);
}

static void written(const struct kernels *k, const struct kctx *c)
{
    static const int64_t widths[] = {1, 33, 256, 257, 1030};
    assert_true(k->bf16_rows);
    for (int i = 0; i < 5; i++) {
        const int64_t f = widths[i], t = 3, n = t * f;
        const float *gu = on_device(k, c, randoms(2 * n, 0, 9), 8 * n), *d = on_device(k, c, randoms(n, 0, 1), 4 * n),
                    *w = on_device(k, c, randoms(f, 0, 1), 4 * f);
        float *wide = on_device(k, c, NULL, 8 * n), *rms = on_device(k, c, NULL, 4 * t);
        uint16_t *narrow = on_device(k, c, NULL, 4 * n);
        KERNEL(k, c, rmsnorm, .y = wide, .ld = f, .rms = rms, .x = gu, .w = w, .t = t, .heads = 1, .width = f, .eps = 1e-5f);
        const float *scale = from_device(k, c, rms, 4 * t);
        KERNEL(k, c, rmsnorm, .y = narrow, .y_dtype = DTYPE_BF16, .ld = f, .rms = rms, .x = gu, .w = w, .t = t, .heads = 1,
               .width = f, .eps = 1e-5f);
        assert_rounded("rmsnorm", halves(k, c, narrow, n), from_device(k, c, wide, 4 * n), n);
        assert_bits("rms", from_device(k, c, rms, 4 * t), scale, t);
        for (int gelu = 0; gelu < 2; gelu++) {
            KERNEL(k, c, swiglu, .act = wide, .gu = gu, .t = t, .f = f, .gelu = gelu);
            KERNEL(k, c, swiglu, .act = narrow, .act_dtype = DTYPE_BF16, .gu = gu, .t = t, .f = f, .gelu = gelu);
            assert_rounded("swiglu", halves(k, c, narrow, n), from_device(k, c, wide, 4 * n), n);
            KERNEL(k, c, swiglu_grad, .dgu = wide, .dact = d, .gu = gu, .t = t, .f = f, .gelu = gelu);
            KERNEL(k, c, swiglu_grad, .dgu = narrow, .dgu_dtype = DTYPE_BF16, .dact = d, .gu = gu, .t = t, .f = f, .gelu = gelu);
            assert_rounded("swiglu_grad", halves(k, c, narrow, 2 * n), from_device(k, c, wide, 8 * n), 2 * n);
        }
        device_end(k, c);
    }
}
DEVICE_TEST(written)

/* Gate and up stored in bf16, or rounded as they are read: the same bits of act and of the
 * gradient. */
static void gated(const struct kernels *k, const struct kctx *c)
{
    static const int64_t widths[] = {1, 33, 256, 1030};
    for (int i = 0; i < 8; i++) {
        const int64_t f = widths[i / 2], t = 3, n = t * f;
        const int gelu = i % 2;
        const float *host = randoms(2 * n, 0, 9), *gu = on_device(k, c, host, 8 * n), *d = on_device(k, c, randoms(n, 0, 1), 4 * n);
        float *act[2], *dgu[2];
        uint16_t *kept = on_device(k, c, NULL, 4 * n), *copy = on_device(k, c, NULL, 4 * n);
        for (int j = 0; j < 2; j++) {
            act[j] = on_device(k, c, NULL, 4 * n);
            dgu[j] = on_device(k, c, NULL, 8 * n);
        }
        KERNEL(k, c, swiglu, .act = act[0], .gu = gu, .kept = kept, .t = t, .f = f, .gelu = gelu, .dtype = DTYPE_BF16);
        KERNEL(k, c, swiglu, .act = act[1], .gu = kept, .gu_dtype = DTYPE_BF16, .t = t, .f = f, .gelu = gelu, .dtype = DTYPE_BF16);
        KERNEL(k, c, swiglu_grad, .dgu = dgu[0], .dact = d, .gu = gu, .t = t, .f = f, .gelu = gelu, .dtype = DTYPE_BF16);
        KERNEL(k, c, swiglu_grad, .dgu = dgu[1], .dact = d, .gu = kept, .gu_dtype = DTYPE_BF16, .t = t, .f = f, .gelu = gelu,
               .dtype = DTYPE_BF16);
        KERNEL(k, c, to_bf16, .y = copy, .x = gu, .n = 2 * n);
        assert_rounded("kept", halves(k, c, kept, 2 * n), host, 2 * n);
        assert_rounded("to_bf16", halves(k, c, copy, 2 * n), host, 2 * n);
        assert_bits("act", from_device(k, c, act[1], 4 * n), from_device(k, c, act[0], 4 * n), n);
        assert_bits("dgu", from_device(k, c, dgu[1], 8 * n), from_device(k, c, dgu[0], 8 * n), 2 * n);
        device_end(k, c);
    }
}
DEVICE_TEST(gated)

/* Whole sequences, and single queries whose keys are split. */
static void attended(const struct kernels *k, const struct kctx *c)
{
    enum { HEADS = 4, KV = 2, ROWS = 330, BLOCKS = (ROWS + 15) / 16 };
    static const struct {
        int64_t dim;
        enum dtype dtype;
    } shapes[] = {{12, DTYPE_F32}, {12, DTYPE_BF16}, {64, DTYPE_BF16}, {128, DTYPE_BF16}};
    int32_t blocks[BLOCKS];
    for (int32_t i = 0; i < BLOCKS; i++) blocks[i] = i;
    for (int i = 0; i < 4; i++) {
        const int64_t D = shapes[i].dim, stride = (HEADS + 2 * KV) * D, n = ROWS * HEADS * D;
        const struct attn_shape s = {HEADS, KV, D, stride, 0.2f, shapes[i].dtype, 0};
        const struct kv_layer kv = {on_device(k, c, NULL, k->kv_bytes(s, BLOCKS)), on_device(k, c, NULL, k->kv_bytes(s, BLOCKS))};
        int64_t at[ROWS];
        for (int64_t j = 0; j < ROWS; j++) at[j] = j;
        const float *qkv = on_device(k, c, randoms(ROWS * stride, 0, 1), 4 * ROWS * stride);
        const int64_t *slots = on_device(k, c, at, (int64_t)sizeof at);
        float *wide = on_device(k, c, NULL, 4 * n);
        uint16_t *narrow = on_device(k, c, NULL, 2 * n);
        k->backend->zero(c, kv.k, k->kv_bytes(s, BLOCKS));
        k->backend->zero(c, kv.v, k->kv_bytes(s, BLOCKS));
        KERNEL(k, c, kv_write, .kv = kv, .qkv = qkv, .shape = s, .rows = slots, .slots = slots, .n = ROWS);
        for (int decodes = 0; decodes < 2; decodes++) {
            const struct attn_seq seq = {0, decodes ? 1 : ROWS, decodes ? ROWS - 1 : 0, blocks, 0};
            const int64_t results = seq.q_len * HEADS * D;
            KERNEL(k, c, attention, .out = wide, .qkv = qkv, .kv = kv, .shape = s, .seqs = &seq, .n_seqs = 1);
            KERNEL(k, c, attention, .out = narrow, .out_dtype = DTYPE_BF16, .qkv = qkv, .kv = kv, .shape = s, .seqs = &seq,
                   .n_seqs = 1);
            assert_rounded(decodes ? "decoding" : "attention", halves(k, c, narrow, results), from_device(k, c, wide, 4 * results),
                           results);
        }
        device_end(k, c);
    }
}
DEVICE_TEST(attended)

/* qkv and attention's output in both precisions: the same bits of the gradient. A prompt shared by
 * two, a separate one, and a row outside all segments. */
static void differentiated(const struct kernels *k, const struct kctx *c)
{
    enum { HEADS = 4, KV = 2, ROWS = 90 };
    static const struct attn_seg segs[] = {{0, 30, 0, 0}, {30, 17, 0, 30}, {47, 20, 0, 30}, {68, 22, 0, 0}};
    static const int64_t dims[] = {12, 64, 128};
    for (int i = 0; i < 3; i++) {
        const int64_t D = dims[i], stride = (HEADS + 2 * KV) * D, width = HEADS * D;
        const struct attn_shape s = {HEADS, KV, D, stride, 0.1f, DTYPE_BF16, 0};
        const float *qkv = on_device(k, c, randoms(ROWS * stride, 0, 1), 4 * ROWS * stride),
                    *out = on_device(k, c, randoms(ROWS * width, 0, 1), 4 * ROWS * width),
                    *dout = on_device(k, c, randoms(ROWS * width, 0, 1), 4 * ROWS * width);
        float *stats = floats(ROWS * HEADS * 2, 1), *d[2];
        for (int64_t j = 0; j < ROWS * HEADS; j++) stats[2 * j] = 5;
        uint16_t *qkv16 = on_device(k, c, NULL, 2 * ROWS * stride), *out16 = on_device(k, c, NULL, 2 * ROWS * width);
        KERNEL(k, c, to_bf16, .y = qkv16, .x = qkv, .n = ROWS * stride);
        KERNEL(k, c, to_bf16, .y = out16, .x = out, .n = ROWS * width);
        for (int j = 0; j < 2; j++) {
            const enum dtype as = j ? DTYPE_BF16 : DTYPE_F32;
            d[j] = on_device(k, c, NULL, 4 * ROWS * stride);
            KERNEL(k, c, attention_grad, .dqkv = d[j], .dout = dout, .out = j ? (const void *)out16 : out, .out_dtype = as,
                   .stats = on_device(k, c, stats, 8 * ROWS * HEADS), .qkv = j ? (const void *)qkv16 : qkv, .qkv_dtype = as,
                   .shape = s, .segs = segs, .n_segs = 4, .t = ROWS);
        }
        assert_bits("gradient", from_device(k, c, d[1], 4 * ROWS * stride), from_device(k, c, d[0], 4 * ROWS * stride),
                    ROWS * stride);
        device_end(k, c);
    }
}
DEVICE_TEST(differentiated)

/* x and dy of t rows in both precisions: the same bits of y, dx and dw. */
static void product(const struct kernels *k, const struct kctx *c, const int64_t shape[3])
{
    const int64_t t = shape[0], n = shape[1], inner = shape[2], largest = n * inner > t * n ? n * inner : t * n;
    float *x = randoms(t * inner, 0, 1), *dy = randoms(t * n, 0, 1);
    uint16_t *x16 = (uint16_t *)floats(t * inner / 2 + 1, 0), *dy16 = (uint16_t *)floats(t * n / 2 + 1, 0);
    for (int64_t i = 0; i < t * inner; i++) x16[i] = bf16_from_f32(x[i]);
    for (int64_t i = 0; i < t * n; i++) dy16[i] = bf16_from_f32(dy[i]);
    const void *gx[2] = {on_device(k, c, x, 4 * t * inner), on_device(k, c, x16, 2 * t * inner)},
               *gdy[2] = {on_device(k, c, dy, 4 * t * n), on_device(k, c, dy16, 2 * t * n)};
    const float *w = on_device(k, c, randoms(n * inner, 0, 1), 4 * n * inner), *bias = on_device(k, c, randoms(n, 0, 1), 4 * n),
                *zeros = floats(largest, 0);
    void *packed = on_device(k, c, NULL, k->packed_bytes(n, inner, DTYPE_BF16));
    float *result[2][3];
    KERNEL(k, c, pack, .packed = packed, .w = w, .n = n, .k = inner, .dtype = DTYPE_BF16);
    for (int i = 0; i < 2; i++) {
        const enum dtype as = i ? DTYPE_BF16 : DTYPE_F32;
        const struct op_matmul_dw dw = {
            .dy = gdy[i], .dy_dtype = as, .x = gx[i], .x_dtype = as, .t = t, .n = n, .k = inner, .dtype = DTYPE_BF16};
        const struct op_matmul_dx dx = {
            .dy = gdy[i], .dy_dtype = as, .packed = packed, .t = t, .n = n, .k = inner, .dtype = DTYPE_BF16};
        float *y = on_device(k, c, NULL, 4 * t * n), *to_x = on_device(k, c, NULL, 4 * t * inner),
              *to_w = on_device(k, c, zeros, 4 * n * inner);
        struct op_matmul_dw own = dw;
        struct op_matmul_dx back = dx;
        own.dw = to_w, back.dx = to_x;
        KERNEL(k, c, matmul, .y = y, .x = gx[i], .x_dtype = as, .packed = packed, .bias = bias, .t = t, .n = n, .k = inner,
               .dtype = DTYPE_BF16);
        k->matmul_dw(c, &own);
        k->matmul_dx(c, &back);
        k->matmul_dw_apart(c, &own);
        result[i][0] = from_device(k, c, y, 4 * t * n), result[i][1] = from_device(k, c, to_w, 4 * n * inner);
        result[i][2] = from_device(k, c, to_x, 4 * t * inner);
    }
    assert_bits("y", result[1][0], result[0][0], t * n);
    assert_bits("dw", result[1][1], result[0][1], n * inner);
    assert_bits("dx", result[1][2], result[0][2], t * inner);
    device_end(k, c);
}

static void multiplied(const struct kernels *k, const struct kctx *c)
{
    /* inner sizes that are not a multiple of 8; few rows, for which W is read once (fp32 x up to 16
     * rows and 4,096 inner, otherwise a copy); many rows */
    static const int64_t shapes[][3] = {{3, 17, 5},   {7, 40, 64},   {16, 48, 128}, {20, 130, 192}, {9, 19, 4160},
                                        {33, 70, 96}, {130, 33, 72}, {61, 35, 33},  {300, 40, 160}};
    struct kctx fixed = *c;
    fixed.batch_invariant = 1;
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
        product(k, c, shapes[i]);
        product(k, &fixed, shapes[i]);
    }
}
DEVICE_TEST(multiplied)

/* The same with adapters added to the product, which also read x; dy is fp32 there. */
static void adapted(const struct kernels *k, const struct kctx *c, const int64_t shape[3])
{
    enum { RANK = 6 };
    const int64_t t = shape[0], n = shape[1], inner = shape[2];
    float *x = randoms(t * inner, 0, 1), *result[2][4];
    uint16_t *x16 = (uint16_t *)floats(t * inner / 2 + 1, 0);
    for (int64_t i = 0; i < t * inner; i++) x16[i] = bf16_from_f32(x[i]);
    const float *w = randoms(n * inner, 0, 1), *a = randoms(RANK * inner, 0, 1), *b = randoms(n * RANK, 0, 1),
                *dy = randoms(t * n, 0, 1), *d = randoms(t * RANK, 0, 1);
    void *packed[3] = {floats(k->packed_bytes(n, inner, DTYPE_BF16) / 4, 0),
                       floats(k->packed_bytes(RANK, inner, DTYPE_BF16) / 4, 0),
                       floats(k->packed_bytes(n, RANK, DTYPE_BF16) / 4, 0)};
    KERNEL(k, c, pack, .packed = packed[0], .w = w, .n = n, .k = inner, .dtype = DTYPE_BF16);
    KERNEL(k, c, pack, .packed = packed[1], .w = a, .n = RANK, .k = inner, .dtype = DTYPE_BF16);
    KERNEL(k, c, pack, .packed = packed[2], .w = b, .n = n, .k = RANK, .dtype = DTYPE_BF16);
    const struct low_rank adapter = {.a = packed[1], .b = {packed[2]}, .n = {n}, .parts = 1, .rank = RANK, .scale = 0.5f};
    for (int i = 0; i < 2; i++) {
        const struct op_matmul product = {.y = result[i][0] = floats(t * n, 0),
                                          .x = i ? (const void *)x16 : x,
                                          .x_dtype = i ? DTYPE_BF16 : DTYPE_F32,
                                          .packed = packed[0],
                                          .t = t,
                                          .n = n,
                                          .k = inner,
                                          .dtype = DTYPE_BF16};
        struct op_low_rank_dw dw = {.u = result[i][1] = floats(t * RANK, 0),
                                    .da = result[i][2] = floats(RANK * inner, 0),
                                    .d = d,
                                    .dy = dy,
                                    .x = product.x,
                                    .x_dtype = product.x_dtype,
                                    .adapter = adapter,
                                    .t = t,
                                    .n = n,
                                    .k = inner,
                                    .dtype = DTYPE_BF16};
        dw.db[0] = result[i][3] = floats(n * RANK, 0);
        memset(dw.da, 0, (size_t)(RANK * inner) * sizeof *dw.da);
        memset(dw.db[0], 0, (size_t)(n * RANK) * sizeof *dw.da);
        KERNEL(k, c, matmul_low_rank, .product = product, .adapter = adapter, .u = result[i][1]);
        k->low_rank_dw(c, &dw);
    }
    assert_bits("y with adapters", result[1][0], result[0][0], t * n);
    assert_bits("u", result[1][1], result[0][1], t * RANK);
    assert_bits("da", result[1][2], result[0][2], RANK * inner);
    assert_bits("db", result[1][3], result[0][3], n * RANK);
    buffers_end();
}

static void on_cpu(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const int64_t shapes[][3] = {{2, 64, 48}, {5, 70, 33}, {40, 96, 33}, {90, 64, 160}};
    (void)where;
    if (!k->bf16_rows) return;
    written(k, c);
    gated(k, c);
    attended(k, c);
    differentiated(k, c);
    multiplied(k, c);
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) adapted(k, c, shapes[i]);
}

static void test_on_cpu(void **state)
{
    const struct kernels *k;
    struct err e;
    (void)state;
    if (!kernels_cpu("avx2", &k, &e)) assert_true(k->bf16_rows);
    each_backend(on_cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(written),        device_test(gated),      device_test(attended),
                                       device_test(differentiated), device_test(multiplied), cmocka_unit_test(test_on_cpu)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
