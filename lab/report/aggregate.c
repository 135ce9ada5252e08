#include "lab/report/aggregate.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2000 };

static int compare_scores(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---------------------------------------------------------------- interquartile mean */

double aggregate_iqm(double *x, int64_t n)
{
    if (n < 1) return NAN;
    qsort(x, (size_t)n, sizeof *x, compare_scores);
    const double cut = (double)n / 4;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) /* run i covers the interval from i to i + 1 of n */
        sum += x[i] * fmax(0, fmin((double)(i + 1), (double)n - cut) - fmax((double)i, cut));
    return sum / ((double)n - 2 * cut);
}

static double sorted_quantile(const double *x, int64_t n, double q)
{
    const double at = q * (double)(n - 1);
    const int64_t i = (int64_t)floor(at);
    return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

tare_status aggregate_iqm_interval(const struct scores *s, struct interval *out, struct err *e)
{
    const int64_t n = s->begin[s->n_tasks];
    double *scratch;
    bool enough = n > 0;
    *out = (struct interval){NAN, NAN, NAN};
    for (int64_t k = 0; k < s->n_tasks; k++) enough = enough && s->begin[k + 1] - s->begin[k] >= 3;
    if (n < 1) return TARE_OK;
    TRY(mem_new((n + ROUNDS) * (int64_t)sizeof *scratch, (void **)&scratch, e));
    double *drawn = scratch, *value = scratch + n;
    memcpy(drawn, s->x, (size_t)n * sizeof *drawn);
    out->value = aggregate_iqm(drawn, n);
    for (int64_t b = 0; enough && b < ROUNDS; b++) {
        const struct rng_key round = rng_derive(rng_key(3, RNG_DATA), (uint64_t)b);
        for (int64_t k = 0; k < s->n_tasks; k++)
            for (int64_t i = s->begin[k]; i < s->begin[k + 1]; i++)
                drawn[i] = s->x[s->begin[k] + (int64_t)rng_below(round, (uint64_t)i, (uint64_t)(s->begin[k + 1] - s->begin[k]))];
        value[b] = aggregate_iqm(drawn, n);
    }
    if (enough) {
        qsort(value, ROUNDS, sizeof *value, compare_scores);
        out->low = sorted_quantile(value, ROUNDS, 0.025);
        out->high = sorted_quantile(value, ROUNDS, 0.975);
    }
    mem_free(scratch);
    return TARE_OK;
}

double aggregate_above(const struct scores *s, double score)
{
    double sum = 0;
    for (int64_t k = 0; k < s->n_tasks; k++) {
        const double n = (double)(s->begin[k + 1] - s->begin[k]);
        for (int64_t i = s->begin[k]; i < s->begin[k + 1]; i++) sum += (s->x[i] > score) / n;
    }
    return sum / (double)s->n_tasks;
}

/* ---------------------------------------------------------------- ranks */

double aggregate_tau(const double *x, const double *y, int64_t n)
{
    double agree = 0, a = 0, b = 0; /* a, b: pairs without a tie in x, in y */
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n; k++) {
            const int p = (x[i] > x[k]) - (x[i] < x[k]), q = (y[i] > y[k]) - (y[i] < y[k]);
            agree += p * q;
            a += p != 0;
            b += q != 0;
        }
    return a > 0 && b > 0 ? agree / sqrt(a * b) : (double)NAN;
}
