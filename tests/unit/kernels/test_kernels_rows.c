/* Norm, rope, gated MLP, head, embedding, optimizer: every backend is bit-identical to ref. */
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
            KERNEL(k, c, rmsnorm, .y = y, .ld = ld, .rms = rms, .x = x, .w = w, .t = t, .heads = heads, .width = width,
                   .eps = 1e-5f);
            KERNEL(ref, &contexts[0], rmsnorm, .y = y0, .ld = ld, .rms = rms0, .x = x, .w = w, .t = t, .heads = heads,
                   .width = width, .eps = 1e-5f);
            assert_bits(where, y, y0, n);
            assert_bits(where, rms, rms0, t * heads);
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                KERNEL(k, c, rmsnorm_grad, .dx = y, .ld = ld, .dw = dw, .dy = dy, .x = x, .w = w, .rms = rms, .t = t,
                       .heads = heads, .width = width, .accumulate = accumulate);
                KERNEL(ref, &contexts[0], rmsnorm_grad, .dx = y0, .ld = ld, .dw = dw0, .dy = dy, .x = x, .w = w, .rms = rms0,
                       .t = t, .heads = heads, .width = width, .accumulate = accumulate);
                assert_bits(where, y, y0, n);
                assert_bits(where, dw, dw0, width);
            }
            /* Frozen weights: no dw. */
            KERNEL(k, c, rmsnorm_grad, .dx = y, .ld = ld, .dy = dy, .x = x, .w = w, .rms = rms, .t = t, .heads = heads,
                   .width = width);
            KERNEL(ref, &contexts[0], rmsnorm_grad, .dx = y0, .ld = ld, .dy = dy, .x = x, .w = w, .rms = rms0, .t = t,
                   .heads = heads, .width = width);
            assert_bits(where, y, y0, n);
            /* In place, no rms. */
            KERNEL(k, c, rmsnorm, .y = x, .ld = ld, .x = x, .w = w, .t = t, .heads = heads, .width = width, .eps = 1e-5f);
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
        for (int turn = 0; turn < 4; turn++) {
            const int inverse = turn % 2;
            const int64_t turned = turn / 2 ? (dim / 2 + 1) / 2 * 2 : 0;
            KERNEL(k, c, rope, .x = x, .ld = ld, .table = table, .pos = pos, .t = t, .n_heads = heads, .head_dim = dim,
                   .inverse = inverse, .rotary_dim = turned);
            KERNEL(ref, &contexts[0], rope, .x = x0, .ld = ld, .table = table, .pos = pos, .t = t, .n_heads = heads,
                   .head_dim = dim, .inverse = inverse, .rotary_dim = turned);
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
            for (int gelu = 0; gelu < 2; gelu++) {
                KERNEL(k, c, swiglu, .act = act, .gu = gu, .t = t, .f = f, .gelu = gelu);
                KERNEL(ref, &contexts[0], swiglu, .act = act0, .gu = gu, .t = t, .f = f, .gelu = gelu);
                assert_bits(where, act, act0, t * f);
                KERNEL(k, c, swiglu_grad, .dgu = dgu, .dact = d, .gu = gu, .t = t, .f = f, .gelu = gelu);
                KERNEL(ref, &contexts[0], swiglu_grad, .dgu = dgu0, .dact = d, .gu = gu, .t = t, .f = f, .gelu = gelu);
                assert_bits(where, dgu, dgu0, t * 2 * f);
            }
            buffers_end();
        }
}

