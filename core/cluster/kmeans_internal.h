/* The state of a k-means run, and parallel passes over its rows. */
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
    double *norm2; /* [N] ||x||^2 */
    /* [N] bounds on the distance to the own and every other centroid */
    double *upper, *lower;
    double *distance;            /* [N] squared distance to the nearest centroid so far */
    float *trial;                /* [N, KM_TRIALS] squared distances to the candidates of seeding */
    int32_t *cluster, *previous; /* [N] */
    int64_t *moved;              /* rows that changed cluster */
    int64_t n_moved;
    /* per chunk of KM_CHUNK rows */
    int64_t n_chunks;
    double *chunk_sum;   /* [chunks, KM_TRIALS] */
    int64_t *chunk_rows; /* [chunks] rows whose distances were computed */
    /* per cluster */
    float *centroids; /* [K, D] */
    double *sums;     /* [K, D] */
    int64_t *sizes;   /* [K] */
    double *drift;    /* [K] how far a centroid moved */
    struct nearest nearest;
    int64_t rows_computed, rows_skipped;
};

/* Seeds centroids by greedy k-means++; TARE_E_RANGE: too few distinct rows. */
tare_status kmeans_seed(struct kmeans_run *r, struct rng_key key, struct err *e);
/* Returns the one of n <= KM_TRIALS rows that lowers J most as a further centroid; ties: the first.
 * panel: scratch [D, 16]. chunk_sum then has J with each of them, by chunk. */
int64_t kmeans_measure(struct kmeans_run *r, float *panel, const int64_t *rows, int64_t n);
int64_t kmeans_trials(int64_t k); /* Number of candidates per centroid in seeding: 2 + ln K. */
/* Tries to improve the result in out by moving single centroids. */
tare_status kmeans_swap(struct kmeans_run *r, const struct kmeans_options *o, struct kmeans_result *out, struct err *e);
void kmeans_keep(const struct kmeans_run *r, struct kmeans_result *out, double inertia, int64_t iterations, bool converged);
/* Assigns every row again, with tight bounds. */
tare_status kmeans_assign_all(struct kmeans_run *r, struct err *e);
/* Iterates from the centroids to a fixed point. Fills cluster, sizes, centroids and distance. */
tare_status kmeans_lloyd(struct kmeans_run *r, double *inertia, int64_t *iterations, bool *converged, struct err *e);
/* Sets distance[i] = d(x_i, nearest centroid) for all rows and returns the sum. */
double kmeans_inertia(struct kmeans_run *r);
/* Draws a row with probability distance[i] / total; total must be > 0. */
int64_t kmeans_draw(const struct kmeans_run *r, double total, double uniform);
/* Adds chunk_sum[:, column] in the order of the chunks. */
double kmeans_chunk_total(const struct kmeans_run *r, int64_t column);

#endif
