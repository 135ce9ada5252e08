/* BV-Blend: advantages from prompt-local statistics blended with the history of the prompt's
 * cluster.
 *
 *   Chang, Wu, Chang: "BV-Blend: Uncertainty-Weighted Historical Baselines for Stable Critic-Free
 *   RL with Verifiable Rewards". Section 3.2, equations 6 to 11; appendix, algorithms 1 and 2.
 *
 * Group m has rewards R[n] and cluster k. mu_G, sigma_G: its mean and deviation (group.h; ddof
 * decides n-1 or n). The state of cluster k, as it was before this step: m1, m2 (moving mean and
 * second raw moment), N_eff (moving mass), seen.
 *
 *   mu_hist   = m1                                                           (7)
 *   v_hist    = max(m2 - m1^2, 0),  sigma_hist = sqrt(v_hist)                (7)
 *               v_floor: max(v_hist, v_floor)
 *   u         = SEM / T,  SEM = sigma_hist / sqrt(N_eff + delta_N)           (8)   weighting sem
 *                               sigma_ref  / sqrt(N_eff + delta_N)                 weighting n_eff
 *                               sigma_hist / sqrt(n_ref)                           weighting sigma_hist
 *   w         = exp(-u)                                                      (9)   mapping exp
 *               1/(1+u),  max(0, 1-u)                               mapping reciprocal,
 *                                                                                  linear
 *               a constant                                                         weighting fixed
 *               0 where the cluster has no history, or the prompt has no cluster
 *   b         = w mu_hist + (1-w) mu_G                                       (10)
 *   s         = sqrt(w v_hist + (1-w) sigma_G^2)                             (10)
 *   A[i]      = (R[i] - b) / (s + delta)                                     (11)
 *               advantage_clip: clipped to [-c, c]
 *
 * After the policy step, with S1, S2, N = sums of R, R^2 and 1 over the whole batch, for every
 * cluster with N > 0:
 *
 *   first time:   m1 = S1/N,   m2 = (S1/N)^2 + V_prior,   N_eff = N_0
 *   later:        m1 = (1-gamma) m1 + gamma S1/N,   m2 = (1-gamma) m2 + gamma S2/N,
 *                 N_eff = (1-gamma) N_eff + gamma N                          (6)
 */
#include "blend.h"

#include "group.h"
#include "state.h"

#include <math.h>
#include <string.h>

const char *const BLEND_MAPPINGS[] = {"exp", "reciprocal", "linear", NULL};

struct blend {
    const tare_host *host;
    const tare_value *values;
    struct blend_settings set;
    int64_t K;
    double *m1, *m2, *n_eff; /* [K] */
    uint8_t *seen;           /* [K] */
};

/* ---------------------------------------------------------------- advantages */

/* Computes equations 7 to 9 for one cluster. */
static struct blend_history history_of(const void *self, int32_t k)
{
    const struct blend *s = self;
    if (k < 0 || !s->seen[k]) return (struct blend_history){0, 0, 0};
    const struct blend_settings *p = &s->set;
    const double v = fmax(fmax(s->m2[k] - s->m1[k] * s->m1[k], 0), p->v_floor);
    double sem = 0, w = p->w;
    switch (p->weighting) {
    case BLEND_SEM:
        sem = sqrt(v) / sqrt(s->n_eff[k] + p->delta_n);
        break;
    case BLEND_N_EFF:
        sem = p->sigma_ref / sqrt(s->n_eff[k] + p->delta_n);
        break;
    case BLEND_SIGMA_HIST:
        sem = sqrt(v) / sqrt(p->n_ref);
        break;
    default:
        break;
    }
    if (p->weighting != BLEND_FIXED) {
        const double u = sem / p->temperature;
        w = p->mapping == BLEND_EXP ? exp(-u) : p->mapping == BLEND_RECIPROCAL ? 1 / (1 + u) : fmax(0, 1 - u);
    }
    return (struct blend_history){s->m1[k], v, w};
}

tare_status blend_advantages(const void *self, struct blend_history (*history)(const void *self, int32_t cluster),
                             const struct blend_form *form, const tare_batch *batch, tare_advantages *out, tare_error *error)
{
    const int32_t *cluster = TARE_COLUMN(batch, W_CLUSTER, int32_t);
    const double delta = form->delta, clip = form->advantage_clip;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        if (cluster[m] >= form->K)
            return tare_fail(error, TARE_E_RANGE, "group %lld: cluster %d, but there are %lld; set clusters to the codebook's size",
                             (long long)m, cluster[m], (long long)form->K);
        const struct blend_history h = history(self, cluster[m]);
        const double mean = group_mean(R, n), variance = group_variance(R, n, mean, form->ddof);
        const double baseline = h.w * h.mu + (1 - h.w) * mean;
        const double scale = sqrt(h.w * h.v + (1 - h.w) * variance);
        for (int64_t i = 0; i < n; i++) {
            const double A = (R[i] - baseline) / (scale + delta);
            out->advantage[first + i] = clip > 0 ? fmin(fmax(A, -clip), clip) : A;
        }
        out->baseline[m] = baseline;
        out->scale[m] = scale;
        out->confidence[m] = h.w;
    }
    return TARE_OK;
}

tare_status blend_compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                          tare_error *error)
{
    const struct blend *s = self;
    (void)prepared;
    return blend_advantages(
        s, history_of,
        &(struct blend_form){.K = s->K, .ddof = s->set.ddof, .delta = s->set.delta, .advantage_clip = s->set.advantage_clip}, batch,
        out, error);
}

