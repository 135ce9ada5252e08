/* Tests the nearest centroid against its definition, and k-means: fixed points, and results that do
 * not depend on bounds or threads. */
#include "check.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/rng.h"
#include "cluster/kmeans.h"
#include "cluster/nearest.h"
#include "model/safetensors.h"

#include <math.h>
#include <string.h>

static float *random_rows(int64_t n, int64_t d, uint64_t seed, float scale, float offset)
{
    float *x = malloc((size_t)(n * d) * sizeof *x);
    for (int64_t i = 0; i < n * d; i++) x[i] = offset + scale * (float)rng_normal(rng_key(seed, RNG_INIT), (uint64_t)i);
    return x;
}

static double plain_distance(const float *x, const float *c, int64_t d)
{
    double lane[8] = {0};
    for (int64_t i = 0; i < d; i++) lane[i % 8] += ((double)x[i] - (double)c[i]) * ((double)x[i] - (double)c[i]);
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Compares cluster, distance and both bounds of every row with a loop over all centroids. */
static void check_nearest(const float *x, int64_t n, const float *c, int64_t k, int64_t d)
{
    struct err e = {0};
    struct nearest near = {0};
    assert_ok(nearest_pack(&near, c, k, d, &e), &e);
    for (int64_t first = 0; first < n; first += NEAREST_BLOCK) {
        int32_t cluster[NEAREST_BLOCK];
        double distance[NEAREST_BLOCK], upper[NEAREST_BLOCK], second[NEAREST_BLOCK];
        const int64_t count = n - first < NEAREST_BLOCK ? n - first : NEAREST_BLOCK;
        nearest_block(&near, x + first * d, NULL, NULL, count, (struct nearest_out){cluster, distance, upper, second});
        for (int64_t i = 0; i < count; i++) {
            double best = INFINITY, next = INFINITY;
            int64_t at = -1;
            for (int64_t j = 0; j < k; j++) {
                const double v = plain_distance(x + (first + i) * d, c + j * d, d);
                if (v < best) {
                    next = best;
                    best = v;
                    at = j;
                } else if (v < next) {
                    next = v;
                }
            }
            assert_int_equal(cluster[i], at);
            assert_true(distance[i] == best);
            assert_true(upper[i] >= sqrt(best) * (1 - 1e-12));
            assert_true(second[i] <= sqrt(next) * (1 + 1e-12));
        }
    }
    nearest_free(&near);
}

static void nearest_is_the_definition(void **state)
{
    (void)state;
    static const char *const masks[] = {"ref", "avx2", NULL};
    static const int64_t shapes[][3] = {{1, 1, 1}, {7, 5, 3}, {97, 16, 8}, {200, 17, 33}, {193, 100, 384}, {20, 1, 64}};
    for (int m = 0; m < 3; m++) {
        if (masks[m])
            setenv("TARE_CPU", masks[m], 1);
        else
            unsetenv("TARE_CPU");
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const int64_t n = shapes[s][0], k = shapes[s][1], d = shapes[s][2];
            float *x = random_rows(n, d, s, 1, 0), *c = random_rows(k, d, s + 100, 1, 0);
            check_nearest(x, n, c, k, d);
            free(x), free(c);
        }
    }
}

/* Offsets that hide the differences in fp32, magnitudes that overflow it, equal and nearly equal
 * centroids. */
static void nearest_of_hard_rows(void **state)
{
    (void)state;
    const int64_t n = 120, k = 40, d = 24;
    float *x = random_rows(n, d, 1, 1, 1000), *c = random_rows(k, d, 2, 1, 1000);
    check_nearest(x, n, c, k, d);
    /* ties in the same lane */
    for (int64_t j = 16; j < 32; j++) memcpy(c + j * d, c + (j - 16) * d, (size_t)d * sizeof *c);
    /* and in different lanes */
    memcpy(c + 39 * d, c, (size_t)d * sizeof *c);
    check_nearest(x, n, c, k, d);
    /* rows on centroids */
    for (int64_t i = 0; i < n; i++) memcpy(x + i * d, c + i % k * d, (size_t)d * sizeof *c);
    check_nearest(x, n, c, k, d);
    free(x), free(c);
    x = random_rows(n, d, 3, 1e19f, 0), c = random_rows(k, d, 4, 1e19f, 0);
    check_nearest(x, n, c, k, d);
    free(x), free(c);
}

