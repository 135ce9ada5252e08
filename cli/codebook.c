#include "cli/codebook.h"
#include "cli/cli.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/clusterers.h"
#include "cluster/codebook.h"
#include "cluster/corpus.h"
#include "cluster/encode.h"
#include "cluster/inspect.h"
#include "cluster/match.h"
#include "cluster/nearest.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- embeddings */

tare_status embeddings_open(const char *path, const char *name, struct embeddings *out, struct err *e)
{
    *out = (struct embeddings){0};
    TRY(safetensors_open(path, &out->file, e));
    const struct st_tensor *t = safetensors_find(&out->file, name ? name : "embeddings");
    if (!t && !name) {
        int64_t matrices = 0;
        for (int64_t i = 0; i < out->file.n_tensors; i++) {
            if (out->file.tensors[i].rank != 2) continue;
            t = &out->file.tensors[i];
            matrices++;
        }
        if (matrices != 1) t = NULL;
    }
    tare_status s = TARE_OK;
    if (!t)
        s = err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__, "%s: has no tensor \"%s\"; name one with --tensor", path,
                    name ? name : "embeddings");
    else if (t->rank != 2 || t->shape[0] < 1 || t->shape[1] < 1)
        s = err_set(e, TARE_E_SHAPE, __FILE__, __LINE__, "%s: tensor %s is not of shape [rows, width]", path, t->name);
    else if (strcmp(t->dtype, "F32") && strcmp(t->dtype, "F16") && strcmp(t->dtype, "BF16"))
        s = err_set(e, TARE_E_UNSUPPORTED, __FILE__, __LINE__, "%s: tensor %s has type %s; F32, F16 and BF16 are understood", path,
                    t->name, t->dtype);
    if (s) {
        embeddings_close(out);
        return s;
    }
    out->tensor = t;
    out->n = t->shape[0];
    out->d = t->shape[1];
    return TARE_OK;
}

tare_status embeddings_read(const struct embeddings *x, int64_t first, int64_t n, float *out, struct err *e)
{
    const int64_t item = x->tensor->bytes / (x->n * x->d);
    struct st_tensor part = *x->tensor;
    part.shape[0] = n;
    part.bytes = n * x->d * item;
    part.data = x->tensor->data + first * x->d * item;
    TRY(st_read_f32(&x->file, &part, out, e));
    for (int64_t i = 0; i < n * x->d; i++)
        if (!isfinite(out[i]))
            FAIL(e, TARE_E_NOT_FINITE, "tensor %s: row %lld has a NaN or an infinity", part.name, (long long)(first + i / x->d));
    return TARE_OK;
}

void embeddings_drop(const struct embeddings *x, int64_t first, int64_t n)
{
    const int64_t row = x->tensor->bytes / x->n;
    const uintptr_t page = 4096, begin = ((uintptr_t)x->tensor->data + (uintptr_t)(first * row) + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)x->tensor->data + (uintptr_t)((first + n) * row)) & ~(page - 1);
    if (end > begin) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

uint64_t embeddings_hash(const struct embeddings *x)
{
    return fs_hash(x->tensor->data, x->tensor->bytes, 0);
}

void embeddings_close(struct embeddings *x)
{
    safetensors_close(&x->file);
    *x = (struct embeddings){0};
}

/* ---------------------------------------------------------------- assign */

enum { ASSIGN_ROWS = 16384 }; /* rows in memory at a time */

