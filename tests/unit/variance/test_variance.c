/* Measurements on made-up pools with known results: RLOO is unbiased for every G and GRPO is not,
 * groups as large as the pool give g*, the best constant baseline beats the mean, intervals contain
 * the truth, a seed determines every bit, sketches have their stated error. */
#include "pools.h"

#include "lab/variance/sketch.h"

static const struct made PLAIN = {
    .prompts = 24, .rollouts = 64, .width = 16, .low = 0.05, .high = 0.7, .noise = 0.5, .loud = 1, .seed = 1};

static struct variance_pool finish_pool(struct made x)
{
    struct err e = {0};
    struct variance_pool p = made_pool(x);
    assert_ok(pool_finish(&p, x.seed, &e), &e);
    return p;
}

/* E ghat = 1/P sum p (1 - p) direction: the length of g* in the made-up model. */
static double true_target(struct made x)
{
    double g[64] = {0}, sum = 0;
    for (int64_t m = 0; m < x.prompts; m++) {
        const struct rng_key way = rng_derive(rng_key(7, RNG_DATA), (uint64_t)m);
        const double pass = x.low + (x.high - x.low) * (double)m / (double)(x.prompts - 1);
        for (int64_t d = 0; d < x.width; d++)
            g[d] += pass * (1 - pass) * (d == 0 ? 1 : 0.3 * rng_normal(way, (uint64_t)d)) / (double)x.prompts;
    }
    for (int64_t d = 0; d < x.width; d++) sum += g[d] * g[d];
    return sum;
}

static void rloo__is_unbiased_for_every_group_size(void **state)
{
    (void)state;
    struct variance_pool p = finish_pool(PLAIN);
    const int64_t sizes[] = {2, 3, 4, 8, 16, 31};
    for (int k = 0; k < 6; k++) {
        const struct result rloo = case_figures(&p, "rloo", sizes[k], 8, 200, 1),
                            grpo = case_figures(&p, "grpo", sizes[k], 8, 200, 1);
        printf("G = %d: rloo %g [%g, %g], grpo %g [%g, %g] of |g*|^2 = %g\n", (int)sizes[k], rloo.bias.value, rloo.bias.low,
               rloo.bias.high, grpo.bias.value, grpo.bias.low, grpo.bias.high, rloo.target.value);
        assert_true(rloo.bias.low <= 0 && rloo.bias.high >= 0);
        assert_true(fabs(rloo.bias.value) < 0.02 * rloo.target.value);
        assert_true(rloo.mean_direction.value > 0.99 && rloo.mean_direction.value < 1.01);
        assert_true(grpo.bias.low > 0);
        assert_true(grpo.bias.value > 5 * fabs(rloo.bias.value));
    }
    pool_close(&p);
}

static void rloo__over_the_whole_half_is_the_target(void **state)
{
    (void)state;
    struct variance_pool p = finish_pool(PLAIN);
    const struct result x = case_figures(&p, "rloo", p.smallest, 24, 3, 1);
    assert_true(fabs(x.bias.value) < 1e-12);
    assert_true(fabs(x.mean_direction.value - 1) < 1e-9);
    pool_close(&p);
}

/* With M = 1 and one prompt: all subsets of two of a half, by hand: E ghat and E |ghat|^2 of
 * GRPO. */
static void sums__are_those_of_all_subsets(void **state)
{
    (void)state;
    struct err e = {0};
    struct arena a;
    struct sums s;
    struct config config = {.run.plugins = ""};
    struct variance_pool p = finish_pool(
        (struct made){.prompts = 2, .rollouts = 12, .width = 4, .low = 0.4, .high = 0.6, .noise = 1, .loud = 1, .seed = 5});
    const struct method method = made_method("grpo");
    const struct method_place place = {.config = &config, .where = "made"};
    const struct variance_case c = {
        .pool = &p, .method = &method, .place = &place, .size = 2, .batch = 1, .rounds = 20000, .seed = 3};
    arena_init(&a, "sums");
    assert_ok(measure(&c, &a, &s, &e), &e);
    for (int64_t m = 0; m < 2; m++) {
        double square = 0, pairs = 0;
        for (int h = 0; h < 2; h++) {
            double mean[4] = {0}, own = 0;
            const int64_t begin = p.half_begin[h][m], end = p.half_begin[h][m + 1];
            for (int64_t i = begin; i < end; i++)
                for (int64_t j = i + 1; j < end; j++) {
                    const int64_t x = p.half[h][i], y = p.half[h][j];
                    const double mu = (p.batch.reward[x] + p.batch.reward[y]) / 2, gap = p.batch.reward[x] - mu;
                    const double sigma = fabs(gap) * sqrt(2), weight = gap == 0 ? 0 : gap / (sigma + 1e-8) / 2;
                    double length = 0;
                    for (int64_t d = 0; d < 4; d++) {
                        const double v = weight * ((double)p.vector[x * 4 + d] - (double)p.vector[y * 4 + d]);
                        mean[d] += v;
                        length += v * v;
                    }
                    square += length, own++;
                }
            pairs += own;
            for (int64_t d = 0; d < 4; d++) assert_true(fabs(s.mean[h][m * 4 + d] - mean[d] / own) < 0.03);
        }
        assert_true(fabs(s.square[m] / (square / pairs) - 1) < 0.02);
    }
    arena_free(&a);
    pool_close(&p);
}

