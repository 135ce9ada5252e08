/* Lines of JSON on standard input, read in chunks: their clusters, or their embeddings, on standard
 * output. */
#include "base/fs.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/clusterers.h"
#include "cluster/encode.h"
#include "cluster/match.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Lines of a chunk, and slices of a chunk that are formatted in parallel. */
enum { CHUNK = 4096, SLICES = 16 };

struct filter {
    struct cli_plugin codebook; /* not open: embeddings are printed */
    struct cli_plugin encoder;  /* not open: the codebook reads rows */
    struct pool *pool;
    json_t *lines[CHUNK];
    tare_text texts[CHUNK], rows[CHUNK];
    struct str json[CHUNK]; /* bytes of rows; for codebooks only */
    float *x;               /* [capacity, D] */
    int32_t cluster[CHUNK];
    float distance[CHUNK];
    int64_t n, capacity, d;
    struct str printed[SLICES];
    tare_status status[SLICES];
    struct err errors[SLICES];
};

static tare_status print_embedding(const struct filter *f, int64_t i, struct str *text, struct err *e)
{
    const json_t *id = json_object_get(f->lines[i], "id");
    TRY(str_add(text, "{", 1, e));
    if (id) {
        TRY(str_add(text, "\"id\":", -1, e));
        TRY(json_print(id, text, e));
        TRY(str_add(text, ",", 1, e));
    }
    TRY(str_add(text, "\"embedding\":[", -1, e));
    for (int64_t j = 0; j < f->d; j++) TRY(str_addf(text, e, "%s%.9g", j ? "," : "", (double)f->x[i * f->d + j]));
    return str_add(text, "]}\n", -1, e);
}

static tare_status print_cluster(const struct filter *f, int64_t i, struct str *text, struct err *e)
{
    OWNED(str_free) struct str name = {0};
    OWNED(json_decrefp) json_t *o = json_object();
    const json_t *id = json_object_get(f->lines[i], "id");
    if (id) json_object_set(o, "id", (json_t *)(uintptr_t)id);
    json_object_set_new(o, "cluster", json_integer(f->cluster[i]));
    json_object_set_new(o, "distance",
                        f->cluster[i] < 0 || isnan(f->distance[i]) ? json_null() : json_real((double)f->distance[i]));
    if (f->cluster[i] >= 0) TRY(plugin_cluster_name(f->codebook.instance, f->cluster[i], &name, e));
    if (name.size) json_object_set_new(o, "name", json_stringn(name.data, (size_t)name.size));
    TRY(json_print(o, text, e));
    return str_add(text, "\n", 1, e);
}

/* Formatting a number costs as much as a thousand of the encoder's operations, so the pool does it.
 */
static void print_slice(void *arg, int64_t slice, int thread)
{
    struct filter *f = arg;
    struct str *text = &f->printed[slice];
    struct err *e = &f->errors[slice];
    tare_status s = TARE_OK;
    (void)thread;
    str_clear(text);
    for (int64_t i = slice * f->n / SLICES; i < (slice + 1) * f->n / SLICES && !s; i++)
        s = f->codebook.open ? print_cluster(f, i, text, e) : print_embedding(f, i, text, e);
    f->status[slice] = s;
}

static tare_status write_lines(struct filter *f, struct err *e)
{
    /* a plugin's cluster_name is called on one thread */
    struct pool *pool = f->codebook.open ? NULL : f->pool;
    pool_run(pool, SLICES, print_slice, f);
    for (int i = 0; i < SLICES; i++) {
        cli_add(&f->printed[i]);
        if (!f->status[i]) continue;
        *e = f->errors[i];
        return f->status[i];
    }
    return cli_flush(e);
}

static tare_status process_lines(struct filter *f, struct err *e)
{
    if (!f->n) return TARE_OK;
    if (f->encoder.open) TRY(encode_texts(&(struct encoding){f->encoder.instance, f->texts, f->n, f->pool}, f->x, e));
    if (f->codebook.open)
        TRY(plugin_assign(f->codebook.instance, &(struct plugin_assignment){f->x, f->rows, f->n, f->cluster, f->distance}, e));
    return write_lines(f, e);
}

static tare_status flush_answers(struct filter *f, struct err *e)
{
    const tare_status s = process_lines(f, e);
    for (int64_t i = 0; i < f->n; i++) json_decref(f->lines[i]);
    f->n = 0;
    return s;
}

