/* Small SVG charts as text. Sizes are those of the view box (WIDTH x HEIGHT). Colours are the
 * classes c0 .. c7 of the page's style sheet; further lines are dashed. Internal to lab/report. */
#ifndef TARE_LAB_REPORT_SVG_H
#define TARE_LAB_REPORT_SVG_H

#include "lab/report/report.h"

enum { SVG_WIDTH = 420, SVG_HEIGHT = 236, SVG_COLOURS = 8, SVG_POINTS = 400 };

struct svg_line {
    const char *label;        /* shown under the pointer */
    const double *x, *y;      /* [n], x ascending, y finite */
    const double *low, *high; /* [n] a band around the line; NULL: none */
    int64_t n;
    int colour;  /* number that determines colour and dashes */
    double mark; /* x of a dotted vertical line with the title "fork"; 0: none */
};

struct svg_chart {
    const char *title, *note; /* note: shown under the title, may be NULL */
    const char *x_label;
    const struct svg_line *lines;
    int64_t n;
    bool share;    /* values from 0 to 1, shown as per cent */
    bool zero;     /* the axis begins at 0 */
    bool log;      /* logarithmic y axis if all values are above 0 */
    bool may_log;  /* as log, but only if the values span more than three decades */
    bool points;   /* unconnected marks */
    bool diagonal; /* also draw the line y = x */
};

/* Prints a <figure> with the chart; nothing if no line has a point. Longer lines are reduced to
 * SVG_POINTS points: the least and the greatest value of each stretch. A line without a band and with
 * at least 60 points is drawn faint, with a moving average over it; one with at most 12 has marks. */
tare_status svg_chart_print(const struct svg_chart *c, struct str *out, struct err *e);

/* Stacked areas. */
struct svg_areas {
    const char *title, *note;
    const char *const *labels; /* [n_parts] */
    const double *const *y;    /* [n_parts][n] */
    int64_t n_parts;
    const double *x; /* [n] */
    int64_t n;
    bool share; /* values from 0 to 1, shown as per cent */
};

tare_status svg_areas_print(const struct svg_areas *a, struct str *out, struct err *e);

/* A table with cells coloured by value. */
struct svg_heat {
    const char *title, *note;
    const char *const *rows, *const *columns;
    int64_t n_rows, n_columns;
    const double *value; /* [n_rows, n_columns], NAN: empty */
    const char *row_label, *column_label;
};

tare_status svg_heat_print(const struct svg_heat *h, struct str *out, struct err *e);

/* Adds text with & < > " escaped; control characters and bytes that are not UTF-8 become U+FFFD. */
tare_status svg_text(struct str *out, const char *text, int64_t n, struct err *e);
/* Formats a number for display: 3 or 4 digits, k and M above 10,000. */
const char *svg_number(char buffer[32], double x);

#endif
