/* Curves of runs and of groups of runs. */
#include "lab/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 64, CLUSTER_LINES = 16, CLUSTER_GROUPS = 4 };

struct point {
    double x, y;
};

static int by_x(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->y > q->y) - (p->y < q->y);
}

/* ---------------------------------------------------------------- lines */

/* Replace points of equal x by their mean and, for several runs, mean -/+ the standard
 * deviation. */
static tare_status average_points(struct page *p, struct point *points, int64_t n, bool band, struct svg_line *out, struct err *e)
{
    double *x, *y, *low, *high;
    TRY(arena_new(&p->arena, &x, n, e));
    TRY(arena_new(&p->arena, &y, n, e));
    TRY(arena_new(&p->arena, &low, n, e));
    TRY(arena_new(&p->arena, &high, n, e));
    int64_t m = 0;
    for (int64_t begin = 0, end; begin < n; begin = end, m++) {
        double sum = 0, squares = 0;
        for (end = begin; end < n && points[end].x == points[begin].x; end++) sum += points[end].y;
        const double count = (double)(end - begin);
        x[m] = points[begin].x;
        y[m] = sum / count;
        for (int64_t i = begin; i < end; i++) squares += (points[i].y - y[m]) * (points[i].y - y[m]);
        const double sd = count > 1 ? sqrt(squares / (count - 1)) : 0;
        low[m] = y[m] - sd;
        high[m] = y[m] + sd;
    }
    out->x = x;
    out->y = y;
    out->low = band ? low : NULL;
    out->high = band ? high : NULL;
    out->n = m;
    return TARE_OK;
}

tare_status curves_line(struct page *p, const struct curves *g, const char *metric, struct svg_line *out, struct err *e)
{
    int64_t n = 0, runs = 0;
    struct point *points;
    *out = (struct svg_line){.label = g->label, .mark = (double)g->fork};
    for (int64_t r = 0; r < g->n; r++) {
        const struct series *s = run_data_find(g->runs[r], metric);
        n += s ? s->n : 0;
        runs += s && s->n;
    }
    if (!n) return TARE_OK;
    TRY(arena_new_raw(&p->arena, &points, n, e));
    n = 0;
    for (int64_t r = 0; r < g->n; r++) {
        const struct series *s = run_data_find(g->runs[r], metric);
        if (s)
            for (int64_t i = 0; i < s->n; i++) points[n++] = (struct point){s->step[i], s->value[i]};
    }
    qsort(points, (size_t)n, sizeof *points, by_x);
    return average_points(p, points, n, runs > 1, out, e);
}

tare_status curves_chart(struct page *p, const struct chart_spec *spec, struct str *out, struct err *e)
{
    struct svg_line lines[GROUPS_MOST];
    for (int64_t g = 0; g < p->n_groups; g++) {
        TRY(curves_line(p, &p->groups[g], spec->metric, &lines[g], e));
        lines[g].colour = (int)g;
    }
    return svg_chart_print(&(struct svg_chart){.title = spec->title,
                                               .note = spec->note,
                                               .x_label = "step",
                                               .lines = lines,
                                               .n = p->n_groups,
                                               .share = spec->share,
                                               .zero = spec->zero,
                                               .may_log = spec->may_log},
                           out, e);
}

static tare_status add_line_key(const char *const *labels, int64_t n, struct str *out, struct err *e)
{
    TRY(str_add(out, "<p class=\"key\">", -1, e));
    for (int64_t i = 0; i < n; i++) {
        TRY(str_addf(out, e, "<span><i class=\"c%lld d%lld\"></i>", (long long)(i % SVG_COLOURS), (long long)(i / SVG_COLOURS)));
        TRY(svg_text(out, labels[i], -1, e));
        TRY(str_add(out, "</span> ", -1, e));
    }
    return str_add(out, "</p>\n", -1, e);
}

tare_status curves_key(const struct page *p, struct str *out, struct err *e)
{
    const char *labels[GROUPS_MOST];
    if (p->n_groups < 2) return TARE_OK;
    for (int64_t g = 0; g < p->n_groups; g++) labels[g] = p->groups[g].label;
    TRY(add_line_key(labels, p->n_groups, out, e));
    if (!p->left_out) return TARE_OK;
    return str_addf(out, e, "<p class=\"dim\">%lld more are in the table, not in the curves.</p>\n", (long long)p->left_out);
}

/* ---------------------------------------------------------------- metrics with a common prefix */

