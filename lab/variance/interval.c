/* Figures from the sums by prompt, and their intervals under resampled prompts.
 *
 * With u_p = E v given prompt p, w_p = 1/P, and A, B the halves of the pool:
 *
 *   U = sum w_p w_q <u_p of A, u_q of B>        |E ghat|^2
 *   C = as U, with g*_q of the other half       <E ghat, g*>
 *   T = as U, with g*, g*                       |g*|^2
 *   S = 1/M sum w_p E |v|^2 + (1 - 1/M) U + r   E |ghat|^2
 *
 * r is the excess of the batches' own mean of |ghat|^2 over that of independent groups: estimators
 * that use the whole batch make its groups dependent. A batch never repeats a prompt, so only
 * products of different prompts enter r. In a resample w changes and r does not. */
#include "lab/variance/measure.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <tare/verifier.h>

const char *const KIND_NAMES[VARIANCE_KINDS] = {"all_wrong", "mixed", "all_right"};
const char *const BIN_NAMES[VARIANCE_BINS] = {"0", "(0, 1/4]", "(1/4, 1/2]", "(1/2, 3/4]", "(3/4, 1)", "1"};

enum { PROMPTS_FOR_INTERVAL = 5 }; /* a bootstrap of fewer is too narrow */

tare_status variance_resamples_new(int64_t n, int64_t prompts, uint64_t seed, struct arena *a, struct resamples *out, struct err *e)
{
    const struct rng_key key = rng_derive(rng_key(seed, RNG_VARIANCE), 3);
    *out = (struct resamples){.n = prompts < PROMPTS_FOR_INTERVAL ? 0 : n, .prompts = prompts};
    TRY(arena_new(a, &out->weight, out->n * prompts, e));
    for (int64_t k = 0; k < out->n; k++) {
        const struct rng_key round = rng_derive(key, (uint64_t)k);
        for (int64_t i = 0; i < prompts; i++)
            out->weight[k * prompts + (int64_t)rng_below(round, (uint64_t)i, (uint64_t)prompts)] += 1 / (double)prompts;
    }
    return TARE_OK;
}

/* Inner products of all pairs of prompts. */
struct grams {
    int64_t prompts;
    double *u, *c;   /* [P, P] */
    const double *t; /* [P, P] of the pool */
    const double *q; /* [P] E |v|^2 */
    double batch, r; /* M */
};

struct values {
    double target, bias, variance, second, direction, mean_direction;
};

static double quadratic_form(const double *k, const double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (w[i] != 0) sum += w[i] * variance_dot(k + i * n, w, n);
    return sum;
}

/* Return the cosine; NAN if a squared length is not positive, so that it cannot be distinguished
 * from noise. */
static double cosine_of(double product, double x, double y)
{
    return x > 0 && y > 0 ? product / sqrt(x * y) : (double)NAN;
}

static struct values values_of(const struct grams *g, const double *w)
{
    const double u = quadratic_form(g->u, w, g->prompts), c = quadratic_form(g->c, w, g->prompts),
                 t = quadratic_form(g->t, w, g->prompts);
    const double second = variance_dot(g->q, w, g->prompts) / g->batch + (1 - 1 / g->batch) * u + g->r;
    return (struct values){.target = t,
                           .bias = u - 2 * c + t,
                           .variance = second - u,
                           .second = second,
                           .direction = cosine_of(c, second, t),
                           .mean_direction = cosine_of(c, u, t)};
}

static tare_status grams_of(const struct variance_case *c, const struct sums *s, struct arena *a, struct grams *g, struct err *e)
{
    const struct variance_pool *p = c->pool;
    const int64_t n = p->batch.n_groups, width = p->width;
    double own = 0, others = 0;
    *g = (struct grams){.prompts = n, .t = p->gram, .q = s->square, .batch = (double)c->batch};
    TRY(arena_new(a, &g->u, n * n, e));
    TRY(arena_new(a, &g->c, n * n, e));
    for (int64_t i = 0; i < n; i++) {
        const double *ua = s->mean[0] + i * width, *ga = p->target[0] + i * width;
        for (int64_t j = 0; j < n; j++) {
            const double *ub = s->mean[1] + j * width, *gb = p->target[1] + j * width;
            g->u[i * n + j] = variance_dot(ua, ub, width);
            g->c[i * n + j] = (variance_dot(ua, gb, width) + variance_dot(ga, ub, width)) / 2;
            if (i != j) others += g->u[i * n + j];
        }
        own += s->square[i];
    }
    if (n > 1) others /= (double)(n * (n - 1));
    g->r = s->batch_square - (own / (double)n / g->batch + (1 - 1 / g->batch) * others);
    return TARE_OK;
}

/* ---------------------------------------------------------------- intervals */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return the value with the 2.5 and 97.5 per cent quantiles of the resamples, shifted so that their
 * mean is the value: a resample repeats some prompts, which makes squares of means larger. Sorts x.
 * No interval if fewer than nine in ten are finite. */
static struct figure figure_of(double value, double *x, int64_t n)
{
    double sum = 0;
    int64_t m = 0;
    for (int64_t k = 0; k < n; k++)
        if (isfinite(x[k])) sum += x[m++] = x[k];
    if (!isfinite(value) || m < 20 || m * 10 < n * 9) return (struct figure){value, NAN, NAN};
    qsort(x, (size_t)m, sizeof *x, compare_doubles);
    const double shift = value - sum / (double)m;
    return (struct figure){value, x[(int64_t)(0.025 * (double)(m - 1))] + shift, x[(int64_t)ceil(0.975 * (double)(m - 1))] + shift};
}

