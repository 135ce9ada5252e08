/* Weights in int8: the rounding of a block, and that every backend multiplies exactly the numbers
 * of the definition (exact.h), for any number of rows. */
#include "caches.h"
#include "kernel_check.h"

#include <float.h>

static const int64_t SHAPES[][3] = {{1, 17, 33},  {1, 300, 64}, {2, 130, 95},  {3, 100, 31},  {4, 65, 257},   {5, 31, 256},
                                    {7, 33, 300}, {8, 64, 576}, {29, 70, 700}, {57, 130, 65}, {200, 33, 520}, {33, 1, 1},
                                    {1, 1, 1},    {6, 47, 2},   {1, 129, 0},   {60, 5, 0}};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES };

/* ---- the definition */

static void numbers_are_rounded_to_even(void **state)
{
    (void)state;
    const float w[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -2.5f, -126.5f, 3.49f, -127};
    const int8_t q[] = {127, 0, 2, 2, 0, -2, -126, 3, -127};
    const uint16_t scale = int8_scale(w, 9);
    assert_true(bf16_to_f32(scale) == 1.0f);
    for (int i = 0; i < 9; i++) assert_int_equal(int8_from_f32(w[i], scale), q[i]);
    /* 1/127 = 0.00787401..., which bf16 rounds to 0.007873535; 1 / that = 127.008 */
    const float v[] = {-1.0f, 0.25f};
    assert_true(bf16_to_f32(int8_scale(v, 2)) == 0x1.02p-7f);
    assert_int_equal(int8_from_f32(v[0], int8_scale(v, 2)), -127);
    assert_true(int8_to_f32(-127, int8_scale(v, 2), 0) == -127 * 0x1.02p-7f);
    assert_true(int8_to_f32(-127, int8_scale(v, 2), 1) == -1.0f);
}

static void zeros_and_limits(void **state)
{
    (void)state;
    const float zeros[3] = {0, -0.0f, 0}, small[2] = {1e-40f, -1e-38f}, large[3] = {FLT_MAX, -FLT_MAX, 1};
    assert_int_equal(int8_scale(zeros, 3), 0);
    assert_int_equal(int8_from_f32(-0.0f, 0), 0);
    assert_int_equal(int8_scale(small, 2), 0); /* would be below the smallest normal number */
    assert_int_equal(int8_from_f32(small[1], 0), 0);
    assert_true(f32_bits(int8_to_f32(5, 0, 1)) == 0);
    const uint16_t scale = int8_scale(large, 3);
    assert_true(bf16_to_f32(scale) == 0x1p112f && isfinite(bf16_to_f32(scale) * (0x1p15f + 128)));
    for (int i = 0; i < 3; i++)
        for (int bf16 = 0; bf16 < 2; bf16++) assert_true(isfinite(int8_to_f32(int8_from_f32(large[i], scale), scale, bf16)));
    assert_int_equal(int8_from_f32(NAN, scale), 0); /* the model's loader refuses these by name */
    assert_int_equal(int8_from_f32(INFINITY, scale), 127);
    assert_int_equal(int8_from_f32(-INFINITY, scale), -127);
    for (int i = 1; i < 200; i++) { /* at most half of a scale, for any maximum */
        const float w[2] = {(float)i * 0.37f, (float)i * 0.1234f}, s = bf16_to_f32(int8_scale(w, 2));
        for (int j = 0; j < 2; j++)
            assert_true(fabsf(int8_to_f32(int8_from_f32(w[j], int8_scale(w, 2)), int8_scale(w, 2), 0) - w[j]) <= 0.75f * s);
    }
}

/* ---- products */

/* W as seen by every product. */
static float *rounded(const float *w, int64_t n, int64_t k, enum dtype dtype)
{
    float *out = floats(n * k + 1, 0);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < k; i++) {
            const int64_t first = i / INT8_BLOCK * INT8_BLOCK, in = k - first < INT8_BLOCK ? k - first : INT8_BLOCK;
            const uint16_t scale = int8_scale(w + j * k + first, in);
            out[j * k + i] = int8_to_f32(int8_from_f32(w[j * k + i], scale), scale, dtype == DTYPE_BF16);
        }
    return out;
}