struct parts {    /* metrics that differ in one part of their names */
    int64_t most; /* capacity, at most PARTS */
    int64_t n;
    const char *metric[PARTS], *label[PARTS]; /* label: the part that differs */
};

/* Sort by label, so that a subject and its cluster have the same colour. */
static void sort_parts(struct parts *s)
{
    for (int64_t i = 1; i < s->n; i++)
        for (int64_t k = i; k > 0 && strcmp(s->label[k - 1], s->label[k]) > 0; k--) {
            const char *m = s->metric[k], *l = s->label[k];
            s->metric[k] = s->metric[k - 1];
            s->label[k] = s->label[k - 1];
            s->metric[k - 1] = m;
            s->label[k - 1] = l;
        }
}

/* Find the group's metrics that begin with prefix and end with suffix (may be empty), sorted by the
 * part between. */
static tare_status find_parts(struct page *p, const struct curves *g, const char *prefix, const char *suffix, struct parts *s,
                              struct err *e)
{
    const size_t front = strlen(prefix), back = strlen(suffix);
    s->n = 0;
    for (int64_t r = 0; r < g->n; r++)
        for (int64_t i = 0; i < g->runs[r]->n_series && s->n < s->most; i++) {
            const char *name = g->runs[r]->series[i].name;
            const size_t size = strlen(name);
            if (size <= front + back || strncmp(name, prefix, front) || strcmp(name + size - back, suffix)) continue;
            bool known = false;
            for (int64_t k = 0; k < s->n; k++) known |= !strcmp(s->metric[k], name);
            if (known) continue;
            TRY(arena_strdup(&p->arena, name + front, (int64_t)(size - front - back), (char **)(uintptr_t)&s->label[s->n], e));
            s->metric[s->n++] = name;
        }
    sort_parts(s);
    return TARE_OK;
}

/* Print a table for several groups: for each part the mean over runs, reduced as `how` says (see
 * run_data_value). */
static tare_status parts_table(struct page *p, const struct parts *s, const char *title, const char *how, struct str *out,
                               struct err *e)
{
    const char *rows[GROUPS_MOST];
    double *value;
    TRY(arena_new(&p->arena, &value, p->n_groups * s->n + 1, e));
    for (int64_t g = 0; g < p->n_groups; g++) {
        rows[g] = p->groups[g].label;
        for (int64_t k = 0; k < s->n; k++) {
            double sum = 0, count = 0, x;
            char name[400];
            snprintf(name, sizeof name, "%s%s", s->metric[k], how);
            for (int64_t r = 0; r < p->groups[g].n; r++) {
                TRY(run_data_value(p->groups[g].runs[r], name, &x, e));
                if (isnan(x)) continue;
                sum += x;
                count++;
            }
            value[g * s->n + k] = count > 0 ? sum / count : NAN;
        }
    }
    return svg_heat_print(&(struct svg_heat){.title = title,
                                             .note = "mean over seeds",
                                             .rows = rows,
                                             .columns = s->label,
                                             .n_rows = p->n_groups,
                                             .n_columns = s->n,
                                             .value = value,
                                             .row_label = "variant",
                                             .column_label = ""},
                          out, e);
}

static tare_status parts_chart(struct page *p, const struct curves *g, const struct parts *s, const struct chart_spec *spec,
                               struct str *out, struct err *e)
{
    struct svg_line *lines;
    TRY(arena_new(&p->arena, &lines, s->n + 1, e));
    for (int64_t k = 0; k < s->n; k++) {
        TRY(curves_line(p, g, s->metric[k], &lines[k], e));
        lines[k].label = s->label[k];
        lines[k].colour = (int)k;
        lines[k].low = lines[k].high = NULL;
    }
    return svg_chart_print(&(struct svg_chart){.title = spec->title,
                                               .note = spec->note,
                                               .x_label = "step",
                                               .lines = lines,
                                               .n = s->n,
                                               .share = spec->share,
                                               .zero = true},
                           out, e);
}

tare_status curves_subjects(struct page *p, struct str *out, struct err *e)
{
    struct parts s = {.most = PARTS};
    if (!p->n_groups) return TARE_OK;
    TRY(find_parts(p, &p->groups[0], "eval/reward/", "", &s, e));
    if (!s.n) return TARE_OK;
    if (p->n_groups > 1) return parts_table(p, &s, "Held-out reward by subject, last evaluation", "", out, e);
    if (s.n > CLUSTER_LINES) s.n = CLUSTER_LINES;
    TRY(str_add(out, "<div class=\"charts\">", -1, e));
    TRY(parts_chart(p, &p->groups[0], &s, &(struct chart_spec){.title = "Held-out reward by subject", .share = true}, out, e));
    TRY(str_add(out, "</div>", -1, e));
    return add_line_key(s.label, s.n, out, e);
}

