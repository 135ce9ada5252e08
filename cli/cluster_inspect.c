#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/clusterers.h"
#include "cli/embeddings.h"
#include "cluster/codebook.h"
#include "cluster/corpus.h"
#include "cluster/encode.h"
#include "cluster/inspect.h"
#include "cluster/match.h"

#include <math.h>
#include <string.h>

struct inspected {
    struct corpus corpus;
    struct embeddings embeddings;
    float *x, *distance;
    int32_t *cluster;
    int64_t n, d;
};

static tare_status read_rows(const struct cluster_words *w, struct cli_plugin *codebook, struct inspected *r, struct err *e)
{
    r->d = codebook->instance->sizes.dim;
    if (w->corpus) {
        TRY(corpus_open(w->corpus, &r->corpus, e));
        r->n = r->corpus.n;
    }
    if (w->embeddings) {
        TRY(embeddings_open(w->embeddings, w->tensor, &r->embeddings, e));
        if (r->embeddings.d != r->d)
            FAIL(e, TARE_E_SHAPE, "%s: embeddings of width %lld; %s needs width %lld", w->embeddings, (long long)r->embeddings.d,
                 w->name, (long long)r->d);
        if (w->corpus && r->embeddings.n != r->n)
            FAIL(e, TARE_E_SHAPE, "%s: %lld embeddings; %s has %lld rows", w->embeddings, (long long)r->embeddings.n, w->corpus,
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
        if (!s) s = encode_texts(&(struct encoding){encoder.instance, r->corpus.texts, r->n, w->options.pool}, r->x, e);
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

static tare_status inspect_corpus(const struct cluster_words *w, struct cli_plugin *codebook, json_t **out, struct err *e)
{
    OWNED(free_rows) struct inspected r = {0};
    TRY(read_rows(w, codebook, &r, e));
    const struct inspect_rows rows = {.x = r.x,
                                      .texts = r.corpus.texts,
                                      .cluster = r.cluster,
                                      .distance = r.distance,
                                      .n = r.n,
                                      .d = r.d,
                                      .k = codebook->instance->sizes.clusters};
    return inspect_clusters(&rows, &(struct inspect_options){w->nearest, w->sample, w->options.seed, w->options.pool}, out, e);
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
        printf("unknown (one file)\n");
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

tare_status cluster_inspect(const struct cluster_words *w, struct err *e)
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
        TRY(inspect_corpus(w, &codebook, &part, e));
        json_object_set_new(all, "corpus", part);
    }
    if (w->rollouts) {
        TRY(inspect_rollouts(w->rollouts, &part, e));
        json_object_set_new(all, "rollouts", part);
    }
    return print_inspection(all, w->json, e);
}