static struct kmeans_result train(const float *x, int64_t n, int64_t d, struct kmeans_options o, int threads)
{
    struct err e = {0};
    struct pool *pool = NULL;
    struct kmeans_result r;
    assert_ok(pool_new(threads, &pool, &e), &e);
    o.pool = pool;
    assert_ok(kmeans_train((struct kmeans_rows){x, n, d}, &o, &r, &e), &e);
    pool_free(pool);
    return r;
}

static void assert_same(const struct kmeans_result *a, const struct kmeans_result *b, int64_t n, int64_t d)
{
    assert_true(a->inertia == b->inertia);
    assert_int_equal(a->iterations, b->iterations);
    assert_memory_equal(a->centroids, b->centroids, (size_t)(a->k * d) * sizeof *a->centroids);
    assert_memory_equal(a->cluster, b->cluster, (size_t)n * sizeof *a->cluster);
    assert_memory_equal(a->sizes, b->sizes, (size_t)a->k * sizeof *a->sizes);
}

static void bounds_and_threads_change_nothing(void **state)
{
    (void)state;
    const int64_t n = 3001, d = 130;
    float *x = random_rows(n, d, 5, 1, 0);
    for (int64_t i = 0; i < n; i++) x[i * d] += (float)(i % 7) * 3; /* some clusters */
    for (int64_t k = 7; k <= 70; k *= 10) {
        const struct kmeans_options o = {.k = k, .restarts = 2, .iterations = 60, .swaps = 3, .seed = 9};
        struct kmeans_options plain = o;
        plain.no_bounds = true;
        struct kmeans_result a = train(x, n, d, o, 1), b = train(x, n, d, plain, 1), c = train(x, n, d, o, 3);
        assert_same(&a, &b, n, d);
        assert_same(&a, &c, n, d);
        assert_true(a.rows_computed < b.rows_computed); /* the bounds skip rows */
        assert_int_equal(b.rows_skipped, 0);
        kmeans_result_free(&a), kmeans_result_free(&b), kmeans_result_free(&c);
    }
    free(x);
}

/* Every row is in its nearest cluster, every centroid is the mean of its rows, and no cluster is
 * empty. Small integers cause many ties and empty clusters. */
static void small_sets_end_in_fixed_points(void **state)
{
    (void)state;
    const int64_t n = 24, d = 2, k = 7;
    for (uint64_t seed = 0; seed < 400; seed++) {
        float x[24 * 2];
        for (int i = 0; i < 48; i++) x[i] = (float)rng_below(rng_key(seed, RNG_DATA), (uint64_t)i, 6);
        struct kmeans_result r =
            train(x, n, d, (struct kmeans_options){.k = k, .restarts = 1, .iterations = 100, .swaps = 1, .seed = seed}, 1);
        assert_true(r.converged);
        int64_t counted[7] = {0};
        double sum[7][2] = {{0}}, inertia = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t best = 0;
            for (int64_t j = 1; j < k; j++)
                if (plain_distance(x + i * d, r.centroids + j * d, d) < plain_distance(x + i * d, r.centroids + best * d, d))
                    best = j;
            assert_int_equal(r.cluster[i], best);
            inertia += plain_distance(x + i * d, r.centroids + best * d, d);
            counted[best]++;
            for (int c = 0; c < 2; c++) sum[best][c] += (double)x[i * d + c];
        }
        assert_true(fabs(inertia - r.inertia) < 1e-9 * (1 + inertia));
        for (int64_t j = 0; j < k; j++) {
            assert_int_equal(counted[j], r.sizes[j]);
            assert_true(counted[j] > 0);
            for (int c = 0; c < 2; c++) assert_true(r.centroids[j * d + c] == (float)(sum[j][c] / (double)counted[j]));
        }
        kmeans_result_free(&r);
    }
}

