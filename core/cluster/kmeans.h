/* K-means: greedy k-means++ seeding with restarts, then Lloyd's iteration with exact bounds.
 *
 *   minimise  J = sum_n min_j d(x_n, c_j)           d: squared Euclidean distance (cluster/nearest.h)
 *
 * Seeding (Arthur and Vassilvitskii 2007, greedy variant): the first centroid is a row drawn
 * uniformly. For each further one, 2 + ln K rows are drawn with probability proportional to their
 * squared distance to the nearest centroid so far, and the one that lowers J most is kept. Lloyd:
 * rows move to their nearest centroid (ties: lowest index), centroids to the mean of their rows
 * (sums in double), until no row moves or `iterations` is reached. Hamerly's bounds (2010, "Making
 * k-means even faster") skip rows that provably stay; the others go through one blocked product.
 * Bounds change only the time. The best of `restarts` runs is then improved by `swaps` attempts:
 * the centroid whose removal costs least is moved to where J falls most (to a row drawn as in
 * seeding), Lloyd runs again, and the result is kept if J fell.
 *
 * A cluster that loses all rows takes the row farthest from its own centroid (ties: lowest row)
 * from a cluster of two or more; several empty clusters do so in order of their index. Fewer
 * distinct rows than K are refused. Results depend on rows, options and seed only: not on threads,
 * nor (except for the seeding's fp32 rounding) on the CPU. */
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
    int64_t k, best_restart, iterations; /* iterations: those of the best run, with swaps */
    int64_t swaps_kept;
    bool converged;                      /* no row moved in the last iteration */
    int64_t rows_computed, rows_skipped; /* rows computed, and rows that the bounds skipped, in total */
};

/* TARE_E_RANGE: K > n or too few distinct rows; TARE_E_NOT_FINITE names the row. */
tare_status kmeans_train(struct kmeans_rows rows, const struct kmeans_options *options, struct kmeans_result *out, struct err *e);
void kmeans_result_free(struct kmeans_result *r);

/* Checks the options for n rows; the error names the invalid option. */
tare_status kmeans_check(const struct kmeans_options *options, int64_t n, struct err *e);

#endif