static void head(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const int64_t sizes[] = {1, 5, 16, 17, 63, 64, 65, 1023, 1024, 1025, 3000};
    for (int i = 0; i < 11; i++)
        for (int64_t r = 0; r < 20; r = r * 4 + 1) {
            const int64_t v = sizes[i];
            const float temperature = i % 2 ? 0.7f : 1.0f;
            float *z = randoms(r * v, 1, 15), *q = randoms(r * v, 0, 15), *lp = floats(r, 1), *h = floats(r, 2),
                  *lse = floats(2 * r, 0), *kl = floats(r, 1);
            float *lp0 = floats(r, 0), *h0 = floats(r, 0), *lse0 = floats(2 * r, 0), *kl0 = floats(r, 0), *rl = floats(2 * r, 0),
                  *z0;
            int32_t target[64];
            struct head_grad_row coef[64];
            for (int64_t j = 0; j < r; j++)
                target[j] = (int32_t)(j * 13 % v), coef[j] = (struct head_grad_row){0.5f - (float)j, 0.01f, 0.3f};
            if (r && v > 4) z[2] = -INFINITY, z[3] = -500;
            KERNEL(k, c, head_stats, .logprob = lp, .entropy = h, .lse = lse, .logits = z, .target = target,
                   .temperature = temperature, .r = r, .v = v);
            KERNEL(ref, &contexts[0], head_stats, .logprob = lp0, .entropy = h0, .lse = lse0, .logits = z, .target = target,
                   .temperature = temperature, .r = r, .v = v);
            assert_bits(where, lp, lp0, r);
            assert_bits(where, h, h0, r);
            assert_bits(where, lse, lse0, 2 * r);
            KERNEL(k, c, head_stats, .logprob = lp, .lse = rl, .logits = q, .target = target, .temperature = temperature, .r = r,
                   .v = v);
            KERNEL(k, c, head_kl, .kl = kl, .logits = z, .lse = lse, .ref_logits = q, .ref_lse = rl, .temperature = temperature,
                   .r = r, .v = v);
            KERNEL(ref, &contexts[0], head_kl, .kl = kl0, .logits = z, .lse = lse, .ref_logits = q, .ref_lse = rl,
                   .temperature = temperature, .r = r, .v = v);
            assert_bits(where, kl, kl0, r);
            z0 = copied(z, r * v, 0);
            KERNEL(k, c, head_grad, .logits = z, .target = target, .lse = lse, .entropy = h, .ref_logits = i % 2 ? q : NULL,
                   .ref_lse = i % 2 ? rl : NULL, .kl = i % 2 ? kl : NULL, .coef = coef, .temperature = temperature, .r = r, .v = v);
            KERNEL(ref, &contexts[0], head_grad, .logits = z0, .target = target, .lse = lse, .entropy = h,
                   .ref_logits = i % 2 ? q : NULL, .ref_lse = i % 2 ? rl : NULL, .kl = i % 2 ? kl : NULL, .coef = coef,
                   .temperature = temperature, .r = r, .v = v);
            assert_bits(where, z, z0, r * v);
            buffers_end();
        }
}

/* Some columns of wider rows, into columns of others: written, added to, and the other columns
 * unchanged. */
static void columns(const struct kernels *k, const struct kctx *c, const char *where, int64_t t, int64_t n)
{
    const int64_t ldx = n + 3, ldy = 2 * n + 1;
    float *x = randoms(t * ldx, 1, 1), *y = randoms(t * ldy, 1, 1), *y0 = copied(y, t * ldy, 0);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        KERNEL(k, c, add_columns, .y = y + n, .ldy = ldy, .x = x + 2, .ldx = ldx, .t = t, .n = n, .scale = 0.7f,
               .accumulate = accumulate);
        KERNEL(ref, &contexts[0], add_columns, .y = y0 + n, .ldy = ldy, .x = x + 2, .ldx = ldx, .t = t, .n = n, .scale = 0.7f,
               .accumulate = accumulate);
        assert_bits(where, y, y0, t * ldy);
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
            KERNEL(k, c, embed, .x = x, .table = table, .ids = ids, .t = t, .width = width);
            KERNEL(ref, &contexts[0], embed, .x = x0, .table = table, .ids = ids, .t = t, .width = width);
            assert_bits(where, x, x0, t * width);
            KERNEL(k, c, gather_rows, .y = x, .x = table, .rows = at, .n = t, .width = width);
            assert_bits(where, x, x0, t * width);
            KERNEL(k, c, embed_grad, .dtable = table, .dx = x, .ids = ids, .t = t, .width = width);
            KERNEL(ref, &contexts[0], embed_grad, .dtable = table0, .dx = x, .ids = ids, .t = t, .width = width);
            KERNEL(k, c, scatter_add_rows, .y = table, .x = x, .rows = at, .n = t, .width = width);
            KERNEL(ref, &contexts[0], scatter_add_rows, .y = table0, .x = x, .rows = at, .n = t, .width = width);
            assert_bits(where, table, table0, 20 * width);
            KERNEL(k, c, add, .y = x, .x = x0, .n = t * width);
            KERNEL(ref, &contexts[0], add, .y = x0, .x = x0, .n = t * width);
            assert_bits(where, x, x0, t * width);
            columns(k, c, where, t, width);
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
        const double sum = sum_of_squares(k, c, g, n), sum0 = sum_of_squares(ref, &contexts[0], g, n);
        assert_memory_equal(&sum, &sum0, sizeof sum);
        KERNEL(k, c, adamw, .p = p, .g = g, .m = m, .v = v, .n = n, .grad_scale = 0.3f, .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.95f,
               .eps = 1e-8f, .decay = 0.1f, .correct1 = 0.271, .correct2 = 0.142625);
        KERNEL(ref, &contexts[0], adamw, .p = p0, .g = g, .m = m0, .v = v0, .n = n, .grad_scale = 0.3f, .lr = 1e-3f, .beta1 = 0.9f,
               .beta2 = 0.95f, .eps = 1e-8f, .decay = 0.1f, .correct1 = 0.271, .correct2 = 0.142625);
        assert_bits(where, p, p0, n);
        assert_bits(where, m, m0, n);
        assert_bits(where, v, v0, n);
        buffers_end();
    }
}