enum { N_VALUES = 6 };

static tare_status make_intervals(const struct grams *g, const struct resamples *r, struct arena *a, struct result *out,
                                  struct err *e)
{
    double *w, *x[N_VALUES];
    TRY(arena_new(a, &w, g->prompts, e));
    for (int k = 0; k < N_VALUES; k++) TRY(arena_new(a, &x[k], r->n, e));
    for (int64_t i = 0; i < g->prompts; i++) w[i] = 1 / (double)g->prompts;
    const struct values v = values_of(g, w);
    for (int64_t i = 0; i < r->n; i++) {
        const struct values s = values_of(g, r->weight + i * g->prompts);
        x[0][i] = s.target, x[1][i] = s.bias, x[2][i] = s.variance;
        x[3][i] = s.second, x[4][i] = out->star[i] = s.direction, x[5][i] = s.mean_direction;
    }
    out->target = figure_of(v.target, x[0], r->n);
    out->bias = figure_of(v.bias, x[1], r->n);
    out->variance = figure_of(v.variance, x[2], r->n);
    out->second = figure_of(v.second, x[3], r->n);
    out->direction = figure_of(v.direction, x[4], r->n);
    out->mean_direction = figure_of(v.mean_direction, x[5], r->n);
    return TARE_OK;
}

tare_status variance_figures_ahead(struct result *x, const struct result *reference, int64_t n, struct err *e)
{
    double *d;
    x->ahead = (struct figure){NAN, NAN, NAN};
    if (*x->why || !reference || *reference->why) return TARE_OK;
    TRY(mem_new((n + 1) * (int64_t)sizeof *d, (void **)&d, e));
    for (int64_t i = 0; i < n; i++) d[i] = x->star[i] - reference->star[i];
    x->ahead = figure_of(x->direction.value - reference->direction.value, d, n);
    mem_free(d);
    return TARE_OK;
}

/* ---------------------------------------------------------------- parts */

static int bin_of(double pass)
{
    return pass <= 0 ? 0 : pass >= 1 ? 5 : pass <= 0.25 ? 1 : pass <= 0.5 ? 2 : pass <= 0.75 ? 3 : 4;
}

/* Add prompt i with its share of <E ghat, g*> and of the sum of E |v|^2. own: |E v|^2. */
static void add_part(struct part *part, double signal, double square, double own)
{
    part->prompts++;
    part->signal += signal;
    part->square += square;
    part->snr += own; /* becomes the ratio in end_part */
}

static void end_part(struct part *part, double signal, double square)
{
    const double noise = part->square - part->snr;
    part->snr = noise > 0 ? part->snr / noise : (double)NAN;
    part->signal = signal != 0 ? part->signal / signal : (double)NAN;
    part->square = square > 0 ? part->square / square : (double)NAN;
}

static void split_prompts(const struct variance_case *c, const struct grams *g, struct result *out)
{
    const struct variance_pool *p = c->pool;
    const int64_t n = g->prompts;
    double signals = 0, squares = 0, within = 0;
    for (int64_t i = 0; i < n; i++) {
        double signal = 0;
        for (int64_t j = 0; j < n; j++) signal += (g->c[i * n + j] + g->c[j * n + i]) / 2;
        const double square = g->q[i], own = g->u[i * n + i];
        const int32_t cluster = p->batch.cluster ? p->batch.cluster[i] : -1;
        signals += signal, squares += square, within += square - own;
        add_part(&out->bin[bin_of(p->pass[i])], signal, square, own);
        if (cluster >= 0 && cluster < VARIANCE_CLUSTERS) add_part(&out->cluster[cluster], signal, square, own);
    }
    for (int b = 0; b < VARIANCE_BINS; b++) end_part(&out->bin[b], signals, squares);
    for (int k = 0; k < VARIANCE_CLUSTERS; k++) end_part(&out->cluster[k], signals, squares);
    const double variance = out->variance.value * g->batch * (double)n;
    out->sampling = variance > 0 ? within / variance : (double)NAN;
}

static void split_kinds(const struct sums *s, struct result *out)
{
    struct kind_sums all = {0};
    for (int k = 0; k < VARIANCE_KINDS; k++) {
        all.groups += s->kind[k].groups;
        all.signal += s->kind[k].signal;
        all.square += s->kind[k].square;
    }
    for (int k = 0; k < VARIANCE_KINDS; k++) {
        out->kind[k].groups = s->kind[k].groups / all.groups;
        out->kind[k].signal = all.signal != 0 ? s->kind[k].signal / all.signal : (double)NAN;
        out->kind[k].square = all.square > 0 ? s->kind[k].square / all.square : (double)NAN;
    }
}

tare_status variance_figures_of(const struct variance_case *c, const struct sums *s, const struct resamples *r, struct arena *a,
                                struct result *out, struct err *e)
{
    struct grams g;
    TRY(grams_of(c, s, a, &g, e));
    TRY(make_intervals(&g, r, a, out, e));
    out->effective = s->effective / (double)(c->batch * c->size);
    split_prompts(c, &g, out);
    split_kinds(s, out);
    return TARE_OK;
}
