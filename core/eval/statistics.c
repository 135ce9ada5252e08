#include "eval/eval.h"

#include <math.h>
#include <stdlib.h>

/* C(n - c, k) / C(n, k) = prod_{i = n-c+1}^{n} (1 - k / i): no factorial overflows, and it is
 * exactly 0 when n - c < k. */
double eval_pass_at(int64_t n, int64_t c, int64_t k)
{
    double none = 1;
    if (n - c < k) return 1;
    for (int64_t i = n - c + 1; i <= n; i++) none *= 1 - (double)k / (double)i;
    return 1 - none;
}

double eval_quantile(const double *x, int64_t n, double q)
{
    const double at = q * (double)(n - 1);
    const int64_t i = (int64_t)floor(at);
    if (i + 1 >= n) return x[n - 1];
    return x[i] + (at - (double)i) * (x[i + 1] - x[i]);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* n questions with one value v: every resampling gives v, which says nothing about other questions.
 * The share of questions with another value is, at 97.5 %, at most u = 1 - 0.025^(1/n) (Clopper and
 * Pearson 1934, none of n), and their value is between 0 and 1. */
static void all_equal(double v, int64_t n, double *low, double *high)
{
    const double u = 1 - pow(0.025, 1 / (double)n);
    *low = v * (1 - u);
    *high = v + (1 - v) * u;
}

tare_status eval_bootstrap(const struct eval_values *v, struct eval_resampling how, double *low, double *high, struct err *e)
{
    const double *x = v->x;
    const int64_t n = v->n, m = v->m, rounds = how.rounds;
    for (int64_t j = 0; j < m; j++) low[j] = high[j] = NAN;
    if (!n || !rounds) return TARE_OK;
    OWNED(mem_free_at) double *mean = NULL; /* [m, rounds] */
    TRY(mem_new(m * rounds * (int64_t)sizeof *mean, (void **)&mean, e));
    for (int64_t r = 0; r < rounds; r++) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t q = (int64_t)rng_below(how.key, (uint64_t)(r * n + i), (uint64_t)n);
            for (int64_t j = 0; j < m; j++) mean[j * rounds + r] += x[q * m + j];
        }
        for (int64_t j = 0; j < m; j++) mean[j * rounds + r] /= (double)n;
    }
    for (int64_t j = 0; j < m; j++) {
        qsort(mean + j * rounds, (size_t)rounds, sizeof *mean, compare_doubles);
        low[j] = eval_quantile(mean + j * rounds, rounds, 0.025);
        high[j] = eval_quantile(mean + j * rounds, rounds, 0.975);
        int64_t same = 1;
        while (same < n && x[same * m + j] == x[j]) same++;
        if (same == n) all_equal(x[j], n, &low[j], &high[j]);
    }
    return TARE_OK;
}
