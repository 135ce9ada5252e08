/* Line charts, points, stacked areas. */
#include "lab/report/svg.h"

#include <math.h>
#include <string.h>

enum { LEFT = 46, RIGHT = 10, TOP = 8, BOTTOM = 30, TICKS = 24, SMOOTH_FROM = 60, FEW_POINTS = 12 };

struct scale {        /* maps a value to a coordinate */
    double low, high; /* range of the values; of their logarithms if log */
    double from, to;
    bool log;
};

struct canvas { /* the drawing area of a chart */
    struct scale x, y;
    struct str *out;
    struct err *e;
};

static double map_value(const struct scale *s, double x)
{
    const double v = s->log ? log10(x) : x;
    const double t = s->high > s->low ? (v - s->low) / (s->high - s->low) : 0.5;
    return s->from + fmin(1, fmax(0, t)) * (s->to - s->from);
}

/* ---------------------------------------------------------------- texts */

tare_status svg_text(struct str *out, const char *text, int64_t n, struct err *e)
{
    if (n < 0) n = (int64_t)strlen(text);
    for (int64_t i = 0; i < n;) {
        const int64_t bad = str_utf8_error(text + i, n - i), good = bad ? bad - 1 : n - i;
        for (int64_t k = i; k < i + good; k++) {
            const char c = text[k];
            const char *entity = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
            if (entity)
                TRY(str_add(out, entity, -1, e));
            else if ((unsigned char)c < 32 && c != '\n' && c != '\t')
                TRY(str_add(out, "\xEF\xBF\xBD", 3, e));
            else
                TRY(str_add(out, &text[k], 1, e));
        }
        if (bad) TRY(str_add(out, "\xEF\xBF\xBD", 3, e));
        i += good + (bad != 0);
    }
    return TARE_OK;
}

const char *svg_number(char buffer[32], double x)
{
    const double size = fabs(x);
    if (!isfinite(x))
        snprintf(buffer, 32, "-");
    else if (size >= 1e9 || (size > 0 && size < 1e-3))
        snprintf(buffer, 32, "%.2g", x);
    else if (size >= 1e7)
        snprintf(buffer, 32, "%.3gM", x / 1e6);
    else if (size >= 1e4)
        snprintf(buffer, 32, "%.3gk", x / 1e3);
    else if (size >= 1000)
        snprintf(buffer, 32, "%.0f", x);
    else
        snprintf(buffer, 32, "%.3g", x);
    return buffer;
}

/* ---------------------------------------------------------------- axes */

