/* eb_blend: a prompt's mean, shrunk towards its cluster's history by an amount that depends on the
 * spread between the cluster's prompts (empirical Bayes). A method of this project;
 * docs/mathematics.md has the derivation and its limits.
 *
 * Model: each prompt of cluster k has a mean reward; these means have mean mu and variance tau^2 in
 * the cluster, and a reward varies around its prompt's mean with variance sigma^2. For rewards of 0
 * and 1 and success rates from Beta(a, b), sigma^2 / tau^2 is a + b.
 *
 * The state of a cluster is sums over earlier steps, each step counted rho times less than the
 * next:
 *   over rollouts                      N = sum 1, S1 = sum R, S2 = sum R^2
 *   over prompts with n > 1 rollouts   P = sum 1, X1 = sum x, X2 = sum x^2, V1 = sum v,
 *                                      V2 = sum v/n                  x, v: mean, sample variance
 *
 *   mu      = (n0 m0 + S1) / (n0 + N)
 *             n0 rollouts of mean m0 and variance v0 come before all others
 *   V       = (n0 (v0 + m0^2) + S2) / (n0 + N) - mu^2
 *             variance of a reward of the cluster; mu (1 - mu) for 0 and 1
 *   sigma^2 = V1/P,   tau^2 = max(0, X2/P - (X1/P)^2 - V2/P)
 *             the variance of the prompts' means without the part from sampling
 *   1/s     = tau^2/sigma^2 + 1/(n0 + N)
 *             s: number of rollouts of the prompt that the history is worth
 *   w       = s / (s + n - 1)
 *   b[i]    = w mu + (1 - w) mean of R[j], j != i
 *             the posterior mean of the prompt, given the other rollouts
 *   A[i]    = (R[i] - b[i]) / max(scale, floor)
 *
 *   scale none: 1.   cluster: sqrt(V).
 *   prompt: deviation of a reward given the group's n rollouts: p = w' mu + (1 - w') mean R,
 *   q = w' (V + mu^2) + (1 - w') mean R^2,  w' = s / (s + n),  sqrt(q - p^2). It depends on R[i],
 *   unlike the other two.
 *
 * After the step the sums of every cluster, whether it occurred or not, are multiplied by rho and
 * the step's sums are added, since the policy changed for all of them. tau^2 = 0 or P = 0: s = n0 +
 * N. sigma^2 = 0 < tau^2 (every prompt all correct or all wrong): s = 0. n = 1: w = 1. A prompt
 * without a cluster, and a cluster without history, have the prior's n0, m0, v0 alone. The reported
 * confidence is w, the baseline the mean of b. */
#include "common/estimator.h"
#include "common/group.h"
#include "common/state.h"

#include <math.h>
#include <string.h>

enum { P_RHO, P_PRIOR, P_PRIOR_MEAN, P_PRIOR_VAR, P_SCALE, P_FLOOR, P_COUNT };
enum { NONE, CLUSTER, PROMPT };
static const char *const SCALES[] = {"none", "cluster", "prompt", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_RHO] = TARE_FLOAT_PARAM("rho", "0.9", "rho, the share of the history that is kept from one step to the next; 1 keeps all", 0,
                               1, TARE_PARAM_SWEEPABLE),
    [P_PRIOR] = TARE_UNIT_PARAM("prior", "1", "n0, weight of the prior", "rollouts", 0, 1e9,
                                TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE),
    [P_PRIOR_MEAN] = TARE_UNIT_PARAM("prior_mean", "0.5", "m0, mean reward of the prior", "reward", -1e6, 1e6, 0),
    [P_PRIOR_VAR] =
        TARE_UNIT_PARAM("prior_var", "0.25", "v0, variance of a reward of the prior", "reward^2", 0, 1e12, TARE_PARAM_SWEEPABLE),
    [P_SCALE] =
        TARE_CHOICE_PARAM("scale", "cluster", "divisor of the advantages: none, the cluster's deviation, or the prompt's deviation",
                          SCALES, TARE_PARAM_SWEEPABLE),
    [P_FLOOR] =
        TARE_UNIT_PARAM("floor", "0.05", "smallest scale; an advantage is at most the largest difference of rewards / floor",
                        "reward", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE),
};

