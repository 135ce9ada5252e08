/* cppo: the loss uses the rollouts of a group with the largest advantages, positive or negative;
 * the group's statistics use all rollouts.
 *
 *   k = max(1, floor(n (1 - pruning)))                       of n verified rollouts
 *   S = the k rollouts with the largest |R_i - mean R|       of equal ones the earlier
 *
 * The paper ranks by |A_i| with A_i = (R_i - mean R) / std R. Within a group that is the order of
 * |R_i - mean R|, as with every estimator whose advantage is the deviation from the group's mean
 * times a factor of the group (grpo, dr_grpo, rloo, ...); with another estimator the two may
 * differ. Rollouts outside of S count in mean and deviation but not in the loss.
 *
 * Dynamic completion allocation (fill = true): more questions replace the pruned rollouts, so that
 * the loss of a step has as many rollouts as without pruning:
 *
 *   groups of a step = floor(rollout.prompts / (1 - pruning))
 *
 * The further groups are sampled when the first ones have their verdicts, at most rollout.prompts
 * at a time and rollout.refill_rounds times, and are pruned in the same way. The paper gives the
 * freed places of one GPU to other questions; its code multiplies the batch of a step by 1 / (1 -
 * pruning), which gives the same number as here.
 *
 * Lin et al. 2025, "CPPO: Accelerating the Training of Group Relative Policy Optimization-Based
 * Reasoning Models" (arXiv 2503.22342), and the authors' code (lzhxmu/CPPO).
 */
#include "common/curriculum.h"
#include "common/subset.h"

enum { P_PRUNING, P_FILL, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_PRUNING] = TARE_FLOAT_PARAM("pruning", "0.5", "P, the share of a group's rollouts that the loss leaves out", 0, 1,
                                   TARE_PARAM_BELOW_MAX | TARE_PARAM_SWEEPABLE),
    [P_FILL] =
        TARE_BOOL_PARAM("fill", "false", "sample further groups, so that the loss uses as many rollouts as without pruning", 0),
};

/* Computed relative to the first reward, so that the deviations of equal rewards are exactly 0. */
static void group_deviations(const struct ranked *r, int64_t n, double *value)
{
    double shift = 0;
    for (int64_t j = 0; j < n; j++) shift += r[j].value - r[0].value;
    for (int64_t j = 0; j < n; j++) value[r[j].index] = fabs(r[j].value - r[0].value - shift / (double)n);
}

/* Returns the number of groups that the step lacks. */
static int64_t groups_wanted(const struct settings *s, const tare_batch *groups)
{
    const int64_t all = (int64_t)floor((double)s->prompts / (1 - s->v[P_PRUNING].f) + 1e-9);
    const int64_t have = groups->n_groups + groups->n_before;
    return s->v[P_FILL].i && all > have ? all - have : 0;
}

static tare_status keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    const struct settings *s = self;
    struct subset x;
    out->extra_groups = groups_wanted(s, groups);
    const tare_status status = subset_new(s->host, groups, &x, error);
    if (status) return status;
    for (int64_t m = 0; m < groups->n_groups; m++) {
        int64_t n = subset_rank(groups, m, groups->reward, x.rank);
        if (!n) continue;
        group_deviations(x.rank, n, x.value);
        n = subset_rank(groups, m, x.value, x.rank);
        /* 10 (1 - 0.9) is 1 */
        const int64_t k = (int64_t)floor((double)n * (1 - s->v[P_PRUNING].f) + 1e-9);
        for (int64_t j = k < 1 ? 1 : k; j < n; j++) out->fate[x.rank[j].index] = TARE_FATE_COUNTED;
    }
    subset_free(&x);
    return TARE_OK;
}

CURRICULUM_STATELESS("cppo", "the loss uses the rollouts of a group that deviate most from its mean", ABOUT("arXiv 2503.22342"),
                     W_COUNT, .keep = keep)
