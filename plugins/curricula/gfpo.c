/* gfpo: the shortest rollouts of each group, or those with the highest reward per token.
 *
 *   S = the k verified rollouts with the least length                    by = length
 *       the k verified rollouts with the largest R_i / length            by = efficiency
 *
 *   k = keep
 *       with adaptive = true: keep, 3/4 keep or 1/2 keep (rounded up), for a group whose mean
 *       reward is at most the median of the groups of earlier steps, at most their upper quartile,
 *       or above it. In the first step: keep
 *
 * Among equal rollouts the earlier one is chosen. The estimator sees S alone, so its means and
 * deviations are those of S, and the other rollouts get no advantage. `length` ignores correctness:
 * a group in which only long answers are correct keeps wrong ones. Use a large rollout.group_size.
 *
 * Shrivastava et al. 2025, "Sample More to Think Less: Group Filtered Policy Optimization for
 * Concise Reasoning" (arXiv 2508.09726). Their adaptive variant learns from more rollouts of harder
 * questions: 8 of 16 for a very hard and a hard one, 6 for a medium one, 4 for an easy one, which
 * is keep = 8 here. Difference: they track the means of all groups so far with a t-digest, which
 * approximates their quartiles; here the quartiles are exact over the last `memory` groups, so that
 * they follow the policy and a resumed run is bit-identical. */
#include "common/curriculum.h"
#include "common/subset.h"

#include <stdlib.h>

enum { P_KEEP, P_BY, P_ADAPTIVE, P_MEMORY, P_COUNT };
enum { LENGTH, EFFICIENCY };
static const char *const BY[] = {"length", "efficiency", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_KEEP] =
        TARE_INT_PARAM("keep", "4", "k, the number of rollouts of a group that are kept; a smaller group is kept whole", 1, 1e6, 0),
    [P_BY] = TARE_CHOICE_PARAM("by", "length", "length: the shortest; efficiency: the highest reward per token", BY, 0),
    [P_ADAPTIVE] = TARE_BOOL_PARAM("adaptive", "false",
                                   "keep fewer rollouts of easier questions: 3/4 of `keep`, and 1/2 of it for the easiest quarter",
                                   TARE_PARAM_LOCKED_ON_RESUME),
    [P_MEMORY] = TARE_INT_PARAM("memory", "1024", "number of groups of earlier steps that define easy questions", 4, 65536, 0),
};

/* mean: [n] mean rewards of the last groups, the oldest first. */
struct gfpo {
    const tare_host *host;
    const tare_value *v;
    double *mean;
    int64_t n;
};

static void destroy(void *self)
{
    struct gfpo *x = self;
    x->host->release(x->host->ctx, x->mean);
    x->host->release(x->host->ctx, x);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    const int64_t memory = setup->values[P_MEMORY].i;
    struct gfpo *x = host->alloc(host->ctx, sizeof *x, 0);
    if (!x) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *x = (struct gfpo){.host = host, .v = setup->values};
    x->mean = host->alloc(host->ctx, memory * (int64_t)sizeof *x->mean, 0);
    if (!x->mean) {
        host->release(host->ctx, x);
        return tare_fail(error, TARE_E_NOMEM, "no memory for %lld groups", (long long)memory);
    }
    *self = x;
    return TARE_OK;
}

/* Returns false if no rollout of the group has a verdict. */
static int mean_reward(const tare_batch *groups, int64_t m, double *mean)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = groups->group_begin[m]; i < groups->group_begin[m + 1]; i++) {
        if (!has_verdict(groups, i)) continue;
        sum += groups->reward[i];
        n++;
    }
    *mean = n ? sum / (double)n : 0;
    return n > 0;
}

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Computes median and upper quartile of the remembered means. Without any, they are infinite. */
static tare_status mean_quartiles(const struct gfpo *x, double cut[2], tare_error *error)
{
    cut[0] = cut[1] = INFINITY;
    if (!x->v[P_ADAPTIVE].i || !x->n) return TARE_OK;
    double *sorted = x->host->alloc(x->host->ctx, x->n * (int64_t)sizeof *sorted, 0);
    if (!sorted) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld groups", (long long)x->n);
    memcpy(sorted, x->mean, (size_t)x->n * sizeof *sorted);
    qsort(sorted, (size_t)x->n, sizeof *sorted, smaller_first);
    cut[0] = sorted[(x->n - 1) / 2];
    cut[1] = sorted[3 * (x->n - 1) / 4];
    x->host->release(x->host->ctx, sorted);
    return TARE_OK;
}