/* Return 1, 2 or 5 times a power of ten, so that about `wanted` steps fill the span. */
static double nice_step(double span, int wanted)
{
    const double raw = span / wanted, power = pow(10, floor(log10(raw))), m = raw / power;
    return power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

/* Use powers of ten. Below two decades use 1, 2, 5 of each, or round steps if even these are too
 * few. */
static int make_log_ticks(const struct scale *s, int wanted, double ticks[TICKS])
{
    static const double parts[] = {1, 2, 5};
    int n = 0;
    if (s->high - s->low >= 2) {
        const double step = fmax(1, ceil((s->high - s->low) / wanted));
        for (double p = ceil(s->low - 1e-9); p <= s->high + 1e-9 && n < TICKS; p += step) ticks[n++] = pow(10, p);
        return n;
    }
    for (double p = floor(s->low); p <= s->high; p++)
        for (int i = 0; i < 3 && n < TICKS; i++) {
            const double v = pow(10, p) * parts[i];
            if (log10(v) >= s->low - 1e-9 && log10(v) <= s->high + 1e-9) ticks[n++] = v;
        }
    if (n >= 3) return n;
    const double low = pow(10, s->low), high = pow(10, s->high), step = nice_step(high - low, wanted);
    n = 0;
    for (double i = ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && n < TICKS; i++) ticks[n++] = i * step;
    return n;
}

static int make_ticks(const struct scale *s, int wanted, double ticks[TICKS])
{
    int n = 0;
    if (s->log) return make_log_ticks(s, wanted, ticks);
    if (!(s->high > s->low)) return ticks[0] = s->low, 1;
    const double step = nice_step(s->high - s->low, wanted);
    for (double i = ceil(s->low / step - 1e-9); i * step <= s->high + step * 1e-9 && n < TICKS; i++)
        ticks[n++] = fabs(i * step) < step * 1e-6 ? 0 : i * step;
    return n;
}

static const char *tick_text(char buffer[32], double x, bool share)
{
    if (share) {
        snprintf(buffer, 32, "%.3g%%", 100 * x);
        return buffer;
    }
    return svg_number(buffer, x);
}

static tare_status add_axes(const struct canvas *c, const char *x_label, bool share)
{
    double ticks[TICKS];
    char text[32];
    struct str *out = c->out;
    int n = make_ticks(&c->y, 4, ticks);
    for (int i = 0; i < n; i++) {
        const double v = map_value(&c->y, ticks[i]);
        TRY(str_addf(out, c->e, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"y\" x=\"%d\" y=\"%.1f\">%s</text>", LEFT, v,
                     SVG_WIDTH - RIGHT, LEFT - 5, v + 4, tick_text(text, ticks[i], share)));
    }
    n = make_ticks(&c->x, 5, ticks);
    for (int i = 0; i < n; i++)
        TRY(str_addf(out, c->e, "<text class=\"x\" x=\"%.1f\" y=\"%d\">%s</text>", map_value(&c->x, ticks[i]),
                     SVG_HEIGHT - BOTTOM + 15, svg_number(text, ticks[i])));
    TRY(str_addf(out, c->e, "<path class=\"axis\" d=\"M%d %dH%d\"/>", LEFT, SVG_HEIGHT - BOTTOM, SVG_WIDTH - RIGHT));
    TRY(str_addf(out, c->e, "<text class=\"x\" x=\"%d\" y=\"%d\">", (LEFT + SVG_WIDTH - RIGHT) / 2, SVG_HEIGHT - 2));
    TRY(svg_text(out, x_label, -1, c->e));
    return str_add(out, "</text>", -1, c->e);
}

static tare_status open_figure(const char *title, const char *note, struct str *out, struct err *e)
{
    TRY(str_add(out, "<figure><figcaption>", -1, e));
    TRY(svg_text(out, title, -1, e));
    if (note) {
        TRY(str_add(out, " <small>", -1, e));
        TRY(svg_text(out, note, -1, e));
        TRY(str_add(out, "</small>", -1, e));
    }
    return str_add(out, "</figcaption>", -1, e);
}

/* Record the value ranges for the script that shows values under the pointer. */
static tare_status open_svg(const struct canvas *c, const char *title)
{
    const struct scale *x = &c->x, *y = &c->y;
    TRY(str_addf(
        c->out, c->e,
        "<svg viewBox=\"0 0 %d %d\" role=\"img\" data-x=\"%.6g %.6g %.6g %.6g\" data-y=\"%.6g %.6g %.6g %.6g %d\" aria-label=\"",
        SVG_WIDTH, SVG_HEIGHT, x->from, x->to, x->low, x->high, y->from, y->to, y->low, y->high, y->log));
    TRY(svg_text(c->out, title, -1, c->e));
    return str_add(c->out, "\">", -1, c->e);
}

/* ---------------------------------------------------------------- ranges */

static void widen_scale(struct scale *s, double v)
{
    if (!isfinite(v)) return;
    if (!(v >= s->low)) s->low = v;
    if (!(v <= s->high)) s->high = v;
}

static void find_ranges(const struct svg_chart *c, struct scale *x, struct scale *y)
{
    double least = INFINITY; /* the least value above 0 */
    bool positive = true, positive_values = true;
    x->low = x->high = y->low = y->high = NAN;
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t k = 0; k < c->lines[i].n; k++) {
            const struct svg_line *l = &c->lines[i];
            widen_scale(x, l->x[k]);
            widen_scale(y, l->y[k]);
            if (l->low) widen_scale(y, l->low[k]);
            if (l->high) widen_scale(y, l->high[k]);
            positive &= l->y[k] >= 0 && (!l->low || l->low[k] > 0);
            positive_values &= l->y[k] >= 0;
            if (l->y[k] > 0) least = fmin(least, l->y[k]);
        }
    if ((c->may_log && positive && y->high > 1000 * least) || (c->log && positive && y->low > 0)) {
        y->log = true;
        y->low = log10(least);
        y->high = log10(y->high);
        if (c->log) { /* a margin; for a constant a factor of two */
            const double margin = y->high > y->low ? 0.05 * (y->high - y->low) : 0.15;
            y->low -= margin;
            y->high += margin;
        }
    }
    /* a band may extend below the possible values */
    if (!y->log && positive_values && (c->zero || y->low < 0)) y->low = 0;
    if (!y->log && fmax(fabs(y->low), fabs(y->high)) < 1e-12) y->low = y->high = 0; /* rounding errors of zero */
    if (c->share && !y->log) {
        y->low = 0;
        if (y->high > 0.5) y->high = 1;
    }
    if (!(y->high > y->low)) { /* a constant */
        const double margin = y->high != 0 ? fabs(y->high) * 0.1 : 1;
        y->high += margin;
        if (!c->zero || y->low != 0) y->low -= margin;
    } else if (!y->log) {
        const double margin = 0.04 * (y->high - y->low);
        if (!(c->share && y->high == 1)) y->high += margin;
        if (y->low != 0) y->low -= margin;
    }
    if (c->diagonal) {
        y->low = x->low = fmin(x->low, y->low);
        y->high = x->high = fmax(x->high, y->high);
    }
}