bool curves_is_component(const char *metric)
{
    static const char *const OWN[] = {"mean", "std", "min", "max", "all_wrong_groups", "all_correct_groups"};
    if (strncmp(metric, "reward/", 7)) return false;
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        if (!strcmp(metric + 7, OWN[i])) return false;
    return true;
}

tare_status curves_components(struct page *p, struct str *out, struct err *e)
{
    const char *names[PARTS];
    int64_t n = 0;
    for (int64_t g = 0; g < p->n_groups; g++)
        for (int64_t r = 0; r < p->groups[g].n; r++) {
            const struct run_data *run = p->groups[g].runs[r];
            for (int64_t i = 0; i < run->n_series && n < CLUSTER_LINES; i++) {
                bool known = !curves_is_component(run->series[i].name);
                for (int64_t k = 0; k < n && !known; k++) known = !strcmp(names[k], run->series[i].name);
                if (!known) names[n++] = run->series[i].name;
            }
        }
    if (n < 2) return TARE_OK;
    TRY(str_add(out, "<h2>Components of the reward <small>with their weights</small></h2>\n", -1, e));
    TRY(curves_key(p, out, e));
    TRY(str_add(out, "<div class=\"charts\">", -1, e));
    for (int64_t k = 0; k < n; k++)
        TRY(curves_chart(
            p, &(struct chart_spec){.metric = names[k], .title = names[k] + 7, .note = "mean of the batch", .zero = true}, out, e));
    return str_add(out, "</div>\n", -1, e);
}

/* Print stacked areas of one group's parts, each a mean over its runs. */
static tare_status parts_areas(struct page *p, const struct parts *s, const struct chart_spec *spec, struct str *out, struct err *e)
{
    const double *y[PARTS];
    struct svg_line line;
    struct svg_areas a = {
        .title = spec->title, .note = spec->note, .labels = s->label, .y = y, .n_parts = s->n, .n = -1, .share = spec->share};
    for (int64_t k = 0; k < s->n; k++) {
        TRY(curves_line(p, &p->groups[0], s->metric[k], &line, e));
        /* a stack would be wrong: some parts lack steps */
        if (a.n >= 0 && line.n != a.n) return TARE_OK;
        a.n = line.n;
        a.x = line.x;
        y[k] = line.y;
    }
    return svg_areas_print(&a, out, e);
}

static void keep_part(struct parts *s, int64_t from, int64_t *kept)
{
    s->metric[*kept] = s->metric[from];
    s->label[(*kept)++] = s->label[from];
}

/* Drop parts that are always 0. */
static void drop_zero(const struct curves *g, struct parts *s)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < s->n; k++) {
        bool zero = true;
        for (int64_t r = 0; r < g->n; r++) {
            const struct series *values = run_data_find(g->runs[r], s->metric[k]);
            if (values)
                for (int64_t i = 0; i < values->n; i++) zero &= values->value[i] == 0;
        }
        if (!zero) keep_part(s, k, &kept);
    }
    s->n = kept;
}

tare_status curves_verdicts(struct page *p, struct str *out, struct err *e)
{
    struct parts s = {.most = PARTS};
    if (!p->n_groups) return TARE_OK;
    TRY(find_parts(p, &p->groups[0], "verifier/", "", &s, e));
    drop_zero(&p->groups[0], &s);
    if (!s.n) return TARE_OK;
    if (p->n_groups > 1) return parts_table(p, &s, "Verdicts, last fifth of the steps", ":tail", out, e);
    return parts_areas(p, &s, &(struct chart_spec){.title = "Verdicts", .note = "share of rollouts", .share = true}, out, e);
}

/* Set *shows if the stage takes a visible share of the step in some group. */
static tare_status stage_shows(const struct page *p, const char *metric, bool *shows, struct err *e)
{
    *shows = false;
    for (int64_t g = 0; g < p->n_groups && !*shows; g++) {
        double mean, step;
        char name[300];
        snprintf(name, sizeof name, "%s:mean", metric);
        TRY(run_data_value(p->groups[g].runs[0], name, &mean, e));
        TRY(run_data_value(p->groups[g].runs[0], "time/step:mean", &step, e));
        *shows = mean > 0.002 * step;
    }
    return TARE_OK;
}

