/* Planning: power against tables and simulation, intervals that are valid at every look; statistics
 * over several tasks. */
#include "check.h"

#include "base/rng.h"
#include "lab/report/aggregate.h"
#include "lab/report/planning.h"

#include <math.h>

static double normal_draw(struct rng_key key, uint64_t at)
{
    const double u = rng_uniform(key, at, 1), v = rng_uniform(key, at, 2);
    return sqrt(-2 * log(1 - u)) * cos(2 * acos(-1) * v);
}

/* Mean and deviation of n draws of N(mu, 1). */
static void draw_moments(uint64_t study, int64_t n, double mu, double *mean, double *sd)
{
    const struct rng_key key = rng_derive(rng_key(41, RNG_DATA), study);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = mu + normal_draw(key, (uint64_t)i);
        sum += x;
        squares += x * x;
    }
    *mean = sum / (double)n;
    *sd = sqrt((squares - sum * *mean) / (double)(n - 1));
}

/* Cohen's tables for the paired t-test, two-sided, 0.05. */
static void seeds_of_the_tables(void **state)
{
    (void)state;
    assert_int_equal(planning_seeds(0.5, 1, 0.05, 0.8), 34);
    assert_int_equal(planning_seeds(1, 1, 0.05, 0.8), 10);
    assert_int_equal(planning_seeds(0.2, 1, 0.05, 0.8), 199);
    assert_int_equal(planning_seeds(0.02, 0.04, 0.05, 0.8), 34);
    assert_int_equal(planning_seeds(0, 1, 0.05, 0.8), PLANNING_MOST + 1);
    assert_int_equal(planning_seeds(1e-6, 1, 0.05, 0.8), PLANNING_MOST + 1);
    assert_true(planning_power(1, 1, 1, 0.05) == 0);
    /* without a difference, the level */
    assert_true(fabs(planning_power(0, 1, 7, 0.05) - 0.05) < 1e-6);
    assert_true(fabs(planning_deviation_bound(1, 5) - sqrt(4 / 1.648777)) < 1e-3);
    assert_true(isinf(planning_deviation_bound(1, 1)));
}

/* The share of 4,000 studies in which the t-test rejects; t_c of 9 degrees of freedom is
 * 2.262157. */
static void power_by_simulation(void **state)
{
    (void)state;
    int64_t rejected = 0;
    for (uint64_t study = 0; study < 4000; study++) {
        double mean, sd;
        draw_moments(study, 10, 1, &mean, &sd);
        rejected += fabs(mean) * sqrt(10) / sd > 2.262157;
    }
    const double share = (double)rejected / 4000, expected = planning_power(1, 1, 10, 0.05);
    assert_true(fabs(share - expected) < 4 * sqrt(expected * (1 - expected) / 4000));
}

/* Of 2,000 studies that are checked after each of 200 seeds, at most 5 % ever exclude the true
 * mean. The t-interval does so in far more. */
static void intervals_hold_at_every_look(void **state)
{
    int64_t left = 0, naive = 0;
    (void)state;
    for (uint64_t study = 0; study < 2000; study++) {
        const struct rng_key key = rng_derive(rng_key(43, RNG_DATA), study);
        double sum = 0, squares = 0;
        bool out = false, out_naive = false;
        for (int64_t n = 1; n <= 200; n++) {
            const double x = 0.3 + normal_draw(key, (uint64_t)n);
            sum += x;
            squares += x * x;
            if (n < 3) continue;
            const double mean = sum / (double)n, sd = sqrt((squares - sum * mean) / (double)(n - 1));
            out = out || fabs(mean - 0.3) > planning_anytime(sd, n, 0.05);
            out_naive = out_naive || fabs(mean - 0.3) > 1.96 * sd / sqrt((double)n);
        }
        left += out;
        naive += out_naive;
    }
    assert_true((double)left / 2000 <= 0.05 + 3 * sqrt(0.05 * 0.95 / 2000));
    assert_true(left > 0);
    assert_true((double)naive / 2000 > 0.3);
}

static void an_interval_grows_narrow(void **state)
{
    (void)state;
    assert_true(isinf(planning_anytime(1, 1, 0.05)));
    assert_true(isinf(planning_anytime(1, 2, 0.05)));
    for (int64_t n = 5; n < 1000; n++) assert_true(planning_anytime(1, n + 1, 0.05) < planning_anytime(1, n, 0.05));
    assert_true(planning_anytime(1, 1000, 0.05) < 0.13);
    assert_true(planning_anytime(1, 20, 0.01) > planning_anytime(1, 20, 0.05));
}

/* ---------------------------------------------------------------- several tasks */

static void middle_half(void **state)
{
    double eight[] = {8, 1, 7, 2, 6, 3, 5, 100}, five[] = {1, 2, 3, 4, 5}, one[] = {3};
    (void)state;
    assert_true(fabs(aggregate_iqm(eight, 8) - (3 + 5 + 6 + 7) / 4.0) < 1e-12);
    assert_true(fabs(aggregate_iqm(five, 5) - 3) < 1e-12); /* 0.75 of 2, 3, 0.75 of 4 */
    assert_true(aggregate_iqm(one, 1) == 3);
    assert_true(isnan(aggregate_iqm(one, 0)));
}

/* Runs are resampled within each task: two constant tasks have an interval of width 0. */
static void strata_are_kept(void **state)
{
    const double constant[] = {1, 1, 1, 5, 5, 5}, spread[] = {0, 1, 2, 4, 5, 6};
    const int64_t begin[] = {0, 3, 6}, few[] = {0, 2, 6};
    struct interval i;
    struct err e = {0};
    (void)state;
    assert_ok(aggregate_iqm_interval(&(struct scores){constant, begin, 2}, &i, &e), &e);
    assert_true(i.value == 3 && i.low == 3 && i.high == 3);
    assert_ok(aggregate_iqm_interval(&(struct scores){spread, begin, 2}, &i, &e), &e);
    assert_true(i.low < i.value && i.value < i.high && fabs(i.value - 3) < 1e-12);
    assert_ok(aggregate_iqm_interval(&(struct scores){spread, few, 2}, &i, &e), &e);
    assert_true(isnan(i.low) && !isnan(i.value));
    assert_true(aggregate_above(&(struct scores){spread, few, 2}, 1.5) == 0.5); /* 0 of 2, 4 of 4 */
    assert_true(aggregate_above(&(struct scores){spread, begin, 2}, 1.5) == (1.0 / 3 + 1) / 2);
}

static void rank_correlation(void **state)
{
    const double x[] = {1, 2, 3, 4}, up[] = {2, 3, 5, 9}, down[] = {4, 3, 2, 1}, one[] = {1, 2, 4, 3}, ties[] = {1, 1, 1, 1};
    (void)state;
    assert_true(aggregate_tau(x, up, 4) == 1 && aggregate_tau(x, down, 4) == -1);
    assert_true(fabs(aggregate_tau(x, one, 4) - 4.0 / 6) < 1e-12);
    assert_true(isnan(aggregate_tau(x, ties, 4)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(seeds_of_the_tables),
                                       cmocka_unit_test(power_by_simulation),
                                       cmocka_unit_test(intervals_hold_at_every_look),
                                       cmocka_unit_test(an_interval_grows_narrow),
                                       cmocka_unit_test(middle_half),
                                       cmocka_unit_test(strata_are_kept),
                                       cmocka_unit_test(rank_correlation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
