/* A sweep's table and its heat maps. */
#include "lab/report/page.h"

#include <math.h>
#include <string.h>

enum { HEAT_MAPS = 6 };

static const char *const COLUMNS[SWEEP_CELLS] = {"seeds", "mean", "s.d.",    "95 % interval", "difference", "its 95 % interval",
                                                 "pairs", "p",    "p (Holm)"};

/* Each cell carries the name of its column, for screens too narrow for a table (style.c,
 * .stack). */
static tare_status add_row(const struct sweep_table *t, int64_t i, bool best, struct str *out, struct err *e)
{
    char cells[SWEEP_CELLS][SWEEP_CELL];
    const int n = sweep_table_cells(t, i, cells);
    TRY(str_addf(out, e, "<tr%s><td>", best ? " class=\"best\"" : ""));
    TRY(svg_text(out, t->rows[i].label, -1, e));
    TRY(str_add(out, "</td>", -1, e));
    for (int k = 0; k < n; k++)
        TRY(str_addf(out, e, "<td data-h=\"%s\"%s>%s</td>", COLUMNS[k], strpbrk(cells[k], "0123456789") ? "" : " class=\"none\"",
                     cells[k]));
    return str_add(out, "</tr>\n", -1, e);
}

static tare_status add_table(const struct sweep_table *t, struct str *out, struct err *e)
{
    int64_t best = -1;
    for (int64_t i = 0; i < t->n_rows; i++)
        if (isfinite(t->rows[i].m.mean) && (best < 0 || t->rows[i].m.mean > t->rows[best].m.mean)) best = i;
    if (best >= 0 && t->rows[best].n < STATS_SEEDS) best = -1; /* too few seeds to mark a winner */
    TRY(str_add(out, "<div class=\"scroll\"><table class=\"stack\"><tr><th>variant</th>", -1, e));
    for (int k = 0; k < (t->baseline[0] ? SWEEP_CELLS : 4); k++) TRY(str_addf(out, e, "<th>%s</th>", COLUMNS[k]));
    TRY(str_add(out, "</tr>\n", -1, e));
    for (int64_t i = 0; i < t->n_rows; i++) TRY(add_row(t, i, i == best, out, e));
    TRY(str_add(out, "</table></div><p class=\"dim\">", -1, e));
    TRY(svg_text(out, t->metric, -1, e));
    TRY(str_add(out, ". Intervals: bootstrap over seeds, no interval below 5 seeds. ", -1, e));
    if (t->baseline[0]) {
        TRY(str_add(out, "Difference to ", -1, e));
        TRY(svg_text(out, t->baseline, -1, e));
        TRY(str_add(out, ", paired by seed; p: two-sided sign-flip permutation test; Holm over the rows. ", -1, e));
    }
    return str_add(out, "Bold: the highest mean of at least 5 seeds, which alone proves nothing.</p>\n", -1, e);
}

/* Return the mean over all rows with this pair of values, averaged over the other axes. */
static double mean_at(const struct sweep_table *t, int64_t a, const char *x, int64_t b, const char *y)
{
    double sum = 0, n = 0;
    for (int64_t i = 0; i < t->n_rows; i++) {
        const struct sweep_row *r = &t->rows[i];
        if (!r->value[a] || !r->value[b] || strcmp(r->value[a], x) || strcmp(r->value[b], y) || !isfinite(r->m.mean)) continue;
        sum += r->m.mean;
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

static const char *last_word(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

static tare_status add_heat(struct page *p, const struct sweep_table *t, int64_t a, int64_t b, struct str *out, struct err *e)
{
    const struct sweep_axis *x = &t->plan->axes[a], *y = &t->plan->axes[b];
    double *value;
    int64_t rows = 0;
    TRY(arena_new(&p->arena, &value, x->n * y->n + 1, e));
    for (int64_t i = 0; i < x->n; i++) {
        int64_t there = 0;
        for (int64_t k = 0; k < y->n; k++) {
            value[i * y->n + k] = mean_at(t, a, x->values[i], b, y->values[k]);
            there += isfinite(value[i * y->n + k]);
        }
        rows += there > 1;
    }
    if (rows < 2) return TARE_OK; /* paired lists, or an axis that only some plugins use */
    return svg_heat_print(&(struct svg_heat){.title = t->metric,
                                             .note = "mean over seeds and all other axes",
                                             .rows = x->values,
                                             .columns = y->values,
                                             .n_rows = x->n,
                                             .n_columns = y->n,
                                             .value = value,
                                             .row_label = last_word(x->key),
                                             .column_label = last_word(y->key)},
                          out, e);
}

tare_status sweep_section(struct page *p, const struct sweep_table *t, struct str *out, struct err *e)
{
    const struct sweep_plan *plan = t->plan;
    int64_t axes[64], n = 0, maps = 0;
    TRY(str_add(out, "<h2>Sweep ", -1, e));
    TRY(svg_text(out, plan->name, -1, e));
    TRY(str_addf(out, e, " <small>%lld cells</small></h2>\n", (long long)plan->n_cells));
    TRY(add_table(t, out, e));
    for (int64_t i = 0; i < plan->n_axes && n < 64; i++)
        if (plan->axes[i].n > 1 && strcmp(plan->axes[i].key, "run.seed")) axes[n++] = i;
    if (n < 2) return TARE_OK;
    TRY(str_add(out, "<div class=\"charts\">", -1, e));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n && maps < HEAT_MAPS; k++) {
            const int64_t before = out->size;
            TRY(add_heat(p, t, axes[i], axes[k], out, e));
            maps += out->size > before;
        }
    return str_add(out, "</div>\n", -1, e);
}
