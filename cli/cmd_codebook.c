/* tare codebook: trains a codebook from a corpus or from embeddings, assigns embeddings, and shows what clusters hold. */
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/clusterers.h"
#include "cli/codebook.h"
#include "cluster/codebook.h"
#include "cluster/corpus.h"

#include <string.h>

const char codebook_usage[] =
    "usage: tare codebook ENCODER [key=value ...] --clusters K -o FILE < CORPUS\n"
    "       tare codebook --embeddings EMB.safetensors --clusters K -o FILE\n"
    "       tare codebook assign FILE --embeddings EMB.safetensors -o OUT.safetensors\n"
    "       tare codebook inspect FILE [key=value ...] [--encoder NAME] [--corpus F | --embeddings EMB] [--rollouts DUMP]\n"
    "  CORPUS         JSON lines with \"text\" or \"question\"\n"
    "  --clusters K   number of clusters\n"
    "  --seed S       seed of k-means++ (default 0)\n"
    "  --restarts N   independent runs, the best is kept (default 10)\n"
    "  --iterations I most Lloyd iterations of a run (default 300)\n"
    "  --swaps N      attempts to improve the best run by moving single centroids (default: as restarts)\n"
    "  --tensor NAME  of the embeddings' file (default: \"embeddings\", or the only one of two dimensions)\n"
    "  --identity T   with --embeddings: the identity of the encoder they come from (default: not known, any of that width)\n"
    "  --threads N    0: one for each core (the default); results do not depend on it\n"
    "  --json         print what was reached as one JSON object, last\n"
    "  inspect: --nearest N prompts shown a cluster (default 3), --sample N rows for the silhouette (default 1000)\n";

static tare_status print_result(const struct codebook_words *w, const struct kmeans_result *r, int64_t rows, double seconds,
                                struct err *e)
{
    const struct kmeans_options *o = &w->options;
    const char *path = w->out;
    int64_t least = r->sizes[0], most = r->sizes[0];
    for (int64_t k = 1; k < r->k; k++) {
        if (r->sizes[k] < least) least = r->sizes[k];
        if (r->sizes[k] > most) most = r->sizes[k];
    }
    if (!w->json) {
        printf(
            "%s: %lld clusters of %lld rows, inertia %.10g, %lld iterations%s, %lld of %lld swaps kept, sizes %lld to %lld, %.2f s\n",
            path, (long long)r->k, (long long)rows, r->inertia, (long long)r->iterations,
            r->converged ? "" : " (stopped at the limit)", (long long)r->swaps_kept, (long long)o->swaps, (long long)least,
            (long long)most, seconds);
    } else {
        json_t *all = json_array();
        for (int64_t i = 0; i < o->restarts; i++) json_array_append_new(all, json_real(r->restart_inertia[i]));
        OWNED(json_decrefp)
        json_t *j = json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:f, s:o, s:s}", "inertia", r->inertia,
                              "clusters", (json_int_t)r->k, "rows", (json_int_t)rows, "iterations", (json_int_t)r->iterations,
                              "restarts", (json_int_t)o->restarts, "swaps_kept", (json_int_t)r->swaps_kept, "converged",
                              (int)r->converged, "seed", (json_int_t)o->seed, "smallest", (json_int_t)least, "largest",
                              (json_int_t)most, "seconds", seconds, "restart_inertia", all, "file", path);
        if (!j) FAIL(e, TARE_E_NOMEM, "no memory to print the result");
        OWNED(str_free) struct str text = {0};
        TRY(json_print(j, &text, e));
        printf("%s\n", text.data);
    }
    return cli_flush(e);
}

static tare_status train_embeddings(const struct codebook_words *w, struct kmeans_result *r, int64_t *rows, struct err *e)
{
    OWNED(embeddings_close) struct embeddings x = {0};
    TRY(embeddings_open(w->embeddings, w->tensor, &x, e));
    OWNED(mem_free_at) float *all = NULL;
    TRY(mem_new(x.n * x.d * (int64_t)sizeof *all, (void **)&all, e));
    TRY(embeddings_read(&x, 0, x.n, all, e));
    const struct codebook_origin from = {
        .encoder = w->identity, .corpus = w->embeddings, .corpus_hash = embeddings_hash(&x), .corpus_rows = x.n};
    TRY(codebook_train(w->out, (struct kmeans_rows){all, x.n, x.d}, &w->options, &from, r, e));
    *rows = x.n;
    return TARE_OK;
}

static tare_status train_corpus(const struct codebook_words *w, struct kmeans_result *r, int64_t *rows, struct err *e)
{
    OWNED(cli_plugin_close) struct cli_plugin encoder = {0};
    OWNED(corpus_free) struct corpus corpus = {0};
    TRY(cli_plugin_open(w->name, TARE_ENCODER, w->settings, w->n_settings, &encoder, e));
    TRY(corpus_read(stdin, "standard input", &corpus, e));
    const struct encoding texts = {encoder.instance, corpus.texts, corpus.n, w->options.pool};
    *rows = corpus.n;
    return codebook_train_texts(w->out, &texts, "standard input", &w->options, r, e);
}

