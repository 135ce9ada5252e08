/* Operations of a device that do two in one launch are bit-identical to the two. */
#include "device_check.h"

enum { HEADS = 3, KV = 2, ROWS = 7, BLOCKS = 5 };

struct cache {
    struct kv_layer kv;
    struct attn_shape shape;
    float *qkv; /* [ROWS, stride] */
};

static struct cache cache_new(const struct kernels *k, const struct kctx *c, int64_t dim, enum dtype dtype, const float *qkv)
{
    const int64_t stride = (HEADS + 2 * KV) * dim;
    const struct attn_shape s = {.heads = HEADS, .kv_heads = KV, .head_dim = dim, .stride = stride, .scale = 1, .dtype = dtype};
    const int64_t bytes = k->kv_bytes(s, BLOCKS);
    return (struct cache){{on_device(k, c, NULL, bytes), on_device(k, c, NULL, bytes)}, s, on_device(k, c, qkv, 4 * ROWS * stride)};
}

static void assert_same_bytes(const char *what, const struct kernels *k, const struct kctx *c, const void *got, const void *want,
                              int64_t bytes)
{
    if (memcmp(from_device(k, c, got, bytes), from_device(k, c, want, bytes), (size_t)bytes)) fail_msg("%s", what);
}

/* Heads rotated whole and in part, and rows with no slot; the rest of the cache must not change. */
static void rotated(const struct kernels *k, const struct kctx *c)
{
    static const int64_t dims[] = {2, 30, 64, 80, 128, 256};
    static const int64_t row[ROWS] = {0, 1, 2, 3, 4, 5, 6}, slot[ROWS] = {3, 17, 33, 63, -1, 16, 79};
    static const int32_t pos[ROWS] = {0, 5, 11, 49, 2, 2, 30};
    assert_non_null(k->rope_kv_write);
    for (int i = 0; i < 6; i++)
        for (int half = 0; half < 2; half++)
            for (enum dtype dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
                const int64_t dim = dims[i], stride = (HEADS + 2 * KV) * dim, turned = half ? (dim / 2 + 1) / 2 * 2 : 0;
                const float *qkv = randoms(ROWS * stride, 0, 1), *table = randoms(50 * dim, 0, 1);
                const struct cache two = cache_new(k, c, dim, dtype, qkv), one = cache_new(k, c, dim, dtype, qkv);
                struct op_rope turn = {.x = two.qkv,
                                       .table = on_device(k, c, table, 200 * dim),
                                       .pos = on_device(k, c, pos, sizeof pos),
                                       .ld = stride,
                                       .t = ROWS,
                                       .n_heads = HEADS + KV,
                                       .head_dim = dim,
                                       .rotary_dim = turned};
                struct op_kv_write write = {.kv = two.kv,
                                            .qkv = two.qkv,
                                            .shape = two.shape,
                                            .rows = on_device(k, c, row, sizeof row),
                                            .slots = on_device(k, c, slot, sizeof slot),
                                            .n = ROWS};
                k->rope(c, &turn);
                k->kv_write(c, &write);
                turn.x = one.qkv;
                write.kv = one.kv;
                write.qkv = one.qkv;
                k->rope_kv_write(c, &turn, &write);
                assert_same_bytes("q, k and v", k, c, one.qkv, two.qkv, 4 * ROWS * stride);
                assert_same_bytes("keys", k, c, one.kv.k, two.kv.k, k->kv_bytes(one.shape, BLOCKS));
                assert_same_bytes("values", k, c, one.kv.v, two.kv.v, k->kv_bytes(one.shape, BLOCKS));
                device_end(k, c);
            }
}
DEVICE_TEST(rotated)

struct gated {
    int64_t t, f, k;
    enum dtype x, act;
    int gelu, biased, rounds;
};

