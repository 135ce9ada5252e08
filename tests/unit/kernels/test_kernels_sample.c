/* Sampling: correct distribution and truncation in ref, the same tokens in every backend and
 * batch. */
#include "kernel_check.h"

static struct sample_row row(uint64_t position, float temperature, int32_t top_k, float top_p, float min_p)
{
    return (struct sample_row){{11, 22}, position, temperature, top_p, min_p, top_k};
}

/* Draw n tokens from one row of logits and count them in counts[v]. Statistics must match a
 * computation in double, for every truncation. */
static void tally(int64_t *counts, const float *z, int64_t v, int64_t n, struct sample_row like)
{
    double sum = 0, h = 0, scale = like.temperature > 0 ? (double)like.temperature : 1;
    memset(counts, 0, (size_t)v * sizeof *counts);
    for (int64_t i = 0; i < v; i++) sum += exp((double)z[i] / scale);
    for (int64_t i = 0; i < v; i++) h -= exp((double)z[i] / scale) / sum * ((double)z[i] / scale - log(sum));
    for (int64_t i = 0; i < n; i++) {
        int32_t token;
        float logprob, entropy;
        like.position = (uint64_t)i;
        KERNEL(ref, &contexts[0], sample, .token = &token, .logprob = &logprob, .entropy = &entropy, .logits = z, .ld = v,
               .rows = &like, .r = 1, .v = v);
        assert_in_range(token, 0, v - 1);
        assert_true(fabs((double)logprob - ((double)z[token] / scale - log(sum))) < 1e-5 && fabs((double)entropy - h) < 1e-5);
        counts[token]++;
    }
}

/* Chi-square of counts against the softmax renormalised over kept ids; other ids must not occur. */
static void assert_drawn(const int64_t *counts, const float *z, const int *kept, int64_t v, int64_t n, double temperature)
{
    double sum = 0, chi = 0;
    int df = -1;
    for (int64_t i = 0; i < v; i++) sum += kept[i] ? exp((double)z[i] / temperature) : 0;
    for (int64_t i = 0; i < v; i++) {
        if (!kept[i]) {
            assert_int_equal(counts[i], 0);
            continue;
        }
        const double expected = (double)n * exp((double)z[i] / temperature) / sum;
        chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
        df++;
    }
    /* Wilson and Hilferty's approximation: P(chi2 > bound) is about 1e-5. The draws are fixed, so
     * the result is not random */
    const double a = 2.0 / (9 * (df ? df : 1)), bound = df ? df * pow(1 - a + 4.265 * sqrt(a), 3) : 1e-9;
    if (chi > bound) fail_msg("chi-square %.1f of %d degrees of freedom, allowed %.1f", chi, df, bound);
}

static void test_distribution(void **state)
{
    (void)state;
    enum { V = 40, N = 20000 };
    float z[V];
    int64_t counts[V];
    int kept[V];
    for (int i = 0; i < V; i++) z[i] = (float)(i * 7 % V) * 0.1f, kept[i] = 1;
    tally(counts, z, V, N, row(0, 1, 0, 1, 0));
    assert_drawn(counts, z, kept, V, N, 1);
    tally(counts, z, V, N, row(0, 0.5f, 0, 1, 0));
    assert_drawn(counts, z, kept, V, N, 0.5);
    for (int i = 0; i < V; i++) kept[i] = i * 7 % V >= V - 5; /* the five largest */
    tally(counts, z, V, N, row(0, 1, 5, 1, 0));
    assert_drawn(counts, z, kept, V, N, 1);
    for (int i = 0; i < V; i++) kept[i] = exp((double)z[i] - 3.9) >= 0.5; /* min-p */
    tally(counts, z, V, N, row(0, 1, 0, 1, 0.5f));
    assert_drawn(counts, z, kept, V, N, 1);
    double all = 0, mass = 0; /* top-p 0.6: from the largest down until 0.6 is reached */
    for (int i = 0; i < V; i++) all += exp(0.1 * i);
    for (int rank = V - 1; rank >= 0; rank--) {
        for (int i = 0; i < V; i++)
            if (i * 7 % V == rank) kept[i] = mass < 0.6 * all;
        mass += exp(0.1 * rank);
    }
    tally(counts, z, V, N, row(0, 1, 0, 0.6f, 0));
    assert_drawn(counts, z, kept, V, N, 1);
}

static void test_edges(void **state)
{
    (void)state;
    enum { V = 6 };
    const float ties[V] = {1, 2, 2, 2, 0, 2};
    int64_t counts[V];
    tally(counts, ties, V, 50, row(0, 0, 0, 1, 0)); /* greedy: ties go to the lowest id */
    assert_int_equal(counts[1], 50);
    /* top-2 of four equal ones: the lowest two ids */
    tally(counts, ties, V, 2000, row(0, 1, 2, 1, 0));
    assert_true(counts[1] > 800 && counts[2] > 800 && counts[1] + counts[2] == 2000);
    tally(counts, ties, V, 200, row(0, 1, 0, 1e-6f, 0)); /* a tiny top-p keeps one */
    assert_int_equal(counts[1], 200);
    /* top-p applies after top-k: half of three equal ones is two */
    tally(counts, ties, V, 2000, row(0, 1, 3, 0.5f, 0));
    assert_true(counts[1] > 800 && counts[2] > 800 && counts[1] + counts[2] == 2000);
    tally(counts, ties, V, 2000, row(0, 1, 0, 1, 1)); /* min-p 1: all that equal the largest */
    assert_true(counts[1] > 400 && counts[2] > 400 && counts[3] > 400 && counts[5] > 400 && counts[0] + counts[4] == 0);
    const float broken[3] = {NAN, NAN, NAN};
    struct sample_row one = row(0, 1, 2, 0.5f, 0.1f);
    int32_t token = -1;
    float logprob;
    KERNEL(ref, &contexts[0], sample, .token = &token, .logprob = &logprob, .logits = broken, .ld = 3, .rows = &one, .r = 1,
           .v = 3);
    assert_true(token >= 0 && token < 3 && isnan(logprob));
}

