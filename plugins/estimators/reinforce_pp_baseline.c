/* reinforce_pp_baseline: rewards minus their group's mean, whitened over all tokens of the batch.
 *
 *   x[i] = R[i] - mu              R: rewards of one group; mu: their mean
 *   A[i] = (x[i] - mean) * rate
 *          mean and variance of x over the batch, a rollout counted once for each of its tokens:
 *                                 common/whiten.h
 *
 * Hu et al. 2025, "REINFORCE++", section on the baseline variant (arXiv 2501.03262).
 *
 * A group of one has x = 0 (conventions nemo, openrlhf), or its reward (conventions verl, skyrl).
 */
#include "common/estimator.h"
#include "common/group.h"
#include "common/whiten.h"

#include <math.h>

enum { P_CONVENTION, P_COUNT };

enum { VERL, SKYRL, NEMO, OPENRLHF };
static const char *const CONVENTIONS[] = {"verl", "skyrl", "nemo", "openrlhf", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_CONVENTION] = TARE_CHOICE_PARAM("convention", "verl",
                                       "the trainer whose mean, variance and value in a group of one are used", CONVENTIONS, 0),
};

/* Returns the value that is subtracted from the rewards of a group. */
static double baseline_of(const tare_value *v, const double *R, int64_t n)
{
    return n == 1 && v[P_CONVENTION].i <= SKYRL ? 0 : group_mean(R, n);
}

PREPARES(WHITEN_SUMS)

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int64_t first = batch->group_begin[group], n = batch->group_begin[group + 1] - first;
    const double mu = baseline_of(self, batch->reward + first, n);
    (void)error;
    for (int64_t i = first; i < first + n; i++) {
        const double L = (double)batch->length[i], x = batch->reward[i] - mu;
        sum[WHITEN_N] += L;
        sum[WHITEN_S1] += L * x;
        sum[WHITEN_S2] += L * x * x;
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const struct whiten w = whiten_of(prepared, v[P_CONVENTION].i);
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = baseline_of(v, R, n);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = (R[i] - mu - w.mean) * w.rate;
        out->baseline[m] = mu;
    }
    return TARE_OK;
}

STATELESS("reinforce_pp_baseline", "rewards minus their group's mean, whitened over the batch's tokens", "arXiv 2501.03262",
          .sizes = sizes, .prepare = prepare, .compute = compute)