static void target__is_what_the_model_has(void **state)
{
    (void)state;
    struct made x = PLAIN;
    x.rollouts = 2000;
    struct variance_pool p = finish_pool(x);
    const struct result r = case_figures(&p, "rloo", 2, 8, 2, 1);
    assert_true(fabs(r.target.value / true_target(x) - 1) < 0.05);
    pool_close(&p);
}

/* Correct rollouts with long score functions: the constant that minimises E |(R - b) s|^2 is above
 * the mean. */
static void best_constant__beats_the_mean(void **state)
{
    (void)state;
    struct made x = PLAIN;
    x.loud = 4, x.low = x.high = 0.2, x.rollouts = 400;
    struct variance_pool p = finish_pool(x);
    const struct result mean = case_figures(&p, "mean", 4, 8, 200, 1), best = case_figures(&p, "best", 4, 8, 200, 1);
    for (int64_t m = 0; m < x.prompts; m++) assert_true(p.best[0][m] > p.baseline[0][m] + 0.2);
    printf("E |ghat|^2: mean %g, best constant %g\n", mean.second.value, best.second.value);
    assert_true(best.second.high < mean.second.low);
    /* by hand: E |(R-b) s|^2 over a half, at the best b and on both sides of it */
    double at[3] = {0};
    for (int k = 0; k < 3; k++)
        for (int64_t i = p.half_begin[0][0]; i < p.half_begin[0][1]; i++) {
            const double gap = p.batch.reward[p.half[0][i]] - (p.best[0][0] + 0.05 * (k - 1));
            at[k] += gap * gap * p.square[p.half[0][i]];
        }
    assert_true(at[1] < at[0] && at[1] < at[2]);
    pool_close(&p);
}

static bool holds_truth(struct figure f, double truth)
{
    return f.low <= truth && truth <= f.high;
}

static bool intervals_meet(struct figure a, struct figure b)
{
    return a.low <= b.high && b.low <= a.high;
}

/* The prompts' own pass rates represent the data, so only the rollouts vary between pools; the
 * interval also covers other prompts. */
static void intervals__hold_the_truth_and_meet(void **state)
{
    (void)state;
    enum { POOLS = 40 };
    struct result r[POOLS];
    double direction = 0, variance = 0;
    int held[2] = {0}, met = 0;
    for (int k = 0; k < POOLS; k++) {
        struct made x = PLAIN;
        x.seed = 100 + (uint64_t)k;
        struct variance_pool p = finish_pool(x);
        r[k] = case_figures(&p, "rloo", 4, 8, 20, x.seed);
        direction += r[k].direction.value / POOLS, variance += r[k].variance.value / POOLS;
        pool_close(&p);
    }
    for (int k = 0; k < POOLS; k++) {
        held[0] += holds_truth(r[k].direction, direction);
        held[1] += holds_truth(r[k].variance, variance);
        met += k && intervals_meet(r[k].direction, r[k - 1].direction) && intervals_meet(r[k].variance, r[k - 1].variance);
    }
    printf("of %d pools %d intervals hold the direction, %d the variance; %d of %d neighbours meet\n", POOLS, held[0], held[1], met,
           POOLS - 1);
    assert_true(held[0] >= 36 && held[1] >= 36 && met >= 38);
}