tare_status curves_stages(struct page *p, struct str *out, struct err *e)
{
    struct parts s = {.most = PARTS};
    int64_t kept = 0;
    if (!p->n_groups) return TARE_OK;
    TRY(find_parts(p, &p->groups[0], "time/", "", &s, e));
    for (int64_t k = 0; k < s.n; k++) {
        bool shows;
        if (!strcmp(s.label[k], "step") || !strcmp(s.label[k], "unix")) continue;
        TRY(stage_shows(p, s.metric[k], &shows, e));
        if (shows) keep_part(&s, k, &kept);
    }
    s.n = kept;
    if (!s.n) return TARE_OK;
    if (p->n_groups > 1) return parts_table(p, &s, "Seconds a step by stage, mean", ":mean", out, e);
    return parts_areas(p, &s, &(struct chart_spec){.title = "Time by stage", .note = "seconds a step"}, out, e);
}

/* ---------------------------------------------------------------- clusters */

/* Chart sigma = sqrt(max(0, m2 - m1^2)), where the estimator keeps moments instead of the
 * variance. */
static tare_status sigma_chart(struct page *p, const struct curves *g, const struct parts *s, struct str *out, struct err *e)
{
    struct svg_line lines[CLUSTER_LINES];
    for (int64_t k = 0; k < s->n; k++) {
        const char *label = s->label[k];
        char name[300];
        struct svg_line m1, m2;
        double *y;
        snprintf(name, sizeof name, "cluster/%s/m1", label);
        TRY(curves_line(p, g, name, &m1, e));
        snprintf(name, sizeof name, "cluster/%s/m2", label);
        TRY(curves_line(p, g, name, &m2, e));
        lines[k] = (struct svg_line){.label = label, .colour = (int)k, .x = m1.x, .n = m1.n == m2.n ? m1.n : 0};
        TRY(arena_new(&p->arena, &y, m1.n + 1, e));
        for (int64_t i = 0; i < lines[k].n; i++) y[i] = sqrt(fmax(0, m2.y[i] - m1.y[i] * m1.y[i]));
        lines[k].y = y;
    }
    return svg_chart_print(&(struct svg_chart){.title = "\xCF\x83",
                                               .note = "deviation of the cluster's history",
                                               .x_label = "step",
                                               .lines = lines,
                                               .n = s->n,
                                               .zero = true},
                           out, e);
}

static tare_status cluster_group(struct page *p, const struct curves *g, struct str *out, struct err *e)
{
    static const struct {
        const char *suffix;
        struct chart_spec spec;
    } PLOTS[] = {{"/m1", {.title = "m\xE2\x82\x81", .note = "mean reward of the cluster's history"}},
                 {"/n_eff", {.title = "N_eff", .note = "effective mass of the history"}},
                 {"/w", {.title = "w", .note = "confidence in the history", .share = true}}};
    struct parts s = {.most = CLUSTER_LINES}, first;
    bool found = false;
    for (int k = 0; k < 3; k++) {
        TRY(find_parts(p, g, "cluster/", PLOTS[k].suffix, &s, e));
        if (!s.n) continue;
        if (!found) {
            if (p->n_groups > 1) {
                TRY(str_add(out, "<details><summary>", -1, e));
                TRY(svg_text(out, g->label, -1, e));
                TRY(str_add(out, "</summary>", -1, e));
            }
            TRY(str_add(out, "<div class=\"charts\">", -1, e));
            first = s;
            found = true;
        }
        TRY(parts_chart(p, g, &s, &PLOTS[k].spec, out, e));
        if (k == 0) TRY(sigma_chart(p, g, &s, out, e));
    }
    if (!found) return TARE_OK;
    TRY(str_add(out, "</div>", -1, e));
    TRY(add_line_key(first.label, first.n, out, e));
    return p->n_groups > 1 ? str_add(out, "</details>\n", -1, e) : TARE_OK;
}

tare_status curves_clusters(struct page *p, struct str *out, struct err *e)
{
    OWNED(str_free) struct str body = {0};
    int64_t shown = 0;
    for (int64_t g = 0; g < p->n_groups && shown < CLUSTER_GROUPS; g++) {
        const int64_t before = body.size;
        TRY(cluster_group(p, &p->groups[g], &body, e));
        shown += body.size > before;
    }
    if (body.size) TRY(str_add(out, "<h2>Clusters: the estimator's history</h2>\n", -1, e));
    if (body.size) TRY(str_add(out, body.data, body.size, e));
    return TARE_OK;
}