/* Digests of slices of an array add up to the digest of the whole; the last word may be
 * incomplete. */
static void digests(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const int64_t sizes[] = {0, 1, 3, 4, 5, 63, 4096, 400003, 1000004};
    (void)where;
    for (int i = 0; i < 9; i++) {
        const int64_t bytes = sizes[i], half = bytes / 12 * 4, first = i * INT64_C(3000000000);
        const char *x = (const char *)randoms(bytes / 4 + 1, 1, 1);
        uint64_t slices = 5, whole = 5;
        KERNEL(k, c, digest, .out = &slices, .data = x, .bytes = half, .first = first);
        KERNEL(k, c, digest, .out = &slices, .data = x + half, .bytes = bytes - half, .first = first + half / 4);
        KERNEL(ref, &contexts[0], digest, .out = &whole, .data = x, .bytes = bytes, .first = first);
        assert_true(slices == whole);
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
TEST(digests)

/* splitmix64 with seed 0 gives these numbers (Vigna's reference code). Every bit of every word
 * matters, and so does a word's index. */
static void test_digest_is_right(void **state)
{
    (void)state;
    uint32_t x[64] = {0};
    uint64_t first = 0, second = 0, zeros = 0;
    KERNEL(ref, &contexts[0], digest, .out = &first, .data = x, .bytes = 4, .first = 1);
    KERNEL(ref, &contexts[0], digest, .out = &second, .data = x, .bytes = 4, .first = 2);
    assert_true(first == UINT64_C(0xe220a8397b1dcdaf) && second == UINT64_C(0x6e789e6aa1b965f4));
    KERNEL(ref, &contexts[0], digest, .out = &zeros, .data = x, .bytes = sizeof x);
    for (int i = 0; i < 64 * 32; i++) {
        uint64_t one = 0;
        x[i / 32] ^= UINT32_C(1) << i % 32;
        KERNEL(ref, &contexts[0], digest, .out = &one, .data = x, .bytes = sizeof x);
        x[i / 32] = 0;
        assert_true(one != zeros);
    }
    uint64_t there = 0, elsewhere = 0;
    x[3] = 7;
    KERNEL(ref, &contexts[0], digest, .out = &there, .data = x, .bytes = sizeof x);
    x[4] = x[3], x[3] = 0;
    KERNEL(ref, &contexts[0], digest, .out = &elsewhere, .data = x, .bytes = sizeof x);
    assert_true(there != elsewhere);
}

/* AdamW against the textbook in double. */
static void test_adamw_is_right(void **state)
{
    (void)state;
    float p = 0.5f, g = 2, m = 0.1f, v = 0.3f;
    const double d = 2 * 0.25, m1 = 0.9 * 0.1f + 0.1 * d, v1 = 0.99 * 0.3f + 0.01 * d * d;
    KERNEL(ref, &contexts[0], adamw, .p = &p, .g = &g, .m = &m, .v = &v, .n = 1, .grad_scale = 0.25f, .lr = 0.01f, .beta1 = 0.9f,
           .beta2 = 0.99f, .eps = 1e-8f, .decay = 0.1f, .correct1 = 1 - pow(0.9, 3), .correct2 = 1 - pow(0.99, 3));
    const double expected = 0.5 * (1 - 0.01 * 0.1) - 0.01 * (m1 / (1 - pow(0.9, 3))) / (sqrt(v1 / (1 - pow(0.99, 3))) + 1e-8);
    assert_true(fabs((double)m - m1) < 1e-7 && fabs((double)v - v1) < 1e-7 && fabs((double)p - expected) < 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm),           cmocka_unit_test(test_rope),    cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_head),           cmocka_unit_test(test_rows),    cmocka_unit_test(test_optimizer),
        cmocka_unit_test(test_adamw_is_right), cmocka_unit_test(test_digests), cmocka_unit_test(test_digest_is_right)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
