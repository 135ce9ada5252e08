/* Norm, rope, gated MLP, head, embedding, optimizer: every backend has ref's bits. */
#include "kernel_check.h"

static const int64_t WIDTHS[] = {1, 2, 8, 15, 16, 17, 31, 32, 33, 64, 128, 576, 1001};
enum { N_WIDTHS = sizeof WIDTHS / sizeof *WIDTHS };

static void norm(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < N_WIDTHS; i++)
        for (int64_t t = 0; t < 40; t = t * 3 + 1) {
            const int64_t width = WIDTHS[i], heads = 1 + i % 3, ld = heads * width + i % 4, n = t * ld;
            float *x = randoms(n, 1, 3), *w = randoms(width, 2, 1), *y = randoms(n, 3, 1), *y0 = copied(y, n, 0),
                  *rms = floats(t * heads, 1), *rms0 = floats(t * heads, 0), *dy = randoms(n, 0, 1), *dw = randoms(width, 0, 1),
                  *dw0 = copied(dw, width, 0);
            k->rmsnorm(c, y, ld, rms, x, ld, w, t, heads, width, 1e-5f);
            ref->rmsnorm(&contexts[0], y0, ld, rms0, x, ld, w, t, heads, width, 1e-5f);
            assert_bits(where, y, y0, n);
            assert_bits(where, rms, rms0, t * heads);
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                k->rmsnorm_grad(c, y, ld, dw, dy, ld, x, ld, w, rms, t, heads, width, accumulate);
                ref->rmsnorm_grad(&contexts[0], y0, ld, dw0, dy, ld, x, ld, w, rms0, t, heads, width, accumulate);
                assert_bits(where, y, y0, n);
                assert_bits(where, dw, dw0, width);
            }
            k->rmsnorm(c, x, ld, NULL, x, ld, w, t, heads, width, 1e-5f); /* in place, no rms */
            buffers_end();
        }
}

static void rope(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const int64_t dims[] = {2, 8, 30, 32, 34, 64, 128};
    for (int i = 0; i < 7; i++) {
        const int64_t dim = dims[i], t = 1 + 9 * i, heads = 3, ld = heads * dim + 5;
        float *x = randoms(t * ld, 1, 1), *x0 = copied(x, t * ld, 0), *table = randoms(50 * dim, 0, 1);
        int32_t pos[64];
        for (int64_t j = 0; j < t; j++) pos[j] = (int32_t)(j * 7 % 50);
        for (int inverse = 0; inverse < 2; inverse++) {
            k->rope(c, x, ld, table, pos, t, heads, dim, inverse);
            ref->rope(&contexts[0], x0, ld, table, pos, t, heads, dim, inverse);
            assert_bits(where, x, x0, t * ld);
        }
        buffers_end();
    }
}

static void swiglu(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < N_WIDTHS; i++)
        for (int64_t t = 0; t < 40; t = t * 3 + 1) {
            const int64_t f = WIDTHS[i];
            float *gu = randoms(t * 2 * f, 1, 20), *act = floats(t * f, 3), *act0 = floats(t * f, 0), *d = randoms(t * f, 0, 1),
                  *dgu = floats(t * 2 * f, 1), *dgu0 = floats(t * 2 * f, 0);
            if (t) gu[0] = -0.0f, gu[t * 2 * f - 1] = 300;
            if (t > 1) gu[2 * f] = -300;
            k->swiglu(c, act, gu, t, f);
            ref->swiglu(&contexts[0], act0, gu, t, f);
            assert_bits(where, act, act0, t * f);
            k->swiglu_grad(c, dgu, d, gu, t, f);
            ref->swiglu_grad(&contexts[0], dgu0, d, gu, t, f);
            assert_bits(where, dgu, dgu0, t * 2 * f);
            buffers_end();
        }
}

static void head(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const int64_t sizes[] = {1, 5, 16, 17, 63, 64, 65, 1023, 1024, 1025, 3000};
    for (int i = 0; i < 11; i++)
        for (int64_t r = 0; r < 20; r = r * 4 + 1) {
            const int64_t v = sizes[i], ld = v + i % 3;
            const float temperature = i % 2 ? 0.7f : 1.0f;
            float *z = randoms(r * ld, 1, 15), *q = randoms(r * ld, 0, 15), *lp = floats(r, 1), *h = floats(r, 2),
                  *lse = floats(2 * r, 0), *kl = floats(r, 1);
            float *lp0 = floats(r, 0), *h0 = floats(r, 0), *lse0 = floats(2 * r, 0), *kl0 = floats(r, 0), *rl = floats(2 * r, 0),
                  *z0;
            int32_t target[64];
            struct head_grad_row coef[64];
            for (int64_t j = 0; j < r; j++)
                target[j] = (int32_t)(j * 13 % v), coef[j] = (struct head_grad_row){0.5f - (float)j, 0.01f, 0.3f};
            if (r && v > 4) z[2] = -INFINITY, z[3] = -500;
            k->head_stats(c, lp, h, lse, z, ld, target, temperature, r, v);
            ref->head_stats(&contexts[0], lp0, h0, lse0, z, ld, target, temperature, r, v);
            assert_bits(where, lp, lp0, r);
            assert_bits(where, h, h0, r);
            assert_bits(where, lse, lse0, 2 * r);
            k->head_stats(c, lp, NULL, rl, q, ld, target, temperature, r, v);
            k->head_kl(c, kl, z, lse, q, rl, ld, temperature, r, v);
            ref->head_kl(&contexts[0], kl0, z, lse, q, rl, ld, temperature, r, v);
            assert_bits(where, kl, kl0, r);
            z0 = copied(z, r * ld, 0);
            k->head_grad(c, z, ld, target, lse, h, i % 2 ? q : NULL, i % 2 ? rl : NULL, i % 2 ? kl : NULL, coef, temperature, r, v);
            ref->head_grad(&contexts[0], z0, ld, target, lse, h, i % 2 ? q : NULL, i % 2 ? rl : NULL, i % 2 ? kl : NULL, coef,
                           temperature, r, v);
            assert_bits(where, z, z0, r * ld);
            buffers_end();
        }
}