/* ---------------------------------------- moments; sums: [K, 3] of S1, S2, N */

tare_status blend_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->collect = 3 * ((const struct blend *)self)->K;
    return TARE_OK;
}

tare_status blend_collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const int32_t k = TARE_COLUMN(batch, W_CLUSTER, int32_t)[group];
    (void)self, (void)error;
    if (k < 0) return TARE_OK;
    double *S = sum + 3 * (int64_t)k;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        S[0] += batch->reward[i];
        S[1] += batch->reward[i] * batch->reward[i];
        S[2] += 1;
    }
    return TARE_OK;
}

tare_status blend_apply(void *self, const tare_update *update, tare_error *error)
{
    struct blend *s = self;
    const double gamma = s->set.gamma, *collected = update->collected;
    (void)error;
    for (int64_t k = 0; k < s->K; k++) {
        const double N = collected[3 * k + 2];
        if (!(N > 0)) continue;
        const double mu = collected[3 * k] / N, mu2 = collected[3 * k + 1] / N;
        if (!s->seen[k]) {
            s->m1[k] = mu;
            s->m2[k] = mu * mu + s->set.v_prior;
            s->n_eff[k] = s->set.n0;
            s->seen[k] = 1;
        } else {
            s->m1[k] = (1 - gamma) * s->m1[k] + gamma * mu;
            s->m2[k] = (1 - gamma) * s->m2[k] + gamma * mu2;
            s->n_eff[k] = (1 - gamma) * s->n_eff[k] + gamma * N;
        }
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- life and state */

const tare_host *blend_host(const void *self)
{
    return ((const struct blend *)self)->host;
}

const tare_value *blend_values(const void *self)
{
    return ((const struct blend *)self)->values;
}

void blend_destroy(void *self)
{
    struct blend *s = self;
    if (!s) return;
    const tare_host *host = s->host;
    host->release(host->ctx, s->m1);
    host->release(host->ctx, s->seen);
    host->release(host->ctx, s);
}

tare_status blend_create(const tare_setup *setup, const struct blend_settings *settings, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    const int64_t K = settings->clusters ? settings->clusters : setup->n_clusters;
    if (K <= 0)
        return tare_fail(error, TARE_E_CONFIG, "no clusters for the history; set codebook.plugin, or the parameter clusters");
    if (K < setup->n_clusters)
        return tare_fail(error, TARE_E_CONFIG, "clusters is %lld, but the codebook has %lld; set it to 0 to follow the codebook",
                         (long long)K, (long long)setup->n_clusters);
    struct blend *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory for the estimator");
    s->host = host;
    s->values = setup->values;
    s->set = *settings;
    s->K = K;
    s->m1 = host->alloc(host->ctx, 3 * K * (int64_t)sizeof(double), 64);
    s->seen = host->alloc(host->ctx, K, 64);
    if (!s->m1 || !s->seen) {
        blend_destroy(s);
        return tare_fail(error, TARE_E_NOMEM, "no memory for the moments of %lld clusters", (long long)K);
    }
    s->m2 = s->m1 + K;
    s->n_eff = s->m2 + K;
    *self = s;
    return TARE_OK;
}

/* K, m1[K], m2[K], n_eff[K], seen[K] */
tare_status blend_save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct blend *s = self;
    (void)error;
    tare_status status = state_write(out, s->K, s->m1, 3 * s->K * (int64_t)sizeof(double));
    if (!status) status = out->write(out->ctx, s->seen, s->K);
    return status;
}

tare_status blend_load(void *self, const tare_stream *in, tare_error *error)
{
    struct blend *s = self;
    const int64_t K = s->K, numbers = 3 * K * (int64_t)sizeof(double);
    void *fresh;
    tare_status status = state_read(s->host, in, &(struct state_entries){.K = K, .what = "clusters"}, numbers + K, &fresh, error);
    if (status) return status;
    const double *moments = fresh;
    const uint8_t *seen = (const uint8_t *)fresh + numbers;
    for (int64_t k = 0; k < K && !status; k++)
        if (seen[k] > 1 || !isfinite(moments[k]) || !isfinite(moments[K + k]) || !(moments[2 * K + k] >= 0) ||
            !isfinite(moments[2 * K + k]))
            status = tare_fail(error, TARE_E_CORRUPT, "the moments of cluster %lld make no sense", (long long)k);
    if (!status) {
        memcpy(s->m1, moments, (size_t)numbers);
        memcpy(s->seen, seen, (size_t)K);
    }
    s->host->release(s->host->ctx, fresh);
    return status;
}

tare_status blend_describe(const void *self, const tare_stream *out, tare_error *error)
{
    const struct blend *s = self;
    const char *const names[] = {"m1", "m2", "n_eff"};
    tare_status status = TARE_OK;
    (void)error;
    for (int j = 0; j < 3 && !status; j++)
        status = state_numbers(out, j ? "," : "{\"per_cluster\":{", names[j], s->m1 + j * s->K, s->K, 1);
    if (!status) status = tare_print(out, ",\"seen\":[");
    for (int64_t k = 0; k < s->K && !status; k++) status = tare_print(out, "%s%s", k ? "," : "", s->seen[k] ? "true" : "false");
    return status ? status : tare_print(out, "]}}");
}
