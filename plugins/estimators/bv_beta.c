/* bv_beta: BV-Blend with a Beta posterior instead of the moving moments. A variant that is not in
 * the paper.
 *
 * The history of cluster k is a Beta distribution of its success rate: prior a_0, b_0, and decayed
 * counts S (successes), F (failures).
 *
 *   a = a_0 + S,  b = b_0 + F,  mu_hist = a / (a + b)
 *   v_hist     = mu_hist (1 - mu_hist)
 *                variance of one reward; never 0, because the prior keeps mu_hist inside (0, 1)
 *   SEM        = sqrt(v_hist / (a + b + 1))
 *                deviation of the posterior of the rate; falls as history grows
 *   w          = exp(-SEM / T),  0 for a prompt without a cluster
 *   b          = w mu_hist + (1-w) mu_G,   s = sqrt(w v_hist + (1-w) sigma_G^2)
 *   A[i]       = (R[i] - b) / (s + delta)      as bv_blend
 *   afterwards   S = rho S + sum R,  F = rho F + sum (1 - R)
 *                    over the cluster's rollouts, for every cluster that occurred
 *
 * Effect: a cluster whose last batches were all wrong keeps v_hist above about a_0 b_0 / (a + b)^2,
 * so a rare success gets an advantage of about sqrt((a + b) / a_0), not thousands. The paper's
 * N_eff, an average of batch sizes that never grows, becomes a + b, a count of all observations.
 *
 * Limits: rewards must be success rates. A reward below 0 counts as 0 and one above 1 as 1 in the
 * history, but not in A: with rewards of -1 and 1, a cluster that is always wrong has mu_hist near
 * 0, and each wrong rollout gets A = -12 (batches of 8, rho 0.9). A cluster without history has the
 * prior's w = exp(-sqrt(0.25/2)/0.1) = 0.029, not 0. The rollouts of a prompt count as if they were
 * separate prompts, so SEM is too small where prompts differ; counts fade only when the cluster
 * occurs. eb_blend has neither limit. */
#include "common/blend.h"
#include "common/estimator.h"
#include "common/state.h"

#include <math.h>
#include <string.h>

enum { P_CLUSTERS, P_DDOF, P_DELTA, P_RHO, P_PRIOR_A, P_PRIOR_B, P_TEMPERATURE, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_CLUSTERS] = TARE_INT_PARAM("clusters", "0", "number of clusters K with a history; 0: the number in the codebook", 0, 1e7,
                                  TARE_PARAM_LOCKED_ON_RESUME),
    [P_DDOF] = BLEND_DDOF,
    [P_DELTA] = BLEND_DELTA,
    [P_RHO] = TARE_FLOAT_PARAM("rho", "0.9", "share of the counts that is kept from one batch to the next; 1 keeps all", 0, 1,
                               TARE_PARAM_SWEEPABLE),
    [P_PRIOR_A] = TARE_UNIT_PARAM("prior_a", "0.5", "a_0, successes of the prior", "rollouts", 0, TARE_NO_MAX,
                                  TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE),
    [P_PRIOR_B] = TARE_UNIT_PARAM("prior_b", "0.5", "b_0, failures of the prior", "rollouts", 0, TARE_NO_MAX,
                                  TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE),
    [P_TEMPERATURE] = BLEND_TEMPERATURE,
};

BLEND_WANTS

struct bv_beta {
    const tare_host *host;
    const tare_value *v;
    int64_t K;
    double *count; /* [K, 2]: S, F */
};

static void destroy(void *self)
{
    struct bv_beta *s = self;
    if (!s) return;
    s->host->release(s->host->ctx, s->count);
    s->host->release(s->host->ctx, s);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    const tare_value *values = setup->values;
    const int64_t K = values[P_CLUSTERS].i ? values[P_CLUSTERS].i : setup->n_clusters;
    if (K <= 0 || K < setup->n_clusters)
        return tare_fail(error, TARE_E_CONFIG,
                         "clusters is %lld and the codebook has %lld; set codebook.plugin, or clusters to at least its size",
                         (long long)values[P_CLUSTERS].i, (long long)setup->n_clusters);
    struct bv_beta *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory for the estimator");
    *s = (struct bv_beta){.host = host, .v = values, .K = K};
    s->count = host->alloc(host->ctx, 2 * K * (int64_t)sizeof(double), 64);
    if (!s->count) {
        destroy(s);
        return tare_fail(error, TARE_E_NOMEM, "no memory for the history of %lld clusters", (long long)K);
    }
    *self = s;
    return TARE_OK;
}

/* ---------------------------------------------------------------- advantages */

static struct blend_history history_of(const void *self, int32_t k)
{
    const struct bv_beta *s = self;
    if (k < 0) return (struct blend_history){0, 0, 0};
    const double a = s->v[P_PRIOR_A].f + s->count[2 * k], b = s->v[P_PRIOR_B].f + s->count[2 * k + 1];
    const double mu = a / (a + b), v = mu * (1 - mu);
    return (struct blend_history){mu, v, exp(-sqrt(v / (a + b + 1)) / s->v[P_TEMPERATURE].f)};
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct bv_beta *s = self;
    (void)prepared;
    return blend_advantages(s, history_of, &(struct blend_form){.K = s->K, .ddof = s->v[P_DDOF].i, .delta = s->v[P_DELTA].f}, batch,
                            out, error);
}

/* ---------------------------------------- counts; sums: [K, 2] of min(max(R, 0), 1) and 1 */

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->collect = 2 * ((const struct bv_beta *)self)->K;
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int32_t k = TARE_COLUMN(batch, W_CLUSTER, int32_t)[group];
    (void)self, (void)error;
    if (k < 0) return TARE_OK;
    double *S = sum + 2 * (int64_t)k;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        S[0] += fmin(fmax(batch->reward[i], 0), 1);
        S[1] += 1;
    }
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct bv_beta *s = self;
    const double rho = s->v[P_RHO].f;
    (void)error;
    for (int64_t k = 0; k < s->K; k++) {
        const double successes = update->collected[2 * k], n = update->collected[2 * k + 1];
        if (!(n > 0)) continue;
        s->count[2 * k] = rho * s->count[2 * k] + successes;
        s->count[2 * k + 1] = rho * s->count[2 * k + 1] + (n - successes);
    }
    return TARE_OK;
}

/* ---------------------------------------- state: K, then S, F of each cluster */

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct bv_beta *s = self;
    (void)error;
    return state_write(out, s->K, s->count, 2 * s->K * (int64_t)sizeof(double));
}

static tare_status check(const void *entry, int64_t k, tare_error *error)
{
    const double *count = entry;
    for (int i = 0; i < 2; i++)
        if (!(count[i] >= 0) || !isfinite(count[i]))
            return tare_fail(error, TARE_E_CORRUPT, "the counts of cluster %lld make no sense", (long long)k);
    return TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct bv_beta *s = self;
    const struct state_entries of = {s->K, 2 * sizeof(double), "clusters", check};
    return state_load(s->host, in, &of, s->count, error);
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    const struct bv_beta *s = self;
    (void)error;
    tare_status status = state_numbers(out, "{\"per_cluster\":{", "successes", s->count, s->K, 2);
    if (!status) status = state_numbers(out, ",", "failures", s->count + 1, s->K, 2);
    return status ? status : tare_print(out, "}}");
}

STATEFUL("bv_beta", "BV-Blend with a Beta posterior instead of the moving moments", "a variant of BV-Blend, equations 7 to 11",
         .create = create, .destroy = destroy, .save = save, .load = load, .sizes = sizes, .compute = compute, .collect = collect,
         .apply = apply, .describe = describe)