static void simple_cases(void **state)
{
    (void)state;
    const float x[] = {0, 0, 2, 0, 10, 10, 12, 10, 11, 13};
    struct kmeans_result r = train(x, 5, 2, (struct kmeans_options){.k = 1, .restarts = 1, .iterations = 10}, 1);
    assert_true(r.centroids[0] == 7 && fabs((double)r.centroids[1] - 6.6) < 1e-6);
    kmeans_result_free(&r);
    r = train(x, 5, 2, (struct kmeans_options){.k = 5, .restarts = 3, .iterations = 10, .swaps = 4}, 1);
    assert_true(r.inertia == 0);
    kmeans_result_free(&r);
    r = train(x, 5, 2, (struct kmeans_options){.k = 2, .restarts = 2, .iterations = 10}, 2);
    assert_true(r.cluster[0] == r.cluster[1] && r.cluster[2] == r.cluster[3] && r.cluster[3] == r.cluster[4] &&
                r.cluster[0] != r.cluster[2]);
    assert_true(fabs(r.inertia - (2 + 2 + 6)) < 1e-5);
    kmeans_result_free(&r);
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct kmeans_result r;
    float x[] = {1, 1, 1, 2, 2, 2};
    struct kmeans_options o = {.k = 4, .restarts = 1, .iterations = 10};
    assert_int_equal(kmeans_train((struct kmeans_rows){x, 3, 2}, &o, &r, &e), TARE_E_RANGE);
    assert_non_null(strstr(e.message, "clusters = 4: must be at most the number of rows, 3"));
    o.k = 3;
    assert_int_equal(kmeans_train((struct kmeans_rows){x, 6, 1}, &o, &r, &e), TARE_E_RANGE);
    assert_non_null(strstr(e.message, "only 2 of 6 rows are distinct"));
    o.k = 2;
    x[3] = NAN;
    assert_int_equal(kmeans_train((struct kmeans_rows){x, 3, 2}, &o, &r, &e), TARE_E_NOT_FINITE);
    assert_non_null(strstr(e.message, "row 1"));
    o.iterations = 0;
    assert_int_equal(kmeans_train((struct kmeans_rows){x, 3, 2}, &o, &r, &e), TARE_E_RANGE);
}

/* Compares with scikit-learn's best of ten single runs on the same rows. */
static void reaches_the_reference_inertia(void **state)
{
    (void)state;
    struct err e = {0};
    json_t *reference;
    struct safetensors file;
    char kmeans[4096];
    snprintf(kmeans, sizeof kmeans, "%s", shared_or_skip("data/encoder/kmeans.json"));
    /* with few points the runs differ more */
    const double within = shared_is_whole(kmeans) ? 1.003 : 1.01;
    assert_ok(json_read_file(kmeans, &reference, &e), &e);
    assert_ok(safetensors_open(shared_or_skip("data/encoder/gsm8k_train_emb_f16.safetensors"), &file, &e), &e);
    const struct st_tensor *t = safetensors_find(&file, "embeddings");
    assert_non_null(t);
    const int64_t n = t->shape[0], d = t->shape[1];
    float *x = malloc((size_t)(n * d) * sizeof *x);
    assert_ok(safetensors_read_f32(&file, t, x, &e), &e);
    size_t i;
    json_t *one;
    json_array_foreach(reference, i, one)
    {
        const int64_t k = json_int_or(one, "K", 0);
        const double best = json_double_or(one, "best_inertia", 0);
        struct kmeans_result r =
            train(x, n, d, (struct kmeans_options){.k = k, .restarts = 10, .iterations = 300, .swaps = 10, .seed = 1}, 2);
        printf("K %lld: inertia %.4f, %.5f of the reference\n", (long long)k, r.inertia, r.inertia / best);
        assert_true(r.inertia <= within * best);
        assert_true(r.inertia > 0.9 * best);
        kmeans_result_free(&r);
    }
    free(x);
    safetensors_close(&file);
    json_decref(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_is_the_definition),
        cmocka_unit_test(nearest_of_hard_rows),
        cmocka_unit_test(bounds_and_threads_change_nothing),
        cmocka_unit_test(small_sets_end_in_fixed_points),
        cmocka_unit_test(simple_cases),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(reaches_the_reference_inertia),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
