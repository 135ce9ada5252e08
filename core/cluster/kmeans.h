/* K-means: greedy k-means++ seeding with restarts, then Lloyd's iteration with exact bounds.
 *
 *   minimise  J = sum_n min_j d(x_n, c_j)           d: squared Euclidean distance (cluster/nearest.h)
 *
 * Seeding (Arthur and Vassilvitskii 2007, greedy variant): the first centroid is a row drawn uniformly; for each further one, 2 + ln K rows are
 * drawn with probability proportional to their squared distance to the nearest centroid so far, and the one that lowers J most is kept.
 * Lloyd: rows go to their nearest centroid (ties: lowest index), centroids to the mean of their rows (sums in double), until no row moves or
 * `iterations` is reached. Hamerly's bounds (2010, "Making k-means even faster") skip rows that provably stay; the others go through one
 * blocked product. Bounds change nothing but time.
 * The best of `restarts` runs is then improved by `swaps` attempts: the centroid that costs least to take away is put where J falls most
 * (on a row drawn as in seeding), Lloyd runs again, and the outcome is kept if J fell.
 *
 * A cluster that loses all rows takes the row that is farthest from its own centroid (ties: lowest row) out of a cluster of two or more;
 * several empty clusters do so in order of their index. Fewer distinct rows than K are refused.
 * Results depend on rows, options and seed only: not on threads, nor (but for the seeding's rounding in fp32) on the CPU.
 */
#ifndef TARE_CORE_CLUSTER_KMEANS_H
#define TARE_CORE_CLUSTER_KMEANS_H

#include "base/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct kmeans_rows {
    const float *x; /* [n, d], finite */
    int64_t n, d;
};

struct kmeans_options {
    int64_t k, restarts, iterations, swaps;
    uint64_t seed;
    struct pool *pool; /* NULL: the calling thread alone */
    bool no_bounds;    /* for tests and measurements: the same result, slower */
};

struct kmeans_result {
    float *centroids;                    /* [K, D] */
    int32_t *cluster;                    /* [N] */
    int64_t *sizes;                      /* [K] */
    double inertia;                      /* J */
    double *restart_inertia;             /* [restarts] J of each */
    int64_t k, best_restart, iterations; /* Lloyd iterations of the run that won, swaps included */
    int64_t swaps_kept;
    bool converged;                      /* no row moved any more */
    int64_t rows_computed, rows_skipped; /* by the bounds, over everything */
};

/* Errors: TARE_E_RANGE for K > n or too few distinct rows, TARE_E_NOT_FINITE naming the row. */
tare_status kmeans_train(struct kmeans_rows rows, const struct kmeans_options *options, struct kmeans_result *out, struct err *e);
void kmeans_result_free(struct kmeans_result *r);

/* The largest useful number of clusters and a limit on options: refused here with the name of what is wrong. */
tare_status kmeans_check(const struct kmeans_options *options, int64_t n, struct err *e);

#endif
