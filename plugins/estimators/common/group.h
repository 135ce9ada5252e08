/* Statistics of one group of rewards R[n], in double. Compiled into each estimator that includes
 * it.
 *
 *   mean      mu      = R[0] + (1/n) sum_i (R[i] - R[0])
 *   variance  sigma^2 = sum_i (R[i] - mu)^2 / (n - ddof)   0 for a group of one (and for n <= ddof)
 *
 * Computed relative to the first reward: a group of equal rewards has exactly that reward as its
 * mean and exactly 0 as its variance. */
#ifndef TARE_ESTIMATORS_GROUP_H
#define TARE_ESTIMATORS_GROUP_H

#include <stdint.h>

static inline double group_mean(const double *reward, int64_t n)
{
    double shift = 0;
    for (int64_t i = 0; i < n; i++) shift += reward[i] - reward[0];
    return n ? reward[0] + shift / (double)n : 0;
}

static inline double group_variance(const double *reward, int64_t n, double mean, int64_t ddof)
{
    if (n < 2 || n <= ddof) return 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (reward[i] - mean) * (reward[i] - mean);
    return sum / (double)(n - ddof);
}

#endif
