/* Lloyd's iteration with Hamerly's bounds: upper[i] >= d(x_i, c_own), lower[i] <= d(x_i, every
 * other). Centroids move by drift[j], so an iteration adds drift[own] to upper and subtracts the
 * largest drift of the others from lower. A row with upper < lower cannot change its cluster. */
#include "cluster/kmeans_internal.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

/* from this many clusters on, one exact distance is cheaper than a product with all centroids */
enum { TIGHTEN_FROM = 48 };
static const double SLACK = 1e-9; /* far above the rounding of the bounds, which are in double */

struct pass {
    struct kmeans_run *r;
    int64_t most;           /* cluster with the largest drift */
    double largest, second; /* drifts */
    bool all;               /* no bounds yet */
};

static bool stays_assigned(const struct pass *p, int64_t i)
{
    struct kmeans_run *r = p->r;
    const int32_t own = r->cluster[i];
    r->upper[i] += r->drift[own];
    r->lower[i] -= own == p->most ? p->second : p->largest;
    if (r->upper[i] * (1 + SLACK) < r->lower[i] * (1 - SLACK)) return true;
    if (r->k < TIGHTEN_FROM || !(r->upper[i] < INFINITY)) return false;
    r->upper[i] = sqrt(nearest_squared_distance(r->x + i * r->d, r->centroids + own * r->d, r->d));
    return r->upper[i] * (1 + SLACK) < r->lower[i] * (1 - SLACK);
}

static void compute_rows(struct kmeans_run *r, const int64_t *index, int64_t count)
{
    int32_t cluster[NEAREST_BLOCK];
    double upper[NEAREST_BLOCK], second[NEAREST_BLOCK];
    nearest_block(&r->nearest, r->x, r->norm2, index, count, (struct nearest_out){cluster, NULL, upper, second});
    for (int64_t i = 0; i < count; i++) {
        r->cluster[index[i]] = cluster[i];
        r->upper[index[i]] = upper[i];
        r->lower[index[i]] = second[i];
    }
}

static void assign_task(void *arg, int64_t task, int thread)
{
    const struct pass *p = arg;
    struct kmeans_run *r = p->r;
    int64_t index[NEAREST_BLOCK], count = 0, computed = 0;
    (void)thread;
    for (int64_t i = task * KM_CHUNK; i < r->n && i < (task + 1) * KM_CHUNK; i++) {
        if (!p->all && stays_assigned(p, i)) continue;
        index[count++] = i;
        computed++;
        if (count < NEAREST_BLOCK) continue;
        compute_rows(r, index, count);
        count = 0;
    }
    if (count) compute_rows(r, index, count);
    r->chunk_rows[task] = computed;
}

/* Assigns every row; moved lists those that changed their cluster, in order. */
static tare_status assign_rows(struct kmeans_run *r, bool all, struct err *e)
{
    struct pass p = {.r = r, .all = all || r->no_bounds};
    for (int64_t j = 0; j < r->k; j++) {
        if (r->drift[j] > p.largest) {
            p.second = p.largest;
            p.largest = r->drift[j];
            p.most = j;
        } else if (r->drift[j] > p.second) {
            p.second = r->drift[j];
        }
    }
    TRY(nearest_pack(&r->nearest, r->centroids, r->k, r->d, e));
    pool_run(r->pool, r->n_chunks, assign_task, &p);
    r->n_moved = 0;
    for (int64_t i = 0; i < r->n; i++)
        if (r->cluster[i] != r->previous[i]) r->moved[r->n_moved++] = i;
    for (int64_t c = 0; c < r->n_chunks; c++) r->rows_computed += r->chunk_rows[c];
    r->rows_skipped += r->n;
    for (int64_t c = 0; c < r->n_chunks; c++) r->rows_skipped -= r->chunk_rows[c];
    return TARE_OK;
}

tare_status kmeans_assign_all(struct kmeans_run *r, struct err *e)
{
    return assign_rows(r, true, e);
}

/* ---- sums: a task owns a slice of the columns and adds rows in order */

static void move_task(void *arg, int64_t task, int thread)
{
    struct kmeans_run *r = arg;
    const int64_t first = task * KM_SLICE, end = first + KM_SLICE < r->d ? first + KM_SLICE : r->d;
    (void)thread;
    for (int64_t m = 0; m < r->n_moved; m++) {
        const int64_t i = r->moved[m];
        const float *x = r->x + i * r->d;
        double *to = r->sums + r->cluster[i] * r->d;
        for (int64_t c = first; c < end; c++) to[c] += (double)x[c];
        if (r->previous[i] < 0) continue;
        double *from = r->sums + r->previous[i] * r->d;
        for (int64_t c = first; c < end; c++) from[c] -= (double)x[c];
    }
}

