/* Lloyd's iteration ends when no single row moves; it cannot move a centroid from a region with too
 * many to a region with too few. A swap can: it moves the centroid whose removal costs least to a
 * row drawn as in seeding, iterates again, and keeps the better result. */
#include "cluster/kmeans_internal.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

/* Returns the centroid whose removal costs least. loss[j]: growth of J without centroid j, whose
 * rows move to their second nearest, from the bounds of a full pass. */
static int64_t cheapest_centroid(const struct kmeans_run *r, double *loss, int64_t not_this)
{
    memset(loss, 0, (size_t)r->k * sizeof *loss);
    for (int64_t i = 0; i < r->n; i++) loss[r->cluster[i]] += r->lower[i] * r->lower[i] - r->distance[i];
    int64_t least = -1;
    for (int64_t j = 0; j < r->k; j++)
        if (j != not_this && (least < 0 || loss[j] < loss[least])) least = j;
    return least;
}

tare_status kmeans_swap(struct kmeans_run *r, const struct kmeans_options *o, struct kmeans_result *out, struct err *e)
{
    const int64_t trials = kmeans_trials(r->k);
    OWNED(mem_free_at) float *panel = NULL;
    double *loss;
    TRY(mem_new(r->d * NEAREST_LANES * (int64_t)sizeof *panel + r->k * (int64_t)sizeof *loss, (void **)&panel, e));
    loss = (double *)(void *)(panel + r->d * NEAREST_LANES);
    for (int64_t s = 0; s < o->swaps; s++) {
        const struct rng_key key = rng_derive(rng_derive(rng_key(o->seed, RNG_INIT), (uint64_t)o->restarts), (uint64_t)s);
        memcpy(r->centroids, out->centroids, (size_t)(r->k * r->d) * sizeof *r->centroids);
        TRY(kmeans_assign_all(r, e));
        const double total = kmeans_inertia(r);
        if (!(total > 0)) break; /* every row is a centroid */
        int64_t rows[KM_TRIALS];
        for (int64_t t = 0; t < trials; t++) rows[t] = kmeans_draw(r, total, rng_uniform(key, 0, (uint64_t)t));
        const int64_t row = rows[kmeans_measure(r, panel, rows, trials)];
        const int64_t away = cheapest_centroid(r, loss, r->cluster[row]);
        memcpy(r->centroids + away * r->d, r->x + row * r->d, (size_t)r->d * sizeof *r->centroids);
        double inertia;
        int64_t iterations;
        bool converged;
        TRY(kmeans_lloyd(r, &inertia, &iterations, &converged, e));
        if (!(inertia < out->inertia)) continue;
        kmeans_keep(r, out, inertia, out->iterations + iterations, converged);
        out->swaps_kept++;
    }
    return TARE_OK;
}
