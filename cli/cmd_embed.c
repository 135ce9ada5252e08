/* tare embed ENCODER [key=value ...]: texts in, embeddings out. */
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/clusterers.h"
#include "cluster/encode.h"
#include "cluster/match.h"

#include <string.h>

enum { CHUNK = 4096 /* lines at a time */, PRINTED = 16 /* parts in which they are printed */ };

const char embed_usage[] =
    "usage: tare embed ENCODER [key=value ...] [--codebook FILE] [--threads N]\n"
    "  reads   {\"text\"} a line (\"question\" is taken too)\n"
    "  writes  {\"embedding\":[D]} a line (with \"id\" where the input has one), in the order of the input\n"
    "  --codebook FILE  use what the encoder learnt from that codebook's corpus\n"
    "  --threads N      encode N batches at the same time, reading in chunks; 0: one for each core; default 1\n"
    "  key=value        parameters of the encoder: tare plugin info ENCODER\n";

struct filter {
    struct plugin_instance *encoder;
    struct pool *pool;
    json_t *lines[CHUNK];
    tare_text texts[CHUNK];
    int64_t n, capacity;
    float *out; /* [CHUNK, D] */
    struct str printed[PRINTED];
    tare_status status[PRINTED];
    struct err errors[PRINTED];
};

static tare_status print_one(const struct filter *f, int64_t i, struct str *text, struct err *e)
{
    const json_t *id = json_object_get(f->lines[i], "id");
    const int64_t d = plugin_dim(f->encoder);
    TRY(str_add(text, "{", 1, e));
    if (id) {
        TRY(str_add(text, "\"id\":", -1, e));
        TRY(json_print(id, text, e));
        TRY(str_add(text, ",", 1, e));
    }
    TRY(str_add(text, "\"embedding\":[", -1, e));
    for (int64_t j = 0; j < d; j++) TRY(str_addf(text, e, "%s%.9g", j ? "," : "", (double)f->out[i * d + j]));
    return str_add(text, "]}\n", -1, e);
}

/* Printing a number takes as long as a thousand of the encoder's operations: the pool prints, each task its share of the lines. */
static void print_task(void *arg, int64_t task, int thread)
{
    struct filter *f = arg;
    (void)thread;
    str_clear(&f->printed[task]);
    f->status[task] = TARE_OK;
    for (int64_t i = task * f->n / PRINTED; i < (task + 1) * f->n / PRINTED && !f->status[task]; i++)
        f->status[task] = print_one(f, i, &f->printed[task], &f->errors[task]);
}

static tare_status write_lines(struct filter *f, struct err *e)
{
    pool_run(f->pool, PRINTED, print_task, f);
    for (int i = 0; i < PRINTED; i++) {
        if (f->status[i]) {
            *e = f->errors[i];
            return f->status[i];
        }
        cli_add(&f->printed[i]);
    }
    return cli_flush(e);
}

static tare_status flush_lines(struct filter *f, struct err *e)
{
    tare_status s = f->n ? encode_texts(&(struct encoding){f->encoder, f->texts, f->n, f->pool}, f->out, e) : TARE_OK;
    if (!s && f->n) s = write_lines(f, e);
    for (int64_t i = 0; i < f->n; i++) json_decref(f->lines[i]);
    f->n = 0;
    return s;
}

static tare_status take_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct filter *f = ctx;
    TRY(json_get_text(object, json_object_get(object, "text") ? "text" : "question", where, &f->texts[f->n], e));
    f->lines[f->n++] = json_incref((json_t *)(uintptr_t)object);
    return f->n == f->capacity ? flush_lines(f, e) : TARE_OK;
}

static void filter_free_at(struct filter **at)
{
    struct filter *f = *at;
    if (!f) return;
    pool_free(f->pool);
    for (int i = 0; i < PRINTED; i++) str_free(&f->printed[i]);
    mem_free(f->out);
    mem_free(f);
}

static tare_status run(const char *name, const char *const *settings, int64_t n, const char *codebook, int threads, struct err *e)
{
    OWNED(filter_free_at) struct filter *f = NULL;
    OWNED(cli_plugin_close) struct cli_plugin learnt = {0}, encoder = {0};
    TRY(mem_new((int64_t)sizeof *f, (void **)&f, e));
    f->capacity = threads == 1 ? 1 : CHUNK;
    TRY(cli_plugin_open(name, TARE_ENCODER, settings, n, &encoder, e));
    f->encoder = encoder.instance;
    if (codebook) TRY(cli_codebook_open(codebook, NULL, 0, &learnt, e));
    if (codebook) TRY(match_encoder(learnt.instance, f->encoder, codebook, e));
    TRY(pool_new(threads, &f->pool, e));
    TRY(mem_new(f->capacity * plugin_dim(f->encoder) * (int64_t)sizeof *f->out, (void **)&f->out, e));
    const tare_status read = json_each_line(stdin, "standard input", take_line, f, e);
    struct err late;
    const tare_status last = flush_lines(f, read ? &late : e); /* what was read before a bad line is still answered */
    return read ? read : last;
}

int cmd_embed(int argc, char **argv)
{
    const char *name = NULL, *codebook = NULL, *threads = "1";
    const char **settings;
    int64_t n = 0, n_threads;
    struct err e = {0};
    if (mem_new((argc + 1) * (int64_t)sizeof *settings, (void **)&settings, &e)) return cli_end(e.code, &e);
    int bad = 0;
    for (int i = 1; i < argc && !bad; i++) {
        if (!strcmp(argv[i], "--codebook") && i + 1 < argc)
            codebook = argv[++i];
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = argv[++i];
        else if (argv[i][0] == '-')
            bad = i;
        else if (strchr(argv[i], '='))
            settings[n++] = argv[i];
        else if (!name)
            name = argv[i];
        else
            bad = i;
    }
    if (bad) fprintf(stderr, "tare embed: %s was not expected\n", argv[bad]);
    if (bad || !name || str_to_int(threads, &n_threads, &e) || n_threads < 0 || n_threads > 4096) {
        fputs(embed_usage, stderr);
        mem_free(settings);
        return 2;
    }
    const tare_status s = run(name, settings, n, codebook, (int)n_threads, &e);
    mem_free(settings);
    return cli_end(s, &e);
}
