/* gdpo: every component of the reward is standardised separately within its group; the weighted sum
 * of the components is whitened over the batch.
 *
 *   x[i] = sum_c weight[c] (R[i,c] - mu[c]) / (sigma[c] + delta)
 *          mu, sigma: mean and sample deviation of component c over the group
 *   A[i] = (x[i] - mean) / (deviation + delta)                      over the batch
 *
 * Liu et al. 2026, "GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward
 * RL Optimization" (arXiv 2601.05242).
 *
 * The trainers differ: trl whitens over rollouts with their sample deviation (delta 1e-4 in both
 * places), nemo over rollouts with delta 0 (and 1e-6 in the group), verl over tokens as in
 * common/whiten.h (1e-6), where a group of one has its rewards / (1 + delta). nemo is NeMo-RL
 * without its leave-one-out baseline, which is on by default there.
 *
 * weights: one number for each component, separated by commas; empty: all 1. The components arrive
 * with the weights of verifier.plugins, which standardising cancels again: "math:1 format:0.1"
 * counts both equally unless weights = 1,0.1 (only delta depends on them, and a negative weight
 * flips the sign). verifier.overlong adds a component, the last one, which counts like the others:
 * weights = 1,1,0 leaves it out. */
#include "common/estimator.h"
#include "common/group.h"
#include "common/whiten.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { P_WEIGHTS, P_CONVENTION, P_COUNT };

enum { TRL, NEMO, VERL };
static const char *const CONVENTIONS[] = {"trl", "nemo", "verl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_WEIGHTS] = TARE_STRING_PARAM("weights", "", "weight of each component, separated by commas; empty: all 1", 0),
    [P_CONVENTION] = TARE_CHOICE_PARAM("convention", "trl", "the trainer whose deviations are computed", CONVENTIONS, 0),
};

enum { W_COMPONENT, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_COMPONENT] = {.name = "component", .axis = TARE_AXIS_ROLLOUT, .type = TARE_F64},
};

enum { MAX_COMPONENTS = 64 };
struct gdpo {
    const tare_host *host;
    int64_t convention, n_weights;
    double delta, weight[MAX_COMPONENTS];
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    const tare_value *values = setup->values;
    struct gdpo *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory for the estimator");
    s->host = host;
    s->convention = values[P_CONVENTION].i;
    s->delta = s->convention == TRL ? 1e-4 : 1e-6;
    *self = s;
    for (const char *at = values[P_WEIGHTS].s; *at;) {
        double x;
        at += strspn(at, " ");
        const char *end = at + strcspn(at, ",");
        if (s->n_weights == MAX_COMPONENTS || !tare_read_number(at, end - at, &x) || !isfinite(x)) {
            host->release(host->ctx, s);
            return tare_fail(error, TARE_E_CONFIG, "weights: '%s': expected at most %d numbers, separated by commas",
                             values[P_WEIGHTS].s, MAX_COMPONENTS);
        }
        s->weight[s->n_weights++] = x;
        at = *end ? end + 1 : end;
    }
    return TARE_OK;
}

static void destroy(void *self)
{
    struct gdpo *s = self;
    s->host->release(s->host->ctx, s);
}

static tare_status check_components(const struct gdpo *s, const tare_batch *batch, tare_error *error)
{
    const int64_t C = batch->column[W_COMPONENT].width;
    if (s->n_weights && s->n_weights != C)
        return tare_fail(error, TARE_E_CONFIG, "%lld weights, and the reward has %lld components", (long long)s->n_weights,
                         (long long)C);
    return TARE_OK;
}

/* Computes x of rollout i of a group. */
static double decoupled_sum(const struct gdpo *s, const tare_batch *batch, int64_t first, int64_t n, int64_t i)
{
    const int64_t C = batch->column[W_COMPONENT].width;
    double x = 0;
    for (int64_t c = 0; c < C; c++) {
        const double *R = TARE_COLUMN(batch, W_COMPONENT, double) + first * C + c; /* rollout j: R[j C] */
        double shift = 0, spread = 0;
        for (int64_t j = 0; j < n; j++) shift += R[j * C] - R[0];
        const bool alone = n == 1 && s->convention == VERL;
        const double mu = alone ? 0 : R[0] + shift / (double)n;
        for (int64_t j = 0; j < n; j++) spread += (R[j * C] - mu) * (R[j * C] - mu);
        const double sigma = alone ? 1 : n > 1 ? sqrt(spread / (double)(n - 1)) : 0;
        x += (s->n_weights ? s->weight[c] : 1) * (R[i * C] - mu) / (sigma + s->delta);
    }
    return x;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->prepare = WHITEN_SUMS;
    return TARE_OK;
}

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const struct gdpo *s = self;
    const int64_t first = batch->group_begin[group], n = batch->group_begin[group + 1] - first;
    const tare_status status = check_components(s, batch, error);
    for (int64_t i = 0; i < n && !status; i++) {
        const double L = s->convention == VERL ? (double)batch->length[first + i] : 1;
        const double x = decoupled_sum(s, batch, first, n, i);
        sum[WHITEN_N] += L;
        sum[WHITEN_S1] += L * x;
        sum[WHITEN_S2] += L * x * x;
    }
    return status;
}

/* (x - mean) * rate */
static struct whiten batch_scale(const struct gdpo *s, const double *sum)
{
    if (s->convention == VERL) return whiten_of(sum, WHITEN_VERL);
    const double N = sum[WHITEN_N], mean = N > 0 ? sum[WHITEN_S1] / N : 0;
    double spread = sum[WHITEN_S2] - sum[WHITEN_S1] * mean;
    if (spread < 1e-13 * sum[WHITEN_S2]) spread = 0;
    const double deviation = N > 1 ? sqrt(spread / (N - 1)) : 0;
    if (s->convention == TRL) return (struct whiten){mean, 1 / (deviation + s->delta)};
    return (struct whiten){mean, deviation > 0 ? 1 / deviation : 1};
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct gdpo *s = self;
    const struct whiten w = batch_scale(s, prepared);
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        for (int64_t i = 0; i < n; i++) out->advantage[first + i] = (decoupled_sum(s, batch, first, n, i) - w.mean) * w.rate;
        out->baseline[m] = group_mean(R, n);
    }
    return TARE_OK;
}

ESTIMATOR_END("gdpo", "components of the reward standardised separately, their weighted sum whitened", "arXiv 2601.05242",
              TARE_WANTS(WANTS, W_COUNT), .create = create, .destroy = destroy, .sizes = sizes, .prepare = prepare,
              .compute = compute)