/* Weights of many magnitudes: a block of zeros, numbers below and above one, one row of
 * denormals. */
static float *weights(int64_t n, int64_t k)
{
    float *w = randoms(n * k + 1, 3, 1);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < k; i++)
            w[j * k + i] *= (i / 32 + j) % 7 == 3 ? 0 : j % 11 == 5 ? 1e-40f : powf(2, (float)((i / 32 * 5 + j) % 9 - 4));
    return w;
}

static void *packed(const struct kernels *k, const struct kctx *c, const float *w, const int64_t shape[3], enum dtype dtype)
{
    const int64_t bytes = k->int8_bytes(shape[1], shape[2], dtype);
    float *p = floats((bytes + 3) / 4, 0);
    assert_true(bytes >= 0 && k->int8_bytes(shape[1], shape[2], DTYPE_F16) == 0);
    KERNEL(k, c, pack, .packed = p, .w = w, .n = shape[1], .k = shape[2], .dtype = dtype, .int8 = 1);
    return p;
}

static void check(const struct kernels *k, const struct kctx *c, const char *where, const int64_t shape[3], enum dtype dtype)
{
    const int64_t t = shape[0], n = shape[1], inner = shape[2];
    const float *w = weights(n, inner), *seen = rounded(w, n, inner, dtype), *bias = randoms(n, 3, 1),
                *start = randoms(t * n, 0, 1), *dy = randoms(t * n, 1, 1);
    const struct kernels *const both[2] = {k, ref};
    const struct kctx *const on[2] = {c, &contexts[0]};
    float *x = randoms(t * inner + 1, 1, 1), *plain = floats(ref->packed_bytes(n, inner, dtype) / 4 + 1, 0);
    float *y[3] = {copied(start, t * n, 1), copied(start, t * n, 0), copied(start, t * n, 0)}, *dx = floats(t * inner + 1, 1),
          *dx0 = floats(t * inner + 1, 0);
    KERNEL(ref, on[1], pack, .packed = plain, .w = seen, .n = n, .k = inner, .dtype = dtype);
    KERNEL(ref, on[1], matmul, .y = y[2], .x = x, .packed = plain, .bias = bias, .residual = y[2], .t = t, .n = n, .k = inner,
           .dtype = dtype);
    KERNEL(ref, on[1], matmul_dx, .dx = dx0, .dy = dy, .packed = plain, .t = t, .n = n, .k = inner, .dtype = dtype);
    for (int i = 0; i < 2; i++) {
        const void *p = packed(both[i], on[i], w, shape, dtype);
        KERNEL(both[i], on[i], matmul, .y = y[i], .x = x, .packed = p, .bias = bias, .residual = y[i], .t = t, .n = n, .k = inner,
               .dtype = dtype, .int8 = 1);
        assert_bits(where, y[i], y[2], t * n);
        KERNEL(both[i], on[i], matmul_dx, .dx = dx, .dy = dy, .packed = p, .t = t, .n = n, .k = inner, .dtype = dtype, .int8 = 1);
        assert_bits(where, dx, dx0, t * inner);
    }
    buffers_end();
}

static void products(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->int8_bytes) return; /* amx */
    for (int i = 0; i < N_SHAPES; i++)
        for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) check(k, c, where, SHAPES[i], (enum dtype)dtype);
}

static void every_backend_multiplies_the_rounded_weights(void **state)
{
    (void)state;
    each_backend(products);
}

static float *identity(int64_t n)
{
    float *x = floats(n * n, 0);
    for (int64_t i = 0; i < n * n; i++) x[i] = i % (n + 1) == 0;
    return x;
}

/* Scales of every exponent, and largest weights up to the largest float: a product with the
 * identity is the weights, so each of their bits is checked. */