static void rows(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < N_WIDTHS; i++)
        for (int64_t t = 0; t < 400; t = t * 7 + 1) {
            const int64_t width = WIDTHS[i];
            float *table = randoms(20 * width, 1, 1), *table0 = copied(table, 20 * width, 0), *x = floats(t * width, 3),
                  *x0 = floats(t * width, 0);
            int32_t ids[400];
            int64_t at[400];
            for (int64_t j = 0; j < t; j++) at[j] = j * j % 20, ids[j] = (int32_t)at[j];
            k->embed(c, x, table, ids, t, width);
            ref->embed(&contexts[0], x0, table, ids, t, width);
            assert_bits(where, x, x0, t * width);
            k->gather_rows(c, x, table, at, t, width);
            assert_bits(where, x, x0, t * width);
            k->embed_grad(c, table, x, ids, t, width);
            ref->embed_grad(&contexts[0], table0, x, ids, t, width);
            k->scatter_add_rows(c, table, x, at, t, width);
            ref->scatter_add_rows(&contexts[0], table0, x, at, t, width);
            assert_bits(where, table, table0, 20 * width);
            k->add(c, x, x0, t * width);
            ref->add(&contexts[0], x0, x0, t * width);
            assert_bits(where, x, x0, t * width);
            buffers_end();
        }
}

static void optimizer(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const int64_t sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 4095, 4096, 4097, 50003};
    for (int i = 0; i < 12; i++) {
        const int64_t n = sizes[i];
        float *p = randoms(n, 1, 1), *g = randoms(n, 2, 1), *m = randoms(n, 3, 1), *v = floats(n, 1);
        for (int64_t j = 0; j < n; j++) v[j] = g[j] * g[j];
        float *p0 = copied(p, n, 0), *m0 = copied(m, n, 0), *v0 = copied(v, n, 0);
        const double sum = k->sum_squares(c, g, n), sum0 = ref->sum_squares(&contexts[0], g, n);
        assert_memory_equal(&sum, &sum0, sizeof sum);
        k->adamw(c, p, g, m, v, n, 0.3f, 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.271, 0.142625);
        ref->adamw(&contexts[0], p0, g, m0, v0, n, 0.3f, 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.271, 0.142625);
        assert_bits(where, p, p0, n);
        assert_bits(where, m, m0, n);
        assert_bits(where, v, v0, n);
        buffers_end();
    }
}

#define TEST(NAME)                                                                                                                 \
    static void test_##NAME(void **state)                                                                                          \
    {                                                                                                                              \
        (void)state;                                                                                                               \
        each_backend(NAME);                                                                                                        \
    }
TEST(norm)
TEST(rope)
TEST(swiglu)
TEST(head)
TEST(rows)
TEST(optimizer)

/* AdamW against the textbook in double. */
static void test_adamw_is_right(void **state)
{
    (void)state;
    float p = 0.5f, g = 2, m = 0.1f, v = 0.3f;
    const double d = 2 * 0.25, m1 = 0.9 * 0.1f + 0.1 * d, v1 = 0.99 * 0.3f + 0.01 * d * d;
    ref->adamw(&contexts[0], &p, &g, &m, &v, 1, 0.25f, 0.01f, 0.9f, 0.99f, 1e-8f, 0.1f, 1 - pow(0.9, 3), 1 - pow(0.99, 3));
    const double expected = 0.5 * (1 - 0.01 * 0.1) - 0.01 * (m1 / (1 - pow(0.9, 3))) / (sqrt(v1 / (1 - pow(0.99, 3))) + 1e-8);
    assert_true(fabs((double)m - m1) < 1e-7 && fabs((double)v - v1) < 1e-7 && fabs((double)p - expected) < 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_norm),          cmocka_unit_test(test_rope),
                                       cmocka_unit_test(test_swiglu),        cmocka_unit_test(test_head),
                                       cmocka_unit_test(test_rows),          cmocka_unit_test(test_optimizer),
                                       cmocka_unit_test(test_adamw_is_right)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
