#include "cluster/kmeans_internal.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

static tare_status run_new(struct kmeans_run *r, struct err *e)
{
    const int64_t n = r->n, kd = r->k * r->d;
    r->n_chunks = (n + KM_CHUNK - 1) / KM_CHUNK;
    TRY(mem_new(n * (int64_t)sizeof(double), (void **)&r->norm2, e));
    TRY(mem_new(n * (int64_t)sizeof(double), (void **)&r->upper, e));
    TRY(mem_new(n * (int64_t)sizeof(double), (void **)&r->lower, e));
    TRY(mem_new(n * (int64_t)sizeof(double), (void **)&r->distance, e));
    TRY(mem_new(n * KM_TRIALS * (int64_t)sizeof(float), (void **)&r->trial, e));
    TRY(mem_new(n * (int64_t)sizeof(int32_t), (void **)&r->cluster, e));
    TRY(mem_new(n * (int64_t)sizeof(int32_t), (void **)&r->previous, e));
    TRY(mem_new(n * (int64_t)sizeof(int64_t), (void **)&r->moved, e));
    TRY(mem_new(r->n_chunks * KM_TRIALS * (int64_t)sizeof(double), (void **)&r->chunk_sum, e));
    TRY(mem_new(r->n_chunks * (int64_t)sizeof(int64_t), (void **)&r->chunk_rows, e));
    TRY(mem_new(kd * (int64_t)sizeof(float), (void **)&r->centroids, e));
    TRY(mem_new(kd * (int64_t)sizeof(double), (void **)&r->sums, e));
    TRY(mem_new(r->k * (int64_t)sizeof(int64_t), (void **)&r->sizes, e));
    TRY(mem_new(r->k * (int64_t)sizeof(double), (void **)&r->drift, e));
    /* allocates its memory; packed again in each iteration */
    return nearest_pack(&r->nearest, r->centroids, r->k, r->d, e);
}

static void run_free(struct kmeans_run *r)
{
    void *const all[] = {r->norm2, r->upper,     r->lower,      r->distance,  r->trial, r->cluster, r->previous,
                         r->moved, r->chunk_sum, r->chunk_rows, r->centroids, r->sums,  r->sizes,   r->drift};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_free(all[i]);
    nearest_free(&r->nearest);
}

tare_status kmeans_check(const struct kmeans_options *o, int64_t n, struct err *e)
{
    if (o->k < 1 || o->k > INT32_MAX) FAIL(e, TARE_E_RANGE, "clusters = %lld: must be from 1 to %d", (long long)o->k, INT32_MAX);
    if (o->k > n) FAIL(e, TARE_E_RANGE, "clusters = %lld: must be at most the number of rows, %lld", (long long)o->k, (long long)n);
    if (o->restarts < 1) FAIL(e, TARE_E_RANGE, "restarts = %lld: must be at least 1", (long long)o->restarts);
    if (o->iterations < 1) FAIL(e, TARE_E_RANGE, "iterations = %lld: must be at least 1", (long long)o->iterations);
    if (o->swaps < 0) FAIL(e, TARE_E_RANGE, "swaps = %lld: must be at least 0", (long long)o->swaps);
    return TARE_OK;
}

/* Copies the result of the run. */
void kmeans_keep(const struct kmeans_run *r, struct kmeans_result *out, double inertia, int64_t iterations, bool converged)
{
    memcpy(out->centroids, r->centroids, (size_t)(r->k * r->d) * sizeof *out->centroids);
    memcpy(out->cluster, r->cluster, (size_t)r->n * sizeof *out->cluster);
    memcpy(out->sizes, r->sizes, (size_t)r->k * sizeof *out->sizes);
    out->inertia = inertia;
    out->iterations = iterations;
    out->converged = converged;
}

static tare_status run_restarts(struct kmeans_run *r, const struct kmeans_options *o, struct kmeans_result *out, struct err *e)
{
    for (int64_t s = 0; s < o->restarts; s++) {
        const struct rng_key key = rng_derive(rng_key(o->seed, RNG_INIT), (uint64_t)s);
        int64_t iterations;
        double inertia;
        bool converged;
        TRY(kmeans_seed(r, key, e));
        TRY(kmeans_lloyd(r, &inertia, &iterations, &converged, e));
        out->restart_inertia[s] = inertia;
        if (s && !(inertia < out->inertia)) continue;
        out->best_restart = s;
        kmeans_keep(r, out, inertia, iterations, converged);
    }
    return TARE_OK;
}

static tare_status check_finite(const struct kmeans_run *r, struct err *e)
{
    for (int64_t i = 0; i < r->n; i++)
        if (!isfinite(r->norm2[i])) FAIL(e, TARE_E_NOT_FINITE, "row %lld has a NaN or an infinity", (long long)i);
    return TARE_OK;
}

static tare_status result_new(struct kmeans_result *out, const struct kmeans_run *r, const struct kmeans_options *o, struct err *e)
{
    out->k = r->k;
    TRY(mem_new(r->k * r->d * (int64_t)sizeof(float), (void **)&out->centroids, e));
    TRY(mem_new(r->n * (int64_t)sizeof(int32_t), (void **)&out->cluster, e));
    TRY(mem_new(r->k * (int64_t)sizeof(int64_t), (void **)&out->sizes, e));
    return mem_new(o->restarts * (int64_t)sizeof(double), (void **)&out->restart_inertia, e);
}

tare_status kmeans_train(struct kmeans_rows rows, const struct kmeans_options *o, struct kmeans_result *out, struct err *e)
{
    *out = (struct kmeans_result){0};
    TRY(kmeans_check(o, rows.n, e));
    struct kmeans_run r = {
        .x = rows.x, .n = rows.n, .d = rows.d, .k = o->k, .iterations = o->iterations, .pool = o->pool, .no_bounds = o->no_bounds};
    tare_status status = run_new(&r, e);
    if (!status) status = result_new(out, &r, o, e);
    if (!status) {
        nearest_norms(rows.x, rows.n, rows.d, o->pool, r.norm2);
        status = check_finite(&r, e);
    }
    if (!status) status = run_restarts(&r, o, out, e);
    if (!status && r.k > 1 && o->swaps) status = kmeans_swap(&r, o, out, e);
    out->rows_computed = r.rows_computed;
    out->rows_skipped = r.rows_skipped;
    run_free(&r);
    if (status) kmeans_result_free(out);
    return status;
}

void kmeans_result_free(struct kmeans_result *r)
{
    mem_free(r->centroids);
    mem_free(r->cluster);
    mem_free(r->sizes);
    mem_free(r->restart_inertia);
    *r = (struct kmeans_result){0};
}
