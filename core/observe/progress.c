#include "observe/progress.h"

#include "base/clock.h"
#include "base/log.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_EVERY = 10 /* seconds */, WIDTH = 24, SIGNAL = 3 /* part of the line */ };

struct progress {
    enum { NONE, LINES, BAR } mode;
    char what[40];
    int64_t done, total;
    double last_step, last_line, per_step; /* seconds; per_step: moving average, NaN at first */
};

tare_status progress_new(enum progress_form form, const char *what, int64_t done, int64_t total, struct progress **out,
                         struct err *e)
{
    struct progress *p = *out = calloc(1, sizeof *p);
    if (!p) FAIL(e, TARE_E_NOMEM, "out of memory for the progress line");
    snprintf(p->what, sizeof p->what, "%s", what);
    p->done = done;
    p->total = total;
    p->last_step = clock_seconds();
    p->last_line = -INFINITY;
    p->per_step = NAN;
    const bool terminal = isatty(STDERR_FILENO);
    p->mode = log_level() > LOG_INFO || form == PROGRESS_NONE ? NONE
              : form == PROGRESS_LINES                        ? LINES
              : form == PROGRESS_BAR || terminal              ? BAR
                                                              : LINES;
    return TARE_OK;
}

static int64_t print_time(char *text, int64_t n, double seconds)
{
    const long s = (long)(seconds + 0.5);
    if (s >= 3600) return snprintf(text, (size_t)n, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return snprintf(text, (size_t)n, "%ld:%02ld", s / 60, s % 60);
}

void progress_print(char *text, int64_t n, struct progress_place place, const struct progress_values *v)
{
    int64_t at = snprintf(text, (size_t)n, "%s %lld/%lld", place.what, (long long)place.done, (long long)place.total);
    const struct {
        const char *name;
        double value;
        int digits;
    } parts[] = {{"reward", v->reward, 3},
                 {"length", v->length, 1},
                 {"entropy", v->entropy, 3},
                 {"signal", v->signal, 2},
                 {"tok/s", v->tokens_per_second, 0}};
    for (int i = 0; i < 5; i++) {
        if (isfinite(parts[i].value) && at < n)
            at += snprintf(text + at, (size_t)(n - at), "  %s %.*f", parts[i].name, parts[i].digits, parts[i].value);
        if (i == SIGNAL && isfinite(v->signal) && isfinite(v->advantage) && at < n)
            at += snprintf(text + at, (size_t)(n - at), "/%.*f", parts[i].digits, v->advantage);
    }
    if (isfinite(place.left) && at < n - 8) {
        at += snprintf(text + at, (size_t)(n - at), "  left ");
        if (at < n) print_time(text + at, n - at, place.left);
    }
}

/* Draws "[=======> ] step ...", cut to the terminal's width, because a longer line could not be
 * redrawn in place. */
static void draw_bar(const struct progress *p, const char *text)
{
    char line[400];
    struct winsize size;
    const int64_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 120 : size.ws_col;
    const int full = p->total > 0 ? (int)(WIDTH * p->done / p->total) : 0;
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++) bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[WIDTH] = 0;
    snprintf(line, sizeof line, "[%s] %s", bar, text);
    if (columns < (int64_t)sizeof line) line[columns - 1] = 0;
    log_status_line(line);
}

void progress_step(struct progress *p, int64_t done, const struct progress_values *v)
{
    const double now = clock_seconds();
    if (done > p->done) {
        const double each = (now - p->last_step) / (double)(done - p->done);
        p->per_step = isnan(p->per_step) ? each : 0.9 * p->per_step + 0.1 * each;
    }
    p->last_step = now;
    p->done = done;
    if (p->mode == NONE) return;
    char text[300];
    const double left = done < p->total ? p->per_step * (double)(p->total - done) : NAN;
    progress_print(text, sizeof text, (struct progress_place){p->what, done, p->total, left}, v);
    if (p->mode == BAR) {
        draw_bar(p, text);
    } else if (now - p->last_line >= LINE_EVERY || done >= p->total) {
        p->last_line = now;
        log_info("%s", text);
    }
}

void progress_free(struct progress *p)
{
    if (!p) return;
    if (p->mode == BAR) log_status_line(NULL);
    free(p);
}
