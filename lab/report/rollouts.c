/* Sample completions that changed most, and baseline b and scale s against the group's own mean and
 * deviation, from some of the first and last rollout dumps. */
#include "observe/rollouts.h"

#include "base/fs.h"
#include "lab/report/page.h"
#include "observe/written.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DUMPS = 12, SHOWN = 9, TEXT_MOST = 1600 };
/* limit of dumps read on each side: long completions take gigabytes */
static const int64_t BYTES_MOST = 96 << 20;

/* a prompt's rollouts in one step */
struct group {
    const char *id, *question, *completion, *verdict, *extracted, *answer; /* of the first rollout */
    int64_t step, n, cluster;
    double sum, squares, baseline, scale;
    bool late;
};

struct pair {
    const struct group *early, *late;
    double change;
};

struct dumps {
    struct arena *a;
    struct group *groups;
    struct written *written;
    /* index: "group" of the previous line, -1 at the start of a file */
    int64_t n, capacity, step, index;
    bool late;
};

/* ---------------------------------------------------------------- reading */

static tare_status copy_text(struct dumps *d, const json_t *row, const char *key, int64_t most, const char **out, struct err *e)
{
    const json_t *text = json_object_get(row, key);
    int64_t n = json_is_string(text) ? (int64_t)json_string_length(text) : 0;
    /* do not cut inside a character */
    while (n > most && (json_string_value(text)[most] & 0xC0) == 0x80) most--;
    char *copy;
    TRY(arena_strdup(d->a, n ? json_string_value(text) : "", n < most ? n : most, &copy, e));
    *out = copy;
    return TARE_OK;
}

static tare_status new_group(struct dumps *d, const json_t *row, struct err *e)
{
    if (d->n == d->capacity) {
        struct group *larger;
        const int64_t capacity = d->capacity ? 2 * d->capacity : 256;
        TRY(arena_new(d->a, &larger, capacity, e));
        if (d->n) memcpy(larger, d->groups, (size_t)d->n * sizeof *larger);
        d->groups = larger;
        d->capacity = capacity;
    }
    struct group *g = &d->groups[d->n++];
    *g = (struct group){.step = d->step, .late = d->late, .cluster = json_int_or(row, "cluster", -1)};
    g->baseline = json_double_or(row, "baseline", NAN);
    g->scale = json_double_or(row, "scale", NAN);
    TRY(copy_text(d, row, "id", 300, &g->id, e));
    TRY(copy_text(d, row, json_object_get(row, "question") ? "question" : "prompt", TEXT_MOST, &g->question, e));
    TRY(copy_text(d, row, "completion", TEXT_MOST, &g->completion, e));
    TRY(copy_text(d, row, "verdict", 40, &g->verdict, e));
    TRY(copy_text(d, row, "answer", 200, &g->answer, e));
    return copy_text(d, row, "extracted", 200, &g->extracted, e);
}