static void move_sums(struct kmeans_run *r)
{
    pool_run(r->pool, (r->d + KM_SLICE - 1) / KM_SLICE, move_task, r);
    for (int64_t m = 0; m < r->n_moved; m++) {
        const int64_t i = r->moved[m];
        r->sizes[r->cluster[i]]++;
        if (r->previous[i] >= 0) r->sizes[r->previous[i]]--;
        r->previous[i] = r->cluster[i];
    }
}

/* Computes all sums again from the assignment. */
static void sum_all(struct kmeans_run *r)
{
    memset(r->sums, 0, (size_t)(r->k * r->d) * sizeof *r->sums);
    memset(r->sizes, 0, (size_t)r->k * sizeof *r->sizes);
    for (int64_t i = 0; i < r->n; i++) {
        r->previous[i] = -1;
        r->moved[i] = i;
    }
    r->n_moved = r->n;
    move_sums(r);
}

static void distance_task(void *arg, int64_t task, int thread)
{
    struct kmeans_run *r = arg;
    double sum = 0;
    (void)thread;
    for (int64_t i = task * KM_CHUNK; i < r->n && i < (task + 1) * KM_CHUNK; i++) {
        r->distance[i] = nearest_squared_distance(r->x + i * r->d, r->centroids + r->cluster[i] * r->d, r->d);
        sum += r->distance[i];
    }
    r->chunk_sum[task * KM_TRIALS] = sum;
}

double kmeans_inertia(struct kmeans_run *r)
{
    pool_run(r->pool, r->n_chunks, distance_task, r);
    return kmeans_chunk_total(r, 0);
}

/* Moves to each empty cluster the row farthest from its own centroid in a cluster of two or more.
 */
static void fill_empty(struct kmeans_run *r)
{
    bool measured = false;
    for (int64_t j = 0; j < r->k; j++) {
        if (r->sizes[j]) continue;
        if (!measured) kmeans_inertia(r);
        measured = true;
        int64_t far = -1;
        for (int64_t i = 0; i < r->n; i++)
            if (r->sizes[r->cluster[i]] > 1 && (far < 0 || r->distance[i] > r->distance[far])) far = i;
        if (far < 0) return; /* not possible with n >= k */
        r->cluster[far] = (int32_t)j;
        r->moved[0] = far;
        r->n_moved = 1;
        move_sums(r);
        r->distance[far] = 0;
        r->upper[far] = INFINITY; /* so that the next pass computes it */
        r->lower[far] = 0;
    }
}

/* Moves centroids to the means and sets drift to the distances. Returns true if any moved. */
static bool move_centroids(struct kmeans_run *r, float *old)
{
    bool any = false;
    for (int64_t j = 0; j < r->k; j++) {
        float *c = r->centroids + j * r->d;
        memcpy(old, c, (size_t)r->d * sizeof *old);
        for (int64_t i = 0; i < r->d; i++) c[i] = (float)(r->sums[j * r->d + i] / (double)r->sizes[j]);
        r->drift[j] = sqrt(nearest_squared_distance(old, c, r->d)) * (1 + SLACK);
        any = any || r->drift[j] > 0;
    }
    return any;
}

tare_status kmeans_lloyd(struct kmeans_run *r, double *inertia, int64_t *iterations, bool *converged, struct err *e)
{
    OWNED(mem_free_at) float *old = NULL;
    TRY(mem_new(r->d * (int64_t)sizeof *old, (void **)&old, e));
    memset(r->sums, 0, (size_t)(r->k * r->d) * sizeof *r->sums);
    memset(r->sizes, 0, (size_t)r->k * sizeof *r->sizes);
    memset(r->drift, 0, (size_t)r->k * sizeof *r->drift);
    for (int64_t i = 0; i < r->n; i++) r->previous[i] = -1;
    *converged = false;
    TRY(assign_rows(r, true, e));
    for (*iterations = 0; *iterations < r->iterations; ++*iterations) {
        move_sums(r);
        fill_empty(r);
        bool any = move_centroids(r, old);
        if (!any) { /* converged with running sums: repeat with sums computed again */
            sum_all(r);
            any = move_centroids(r, old);
        }
        if (!any) {
            *converged = true;
            break;
        }
        TRY(assign_rows(r, false, e));
    }
    if (!*converged) move_sums(r); /* sizes follow the last pass */
    *inertia = kmeans_inertia(r);
    return TARE_OK;
}
