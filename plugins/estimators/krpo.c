/* krpo: a Kalman filter's estimate of the mean reward as the baseline, its uncertainty as the
 * scale.
 *
 *   predict:  P- = P + Q
 *   update:   K = P- / (P- + V),   x = x + K (z - x),   P = (1 - K) P-
 *                 Q: process_var, V: meas_var, z: an observed reward
 *   A[i] = (R[i] - x) / (sqrt(P) + delta)
 *
 * Wang et al. 2025, "Kalman Filter Enhanced GRPO for Reinforcement Learning-Based Language Model
 * Reasoning" (arXiv 2505.07527).
 *
 * order = released: the paper's algorithm, as in the released code. The filter starts again in
 * every group and runs over its rollouts in their order; the advantage of a rollout uses the filter
 * that has just observed it. So A depends on the order of the rollouts, and an all-correct group
 * has positive advantages. No state. order = time (default): not the paper's. One filter for each
 * cluster (without a codebook, one for all prompts) runs over the training steps. A uses the state
 * before the step; z is the mean reward of the cluster's rollouts of the step, regardless of their
 * number, with the same V. The order of rollouts does not matter. With the defaults P converges to
 * 3.1e-4, so that A tends to 57 (R - x): use it with train.max_grad_norm. A prompt without a
 * cluster, in a run that has clusters, uses the filter before all observations, and does not update
 * any filter. */
#include "common/estimator.h"
#include "common/state.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { P_ORDER, P_PROCESS_VAR, P_MEAS_VAR, P_INIT_MEAN, P_INIT_VAR, P_DELTA, P_COUNT };

enum { TIME, RELEASED };
static const char *const ORDERS[] = {"time", "released", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_ORDER] = TARE_CHOICE_PARAM(
        "order", "time",
        "time: the filter runs over training steps; released: over the rollouts of a group, as in the released code", ORDERS, 0),
    [P_PROCESS_VAR] = TARE_FLOAT_PARAM("process_var", "1e-5", "Q, the variance of the mean's change between two observations", 0,
                                       TARE_NO_MAX, TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE),
    [P_MEAS_VAR] = TARE_FLOAT_PARAM("meas_var", "0.01", "V, variance of an observation", 0, TARE_NO_MAX,
                                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE),
    [P_INIT_MEAN] = TARE_UNIT_PARAM("init_mean", "0", "x before the first observation", "reward", TARE_NO_MIN, TARE_NO_MAX, 0),
    [P_INIT_VAR] = TARE_FLOAT_PARAM("init_var", "1", "P before the first observation", 0, TARE_NO_MAX,
                                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-8", "delta, added to the scale", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_CLUSTER, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_CLUSTER] = {.name = "cluster", .axis = TARE_AXIS_GROUP, .type = TARE_I32, .flags = TARE_WANT_OPTIONAL, .width = 1},
};

struct filter {
    double x, P;
};
struct krpo {
    const tare_host *host;
    const tare_value *v;
    bool clusters;       /* number of filters in the run */
    int64_t K;           /* filters */
    struct filter *each; /* [K] */
};

static struct filter observe_reward(const tare_value *v, struct filter f, double z)
{
    const double P = f.P + v[P_PROCESS_VAR].f, gain = P / (P + v[P_MEAS_VAR].f);
    return (struct filter){f.x + gain * (z - f.x), (1 - gain) * P};
}

static void destroy(void *self)
{
    struct krpo *s = self;
    s->host->release(s->host->ctx, s->each);
    s->host->release(s->host->ctx, s);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    struct krpo *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory for the estimator");
    s->host = host;
    s->v = setup->values;
    s->clusters = setup->n_clusters > 0;
    s->K = s->clusters ? setup->n_clusters : 1;
    s->each = host->alloc(host->ctx, s->K * (int64_t)sizeof *s->each, 0);
    if (!s->each) {
        destroy(s);
        return tare_fail(error, TARE_E_NOMEM, "no memory for %lld filters", (long long)setup->n_clusters);
    }
    for (int64_t k = 0; k < s->K; k++) s->each[k] = (struct filter){s->v[P_INIT_MEAN].f, s->v[P_INIT_VAR].f};
    *self = s;
    return TARE_OK;
}

/* Returns the filter of a group: its cluster's, the only one in a run without clusters, or -1. */
static int64_t filter_of(const struct krpo *s, const tare_batch *batch, int64_t group)
{
    const int32_t *cluster = TARE_COLUMN(batch, W_CLUSTER, int32_t), k = cluster ? cluster[group] : -1;
    return !s->clusters ? 0 : k >= 0 && k < s->K ? k : -1;
}

static void score_group(const tare_value *v, struct filter f, double R, double *A)
{
    *A = (R - f.x) / (sqrt(f.P) + v[P_DELTA].f);
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct krpo *s = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const int64_t k = s->v[P_ORDER].i == RELEASED ? -1 : filter_of(s, batch, m);
        struct filter f = k < 0 ? (struct filter){s->v[P_INIT_MEAN].f, s->v[P_INIT_VAR].f} : s->each[k];
        for (int64_t i = 0; i < n; i++) {
            if (s->v[P_ORDER].i == RELEASED) f = observe_reward(s->v, f, R[i]);
            score_group(s->v, f, R[i], &out->advantage[first + i]);
        }
        out->baseline[m] = f.x;
        out->scale[m] = sqrt(f.P);
    }
    return TARE_OK;
}

/* ---------------------------------------- the filters over time; sums: [K, 2] of R and 1 */

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->collect = 2 * ((const struct krpo *)self)->K;
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int64_t k = filter_of(self, batch, group);
    (void)error;
    if (k < 0) return TARE_OK;
    double *S = sum + 2 * k;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        S[0] += batch->reward[i];
        S[1] += 1;
    }
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct krpo *s = self;
    (void)error;
    if (s->v[P_ORDER].i == RELEASED) return TARE_OK;
    for (int64_t k = 0; k < s->K; k++)
        if (update->collected[2 * k + 1] > 0)
            s->each[k] = observe_reward(s->v, s->each[k], update->collected[2 * k] / update->collected[2 * k + 1]);
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct krpo *s = self;
    (void)error;
    return state_write(out, s->K, s->each, s->K * (int64_t)sizeof *s->each);
}

static tare_status check(const void *entry, int64_t k, tare_error *error)
{
    const struct filter *f = entry;
    if (!isfinite(f->x) || !(f->P >= 0) || !isfinite(f->P))
        return tare_fail(error, TARE_E_CORRUPT, "filter %lld makes no sense", (long long)k);
    return TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct krpo *s = self;
    const struct state_entries of = {s->K, sizeof *s->each, "filters", check};
    return state_load(s->host, in, &of, s->each, error);
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    const struct krpo *s = self;
    (void)error;
    tare_status status = state_numbers(out, s->clusters ? "{\"per_cluster\":{" : "{", "x", &s->each->x, s->K, 2);
    if (!status) status = state_numbers(out, ",", "P", &s->each->P, s->K, 2);
    return status ? status : tare_print(out, s->clusters ? "}}" : "}");
}

STATEFUL("krpo", "a Kalman filter's mean as the baseline and its uncertainty as the scale", "arXiv 2505.07527", .create = create,
         .destroy = destroy, .save = save, .load = load, .sizes = sizes, .compute = compute, .collect = collect, .apply = apply,
         .describe = describe)