static tare_status add_rollout(void *ctx, const json_t *row, const char *where, struct err *e)
{
    struct dumps *d = ctx;
    int64_t index;
    TRY(json_get_int(row, "group", where, &index, e));
    if (index < 0) FAIL(e, TARE_E_CORRUPT, "%s: group = %lld: must be at least 0", where, (long long)index);
    if (index != d->index) TRY(new_group(d, row, e));
    d->index = index;
    struct group *g = &d->groups[d->n - 1];
    const double r = json_double_or(row, "reward", 0);
    g->n++;
    g->sum += r;
    g->squares += r * r;
    return TARE_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct numbers {
    int64_t *list, n, capacity;
};

static tare_status add_dump_step(void *ctx, const char *folder, const char *name, struct err *e)
{
    struct numbers *all = ctx;
    long long step;
    (void)folder;
    if (sscanf(name, "step-%lld.jsonl", &step) != 1 || strcmp(name + strlen(name) - 6, ".jsonl")) return TARE_OK;
    TRY(mem_grow((void **)&all->list, &all->capacity, all->n + 1, (int64_t)sizeof *all->list, e));
    all->list[all->n++] = step;
    return TARE_OK;
}

static tare_status list_dumps(const char *run_dir, struct arena *a, int64_t **steps, int64_t *n, struct err *e)
{
    char path[FS_PATH];
    struct numbers all = {0};
    TRY(fs_join(path, run_dir, "rollouts", e));
    tare_status status = fs_each(path, add_dump_step, &all, e);
    if (!status) status = arena_new(a, steps, all.n + 1, e);
    if (!status && all.n) {
        qsort(all.list, (size_t)all.n, sizeof *all.list, by_number);
        memcpy(*steps, all.list, (size_t)all.n * sizeof *all.list);
    }
    *n = all.n;
    mem_free(all.list);
    return status;
}

static tare_status read_dump(struct dumps *d, const char *run_dir, int64_t step, bool late, int64_t *bytes, struct err *e)
{
    char path[FS_PATH], name[64];
    TRY(rollouts_path(run_dir, step, path, e));
    snprintf(name, sizeof name, "rollouts/step-%06lld.jsonl", (long long)step);
    TRY(written_file(d->written, name, e));
    OWNED(fs_close_at) FILE *f = fopen(path, "r");
    /* removed by a run that has just gone back to a checkpoint */
    if (!f && errno == ENOENT) return TARE_OK;
    if (!f) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    d->step = step;
    d->late = late;
    d->index = -1;
    TRY(json_each_line(f, path, add_rollout, d, e));
    *bytes += ftell(f);
    return TARE_OK;
}

static tare_status read_dumps(struct dumps *d, const char *run_dir, struct err *e)
{
    int64_t *steps = NULL, n, bytes = 0;
    TRY(list_dumps(run_dir, d->a, &steps, &n, e));
    const int64_t each = n / 2 < DUMPS ? n / 2 : DUMPS;
    for (int64_t i = 0; i < each && bytes < BYTES_MOST; i++) TRY(read_dump(d, run_dir, steps[i], false, &bytes, e));
    bytes = 0;
    /* of a single one, the completions are shown */
    for (int64_t i = 0; i < (n == 1 ? 1 : each) && bytes < BYTES_MOST; i++)
        TRY(read_dump(d, run_dir, steps[n - 1 - i], true, &bytes, e));
    return TARE_OK;
}

/* ---------------------------------------------------------------- largest changes */

static double mean_of(const struct group *g)
{
    return g->sum / (double)g->n;
}

static int by_change(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    const double u = fabs(x->change), v = fabs(y->change);
    return u != v ? (u < v) - (u > v) : (x->early < y->early) - (x->early > y->early);
}

static int64_t find_pairs(const struct dumps *d, bool by_cluster, struct pair *pairs, int64_t most)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const struct group *early = &d->groups[i];
        bool seen = early->late;
        if (by_cluster)
            for (int64_t k = 0; !seen && k < n; k++) seen = pairs[k].early->cluster == early->cluster;
        for (int64_t j = d->n - 1; !seen && j >= 0 && n < most; j--) {
            const struct group *late = &d->groups[j];
            if (!late->late || (by_cluster ? late->cluster != early->cluster : strcmp(late->id, early->id) != 0)) continue;
            pairs[n++] = (struct pair){early, late, mean_of(late) - mean_of(early)};
            seen = true;
        }
    }
    qsort(pairs, (size_t)n, sizeof *pairs, by_change);
    return n;
}

static tare_status add_pre(const char *text, struct str *out, struct err *e)
{
    TRY(str_add(out, "<pre>", -1, e));
    TRY(svg_text(out, text, -1, e));
    return str_addf(out, e, "%s</pre>", strlen(text) >= TEXT_MOST - 4 ? " \xE2\x80\xA6" : "");
}

static tare_status add_side(const struct group *g, bool with_prompt, struct str *out, struct err *e)
{
    const bool correct = !strcmp(g->verdict, "correct");
    TRY(str_addf(out, e, "<div><span class=\"verdict c%d\">", correct ? 2 : 1));
    TRY(svg_text(out, g->verdict, -1, e));
    TRY(str_addf(out, e, "</span> <small>step %lld, group's mean reward %.3g", (long long)g->step, mean_of(g)));
    if (*g->extracted) {
        TRY(str_add(out, ", answer read: ", -1, e));
        TRY(svg_text(out, g->extracted, -1, e));
    }
    if (*g->answer) {
        TRY(str_add(out, ", the row's answer: ", -1, e));
        TRY(svg_text(out, g->answer, -1, e));
    }
    TRY(str_add(out, "</small>", -1, e));
    if (with_prompt) TRY(add_pre(g->question, out, e));
    TRY(add_pre(g->completion, out, e));
    return str_add(out, "</div>", -1, e);
}

/* Prints the first rollouts of the last dump. */
static tare_status add_last(const struct dumps *d, struct str *out, struct err *e)
{
    int64_t last = 0, shown = 0;
    for (int64_t i = 0; i < d->n; i++)
        if (d->groups[i].step > last) last = d->groups[i].step;
    TRY(str_addf(out, e, "<h2>Completions of step %lld <small>the first rollout of each group</small></h2>\n", (long long)last));
    for (int64_t i = 0; i < d->n && shown < SHOWN; i++) {
        const struct group *g = &d->groups[i];
        if (g->step != last) continue;
        TRY(str_add(out, "<figure class=\"sample\"><figcaption>", -1, e));
        TRY(svg_text(out, g->id, -1, e));
        TRY(str_add(out, "</figcaption>", -1, e));
        TRY(add_side(g, true, out, e));
        TRY(str_add(out, "</figure>\n", -1, e));
        shown++;
    }
    return TARE_OK;
}

