#include "base/arena.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/cluster.h"

#include <string.h>

const char cluster_usage[] =
    "usage: tare cluster train ENCODER [key=value ...] --clusters K -o FILE < CORPUS\n"
    "       tare cluster train --embeddings EMB.safetensors --clusters K -o FILE\n"
    "       tare cluster inspect FILE [key=value ...] [--encoder NAME] [--corpus F | --embeddings EMB] [--rollouts DUMP]\n"
    "       tare cluster assign CODEBOOK [key=value ...] [--encoder NAME [key=value ...]] [--fit FILE] < TEXTS\n"
    "       tare cluster assign FILE --embeddings EMB.safetensors -o OUT.safetensors\n"
    "       tare cluster embed ENCODER [key=value ...] [--codebook FILE] < TEXTS\n"
    "ENCODER is an encoder plugin and key=value its parameters (tare plugin info ENCODER). CODEBOOK is a codebook plugin, or\n"
    "a codebook's file (*.safetensors). CORPUS and TEXTS are JSON lines with \"text\" or \"question\".\n"
    "train writes a codebook of K centroids to FILE:\n"
    "  --clusters K      number of clusters\n"
    "  --seed S          seed of k-means++ (default 0)\n"
    "  --restarts N      independent runs, of which the best is kept (default 10)\n"
    "  --iterations I    maximum number of Lloyd iterations per run (default 300)\n"
    "  --swaps N         attempts to improve the best run by moving single centroids (default: the number of restarts)\n"
    "  --embeddings EMB  train on a tensor of this file instead of texts\n"
    "  --tensor NAME     tensor in EMB (default: \"embeddings\", or the only two-dimensional one)\n"
    "  --identity T      identity of the encoder that produced EMB (default: unknown; any encoder of that width is accepted)\n"
    "inspect prints size, mean distance and typical questions of each cluster, and the rewards of a rollout dump by cluster:\n"
    "  --nearest N       questions printed per cluster (default 3)\n"
    "  --sample N        rows for the silhouette, drawn with --seed (default 1000)\n"
    "assign writes {\"cluster\",\"distance\"} for each line, with \"id\" if the line has one and \"name\" if the cluster has one.\n"
    "The distance is squared: ||E(q) - c||^2.\n"
    "  --encoder NAME    encoder, followed by its parameters (default: the encoder recorded in the codebook)\n"
    "  --fit FILE        rows to learn from (JSONL), for codebooks that read the data set before the run\n"
    "embed writes {\"embedding\":[D]} for each line, in the order of the input, with \"id\" if the line has one.\n"
    "  --codebook FILE   use the encoder's state fitted to that codebook's corpus\n"
    "All: --threads N (0: one per core). train and inspect default to 0. assign and embed default to 1 and answer each\n"
    "line at once; with more threads they read in chunks. Results do not depend on it. --json (train, inspect): print JSON.\n";

enum { TRAIN = 1, INSPECT = 2, ASSIGN = 4, EMBED = 8, MAX_THREADS = 4096 };

struct subverb {
    const char *name;
    int bit;
    int64_t threads; /* default */
};

static const struct subverb SUBVERBS[] = {
    {"train", TRAIN, 0}, {"inspect", INSPECT, 0}, {"assign", ASSIGN, 1}, {"embed", EMBED, 1}, {NULL, 0, 0}};

/* Reads the option at argv[*i] with its value. Returns false without an error in e if the sub-verb
 * has no such option. */
