/* james_stein: a group's mean, shrunk towards the mean of the batch's other prompts, as the
 * baseline.
 *
 * n prompts; group i has m rewards R, mean mu[i] and sample variance var[i]. The sums are without
 * prompt i, and without rollout j where the equation excludes it:
 *
 *   local   = mean of R[i,k], k != j                                                           (10)
 *   target  = mean of mu[k], k != i                                                            (10)
 *   v       = mean of var[k]/m, k != i              sampling variance of a group's mean      (13)
 *   s       = mean of (mu[k] - target)^2, k != i    variance of the prompts' means           (14)
 *   lambda  = (n-1)/n  v / (v + s)                                                             (15)
 *   A[i,j]  = R[i,j] - (1 - lambda) local - lambda target                                      (16)
 *
 * Zeng, Zhou, Arora and Zanette 2025, "Shrinking the Variance: Shrinkage Baselines for
 * Reinforcement Learning with Verifiable Rewards", section 3.3 (arXiv 2511.03710v1). No baseline
 * depends on the reward that it is subtracted from.
 *
 * Cases that the paper leaves open: where v + s is 0, and for a single prompt, lambda is 0 (rloo);
 * a group of one has no local mean, its baseline is the target (A = 0 when it is the only prompt),
 * and it does not contribute to v. correction = false leaves (n-1)/n out. The reported confidence
 * is lambda. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>
#include <stdbool.h>

enum { P_CORRECTION, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_CORRECTION] = TARE_BOOL_PARAM("correction", "true", "the factor (n-1)/n of equation 15", 0),
};

enum { PROMPTS, MEANS, SQUARES, NOISY, NOISE, SUMS };

PREPARES(SUMS)

/* Returns the variance of the mean of a group of two or more. */
static double noise_of(const double *R, int64_t n, double mu)
{
    return n > 1 ? group_variance(R, n, mu, 1) / (double)n : 0;
}

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int64_t first = batch->group_begin[group], n = batch->group_begin[group + 1] - first;
    const double *R = batch->reward + first, mu = group_mean(R, n);
    (void)self, (void)error;
    sum[PROMPTS] += 1;
    sum[MEANS] += mu;
    sum[SQUARES] += mu * mu;
    sum[NOISY] += n > 1;
    sum[NOISE] += noise_of(R, n, mu);
    return TARE_OK;
}

struct shrinkage {
    double target, lambda;
};

/* Computes equations 10 to 15 for a group, from the sums of all groups and the group's own share of
 * them. */
static struct shrinkage shrink_mean(const double *sum, double mu, double noise, bool alone, bool correction)
{
    const double others = sum[PROMPTS] - 1, noisy = sum[NOISY] - !alone;
    if (others < 1) return (struct shrinkage){mu, 0};
    const double target = (sum[MEANS] - mu) / others;
    if (alone) return (struct shrinkage){target, 1};
    const double v = noisy > 0 ? fmax(sum[NOISE] - noise, 0) / noisy : 0;
    double s = (sum[SQUARES] - mu * mu) / others - target * target;
    if (s < 1e-13 * target * target) s = 0; /* only rounding */
    const double lambda = v + s > 0 ? v / (v + s) : 0;
    return (struct shrinkage){target, correction ? others / sum[PROMPTS] * lambda : lambda};
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first, mu = group_mean(R, n);
        const struct shrinkage s = shrink_mean(prepared, mu, noise_of(R, n, mu), n < 2, v[P_CORRECTION].i);
        for (int64_t i = 0; i < n; i++) {
            const double local = n > 1 ? mu - (R[i] - mu) / (double)(n - 1) : mu;
            out->advantage[first + i] = R[i] - (1 - s.lambda) * local - s.lambda * s.target;
        }
        out->baseline[m] = (1 - s.lambda) * mu + s.lambda * s.target;
        out->confidence[m] = s.lambda;
    }
    return TARE_OK;
}

STATELESS("james_stein", "rewards minus their group's mean, shrunk towards the batch's other prompts",
          "arXiv 2511.03710, equations 10 to 16", .sizes = sizes, .prepare = prepare, .compute = compute)
