/* Lloyd's iteration ends where no single row wants to move; it cannot carry a centroid from a region that has too many to one that has too
 * few. A swap does: take the centroid away that is missed least, put it on a row drawn as in seeding, iterate again, keep what is better. */
#include "cluster/kmeans_internal.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

/* loss[j] = how much J grows without centroid j (its rows go to their second nearest), from the bounds of a full pass. */
static int64_t least_missed(const struct kmeans_run *r, double *loss, int64_t not_this)
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
        const int64_t away = least_missed(r, loss, r->cluster[row]);
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
