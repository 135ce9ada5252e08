#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/embeddings.h"
#include "cluster/codebook.h"
#include "cluster/nearest.h"

#include <string.h>

enum { ASSIGN_ROWS = 16384 }; /* embeddings in memory at a time */

struct assignment {
    struct nearest nearest;
    float *centroids, *x;
    int32_t *cluster;        /* [n] */
    double *distance;        /* [ASSIGN_ROWS] */
    double inertia, seconds; /* seconds: without reading the file */
};

static tare_status assign_parts(const struct embeddings *x, struct assignment *a, struct pool *pool, struct err *e)
{
    for (int64_t first = 0; first < x->n; first += ASSIGN_ROWS) {
        const int64_t n = x->n - first < ASSIGN_ROWS ? x->n - first : ASSIGN_ROWS;
        TRY(embeddings_read(x, first, n, a->x, e));
        embeddings_drop(x, first, n);
        const double start = clock_seconds();
        nearest_assign(&a->nearest, a->x, n, pool, a->cluster + first, a->distance);
        a->seconds += clock_seconds() - start;
        for (int64_t i = 0; i < n; i++) a->inertia += a->distance[i];
    }
    return TARE_OK;
}

static tare_status write_clusters(const char *path, const int32_t *cluster, int64_t n, struct err *e)
{
    OWNED(str_free) struct str file = {0};
    char header[256], length[8];
    int size = snprintf(header, sizeof header, "{\"cluster\":{\"dtype\":\"I32\",\"shape\":[%lld],\"data_offsets\":[0,%lld]}}",
                        (long long)n, (long long)n * 4);
    while ((size + 8) % 8) header[size++] = ' ';
    for (int i = 0; i < 8; i++) length[i] = (char)((uint64_t)size >> (8 * i));
    TRY(str_add(&file, length, 8, e));
    TRY(str_add(&file, header, size, e));
    TRY(str_add(&file, (const char *)cluster, n * 4, e));
    return fs_write_atomic(path, file.data, file.size, e);
}

/* Peak resident size in MiB; that of getrusage includes the program which started this one. */
static double peak_memory_mb(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long long kb = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld", &kb) == 1) break;
    if (f) fclose(f);
    return (double)kb / 1024;
}

static void assignment_free(struct assignment *a)
{
    nearest_free(&a->nearest);
    mem_free(a->centroids);
    mem_free(a->x);
    mem_free(a->cluster);
    mem_free(a->distance);
}

static tare_status assign_with(const struct cluster_words *w, const struct embeddings *x, const struct embeddings *c, struct err *e)
{
    OWNED(assignment_free) struct assignment a = {0};
    if (x->d != c->d)
        FAIL(e, TARE_E_SHAPE, "%s: embeddings of width %lld; %s needs width %lld", w->embeddings, (long long)x->d, w->name,
             (long long)c->d);
    TRY(mem_new(c->n * c->d * (int64_t)sizeof(float), (void **)&a.centroids, e));
    TRY(mem_new(ASSIGN_ROWS * x->d * (int64_t)sizeof(float), (void **)&a.x, e));
    TRY(mem_new(x->n * (int64_t)sizeof(int32_t), (void **)&a.cluster, e));
    TRY(mem_new(ASSIGN_ROWS * (int64_t)sizeof(double), (void **)&a.distance, e));
    TRY(embeddings_read(c, 0, c->n, a.centroids, e));
    TRY(nearest_pack(&a.nearest, a.centroids, c->n, c->d, e));
    TRY(assign_parts(x, &a, w->options.pool, e));
    TRY(write_clusters(w->out, a.cluster, x->n, e));
    printf(
        "{\"rows\":%lld,\"clusters\":%lld,\"inertia\":%.17g,\"seconds\":%.4f,\"gflops\":%.2f,\"peak_memory_mb\":%.1f,\"threads\":%d}\n",
        (long long)x->n, (long long)c->n, a.inertia, a.seconds, 2e-9 * (double)x->n * (double)c->n * (double)x->d / a.seconds,
        peak_memory_mb(), pool_threads(w->options.pool));
    return cli_flush(e);
}

tare_status cluster_assign_file(const struct cluster_words *w, struct err *e)
{
    OWNED(embeddings_close) struct embeddings c = {0}, x = {0};
    OWNED(json_decrefp) json_t *metadata = NULL;
    TRY(codebook_metadata(w->name, &metadata, e)); /* refuses a file that is not a codebook */
    TRY(embeddings_open(w->name, "centroids", &c, e));
    TRY(embeddings_open(w->embeddings, w->tensor, &x, e));
    return assign_with(w, &x, &c, e);
}
