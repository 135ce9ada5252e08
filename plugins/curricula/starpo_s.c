/* starpo_s: the groups whose rewards have the largest standard deviation.
 *
 *   kept: the k groups with the largest sigma[m] of n,  k = max(1, floor(share n))
 *   sigma[m]: deviation (n-1) of the rewards of the verified rollouts of group m
 *
 * If deviations are equal, the earlier group is kept. Nothing replaces the others, so set rollout.prompts
 * to the number that is sampled: 64 trains on 16. The order of the rows is the plain one.
 *
 * Wang et al. 2025, "RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn Reinforcement
 * Learning" (StarPO-S, arXiv 2504.20073). Its other parts are settings: loss.kl_coef = 0, loss.clip =
 * 0.2, loss.clip_high = 0.28; the critic is left out here. */
#include "common/curriculum.h"
#include "common/subset.h"

enum { P_SHARE, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_SHARE] = TARE_FLOAT_PARAM("share", "0.25", "share of the groups that are kept, at least one", 0, 1,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

/* Returns -1 for a group without a verified rollout. Relative to the first reward, so that equal
 * rewards have no deviation. */
static double reward_deviation(const tare_batch *groups, int64_t m)
{
    double first = 0, shift = 0, squares = 0, n = 0;
    for (int64_t i = groups->group_begin[m]; i < groups->group_begin[m + 1]; i++) {
        if (!has_verdict(groups, i)) continue;
        if (n == 0) first = groups->reward[i];
        const double d = groups->reward[i] - first;
        shift += d;
        squares += d * d;
        n++;
    }
    return n > 1 ? sqrt(fmax(squares - shift * (shift / n), 0) / (n - 1)) : n - 1;
}

static tare_status keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    const struct settings *s = self;
    const int64_t M = groups->n_groups, k = (int64_t)fmax(1, floor(s->v[P_SHARE].f * (double)M + 1e-9));
    struct subset x;
    const tare_status status = subset_new(s->host, groups, &x, error);
    if (status) return status;
    for (int64_t m = 0; m < M; m++) x.rank[m] = (struct ranked){reward_deviation(groups, m), m};
    subset_sort(x.rank, M);
    for (int64_t j = k; j < M; j++)
        for (int64_t i = groups->group_begin[x.rank[j].index]; i < groups->group_begin[x.rank[j].index + 1]; i++)
            out->fate[i] = TARE_FATE_LEFT_OUT;
    subset_free(&x);
    return TARE_OK;
}

CURRICULUM_STATELESS("starpo_s", "the groups whose rewards have the largest standard deviation", ABOUT("arXiv 2504.20073"), W_COUNT,
                     .keep = keep)
