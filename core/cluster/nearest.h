/* The nearest and the second nearest of K centroids for many rows.
 *
 *   d(x, c) = sum_i (x_i - c_i)^2       in double, in 8 lanes (lane l: elements l, l+8, ...), added as ((0+4)+(2+6)) + ((1+5)+(3+7))
 *   nearest = argmin_j d(x, c_j), ties to the lowest index
 *
 * d is the definition, with the same bits everywhere. A blocked product in fp32 (AVX2, AVX-512 or plain C) only sorts out centroids that
 * cannot be the nearest: with u = 2^-24 its score s_j = ||c_j||^2 / 2 - x . c_j is off by at most m = 1.01 (D + 4) u (||x|| ||c||max + ||c||max^2),
 * so every j with s_j > min s + 2m is out. What is left (nearly always one or two) is compared by d. So results depend neither on the
 * kernel, nor on how rows are cut into calls and tasks, nor on threads.
 *
 * Shapes: X [N, D] rows, C [K, D] centroids, row-major. Memory: K*D floats and some kB a thread, whatever N is.
 */
#ifndef TARE_CORE_CLUSTER_NEAREST_H
#define TARE_CORE_CLUSTER_NEAREST_H

#include "base/pool.h"

#include <stdint.h>

enum { NEAREST_LANES = 16, NEAREST_BLOCK = 96 }; /* centroids in a panel; rows in a block */

/* The smallest and second smallest score of every lane of a row, and the panel of the smallest. */
struct lane_best {
    float best[NEAREST_LANES], second[NEAREST_LANES];
    int32_t panel[NEAREST_LANES];
} __attribute__((aligned(64)));

struct nearest_panel {       /* 16 centroids side by side */
    const float *centroids;  /* [d, 16] */
    const float *half_norms; /* [16] ||c||^2 / 2 */
    int64_t d;
    int32_t index; /* among the panels */
};

/* Scores half_norms[l] - x . c_l of `rows` rows against a panel, taken into best[rows]. dots, when not NULL, gets x . c_l as [rows, 16] and
 * best is left alone. */
typedef void (*nearest_kernel)(const float *const *x, int64_t rows, const struct nearest_panel *panel, struct lane_best *best,
                               float *dots);

struct nearest {
    int64_t k, d, n_panels;
    const float *centroids; /* [K, D], the caller's */
    float *panels;          /* [n_panels, D, 16] 16 centroids side by side; own memory */
    float *half_norms;      /* [n_panels * 16] ||c||^2 / 2, infinity beyond K; own memory */
    double max_norm;        /* largest ||c|| */
    nearest_kernel kernel;
};

double nearest_squared_distance(const float *x, const float *c, int64_t d);

/* Packs the centroids; they have to stay as they are until nearest_free. Zero-initialise n; calling again repacks (K, D may not grow). */
tare_status nearest_pack(struct nearest *n, const float *centroids, int64_t k, int64_t d, struct err *e);
void nearest_free(struct nearest *n);

/* What is known of a row. All but cluster may be NULL. Bounds are distances, not squared. */
struct nearest_out {
    int32_t *cluster; /* [count] */
    double *distance; /* [count] d to the nearest: exact, squared */
    double *upper;    /* [count] at least the distance to the nearest, and close to it */
    double *second;   /* [count] at most the distance to every other centroid, and close to it; infinity for K = 1 */
};

/* Rows index[0..count) of X (index NULL: 0..count), at most NEAREST_BLOCK; outputs stand at i, not at index[i]. norm2: ||x||^2 of X's
 * rows from nearest_norms, or NULL. Rows have to be finite. Thread-safe. */
void nearest_block(const struct nearest *n, const float *x, const double *norm2, const int64_t *index, int64_t count,
                   struct nearest_out out);

/* All rows of X, on the pool. distance may be NULL. */
void nearest_assign(const struct nearest *n, const float *x, int64_t n_rows, struct pool *pool, int32_t *cluster, double *distance);
void nearest_norms(const float *x, int64_t n_rows, int64_t d, struct pool *pool, double *norm2);

/* The fastest this CPU has; TARE_CPU=ref or avx2 takes a lesser one. */
nearest_kernel nearest_best_kernel(void);

#endif
