/* pods: the rollouts of each group whose rewards spread most.
 *
 *   S = argmax over subsets of `keep` verified rollouts of  Var({R_i : i in S})
 *
 * The best subset consists of the k rollouts with the largest and the keep - k with the smallest
 * rewards, for some k, so keep + 1 subsets are tried. Of subsets with equal variance the one with k
 * nearest to keep / 2 is chosen, of equal rewards the earlier rollout. The estimator sees S alone:
 * its means and deviations are those of S, as in the paper. Use a large rollout.group_size.
 *
 * Xu, Savani, Fang and Kolter 2025, "Not All Rollouts are Useful: Down-Sampling Rollouts in LLM
 * Reinforcement Learning" (PODS, arXiv 2504.13818). */
#include "common/curriculum.h"
#include "common/subset.h"

enum { P_KEEP, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_KEEP] =
        TARE_INT_PARAM("keep", "4", "m, the number of rollouts of a group that are kept; a smaller group is kept whole", 1, 1e6, 0),
};

/* Returns n times the variance of the k first and the m - k last of r[n]. */
static double reward_spread(const struct ranked *r, int64_t n, int64_t m, int64_t k)
{
    double mean = 0, sum = 0;
    for (int64_t j = 0; j < m; j++) mean += r[j < k ? j : n - m + j].value / (double)m;
    for (int64_t j = 0; j < m; j++) {
        const double d = r[j < k ? j : n - m + j].value - mean;
        sum += d * d;
    }
    return sum;
}

static int64_t best_cut(const struct ranked *r, int64_t n, int64_t m)
{
    int64_t best = m / 2;
    double most = reward_spread(r, n, m, best);
    for (int64_t away = 1; away <= m; away++)
        for (int side = 1; side >= -1; side -= 2) {
            const int64_t k = m / 2 + side * away;
            if (k < 0 || k > m) continue;
            const double got = reward_spread(r, n, m, k);
            if (got > most * (1 + 1e-12)) { /* larger than rounding */
                most = got;
                best = k;
            }
        }
    return best;
}

static tare_status keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    const struct settings *s = self;
    const int64_t m = s->v[P_KEEP].i;
    struct subset x;
    const tare_status status = subset_new(s->host, groups, &x, error);
    if (status) return status;
    for (int64_t g = 0; g < groups->n_groups; g++) {
        const int64_t n = subset_rank(groups, g, groups->reward, x.rank);
        if (n <= m) continue;
        const int64_t k = best_cut(x.rank, n, m);
        for (int64_t j = k; j < n - m + k; j++) out->fate[x.rank[j].index] = TARE_FATE_LEFT_OUT;
    }
    subset_free(&x);
    return TARE_OK;
}

CURRICULUM_STATELESS("pods", "the rollouts of a group whose rewards spread most (max-variance down-sampling)",
                     ABOUT("arXiv 2504.13818"), W_COUNT, .keep = keep)
