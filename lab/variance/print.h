/* Print the results as tables, JSON lines and CSV. */
#ifndef TARE_LAB_VARIANCE_PRINT_H
#define TARE_LAB_VARIANCE_PRINT_H

#include "base/json.h"
#include "lab/variance/draw.h"
#include "lab/variance/measure.h"

struct report_of { /* one checkpoint */
    const struct checkpoint_at *at;
    const struct variance_options *options;
    const struct variance_pool *pool;
    const struct methods *methods;
    const struct result *result;
    int64_t n, batch; /* number of results; M */
    const char *reference;
};

tare_status print_need(const struct variance_need *n, const struct variance_options *o, const char *from, struct str *out,
                       struct err *e);
/* Prints Markdown: a table for each group size. */
tare_status print_table(const struct report_of *r, struct str *out, struct err *e);
/* Prints a line for the checkpoint, then one for each result. */
tare_status print_lines(const struct report_of *r, struct str *out, struct err *e);
/* Appends a line for each result; if the text is empty, names of the columns first. */
tare_status print_csv(const struct report_of *r, struct str *out, struct err *e);
/* figures.c: writes dir/NAME.svg: charts of each measure over G, and for several checkpoints over
 * the steps at the largest G. */
tare_status variance_write_figures(const struct report_of *r, int64_t n, const char *dir, struct err *e);

#endif