static void check_gated(const struct kernels *k, const struct kctx *c, const struct gated *g)
{
    const int64_t n = 2 * g->f, results = g->t * g->f * (g->act == DTYPE_BF16 ? 2 : 4);
    float *x = randoms(g->t * g->k, 0, 1);
    uint16_t *x16 = (uint16_t *)floats(g->t * g->k / 2 + 1, 0);
    for (int64_t i = 0; i < g->t * g->k; i++) x16[i] = bf16_from_f32(x[i]);
    void *packed = on_device(k, c, NULL, k->packed_bytes(n, g->k, DTYPE_BF16));
    KERNEL(k, c, pack, .packed = packed, .w = on_device(k, c, randoms(n * g->k, 0, 1), 4 * n * g->k), .n = n, .k = g->k,
           .dtype = DTYPE_BF16);
    const struct op_matmul product = {.y = on_device(k, c, NULL, 4 * g->t * n),
                                      .x = g->x == DTYPE_BF16 ? on_device(k, c, x16, 2 * g->t * g->k)
                                                              : on_device(k, c, x, 4 * g->t * g->k),
                                      .x_dtype = g->x,
                                      .packed = packed,
                                      .bias = g->biased ? on_device(k, c, randoms(n, 0, 1), 4 * n) : NULL,
                                      .t = g->t,
                                      .n = n,
                                      .k = g->k,
                                      .dtype = DTYPE_BF16};
    struct op_swiglu act = {.act = on_device(k, c, NULL, results),
                            .act_dtype = g->act,
                            .gu = product.y,
                            .t = g->t,
                            .f = g->f,
                            .gelu = g->gelu,
                            .dtype = g->rounds ? DTYPE_BF16 : DTYPE_F32};
    const void *two = act.act;
    k->matmul(c, &product);
    k->swiglu(c, &act);
    act.act = on_device(k, c, NULL, results);
    k->matmul_swiglu(c, &product, &act);
    assert_same_bytes("act", k, c, act.act, two, results);
    device_end(k, c);
}

/* Few rows and many; gates that do not fill a tile of 16; inner sizes of which every warp has a
 * part, that leave warps without any, and that no kernel for few rows accepts. */
static void gated(const struct kernels *k, const struct kctx *c)
{
    static const int64_t rows[] = {1, 8, 9, 16, 17, 32, 33}, gates[] = {16, 40, 17}, inner[] = {64, 192, 72, 5};
    struct kctx fixed = *c;
    fixed.batch_invariant = 1;
    assert_non_null(k->matmul_swiglu);
    for (int i = 0; i < 7 * 3 * 4; i++) {
        const struct gated g = {.t = rows[i % 7],
                                .f = gates[i / 7 % 3],
                                .k = inner[i / 21],
                                .x = i % 2 ? DTYPE_BF16 : DTYPE_F32,
                                .act = i / 2 % 2 ? DTYPE_BF16 : DTYPE_F32,
                                .gelu = i / 4 % 2,
                                .rounds = i / 8 % 2};
        check_gated(k, c, &g);
        if (i % 5 == 0) check_gated(k, &fixed, &g);
    }
    for (int i = 0; i < 4; i++)
        check_gated(k, c, &(struct gated){.t = 7 + 9 * i, .f = 20, .k = 4160, .x = DTYPE_BF16, .act = DTYPE_BF16, .gelu = i % 2});
    check_gated(k, c, &(struct gated){.t = 3, .f = 20, .k = 4160});
    check_gated(k, c, &(struct gated){.t = 3, .f = 20, .k = 64, .biased = 1});
    for (int i = 0; i < 3; i++) /* 64 rows of W a block */
        check_gated(k, c, &(struct gated){.t = 4 + 13 * i, .f = 4230, .k = 64, .x = DTYPE_BF16, .act = DTYPE_BF16});
}
DEVICE_TEST(gated)

struct normed {
    int64_t t, n, k;
    enum dtype dtype, x, y;
    int biased, in_place, rms;
};

static void *bf16_rows(const struct kernels *k, const struct kctx *c, const float *x, int64_t n)
{
    uint16_t *rows = (uint16_t *)floats(n / 2 + 1, 0);
    for (int64_t i = 0; i < n; i++) rows[i] = bf16_from_f32(x[i]);
    return on_device(k, c, rows, 2 * n);
}

/* The sum, its norm and the norm's factors are those of the two operations; the sum is near
 * ref's. */