/* Another order of the rollouts within a prompt deals other halves and gives the same answer. */
static void order__of_rollouts_changes_nothing(void **state)
{
    (void)state;
    struct err e = {0};
    struct variance_pool p = made_pool(PLAIN), q = made_pool(PLAIN);
    for (int64_t m = 0; m < PLAIN.prompts; m++)
        for (int64_t i = 0; i < PLAIN.rollouts; i++) {
            const int64_t from = m * PLAIN.rollouts + i, to = (m + 1) * PLAIN.rollouts - 1 - i;
            q.batch.reward[to] = p.batch.reward[from];
            q.batch.verdict[to] = p.batch.verdict[from];
            q.batch.component_verdict[to] = p.batch.component_verdict[from];
            q.square[to] = p.square[from];
            memcpy(q.vector + to * PLAIN.width, p.vector + from * PLAIN.width, (size_t)PLAIN.width * sizeof(float));
        }
    assert_ok(pool_finish(&p, 1, &e), &e);
    assert_ok(pool_finish(&q, 1, &e), &e);
    for (int64_t m = 0; m < PLAIN.prompts; m++) {
        assert_true(p.pass[m] == q.pass[m]);
        assert_true(fabs((p.baseline[0][m] + p.baseline[1][m]) - (q.baseline[0][m] + q.baseline[1][m])) < 1e-12);
    }
    const struct result x = case_figures(&p, "grpo", 8, 8, 50, 1), y = case_figures(&q, "grpo", 8, 8, 50, 1);
    assert_true(holds_truth(x.direction, y.direction.value) && holds_truth(x.variance, y.variance.value) &&
                holds_truth(x.bias, y.bias.value));
    pool_close(&p), pool_close(&q);
}

static void seed__decides_every_bit(void **state)
{
    (void)state;
    struct variance_pool p = finish_pool(PLAIN), q = finish_pool(PLAIN);
    const struct result x = case_figures(&p, "bv_blend", 4, 8, 10, 1), y = case_figures(&q, "bv_blend", 4, 8, 10, 1),
                        z = case_figures(&p, "bv_blend", 4, 8, 10, 2);
    assert_memory_equal(&x.direction, &y.direction, sizeof x.direction);
    assert_memory_equal(&x.bias, &y.bias, sizeof x.bias);
    assert_memory_equal(&x.variance, &y.variance, sizeof x.variance);
    assert_memory_equal(x.kind, y.kind, sizeof x.kind);
    assert_true(x.direction.value != z.direction.value);
    pool_close(&p), pool_close(&q);
}

static void parts__are_shares_of_the_whole(void **state)
{
    (void)state;
    struct variance_pool p = finish_pool(PLAIN);
    const struct result x = case_figures(&p, "mean", 4, 8, 50, 1);
    double groups = 0, signal = 0, square = 0, bins = 0, bin_signal = 0, bin_square = 0;
    for (int k = 0; k < VARIANCE_KINDS; k++) groups += x.kind[k].groups, signal += x.kind[k].signal, square += x.kind[k].square;
    for (int b = 0; b < VARIANCE_BINS; b++) {
        if (!x.bin[b].prompts) continue;
        bins += (double)x.bin[b].prompts, bin_signal += x.bin[b].signal, bin_square += x.bin[b].square;
    }
    assert_true(fabs(groups - 1) < 1e-12 && fabs(signal - 1) < 1e-9 && fabs(square - 1) < 1e-9);
    assert_true(bins == 24 && fabs(bin_signal - 1) < 1e-9 && fabs(bin_square - 1) < 1e-9);
    /* groups with equal rewards have no advantage */
    const struct result grpo = case_figures(&p, "grpo", 4, 8, 50, 1);
    assert_true(grpo.kind[KIND_WRONG].square == 0 && grpo.kind[KIND_WRONG].groups > 0);
    pool_close(&p);
}

static void nothing_right__is_no_direction(void **state)
{
    (void)state;
    struct made x = PLAIN;
    x.low = x.high = -1;
    struct variance_pool p = finish_pool(x);
    const struct result r = case_figures(&p, "grpo", 4, 8, 10, 1);
    assert_true(r.target.value == 0 && r.variance.value == 0 && r.bias.value == 0 && isnan(r.direction.value));
    assert_true(r.kind[KIND_WRONG].groups == 1 && isnan(r.kind[KIND_WRONG].signal) && r.effective == 0);
    pool_close(&p);
}

static void bad_input__is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct sketch s;
    struct arena a;
    struct sums sums;
    struct config config = {.run.plugins = ""};
    struct variance_pool p = finish_pool(PLAIN), few;
    const struct method method = made_method("rloo");
    const struct method_place place = {.config = &config, .where = "made"};
    struct variance_case c = {.pool = &p, .method = &method, .place = &place, .size = 33, .batch = 8, .rounds = 1};
    arena_init(&a, "sums");
    assert_int_equal(measure(&c, &a, &sums, &e), TARE_E_INVALID);
    c.size = 4, c.batch = 7;
    assert_int_equal(measure(&c, &a, &sums, &e), TARE_E_INVALID);
    arena_free(&a);
    pool_close(&p);
    assert_int_equal(sketch_new(1000, 100, 1, &s, &e), TARE_E_INVALID);
    assert_int_equal(sketch_new(1000, 65536, 1, &s, &e), TARE_E_INVALID);
    few = made_pool(PLAIN);
    for (int64_t i = 64; i < 64 + 61; i++) few.batch.verdict[i] = few.batch.component_verdict[i] = TARE_VERDICT_TIMED_OUT;
    assert_int_equal(pool_finish(&few, 1, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "prompt 1: 3 of its 64 rollouts"));
    pool_close(&few);
}

