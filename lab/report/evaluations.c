/* Results of `tare eval`, RUN/eval/.../results.json, and difficulty buckets over the
 * checkpoints. */
#include "base/fs.h"
#include "lab/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS = 200, BUCKETS = 12, DEPTH = 4 };

struct result {
    int64_t step; /* of the checkpoint; -1: unknown */
    json_t *json;
};

struct results {
    struct result list[RESULTS];
    int64_t n;
};

/* Return the number after the last "step-". */
static int64_t step_in(const char *text)
{
    int64_t step = -1;
    for (const char *at = strstr(text, "step-"); at; at = strstr(at + 1, "step-")) step = strtoll(at + 5, NULL, 10);
    return step;
}

static tare_status take_result(struct results *r, const char *path, struct err *e)
{
    json_t *j = NULL;
    if (r->n == RESULTS) return TARE_OK;
    TRY(json_read_file(path, &j, e));
    int64_t step = step_in(path);
    if (step < 0) { /* the folder's name has no step: use the model's path in the settings */
        char *settings = json_dumps(json_object_get(j, "settings"), JSON_COMPACT);
        if (settings) step = step_in(settings);
        free(settings);
    }
    r->list[r->n++] = (struct result){step, j};
    return TARE_OK;
}

struct scan {
    struct results *results;
    int depth; /* remaining levels of folders */
};

static tare_status scan_entry(void *ctx, const char *folder, const char *name, struct err *e)
{
    const struct scan *s = ctx;
    char path[FS_PATH];
    if (name[0] == '.') return TARE_OK;
    TRY(fs_join(path, folder, name, e));
    if (!strcmp(name, "results.json")) return take_result(s->results, path, e);
    if (s->depth < 2 || !fs_is_dir(path)) return TARE_OK;
    struct scan inner = {s->results, s->depth - 1};
    return fs_each(path, scan_entry, &inner, e);
}

static int by_step(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return strcmp(json_text_or(x->json, "task", ""), json_text_or(y->json, "task", ""));
}

static tare_status add_table(const struct results *r, struct str *out, struct err *e)
{
    TRY(str_add(
        out,
        "<div class=\"scroll\"><table><tr><th>task</th><th>checkpoint</th><th>questions</th><th>samples</th><th>pass@1</th><th>95 % interval</th><th>mean tokens</th></tr>\n",
        -1, e));
    for (int64_t i = 0; i < r->n; i++) {
        const json_t *j = r->list[i].json, *pass = json_array_get(json_object_get(j, "pass"), 0);
        TRY(str_add(out, "<tr><td>", -1, e));
        TRY(svg_text(out, json_text_or(j, "task", "?"), -1, e));
        TRY(r->list[i].step < 0 ? str_add(out, "</td><td>-</td>", -1, e)
                                : str_addf(out, e, "</td><td>step %lld</td>", (long long)r->list[i].step));
        TRY(str_addf(out, e, "<td>%lld</td><td>%lld</td><td>%.3f</td><td>%.3f to %.3f</td><td>%.1f</td></tr>\n",
                     (long long)json_int_or(j, "questions", 0), (long long)json_int_or(j, "samples", 0),
                     json_double_or(pass, "value", NAN), json_double_or(pass, "low", NAN), json_double_or(pass, "high", NAN),
                     json_double_or(json_object_get(j, "length"), "mean", NAN)));
    }
    return str_add(out, "</table></div>\n", -1, e);
}

static const json_t *difficulty_rows(const json_t *result)
{
    size_t i;
    const json_t *table;
    json_array_foreach(json_object_get(result, "tables"), i, table)
    {
        if (!strcmp(json_text_or(table, "name", ""), "difficulty")) return json_object_get(table, "rows");
    }
    return NULL;
}

