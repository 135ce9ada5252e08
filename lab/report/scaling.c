/* The sigmoid of each training curve: its asymptote and its efficiency apart (aggregate.h). */
#include "lab/report/aggregate.h"
#include "lab/report/page.h"

#include <math.h>

enum { LEAST = 8 }; /* points that a curve has to have */

/* The held-out reward where there are enough evaluations, else the training reward. R_0: the value before the first step, else the mean of the first tenth. */
static tare_status find_curve(struct page *p, const struct curves *g, struct svg_line *out, const char **metric, double *start,
                              struct err *e)
{
    *metric = "eval/reward";
    TRY(curves_line(p, g, *metric, out, e));
    if (out->n < LEAST) {
        *metric = "reward/mean";
        TRY(curves_line(p, g, *metric, out, e));
    }
    if (out->n < LEAST) return TARE_OK;
    int64_t n = 1;
    if (out->x[0] > 0) n = out->n / 10 > 1 ? out->n / 10 : 1;
    *start = 0;
    for (int64_t i = 0; i < n; i++) *start += out->y[i] / (double)n;
    if (out->x[0] <= 0) {
        out->x++;
        out->y++;
        out->n--;
    }
    return TARE_OK;
}

static tare_status add_row(const struct curves *g, const struct svg_line *l, const char *metric, double start, struct str *out,
                           struct err *e)
{
    double least = start, most = start;
    struct sigmoid s;
    for (int64_t i = 0; i < l->n; i++) {
        least = fmin(least, l->y[i]);
        most = fmax(most, l->y[i]);
    }
    const double range[2] = {least, most + 2 * (most - least)};
    TRY(str_add(out, "<tr><td>", -1, e));
    TRY(html_text(out, g->label, -1, e));
    TRY(str_addf(out, e, "</td><td>%s</td><td>%lld</td><td>%.4f</td>", metric, (long long)l->n, start));
    if (!aggregate_sigmoid(l->x, l->y, l->n, start, range, &s))
        return str_add(
            out, "<td class=\"none\">-</td><td class=\"none\">-</td><td class=\"none\">-</td><td class=\"none\">-</td></tr>\n", -1,
            e);
    if (s.middle > l->x[l->n - 1])
        TRY(str_add(out, "<td class=\"none\">not in sight</td>", -1, e));
    else
        TRY(str_addf(out, e, "<td>%.4f</td>", s.asymptote));
    return str_addf(out, e, "<td>%.2f</td><td>%.0f</td><td>%.3f</td></tr>\n", s.efficiency, s.middle, s.explained);
}

tare_status scaling_section(struct page *p, struct str *out, struct err *e)
{
    OWNED(str_free) struct str rows = {0};
    for (int64_t g = 0; g < p->n_groups; g++) {
        struct svg_line line;
        const char *metric;
        double start = 0;
        TRY(find_curve(p, &p->groups[g], &line, &metric, &start, e));
        if (line.n >= LEAST - 1) TRY(add_row(&p->groups[g], &line, metric, start, &rows, e));
    }
    if (rows.size)
        TRY(str_add(
            out,
            "<h2>Asymptote and efficiency</h2>\n<div class=\"scroll\"><table><tr><th>variant</th><th>curve</th><th>points</th><th>start R<sub>0</sub></th><th>asymptote A</th><th>efficiency B</th><th>half of the gain at step</th><th>R\xC2\xB2</th></tr>\n",
            -1, e));
    if (rows.size) TRY(str_add(out, rows.data, rows.size, e));
    if (rows.size)
        TRY(str_add(
            out,
            "</table></div><p class=\"dim\">R = R<sub>0</sub> + (A - R<sub>0</sub>) / (1 + (C<sub>mid</sub> / step)<sup>B</sup>), least squares on the mean over seeds (ScaleRL, arXiv 2510.13786). An asymptote whose half has not been reached is not in sight.</p>\n",
            -1, e));
    return TARE_OK;
}
