/* Greedy k-means++ seeding. One pass over the rows measures all candidates of a step, as the lanes
 * of a panel. */
#include "cluster/kmeans_internal.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

struct trial_job {
    struct kmeans_run *r;
    const float *panel;  /* [D, 16] interleaved candidates */
    const int64_t *rows; /* [n] their rows */
    int64_t n;
};

/* Returns d(x, c). ||x||^2 + ||c||^2 - 2 x.c cancels if the two are close; then the sum of squares
 * is used instead, so equal rows have distance 0. */
static float trial_distance(const struct kmeans_run *r, int64_t i, int64_t candidate, float dot)
{
    const double size = r->norm2[i] + r->norm2[candidate], d = size - 2 * (double)dot;
    if (d > 1e-3 * size && d < (double)INFINITY) return (float)d;
    return (float)nearest_squared_distance(r->x + i * r->d, r->x + candidate * r->d, r->d);
}

static void trial_task(void *arg, int64_t task, int thread)
{
    const struct trial_job *job = arg;
    struct kmeans_run *r = job->r;
    const int64_t end = (task + 1) * KM_CHUNK < r->n ? (task + 1) * KM_CHUNK : r->n;
    double *sum = r->chunk_sum + task * KM_TRIALS;
    float dots[NEAREST_BLOCK * NEAREST_LANES];
    const float *rows[NEAREST_BLOCK];
    const float zero[NEAREST_LANES] = {0};
    const struct nearest_panel panel = {.centroids = job->panel, .half_norms = zero, .d = r->d};
    (void)thread;
    memset(sum, 0, KM_TRIALS * sizeof *sum);
    for (int64_t first = task * KM_CHUNK; first < end; first += NEAREST_BLOCK) {
        const int64_t count = end - first < NEAREST_BLOCK ? end - first : NEAREST_BLOCK;
        for (int64_t i = 0; i < count; i++) rows[i] = r->x + (first + i) * r->d;
        r->nearest.kernel(rows, count, &panel, NULL, dots);
        for (int64_t i = 0; i < count; i++) {
            for (int64_t t = 0; t < job->n; t++) {
                const float d = trial_distance(r, first + i, job->rows[t], dots[i * NEAREST_LANES + t]);
                r->trial[(first + i) * KM_TRIALS + t] = d;
                sum[t] += fmin(r->distance[first + i], (double)d);
            }
        }
    }
}

struct take_job {
    struct kmeans_run *r;
    int64_t column;
};

static void take_task(void *arg, int64_t task, int thread)
{
    const struct take_job *job = arg;
    struct kmeans_run *r = job->r;
    (void)thread;
    for (int64_t i = task * KM_CHUNK; i < r->n && i < (task + 1) * KM_CHUNK; i++)
        r->distance[i] = fmin(r->distance[i], (double)r->trial[i * KM_TRIALS + job->column]);
}

double kmeans_chunk_total(const struct kmeans_run *r, int64_t column)
{
    double total = 0;
    for (int64_t c = 0; c < r->n_chunks; c++) total += r->chunk_sum[c * KM_TRIALS + column];
    return total;
}

int64_t kmeans_draw(const struct kmeans_run *r, double total, double uniform)
{
    double at = uniform * total;
    int64_t last = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (!(r->distance[i] > 0)) continue;
        last = i;
        at -= r->distance[i];
        if (at < 0) break;
    }
    return last;
}

int64_t kmeans_measure(struct kmeans_run *r, float *panel, const int64_t *rows, int64_t n)
{
    memset(panel, 0, (size_t)(r->d * NEAREST_LANES) * sizeof *panel);
    for (int64_t t = 0; t < n; t++)
        for (int64_t i = 0; i < r->d; i++) panel[i * NEAREST_LANES + t] = r->x[rows[t] * r->d + i];
    struct trial_job job = {r, panel, rows, n};
    pool_run(r->pool, r->n_chunks, trial_task, &job);
    int64_t best = 0;
    for (int64_t t = 1; t < n; t++)
        if (kmeans_chunk_total(r, t) < kmeans_chunk_total(r, best)) best = t;
    return best;
}

/* Adds the best of n rows to the centroids. Returns J with it. */
static double add_best(struct kmeans_run *r, float *panel, const int64_t *rows, int64_t n, int64_t centroid)
{
    const int64_t best = kmeans_measure(r, panel, rows, n);
    struct take_job take = {r, best};
    pool_run(r->pool, r->n_chunks, take_task, &take);
    memcpy(r->centroids + centroid * r->d, r->x + rows[best] * r->d, (size_t)r->d * sizeof(float));
    return kmeans_chunk_total(r, best);
}

int64_t kmeans_trials(int64_t k)
{
    const int64_t trials = 2 + (int64_t)log((double)k);
    return trials < KM_TRIALS ? trials : KM_TRIALS;
}

tare_status kmeans_seed(struct kmeans_run *r, struct rng_key key, struct err *e)
{
    OWNED(mem_free_at) float *panel = NULL;
    TRY(mem_new(r->d * NEAREST_LANES * (int64_t)sizeof *panel, (void **)&panel, e));
    for (int64_t i = 0; i < r->n; i++) r->distance[i] = INFINITY;
    int64_t rows[KM_TRIALS] = {(int64_t)rng_below(key, 0, (uint64_t)r->n)};
    const int64_t trials = kmeans_trials(r->k);
    double total = add_best(r, panel, rows, 1, 0);
    for (int64_t c = 1; c < r->k; c++) {
        if (!(total > 0))
            FAIL(e, TARE_E_RANGE, "only %lld of %lld rows are distinct, but %lld clusters are requested; use fewer clusters",
                 (long long)c, (long long)r->n, (long long)r->k);
        for (int64_t t = 0; t < trials; t++) rows[t] = kmeans_draw(r, total, rng_uniform(key, (uint64_t)c, (uint64_t)t + 1));
        total = add_best(r, panel, rows, trials, c);
    }
    return TARE_OK;
}