/* ---------------------------------------------------------------- lines */

/* Choose the indices to draw: all, or the least and the greatest of each stretch. keep [SVG_POINTS
 * + 2] */
static int64_t reduce_points(const double *y, int64_t n, int64_t *keep)
{
    int64_t m = 0;
    if (n <= SVG_POINTS) {
        for (int64_t i = 0; i < n; i++) keep[i] = i;
        return n;
    }
    const int64_t stretches = SVG_POINTS / 2;
    for (int64_t s = 0; s < stretches; s++) {
        const int64_t begin = s * n / stretches, end = (s + 1) * n / stretches;
        int64_t least = begin, greatest = begin;
        for (int64_t i = begin + 1; i < end; i++) {
            if (y[i] < y[least]) least = i;
            if (y[i] > y[greatest]) greatest = i;
        }
        keep[m++] = least < greatest ? least : greatest;
        if (least != greatest) keep[m++] = least < greatest ? greatest : least;
    }
    if (keep[m - 1] != n - 1) keep[m++] = n - 1;
    return m;
}

static tare_status add_polyline(const struct canvas *c, const double *vx, const double *vy, const int64_t *keep, int64_t n)
{
    const struct scale *x = &c->x, *y = &c->y;
    for (int64_t i = 0; i < n; i++) {
        const double v = vy[keep[i]];
        TRY(str_addf(c->out, c->e, "%s%.1f %.1f", i ? " " : "M", map_value(x, vx[keep[i]]),
                     map_value(y, y->log && v <= 0 ? pow(10, y->low) : v)));
    }
    return TARE_OK;
}

static tare_status add_band(const struct canvas *c, const struct svg_line *l, const int64_t *keep, int64_t n)
{
    int64_t back[SVG_POINTS + 2];
    OWNED(str_free) struct str second = {0};
    struct canvas aside = *c;
    for (int64_t i = 0; i < n; i++) back[i] = keep[n - 1 - i];
    TRY(str_addf(c->out, c->e, "<path class=\"band c%d\" d=\"", l->colour % SVG_COLOURS));
    TRY(add_polyline(c, l->x, l->high, keep, n));
    TRY(str_add(c->out, "L", 1, c->e));
    aside.out = &second;
    TRY(add_polyline(&aside, l->x, l->low, back, n));
    TRY(str_add(c->out, second.data + 1, second.size - 1, c->e)); /* without its M */
    return str_add(c->out, "Z\"/>", -1, c->e);
}