enum { W_CLUSTER, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_CLUSTER] = WANT("cluster", TARE_AXIS_GROUP, TARE_I32),
};

enum { N, S1, S2, P, X1, X2, V1, V2, SUMS };

struct eb {
    const tare_host *host;
    const tare_value *v;
    int64_t K;
    double *sum; /* [K, SUMS] */
};

static void destroy(void *self)
{
    struct eb *s = self;
    s->host->release(s->host->ctx, s->sum);
    s->host->release(s->host->ctx, s);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    if (setup->n_clusters <= 0) return tare_fail(error, TARE_E_CONFIG, "no clusters for the history; set codebook.plugin");
    struct eb *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory for the estimator");
    *s = (struct eb){.host = host, .v = setup->values, .K = setup->n_clusters};
    s->sum = host->alloc(host->ctx, s->K * SUMS * (int64_t)sizeof(double), 64);
    if (!s->sum) {
        destroy(s);
        return tare_fail(error, TARE_E_NOMEM, "no memory for the history of %lld clusters", (long long)setup->n_clusters);
    }
    *self = s;
    return TARE_OK;
}

/* ---------------------------------------------------------------- what the history says */

struct prior {
    double mu, V, s;
};

/* Computes s from 1/s = tau^2/sigma^2 + 1/seen. */
static double history_strength(const double *h, double seen)
{
    if (!(h[P] > 0)) return seen;
    const double mean = h[X1] / h[P], square = h[X2] / h[P], within = h[V1] / h[P];
    double between = square - mean * mean;
    if (between < 1e-13 * square) between = 0; /* only rounding */
    between -= h[V2] / h[P];
    if (!(between > 0)) return seen;
    return within / (between + within / seen);
}

static struct prior history_number(const struct eb *s, int32_t cluster)
{
    static const double NOTHING[SUMS];
    const double *h = cluster >= 0 ? s->sum + SUMS * (int64_t)cluster : NOTHING;
    const double n0 = s->v[P_PRIOR].f, m0 = s->v[P_PRIOR_MEAN].f, seen = n0 + h[N];
    const double mu = (n0 * m0 + h[S1]) / seen;
    const double V = (n0 * (s->v[P_PRIOR_VAR].f + m0 * m0) + h[S2]) / seen - mu * mu;
    return (struct prior){mu, fmax(V, 0), history_strength(h, seen)};
}