struct assignment {
    struct nearest nearest;
    float *centroids, *x;
    int32_t *cluster;        /* [n] */
    double *distance;        /* [ASSIGN_ROWS] */
    double inertia, seconds; /* seconds: of the assignment itself, without reading */
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

/* The largest resident size so far; getrusage's would include that of the program which started this one. */
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

static tare_status assign_with(const struct codebook_words *w, const struct embeddings *x, const struct embeddings *c,
                               struct pool *pool, struct err *e)
{
    OWNED(assignment_free) struct assignment a = {0};
    if (x->d != c->d)
        FAIL(e, TARE_E_SHAPE, "%s: embeddings of width %lld, and %s takes %lld", w->embeddings, (long long)x->d, w->name,
             (long long)c->d);
    TRY(mem_new(c->n * c->d * (int64_t)sizeof(float), (void **)&a.centroids, e));
    TRY(mem_new(ASSIGN_ROWS * x->d * (int64_t)sizeof(float), (void **)&a.x, e));
    TRY(mem_new(x->n * (int64_t)sizeof(int32_t), (void **)&a.cluster, e));
    TRY(mem_new(ASSIGN_ROWS * (int64_t)sizeof(double), (void **)&a.distance, e));
    TRY(embeddings_read(c, 0, c->n, a.centroids, e));
    TRY(nearest_pack(&a.nearest, a.centroids, c->n, c->d, e));
    TRY(assign_parts(x, &a, pool, e));
    TRY(write_clusters(w->out, a.cluster, x->n, e));
    printf(
        "{\"rows\":%lld,\"clusters\":%lld,\"inertia\":%.17g,\"seconds\":%.4f,\"gflops\":%.2f,\"peak_memory_mb\":%.1f,\"threads\":%d}\n",
        (long long)x->n, (long long)c->n, a.inertia, a.seconds, 2e-9 * (double)x->n * (double)c->n * (double)x->d / a.seconds,
        peak_memory_mb(), pool_threads(pool));
    return cli_flush(e);
}

tare_status codebook_assign_file(const struct codebook_words *w, struct pool *pool, struct err *e)
{
    OWNED(embeddings_close) struct embeddings c = {0};
    struct embeddings x;
    json_t *metadata;
    TRY(codebook_metadata(w->name, &metadata, e)); /* refuses a file that is no codebook */
    json_decref(metadata);
    TRY(embeddings_open(w->name, "centroids", &c, e));
    TRY(embeddings_open(w->embeddings, w->tensor, &x, e));
    TRY(assign_with(w, &x, &c, pool, e));
    embeddings_close(&x);
    return TARE_OK;
}

/* ---------------------------------------------------------------- inspect */

struct inspected {
    struct corpus corpus;
    struct embeddings embeddings;
    float *x, *distance;
    int32_t *cluster;
    int64_t n, d;
};

static tare_status read_rows(const struct codebook_words *w, struct cli_plugin *codebook, struct inspected *r, struct pool *pool,
                             struct err *e)
{
    r->d = plugin_dim(codebook->instance);
    if (w->corpus) {
        TRY(corpus_open(w->corpus, &r->corpus, e));
        r->n = r->corpus.n;
    }
    if (w->embeddings) {
        TRY(embeddings_open(w->embeddings, w->tensor, &r->embeddings, e));
        if (r->embeddings.d != r->d)
            FAIL(e, TARE_E_SHAPE, "%s: embeddings of width %lld, and %s takes %lld", w->embeddings, (long long)r->embeddings.d,
                 w->name, (long long)r->d);
        if (w->corpus && r->embeddings.n != r->n)
            FAIL(e, TARE_E_SHAPE, "%s has %lld rows and %s %lld", w->embeddings, (long long)r->embeddings.n, w->corpus,
                 (long long)r->n);
        r->n = r->embeddings.n;
    }
    TRY(mem_new(r->n * r->d * (int64_t)sizeof *r->x, (void **)&r->x, e));
    TRY(mem_new(r->n * (int64_t)sizeof *r->cluster, (void **)&r->cluster, e));
    TRY(mem_new(r->n * (int64_t)sizeof *r->distance, (void **)&r->distance, e));
    if (w->embeddings) {
        TRY(embeddings_read(&r->embeddings, 0, r->n, r->x, e));
    } else {
        struct cli_plugin encoder = {0};
        const struct cli_choice choice = {w->encoder, w->settings, w->n_settings};
        tare_status s = cli_encoder_for(codebook->instance, w->name, &choice, &encoder, e);
        if (!s) s = encode_texts(&(struct encoding){encoder.instance, r->corpus.texts, r->n, pool}, r->x, e);
        cli_plugin_close(&encoder);
        TRY(s);
    }
    return plugin_assign(codebook->instance, &(struct plugin_assignment){r->x, NULL, r->n, r->cluster, r->distance}, e);
}

static void free_rows(struct inspected *r)
{
    if (r->corpus.texts) corpus_free(&r->corpus);
    if (r->embeddings.tensor) embeddings_close(&r->embeddings);
    mem_free(r->x);
    mem_free(r->cluster);
    mem_free(r->distance);
}

static tare_status inspect_corpus(const struct codebook_words *w, struct cli_plugin *codebook, struct pool *pool, json_t **out,
                                  struct err *e)
{
    OWNED(free_rows) struct inspected r = {0};
    TRY(read_rows(w, codebook, &r, pool, e));
    const struct inspect_rows rows = {.x = r.x,
                                      .texts = r.corpus.texts,
                                      .cluster = r.cluster,
                                      .distance = r.distance,
                                      .n = r.n,
                                      .d = r.d,
                                      .k = plugin_size(codebook->instance)};
    return inspect_clusters(&rows, &(struct inspect_options){w->nearest, w->sample, w->options.seed, pool}, out, e);
}

static void print_clusters(const json_t *o)
{
    const json_t *s = json_object_get(o, "silhouette"), *list = json_object_get(o, "clusters");
    printf("\n%lld rows, %lld clusters without a row, silhouette %.4f (over %lld rows)\n", (long long)json_int_or(o, "rows", 0),
           (long long)json_int_or(o, "empty", 0), json_is_real(s) ? json_real_value(s) : (double)NAN,
           (long long)json_int_or(o, "sampled", 0));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *c = json_array_get(list, i), *nearest = json_object_get(c, "nearest");
        printf("\ncluster %lld: %lld rows, mean distance %.4f\n", (long long)json_int_or(c, "cluster", 0),
               (long long)json_int_or(c, "rows", 0), json_double_or(c, "mean_distance", (double)NAN));
        for (size_t j = 0; j < json_array_size(nearest); j++) {
            const json_t *v = json_array_get(nearest, j);
            char question[161];
            snprintf(question, sizeof question, "%s", json_is_string(v) ? json_string_value(v) : "");
            str_disarm(question, (int64_t)strlen(question));
            if (json_is_string(v))
                printf("  - %s%s\n", question, json_string_length(v) > 160 ? "..." : "");
            else
                printf("  - row %lld\n", (long long)json_integer_value(v));
        }
    }
}

