/* Reports of runs and sweeps, made from the numbers that the runs recorded: statistics over seeds,
 * tables, and one HTML file.
 *
 *   sweep_table_make   cells grouped by all keys except the seed: mean, deviation, interval,
 *                      paired difference to a baseline
 *   report_html        runs and sweeps as one self-contained HTML page
 *   report_difficulty  accuracy and length of difficulty buckets over checkpoints, as one page
 *   watch_print        the newest state of a run as lines of text
 *
 * Everything returned is allocated in the given arena. A run that is being written may be read: an
 * incomplete last line is ignored. Errors: TARE_E_NOT_FOUND, TARE_E_IO with the path,
 * TARE_E_CORRUPT with file:line. Functions may be called from any thread, each with its own
 * arena. */
#ifndef TARE_LAB_REPORT_REPORT_H
#define TARE_LAB_REPORT_REPORT_H

#include "base/arena.h"
#include "base/json.h"
#include "observe/difficulty.h"
#include "observe/run_data.h"
#include "observe/sweep_plan.h"

/* ---------------------------------------------------------------- statistics.c: pure functions */

/* Fewer values get no interval: their bootstrap is too narrow. */
enum { STATS_SEEDS = 5 };

struct moments {
    double mean, sd; /* sd with n - 1; NAN for n < 2 */
    /* bootstrap 95 % interval of the mean: percentiles of 10,000 resamplings by Philox,
     * reproducible; NAN for n < STATS_SEEDS */
    double low, high;
};
tare_status statistics_moments(const double *x, int64_t n, struct moments *out, struct err *e);
/* Returns p of the two-sided paired permutation test: the share of sign patterns of the differences
 * d [n] whose |mean| is at least as large as the observed one. Exact up to n = 16, else 100,000
 * patterns sampled by Philox, with the observed one added. n < 1: NAN. */
double statistics_permutation(const double *d, int64_t n);
/* Applies Holm's step-down correction to p [n] in place; skips NAN entries. */
tare_status statistics_holm(double *p, int64_t n, struct err *e);

/* ---------------------------------------------------------------- table.c */

struct sweep_row {      /* one combination of all keys except run.seed */
    const char **value; /* [n_axes]; NULL: not used; always NULL for the seed */
    const char *label;  /* the values that differ between rows: "bv_blend, temperature 0.1" */
    int64_t *cells;     /* [n_cells] indices into plan->cells */
    double *x;          /* [n_cells] the metric; NAN: not run yet */
    int64_t n_cells, n; /* n: cells with a value */
    struct moments m;
    int64_t baseline, pairs; /* index of the baseline's row, -1: none; seeds that both have */
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

/* metric, baseline: NULL for the plan's. out->runs [n_cells]: results of run_data_read (n_series 0
 * for cells without data), or NULL to read them here. TARE_E_INVALID if the baseline names no row,
 * or several for some row. */
tare_status sweep_table_make(const struct sweep_plan *p, const char *metric, const char *baseline, struct arena *a,
                             struct sweep_table *out, struct err *e);
tare_status sweep_table_markdown(const struct sweep_table *t, struct str *out, struct err *e);
tare_status sweep_table_csv(const struct sweep_table *t, struct str *out, struct err *e);
/* Prints a tabular with the rules of booktabs, for a paper. */
tare_status sweep_table_latex(const struct sweep_table *t, struct str *out, struct err *e);

enum { SWEEP_CELLS = 9, SWEEP_CELL = 80 };
/* Fills the cells of a row after its label and returns their number: seeds, mean, deviation,
 * interval; with a baseline also difference, interval, pairs, p, p (Holm). "-": no value. */
int sweep_table_cells(const struct sweep_table *t, int64_t i, char cells[SWEEP_CELLS][SWEEP_CELL]);
/* Adds one line that explains the columns. */
tare_status sweep_table_note(const struct sweep_table *t, const char *before, struct str *out, struct err *e);

/* ---------------------------------------------------------------- difficulty.c */

/* Prints one self-contained page: for each subset accuracy and mean length (log scale) over the
 * steps, a colour for each bucket, a dash pattern for each run, and the numbers as a table. points
 * [n]: grouped by run, subset and bucket, with ascending steps. */
tare_status report_difficulty(const char *title, const struct difficulty_point *points, int64_t n, struct str *out, struct err *e);

/* ---------------------------------------------------------------- page.c, watch.c */

/* Prints the page of runs and sweeps; paths are their folders. */
tare_status report_html(const char *const *paths, int64_t n, struct str *out, struct err *e);
/* export.c: writes every chart of that page as dir/TITLE.svg with its colours and a key, and the
 * tables of the sweeps as dir/NAME.tex (TARE_E_INVALID if the paths contain no sweep). Creates the
 * folder. */
tare_status report_charts(const char *const *paths, int64_t n, const char *dir, struct err *e);
/* As report_charts, for the charts of any page (svg.h). */
tare_status report_figures(const char *page, const char *dir, struct err *e);
tare_status report_latex(const char *const *paths, int64_t n, const char *dir, struct err *e);
/* Prints the newest state of a run in at most `rows` lines of at most `columns` characters.
 * unicode: braille lines, else ASCII. */
tare_status watch_print(const char *dir, int columns, int rows, bool unicode, struct str *out, struct err *e);

#endif