static tare_status train(const struct codebook_words *w, struct err *e)
{
    OWNED(kmeans_result_free) struct kmeans_result r = {0};
    int64_t rows = 0;
    const double start = clock_seconds();
    TRY(w->embeddings ? train_embeddings(w, &r, &rows, e) : train_corpus(w, &r, &rows, e));
    return print_result(w, &r, rows, clock_seconds() - start, e);
}

/* ---------------------------------------------------------------- words of the command line */

struct number {
    const char *key;
    int64_t *to, least;
};

/* The option at argv[*i], with its value; false: not one of ours. */
static bool take_option(int argc, char **argv, int *i, struct codebook_words *w, const struct number *numbers, struct err *e)
{
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"-o", &w->out},
                 {"--embeddings", &w->embeddings},
                 {"--tensor", &w->tensor},
                 {"--identity", &w->identity},
                 {"--encoder", &w->encoder},
                 {"--corpus", &w->corpus},
                 {"--rollouts", &w->rollouts}};
    if (!strcmp(argv[*i], "--json")) return w->json = true;
    if (*i + 1 >= argc) return false;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        if (strcmp(texts[t].key, argv[*i])) continue;
        *texts[t].to = argv[++*i];
        return true;
    }
    for (const struct number *n = numbers; n->key; n++) {
        if (strcmp(n->key, argv[*i])) continue;
        if (str_to_int(argv[++*i], n->to, e)) return false;
        if (*n->to >= n->least) return true;
        err_set(e, TARE_E_RANGE, __FILE__, __LINE__, "%s is %s; at least %lld is needed", n->key, argv[*i], (long long)n->least);
        return false;
    }
    return false;
}

/* 0, or the word that was not expected, or argc when something is missing. */
static int read_words(int argc, char **argv, struct codebook_words *w, struct err *e)
{
    int64_t seed = 0;
    w->options.swaps = -1;
    const struct number numbers[] = {{"--clusters", &w->options.k, 1},
                                     {"--seed", &seed, 0},
                                     {"--restarts", &w->options.restarts, 1},
                                     {"--iterations", &w->options.iterations, 1},
                                     {"--swaps", &w->options.swaps, 0},
                                     {"--threads", &w->threads, 0},
                                     {"--nearest", &w->nearest, 0},
                                     {"--sample", &w->sample, 2},
                                     {NULL, NULL, 0}};
    for (int i = 1; i < argc; i++) {
        const int at = i;
        if (take_option(argc, argv, &i, w, numbers, e)) continue;
        if (argv[at][0] == '-') return at;
        if (strchr(argv[at], '='))
            w->settings[w->n_settings++] = argv[at];
        else if (!w->verb && !w->name && (!strcmp(argv[at], "inspect") || !strcmp(argv[at], "assign")))
            w->verb = argv[at];
        else if (!w->name)
            w->name = argv[at];
        else
            return at;
    }
    w->options.seed = (uint64_t)seed;
    if (w->options.swaps < 0) w->options.swaps = w->options.restarts;
    if (w->verb) return !w->name || (!strcmp(w->verb, "assign") && (!w->embeddings || !w->out)) ? argc : 0;
    return !w->out || !w->options.k || (!w->name == !w->embeddings) ? argc : 0;
}

static tare_status run(struct codebook_words *w, struct err *e)
{
    struct pool *pool;
    TRY(pool_new((int)w->threads, &pool, e));
    w->options.pool = pool;
    tare_status s;
    if (!w->verb)
        s = train(w, e);
    else if (!strcmp(w->verb, "assign"))
        s = codebook_assign_file(w, pool, e);
    else
        s = codebook_inspect(w, pool, e);
    pool_free(pool);
    return s;
}

int cmd_codebook(int argc, char **argv)
{
    struct err e = {0};
    struct codebook_words w = {.identity = "", .options = {.restarts = 10, .iterations = 300}, .nearest = 3, .sample = 1000};
    if (mem_new((argc + 1) * (int64_t)sizeof *w.settings, (void **)&w.settings, &e)) return cli_end(e.code, &e);
    const int bad = read_words(argc, argv, &w, &e);
    if (bad) {
        if (e.code)
            log_error(&e);
        else if (bad < argc)
            fprintf(stderr, "tare codebook: %s was not expected\n", argv[bad]);
        if (!e.code) fputs(codebook_usage, stderr);
        mem_free(w.settings);
        return 2;
    }
    const tare_status s = run(&w, &e);
    mem_free(w.settings);
    return cli_end(s, &e);
}