enum { ROWS = 24, MOST_V = 5000 };

static void same(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 1000, 1023, 1024, 1025, 2048, 5000};
    for (int i = 0; i < 11; i++) {
        const int64_t v = sizes[i], ld = v + 3;
        float *z = randoms(ROWS * ld, 1, i % 2 ? 3 : 12), *lp = floats(ROWS, 1), *h = floats(ROWS, 1), *lp0 = floats(ROWS, 0),
              *h0 = floats(ROWS, 0);
        struct sample_row rows[ROWS];
        int32_t token[ROWS], token0[ROWS], alone;
        float alone_lp;
        for (int64_t j = 0; j < ROWS * ld; j += 5) z[j] = floorf(z[j]); /* ties */
        if (v > 100) z[1] = NAN, z[ld + 2] = -INFINITY;
        for (int j = 0; j < ROWS; j++)
            rows[j] = row((uint64_t)(100 * i + j), j % 5 ? 0.5f + 0.1f * (float)j : 0, j % 3 == 1 ? 1 + j * 7 : 0,
                          j % 4 == 2 ? 0.03f * (float)j : 1, j % 7 == 3 ? 0.05f : 0);
        KERNEL(k, c, sample, .token = token, .logprob = lp, .entropy = h, .logits = z, .ld = ld, .rows = rows, .r = ROWS, .v = v);
        KERNEL(ref, &contexts[0], sample, .token = token0, .logprob = lp0, .entropy = h0, .logits = z, .ld = ld, .rows = rows,
               .r = ROWS, .v = v);
        assert_memory_equal(token, token0, sizeof token);
        for (int j = v > 100; j < ROWS; j++) { /* NaN has many bit patterns, so only row 0 then */
            assert_bits(where, lp + j, lp0 + j, 1);
            assert_bits(where, h + j, h0 + j, 1);
            KERNEL(k, c, sample, .token = &alone, .logprob = &alone_lp, .logits = z + j * ld, .ld = ld, .rows = rows + j, .r = 1,
                   .v = v);
            assert_int_equal(alone, token[j]);
            assert_bits(where, &alone_lp, &lp[j], 1);
        }
        buffers_end();
    }
}

static void test_same(void **state)
{
    (void)state;
    each_backend(same);
}

/* The logprob recorded by sampling equals the one computed by the update. */
static void agrees(const struct kernels *k, const struct kctx *c, const char *where)
{
    enum { R = 7, V = 777 };
    float *z = randoms(R * V, 0, 8), *lp = floats(R, 0), *h = floats(R, 0), *lp1 = floats(R, 0), *h1 = floats(R, 0),
          *lse = floats(2 * R, 0);
    struct sample_row rows[R];
    int32_t token[R];
    for (int j = 0; j < R; j++) rows[j] = row((uint64_t)j, 0.8f, 0, j % 2 ? 0.9f : 1, 0);
    KERNEL(k, c, sample, .token = token, .logprob = lp, .entropy = h, .logits = z, .ld = V, .rows = rows, .r = R, .v = V);
    KERNEL(k, c, head_stats, .logprob = lp1, .entropy = h1, .lse = lse, .logits = z, .target = token, .temperature = 0.8f, .r = R,
           .v = V);
    assert_bits(where, lp1, lp, R);
    assert_bits(where, h1, h, R);
}

static void test_agrees(void **state)
{
    (void)state;
    each_backend(agrees);
}

/* A lack of memory for an operation's scratch is the context's fault and does not end the
 * process. */
static void test_no_memory(void **state)
{
    (void)state;
    const struct kernels *k;
    struct err e;
    struct kernel_fault fault = {.stage = "a test", .layer = 2};
    struct kctx c = {.scratch = &arenas[0], .fault = &fault};
    struct sample_row one = row(0, 1, 0, 1, 0);
    const float z[1] = {0};
    int32_t token = -7;
    float logprob;
    if (kernels_cpu("avx2", &k, &e)) SKIP("%s", e.message);
    KERNEL(k, &c, sample, .token = &token, .logprob = &logprob, .logits = z, .ld = 0, .rows = &one, .r = 1, .v = INT64_C(1) << 50);
    assert_int_equal(token, -7);
    assert_int_equal(kernels_finish(k, &c, &e), TARE_E_NOMEM);
    assert_non_null(strstr(e.message, "a test, layer 2: kernel scratch: no memory for"));
    kernels_at(&c, "later", 3);
    assert_string_equal(fault.stage, "a test");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distribution), cmocka_unit_test(test_edges),
                                       cmocka_unit_test(test_same), cmocka_unit_test(test_agrees),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