static tare_status add_line_element(const struct canvas *c, const struct svg_line *l, const double *vy, const char *extra,
                                    bool named)
{
    int64_t keep[SVG_POINTS + 2];
    struct str *out = c->out;
    const int64_t n = reduce_points(vy, l->n, keep);
    if (l->low && l->high && named) TRY(add_band(c, l, keep, n));
    if (n == 1)
        return str_addf(out, c->e, "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", l->colour % SVG_COLOURS,
                        map_value(&c->x, l->x[0]), map_value(&c->y, vy[0]));
    TRY(str_addf(out, c->e, "<path class=\"line c%d d%d%s\"", l->colour % SVG_COLOURS, l->colour / SVG_COLOURS, extra));
    if (named) {
        TRY(str_add(out, " data-n=\"", -1, c->e));
        TRY(svg_text(out, l->label, -1, c->e));
        TRY(str_add(out, "\"", 1, c->e));
    }
    TRY(str_add(out, " d=\"", -1, c->e));
    TRY(add_polyline(c, l->x, vy, keep, n));
    return str_add(out, "\"/>", -1, c->e);
}

/* Marks the points of a line that has few of them. */
static tare_status add_dots(const struct canvas *c, const struct svg_line *l)
{
    if (l->n < 2 || l->n > FEW_POINTS) return TARE_OK;
    for (int64_t i = 0; i < l->n; i++)
        TRY(str_addf(c->out, c->e, "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", l->colour % SVG_COLOURS,
                     map_value(&c->x, l->x[i]), map_value(&c->y, c->y.log && l->y[i] <= 0 ? pow(10, c->y.low) : l->y[i])));
    return TARE_OK;
}

/* Compute the centred moving average over a tenth of the line (at most 25 values on each side). */
static void moving_average(const double *y, int64_t n, double *out)
{
    const int64_t reach = n / 20 < 25 ? n / 20 : 25;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        const int64_t begin = i > reach ? i - reach : 0, end = i + reach < n ? i + reach + 1 : n;
        for (int64_t k = begin; k < end; k++) sum += y[k];
        out[i] = sum / (double)(end - begin);
    }
}

/* Draws the vertical line of chart->lines[i], unless an earlier line has it at the same x. */
static tare_status add_mark(const struct svg_chart *chart, int64_t i, const struct canvas *c)
{
    const struct svg_line *l = &chart->lines[i];
    if (!l->n || l->mark <= 0 || l->mark < c->x.low || l->mark > c->x.high) return TARE_OK;
    for (int64_t k = 0; k < i; k++)
        if (chart->lines[k].n && chart->lines[k].mark == l->mark) return TARE_OK;
    return str_addf(c->out, c->e, "<path class=\"line c%d d2 faint\" d=\"M%.1f %dV%d\"><title>fork at step %.0f</title></path>",
                    l->colour % SVG_COLOURS, map_value(&c->x, l->mark), TOP, SVG_HEIGHT - BOTTOM, l->mark);
}

static tare_status add_lines(const struct svg_chart *chart, const struct canvas *c)
{
    for (int64_t i = 0; i < chart->n; i++) TRY(add_mark(chart, i, c));
    for (int64_t i = 0; i < chart->n; i++) {
        const struct svg_line *l = &chart->lines[i];
        if (!l->n) continue;
        if (l->n < SMOOTH_FROM || l->low) {
            TRY(add_line_element(c, l, l->y, "", true));
            TRY(add_dots(c, l));
            continue;
        }
        double *mean;
        TRY(add_line_element(c, l, l->y, " faint", true));
        TRY(mem_new(l->n * (int64_t)sizeof *mean, (void **)&mean, c->e));
        moving_average(l->y, l->n, mean);
        const tare_status status = add_line_element(c, l, mean, "", false);
        mem_free(mean);
        TRY(status);
    }
    return TARE_OK;
}