static void check_normed(const struct kernels *k, const struct kctx *c, const struct normed *g)
{
    const int64_t results = g->t * g->n * (g->y == DTYPE_BF16 ? 2 : 4), stream = 4 * g->t * g->n;
    const float *x = randoms(g->t * g->k, 0, 1), *w = randoms(g->n * g->k, 0, 1), *before = randoms(g->t * g->n, 0, 1);
    const float *bias = randoms(g->n, 0, 1), *scale = on_device(k, c, randoms(g->n, 0, 1), 4 * g->n);
    float *near = floats(g->t * g->n, 0), *there[2], *rms[2];
    void *normed[2], *packed = on_device(k, c, NULL, k->packed_bytes(g->n, g->k, g->dtype));
    KERNEL(k, c, pack, .packed = packed, .w = on_device(k, c, w, 4 * g->n * g->k), .n = g->n, .k = g->k, .dtype = g->dtype);
    struct op_matmul product = {.x = g->x == DTYPE_BF16 ? bf16_rows(k, c, x, g->t * g->k) : on_device(k, c, x, 4 * g->t * g->k),
                                .x_dtype = g->x,
                                .packed = packed,
                                .bias = g->biased ? on_device(k, c, bias, 4 * g->n) : NULL,
                                .t = g->t,
                                .n = g->n,
                                .k = g->k,
                                .dtype = g->dtype};
    for (int i = 0; i < 2; i++) {
        there[i] = product.y = on_device(k, c, before, stream);
        product.residual = g->in_place ? product.y : on_device(k, c, before, stream);
        normed[i] = on_device(k, c, NULL, results);
        rms[i] = on_device(k, c, NULL, 4 * g->t);
        const struct op_rmsnorm norm = {.y = normed[i],
                                        .rms = g->rms ? rms[i] : NULL,
                                        .x = product.y,
                                        .w = scale,
                                        .ld = g->n,
                                        .t = g->t,
                                        .heads = 1,
                                        .width = g->n,
                                        .eps = 1e-6f,
                                        .y_dtype = g->y};
        if (i == 1) {
            k->matmul_rmsnorm(c, &product, &norm);
            continue;
        }
        k->matmul(c, &product);
        k->rmsnorm(c, &norm);
    }
    assert_same_bytes("the stream", k, c, there[1], there[0], stream);
    assert_same_bytes("its norm", k, c, normed[1], normed[0], results);
    assert_same_bytes("factors", k, c, rms[1], rms[0], 4 * g->t);
    void *packed_ref = floats(ref->packed_bytes(g->n, g->k, g->dtype) / 4 + 1, 0);
    KERNEL(ref, &contexts[0], pack, .packed = packed_ref, .w = w, .n = g->n, .k = g->k, .dtype = g->dtype);
    KERNEL(ref, &contexts[0], matmul, .y = near, .x = x, .packed = packed_ref, .bias = g->biased ? bias : NULL, .residual = before,
           .t = g->t, .n = g->n, .k = g->k, .dtype = g->dtype);
    assert_near("the stream near ref's", from_device(k, c, there[1], stream), near, g->t * g->n, (double)(g->k + 4) * 0x1p-23);
    device_end(k, c);
}

/* Inner sizes that are split into slices and that are not; rows wide enough for a block each,
 * narrower, or too wide for a thread's registers; many rows. */
static void normed(const struct kernels *k, const struct kctx *c)
{
    static const struct normed cases[] = {
        {.t = 1, .n = 300, .k = 1088, .dtype = DTYPE_BF16},
        {.t = 8, .n = 300, .k = 1088, .dtype = DTYPE_BF16, .x = DTYPE_BF16, .y = DTYPE_BF16, .rms = 1},
        {.t = 9, .n = 300, .k = 1088, .dtype = DTYPE_BF16, .x = DTYPE_BF16, .y = DTYPE_BF16, .in_place = 1},
        {.t = 32, .n = 300, .k = 1088, .dtype = DTYPE_BF16, .y = DTYPE_BF16, .biased = 1, .in_place = 1},
        {.t = 33, .n = 300, .k = 1088, .dtype = DTYPE_BF16, .x = DTYPE_BF16, .rms = 1},
        {.t = 5, .n = 300, .k = 192, .dtype = DTYPE_BF16, .biased = 1, .rms = 1},
        {.t = 5, .n = 300, .k = 70, .dtype = DTYPE_BF16, .in_place = 1},
        {.t = 5, .n = 200, .k = 1088, .dtype = DTYPE_BF16, .x = DTYPE_BF16, .y = DTYPE_BF16},
        {.t = 5, .n = 300, .k = 64, .dtype = DTYPE_F32, .in_place = 1, .rms = 1},
        {.t = 2, .n = 4500, .k = 512, .dtype = DTYPE_BF16, .x = DTYPE_BF16, .y = DTYPE_BF16, .rms = 1}};
    struct kctx fixed = *c;
    fixed.batch_invariant = 1;
    assert_non_null(k->matmul_rmsnorm);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].n < 4000) check_normed(k, c, &cases[i]);
        check_normed(k, &fixed, &cases[i]);
    }
    /* slices, and 64 rows of W a block */
    check_normed(k, c, &(struct normed){.t = 3, .n = 2112, .k = 2048, .dtype = DTYPE_BF16, .x = DTYPE_BF16, .y = DTYPE_BF16});
}
DEVICE_TEST(normed)

