/* Mean and deviation of weighted values that are added one by one, in double. Compiled into each
 * estimator that includes it.
 *
 * Computed relative to the first value, so that equal values have exactly that mean and exactly no
 * deviation. */
#ifndef TARE_ESTIMATORS_SUMS_H
#define TARE_ESTIMATORS_SUMS_H

#include <math.h>

struct sums {
    double first, shift, squares, n; /* n: the sum of the weights */
};

static inline void sums_add(struct sums *s, double x, double weight)
{
    if (s->n == 0) s->first = x;
    const double d = x - s->first;
    s->shift += weight * d;
    s->squares += weight * d * d;
    s->n += weight;
}

static inline double sums_mean(const struct sums *s)
{
    return s->n > 0 ? s->first + s->shift / s->n : 0;
}

/* The deviation with n-1; 0 for fewer than two values. */
static inline double sums_deviation(const struct sums *s)
{
    if (s->n < 2) return 0;
    const double spread = s->squares - s->shift * (s->shift / s->n);
    return spread > 1e-13 * s->squares ? sqrt(spread / (s->n - 1)) : 0;
}

/* (x - mean) / (deviation + delta); 0 where there is nothing to compare with. */
static inline double sums_standardise(const struct sums *s, double x, double delta)
{
    return s->n < 2 ? 0 : (x - s->first - s->shift / s->n) / (sums_deviation(s) + delta);
}

#endif
