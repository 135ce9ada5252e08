/* Curves of runs and of groups of runs. */
#include "report/page.h"

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

/* Points of equal x become their mean and, with several runs, mean -/+ the standard deviation. */
static tare_status aggregate(struct page *p, struct point *points, int64_t n, bool band, struct svg_line *out, struct err *e)
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
    *out = (struct svg_line){.label = g->label};
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
    return aggregate(p, points, n, runs > 1, out, e);
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

static tare_status add_key(const char *const *labels, int64_t n, struct str *out, struct err *e)
{
    TRY(str_add(out, "<p class=\"key\">", -1, e));
    for (int64_t i = 0; i < n; i++) {
        TRY(str_addf(out, e, "<span><i class=\"c%lld d%lld\"></i>", (long long)(i % SVG_COLOURS), (long long)(i / SVG_COLOURS)));
        TRY(html_text(out, labels[i], -1, e));
        TRY(str_add(out, "</span> ", -1, e));
    }
    return str_add(out, "</p>\n", -1, e);
}

tare_status curves_key(const struct page *p, struct str *out, struct err *e)
{
    const char *labels[GROUPS_MOST];
    if (p->n_groups < 2) return TARE_OK;
    for (int64_t g = 0; g < p->n_groups; g++) labels[g] = p->groups[g].label;
    TRY(add_key(labels, p->n_groups, out, e));
    if (!p->left_out) return TARE_OK;
    return str_addf(out, e, "<p class=\"dim\">%lld more are in the table, not in the curves.</p>\n", (long long)p->left_out);
}

/* ---------------------------------------------------------------- metrics with a common prefix */

/* By label, so that a subject and its cluster have the same colour. */
static void sort_parts(const char **metric, const char **label, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0 && strcmp(label[k - 1], label[k]) > 0; k--) {
            const char *m = metric[k], *l = label[k];
            metric[k] = metric[k - 1];
            label[k] = label[k - 1];
            metric[k - 1] = m;
            label[k - 1] = l;
        }
}

/* Names of the group's metrics under prefix (with, where given, that suffix), in the order of their labels, the parts between. */
static tare_status find_parts(struct page *p, const struct curves *g, const char *prefix, const char *suffix, const char **metric,
                              const char **label, int64_t most, int64_t *n, struct err *e)
{
    const size_t front = strlen(prefix), back = strlen(suffix);
    *n = 0;
    for (int64_t r = 0; r < g->n; r++)
        for (int64_t i = 0; i < g->runs[r]->n_series && *n < most; i++) {
            const char *name = g->runs[r]->series[i].name;
            const size_t size = strlen(name);
            if (size <= front + back || strncmp(name, prefix, front) || strcmp(name + size - back, suffix)) continue;
            bool known = false;
            for (int64_t k = 0; k < *n; k++) known |= !strcmp(metric[k], name);
            if (known) continue;
            TRY(arena_strdup(&p->arena, name + front, (int64_t)(size - front - back), (char **)(uintptr_t)&label[*n], e));
            metric[(*n)++] = name;
        }
    sort_parts(metric, label, *n);
    return TARE_OK;
}

/* A table for several groups: the mean over runs of the last value of each part. */
static tare_status parts_table(struct page *p, const char *title, const char *const *metric, const char *const *label, int64_t n,
                               const char *how, struct str *out, struct err *e)
{
    const char *rows[GROUPS_MOST];
    double *value;
    TRY(arena_new(&p->arena, &value, p->n_groups * n + 1, e));
    for (int64_t g = 0; g < p->n_groups; g++) {
        rows[g] = p->groups[g].label;
        for (int64_t k = 0; k < n; k++) {
            double sum = 0, count = 0, x;
            char name[400];
            snprintf(name, sizeof name, "%s%s", metric[k], how);
            for (int64_t r = 0; r < p->groups[g].n; r++) {
                TRY(run_data_value(p->groups[g].runs[r], name, &x, e));
                if (isnan(x)) continue;
                sum += x;
                count++;
            }
            value[g * n + k] = count > 0 ? sum / count : NAN;
        }
    }
    return svg_heat_print(title, "mean over seeds", rows, p->n_groups, label, n, value, "variant", "", out, e);
}