static tare_status read_filter_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct filter *f = ctx;
    if (f->encoder.open)
        TRY(json_get_text(object, json_object_get(object, "text") ? "text" : "question", where, &f->texts[f->n], e));
    if (f->codebook.open) {
        struct str *json = &f->json[f->n];
        str_clear(json);
        TRY(json_print(object, json, e));
        f->rows[f->n] = (tare_text){json->data, json->size};
    }
    f->lines[f->n++] = json_incref((json_t *)(uintptr_t)object);
    return f->n == f->capacity ? flush_answers(f, e) : TARE_OK;
}

static void filter_free_at(struct filter **at)
{
    struct filter *f = *at;
    if (!f) return;
    cli_plugin_close(&f->encoder);
    cli_plugin_close(&f->codebook);
    for (int64_t i = 0; i < CHUNK; i++) str_free(&f->json[i]);
    for (int i = 0; i < SLICES; i++) str_free(&f->printed[i]);
    mem_free(f->x);
    mem_free(f);
}

/* One thread answers line by line; several threads read whole chunks. */
static tare_status filter_new(const struct cluster_words *w, struct filter **out, struct err *e)
{
    TRY(mem_new((int64_t)sizeof **out, (void **)out, e));
    (*out)->pool = w->options.pool;
    (*out)->capacity = w->threads == 1 ? 1 : CHUNK;
    return TARE_OK;
}

/* The lines before an invalid one are still answered. */
static tare_status run_filter(struct filter *f, struct err *e)
{
    if (f->encoder.open) {
        f->d = f->encoder.instance->sizes.dim;
        TRY(mem_new(f->capacity * f->d * (int64_t)sizeof *f->x, (void **)&f->x, e));
    }
    const tare_status read = json_each_line(stdin, "standard input", read_filter_line, f, e);
    struct err late;
    const tare_status last = flush_answers(f, read ? &late : e);
    return read ? read : last;
}

/* ---------------------------------------------------------------- rows to learn from */

struct fit_rows {
    struct str *json;
    int64_t n, capacity;
};

static void fit_rows_free(struct fit_rows *r)
{
    for (int64_t i = 0; i < r->n; i++) str_free(&r->json[i]);
    mem_free(r->json);
}

static tare_status read_fit_row(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct fit_rows *r = ctx;
    (void)where;
    TRY(mem_grow((void **)&r->json, &r->capacity, r->n + 1, (int64_t)sizeof *r->json, e));
    r->n++;
    return json_print(object, &r->json[r->n - 1], e);
}

static tare_status fit_codebook(struct plugin_instance *codebook, const char *path, struct err *e)
{
    OWNED(fit_rows_free) struct fit_rows r = {0};
    OWNED(mem_free_at) tare_text *texts = NULL;
    OWNED(fs_close_at) FILE *file = fopen(path, "rb");
    if (!file) FAIL(e, TARE_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    TRY(json_each_line(file, path, read_fit_row, &r, e));
    TRY(mem_new(r.n * (int64_t)sizeof *texts, (void **)&texts, e));
    for (int64_t i = 0; i < r.n; i++) texts[i] = (tare_text){r.json[i].data, r.json[i].size};
    return plugin_fit(codebook, texts, r.n, e);
}

/* ---------------------------------------------------------------- the sub-verbs */

tare_status cluster_assign_lines(const struct cluster_words *w, struct err *e)
{
    OWNED(filter_free_at) struct filter *f = NULL;
    const struct cli_choice encoder = {w->encoder, w->settings + w->named, w->n_settings - w->named};
    TRY(filter_new(w, &f, e));
    TRY(cli_codebook_open(w->name, w->settings, w->named, &f->codebook, e));
    if (w->fit) TRY(fit_codebook(f->codebook.instance, w->fit, e));
    if (f->codebook.instance->sizes.clusters < 1)
        FAIL(e, TARE_E_CONFIG, "codebook %s: has no clusters until it has read rows; name them with --fit FILE", w->name);
    TRY(cli_encoder_for(f->codebook.instance, w->name, &encoder, &f->encoder, e));
    return run_filter(f, e);
}

tare_status cluster_embed_lines(const struct cluster_words *w, struct err *e)
{
    OWNED(cli_plugin_close) struct cli_plugin fitted = {0};
    OWNED(filter_free_at) struct filter *f = NULL;
    TRY(filter_new(w, &f, e));
    TRY(cli_plugin_open(w->name, TARE_KIND_ENCODER, w->settings, w->n_settings, &f->encoder, e));
    if (w->codebook) TRY(cli_codebook_open(w->codebook, NULL, 0, &fitted, e));
    if (w->codebook) TRY(match_encoder(fitted.instance, f->encoder.instance, w->codebook, e));
    return run_filter(f, e);
}