/* Squared lengths and inner products over many seeds: unbiased, with the printed error. */
static void sketch__is_as_exact_as_it_says(void **state)
{
    (void)state;
    enum { N = 3000, WIDTH = 256, SEEDS = 300 };
    static float x[N], y[N], sx[WIDTH], sy[WIDTH];
    struct err e = {0};
    double xx = 0, xy = 0, yy = 0, square, off = 0, squares = 0, products = 0;
    for (int64_t j = 0; j < N; j++) {
        x[j] = (float)rng_normal(rng_key(1, RNG_DATA), (uint64_t)j);
        y[j] = 0.5f * x[j] + (float)rng_normal(rng_key(2, RNG_DATA), (uint64_t)j);
        xx += (double)x[j] * (double)x[j], xy += (double)x[j] * (double)y[j], yy += (double)y[j] * (double)y[j];
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sketch s;
        double length = 0, product = 0;
        assert_ok(sketch_new(N, WIDTH, seed, &s, &e), &e);
        sketch_of(&s, NULL, x, sx, &square);
        assert_true(fabs(square / xx - 1) < 1e-12);
        sketch_of(&s, NULL, y, sy, &square);
        for (int64_t c = 0; c < WIDTH; c++) length += (double)sx[c] * (double)sx[c], product += (double)sx[c] * (double)sy[c];
        off += (length / xx - 1) / SEEDS;
        squares += (length / xx - 1) * (length / xx - 1) / SEEDS;
        products += (product - xy) / sqrt(xx * yy) / SEEDS;
        sketch_free(&s);
    }
    /* relative error of a squared length, see sketch.h */
    const double expected = sqrt(2.0 / WIDTH);
    printf("squared lengths off by %.4f on average, %.4f deviation; %.4f was said\n", off, sqrt(squares), expected);
    assert_true(fabs(off) < 4 * expected / sqrt(SEEDS) && fabs(products) < 4 / sqrt((double)WIDTH * SEEDS));
    assert_true(sqrt(squares) > 0.8 * expected && sqrt(squares) < 1.2 * expected);
}

static void sketch__has_the_same_bits_on_any_threads(void **state)
{
    (void)state;
    enum { N = 5000, WIDTH = 128 };
    static float x[N], one[WIDTH], three[WIDTH], whole[N];
    struct err e = {0};
    struct sketch s;
    struct pool *pool;
    double a, b;
    for (int64_t j = 0; j < N; j++) x[j] = (float)rng_normal(rng_key(1, RNG_DATA), (uint64_t)j);
    assert_ok(pool_new(3, &pool, &e), &e);
    assert_ok(sketch_new(N, WIDTH, 1, &s, &e), &e);
    sketch_of(&s, NULL, x, one, &a);
    sketch_of(&s, pool, x, three, &b);
    assert_memory_equal(one, three, sizeof one);
    assert_true(a == b);
    sketch_free(&s);
    assert_ok(sketch_new(N, 0, 1, &s, &e), &e);
    sketch_of(&s, pool, x, whole, &b);
    assert_memory_equal(x, whole, sizeof x);
    assert_true(a == b);
    sketch_free(&s);
    pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rloo__is_unbiased_for_every_group_size),
                                       cmocka_unit_test(rloo__over_the_whole_half_is_the_target),
                                       cmocka_unit_test(sums__are_those_of_all_subsets),
                                       cmocka_unit_test(target__is_what_the_model_has),
                                       cmocka_unit_test(best_constant__beats_the_mean),
                                       cmocka_unit_test(intervals__hold_the_truth_and_meet),
                                       cmocka_unit_test(order__of_rollouts_changes_nothing),
                                       cmocka_unit_test(seed__decides_every_bit),
                                       cmocka_unit_test(parts__are_shares_of_the_whole),
                                       cmocka_unit_test(nothing_right__is_no_direction),
                                       cmocka_unit_test(bad_input__is_refused),
                                       cmocka_unit_test(sketch__is_as_exact_as_it_says),
                                       cmocka_unit_test(sketch__has_the_same_bits_on_any_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
