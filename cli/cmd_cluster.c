/* tare cluster CODEBOOK [key=value ...]: texts or rows in, clusters out. */
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/clusterers.h"
#include "cluster/encode.h"

#include <errno.h>
#include <string.h>

enum { CHUNK = 1024 };

const char cluster_usage[] =
    "usage: tare cluster CODEBOOK [key=value ...] [--encoder NAME [key=value ...]] [--fit FILE] [--threads N]\n"
    "  CODEBOOK   a codebook plugin, or a codebook's file (*.safetensors)\n"
    "  reads      {\"text\"} a line (\"question\" is taken too; codebooks of rows see the whole line)\n"
    "  writes     {\"cluster\",\"distance\"} a line (with \"id\" where the input has one, \"name\" where clusters have one)\n"
    "  --encoder NAME  the encoder, and after it its parameters; default: the one that the codebook names\n"
    "  --fit FILE      rows to learn from (JSONL), for codebooks that see the data set before the run\n"
    "  --threads N     work on N batches at the same time, reading in chunks; 0: one for each core; default 1\n"
    "The distance is squared: ||E(q) - c||^2.\n";

struct filter {
    struct plugin_instance *codebook, *encoder;
    struct pool *pool;
    json_t *lines[CHUNK];
    tare_text texts[CHUNK], rows[CHUNK];
    struct str json[CHUNK]; /* what rows point into */
    int32_t cluster[CHUNK];
    float distance[CHUNK], *x; /* x: [capacity, D] */
    int64_t n, capacity;
    struct str text;
};

static tare_status write_one(struct filter *f, int64_t i, struct err *e)
{
    const tare_codebook *functions = f->codebook->plugin->codebook;
    OWNED(json_decrefp) json_t *o = json_object();
    const json_t *id = json_object_get(f->lines[i], "id");
    if (id) json_object_set(o, "id", (json_t *)(uintptr_t)id);
    json_object_set_new(o, "cluster", json_integer(f->cluster[i]));
    json_object_set_new(o, "distance", f->cluster[i] < 0 ? json_null() : json_real((double)f->distance[i]));
    if (f->cluster[i] >= 0 && functions->cluster_name) {
        const tare_text name = functions->cluster_name(f->codebook->self, f->cluster[i]);
        if (name.data) json_object_set_new(o, "name", json_stringn(name.data, (size_t)name.size));
    }
    str_clear(&f->text);
    TRY(json_print(o, &f->text, e));
    TRY(str_add(&f->text, "\n", 1, e));
    cli_add(&f->text);
    return TARE_OK;
}

static tare_status assign_lines(struct filter *f, struct err *e)
{
    if (f->encoder) TRY(encode_texts(&(struct encoding){f->encoder, f->texts, f->n, f->pool}, f->x, e));
    return plugin_assign(f->codebook, &(struct plugin_assignment){f->encoder ? f->x : NULL, f->rows, f->n, f->cluster, f->distance},
                         e);
}

static tare_status flush_lines(struct filter *f, struct err *e)
{
    tare_status s = f->n ? assign_lines(f, e) : TARE_OK;
    for (int64_t i = 0; i < f->n; i++) {
        if (!s) s = write_one(f, i, e);
        json_decref(f->lines[i]);
    }
    if (!s && f->n) s = cli_flush(e);
    f->n = 0;
    return s;
}

static tare_status take_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct filter *f = ctx;
    if (f->encoder) TRY(json_get_text(object, json_object_get(object, "text") ? "text" : "question", where, &f->texts[f->n], e));
    str_clear(&f->json[f->n]);
    TRY(json_print(object, &f->json[f->n], e));
    f->rows[f->n] = (tare_text){f->json[f->n].data, f->json[f->n].size};
    f->lines[f->n++] = json_incref((json_t *)(uintptr_t)object);
    return f->n == f->capacity ? flush_lines(f, e) : TARE_OK;
}

/* ---------------------------------------------------------------- rows to learn from */

struct rows {
    struct str *json;
    int64_t n, capacity;
};

static void rows_free(struct rows *r)
{
    for (int64_t i = 0; i < r->n; i++) str_free(&r->json[i]);
    mem_free(r->json);
}

static tare_status take_row(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct rows *r = ctx;
    (void)where;
    TRY(mem_grow((void **)&r->json, &r->capacity, r->n + 1, (int64_t)sizeof *r->json, e));
    r->n++;
    return json_print(object, &r->json[r->n - 1], e);
}

