/* Statistics over several tasks: interquartile means, performance profiles, rank correlation. Pure
 * functions.
 *
 * Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
 * (rliable, arXiv 2108.13264): the interquartile mean is the mean of the middle half of all runs of
 * all tasks; its interval is a bootstrap that resamples runs within each task. A performance
 * profile is the share of runs above each score. Rank correlation: Kendall's tau-b of the variants'
 * means between two tasks. */
#ifndef TARE_LAB_REPORT_AGGREGATE_H
#define TARE_LAB_REPORT_AGGREGATE_H

#include "base/arena.h"

#include <stdbool.h>

/* Scores of one variant. Those of task k are x[begin[k]] .. x[begin[k+1]-1]. */
struct scores {
    const double *x;
    const int64_t *begin; /* [n_tasks + 1] */
    int64_t n_tasks;
};

struct interval {
    double value, low, high;
};

/* Returns the mean of the middle half; runs at its edges count in part. Sorts x [n]. n < 1: NAN. */
double aggregate_iqm(double *x, int64_t n);
/* Adds the 95 % interval of 2,000 stratified resamplings by Philox; NAN if a task has fewer than 3
 * runs. */
tare_status aggregate_iqm_interval(const struct scores *s, struct interval *out, struct err *e);
/* Returns the share of runs above a score; every task has the same weight. */
double aggregate_above(const struct scores *s, double score);
/* Returns Kendall's tau-b of n pairs; NAN when one side is all ties. */
double aggregate_tau(const double *x, const double *y, int64_t n);

#endif
