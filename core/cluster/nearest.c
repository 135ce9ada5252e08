#include "cluster/nearest.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

typedef float float8 __attribute__((vector_size(32)));
typedef double double8 __attribute__((vector_size(64)));

static double add_lanes(const double8 *lane)
{
    const double8 s = *lane;
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

double nearest_squared_distance(const float *x, const float *c, int64_t d)
{
    double8 lane = {0};
    for (int64_t i = 0; i < d; i += 8) {
        float8 a = {0}, b = {0};
        const size_t bytes = i + 8 <= d ? 32 : (size_t)(d - i) * sizeof(float);
        memcpy(&a, x + i, bytes);
        memcpy(&b, c + i, bytes);
        const double8 difference = __builtin_convertvector(a, double8) - __builtin_convertvector(b, double8);
        lane += difference * difference;
    }
    return add_lanes(&lane);
}

static double squared_norm(const float *x, int64_t d)
{
    double8 lane = {0};
    for (int64_t i = 0; i < d; i += 8) {
        float8 a = {0};
        memcpy(&a, x + i, i + 8 <= d ? 32 : (size_t)(d - i) * sizeof(float));
        const double8 v = __builtin_convertvector(a, double8);
        lane += v * v;
    }
    return add_lanes(&lane);
}

tare_status nearest_pack(struct nearest *n, const float *centroids, int64_t k, int64_t d, struct err *e)
{
    const int64_t panels = (k + NEAREST_LANES - 1) / NEAREST_LANES;
    if (!n->panels) {
        TRY(mem_new(panels * NEAREST_LANES * d * (int64_t)sizeof(float), (void **)&n->panels, e));
        TRY(mem_new(panels * NEAREST_LANES * (int64_t)sizeof(float), (void **)&n->half_norms, e));
    }
    n->k = k;
    n->d = d;
    n->n_panels = panels;
    n->centroids = centroids;
    n->max_norm = 0;
    n->kernel = nearest_best_kernel();
    for (int64_t j = 0; j < panels * NEAREST_LANES; j++) {
        float *to = n->panels + j / NEAREST_LANES * NEAREST_LANES * d + j % NEAREST_LANES;
        n->half_norms[j] = INFINITY;
        for (int64_t i = 0; i < d; i++) to[i * NEAREST_LANES] = j < k ? centroids[j * d + i] : 0;
        if (j >= k) continue;
        const double s = squared_norm(centroids + j * d, d);
        n->half_norms[j] = (float)(s / 2);
        n->max_norm = fmax(n->max_norm, sqrt(s));
    }
    return TARE_OK;
}

void nearest_free(struct nearest *n)
{
    mem_free(n->panels);
    mem_free(n->half_norms);
    *n = (struct nearest){0};
}

/* The result of a row. */
struct found {
    int32_t cluster;
    /* distance: exact and squared, negative if it was not computed */
    double distance, upper, second;
};

/* Compares all exact distances, for the rare row with two candidates in a lane. */
static struct found nearest_of_all(const struct nearest *n, const float *x)
{
    double best = INFINITY, next = INFINITY;
    int32_t cluster = 0;
    for (int64_t j = 0; j < n->k; j++) {
        const double d = nearest_squared_distance(x, n->centroids + j * n->d, n->d);
        if (d < best) {
            next = best;
            best = d;
            cluster = (int32_t)j;
        } else if (d < next) {
            next = d;
        }
    }
    return (struct found){cluster, best, sqrt(best), sqrt(next)};
}

/* Finds the nearest centroid from a row's values s; ||x - c||^2 = ||x||^2 + 2 s is the distance. */
static struct found find_nearest(const struct nearest *n, const float *x, double norm2, const struct lane_best *b)
{
    const double scale = sqrt(norm2) * n->max_norm + n->max_norm * n->max_norm;
    const double margin = 1.01 * (double)(n->d + 4) * 0x1p-24 * scale;
    if (!(scale < 1e37)) return nearest_of_all(n, x); /* fp32 may have overflowed */
    float least = b->best[0];
    for (int l = 1; l < NEAREST_LANES; l++) least = b->best[l] < least ? b->best[l] : least;
    const double limit = (double)least + 2 * margin;
    int candidates[NEAREST_LANES], n_candidates = 0;
    double rest = INFINITY; /* smallest s of the excluded centroids */
    for (int l = 0; l < NEAREST_LANES; l++) {
        if ((double)b->second[l] <= limit) return nearest_of_all(n, x);
        if ((double)b->best[l] <= limit) {
            candidates[n_candidates++] = l;
            rest = fmin(rest, (double)b->second[l]);
        } else {
            rest = fmin(rest, (double)b->best[l]);
        }
    }
    struct found f = {INT32_MAX, -1, sqrt(fmax(0, norm2 + 2 * ((double)least + margin))),
                      sqrt(fmax(0, norm2 + 2 * (rest - margin)))};
    if (n_candidates == 1) {
        f.cluster = b->panel[candidates[0]] * NEAREST_LANES + candidates[0];
        return f;
    }
    double best = INFINITY, next = INFINITY;
    for (int i = 0; i < n_candidates; i++) {
        const int32_t j = b->panel[candidates[i]] * NEAREST_LANES + candidates[i];
        const double d = nearest_squared_distance(x, n->centroids + j * n->d, n->d);
        if (d < best || (d == best && j < f.cluster)) {
            next = best;
            best = d;
            f.cluster = j;
        } else {
            next = fmin(next, d);
        }
    }
    f.distance = best;
    f.upper = sqrt(best);
    f.second = fmin(f.second, sqrt(next));
    return f;
}

void nearest_block(const struct nearest *n, const float *x, const double *norm2, const int64_t *index, int64_t count,
                   struct nearest_out out)
{
    const float *rows[NEAREST_BLOCK];
    struct lane_best best[NEAREST_BLOCK];
    for (int64_t i = 0; i < count; i++) {
        rows[i] = x + (index ? index[i] : i) * n->d;
        for (int l = 0; l < NEAREST_LANES; l++) {
            best[i].best[l] = best[i].second[l] = INFINITY;
            best[i].panel[l] = 0;
        }
    }
    for (int64_t p = 0; p < n->n_panels; p++) {
        const struct nearest_panel panel = {n->panels + p * NEAREST_LANES * n->d, n->half_norms + p * NEAREST_LANES, n->d,
                                            (int32_t)p};
        n->kernel(rows, count, &panel, best, NULL);
    }
    for (int64_t i = 0; i < count; i++) {
        const struct found f =
            find_nearest(n, rows[i], norm2 ? norm2[index ? index[i] : i] : squared_norm(rows[i], n->d), &best[i]);
        out.cluster[i] = f.cluster;
        if (out.distance)
            out.distance[i] =
                f.distance >= 0 ? f.distance : nearest_squared_distance(rows[i], n->centroids + f.cluster * n->d, n->d);
        if (out.upper) out.upper[i] = f.upper;
        if (out.second) out.second[i] = f.second;
    }
}

struct assign_job {
    const struct nearest *n;
    const float *x;
    int64_t n_rows;
    int32_t *cluster;
    double *distance;
};

static void assign_task(void *arg, int64_t task, int thread)
{
    const struct assign_job *job = arg;
    const int64_t first = task * NEAREST_BLOCK, remaining = job->n_rows - first;
    (void)thread;
    nearest_block(job->n, job->x + first * job->n->d, NULL, NULL, remaining < NEAREST_BLOCK ? remaining : NEAREST_BLOCK,
                  (struct nearest_out){job->cluster + first, job->distance ? job->distance + first : NULL, NULL, NULL});
}

void nearest_assign(const struct nearest *n, const float *x, int64_t n_rows, struct pool *pool, int32_t *cluster, double *distance)
{
    struct assign_job job = {n, x, n_rows, cluster, distance};
    pool_run(pool, (n_rows + NEAREST_BLOCK - 1) / NEAREST_BLOCK, assign_task, &job);
}

enum { NORM_ROWS = 1024 };
struct norm_job {
    const float *x;
    int64_t n_rows, d;
    double *norm2;
};

static void norm_task(void *arg, int64_t task, int thread)
{
    const struct norm_job *job = arg;
    (void)thread;
    for (int64_t i = task * NORM_ROWS; i < job->n_rows && i < (task + 1) * NORM_ROWS; i++)
        job->norm2[i] = squared_norm(job->x + i * job->d, job->d);
}

void nearest_norms(const float *x, int64_t n_rows, int64_t d, struct pool *pool, double *norm2)
{
    struct norm_job job = {x, n_rows, d, norm2};
    pool_run(pool, (n_rows + NORM_ROWS - 1) / NORM_ROWS, norm_task, &job);
}
