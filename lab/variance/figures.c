/* Charts with a line for each estimator and state. */
#include "lab/report/svg.h"
#include "lab/variance/print.h"

#include <math.h>
#include <string.h>

enum { LINES = 24 };

struct measure_of {
    const char *title, *note;
    size_t at; /* offset of a struct figure in struct result */
    bool log, over_target;
};
static const struct measure_of MEASURES[] = {
    {"Direction", "cosine of the update and the gradient of the expected reward", offsetof(struct result, direction), false, false},
    {"Direction of the mean", "a larger batch cannot reduce its distance to 1", offsetof(struct result, mean_direction), false,
     false},
    {"Bias", "|E ghat - g*|^2 / |g*|^2", offsetof(struct result, bias), true, true},
    {"Variance", "E |ghat - E ghat|^2 / |g*|^2", offsetof(struct result, variance), true, true},
};

struct charting {
    const struct report_of *r;
    int64_t n;
    const struct measure_of *measure;
    bool steps; /* over the steps, at the largest G; false: over G at checkpoint `at` */
    int64_t at;
    struct arena *arena;
};

static const struct result *find_result(const struct report_of *r, const struct result *like, int64_t size)
{
    for (int64_t i = 0; i < r->n; i++)
        if (r->result[i].method->label == like->method->label && r->result[i].state == like->state && r->result[i].size == size)
            return &r->result[i];
    return NULL;
}

static tare_status line_of(const struct charting *c, const struct result *like, struct svg_line *out, struct err *e)
{
    const struct variance_options *o = c->r->options;
    const int64_t most = c->steps ? c->n : o->n_sizes;
    double *x, *y;
    char *label;
    OWNED(str_free) struct str name = {0};
    TRY(arena_new(c->arena, &x, most, e));
    TRY(arena_new(c->arena, &y, most, e));
    TRY(str_addf(&name, e, "%s%s%s", like->method->label, like->state == STATE_NONE ? "" : ", ",
                 like->state == STATE_NONE ? "" : STATE_NAMES[like->state]));
    TRY(arena_strdup(c->arena, name.data, -1, &label, e));
    *out = (struct svg_line){.label = label, .x = x, .y = y};
    for (int64_t k = 0; k < most; k++) {
        const struct report_of *r = &c->r[c->steps ? k : c->at];
        const struct result *found = find_result(r, like, o->sizes[c->steps ? o->n_sizes - 1 : k]);
        if (!found || *found->why) continue;
        const double value = ((const struct figure *)(const void *)((const char *)found + c->measure->at))->value /
                             (c->measure->over_target ? found->target.value : 1);
        if (!isfinite(value) || (c->measure->log && !(value > 0))) continue;
        x[out->n] = c->steps ? (double)r->at->step : log2((double)o->sizes[k]);
        y[out->n++] = value;
    }
    return TARE_OK;
}

static tare_status print_chart(const struct charting *c, struct str *page, struct err *e)
{
    const struct report_of *r = &c->r[c->at];
    struct svg_line lines[LINES];
    OWNED(str_free) struct str title = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < r->n && n < LINES; i++) {
        if (r->result[i].size != r->options->sizes[0] || *r->result[i].why) continue;
        TRY(line_of(c, &r->result[i], &lines[n], e));
        lines[n].colour = (int)n;
        n++;
    }
    TRY(c->n > 1 && !c->steps && r->at->step ? str_addf(&title, e, "%s at step %lld", c->measure->title, (long long)r->at->step)
                                             : str_addf(&title, e, "%s%s", c->measure->title, c->steps ? " over the run" : ""));
    return svg_chart_print(&(struct svg_chart){.title = title.data,
                                               .note = c->measure->note,
                                               .x_label = c->steps ? "step" : "log2 of the group size",
                                               .lines = lines,
                                               .n = n,
                                               .log = c->measure->log},
                           page, e);
}

tare_status variance_write_figures(const struct report_of *r, int64_t n, const char *dir, struct err *e)
{
    OWNED(str_free) struct str page = {0};
    OWNED(arena_free) struct arena a = {0};
    arena_init(&a, "figures");
    for (size_t k = 0; k < sizeof MEASURES / sizeof *MEASURES; k++) {
        struct charting c = {.r = r, .n = n, .measure = &MEASURES[k], .arena = &a};
        for (c.at = 0; c.at < n; c.at++) TRY(print_chart(&c, &page, e));
        c.at = 0;
        c.steps = true;
        if (n > 1) TRY(print_chart(&c, &page, e));
    }
    return report_figures(page.data ? page.data : "", dir, e);
}
