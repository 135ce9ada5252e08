/* gfpo: of each group the shortest rollouts, or those with the most reward for a token.
 *
 *   S = the `keep` judged rollouts with the least length                    by = length
 *       the `keep` judged rollouts with the largest R_i / length            by = efficiency
 *
 * Of equal ones the earlier is taken. The estimator sees S alone, so its means and deviations are those of S, and the others get no
 * advantage (equation 2). Right or wrong makes no difference for `length`: a group of which only long answers are right keeps the wrong
 * ones. Take a large rollout.group_size.
 *
 * Shrivastava et al. 2025, "Sample More to Think Less: Group Filtered Policy Optimization for Concise Reasoning" (arXiv 2508.09726). Their
 * adaptive variant, which keeps more rollouts of harder questions, is not here.
 */
#include "common/curriculum.h"
#include "common/subset.h"

enum { P_KEEP, P_BY, P_COUNT };
enum { LENGTH, EFFICIENCY };
static const char *const BY[] = {"length", "efficiency", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_KEEP] = PARAM_INT("keep", "4", "k, how many rollouts of a group are kept; all of a smaller one", 1, 1e6),
    [P_BY] = PARAM_CHOICE("by", "length", "length: the shortest; efficiency: the most reward for a token", BY),
};

static tare_status keep(const void *self, const tare_groups *groups, uint8_t *fate, int64_t *replace, tare_error *error)
{
    const struct settings *s = self;
    struct subset x;
    (void)replace;
    const tare_status status = subset_new(s->host, groups, &x, error);
    if (status) return status;
    for (int64_t i = 0; i < groups->n_rollouts; i++) {
        const double length = fmax((double)groups->length[i], 1);
        x.value[i] = s->v[P_BY].i == LENGTH ? -length : groups->reward[i] / length;
    }
    for (int64_t m = 0; m < groups->n_groups; m++) {
        const int64_t n = subset_rank(groups, m, x.value, x.rank);
        for (int64_t j = s->v[P_KEEP].i; j < n; j++) fate[x.rank[j].rollout] = TARE_ROLLOUT_LEFT_OUT;
    }
    subset_free(&x);
    return TARE_OK;
}

CURRICULUM_STATELESS("gfpo", "the shortest rollouts of a group, or those with the most reward for a token",
                     "arXiv 2508.09726, equation 2", .keep = keep)
