/* gpg: rewards minus their group's mean, scaled up by how many rollouts of the batch were rewarded at all.
 *
 *   A[i] = alpha (R[i] - mu) / F,   alpha = N / #{i: R[i] != 0}          N rollouts of the whole batch; mu: the group's mean; F: f_norm
 *
 * Chu et al. 2025, "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning" (arXiv 2504.02546), as verl
 * counts it. alpha is 1 when no rollout was rewarded. Rewards of -1 and 1 are all counted: alpha is 1 then.
 *
 * The two counts are sums over the batch of all ranks: prepare. A group of one: 0 (convention paper), or alpha R / F (convention verl).
 */
#include "common/group.h"
#include "common/stateless.h"

#include <math.h>

enum { P_F_NORM, P_CONVENTION, P_COUNT };

enum { PAPER, VERL };
static const char *const CONVENTIONS[] = {"paper", "verl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_F_NORM] = PARAM_FLOAT("f_norm", "1", "F, divides the advantages", 0, 1e300, TARE_ABOVE_MIN | TARE_LOG_SCALE),
    [P_CONVENTION] = PARAM_CHOICE("convention", "paper", "what a group of one gets: 0 (paper), or its reward (verl)", CONVENTIONS),
};

enum { ALL, REWARDED, SUMS };

static int64_t prepare_size(const void *self)
{
    (void)self;
    return SUMS;
}

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        sum[ALL] += 1;
        sum[REWARDED] += batch->reward[i] != 0;
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const double alpha = prepared[REWARDED] > 0 ? prepared[ALL] / prepared[REWARDED] : 1;
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = n == 1 && v[P_CONVENTION].i == VERL ? 0 : group_mean(R, n);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = alpha * (R[i] - mu) / v[P_F_NORM].f;
        out->baseline[m] = mu;
        out->scale[m] = NAN;
        out->confidence[m] = 0;
    }
    return TARE_OK;
}

TARE_STATELESS("gpg", "rewards minus their group's mean, scaled by the share of rewarded rollouts", "arXiv 2504.02546",
               .prepare_size = prepare_size, .prepare = prepare, .compute = compute)
