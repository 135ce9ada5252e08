/* Planning a study, and stopping it: how many seeds show a difference, and intervals that hold at every look. Pure functions.
 *
 * Seeds. Differences to the baseline, paired by seed, are taken to be normal with the pilot's deviation s. n seeds find a mean difference d with the two-sided
 * paired t-test of level alpha with probability
 *
 *   power(n) = E_u[ Phi(ncp - t_c u) + Phi(-ncp - t_c u) ],   ncp = d sqrt(n) / s,   u = sqrt(chi^2_{n-1} / (n-1)),   t_c: the test's critical value
 *
 * (the t statistic is (Z + ncp) / u). A pilot of few seeds knows s badly: its 80 % upper bound is s sqrt((m-1) / q), q the 20 % quantile of chi^2_{m-1}.
 *
 * Stopping. The interval of all mu with e_n(mu) < 1/alpha,
 *
 *   e_n(mu) = (1 + n g)^(-1/2) [ (1 + r) / (1 + r / (1 + n g)) ]^(n/2),   r = t^2 / (n-1),   t = sqrt(n) (mean - mu) / s
 *
 * holds the true mean at all n at once with probability 1 - alpha: e_n is the likelihood ratio of the t statistic with the effect's size drawn from N(0, g), a
 * martingale in the filtration of the data up to scale, and Ville's inequality bounds it. Wang & Ramdas 2023, "Anytime-valid t-tests and confidence
 * sequences for Gaussian means with unknown variance" (arXiv 2310.03722). So a study may be looked at after every seed and stopped when the interval
 * leaves 0. g = 1. */
#ifndef TARE_LAB_REPORT_PLANNING_H
#define TARE_LAB_REPORT_PLANNING_H

#include "lab/report/report.h"

#include <stdbool.h>

enum { PLANNING_MOST = 100000 };

/* Power of the two-sided paired t-test of n differences whose mean is d and deviation s. n < 2: 0. */
double planning_power(double d, double s, int64_t n, double alpha);
/* The least n from 2 on with that power; PLANNING_MOST + 1: more than PLANNING_MOST. */
int64_t planning_seeds(double d, double s, double alpha, double power);
/* The upper bound of the deviation, at 80 %, when m values have the deviation s. m < 2: infinite. */
double planning_deviation_bound(double s, int64_t m);
/* Half the width of the interval after n values with the deviation s; infinite while n is too small. */
double planning_anytime(double s, int64_t n, double alpha);

/* What `tare sweep --plan` prints: a row of the table for each variant that is compared with the baseline. */
struct study_plan {
    double difference, power, alpha; /* difference NAN: not asked for */
};
/* All intervals hold at once: alpha is shared out among the rows. */
tare_status planning_markdown(const struct sweep_table *t, const struct study_plan *p, struct str *out, struct err *e);
/* Whether every row's interval has left 0, so that the study may stop. */
bool planning_decided(const struct sweep_table *t, double alpha);

#endif
