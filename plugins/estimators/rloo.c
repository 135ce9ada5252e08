/* rloo: rewards minus the mean of the other rollouts of their group.
 *
 *   A[i] = R[i] - (sum_j R[j] - R[i]) / (n - 1)  =  n/(n-1) (R[i] - mu)
 *          R: rewards of one group, n rollouts; mu: their mean
 *
 * Kool et al. 2019, "Buy 4 REINFORCE Samples, Get a Baseline for Free!"; Ahmadian et al. 2024,
 * "Back to Basics" (arXiv 2402.14740).
 *
 * The second form is used: it never subtracts two nearly equal sums, so a group of equal rewards
 * has A exactly 0. A group of one has no other rollout: A = 0. It has no scale; the reported
 * baseline is mu. convention verl (AReaL): a group of one has its reward. whiten: A -> (A - mean) /
 * (deviation + 1e-4) over the batch (TRL's normalize_advantages). */
#include "common/estimator.h"
#include "common/group.h"
#include "common/whiten.h"

#include <math.h>

enum { P_DELTA, P_CONVENTION, P_WHITEN, P_COUNT };
enum { PAPER, VERL };
static const char *const CONVENTIONS[] = {"paper", "verl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-8", "accepted so that a configuration can change its estimator in one line; it has no effect",
                         0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN),
    [P_CONVENTION] =
        TARE_CHOICE_PARAM("convention", "paper", "advantage in a group of one: 0 (paper), or its reward (verl)", CONVENTIONS, 0),
    [P_WHITEN] = TARE_BOOL_PARAM("whiten", "false", "whiten the advantages over the batch", 0),
};

/* Computes A before whitening, and the group's mean. */
static double leave_one_out(const tare_value *v, const double *R, int64_t n, int64_t i, double mu)
{
    if (n == 1) return v[P_CONVENTION].i == VERL ? R[0] : 0;
    return (double)n / (double)(n - 1) * (R[i] - mu);
}

/* Writes the sums over the batch, for whiten only: N, S1, S2 of A. */
PREPARES(v[P_WHITEN].i ? WHITEN_SUMS : 0)

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int64_t first = batch->group_begin[group], n = batch->group_begin[group + 1] - first;
    const double *R = batch->reward + first, mu = group_mean(R, n);
    const tare_value *v = self;
    (void)error;
    if (v[P_WHITEN].i)
        for (int64_t i = 0; i < n; i++) {
            const double A = leave_one_out(v, R, n, i, mu);
            sum[WHITEN_N] += 1;
            sum[WHITEN_S1] += A;
            sum[WHITEN_S2] += A * A;
        }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    double mean = 0, divisor = 1;
    (void)error;
    if (v[P_WHITEN].i && prepared[WHITEN_N] > 0) {
        const double N = prepared[WHITEN_N];
        mean = prepared[WHITEN_S1] / N;
        divisor = (N > 1 ? sqrt(fmax(prepared[WHITEN_S2] - prepared[WHITEN_S1] * mean, 0) / (N - 1)) : 0) + 1e-4;
    }
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first, mu = group_mean(R, n);
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = (leave_one_out(v, R, n, i, mu) - mean) / divisor;
        out->baseline[m] = mu;
    }
    return TARE_OK;
}

STATELESS("rloo", "rewards minus the mean of the other rollouts", "arXiv 2402.14740", .sizes = sizes, .prepare = prepare,
          .compute = compute)