static void scales(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->int8_bytes) return; /* amx */
    enum { N = 91, K = 97 };
    static const int64_t rows[] = {1, 2, 3, 4, 5, K};
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
        float *w = randoms(N * K, 3, 1), *want = floats(N * K, 0), *out = floats(N * K, 0);
        for (int64_t i = 0; i < N * K; i++) w[i] = i % 5 == 0 ? 0 : ldexpf(w[i], (int)((i % K / 32 * N + i / K) % 260) - 132);
        w[K - 1] = -FLT_MAX;
        w[2 * K - 1] = 127 * FLT_MIN;
        w[3 * K - 1] = 126 * FLT_MIN;
        const float *seen = rounded(w, N, K, (enum dtype)dtype);
        const void *p = packed(k, c, w, (const int64_t[]){0, N, K}, (enum dtype)dtype);
        const float *rows_of_one = identity(K);
        for (int64_t i = 0; i < N * K; i++) want[i % K * N + i / K] = seen[i];
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int64_t i = 0; i + rows[r] <= K; i += rows[r]) {
                KERNEL(k, c, matmul, .y = out, .x = rows_of_one + i * K, .packed = p, .t = rows[r], .n = N, .k = K,
                       .dtype = (enum dtype)dtype, .int8 = 1);
                assert_bits(where, out, want + i * N, rows[r] * N);
            }
        KERNEL(k, c, matmul_dx, .dx = out, .dy = identity(N), .packed = p, .t = N, .n = N, .k = K, .dtype = (enum dtype)dtype,
               .int8 = 1);
        assert_bits(where, out, seen, N * K);
        buffers_end();
    }
}

static void scales_of_every_size(void **state)
{
    (void)state;
    each_backend(scales);
}

/* Other cache sizes: other blocks and chunks of the inner index, which begin in the middle of a
 * block of weights. */
static void blocks(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->int8_bytes) return; /* amx */
    static const struct caches sizes[] = {{1 << 10, 4 << 10}, {6 << 10, 24 << 10}, {1 << 20, 64 << 20}};
    static const int64_t shapes[][3] = {{29, 70, 700}, {60, 130, 257}};
    for (int i = 0; i < 3; i++) {
        caches_pretend(&sizes[i]);
        for (int j = 0; j < 2; j++)
            for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) check(k, c, where, shapes[j], (enum dtype)dtype);
    }
    caches_pretend(NULL);
}

static void blocking_changes_no_bit(void **state)
{
    (void)state;
    each_backend(blocks);
}

static void invariance(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->int8_bytes) return; /* amx */
    enum { MOST = 130, N = 75, K = 300 };
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 14, 15, 33, 128};
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
        const int64_t shape[3] = {MOST, N, K};
        const void *p = packed(k, c, weights(N, K), shape, (enum dtype)dtype);
        float *x = randoms(MOST * K, 0, 1), *all = floats(MOST * N, 0), *some = floats(MOST * N, 0);
        KERNEL(k, c, matmul, .y = all, .x = x, .packed = p, .t = MOST, .n = N, .k = K, .dtype = (enum dtype)dtype, .int8 = 1);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const int64_t first = (MOST - rows[i]) / 2;
            KERNEL(k, c, matmul, .y = some, .x = x + first * K, .packed = p, .t = rows[i], .n = N, .k = K,
                   .dtype = (enum dtype)dtype, .int8 = 1);
            assert_bits(where, some, all + first * N, rows[i] * N);
        }
        buffers_end();
    }
}

static void rows_do_not_depend_on_their_number(void **state)
{
    (void)state;
    each_backend(invariance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_rounded_to_even),
                                       cmocka_unit_test(zeros_and_limits),
                                       cmocka_unit_test(every_backend_multiplies_the_rounded_weights),
                                       cmocka_unit_test(scales_of_every_size),
                                       cmocka_unit_test(blocking_changes_no_bit),
                                       cmocka_unit_test(rows_do_not_depend_on_their_number)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