static void chain(int on)
{
#ifdef TARE_CUDA_SHIM
    extern void planted_chain(int on);
    planted_chain(on);
#else
    (void)on;
#endif
}

/* As in a token of a decode session: x is written by the preceding launch, and every launch may
 * begin before that has ended. Bit-identical to the same operations outside a token; on the shim
 * nothing is read too early, whether copies are made at once or late. */
static void in_a_chain(const struct kernels *k, const struct kctx *c)
{
    enum { T = 9, C = 300, INNER = 1088, GATE = 48 };
    float *x = on_device(k, c, randoms(T * INNER, 0, 1), 4 * T * INNER),
          *none = on_device(k, c, floats(T * INNER, 0), 4 * T * INNER);
    float *before = on_device(k, c, randoms(T * C, 0, 1), 4 * T * C), *weights = on_device(k, c, randoms(C, 0, 1), 4 * C);
    float *stream[2], *norm[2], *qkv[2];
    void *packed = on_device(k, c, NULL, k->packed_bytes(C, INNER, DTYPE_BF16)), *act[2];
    void *gates = on_device(k, c, NULL, k->packed_bytes(2 * GATE, INNER, DTYPE_BF16));
    KERNEL(k, c, pack, .packed = packed, .w = on_device(k, c, randoms(C * INNER, 0, 1), 4 * C * INNER), .n = C, .k = INNER,
           .dtype = DTYPE_BF16);
    KERNEL(k, c, pack, .packed = gates, .w = on_device(k, c, randoms(2 * GATE * INNER, 0, 1), 8 * GATE * INNER), .n = 2 * GATE,
           .k = INNER, .dtype = DTYPE_BF16);
    for (int i = 0; i < 2; i++) {
        stream[i] = on_device(k, c, NULL, 4 * T * C), norm[i] = on_device(k, c, NULL, 4 * T * C);
        qkv[i] = on_device(k, c, NULL, 4 * T * C), act[i] = on_device(k, c, NULL, 4 * T * GATE);
        const struct op_matmul product = {
            .y = stream[i], .x = x, .packed = packed, .residual = before, .t = T, .n = C, .k = INNER, .dtype = DTYPE_BF16};
        const struct op_rmsnorm then = {
            .y = norm[i], .x = stream[i], .w = weights, .ld = C, .t = T, .heads = 1, .width = C, .eps = 1e-6f};
        const struct op_matmul gate = {.y = on_device(k, c, NULL, 8 * T * GATE),
                                       .x = x,
                                       .packed = gates,
                                       .t = T,
                                       .n = 2 * GATE,
                                       .k = INNER,
                                       .dtype = DTYPE_BF16};
        const struct op_swiglu last = {.act = act[i], .gu = gate.y, .t = T, .f = GATE};
        chain(i);
        KERNEL(k, c, add, .y = x, .x = none, .n = T * INNER);
        k->matmul_swiglu(c, &gate, &last);
        KERNEL(k, c, add, .y = x, .x = none, .n = T * INNER);
        k->matmul_rmsnorm(c, &product, &then);
        KERNEL(k, c, matmul, .y = qkv[i], .x = x, .packed = packed, .bias = weights, .t = T, .n = C, .k = INNER,
               .dtype = DTYPE_BF16);
        KERNEL(k, c, rmsnorm, .y = qkv[i], .x = qkv[i], .w = weights, .ld = C, .t = T, .heads = 1, .width = C, .eps = 1e-6f);
        chain(0);
    }
    assert_same_bytes("act", k, c, act[1], act[0], 4 * T * GATE);
    assert_same_bytes("the stream", k, c, stream[1], stream[0], 4 * T * C);
    assert_same_bytes("its norm", k, c, norm[1], norm[0], 4 * T * C);
    assert_same_bytes("q, k and v", k, c, qkv[1], qkv[0], 4 * T * C);
    device_end(k, c);
}

static void chained(const struct kernels *k, const struct kctx *c)
{
#ifdef TARE_CUDA_SHIM
    extern int mma_host_eager;
    for (mma_host_eager = 0; mma_host_eager < 2; mma_host_eager++) in_a_chain(k, c);
    mma_host_eager = 0;
#else
    in_a_chain(k, c);
#endif
}
DEVICE_TEST(chained)

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(rotated), device_test(gated), device_test(normed), device_test(chained)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
