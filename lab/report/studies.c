/* Several sweeps side by side: the same variants in each, and their results together. */
#include "lab/report/aggregate.h"
#include "lab/report/page.h"

#include <math.h>
#include <string.h>

enum { VARIANTS = GROUPS_MOST, PROFILE = 101 };

struct together {
    const char *label[VARIANTS];
    const struct sweep_row *row[VARIANTS][PLANS_MOST]; /* NULL: the study lacks this variant */
    int64_t n;
};

/* Return a row's label. The only variant of a study would have the study's name, so it is called
 * "all runs". */
static const char *label_of(const struct sweep_table *t, int64_t i)
{
    return t->n_rows == 1 ? "all runs" : t->rows[i].label;
}

static void collect_variants(const struct page *p, struct together *s)
{
    for (int64_t k = 0; k < p->n_plans; k++)
        for (int64_t i = 0; i < p->tables[k].n_rows; i++) {
            const char *label = label_of(&p->tables[k], i);
            int64_t v = 0;
            while (v < s->n && strcmp(s->label[v], label) != 0) v++;
            if (v == VARIANTS) continue;
            if (v == s->n) s->label[s->n++] = label;
            s->row[v][k] = &p->tables[k].rows[i];
        }
}

/* ---------------------------------------------------------------- the table */

static tare_status add_mean_cell(const struct sweep_row *r, struct str *out, struct err *e)
{
    if (!r || !isfinite(r->m.mean)) return str_add(out, "<td class=\"none\">-</td>", -1, e);
    TRY(str_addf(out, e, "<td>%.4f", r->m.mean));
    if (isfinite(r->m.low)) TRY(str_addf(out, e, " <small>%.4f to %.4f</small>", r->m.low, r->m.high));
    return str_addf(out, e, " <small>(%lld)</small></td>", (long long)r->n);
}

static tare_status add_head(const struct page *p, struct str *out, struct err *e)
{
    TRY(str_add(out, "<div class=\"scroll\"><table><tr><th>variant</th>", -1, e));
    for (int64_t k = 0; k < p->n_plans; k++) {
        TRY(str_add(out, "<th>", -1, e));
        TRY(svg_text(out, p->plans[k].name, -1, e));
        TRY(str_add(out, "</th>", -1, e));
    }
    return str_addf(out, e, "%s</tr>\n", p->n_plans == 2 ? "<th>second less first</th>" : "");
}

static tare_status add_table(const struct page *p, const struct together *s, struct str *out, struct err *e)
{
    TRY(add_head(p, out, e));
    for (int64_t v = 0; v < s->n; v++) {
        TRY(str_add(out, "<tr><td>", -1, e));
        TRY(svg_text(out, s->label[v], -1, e));
        TRY(str_add(out, "</td>", -1, e));
        for (int64_t k = 0; k < p->n_plans; k++) TRY(add_mean_cell(s->row[v][k], out, e));
        const struct sweep_row *a = s->row[v][0], *b = s->row[v][1];
        const bool both = a && b && isfinite(a->m.mean) && isfinite(b->m.mean);
        if (p->n_plans == 2 && both) TRY(str_addf(out, e, "<td>%+.4f</td>", b->m.mean - a->m.mean));
        if (p->n_plans == 2 && !both) TRY(str_add(out, "<td class=\"none\">-</td>", -1, e));
        TRY(str_add(out, "</tr>\n", -1, e));
    }
    TRY(str_add(out, "</table></div><p class=\"dim\">", -1, e));
    for (int64_t k = 0; k < p->n_plans; k++) {
        TRY(svg_text(out, p->plans[k].name, -1, e));
        TRY(str_add(out, ": ", 2, e));
        TRY(svg_text(out, p->tables[k].metric, -1, e));
        TRY(str_add(out, ". ", 2, e));
    }
    return str_add(out, "Means over seeds, with the 95 % interval of a bootstrap and the number of seeds.</p>\n", -1, e);
}

/* ---------------------------------------------------------------- together */

/* Collect a variant's runs in all studies; *all = false if a study lacks them. */
static tare_status scores_of(struct page *p, const struct together *s, int64_t v, struct scores *out, bool *all, struct err *e)
{
    double *x;
    int64_t *begin, capacity = 0, n = 0;
    *all = true;
    for (int64_t k = 0; k < p->n_plans; k++) {
        *all = *all && s->row[v][k] && s->row[v][k]->n > 0;
        capacity += s->row[v][k] ? s->row[v][k]->n_cells : 0;
    }
    TRY(arena_new(&p->arena, &x, capacity + 1, e));
    TRY(arena_new(&p->arena, &begin, p->n_plans + 1, e));
    for (int64_t k = 0; k < p->n_plans; k++) {
        const struct sweep_row *r = s->row[v][k];
        for (int64_t c = 0; r && c < r->n_cells; c++)
            if (!isnan(r->x[c])) x[n++] = r->x[c];
        begin[k + 1] = n;
    }
    *out = (struct scores){x, begin, p->n_plans};
    return TARE_OK;
}