static bool read_option(int argc, char **argv, int *i, const struct subverb *v, struct cluster_words *w, struct err *e)
{
    const struct {
        const char *key;
        int subverbs;
        const char **text;
        int64_t *number, least;
    } options[] = {{.key = "-o", .subverbs = TRAIN | ASSIGN, .text = &w->out},
                   {.key = "--embeddings", .subverbs = TRAIN | INSPECT | ASSIGN, .text = &w->embeddings},
                   {.key = "--tensor", .subverbs = TRAIN | INSPECT | ASSIGN, .text = &w->tensor},
                   {.key = "--identity", .subverbs = TRAIN, .text = &w->identity},
                   {.key = "--encoder", .subverbs = INSPECT | ASSIGN, .text = &w->encoder},
                   {.key = "--corpus", .subverbs = INSPECT, .text = &w->corpus},
                   {.key = "--rollouts", .subverbs = INSPECT, .text = &w->rollouts},
                   {.key = "--fit", .subverbs = ASSIGN, .text = &w->fit},
                   {.key = "--codebook", .subverbs = EMBED, .text = &w->codebook},
                   {.key = "--clusters", .subverbs = TRAIN, .number = &w->options.k, .least = 1},
                   {.key = "--seed", .subverbs = TRAIN | INSPECT, .number = &w->seed, .least = 0},
                   {.key = "--restarts", .subverbs = TRAIN, .number = &w->options.restarts, .least = 1},
                   {.key = "--iterations", .subverbs = TRAIN, .number = &w->options.iterations, .least = 1},
                   {.key = "--swaps", .subverbs = TRAIN, .number = &w->options.swaps, .least = 0},
                   {.key = "--nearest", .subverbs = INSPECT, .number = &w->nearest, .least = 0},
                   {.key = "--sample", .subverbs = INSPECT, .number = &w->sample, .least = 2},
                   {.key = "--threads", .subverbs = ~0, .number = &w->threads, .least = 0}};
    if (!strcmp(argv[*i], "--json") && v->bit & (TRAIN | INSPECT)) return w->json = true;
    if (*i + 1 >= argc) return false;
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        if (strcmp(options[k].key, argv[*i]) || !(options[k].subverbs & v->bit)) continue;
        const char *value = argv[++*i];
        if (options[k].text) {
            *options[k].text = value;
            return true;
        }
        if (str_to_int(value, options[k].number, e)) return false;
        if (*options[k].number < options[k].least)
            err_set(e, TARE_E_RANGE, __FILE__, __LINE__, "%s = %s: must be at least %lld", options[k].key, value,
                    (long long)options[k].least);
        else if (options[k].number == &w->threads && w->threads > MAX_THREADS)
            err_set(e, TARE_E_RANGE, __FILE__, __LINE__, "%s = %s: must be at most %d", options[k].key, value, MAX_THREADS);
        return !e->code;
    }
    return false;
}

static int unexpected_word(const char *subverb, const char *word)
{
    log_message(LOG_ERROR, "cluster %s: unexpected argument '%s'", subverb, word);
    return cli_usage(cluster_usage);
}

static bool is_complete(int bit, const struct cluster_words *w)
{
    if (bit == TRAIN) return w->out && w->options.k && !w->name != !w->embeddings;
    if (bit == ASSIGN && (w->embeddings || w->out || w->tensor)) return w->name && w->embeddings && w->out && !w->n_settings;
    return w->name;
}

/* Returns 0, or the index of an unexpected word, or argc if one is missing. */
static int read_words(int argc, char **argv, const struct subverb *v, struct cluster_words *w, struct err *e)
{
    for (int i = 2; i < argc; i++) {
        const int at = i;
        if (argv[at][0] == '-') {
            if (!read_option(argc, argv, &i, v, w, e)) return at;
            if (!strcmp(argv[at], "--encoder")) w->named = w->n_settings;
        } else if (strchr(argv[at], '=')) {
            w->settings[w->n_settings++] = argv[at];
        } else if (!w->name) {
            w->name = argv[at];
        } else {
            return at;
        }
    }
    if (!w->encoder) w->named = w->n_settings;
    if (w->options.swaps < 0) w->options.swaps = w->options.restarts;
    w->options.seed = (uint64_t)w->seed;
    return is_complete(v->bit, w) ? 0 : argc;
}

static tare_status run_subverb(int bit, struct cluster_words *w, struct err *e)
{
    if (pool_new((int)w->threads, &w->options.pool, e)) return err_prefix(e, "--threads %lld", (long long)w->threads);
    const tare_status s = bit == TRAIN     ? cluster_train(w, e)
                          : bit == INSPECT ? cluster_inspect(w, e)
                          : bit == EMBED   ? cluster_embed_lines(w, e)
                          : w->embeddings  ? cluster_assign_file(w, e)
                                           : cluster_assign_lines(w, e);
    pool_free(w->options.pool);
    return s;
}

int cmd_cluster(int argc, char **argv)
{
    struct err e = {0};
    const struct subverb *v = SUBVERBS;
    OWNED(mem_free_at) const char **settings = NULL;
    if (argc < 2) return cli_usage(cluster_usage);
    while (v->name && strcmp(v->name, argv[1])) v++;
    if (!v->name) {
        log_message(LOG_ERROR, "'%s' is not a sub-verb of tare cluster; use train, inspect, assign or embed", argv[1]);
        return cli_usage(cluster_usage);
    }
    if (mem_new(argc * (int64_t)sizeof *settings, (void **)&settings, &e)) return cli_end(e.code, &e);
    struct cluster_words w = {.identity = "",
                              .settings = settings,
                              .threads = v->threads,
                              .nearest = 3,
                              .sample = 1000,
                              .options = {.restarts = 10, .iterations = 300, .swaps = -1}};
    const int bad = read_words(argc, argv, v, &w, &e);
    if (!bad) return cli_end(run_subverb(v->bit, &w, &e), &e);
    if (e.code) return cli_end(e.code, &e), 2;
    return bad < argc ? unexpected_word(argv[1], argv[bad]) : cli_usage(cluster_usage);
}
