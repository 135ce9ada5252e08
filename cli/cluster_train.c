#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/clusterers.h"
#include "cli/embeddings.h"
#include "cluster/codebook.h"
#include "cluster/corpus.h"

static tare_status print_result(const struct cluster_words *w, const struct kmeans_result *r, int64_t rows, double seconds,
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

static tare_status train_embeddings(const struct cluster_words *w, struct kmeans_result *r, int64_t *rows, struct err *e)
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

static tare_status train_corpus(const struct cluster_words *w, struct kmeans_result *r, int64_t *rows, struct err *e)
{
    OWNED(cli_plugin_close) struct cli_plugin encoder = {0};
    OWNED(corpus_free) struct corpus corpus = {0};
    TRY(cli_plugin_open(w->name, TARE_KIND_ENCODER, w->settings, w->n_settings, &encoder, e));
    TRY(corpus_read(stdin, "standard input", &corpus, e));
    const struct encoding texts = {encoder.instance, corpus.texts, corpus.n, w->options.pool};
    *rows = corpus.n;
    return codebook_train_texts(w->out, &texts, "standard input", &w->options, r, e);
}

tare_status cluster_train(const struct cluster_words *w, struct err *e)
{
    OWNED(kmeans_result_free) struct kmeans_result r = {0};
    int64_t rows = 0;
    const double start = clock_seconds();
    TRY(w->embeddings ? train_embeddings(w, &r, &rows, e) : train_corpus(w, &r, &rows, e));
    return print_result(w, &r, rows, clock_seconds() - start, e);
}