static int64_t kept_rollouts(const struct gfpo *x, const tare_batch *groups, int64_t m, const double cut[2])
{
    const int64_t keep = x->v[P_KEEP].i;
    double mean;
    if (!mean_reward(groups, m, &mean) || mean <= cut[0]) return keep;
    return mean <= cut[1] ? (3 * keep + 3) / 4 : (keep + 1) / 2;
}

static tare_status keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    const struct gfpo *g = self;
    struct subset x;
    double cut[2];
    tare_status status = mean_quartiles(g, cut, error);
    if (!status) status = subset_new(g->host, groups, &x, error);
    if (status) return status;
    for (int64_t i = 0; i < groups->n_rollouts; i++) {
        const double length = fmax((double)groups->length[i], 1);
        x.value[i] = g->v[P_BY].i == LENGTH ? -length : groups->reward[i] / length;
    }
    for (int64_t m = 0; m < groups->n_groups; m++) {
        const int64_t n = subset_rank(groups, m, x.value, x.rank);
        for (int64_t j = kept_rollouts(g, groups, m, cut); j < n; j++) out->fate[x.rank[j].index] = TARE_FATE_LEFT_OUT;
    }
    subset_free(&x);
    return TARE_OK;
}

static tare_status apply(void *self, const tare_batch *groups, tare_error *error)
{
    struct gfpo *x = self;
    (void)error;
    for (int64_t m = 0; x->v[P_ADAPTIVE].i && m < groups->n_groups; m++) {
        double mean;
        if (!mean_reward(groups, m, &mean)) continue;
        if (x->n == x->v[P_MEMORY].i) memmove(x->mean, x->mean + 1, (size_t)--x->n * sizeof *x->mean);
        x->mean[x->n++] = mean;
    }
    return TARE_OK;
}

/* Without adaptive there is no state. */
static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct gfpo *x = self;
    (void)error;
    if (!x->v[P_ADAPTIVE].i) return TARE_OK;
    const tare_status status = tare_put(out, &x->n, sizeof x->n);
    return status ? status : tare_put(out, x->mean, x->n * (int64_t)sizeof *x->mean);
}

/* With a shorter memory, the last means of the state are kept. */
static tare_status load_into(const struct gfpo *x, const tare_stream *in, double *mean, int64_t *kept, tare_error *error)
{
    const int64_t memory = x->v[P_MEMORY].i;
    int64_t n;
    if (tare_get(in, &n, sizeof n)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
    if (n < 0 || n > 65536) return tare_fail(error, TARE_E_CORRUPT, "the state is of %lld groups", (long long)n);
    for (int64_t k = 0; k < n; k++) {
        double one;
        if (tare_get(in, &one, sizeof one)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
        if (!isfinite(one)) return tare_fail(error, TARE_E_CORRUPT, "the mean reward of group %lld is %g", (long long)k, one);
        if (k >= n - memory) mean[(*kept)++] = one;
    }
    return TARE_OK;
}

/* A state that is refused does not change the old one. */
static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct gfpo *x = self;
    const tare_host *h = x->host;
    int64_t kept = 0;
    if (!x->v[P_ADAPTIVE].i) return TARE_OK;
    double *mean = h->alloc(h->ctx, x->v[P_MEMORY].i * (int64_t)sizeof *mean, 0);
    if (!mean) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld groups", (long long)x->v[P_MEMORY].i);
    const tare_status status = load_into(x, in, mean, &kept, error);
    h->release(h->ctx, status ? mean : x->mean);
    if (status) return status;
    x->mean = mean;
    x->n = kept;
    return TARE_OK;
}

CURRICULUM("gfpo", "the shortest rollouts of a group, or those with the highest reward per token", ABOUT("arXiv 2508.09726"),
           W_COUNT, 1, .save = save, .load = load, .keep = keep, .apply = apply)