/* Print one chart for one task: a line for each bucket over the checkpoints. */
static tare_status add_buckets(struct page *p, const struct results *r, const char *task, bool accuracy, struct str *out,
                               struct err *e)
{
    struct svg_line lines[BUCKETS] = {0};
    double *x[BUCKETS], *y[BUCKETS];
    int64_t n = 0;
    for (int64_t i = 0; i < r->n; i++) {
        size_t k;
        const json_t *row;
        if (strcmp(json_text_or(r->list[i].json, "task", ""), task) || r->list[i].step < 0) continue;
        json_array_foreach(difficulty_rows(r->list[i].json), k, row)
        {
            const char *label = json_text_or(row, "label", "?");
            const double value = json_double_or(row, accuracy ? "accuracy" : "length", NAN);
            int64_t b = 0;
            while (b < n && strcmp(lines[b].label, label)) b++;
            if (b == BUCKETS || !isfinite(value)) continue;
            if (b == n) {
                TRY(arena_new(&p->arena, &x[b], RESULTS, e));
                TRY(arena_new(&p->arena, &y[b], RESULTS, e));
                lines[n++] = (struct svg_line){.label = label, .x = x[b], .y = y[b], .colour = (int)b};
            }
            x[b][lines[b].n] = (double)r->list[i].step;
            y[b][lines[b].n++] = value;
        }
    }
    char title[300];
    snprintf(title, sizeof title, "%s by difficulty", accuracy ? "Accuracy" : "Mean tokens");
    TRY(svg_chart_print(
        &(struct svg_chart){
            .title = title, .note = task, .x_label = "step", .lines = lines, .n = n, .share = accuracy, .log = !accuracy},
        out, e));
    if (!n || !accuracy) return TARE_OK;
    TRY(str_add(out, "<p class=\"key\">", -1, e));
    for (int64_t b = 0; b < n; b++) {
        TRY(str_addf(out, e, "<span><i class=\"c%lld\"></i>", (long long)(b % SVG_COLOURS)));
        TRY(svg_text(out, lines[b].label, -1, e));
        TRY(str_add(out, "</span> ", -1, e));
    }
    return str_add(out, "</p>", -1, e);
}

static tare_status add_all(struct page *p, const struct results *r, struct str *out, struct err *e)
{
    TRY(add_table(r, out, e));
    TRY(str_add(out, "<div class=\"charts\">", -1, e));
    for (int64_t i = 0; i < r->n; i++) {
        const char *task = json_text_or(r->list[i].json, "task", "");
        bool seen = !difficulty_rows(r->list[i].json);
        for (int64_t k = 0; k < i && !seen; k++)
            seen = !strcmp(json_text_or(r->list[k].json, "task", ""), task) && difficulty_rows(r->list[k].json);
        if (seen) continue;
        TRY(add_buckets(p, r, task, true, out, e));
        TRY(add_buckets(p, r, task, false, out, e));
    }
    return str_add(out, "</div>\n", -1, e);
}

tare_status page_evals_section(struct page *p, const struct run_data *run, struct str *out, struct err *e)
{
    char folder[FS_PATH];
    struct results *r;
    TRY(fs_join(folder, run->dir, "eval", e));
    if (!fs_is_dir(folder)) return TARE_OK;
    TRY(mem_new((int64_t)sizeof *r, (void **)&r, e));
    tare_status status = fs_each(folder, scan_entry, &(struct scan){r, DEPTH}, e);
    if (!status && r->n) {
        qsort(r->list, (size_t)r->n, sizeof *r->list, by_step);
        status = str_add(out, "<h2>Evaluations of checkpoints", -1, e);
        if (!status && p->n_groups > 1) status = str_add(out, " <small>", -1, e);
        if (!status && p->n_groups > 1) status = svg_text(out, run->name, -1, e);
        if (!status && p->n_groups > 1) status = str_add(out, "</small>", -1, e);
        if (!status) status = str_add(out, "</h2>\n", -1, e);
        if (!status) status = add_all(p, r, out, e);
    }
    for (int64_t i = 0; i < r->n; i++) json_decref(r->list[i].json);
    mem_free(r);
    return status;
}
