/* Print the signals of a run as lines of text. */
#include "lab/report/page.h"

#include <math.h>
#include <string.h>

enum { LABEL = 24, NUMBER = 9, WIDEST = 200, TALLEST = 4 };

struct screen {
    int columns, rows, used;
    bool unicode;
    struct str *out;
    struct err *e;
};

/* Return the value of column i of n, the mean over its stretch; NAN between points. */
static double column_value(const struct series *s, int64_t i, int64_t n)
{
    const int64_t begin = i * s->n / n, end = (i + 1) * s->n / n;
    double sum = 0;
    if (s->n <= n) return i < s->n ? s->value[i] : NAN;
    for (int64_t k = begin; k < end; k++) sum += s->value[k];
    return sum / (double)(end - begin);
}

/* A braille character has 2 columns of 4 dots: bits of the left column from the top, then of the
 * right one. */
static tare_status braille_row(struct screen *w, const double *level, int64_t n, int row, int height)
{
    static const unsigned char DOTS[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    for (int64_t c = 0; c + 1 < n; c += 2) {
        unsigned bits = 0;
        for (int side = 0; side < 2; side++) {
            if (isnan(level[c + side])) continue;
            const int dot = (int)lround((1 - level[c + side]) * (double)(4 * height - 1)) - 4 * row;
            if (dot >= 0 && dot < 4) bits |= DOTS[side][dot];
        }
        const char code[4] = {(char)0xE2, (char)(0xA0 + (bits >> 6)), (char)(0x80 + (bits & 63)), 0};
        TRY(str_add(w->out, bits ? code : " ", -1, w->e));
    }
    return TARE_OK;
}

static tare_status ascii_row(struct screen *w, const double *level, int64_t n)
{
    static const char MARKS[] = "_.-~=+*#";
    for (int64_t c = 0; c < n; c++) {
        const char mark[2] = {isnan(level[c]) ? ' ' : MARKS[lround(level[c] * 7)], 0};
        TRY(str_add(w->out, mark, 1, w->e));
    }
    return TARE_OK;
}

static tare_status print_sparkline(struct screen *w, const char *label, const struct series *s, int height)
{
    double level[2 * WIDEST], low = INFINITY, high = -INFINITY;
    char last[32], least[32], most[32];
    int64_t width = w->columns - LABEL - 4 * NUMBER + 4;
    if (width > WIDEST) width = WIDEST;
    if (width < 8) width = 8;
    const int64_t n = w->unicode ? 2 * width : width;
    if (!w->unicode) height = 1;
    for (int64_t i = 0; i < n; i++) {
        level[i] = column_value(s, i, n);
        if (isnan(level[i])) continue;
        low = fmin(low, level[i]);
        high = fmax(high, level[i]);
    }
    for (int64_t i = 0; i < n; i++) level[i] = high > low ? (level[i] - low) / (high - low) : level[i] * 0 + 0.5;
    for (int row = 0; row < height && w->used < w->rows; row++, w->used++) {
        TRY(str_addf(w->out, w->e, "%-*.*s %*s  ", LABEL, LABEL, row ? "" : label, NUMBER,
                     row ? "" : svg_number(last, s->value[s->n - 1])));
        TRY(w->unicode ? braille_row(w, level, n, row, height) : ascii_row(w, level, n));
        if (row == 0) TRY(str_addf(w->out, w->e, "  %s to %s", svg_number(least, low), svg_number(most, high)));
        TRY(str_add(w->out, "\n", 1, w->e));
    }
    return TARE_OK;
}

static tare_status print_header(struct screen *w, const struct run_data *r)
{
    const struct series *time = run_data_find(r, "time/step");
    double seconds = 0;
    char text[400];
    if (time)
        for (int64_t i = 0; i < time->n; i++) seconds += time->value[i];
    if (time && time->n)
        snprintf(text, sizeof text, "%s  step %lld  %.0f min %02.0f s in the steps, %.2f s the last", r->name,
                 (long long)r->last_step, floor(seconds / 60), floor(fmod(seconds, 60)), time->value[time->n - 1]);
    else
        snprintf(text, sizeof text, "%s  no step yet", r->name);
    w->used++;
    return str_addf(w->out, w->e, "%.*s\n", w->columns, text);
}

/* Prints one line for each component of the reward, if there are several. */
static tare_status print_components(struct screen *w, const struct run_data *r)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->n_series; i++) n += curves_is_component(r->series[i].name);
    for (int64_t i = 0; n > 1 && i < r->n_series; i++)
        if (curves_is_component(r->series[i].name) && r->series[i].n && w->used < w->rows)
            TRY(print_sparkline(w, r->series[i].name, &r->series[i], 1));
    return TARE_OK;
}

tare_status watch_print(const char *dir, int columns, int rows, bool unicode, struct str *out, struct err *e)
{
    static const char *const METRICS[] = {"reward/mean",
                                          "response_length/mean",
                                          "policy/entropy",
                                          "estimator/effective_signal_ratio",
                                          "estimator/nonzero_advantage_ratio",
                                          "eval/reward",
                                          "policy/clip_fraction",
                                          "policy/approx_kl",
                                          "grad_norm",
                                          "estimator/advantage_max",
                                          "estimator/confidence_mean",
                                          "reward/all_wrong_groups",
                                          "tokens_per_second"};
    static const char *const LABELS[] = {"training reward",
                                         "response length",
                                         "entropy",
                                         "effective-signal ratio",
                                         "groups with an advantage",
                                         "held-out reward",
                                         "clip fraction",
                                         "KL",
                                         "gradient norm",
                                         "largest |A|",
                                         "confidence w",
                                         "all-wrong groups",
                                         "tokens a second"};
    OWNED(arena_free) struct arena a = {0};
    struct run_data r;
    struct screen w = {.columns = columns, .rows = rows, .unicode = unicode, .out = out, .e = e};
    arena_init(&a, "watch");
    TRY(run_data_read(dir, &a, &r, e));
    TRY(print_header(&w, &r));
    for (int i = 0; i < 13; i++) {
        const struct series *s = run_data_find(&r, METRICS[i]);
        if (!s || !s->n || w.used >= rows) continue;
        const int height = i < 6 ? (rows >= 32 ? 3 : rows >= 22 ? 2 : 1) : 1;
        TRY(print_sparkline(&w, LABELS[i], s, height));
        if (i == 0) TRY(print_components(&w, &r));
    }
    return TARE_OK;
}