static tare_status parts_chart(struct page *p, const struct curves *g, const char *title, const char *note,
                               const char *const *metric, const char *const *label, int64_t n, bool share, bool may_log,
                               struct str *out, struct err *e)
{
    struct svg_line *lines;
    TRY(arena_new(&p->arena, &lines, n + 1, e));
    for (int64_t k = 0; k < n; k++) {
        TRY(curves_line(p, g, metric[k], &lines[k], e));
        lines[k].label = label[k];
        lines[k].colour = (int)k;
        lines[k].low = lines[k].high = NULL;
    }
    return svg_chart_print(&(struct svg_chart){.title = title,
                                               .note = note,
                                               .x_label = "step",
                                               .lines = lines,
                                               .n = n,
                                               .share = share,
                                               .zero = true,
                                               .may_log = may_log},
                           out, e);
}

tare_status curves_subjects(struct page *p, struct str *out, struct err *e)
{
    const char *metric[PARTS], *label[PARTS];
    int64_t n;
    if (!p->n_groups) return TARE_OK;
    TRY(find_parts(p, &p->groups[0], "eval/reward/", "", metric, label, PARTS, &n, e));
    if (!n) return TARE_OK;
    if (p->n_groups > 1) return parts_table(p, "Held-out reward by subject, last evaluation", metric, label, n, "", out, e);
    const int64_t shown = n < CLUSTER_LINES ? n : CLUSTER_LINES;
    TRY(str_add(out, "<div class=\"charts\">", -1, e));
    TRY(parts_chart(p, &p->groups[0], "Held-out reward by subject", NULL, metric, label, shown, true, false, out, e));
    TRY(str_add(out, "</div>", -1, e));
    return add_key(label, shown, out, e);
}

/* Stacked areas of one group's parts, each a mean over its runs. */
static tare_status parts_areas(struct page *p, const char *title, const char *note, const char *const *metric,
                               const char *const *label, int64_t n, bool share, struct str *out, struct err *e)
{
    const double *y[PARTS];
    struct svg_line line;
    const double *x = NULL;
    int64_t length = -1;
    for (int64_t k = 0; k < n; k++) {
        TRY(curves_line(p, &p->groups[0], metric[k], &line, e));
        if (length >= 0 && line.n != length) return TARE_OK; /* not all parts at all steps: no honest stack */
        length = line.n;
        x = line.x;
        y[k] = line.y;
    }
    return svg_areas_print(title, note, label, y, n, x, length, share, out, e);
}

/* Parts that are not 0 all the time. */
static int64_t drop_zero(const struct curves *g, const char **metric, const char **label, int64_t n)
{
    int64_t m = 0;
    for (int64_t k = 0; k < n; k++) {
        bool zero = true;
        for (int64_t r = 0; r < g->n; r++) {
            const struct series *s = run_data_find(g->runs[r], metric[k]);
            if (s)
                for (int64_t i = 0; i < s->n; i++) zero &= s->value[i] == 0;
        }
        if (zero) continue;
        metric[m] = metric[k];
        label[m++] = label[k];
    }
    return m;
}

tare_status curves_verdicts(struct page *p, struct str *out, struct err *e)
{
    const char *metric[PARTS], *label[PARTS];
    int64_t n;
    if (!p->n_groups) return TARE_OK;
    TRY(find_parts(p, &p->groups[0], "verifier/", "", metric, label, PARTS, &n, e));
    n = drop_zero(&p->groups[0], metric, label, n);
    if (!n) return TARE_OK;
    if (p->n_groups > 1) return parts_table(p, "Verdicts, last fifth of the steps", metric, label, n, ":tail", out, e);
    return parts_areas(p, "Verdicts", "share of rollouts", metric, label, n, true, out, e);
}

tare_status curves_stages(struct page *p, struct str *out, struct err *e)
{
    const char *metric[PARTS], *label[PARTS];
    int64_t n, m = 0;
    if (!p->n_groups) return TARE_OK;
    TRY(find_parts(p, &p->groups[0], "time/", "", metric, label, PARTS, &n, e));
    for (int64_t k = 0; k < n; k++) {
        bool seen = false;
        if (!strcmp(label[k], "step") || !strcmp(label[k], "unix")) continue;
        for (int64_t g = 0; g < p->n_groups && !seen; g++) {
            double mean, step;
            char name[300];
            snprintf(name, sizeof name, "%s:mean", metric[k]);
            TRY(run_data_value(p->groups[g].runs[0], name, &mean, e));
            TRY(run_data_value(p->groups[g].runs[0], "time/step:mean", &step, e));
            seen = mean > 0.002 * step; /* thinner cannot be seen */
        }
        if (!seen) continue;
        metric[m] = metric[k];
        label[m++] = label[k];
    }
    if (!m) return TARE_OK;
    if (p->n_groups > 1) return parts_table(p, "Seconds a step by stage, mean", metric, label, m, ":mean", out, e);
    return parts_areas(p, "Time by stage", "seconds a step", metric, label, m, false, out, e);
}

