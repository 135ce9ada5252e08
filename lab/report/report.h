/* Reports of runs and sweeps: statistics over seeds, tables, and one HTML file, from the numbers that the runs recorded.
 *
 *   sweep_table_make   cells grouped by everything but the seed: mean, deviation, interval, paired difference to a baseline
 *   report_html        runs and sweeps as one self-contained HTML page
 *   report_difficulty  accuracy and length of difficulty buckets over checkpoints, as one page
 *   watch_print        the newest state of a run as lines of text
 *
 * Everything returned lives in the arena that is given. A run that is being written may be read: a half-written last line is left out.
 * Errors: TARE_E_NOT_FOUND, TARE_E_IO with the path, TARE_E_CORRUPT with file:line. Functions may be called from any thread, each with its
 * own arena. */
#ifndef TARE_LAB_REPORT_REPORT_H
#define TARE_LAB_REPORT_REPORT_H

#include "base/arena.h"
#include "base/json.h"
#include "observe/difficulty.h"
#include "observe/run_data.h"
#include "observe/sweep_plan.h"

/* ---------------------------------------------------------------- statistics.c: pure functions */

enum { STATS_SEEDS = 5 }; /* fewer values have no interval: a bootstrap of them is too narrow */

struct moments {
    double mean, sd; /* sd with n - 1; NAN for n < 2 */
    double low,
        high; /* bootstrap 95 % interval of the mean: percentiles of 10,000 resamplings by Philox, the same every time; NAN for n < 2 */
};
tare_status stats_moments(const double *x, int64_t n, struct moments *out, struct err *e);
/* Two-sided paired permutation test (signs of the differences d [n] flipped): the share of sign patterns with |mean| at least as large.
 * Exact up to n = 16, else 100,000 patterns drawn by Philox, the observed one counted with them. n < 1: NAN. */
double stats_permutation(const double *d, int64_t n);
/* Holm's step-down correction of p [n] in place; NAN entries are passed over. */
tare_status stats_holm(double *p, int64_t n, struct err *e);

/* ---------------------------------------------------------------- table.c */

struct sweep_row {      /* one combination of everything but run.seed */
    const char **value; /* [n_axes]; NULL: not used; the seed's is NULL */
    const char *label;  /* what differs between rows: "bv_blend, temperature 0.1" */
    int64_t *cells;     /* [n_cells] indices into plan->cells */
    double *x;          /* [n_cells] the metric; NAN: not run yet */
    int64_t n_cells, n; /* n: cells with a value */
    struct moments m;
    int64_t baseline, pairs; /* row it is compared with, -1: none; seeds that both have */
    struct moments diff;
    double p, p_holm;
};

struct sweep_table {
    const struct sweep_plan *plan;
    const char *metric, *baseline;
    struct sweep_row *rows;
    int64_t n_rows;
    struct run_data *runs; /* [n_cells of the plan] */
};

/* metric, baseline NULL: the plan's. out->runs: [n_cells] what run_data_read made (n_series 0 for cells without data), or NULL: read here.
 * TARE_E_INVALID: a baseline that names no row, or for some row several. */
tare_status sweep_table_make(const struct sweep_plan *p, const char *metric, const char *baseline, struct arena *a,
                             struct sweep_table *out, struct err *e);
tare_status sweep_table_markdown(const struct sweep_table *t, struct str *out, struct err *e);
tare_status sweep_table_csv(const struct sweep_table *t, struct str *out, struct err *e);
/* A tabular with the rules of booktabs, for a paper. */
tare_status sweep_table_latex(const struct sweep_table *t, struct str *out, struct err *e);

/* ---------------------------------------------------------------- difficulty.c */

/* One self-contained page: for each subset accuracy and mean length (equal ratios on its axis) over the steps, a colour for each bucket, a dash pattern
 * for each run, and the numbers as a table. points [n]: those of a run, subset and bucket stand together, steps growing. */
tare_status report_difficulty(const char *title, const struct difficulty_point *points, int64_t n, struct str *out, struct err *e);

/* ---------------------------------------------------------------- page.c, watch.c */

/* paths: folders of runs and of sweeps. */
tare_status report_html(const char *const *paths, int64_t n, struct str *out, struct err *e);
/* export.c: every chart of that page as dir/TITLE.svg, with its colours and a key, for papers and slides; the tables of the sweeps as
 * dir/NAME.tex (TARE_E_INVALID when there is no sweep among the paths). The folder is made. */
tare_status report_charts(const char *const *paths, int64_t n, const char *dir, struct err *e);
/* report_charts for the charts of any page (svg.h). */
tare_status report_figures(const char *page, const char *dir, struct err *e);
tare_status report_latex(const char *const *paths, int64_t n, const char *dir, struct err *e);
/* The newest state of a run in at most `rows` lines of at most `columns` characters. unicode: braille lines, else ASCII. */
tare_status watch_print(const char *dir, int columns, int rows, bool unicode, struct str *out, struct err *e);

#endif
