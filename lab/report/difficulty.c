/* The figure by difficulty: panels of accuracy and length for each subset of the questions. */
#include "lab/report/page.h"

#include <math.h>
#include <string.h>

enum { LINES_MOST = 48, NAMES_MOST = 16 };

struct names { /* distinct texts in order of first use */
    const char *list[NAMES_MOST];
    int n;
};

/* Return the index of a name, adding it if new; -1 if the list is full. */
static int name_index(struct names *s, const char *name)
{
    int i = 0;
    while (i < s->n && strcmp(s->list[i], name)) i++;
    if (i == NAMES_MOST) return -1;
    if (i == s->n) s->list[s->n++] = name;
    return i;
}

struct figure {
    const struct difficulty_point *points;
    int64_t n;
    struct names runs, subsets, buckets;
    struct arena arena;
};

static bool same_line(const struct difficulty_point *a, const struct difficulty_point *b)
{
    return !strcmp(a->run, b->run) && !strcmp(a->subset, b->subset) && !strcmp(a->bucket, b->bucket);
}

/* Make a line for each run and bucket of one subset. */
static tare_status make_lines(struct figure *f, const char *subset, bool length, struct svg_line *lines, int64_t *n, struct err *e)
{
    *n = 0;
    for (int64_t i = 0, end; i < f->n; i = end) {
        const struct difficulty_point *p = &f->points[i];
        for (end = i + 1; end < f->n && same_line(p, &f->points[end]);) end++;
        if (strcmp(p->subset, subset) || *n == LINES_MOST) continue;
        struct str label = {0};
        char *text;
        double *x, *y;
        tare_status status = str_addf(&label, e, f->runs.n > 1 ? "%s, %s" : "%s", p->bucket, p->run);
        if (!status) status = arena_strdup(&f->arena, label.data, label.size, &text, e);
        str_free(&label);
        TRY(status);
        TRY(arena_new(&f->arena, &x, end - i, e));
        TRY(arena_new(&f->arena, &y, end - i, e));
        struct svg_line *l = &lines[(*n)++];
        *l = (struct svg_line){.label = text,
                               .x = x,
                               .y = y,
                               .colour = name_index(&f->buckets, p->bucket) + SVG_COLOURS * name_index(&f->runs, p->run)};
        for (int64_t k = i; k < end; k++) {
            const double v = length ? f->points[k].length : f->points[k].accuracy;
            if (!isfinite(v)) continue;
            x[l->n] = (double)f->points[k].step;
            y[l->n++] = v;
        }
    }
    return TARE_OK;
}

static tare_status add_panels(struct figure *f, bool length, struct str *out, struct err *e)
{
    struct svg_line lines[LINES_MOST];
    for (int s = 0; s < f->subsets.n; s++) {
        int64_t n;
        TRY(make_lines(f, f->subsets.list[s], length, lines, &n, e));
        TRY(svg_chart_print(&(struct svg_chart){.title = length ? "Mean tokens, log scale" : "Accuracy",
                                                .note = *f->subsets.list[s] ? f->subsets.list[s] : NULL,
                                                .x_label = "step",
                                                .lines = lines,
                                                .n = n,
                                                .share = !length,
                                                .log = length},
                            out, e));
    }
    return TARE_OK;
}

static tare_status add_figure_key(const struct figure *f, struct str *out, struct err *e)
{
    static const char *const DASHES[] = {"", "d1", "d2"};
    TRY(str_add(out, "<p class=\"key\">", -1, e));
    for (int b = 0; b < f->buckets.n; b++) {
        TRY(str_addf(out, e, "<span><i class=\"c%d\"></i>", b % SVG_COLOURS));
        TRY(svg_text(out, f->buckets.list[b], -1, e));
        TRY(str_add(out, "</span> ", -1, e));
    }
    for (int r = 0; r < f->runs.n && f->runs.n > 1; r++) {
        TRY(str_addf(out, e, "<span><i class=\"c7 %s\"></i>", DASHES[r < 2 ? r : 2]));
        TRY(svg_text(out, f->runs.list[r], -1, e));
        TRY(str_add(out, "</span> ", -1, e));
    }
    return str_add(out, "</p>\n", -1, e);
}

static tare_status add_rows(const struct figure *f, struct str *out, struct err *e)
{
    TRY(str_add(
        out,
        "<div class=\"scroll\"><table><tr><th>run</th><th>bucket</th><th>step</th><th>questions</th><th>accuracy</th><th>95 % interval</th><th>mean tokens</th></tr>\n",
        -1, e));
    for (int64_t i = 0; i < f->n; i++) {
        const struct difficulty_point *p = &f->points[i];
        TRY(str_add(out, "<tr><td>", -1, e));
        TRY(svg_text(out, p->run, -1, e));
        TRY(str_add(out, "</td><td>", -1, e));
        TRY(svg_text(out, p->subset, -1, e));
        if (*p->subset) TRY(str_add(out, " ", 1, e));
        TRY(svg_text(out, p->bucket, -1, e));
        TRY(str_addf(out, e, "</td><td>%lld</td><td>%lld</td><td>%.3f</td><td>", (long long)p->step, (long long)p->questions,
                     p->accuracy));
        TRY(isfinite(p->low) ? str_addf(out, e, "%.3f to %.3f", p->low, p->high) : str_add(out, "-", 1, e));
        TRY(str_addf(out, e, "</td><td>%.1f</td></tr>\n", p->length));
    }
    return str_add(out, "</table></div>\n", -1, e);
}

static tare_status print_figure(struct figure *f, const char *title, struct str *out, struct err *e)
{
    TRY(page_head(title, out, e));
    TRY(add_figure_key(f, out, e));
    TRY(str_add(out, "<div class=\"charts two\">", -1, e));
    TRY(add_panels(f, false, out, e));
    TRY(add_panels(f, true, out, e));
    TRY(str_add(out, "</div>\n<h2>Numbers</h2>\n", -1, e));
    TRY(add_rows(f, out, e));
    return page_foot(out, e);
}

tare_status report_difficulty(const char *title, const struct difficulty_point *points, int64_t n, struct str *out, struct err *e)
{
    struct figure f = {.points = points, .n = n};
    for (int64_t i = 0; i < n; i++)
        if (name_index(&f.runs, points[i].run) < 0 || name_index(&f.subsets, points[i].subset) < 0 ||
            name_index(&f.buckets, points[i].bucket) < 0)
            FAIL(e, TARE_E_RANGE, "one figure can have at most %d runs, subsets or buckets", NAMES_MOST);
    arena_init(&f.arena, "figure");
    const tare_status status = print_figure(&f, title, out, e);
    arena_free(&f.arena);
    return status;
}
