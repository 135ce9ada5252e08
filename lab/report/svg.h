/* Small SVG charts as text. Sizes are those of the view box (WIDTH x HEIGHT); colours are the classes c0 .. c7 of the page's style sheet, further
 * lines are dashed. Internal to lab/report. */
#ifndef TARE_LAB_REPORT_SVG_H
#define TARE_LAB_REPORT_SVG_H

#include "lab/report/report.h"

enum { SVG_WIDTH = 420, SVG_HEIGHT = 236, SVG_COLOURS = 8, SVG_POINTS = 400 };

struct svg_line {
    const char *label;        /* shown when the pointer is on it */
    const double *x, *y;      /* [n], x growing, y finite */
    const double *low, *high; /* [n] a band around the line; NULL: none */
    int64_t n;
    int colour; /* its number: colour and dashes follow from it */
};

struct svg_chart {
    const char *title, *note; /* note: under the title, may be NULL */
    const char *x_label;
    const struct svg_line *lines;
    int64_t n;
    bool share;    /* 0 .. 1 shown as per cent */
    bool zero;     /* the axis begins at 0 */
    bool log;      /* equal ratios on the y axis, when all values are above 0 */
    bool may_log;  /* the same when they also span more than three decades */
    bool points;   /* marks, not connected */
    bool diagonal; /* the line y = x */
};

/* A <figure> with the chart; nothing when no line has a point. Longer lines are reduced to SVG_POINTS points: the least and the greatest
 * value of each stretch. Lines with more than 60 points are drawn faint with a moving average over them when there is only one. */
tare_status svg_chart_print(const struct svg_chart *c, struct str *out, struct err *e);

/* Areas on top of one another. */
struct svg_areas {
    const char *title, *note;
    const char *const *labels; /* [n_parts] */
    const double *const *y;    /* [n_parts][n] */
    int64_t n_parts;
    const double *x; /* [n] */
    int64_t n;
    bool share; /* 0 .. 1 shown as per cent */
};

tare_status svg_areas_print(const struct svg_areas *a, struct str *out, struct err *e);

/* A table whose cells are coloured by their value. */
struct svg_heat {
    const char *title, *note;
    const char *const *rows, *const *columns;
    int64_t n_rows, n_columns;
    const double *value; /* [n_rows, n_columns], NAN: empty */
    const char *row_label, *column_label;
};

tare_status svg_heat_print(const struct svg_heat *h, struct str *out, struct err *e);

/* Text with & < > " replaced; bytes that are not UTF-8 and control characters become U+FFFD. */
tare_status html_text(struct str *out, const char *text, int64_t n, struct err *e);
/* A number for people: 4 digits, k and M above 10,000. */
const char *html_number(char buffer[32], double x);

#endif
