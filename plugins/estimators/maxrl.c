/* maxrl: rewards relative to their group's mean: the gradient of the log of the success
 * probability, to first order.
 *
 *   A[i] = (R[i] - mu) / mu   0 for the whole group where mu <= 0
 *          R: rewards of one group; mu: their mean
 *
 * Tajwar et al. 2026, "Maximum Likelihood Reinforcement Learning" (MaxRL, arXiv 2602.02710), as in
 * prime-rl.
 *
 * convention paper (prime-rl): as above. convention skyrl: (R[i] - mu) / (mu + 1e-6) regardless of
 * the sign of mu, and a group of one gets its reward; a negative mean flips the sign of the
 * advantages. Meant for rewards that are not negative. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>
#include <stdbool.h>

enum { P_CONVENTION, P_COUNT };

enum { PAPER, PRIME_RL, SKYRL };
static const char *const CONVENTIONS[] = {"paper", "prime-rl", "skyrl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_CONVENTION] = TARE_CHOICE_PARAM(
        "convention", "paper", "paper, prime-rl: 0 where the mean is not above 0; skyrl: divides by mean + 1e-6 in every case",
        CONVENTIONS, 0),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mean = group_mean(R, n);
        const bool skyrl = v[P_CONVENTION].i == SKYRL, alone = skyrl && n == 1;
        const double b = alone ? 0 : mean, divisor = alone ? 1 : skyrl ? mean + 1e-6 : mean;
        for (int64_t i = 0; i < n; i++)
            out->advantage[first + i] = divisor > 0 || (skyrl && divisor != 0) ? (R[i] - b) / divisor : 0;
        out->baseline[m] = b;
    }
    return TARE_OK;
}

STATELESS("maxrl", "rewards relative to their group's mean", "MaxRL, arXiv 2602.02710, as in prime-rl", .compute = compute)
