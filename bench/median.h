/* Median of a benchmark's rounds. */
#ifndef TARE_BENCH_MEDIAN_H
#define TARE_BENCH_MEDIAN_H

#include <stdlib.h>

static int median_less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return the median of v[n]; sorts v. */
static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, median_less);
    return v[n / 2];
}

#endif
