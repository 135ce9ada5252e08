/* Products: every backend is bit-identical to ref, forward and backward; rows do not depend on
 * their number. */
#include "caches.h"
#include "kernel_check.h"

/* The last shape is more than is made into panels at a time. */
static const int64_t SHAPES[][3] = {{1, 17, 33},   {2, 48, 64},     {3, 100, 30},   {4, 16, 257}, {5, 31, 256},
                                    {6, 33, 255},  {7, 33, 300},    {8, 64, 576},   {15, 15, 15}, {29, 70, 700},
                                    {57, 130, 65}, {128, 200, 600}, {200, 33, 520}, {33, 1, 1},

                                    {1, 1, 1},     {400, 47, 31},   {1, 129, 0},    {60, 5, 0},   {3, 70001, 64}};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES };

static void *packed(const struct kernels *k, const struct kctx *c, const float *w, int64_t n, int64_t inner, enum dtype dtype)
{
    const int64_t bytes = k->packed_bytes(n, inner, dtype);
    assert_true(bytes >= 0 && bytes % 2 == 0);
    float *p = floats((bytes + 3) / 4, 0);
    KERNEL(k, c, pack, .packed = p, .w = w, .n = n, .k = inner, .dtype = dtype);
    return p;
}

static void forward(const struct kernels *k, const struct kctx *c, const char *where, const int64_t shape[3], enum dtype dtype)
{
    const int64_t t = shape[0], n = shape[1], inner = shape[2];
    float *x = randoms(t * inner, 1, 1), *w = randoms(n * inner, 0, 1), *bias = randoms(n, 3, 1), *start = randoms(t * n, 0, 1);
    void *p = packed(k, c, w, n, inner, dtype), *expected_p = packed(ref, &contexts[0], w, n, inner, dtype);
    for (int mode = 0; mode < 4; mode++) { /* bias, residual, residual in place */
        float *y = copied(start, t * n, 1), *expected = copied(start, t * n, 0);
        const float *b = mode & 1 ? bias : NULL;
        KERNEL(k, c, matmul, .y = y, .x = x, .packed = p, .bias = b,
               .residual = mode == 2   ? start
                           : mode == 3 ? y
                                       : NULL,
               .t = t, .n = n, .k = inner, .dtype = dtype);
        KERNEL(ref, &contexts[0], matmul, .y = expected, .x = x, .packed = expected_p, .bias = b,
               .residual = mode == 2   ? start
                           : mode == 3 ? expected
                                       : NULL,
               .t = t, .n = n, .k = inner, .dtype = dtype);
        assert_bits(where, y, expected, t * n);
    }
    buffers_end();
}

static void *packed_of(const struct kernels *k, const struct kctx *c, const float *w, int64_t n, int64_t inner, enum dtype dtype)
{
    void *packed = floats(k->packed_bytes(n, inner, dtype) / 4 + 1, 0);
    KERNEL(k, c, pack, .packed = packed, .w = w, .n = n, .k = inner, .dtype = dtype);
    return packed;
}

/* dx by this backend and by the definition, each from weights in its own packing. */
static void dx_is(const struct kernels *k, const struct kctx *c, const char *where, struct op_matmul_dx o, const float *w)
{
    float *expected = floats(o.t * o.k, 0);
    struct op_matmul_dx by_definition = o;
    o.packed = packed_of(k, c, w, o.n, o.k, o.dtype);
    by_definition.packed = packed_of(ref, &contexts[0], w, o.n, o.k, o.dtype);
    by_definition.dx = expected;
    k->matmul_dx(c, &o);
    ref->matmul_dx(&contexts[0], &by_definition);
    assert_bits(where, o.dx, expected, o.t * o.k);
}