static double scale_of(const struct eb *s, struct prior h, const double *R, int64_t n, double mean)
{
    if (s->v[P_SCALE].i == CLUSTER) return sqrt(h.V);
    const double w = h.s / (h.s + (double)n), p = w * h.mu + (1 - w) * mean;
    const double square = group_variance(R, n, mean, 0) + mean * mean;
    return sqrt(fmax(w * (h.V + h.mu * h.mu) + (1 - w) * square - p * p, 0));
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct eb *s = self;
    const int32_t *cluster = TARE_COLUMN(batch, W_CLUSTER, int32_t);
    (void)prepared;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first, mean = group_mean(R, n);
        if (cluster[m] >= s->K)
            return tare_fail(error, TARE_E_RANGE, "group %lld: cluster %d, but there are %lld", (long long)m, cluster[m],
                             (long long)s->K);
        const struct prior h = history_number(s, cluster[m]);
        const double w = n > 1 ? h.s / (h.s + (double)(n - 1)) : 1;
        const double scale = s->v[P_SCALE].i == NONE ? 1 : fmax(scale_of(s, h, R, n, mean), s->v[P_FLOOR].f);
        for (int64_t i = 0; i < n; i++) {
            const double others = n > 1 ? mean - (R[i] - mean) / (double)(n - 1) : 0;
            out->advantage[first + i] = (R[i] - w * h.mu - (1 - w) * others) / scale;
        }
        out->baseline[m] = w * h.mu + (1 - w) * mean;
        out->scale[m] = s->v[P_SCALE].i == NONE ? (double)NAN : scale;
        out->confidence[m] = w;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- the history; sums: [K, SUMS] */

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->collect = SUMS * ((const struct eb *)self)->K;
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int64_t first = batch->group_begin[group], n = batch->group_begin[group + 1] - first;
    const double *R = batch->reward + first, x = group_mean(R, n), v = group_variance(R, n, x, 1);
    const int32_t k = TARE_COLUMN(batch, W_CLUSTER, int32_t)[group];
    (void)self, (void)error;
    if (k < 0) return TARE_OK;
    double *h = sum + SUMS * (int64_t)k;
    for (int64_t i = 0; i < n; i++) {
        h[N] += 1;
        h[S1] += R[i];
        h[S2] += R[i] * R[i];
    }
    if (n < 2) return TARE_OK; /* one rollout does not separate chance from the prompt */
    h[P] += 1;
    h[X1] += x;
    h[X2] += x * x;
    h[V1] += v;
    h[V2] += v / (double)n;
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct eb *s = self;
    (void)error;
    for (int64_t k = 0; k < s->K; k++) {
        double *h = s->sum + SUMS * k;
        for (int j = 0; j < SUMS; j++) h[j] = s->v[P_RHO].f * h[j] + update->collected[SUMS * k + j];
        /* set to 0 before the numbers get too small to divide */
        if (h[N] < 1e-9) memset(h, 0, SUMS * sizeof *h);
    }
    return TARE_OK;
}

/* ---------------------------------------- state: K, then the sums of each cluster */

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct eb *s = self;
    (void)error;
    return state_write(out, s->K, s->sum, s->K * SUMS * (int64_t)sizeof(double));
}

static tare_status check(const void *entry, int64_t k, tare_error *error)
{
    const double *h = entry;
    int sane = h[N] >= 0 && h[S2] >= 0 && h[P] >= 0 && h[X2] >= 0 && h[V1] >= 0 && h[V2] >= 0;
    for (int j = 0; j < SUMS; j++) sane = sane && isfinite(h[j]);
    if (!sane) return tare_fail(error, TARE_E_CORRUPT, "the history of cluster %lld makes no sense", (long long)k);
    return TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct eb *s = self;
    const struct state_entries of = {s->K, SUMS * sizeof(double), "clusters", check};
    return state_load(s->host, in, &of, s->sum, error);
}

/* Writes one number of every cluster's history: member 0 is mu, 1 is V, 2 is s. */
static tare_status print_one(const struct eb *s, const tare_stream *out, const char *name, int member)
{
    tare_status status = tare_print(out, "\"%s\":[", name);
    for (int64_t k = 0; k < s->K && !status; k++) {
        const struct prior h = history_number(s, (int32_t)k);
        status = tare_print(out, "%s%.17g", k ? "," : "", member == 0 ? h.mu : member == 1 ? h.V : h.s);
    }
    return status ? status : tare_print(out, "],");
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    const struct eb *s = self;
    (void)error;
    tare_status status = tare_print(out, "{\"per_cluster\":{");
    if (!status) status = print_one(s, out, "mean", 0);
    if (!status) status = print_one(s, out, "variance", 1);
    if (!status) status = print_one(s, out, "strength", 2);
    if (!status) status = state_numbers(out, "", "rollouts", s->sum + N, s->K, SUMS);
    return status ? status : tare_print(out, "}}");
}

STATEFUL("eb_blend", "a prompt's mean shrunk towards its cluster's history by empirical Bayes",
         "docs/mathematics.md, empirical Bayes", .create = create, .destroy = destroy, .save = save, .load = load, .sizes = sizes,
         .compute = compute, .collect = collect, .apply = apply, .describe = describe)
