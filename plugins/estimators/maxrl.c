/* maxrl: rewards relative to their group's mean: the gradient of the log of the success probability, to first order.
 *
 *   A[i] = (R[i] - mu) / mu          0 for the whole group where mu <= 0            R: rewards of one group; mu: their mean
 *
 * "Maximum Likelihood Reinforcement Learning" (MaxRL), as in prime-rl.
 *
 * convention paper (prime-rl): as above. convention skyrl: (R[i] - mu) / (mu + 1e-6) whatever the sign of mu, and a group of one gets
 * its reward; a negative mean turns the sign of the advantages round. Made for rewards that are not negative.
 */
#include "common/group.h"

#include <math.h>
#include <stdbool.h>
#include <tare/sdk.h>

enum { P_CONVENTION, P_COUNT };

enum { PAPER, PRIME_RL, SKYRL };
static const char *const CONVENTIONS[] = {"paper", "prime-rl", "skyrl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_CONVENTION] = {"convention", "paper",
                      "paper, prime-rl: 0 where the mean is not above 0; skyrl: divides by mean + 1e-6 in every case", NULL,
                      CONVENTIONS, 0, 0, TARE_CHOICE, 0},
};

static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error)
{
    (void)host, (void)n_clusters, (void)error;
    *self = (void *)(uintptr_t)values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

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
        out->scale[m] = NAN;
        out->confidence[m] = 0;
    }
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_ESTIMATOR,
    .name = "maxrl",
    .version = "1.0.0",
    .summary = "rewards relative to their group's mean",
    .license = "Apache-2.0",
    .source = "MaxRL, as in prime-rl",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