static void backward(const struct kernels *k, const struct kctx *c, const char *where, const int64_t shape[3], enum dtype dtype)
{
    const int64_t t = shape[0], n = shape[1], inner = shape[2];
    float *x = randoms(t * inner, 1, 1), *w = randoms(n * inner, 2, 1), *dy = randoms(t * n, 3, 1);
    float *dx = randoms(t * inner, 0, 1), *dw = randoms(n * inner, 1, 1), *db = randoms(n, 1, 1);
    float *dw0 = copied(dw, n * inner, 0), *db0 = copied(db, n, 0);
    for (int with_bias = 1; with_bias >= 0; with_bias--) {
        dx_is(k, c, where, (struct op_matmul_dx){.dx = dx, .dy = dy, .t = t, .n = n, .k = inner, .dtype = dtype}, w);
        KERNEL(k, c, matmul_dw, .dw = dw, .dbias = with_bias ? db : NULL, .dy = dy, .x = x, .t = t, .n = n, .k = inner,
               .dtype = dtype);
        KERNEL(ref, &contexts[0], matmul_dw, .dw = dw0, .dbias = with_bias ? db0 : NULL, .dy = dy, .x = x, .t = t, .n = n,
               .k = inner, .dtype = dtype);
        assert_bits(where, dw, dw0, n * inner);
        assert_bits(where, db, db0, n);
        if (!k->matmul_dw_apart) continue;
        float *alone = floats(n * inner, 0);
        memset(alone, 0, (size_t)(n * inner) * sizeof *alone);
        KERNEL(k, c, matmul_dw, .dw = alone, .dy = dy, .x = x, .t = t, .n = n, .k = inner, .dtype = dtype);
        KERNEL(k, c, add, .y = dw0, .x = alone, .n = n * inner);
        k->matmul_dw_apart(
            c, &(struct op_matmul_dw){
                   .dw = dw, .dbias = with_bias ? db : NULL, .dy = dy, .x = x, .t = t, .n = n, .k = inner, .dtype = dtype});
        assert_bits(where, dw, dw0, n * inner);
        ref->matmul_dw_apart(
            &contexts[0],
            &(struct op_matmul_dw){
                .dw = dw0, .dbias = with_bias ? db0 : NULL, .dy = dy, .x = x, .t = t, .n = n, .k = inner, .dtype = dtype});
        k->matmul_dw_apart(c, &(struct op_matmul_dw){.dw = dw, .dy = dy, .x = x, .t = t, .n = n, .k = inner, .dtype = dtype});
        assert_bits(where, dw, dw0, n * inner);
        assert_bits(where, db, db0, n);
    }
    buffers_end();
}

static void products(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < N_SHAPES; i++)
        for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
            forward(k, c, where, SHAPES[i], (enum dtype)dtype);
            backward(k, c, where, SHAPES[i], (enum dtype)dtype);
        }
}

static void test_products(void **state)
{
    (void)state;
    each_backend(products);
}

/* Other cache sizes: other blocks, chunks of the inner index, groups of columns and passes. */
static void blocks(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const struct caches sizes[] = {{1 << 10, 4 << 10}, {6 << 10, 24 << 10}, {16 << 10, 1 << 20}, {1 << 20, 64 << 20}};
    static const int64_t shapes[][3] = {{29, 70, 700}, {60, 130, 257}, {200, 75, 131}, {260, 131, 75}};
    for (int i = 0; i < 4; i++) {
        caches_pretend(&sizes[i]);
        for (int j = 0; j < 4; j++)
            for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
                forward(k, c, where, shapes[j], (enum dtype)dtype);
                backward(k, c, where, shapes[j], (enum dtype)dtype);
            }
    }
    caches_pretend(NULL);
}

static void test_blocks(void **state)
{
    (void)state;
    each_backend(blocks);
}

static void test_caches(void **state)
{
    (void)state;
    const struct caches c = caches_of_this_machine();
    assert_in_range(c.first, 8 << 10, 16 << 20);
    assert_in_range(c.second, 64 << 10, 1 << 30);
}

static void invariance(const struct kernels *k, const struct kctx *c, const char *where)
{
    enum { MOST = 500, N = 75, K = 300 };
    static const int64_t rows[] = {1, 2, 7, 8, 32, 33, 128, 500};
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
        float *x = randoms(MOST * K, 0, 1), *w = randoms(N * K, 0, 1), *all = floats(MOST * N, 0), *some = floats(MOST * N, 0);
        void *p = packed(k, c, w, N, K, (enum dtype)dtype);
        KERNEL(k, c, matmul, .y = all, .x = x, .packed = p, .t = MOST, .n = N, .k = K, .dtype = (enum dtype)dtype);
        for (int i = 0; i < 8; i++) {
            const int64_t first = (MOST - rows[i]) / 2;
            KERNEL(k, c, matmul, .y = some, .x = x + first * K, .packed = p, .t = rows[i], .n = N, .k = K,
                   .dtype = (enum dtype)dtype);
            assert_bits(where, some, all + first * N, rows[i] * N);
        }
        buffers_end();
    }
}

