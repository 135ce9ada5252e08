#include "loop/plugin_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tare/plugin.h>

void plugin_metrics_init(struct plugin_metrics *m)
{
    *m = (struct plugin_metrics){0};
    pthread_mutex_init(&m->lock, NULL);
}

static void forget(struct plugin_metrics *m)
{
    for (int64_t i = 0; i < m->n; i++) {
        free(m->all[i].name);
        mem_free(m->all[i].value);
    }
    m->n = 0;
}

void plugin_metrics_free(struct plugin_metrics *m)
{
    forget(m);
    mem_free(m->all);
    pthread_mutex_destroy(&m->lock);
}

static struct plugin_metric *find_or_add(struct plugin_metrics *m, const char *name, int32_t how)
{
    for (int64_t i = 0; i < m->n; i++)
        if (!strcmp(m->all[i].name, name)) return &m->all[i];
    char *copy = strdup(name);
    if (!copy || mem_grow((void **)&m->all, &m->capacity, m->n + 1, sizeof *m->all, NULL)) {
        free(copy);
        return NULL;
    }
    m->all[m->n] = (struct plugin_metric){.name = copy, .how = how};
    return &m->all[m->n++];
}

static void add(struct plugin_metrics *m, const char *name, double value, int32_t how)
{
    struct plugin_metric *one = find_or_add(m, name, how);
    if (one && one->how == TARE_METRIC_LAST && one->n) one->n = 0;
    if (!one || mem_grow((void **)&one->value, &one->capacity, one->n + 1, sizeof *one->value, NULL))
        m->lost = true;
    else
        one->value[one->n++] = value;
}

void plugin_metrics_add(struct plugin_metrics *m, const char *name, double value, int32_t how)
{
    pthread_mutex_lock(&m->lock);
    add(m, name, value, how);
    pthread_mutex_unlock(&m->lock);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The values' number. Sorting makes a sum independent of the order of threads. */
static double reduce(struct plugin_metric *one)
{
    double sum = 0;
    if (one->how == TARE_METRIC_SUM || one->how == TARE_METRIC_MEAN) {
        qsort(one->value, (size_t)one->n, sizeof *one->value, by_value);
        for (int64_t i = 0; i < one->n; i++) sum += one->value[i];
        return one->how == TARE_METRIC_SUM ? sum : sum / (double)one->n;
    }
    double result = one->value[one->n - 1];
    for (int64_t i = 0; i < one->n; i++) {
        if (one->how == TARE_METRIC_MIN) result = fmin(result, one->value[i]);
        if (one->how == TARE_METRIC_MAX) result = fmax(result, one->value[i]);
    }
    return result;
}

/* Writes every value as "how NAME\0value". */
static tare_status pack(const struct plugin_metrics *m, struct str *out, struct err *e)
{
    for (int64_t i = 0; i < m->n; i++)
        for (int64_t k = 0; k < m->all[i].n; k++) {
            TRY(str_add(out, (const char *)&m->all[i].how, sizeof m->all[i].how, e));
            TRY(str_add(out, m->all[i].name, (int64_t)strlen(m->all[i].name) + 1, e));
            TRY(str_add(out, (const char *)&m->all[i].value[k], sizeof(double), e));
        }
    return TARE_OK;
}

static void unpack(struct plugin_metrics *m, const char *data, int64_t n)
{
    for (int64_t at = 0; at < n;) {
        int32_t how;
        double value;
        memcpy(&how, data + at, sizeof how);
        const char *name = data + at + sizeof how;
        at += (int64_t)(sizeof how + strlen(name) + 1);
        memcpy(&value, data + at, sizeof value);
        at += (int64_t)sizeof value;
        add(m, name, value, how);
    }
}

static tare_status join_ranks(struct plugin_metrics *m, struct comm *comm, struct arena *a, struct err *e)
{
    OWNED(str_free) struct str mine = {0};
    int64_t *sizes, total = 0;
    char *all;
    TRY(pack(m, &mine, e));
    TRY(arena_new(a, &sizes, comm->size, e));
    TRY(comm_gather_sizes(comm, mine.size, sizes, e));
    for (int k = 0; k < comm->size; k++) total += sizes[k];
    if (!total) return TARE_OK;
    TRY(arena_new(a, &all, total, e));
    TRY(comm->gather(comm, mine.data, mine.size, all, sizes, e));
    forget(m);
    unpack(m, all, total);
    return TARE_OK;
}

tare_status plugin_metrics_settle(struct plugin_metrics *m, struct comm *comm, struct observe *o, struct arena *a, struct err *e)
{
    if (comm->size > 1) TRY(join_ranks(m, comm, a, e));
    if (m->lost) FAIL(e, TARE_E_NOMEM, "out of memory for the metrics of plugins");
    for (int64_t i = 0; i < m->n; i++) observe_set(o, m->all[i].name, reduce(&m->all[i]));
    forget(m);
    return TARE_OK;
}
