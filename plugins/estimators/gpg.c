/* gpg: rewards minus their group's mean, divided by the share of the batch's rollouts that have a
 * signal.
 *
 *   A[i] = alpha (R[i] - mu) / F,   alpha = N / (N - M)
 *          N rollouts of the whole batch; mu: the group's mean; F: f_norm
 *
 *   convention paper:   M = rollouts in groups of equal rewards; a group of one is such a group and
 *                       has A = 0
 *   convention verl:    M = rollouts with reward 0 in any group; a group of one has
 *                       A = alpha R / F
 *
 * Chu et al. 2025, "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
 * equation 7 (arXiv 2504.02546), and verl's compute_gpg_outcome_advantage. alpha is 1 where M = N.
 * With verl's count, rewards of -1 and 1 always have alpha 1. The paper also samples again when too
 * few groups have a signal; this plugin does not.
 *
 * The two counts are sums over the batch of all ranks, from prepare. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>
#include <stdbool.h>

enum { P_F_NORM, P_CONVENTION, P_COUNT };

enum { PAPER, VERL };
static const char *const CONVENTIONS[] = {"paper", "verl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_F_NORM] =
        TARE_FLOAT_PARAM("f_norm", "1", "F, divides the advantages", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
    [P_CONVENTION] = TARE_CHOICE_PARAM(
        "convention", "paper", "rollouts without a signal: those of groups with equal rewards (paper), or with reward 0 (verl)",
        CONVENTIONS, 0),
};

enum { ALL, SIGNAL, SUMS };

PREPARES(SUMS)

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const tare_value *v = self;
    const int64_t first = batch->group_begin[group], n = batch->group_begin[group + 1] - first;
    const double *R = batch->reward + first;
    (void)error;
    const bool differ = group_variance(R, n, group_mean(R, n), 0) > 0;
    for (int64_t i = 0; i < n; i++) {
        sum[ALL] += 1;
        sum[SIGNAL] += v[P_CONVENTION].i == VERL ? R[i] != 0 : differ;
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const double alpha = prepared[SIGNAL] > 0 ? prepared[ALL] / prepared[SIGNAL] : 1;
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = n == 1 && v[P_CONVENTION].i == VERL ? 0 : group_mean(R, n);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = alpha * (R[i] - mu) / v[P_F_NORM].f;
        out->baseline[m] = mu;
    }
    return TARE_OK;
}

STATELESS("gpg", "rewards minus their group's mean, scaled by the share of rollouts with a signal", "arXiv 2504.02546, equation 7",
          .sizes = sizes, .prepare = prepare, .compute = compute)
