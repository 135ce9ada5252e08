/* Plan a study and decide when to stop it: the number of seeds that shows a difference, and
 * intervals that are valid at every look. Pure functions.
 *
 * Seeds. Differences to the baseline, paired by seed, are assumed to be normal with the pilot's
 * deviation s. The two-sided paired t-test of level alpha detects a mean difference d with n seeds
 * with probability
 *
 *   power(n) = E_u[ Phi(ncp - t_c u) + Phi(-ncp - t_c u) ],   ncp = d sqrt(n) / s,
 *   u = sqrt(chi^2_{n-1} / (n-1)),   t_c: the test's critical value
 *
 * (the t statistic is (Z + ncp) / u). A pilot of few seeds estimates s poorly: its 80 % upper bound
 * is s sqrt((m-1) / q), with q the 20 % quantile of chi^2_{m-1}.
 *
 * Stopping. The interval of all mu with e_n(mu) < 1/alpha,
 *
 *   e_n(mu) = (1 + n g)^(-1/2) [ (1 + r) / (1 + r / (1 + n g)) ]^(n/2),
 *   r = t^2 / (n-1),   t = sqrt(n) (mean - mu) / s
 *
 * contains the true mean at all n at once with probability 1 - alpha: e_n is the likelihood ratio
 * of the t statistic for an effect size from N(0, g), a martingale in the filtration of the data up
 * to scale, and Ville's inequality bounds it. Wang & Ramdas 2023, "Anytime-valid t-tests and
 * confidence sequences for Gaussian means with unknown variance" (arXiv 2310.03722). So a study may
 * be examined after every seed and stopped when the interval excludes 0. g = 1. */
#ifndef TARE_LAB_REPORT_PLANNING_H
#define TARE_LAB_REPORT_PLANNING_H

#include "lab/report/report.h"

#include <stdbool.h>

enum { PLANNING_MOST = 100000 };

/* Returns the power of the two-sided paired t-test for n differences with mean d and deviation s. n
 * < 2: 0. */
double planning_power(double d, double s, int64_t n, double alpha);
/* Returns the smallest n >= 2 with that power; PLANNING_MOST + 1 if above PLANNING_MOST. */
int64_t planning_seeds(double d, double s, double alpha, double power);
/* Returns the 80 % upper bound of the deviation, given the deviation s of m values. m < 2:
 * infinite. */
double planning_deviation_bound(double s, int64_t m);
/* Returns half the width of the interval after n values with deviation s; infinite while n is too
 * small. */
double planning_anytime(double s, int64_t n, double alpha);

/* Options of `tare sweep --plan`. */
struct study_plan {
    double difference, power, alpha; /* difference: NAN if not requested */
};
/* Prints a table with a row for each variant that is compared with the baseline. All intervals hold
 * at once: alpha is divided among the rows. */
tare_status planning_markdown(const struct sweep_table *t, const struct study_plan *p, struct str *out, struct err *e);
/* Returns true if every row's interval excludes 0, so that the study may stop. */
bool planning_decided(const struct sweep_table *t, double alpha);

#endif
