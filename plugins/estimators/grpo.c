/* grpo: rewards standardised within their group.
 *
 *   A[i] = (R[i] - mu) / (sigma + delta)
 *          R: rewards of one group, n rollouts; mu, sigma: their mean and deviation
 *
 * Shao et al. 2024, "DeepSeekMath", section 4.1.2 (arXiv 2402.03300); BV-Blend, equation 3.
 *
 * A group of one rollout has sigma 0 and A = 0. A group of equal rewards has A exactly 0.
 *
 * The trainers differ in the divisor (n-1: ddof 1, n: ddof 0), in delta, and in the advantage in a
 * group of one:
 *
 *   convention      ddof   delta   group of one
 *   paper           1      1e-8    0
 *   verl, skyrl     1      1e-6    R / (1 + delta)
 *   trl             1      1e-4    0
 *   openrlhf        1      1e-9    0
 *   oat             1      1e-8    0
 *   open-instruct   0      1e-8    0
 *   nemo            1      1e-6
 *   0; mean and deviation of the others of the group, and not divided where that deviation is 0
 *
 * ddof and delta, when given, override the convention's. scale = batch: sigma is the deviation of
 * all rewards of the batch (TRL's scale_rewards = batch).
 */
#include "common/estimator.h"
#include "common/group.h"
#include "common/whiten.h"

#include <math.h>
#include <stdbool.h>

enum { P_CONVENTION, P_DDOF, P_DELTA, P_SCALE, P_COUNT };
enum { PAPER, VERL, SKYRL, TRL, OPENRLHF, OAT, OPEN_INSTRUCT, NEMO };
enum { GROUP, BATCH };

static const char *const CONVENTIONS[] = {"paper", "verl", "skyrl", "trl", "openrlhf", "oat", "open-instruct", "nemo", NULL};
static const double DELTA[] = {1e-8, 1e-6, 1e-6, 1e-4, 1e-9, 1e-8, 1e-8, 1e-6};
static const char *const SCALES[] = {"group", "batch", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_CONVENTION] = TARE_CHOICE_PARAM("convention", "paper",
                                       "the trainer whose ddof, delta and advantage in a group of one are used", CONVENTIONS, 0),
    [P_DDOF] = TARE_INT_PARAM(
        "ddof", "-1",
        "degrees of freedom of sigma: 1 divides by n-1 (sample), 0 by n (population), -1 as in the convention (paper: 1)", -1, 1,
        0),
    [P_DELTA] = TARE_FLOAT_PARAM("delta", "0", "delta, added to sigma (eq. 3); 0: as in the convention (paper: 1e-8)", 0,
                                 TARE_NO_MAX, TARE_PARAM_LOG_SCALE),
    [P_SCALE] = TARE_CHOICE_PARAM("scale", "group", "sigma of the group, or of all rewards of the batch", SCALES, 0),
};

static int64_t ddof_of(const tare_value *v)
{
    return v[P_DDOF].i >= 0 ? v[P_DDOF].i : v[P_CONVENTION].i != OPEN_INSTRUCT;
}

static double delta_of(const tare_value *v)
{
    return v[P_DELTA].f > 0 ? v[P_DELTA].f : DELTA[v[P_CONVENTION].i];
}

/* For convention nemo: compares rollout i with the n-1 others. */
static double against_others(const double *R, int64_t n, int64_t i, int64_t ddof, double delta)
{
    if (n < 2) return 0;
    /* one of the others; sums relative to it are exact when the others are equal */
    const double origin = R[i ? 0 : 1];
    double shift = 0, spread = 0;
    for (int64_t j = 0; j < n; j++) shift += j == i ? 0 : R[j] - origin;
    const double mu = origin + shift / (double)(n - 1);
    for (int64_t j = 0; j < n; j++) spread += j == i ? 0 : (R[j] - mu) * (R[j] - mu);
    const double sigma = n - 1 > ddof ? sqrt(spread / (double)(n - 1 - ddof)) : 0;
    return sigma > 0 ? (R[i] - mu) / (sigma + delta) : R[i] - mu;
}

/* Writes the sums over the batch, for scale = batch only: n, S1, S2 of the rewards. */
PREPARES(v[P_SCALE].i == BATCH ? WHITEN_SUMS : 0)

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const tare_value *v = self;
    (void)error;
    if (v[P_SCALE].i == BATCH)
        for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
            sum[WHITEN_N] += 1;
            sum[WHITEN_S1] += batch->reward[i];
            sum[WHITEN_S2] += batch->reward[i] * batch->reward[i];
        }
    return TARE_OK;
}

static double batch_deviation(const double *sum, int64_t ddof)
{
    const double n = sum[WHITEN_N], spread = sum[WHITEN_S2] - sum[WHITEN_S1] * (sum[WHITEN_S1] / n);
    return n > 1 && spread > 1e-13 * sum[WHITEN_S2] ? sqrt(spread / (n - (double)ddof)) : 0;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const int64_t ddof = ddof_of(v), convention = v[P_CONVENTION].i;
    const double delta = delta_of(v);
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const bool alone = n == 1 && (convention == VERL || convention == SKYRL);
        const double mu = alone ? 0 : group_mean(R, n);
        double sigma = alone ? 1 : sqrt(group_variance(R, n, mu, ddof));
        if (v[P_SCALE].i == BATCH) sigma = batch_deviation(prepared, ddof);
        for (int64_t i = 0; i < n; i++)
            out->advantage[first + i] = convention == NEMO ? against_others(R, n, i, ddof, delta) : (R[i] - mu) / (sigma + delta);
        out->baseline[m] = mu;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS("grpo", "rewards standardised within their group", "arXiv 2402.03300, section 4.1.2", .sizes = sizes, .prepare = prepare,
          .compute = compute)