/* ---------------------------------------------------------------- clusters */

/* sigma = sqrt(max(0, m2 - m1^2)), where the estimator keeps moments and not the variance itself. */
static tare_status sigma_chart(struct page *p, const struct curves *g, const char *const *label, int64_t n, struct str *out,
                               struct err *e)
{
    struct svg_line lines[CLUSTER_LINES];
    for (int64_t k = 0; k < n; k++) {
        char name[300];
        struct svg_line m1, m2;
        double *y;
        snprintf(name, sizeof name, "cluster/%s/m1", label[k]);
        TRY(curves_line(p, g, name, &m1, e));
        snprintf(name, sizeof name, "cluster/%s/m2", label[k]);
        TRY(curves_line(p, g, name, &m2, e));
        lines[k] = (struct svg_line){.label = label[k], .colour = (int)k, .x = m1.x, .n = m1.n == m2.n ? m1.n : 0};
        TRY(arena_new(&p->arena, &y, m1.n + 1, e));
        for (int64_t i = 0; i < lines[k].n; i++) y[i] = sqrt(fmax(0, m2.y[i] - m1.y[i] * m1.y[i]));
        lines[k].y = y;
    }
    return svg_chart_print(&(struct svg_chart){.title = "\xCF\x83",
                                               .note = "deviation of the cluster's history",
                                               .x_label = "step",
                                               .lines = lines,
                                               .n = n,
                                               .zero = true},
                           out, e);
}

static tare_status cluster_group(struct page *p, const struct curves *g, struct str *out, struct err *e)
{
    static const struct {
        const char *suffix, *title, *note;
        bool share;
    } PLOTS[] = {{"/m1", "m\xE2\x82\x81", "mean reward of the cluster's history", false},
                 {"/n_eff", "N_eff", "effective mass of the history", false},
                 {"/w", "w", "confidence in the history", true}};
    const char *metric[CLUSTER_LINES], *label[CLUSTER_LINES], *first[CLUSTER_LINES];
    int64_t n, found = 0;
    for (int k = 0; k < 3; k++) {
        TRY(find_parts(p, g, "cluster/", PLOTS[k].suffix, metric, label, CLUSTER_LINES, &n, e));
        if (!n) continue;
        if (!found) {
            if (p->n_groups > 1) {
                TRY(str_add(out, "<details><summary>", -1, e));
                TRY(html_text(out, g->label, -1, e));
                TRY(str_add(out, "</summary>", -1, e));
            }
            TRY(str_add(out, "<div class=\"charts\">", -1, e));
            memcpy(first, label, sizeof label);
            found = n;
        }
        TRY(parts_chart(p, g, PLOTS[k].title, PLOTS[k].note, metric, label, n, PLOTS[k].share, false, out, e));
        if (k == 0) TRY(sigma_chart(p, g, label, n, out, e));
    }
    if (!found) return TARE_OK;
    TRY(str_add(out, "</div>", -1, e));
    TRY(add_key(first, found, out, e));
    return p->n_groups > 1 ? str_add(out, "</details>\n", -1, e) : TARE_OK;
}

tare_status curves_clusters(struct page *p, struct str *out, struct err *e)
{
    struct str body = {0};
    int64_t shown = 0;
    tare_status status = TARE_OK;
    for (int64_t g = 0; !status && g < p->n_groups && shown < CLUSTER_GROUPS; g++) {
        const int64_t before = body.size;
        status = cluster_group(p, &p->groups[g], &body, e);
        shown += body.size > before;
    }
    if (!status && body.size) status = str_add(out, "<h2>Clusters: the estimator's history</h2>\n", -1, e);
    if (!status && body.size) status = str_add(out, body.data, body.size, e);
    str_free(&body);
    return status;
}