static void test_invariance(void **state)
{
    (void)state;
    each_backend(invariance);
}

/* dx of weights that are made into panels part by part, while the next part is prefetched. */
static void parts(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (c == &contexts[0] || !strncmp(k->name, "emu", 3)) return;
    enum { T = 30, N = 1601, K = 352 };
    const float *w = randoms(N * K, 0, 1), *dy = randoms(T * N, 0, 1);
    float *dx = floats(T * K, 0);
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++)
        dx_is(k, c, where, (struct op_matmul_dx){.dx = dx, .dy = dy, .t = T, .n = N, .k = K, .dtype = (enum dtype)dtype}, w);
    buffers_end();
}

static void test_parts(void **state)
{
    (void)state;
    each_backend(parts);
}

/* Large enough for several chunks of rows and of the inner index. */
static void large(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (c == &contexts[0] || !strncmp(k->name, "emu", 3)) return;
    enum { T = 600, N = 9000, K = 17 };
    float *w = randoms((int64_t)N * K, 0, 1), *dy = randoms((int64_t)T * N, 0, 1), *x = randoms(T * K, 0, 1);
    float *dx = floats(T * K, 0), *dw = randoms((int64_t)N * K, 0, 1), *dw0 = copied(dw, (int64_t)N * K, 0);
    dx_is(k, c, where, (struct op_matmul_dx){.dx = dx, .dy = dy, .t = T, .n = N, .k = K, .dtype = DTYPE_F32}, w);
    KERNEL(k, c, matmul_dw, .dw = dw, .dy = dy, .x = x, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    KERNEL(ref, &contexts[0], matmul_dw, .dw = dw0, .dy = dy, .x = x, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    assert_bits(where, dw, dw0, (int64_t)N * K);
    float *wide = randoms((int64_t)K * N, 0, 1), *wide0 = copied(wide, (int64_t)K * N, 0);
    k->matmul_dw_apart(c, &(struct op_matmul_dw){.dw = wide, .dy = x, .x = dy, .t = T, .n = K, .k = N, .dtype = DTYPE_F32});
    ref->matmul_dw_apart(&contexts[0],
                         &(struct op_matmul_dw){.dw = wide0, .dy = x, .x = dy, .t = T, .n = K, .k = N, .dtype = DTYPE_F32});
    assert_bits(where, wide, wide0, (int64_t)K * N);
}

static void test_large(void **state)
{
    (void)state;
    each_backend(large);
}

/* The chain against sums in double: |error| <= K u sum |x w|, u = 2^-24 (Higham 2002, 3.1). */
static void test_ref_product_is_right(void **state)
{
    (void)state;
    enum { T = 3, N = 5, K = 400 };
    float *x = randoms(T * K, 0, 1), *w = randoms(N * K, 0, 1), *y = floats(T * N, 0);
    void *p = packed(ref, &contexts[0], w, N, K, DTYPE_F32);
    KERNEL(ref, &contexts[0], matmul, .y = y, .x = x, .packed = p, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    for (int i = 0; i < T; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0, size = 0;
            for (int q = 0; q < K; q++)
                sum += (double)x[i * K + q] * (double)w[j * K + q], size += fabs((double)x[i * K + q] * (double)w[j * K + q]);
            assert_true(fabs((double)y[i * N + j] - sum) <= K * 0x1p-24 * size);
        }
    buffers_end();
}

static void test_no_growth(void **state)
{
    (void)state;
    const struct kernels *k;
    struct err e;
    enum { T = 100, N = 64, K = 600 };
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    float *x = randoms(T * K, 0, 1), *w = randoms(N * K, 0, 1), *y = floats(T * N, 0);
    void *p = packed(k, &contexts[1], w, N, K, DTYPE_F32);
    KERNEL(k, &contexts[1], matmul, .y = y, .x = x, .packed = p, .residual = y, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    const int64_t grown = arenas[1].grown;
    for (int i = 0; i < 10; i++)
        KERNEL(k, &contexts[1], matmul, .y = y, .x = x, .packed = p, .residual = y, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    assert_int_equal(arenas[1].grown, grown);
    assert_int_equal(arenas[1].used, 0);
    buffers_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ref_product_is_right),
                                       cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_invariance),
                                       cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_no_growth)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