static tare_status add_samples(struct page *p, const struct dumps *d, struct str *out, struct err *e)
{
    struct pair *pairs;
    TRY(arena_new(&p->arena, &pairs, d->n + 1, e));
    int64_t n = find_pairs(d, false, pairs, d->n);
    const bool by_cluster = n == 0;
    if (by_cluster) n = find_pairs(d, true, pairs, d->n);
    if (!n) return add_last(d, out, e);
    TRY(str_addf(out, e, "<h2>Completions that changed most <small>%s; the first rollout of each group</small></h2>\n",
                 by_cluster ? "no prompt is in both the first and the last dumps: two prompts of the same cluster"
                            : "the same prompt in the first and the last steps"));
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        TRY(str_add(out, "<figure class=\"sample\"><figcaption>", -1, e));
        if (by_cluster)
            TRY(str_addf(out, e, "cluster %lld", (long long)pairs[i].early->cluster));
        else
            TRY(svg_text(out, pairs[i].early->id, -1, e));
        TRY(str_addf(out, e, " <small>mean reward %+.3g</small></figcaption>", pairs[i].change));
        if (!by_cluster) TRY(add_pre(pairs[i].early->question, out, e));
        TRY(str_add(out, "<div class=\"pair\">", -1, e));
        TRY(add_side(pairs[i].early, by_cluster, out, e));
        TRY(add_side(pairs[i].late, by_cluster, out, e));
        TRY(str_add(out, "</div></figure>\n", -1, e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- b and s of groups */

/* Return sigma_G with n - 1, as the estimators' default ddof. */
static double deviation_of(const struct group *g)
{
    const double m = mean_of(g), squares = g->squares - (double)g->n * m * m;
    return g->n > 1 ? sqrt(fmax(0, squares) / (double)(g->n - 1)) : 0;
}

static tare_status add_scatter(struct page *p, const struct dumps *d, bool scale, struct str *out, struct err *e)
{
    double *x[2], *y[2];
    int64_t n[2] = {0};
    for (int k = 0; k < 2; k++) {
        TRY(arena_new(&p->arena, &x[k], d->n + 1, e));
        TRY(arena_new(&p->arena, &y[k], d->n + 1, e));
    }
    for (int64_t i = 0; i < d->n; i++) {
        const struct group *g = &d->groups[i];
        const double v = scale ? g->scale : g->baseline;
        if (!isfinite(v)) continue;
        x[g->late][n[g->late]] = scale ? deviation_of(g) : mean_of(g);
        y[g->late][n[g->late]++] = v;
    }
    const struct svg_line lines[] = {{.label = "first steps", .x = x[0], .y = y[0], .n = n[0], .colour = 0},
                                     {.label = "last steps", .x = x[1], .y = y[1], .n = n[1], .colour = 1}};
    return svg_chart_print(
        &(struct svg_chart){.title = scale ? "Scale s against the group's own" : "Baseline b against the group's own",
                            .note = "blue: first steps, orange: last steps",
                            .x_label = scale ? "standard deviation of the group" : "mean reward of the group",
                            .lines = lines,
                            .n = 2,
                            .points = true,
                            .diagonal = true},
        out, e);
}

tare_status rollouts_section(struct page *p, const char *run_dir, struct str *out, struct err *e)
{
    OWNED(written_close) struct written w = {0};
    struct dumps d = {.a = &p->arena, .written = &w};
    OWNED(str_free) struct str charts = {0};
    TRY(written_open(run_dir, &w, e));
    w.changed = 0; /* a change of the chain itself was reported with the metrics */
    TRY(read_dumps(&d, run_dir, e));
    written_report(&w);
    if (!d.n) return TARE_OK;
    TRY(add_scatter(p, &d, false, &charts, e));
    TRY(add_scatter(p, &d, true, &charts, e));
    if (charts.size)
        TRY(str_add(
            out,
            "<h2>What the estimator subtracts and divides by <small>one point a group; on the line: the group's own</small></h2>\n<div class=\"charts\">",
            -1, e));
    if (charts.size) TRY(str_add(out, charts.data, charts.size, e));
    if (charts.size) TRY(str_add(out, "</div>\n", -1, e));
    return add_samples(p, &d, out, e);
}
