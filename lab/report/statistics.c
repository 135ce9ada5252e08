/* Statistics over seeds. For small n the interval is a bootstrap and the test is exact. */
#include "base/rng.h"
#include "lab/report/report.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 10000, DRAWS = 100000, EXACT = 16 };
static const double SLACK = 1e-12; /* sums that differ only by rounding count as equal */

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Interpolate linearly between order statistics. */
static double percentile(const double *x, int64_t n, double q)
{
    const double at = q * (double)(n - 1);
    const int64_t i = (int64_t)floor(at);
    return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

static tare_status bootstrap_interval(const double *x, int64_t n, double *low, double *high, struct err *e)
{
    const struct rng_key key = rng_key(1, RNG_DATA);
    double *mean;
    TRY(mem_new(ROUNDS * (int64_t)sizeof *mean, (void **)&mean, e));
    for (int64_t b = 0; b < ROUNDS; b++) {
        const struct rng_key round = rng_derive(key, (uint64_t)b);
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += x[rng_below(round, (uint64_t)i, (uint64_t)n)];
        mean[b] = sum / (double)n;
    }
    qsort(mean, ROUNDS, sizeof *mean, compare_values);
    *low = percentile(mean, ROUNDS, 0.025);
    *high = percentile(mean, ROUNDS, 0.975);
    mem_free(mean);
    return TARE_OK;
}

tare_status statistics_moments(const double *x, int64_t n, struct moments *out, struct err *e)
{
    double sum = 0, squares = 0;
    *out = (struct moments){NAN, NAN, NAN, NAN};
    if (n < 1) return TARE_OK;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    out->mean = sum / (double)n;
    if (n < 2) return TARE_OK;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - out->mean) * (x[i] - out->mean);
    out->sd = sqrt(squares / (double)(n - 1));
    return n < STATS_SEEDS ? TARE_OK : bootstrap_interval(x, n, &out->low, &out->high, e);
}

double statistics_permutation(const double *d, int64_t n)
{
    double seen = 0, size = 0;
    if (n < 1) return NAN;
    for (int64_t i = 0; i < n; i++) {
        seen += d[i];
        size += fabs(d[i]);
    }
    seen = fabs(seen) - SLACK * size;
    int64_t at_least = 0, all = 0;
    if (n <= EXACT) {
        all = (int64_t)1 << n;
        for (int64_t pattern = 0; pattern < all; pattern++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++) sum += pattern >> i & 1 ? -d[i] : d[i];
            at_least += fabs(sum) >= seen;
        }
        return (double)at_least / (double)all;
    }
    const struct rng_key key = rng_key(2, RNG_DATA);
    for (int64_t draw = 0; draw < DRAWS; draw++) {
        const struct rng_key round = rng_derive(key, (uint64_t)draw);
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += rng_below(round, (uint64_t)i, 2) ? -d[i] : d[i];
        at_least += fabs(sum) >= seen;
    }
    return (double)(at_least + 1) / (double)(DRAWS + 1);
}

struct ranked {
    double p;
    int64_t at;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x->at > y->at) - (x->at < y->at);
}

tare_status statistics_holm(double *p, int64_t n, struct err *e)
{
    struct ranked *order;
    int64_t m = 0;
    double most = 0;
    TRY(mem_new((n + 1) * (int64_t)sizeof *order, (void **)&order, e));
    for (int64_t i = 0; i < n; i++)
        if (!isnan(p[i])) order[m++] = (struct ranked){p[i], i};
    qsort(order, (size_t)m, sizeof *order, by_p);
    for (int64_t j = 0; j < m; j++) {
        most = fmax(most, fmin(1, (double)(m - j) * order[j].p));
        p[order[j].at] = most;
    }
    mem_free(order);
    return TARE_OK;
}