static tare_status fit(struct plugin_instance *codebook, const char *path, struct err *e)
{
    OWNED(rows_free) struct rows r = {0};
    OWNED(mem_free_at) tare_text *texts = NULL;
    OWNED(fs_close_at) FILE *file = fopen(path, "rb");
    if (!file) FAIL(e, TARE_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    TRY(json_each_line(file, path, take_row, &r, e));
    TRY(mem_new(r.n * (int64_t)sizeof *texts, (void **)&texts, e));
    for (int64_t i = 0; i < r.n; i++) texts[i] = (tare_text){r.json[i].data, r.json[i].size};
    return plugin_fit(codebook, texts, r.n, e);
}

/* ---------------------------------------------------------------- the verb */

struct words {
    const char *codebook, *encoder, *fit, *threads;
    const char **settings, **encoder_settings;
    int64_t n, n_encoder, n_threads;
};

static tare_status open_all(struct filter *f, const struct words *w, struct cli_plugin *codebook, struct cli_plugin *encoder,
                            struct err *e)
{
    TRY(cli_codebook_open(w->codebook, w->settings, w->n, codebook, e));
    f->codebook = codebook->instance;
    if (w->fit) TRY(fit(f->codebook, w->fit, e));
    if (plugin_size(f->codebook) < 1)
        FAIL(e, TARE_E_CONFIG, "codebook %s: has no clusters before it has seen rows; give them with --fit FILE", w->codebook);
    const struct cli_choice choice = {w->encoder, w->encoder_settings, w->n_encoder};
    TRY(cli_encoder_for(f->codebook, w->codebook, &choice, encoder, e));
    f->encoder = encoder->instance;
    TRY(pool_new((int)w->n_threads, &f->pool, e));
    return mem_new(f->capacity * plugin_dim(f->codebook) * (int64_t)sizeof *f->x, (void **)&f->x, e);
}

static void filter_free_at(struct filter **at)
{
    struct filter *f = *at;
    if (!f) return;
    pool_free(f->pool);
    for (int64_t i = 0; i < CHUNK; i++) str_free(&f->json[i]);
    str_free(&f->text);
    mem_free(f->x);
    mem_free(f);
}

static tare_status run(const struct words *w, struct err *e)
{
    OWNED(filter_free_at) struct filter *f = NULL;
    OWNED(cli_plugin_close) struct cli_plugin codebook = {0}, encoder = {0};
    TRY(mem_new((int64_t)sizeof *f, (void **)&f, e));
    f->capacity = w->n_threads == 1 ? 1 : CHUNK;
    TRY(open_all(f, w, &codebook, &encoder, e));
    const tare_status read = json_each_line(stdin, "standard input", take_line, f, e);
    struct err late;
    const tare_status last = flush_lines(f, read ? &late : e); /* what was read before a bad line is still answered */
    return read ? read : last;
}

/* 0: good; otherwise the word that was not expected, or argc when one is missing. */
static int read_words(int argc, char **argv, struct words *w)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--encoder") && more && !w->encoder)
            w->encoder = argv[++i];
        else if (!strcmp(argv[i], "--fit") && more)
            w->fit = argv[++i];
        else if (!strcmp(argv[i], "--threads") && more)
            w->threads = argv[++i];
        else if (argv[i][0] == '-')
            return i;
        else if (strchr(argv[i], '=')) {
            if (w->encoder)
                w->encoder_settings[w->n_encoder++] = argv[i];
            else
                w->settings[w->n++] = argv[i];
        } else if (!w->codebook)
            w->codebook = argv[i];
        else
            return i;
    }
    struct err e;
    return !w->codebook || str_to_int(w->threads, &w->n_threads, &e) || w->n_threads < 0 || w->n_threads > 4096 ? argc : 0;
}

int cmd_cluster(int argc, char **argv)
{
    const char **room;
    struct err e = {0};
    if (mem_new((2 * argc + 2) * (int64_t)sizeof *room, (void **)&room, &e)) return cli_end(e.code, &e);
    struct words w = {.threads = "1", .settings = room, .encoder_settings = room + argc};
    const int bad = read_words(argc, argv, &w);
    if (bad) {
        if (bad < argc) fprintf(stderr, "tare cluster: %s was not expected\n", argv[bad]);
        fputs(cluster_usage, stderr);
        mem_free(room);
        return 2;
    }
    const tare_status s = run(&w, &e);
    mem_free(room);
    return cli_end(s, &e);
}
