#include "cluster/inspect.h"

#include "base/arena.h"
#include "base/rng.h"
#include "cluster/nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tare_status set_member(json_t *o, const char *key, json_t *value, struct err *e)
{
    if (json_object_set_new(o, key, value)) FAIL(e, TARE_E_NOMEM, "inspect: no memory for %s", key);
    return TARE_OK;
}

static json_t *json_number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* ---------------------------------------------------------------- silhouette */

struct silhouette {
    const struct inspect_rows *rows;
    const int64_t *index; /* [n] sampled rows */
    int64_t n;
    const int64_t *sizes; /* [K] in the sample */
    double *value;        /* [n] */
    double *sum;          /* [threads, K] */
};

static void silhouette_task(void *arg, int64_t task, int thread)
{
    const struct silhouette *s = arg;
    const struct inspect_rows *r = s->rows;
    double *sum = s->sum + thread * r->k;
    const int32_t own = r->cluster[s->index[task]];
    memset(sum, 0, (size_t)r->k * sizeof *sum);
    for (int64_t j = 0; j < s->n; j++)
        sum[r->cluster[s->index[j]]] +=
            sqrt(nearest_squared_distance(r->x + s->index[task] * r->d, r->x + s->index[j] * r->d, r->d));
    s->value[task] = 0;
    if (s->sizes[own] < 2) return;
    const double a = sum[own] / (double)(s->sizes[own] - 1);
    double b = INFINITY;
    for (int64_t k = 0; k < r->k; k++)
        if (k != own && s->sizes[k]) b = fmin(b, sum[k] / (double)s->sizes[k]);
    const double larger = fmax(a, b);
    s->value[task] = larger > 0 && isfinite(b) ? (b - a) / larger : 0;
}

tare_status inspect_silhouette(const struct inspect_rows *rows, const struct inspect_options *o, double *out, int64_t *sampled,
                               struct err *e)
{
    OWNED(mem_free_at) int64_t *index = NULL;
    OWNED(mem_free_at) double *buffer = NULL;
    int64_t n = 0, clusters = 0;
    *out = NAN;
    TRY(mem_new((rows->n + rows->k) * (int64_t)sizeof *index, (void **)&index, e));
    int64_t *sizes = index + rows->n;
    for (int64_t i = 0; i < rows->n; i++)
        if (rows->cluster[i] >= 0) index[n++] = i;
    rng_shuffle(rng_key(o->seed, RNG_SHUFFLE), index, n);
    if (n > o->sample) n = o->sample;
    for (int64_t i = 0; i < n; i++) clusters += !sizes[rows->cluster[index[i]]]++;
    TRY(mem_new((n + pool_threads(o->pool) * rows->k) * (int64_t)sizeof *buffer, (void **)&buffer, e));
    struct silhouette s = {.rows = rows, .index = index, .n = n, .sizes = sizes, .value = buffer, .sum = buffer + n};
    if (clusters > 1) {
        pool_run(o->pool, n, silhouette_task, &s);
        double total = 0;
        for (int64_t i = 0; i < n; i++) total += s.value[i];
        *out = total / (double)n;
    }
    *sampled = n;
    return TARE_OK;
}

/* ---------------------------------------------------------------- clusters */

struct ranked {
    float distance;
    int64_t row;
};

static int by_distance(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->distance < b->distance || a->distance > b->distance) return a->distance < b->distance ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static tare_status describe_cluster(const struct inspect_rows *r, int64_t k, struct ranked *order, int64_t nearest, json_t *list,
                                    struct err *e)
{
    int64_t n = 0;
    double total = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (r->cluster[i] != k) continue;
        order[n++] = (struct ranked){r->distance ? r->distance[i] : 0, i};
        if (r->distance) total += sqrt((double)r->distance[i]);
    }
    qsort(order, (size_t)n, sizeof *order, by_distance);
    json_t *o = json_object(), *texts = json_array();
    if (json_array_append_new(list, o)) {
        json_decref(texts);
        FAIL(e, TARE_E_NOMEM, "inspect: no memory for cluster %lld", (long long)k);
    }
    TRY(set_member(o, "cluster", json_integer((json_int_t)k), e));
    TRY(set_member(o, "rows", json_integer((json_int_t)n), e));
    TRY(set_member(o, "mean_distance", json_number_or_null(n && r->distance ? total / (double)n : NAN), e));
    for (int64_t i = 0; i < n && i < nearest; i++)
        json_array_append_new(texts, r->texts ? json_stringn(r->texts[order[i].row].data, (size_t)r->texts[order[i].row].size)
                                              : json_integer((json_int_t)order[i].row));
    return set_member(o, "nearest", texts, e);
}

tare_status inspect_clusters(const struct inspect_rows *rows, const struct inspect_options *options, json_t **out, struct err *e)
{
    OWNED(mem_free_at) struct ranked *order = NULL;
    OWNED(json_decrefp) json_t *o = json_object(), *list = json_array();
    int64_t none = 0, empty = 0, sampled = 0;
    double silhouette = NAN;
    TRY(mem_new(rows->n * (int64_t)sizeof *order, (void **)&order, e));
    for (int64_t i = 0; i < rows->n; i++) none += rows->cluster[i] < 0;
    for (int64_t k = 0; k < rows->k; k++) {
        TRY(describe_cluster(rows, k, order, options->nearest, list, e));
        empty += !json_integer_value(json_object_get(json_array_get(list, (size_t)k), "rows"));
    }
    if (rows->x) TRY(inspect_silhouette(rows, options, &silhouette, &sampled, e));
    TRY(set_member(o, "rows", json_integer((json_int_t)rows->n), e));
    TRY(set_member(o, "in_no_cluster", json_integer((json_int_t)none), e));
    TRY(set_member(o, "empty", json_integer((json_int_t)empty), e));
    TRY(set_member(o, "silhouette", json_number_or_null(silhouette), e));
    TRY(set_member(o, "sampled", json_integer((json_int_t)sampled), e));
    TRY(set_member(o, "clusters", json_incref(list), e));
    *out = json_incref(o);
    return TARE_OK;
}