static void print_rollouts(const json_t *o)
{
    const json_t *list = json_object_get(o, "clusters"), *drift = json_object_get(o, "drift");
    printf("\n%lld rollouts, reward mean %.4f, variance %.4f; the clusters explain %.2f %% of it; drift of use ",
           (long long)json_int_or(o, "rollouts", 0), json_double_or(o, "reward_mean", 0), json_double_or(o, "reward_variance", 0),
           100 * json_double_or(o, "explained", 0));
    if (json_is_real(drift))
        printf("%.4f\n", json_real_value(drift));
    else
        printf("not known (one file)\n");
    printf("%8s %9s %12s %15s\n", "cluster", "rollouts", "reward mean", "reward variance");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *c = json_array_get(list, i);
        printf("%8lld %9lld %12.4f %15.4f\n", (long long)json_int_or(c, "cluster", -1), (long long)json_int_or(c, "rollouts", 0),
               json_double_or(c, "reward_mean", 0), json_double_or(c, "reward_variance", 0));
    }
}

static tare_status print_inspection(const json_t *all, bool json, struct err *e)
{
    if (json) {
        OWNED(str_free) struct str text = {0};
        TRY(json_print(all, &text, e));
        printf("%s\n", text.data);
    } else {
        const char *key;
        json_t *value;
        json_object_foreach(json_object_get(all, "made"), key, value) printf("%-17s %s\n", key, json_string_value(value));
        if (json_object_get(all, "corpus")) print_clusters(json_object_get(all, "corpus"));
        if (json_object_get(all, "rollouts")) print_rollouts(json_object_get(all, "rollouts"));
    }
    return cli_flush(e);
}

tare_status codebook_inspect(const struct codebook_words *w, struct pool *pool, struct err *e)
{
    OWNED(cli_plugin_close) struct cli_plugin codebook = {0};
    OWNED(json_decrefp) json_t *all = json_object();
    json_t *part = NULL;
    TRY(cli_codebook_open(w->name, NULL, 0, &codebook, e));
    const char *path = match_codebook_path(codebook.instance);
    if (path) {
        TRY(codebook_metadata(path, &part, e));
        json_object_set_new(all, "made", part);
    }
    if (w->corpus || w->embeddings) {
        TRY(inspect_corpus(w, &codebook, pool, &part, e));
        json_object_set_new(all, "corpus", part);
    }
    if (w->rollouts) {
        TRY(inspect_rollouts(w->rollouts, &part, e));
        json_object_set_new(all, "rollouts", part);
    }
    return print_inspection(all, w->json, e);
}