static tare_status add_iqm(const struct together *s, const struct scores *scores, const bool *all, struct str *out, struct err *e)
{
    TRY(str_add(out, "<div class=\"scroll\"><table><tr><th>variant</th><th>interquartile mean</th><th>95 % interval</th></tr>\n",
                -1, e));
    for (int64_t v = 0; v < s->n; v++) {
        struct interval i;
        if (!all[v]) continue;
        TRY(aggregate_iqm_interval(&scores[v], &i, e));
        TRY(str_add(out, "<tr><td>", -1, e));
        TRY(svg_text(out, s->label[v], -1, e));
        TRY(str_addf(out, e, "</td><td>%.4f</td>", i.value));
        if (isfinite(i.low))
            TRY(str_addf(out, e, "<td>%.4f to %.4f</td></tr>\n", i.low, i.high));
        else
            TRY(str_add(out, "<td class=\"none\">-</td></tr>\n", -1, e));
    }
    return str_add(
        out,
        "</table></div><p class=\"dim\">The mean of the middle half of all runs of all studies, with a bootstrap that draws seeds within each study (rliable, arXiv 2108.13264), none below 3 seeds. Scores are not rescaled.</p>\n",
        -1, e);
}

static tare_status add_profile(struct page *p, const struct together *s, const struct scores *scores, const bool *all,
                               struct str *out, struct err *e)
{
    struct svg_line lines[VARIANTS];
    double *x, least = INFINITY, most = -INFINITY;
    int64_t n = 0;
    TRY(arena_new(&p->arena, &x, PROFILE, e));
    for (int64_t v = 0; v < s->n; v++)
        for (int64_t i = 0; all[v] && i < scores[v].begin[p->n_plans]; i++) {
            least = fmin(least, scores[v].x[i]);
            most = fmax(most, scores[v].x[i]);
        }
    if (!(most > least)) return TARE_OK;
    for (int i = 0; i < PROFILE; i++) x[i] = least + (most - least) * i / (PROFILE - 1);
    for (int64_t v = 0; v < s->n; v++) {
        double *y;
        if (!all[v]) continue;
        TRY(arena_new(&p->arena, &y, PROFILE, e));
        for (int i = 0; i < PROFILE; i++) y[i] = aggregate_above(&scores[v], x[i]);
        lines[n++] = (struct svg_line){.label = s->label[v], .x = x, .y = y, .n = PROFILE, .colour = (int)v};
    }
    TRY(str_add(out, "<div class=\"charts\">", -1, e));
    TRY(svg_chart_print(&(struct svg_chart){.title = "Performance profile",
                                            .note = "share of runs above a score",
                                            .x_label = "score",
                                            .lines = lines,
                                            .n = n,
                                            .share = true,
                                            .zero = true},
                        out, e));
    return str_add(out, "</div>\n", -1, e);
}

/* Print Kendall's tau of each pair of studies over the variants that all of them have. */
static tare_status add_ranks(const struct page *p, const struct together *s, const bool *all, struct str *out, struct err *e)
{
    TRY(str_add(out, "<p class=\"dim\">Rank correlation of the variants (Kendall's tau-b of their means): ", -1, e));
    for (int64_t k = 0; k < p->n_plans; k++)
        for (int64_t j = k + 1; j < p->n_plans; j++) {
            double x[VARIANTS], y[VARIANTS];
            int64_t n = 0;
            for (int64_t v = 0; v < s->n; v++) {
                if (!all[v]) continue;
                x[n] = s->row[v][k]->m.mean;
                y[n++] = s->row[v][j]->m.mean;
            }
            const double tau = aggregate_tau(x, y, n);
            TRY(str_add(out, k || j > 1 ? "; " : "", -1, e));
            TRY(svg_text(out, p->plans[k].name, -1, e));
            TRY(str_add(out, " and ", -1, e));
            TRY(svg_text(out, p->plans[j].name, -1, e));
            if (isnan(tau))
                TRY(str_add(out, " none, all equal", -1, e));
            else
                TRY(str_addf(out, e, " %.2f", tau));
        }
    return str_add(out, ".</p>\n", -1, e);
}

tare_status studies_section(struct page *p, struct str *out, struct err *e)
{
    struct together s = {.n = 0};
    struct scores scores[VARIANTS];
    bool all[VARIANTS];
    int64_t common = 0;
    if (p->n_plans < 2) return TARE_OK;
    collect_variants(p, &s);
    for (int64_t v = 0; v < s.n; v++) {
        TRY(scores_of(p, &s, v, &scores[v], &all[v], e));
        common += all[v];
    }
    TRY(str_add(out, "<h2>Studies side by side</h2>\n", -1, e));
    TRY(add_table(p, &s, out, e));
    if (common < 2) return TARE_OK;
    TRY(str_add(out, "<h2>Studies together</h2>\n", -1, e));
    TRY(add_iqm(&s, scores, all, out, e));
    TRY(add_ranks(p, &s, all, out, e));
    return add_profile(p, &s, scores, all, out, e);
}
