/* What the parts of k-means share: the state of one run, and the parallel passes over rows. */
#ifndef TARE_CORE_CLUSTER_KMEANS_INTERNAL_H
#define TARE_CORE_CLUSTER_KMEANS_INTERNAL_H

#include "base/rng.h"
#include "cluster/kmeans.h"
#include "cluster/nearest.h"

enum { KM_CHUNK = 10 * NEAREST_BLOCK, KM_TRIALS = NEAREST_LANES, KM_SLICE = 64 };

struct kmeans_run {
    /* given */
    const float *x; /* [N, D] */
    int64_t n, d, k, iterations;
    struct pool *pool;
    bool no_bounds;
    /* per row */
    double *norm2;               /* [N] ||x||^2 */
    double *upper, *lower;       /* [N] bounds on the distance to the own and to every other centroid */
    double *distance;            /* [N] squared distance to the nearest centroid so far */
    float *trial;                /* [N, KM_TRIALS] squared distances to the candidates of seeding */
    int32_t *cluster, *previous; /* [N] */
    int64_t *moved;              /* rows that changed cluster */
    int64_t n_moved;
    /* per chunk of KM_CHUNK rows */
    int64_t n_chunks;
    double *chunk_sum;   /* [chunks, KM_TRIALS] */
    int64_t *chunk_rows; /* [chunks] rows computed */
    /* per cluster */
    float *centroids; /* [K, D] */
    double *sums;     /* [K, D] */
    int64_t *sizes;   /* [K] */
    double *drift;    /* [K] how far a centroid moved */
    struct nearest nearest;
    int64_t rows_computed, rows_skipped;
};

/* Seeds centroids by greedy k-means++; TARE_E_RANGE when there are too few distinct rows. */
tare_status kmeans_seed(struct kmeans_run *r, struct rng_key key, struct err *e);
/* Of n <= KM_TRIALS rows the one that lowers sum distance most as a further centroid; ties: the first. panel: room for [D, 16].
 * chunk totals hold J with each of them. */
int64_t kmeans_measure(struct kmeans_run *r, float *panel, const int64_t *rows, int64_t n);
int64_t kmeans_trials(int64_t k); /* 2 + ln K */
/* Tries to improve what out holds by moving single centroids. */
tare_status kmeans_swap(struct kmeans_run *r, const struct kmeans_options *o, struct kmeans_result *out, struct err *e);
void kmeans_keep(const struct kmeans_run *r, struct kmeans_result *out, double inertia, int64_t iterations, bool converged);
/* Assigns every row anew: cluster, and tight bounds. */
tare_status kmeans_assign_all(struct kmeans_run *r, struct err *e);
/* From centroids to a fixed point: fills cluster, sizes, centroids, distance. */
tare_status kmeans_lloyd(struct kmeans_run *r, double *inertia, int64_t *iterations, bool *converged, struct err *e);
/* distance[i] = d(x_i, nearest centroid), for all rows, and its sum. */
double kmeans_inertia(struct kmeans_run *r);
/* A row drawn with probability distance[i] / total; needs total > 0. */
int64_t kmeans_draw(const struct kmeans_run *r, double total, double uniform);
/* chunk_sum[:, column] added in the order of the chunks. */
double kmeans_chunk_total(const struct kmeans_run *r, int64_t column);

#endif
