/* Measures the cost of the plugin ABI: milliseconds to load every built-in plugin except math
 * (find, inspect as ELF, open, hash, check), each time in a new process; and microseconds of one
 * `compute` on 16 groups of 8 rollouts, called as the engine calls it.
 *   cc -O2 -Icore -Isdk/include bench/plugins.c build/libtare_estimate.a build/libtare_dist.a \
 *      build/libtare_plugin.a build/libtare_config.a build/libtare_base.a \
 *      -ljansson -linih -lxxhash -lutf8proc -ldl -lm -o plugins_bench
 *   TARE_PLUGIN_PATH=build/plugins ./plugins_bench [ROUNDS] */
#include "base/clock.h"
#include "estimate/estimate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static tare_status count(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    if (!p) fprintf(stderr, "%s: %s\n", path, why->message);
    *(int *)ctx += p != NULL;
    return TARE_OK;
}

/* Milliseconds to load everything in FOLDER/{estimators,verifiers,clusterers,objectives} except
 * math, in this process. */
static double load_all(int *loaded)
{
    static const char *const names[][2] = {{"estimators", ""}, {"verifiers", "math"}, {"clusterers", ""}, {"objectives", ""}};
    char command[5000], line[4200];
    char paths[64][4200];
    int n = 0;
    for (int i = 0; i < 4; i++) { /* read the names first, so that directories are not measured */
        snprintf(command, sizeof command, "ls %s/%s/*.so", getenv("TARE_PLUGIN_PATH"), names[i][0]);
        FILE *list = popen(command, "r");
        while (list && n < 64 && fgets(line, sizeof line, list)) {
            line[strcspn(line, "\n")] = 0;
            if (*names[i][1] && strstr(line, names[i][1])) continue;
            snprintf(paths[n++], sizeof paths[0], "%s", line);
        }
        if (list) pclose(list);
    }
    struct err e = {0};
    const double start = clock_seconds();
    for (int i = 0; i < n; i++)
        if (plugin_each(paths[i], count, loaded, &e)) fprintf(stderr, "%s\n", e.message);
    return 1e3 * (clock_seconds() - start);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void loading(int rounds)
{
    double *ms = calloc((size_t)rounds, sizeof *ms);
    int loaded = 0;
    for (int r = 0; r < rounds; r++) {
        int ends[2];
        if (pipe(ends)) exit(1);
        const pid_t child = fork();
        if (!child) {
            struct {
                double ms;
                int n;
            } told = {.n = 0};
            told.ms = load_all(&told.n);
            if (write(ends[1], &told, sizeof told) < 0) _exit(1);
            _exit(0);
        }
        struct {
            double ms;
            int n;
        } told = {.n = 0};
        if (read(ends[0], &told, sizeof told) != (ssize_t)sizeof told) exit(1);
        close(ends[0]), close(ends[1]);
        waitpid(child, NULL, 0);
        ms[r] = told.ms;
        loaded = told.n;
    }
    qsort(ms, (size_t)rounds, sizeof *ms, compare);
    printf("%d plugins but math, loaded in a new process: best %.2f ms, median %.2f ms of %d (target 5)\n", loaded, ms[0],
           ms[rounds / 2], rounds);
    free(ms);
}

enum { M = 16, G = 8 };

/* Gives the estimator a step of history, so that nothing is skipped. */
static void give_history(struct plugin_instance *i, const tare_batch *batch)
{
    const tare_estimator *f = i->plugin->estimator;
    double sums[64] = {0};
    const tare_update update = {.struct_size = sizeof update, .updates = 1, .collected = sums};
    tare_error error = {.struct_size = sizeof error};
    if (!f->collect) return;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        double own[64] = {0};
        f->collect(i->self, batch, m, own, &error);
        for (int64_t k = 0; k < i->sizes.collect && k < 64; k++) sums[k] += own[k];
    }
    f->apply(i->self, &update, &error);
}

static void cost(const char *name)
{
    struct err e = {0};
    struct plugin_instance *i;
    if (plugin_new(&(struct plugin_wanted){name, TARE_KIND_ESTIMATOR, NULL, NULL, 4, NULL}, &i, &e)) {
        fprintf(stderr, "%s\n", e.message);
        exit(1);
    }
    int64_t group[M + 1], turn[M * G + 1], token[M * G + 1], length[M * G], act_end[M * G];
    uint64_t uid[M];
    uint8_t sampled[M * G];
    int32_t cluster[M];
    double reward[M * G], A[M * G], weight[M * G], b[M], s[M], w[M];
    tare_column column[TARE_LIMIT_WANTS] = {{0}};
    for (int k = 0; k <= M; k++) group[k] = k * G;
    for (int k = 0; k <= M * G; k++) turn[k] = token[k] = k;
    for (int k = 0; k < M; k++) uid[k] = (uint64_t)k, cluster[k] = k % 4;
    for (int k = 0; k < M * G; k++) reward[k] = (k * 7 % 5) < 2, length[k] = 1, act_end[k] = k + 1, sampled[k] = 1;
    for (uint32_t k = 0; k < i->plugin->desc.n_wants; k++)
        if (i->plugin->column[k] == COLUMN_CLUSTER) column[k] = (tare_column){cluster, M, 1};
    const tare_batch batch = {.struct_size = sizeof batch,
                              .n_groups = M,
                              .n_rollouts = M * G,
                              .n_turns = M * G,
                              .n_tokens = M * G,
                              .group_begin = group,
                              .turn_begin = turn,
                              .token_begin = token,
                              .act_begin = turn,
                              .act_end = act_end,
                              .sampled = sampled,
                              .length = length,
                              .prompt_uid = uid,
                              .reward = reward,
                              .column = column};
    const tare_estimator *f = i->plugin->estimator;
    give_history(i, &batch);
    double best = 1e9;
    for (int round = 0; round < 200; round++) {
        const double start = clock_seconds();
        for (int k = 0; k < 100; k++) {
            struct plugin_call c;
            tare_advantages out = {
                .struct_size = sizeof out, .advantage = A, .rollout_weight = weight, .baseline = b, .scale = s, .confidence = w};
            plugin_enter(&c);
            if (plugin_leave(&c, i, "compute", 1, f->compute(i->self, &batch, NULL, &out, &c.error), &e)) exit(1);
        }
        const double us = 1e6 * (clock_seconds() - start) / 100;
        best = us < best ? us : best;
    }
    printf("%-9s compute on %d x %d rollouts: %.2f us (target 5)\n", name, M, G, best);
    plugin_destroy(i);
}

int main(int argc, char **argv)
{
    if (!getenv("TARE_PLUGIN_PATH")) {
        fprintf(stderr, "set TARE_PLUGIN_PATH to the folder with estimators/, verifiers/, clusterers/ and objectives/\n");
        return 2;
    }
    loading(argc > 1 ? atoi(argv[1]) : 30);
    cost("grpo");
    cost("bv_blend");
    return 0;
}
