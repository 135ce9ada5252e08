/* The nearest and second nearest of K centroids for many rows.
 *
 *   d(x, c) = sum_i (x_i - c_i)^2       in double, in 8 lanes (lane l: elements l, l+8, ...), added as
 *                                       ((0+4)+(2+6)) + ((1+5)+(3+7))
 *   nearest = argmin_j d(x, c_j), ties to the lowest index
 *
 * d is the definition, with the same bits everywhere. A blocked product in fp32 (AVX2, AVX-512,
 * NEON or plain C) only excludes centroids that cannot be the nearest: with u = 2^-24 the error of s_j =
 * ||c_j||^2 / 2 - x . c_j is at most m = 1.01 (D + 4) u (||x|| ||c||max + ||c||max^2), so every j
 * with s_j > min s + 2m is excluded. The remaining ones (nearly always one or two) are compared by
 * d. Results therefore do not depend on the kernel, the division of rows into calls and tasks, or
 * threads.
 *
 * Shapes: X [N, D] rows, C [K, D] centroids, row-major. Memory: K*D floats and some kB per thread,
 * independent of N. */
#ifndef TARE_CORE_CLUSTER_NEAREST_H
#define TARE_CORE_CLUSTER_NEAREST_H

#include "base/pool.h"

#include <stdint.h>

enum { NEAREST_LANES = 16, NEAREST_BLOCK = 96 }; /* centroids in a panel; rows in a block */

/* The smallest and second smallest s of every lane of a row, and the panel of the smallest. */
struct lane_best {
    float best[NEAREST_LANES], second[NEAREST_LANES];
    int32_t panel[NEAREST_LANES];
} __attribute__((aligned(64)));

/* 16 interleaved centroids. */
struct nearest_panel {
    const float *centroids;  /* [d, 16] */
    const float *half_norms; /* [16] ||c||^2 / 2 */
    int64_t d;
    int32_t index; /* among the panels */
};

/* Computes s = half_norms[l] - x . c_l of `rows` rows against a panel and updates best[rows]. If
 * dots is not NULL, it gets x . c_l as [rows, 16] instead. */
typedef void (*nearest_kernel)(const float *const *x, int64_t rows, const struct nearest_panel *panel, struct lane_best *best,
                               float *dots);

struct nearest {
    int64_t k, d, n_panels;
    const float *centroids; /* [K, D], the caller's */
    float *panels;          /* [n_panels, D, 16] interleaved; owned */
    float *half_norms;      /* [n_panels * 16] ||c||^2 / 2, infinity beyond K; owned */
    double max_norm;        /* largest ||c|| */
    nearest_kernel kernel;
};

double nearest_squared_distance(const float *x, const float *c, int64_t d);

/* Packs the centroids, which must not change until nearest_free. Zero-initialise n. A further call
 * packs again; K and D must not grow. */
tare_status nearest_pack(struct nearest *n, const float *centroids, int64_t k, int64_t d, struct err *e);
void nearest_free(struct nearest *n);

/* Results per row. All but cluster may be NULL. Bounds are distances, not squared. */
struct nearest_out {
    int32_t *cluster; /* [count] */
    double *distance; /* [count] d to the nearest: exact, squared */
    double *upper;    /* [count] upper bound of the distance to the nearest, close to it */
    /* [count] lower bound of the distance to every other centroid, close to it; infinity for K = 1
     */
    double *second;
};

/* Finds the nearest centroids of the rows index[0..count) of X (index NULL: 0..count), count <=
 * NEAREST_BLOCK. The result of row index[i] is at i. norm2: ||x||^2 of X's rows from nearest_norms,
 * or NULL. Rows must be finite. Thread-safe. */
void nearest_block(const struct nearest *n, const float *x, const double *norm2, const int64_t *index, int64_t count,
                   struct nearest_out out);

/* Assigns all rows of X on the pool. distance may be NULL. */
void nearest_assign(const struct nearest *n, const float *x, int64_t n_rows, struct pool *pool, int32_t *cluster, double *distance);
void nearest_norms(const float *x, int64_t n_rows, int64_t d, struct pool *pool, double *norm2);

/* Returns the fastest kernel of this CPU; TARE_CPU=ref or avx2 selects a slower one. */
nearest_kernel nearest_best_kernel(void);

#endif