static tare_status add_points(const struct svg_chart *chart, const struct canvas *c)
{
    const struct scale *x = &c->x, *y = &c->y;
    if (chart->diagonal)
        TRY(str_addf(c->out, c->e, "<path class=\"axis\" stroke-dasharray=\"4 4\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                     map_value(x, x->low), map_value(y, x->low), map_value(x, x->high), map_value(y, x->high)));
    for (int64_t i = 0; i < chart->n; i++) {
        const struct svg_line *l = &chart->lines[i];
        for (int64_t k = 0; k < l->n; k++)
            TRY(str_addf(c->out, c->e, "<circle class=\"dot faint c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>",
                         l->colour % SVG_COLOURS, map_value(x, l->x[k]), map_value(y, l->y[k])));
    }
    return TARE_OK;
}

static struct canvas new_canvas(struct str *out, struct err *e)
{
    return (struct canvas){
        .x = {.from = LEFT, .to = SVG_WIDTH - RIGHT}, .y = {.from = SVG_HEIGHT - BOTTOM, .to = TOP}, .out = out, .e = e};
}

tare_status svg_chart_print(const struct svg_chart *chart, struct str *out, struct err *e)
{
    struct canvas c = new_canvas(out, e);
    int64_t points = 0;
    for (int64_t i = 0; i < chart->n; i++) points += chart->lines[i].n;
    if (!points) return TARE_OK;
    find_ranges(chart, &c.x, &c.y);
    TRY(open_figure(chart->title, chart->note, out, e));
    TRY(open_svg(&c, chart->title));
    TRY(add_axes(&c, chart->x_label, chart->share));
    TRY(chart->points ? add_points(chart, &c) : add_lines(chart, &c));
    return str_add(out, "</svg></figure>\n", -1, e);
}

/* ---------------------------------------------------------------- stacked areas */

/* Average over stretches, so that areas stay exact shares. */
static int64_t stretch_means(const double *y, int64_t n, int64_t most, double *out)
{
    const int64_t m = n < most ? n : most;
    for (int64_t s = 0; s < m; s++) {
        double sum = 0;
        const int64_t begin = s * n / m, end = (s + 1) * n / m;
        for (int64_t i = begin; i < end; i++) sum += y[i];
        out[s] = sum / (double)(end - begin);
    }
    return m;
}

enum { AREA_POINTS = 150 };

struct band { /* one part of the stack, reduced to n points */
    int64_t n;
    double x[AREA_POINTS], from[AREA_POINTS], to[AREA_POINTS];
};

/* Return the colour of a part. Green is right and orange is wrong in every order; other parts are
 * coloured by their place. */
static int64_t part_colour(const char *label, int64_t place)
{
    static const struct {
        const char *label;
        int64_t colour;
    } KNOWN[] = {{"correct", 2}, {"wrong", 1}, {"partial", 5}, {"no_answer", 7}, {"unparsable", 4}, {"timeout", 6}, {"crashed", 3}};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (!strcmp(label, KNOWN[i].label)) return KNOWN[i].colour;
    return place % SVG_COLOURS;
}

static tare_status add_area(const struct canvas *c, const struct band *b, const char *label, int64_t place)
{
    struct str *out = c->out;
    TRY(str_addf(out, c->e, "<path class=\"area c%lld\" d=\"M", (long long)part_colour(label, place)));
    for (int64_t i = 0; i < b->n; i++)
        TRY(str_addf(out, c->e, "%.1f %.1f ", map_value(&c->x, b->x[i]), map_value(&c->y, b->to[i])));
    for (int64_t i = b->n - 1; i >= 0; i--)
        TRY(str_addf(out, c->e, "%.1f %.1f ", map_value(&c->x, b->x[i]), map_value(&c->y, b->from[i])));
    TRY(str_add(out, "Z\"><title>", -1, c->e));
    TRY(svg_text(out, label, -1, c->e));
    return str_add(out, "</title></path>", -1, c->e);
}

static tare_status add_area_key(const char *const *labels, int64_t n, struct str *out, struct err *e)
{
    TRY(str_add(out, "<p class=\"key\">", -1, e));
    for (int64_t i = n - 1; i >= 0; i--) {
        TRY(str_addf(out, e, "<span><i class=\"c%lld\"></i>", (long long)part_colour(labels[i], i)));
        TRY(svg_text(out, labels[i], -1, e));
        TRY(str_add(out, "</span> ", -1, e));
    }
    return str_add(out, "</p>", -1, e);
}

/* Put the next part on top of the stack. */
static void stack_part(struct band *b, const double *y, int64_t n)
{
    double part[AREA_POINTS];
    stretch_means(y, n, AREA_POINTS, part);
    for (int64_t i = 0; i < b->n; i++) {
        b->from[i] = b->to[i];
        b->to[i] += part[i];
    }
}

tare_status svg_areas_print(const struct svg_areas *a, struct str *out, struct err *e)
{
    struct band b = {0};
    struct canvas c = new_canvas(out, e);
    if (a->n < 2 || !a->n_parts) return TARE_OK;
    b.n = stretch_means(a->x, a->n, AREA_POINTS, b.x);
    for (int64_t p = 0; p < a->n_parts; p++) stack_part(&b, a->y[p], a->n);
    c.x.low = b.x[0];
    c.x.high = b.x[b.n - 1];
    c.y.high = a->share ? 1 : 0;
    for (int64_t i = 0; i < b.n && !a->share; i++) c.y.high = fmax(c.y.high, b.to[i]);
    memset(b.to, 0, sizeof b.to);
    TRY(open_figure(a->title, a->note, out, e));
    TRY(str_addf(out, e, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", SVG_WIDTH, SVG_HEIGHT));
    TRY(svg_text(out, a->title, -1, e));
    TRY(str_add(out, "\">", -1, e));
    TRY(add_axes(&c, "step", a->share));
    for (int64_t p = 0; p < a->n_parts; p++) {
        stack_part(&b, a->y[p], a->n);
        TRY(add_area(&c, &b, a->labels[p], p));
    }
    TRY(str_add(out, "</svg>", -1, e));
    TRY(add_area_key(a->labels, a->n_parts, out, e));
    return str_add(out, "</figure>\n", -1, e);
}

/* ---------------------------------------------------------------- heat map */

static tare_status heat_head(const struct svg_heat *h, struct str *out, struct err *e)
{
    TRY(str_add(out, "<div class=\"scroll\"><table class=\"heat\"><tr><th>", -1, e));
    TRY(svg_text(out, h->row_label, -1, e));
    if (*h->column_label) {
        TRY(str_add(out, " \xE2\x86\x93 &nbsp; ", -1, e));
        TRY(svg_text(out, h->column_label, -1, e));
        TRY(str_add(out, " \xE2\x86\x92", -1, e));
    }
    TRY(str_add(out, "</th>", -1, e));
    for (int64_t c = 0; c < h->n_columns; c++) {
        TRY(str_add(out, "<th>", -1, e));
        TRY(svg_text(out, h->columns[c], -1, e));
        TRY(str_add(out, "</th>", -1, e));
    }
    return TARE_OK;
}

/* A heat map is a table, so that it is readable with any font size. The strength of the colour is
 * the position between the least and the greatest value. */
tare_status svg_heat_print(const struct svg_heat *h, struct str *out, struct err *e)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < h->n_rows * h->n_columns; i++)
        if (isfinite(h->value[i])) {
            low = fmin(low, h->value[i]);
            high = fmax(high, h->value[i]);
        }
    if (!(high >= low)) return TARE_OK;
    TRY(open_figure(h->title, h->note, out, e));
    TRY(heat_head(h, out, e));
    for (int64_t r = 0; r < h->n_rows; r++) {
        TRY(str_add(out, "</tr><tr><th>", -1, e));
        TRY(svg_text(out, h->rows[r], -1, e));
        TRY(str_add(out, "</th>", -1, e));
        for (int64_t c = 0; c < h->n_columns; c++) {
            const double v = h->value[r * h->n_columns + c];
            const double t = high > low ? (v - low) / (high - low) : 0.5;
            if (isfinite(v))
                TRY(str_addf(out, e, "<td class=\"h%d\">%.4f</td>", 8 + 2 * (int)lround(31 * t), v));
            else
                TRY(str_add(out, "<td class=\"none\">-</td>", -1, e));
        }
    }
    return str_add(out, "</tr></table></div></figure>\n", -1, e);
}
