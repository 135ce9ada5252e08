/* Print a study's plan as a table. */
#include "lab/report/planning.h"

#include <math.h>

static bool is_compared(const struct sweep_table *t, int64_t i)
{
    return t->rows[i].baseline >= 0 && t->rows[i].baseline != i;
}

static int64_t count_compared(const struct sweep_table *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_rows; i++) n += is_compared(t, i);
    return n;
}

/* Return half the width of a row's anytime interval. */
static double half_width(const struct sweep_table *t, int64_t i, double alpha)
{
    const struct sweep_row *r = &t->rows[i];
    return r->pairs < 2 ? (double)INFINITY : planning_anytime(r->diff.sd, r->pairs, alpha / (double)count_compared(t));
}

bool planning_decided(const struct sweep_table *t, double alpha)
{
    for (int64_t i = 0; i < t->n_rows; i++)
        if (is_compared(t, i) && !(fabs(t->rows[i].diff.mean) > half_width(t, i, alpha))) return false;
    return count_compared(t) > 0;
}

static tare_status add_seeds(int64_t n, struct str *out, struct err *e)
{
    return n > PLANNING_MOST ? str_addf(out, e, " more than %d |", PLANNING_MOST) : str_addf(out, e, " %lld |", (long long)n);
}

static tare_status add_row(const struct sweep_table *t, int64_t i, const struct study_plan *p, struct str *out, struct err *e)
{
    const struct sweep_row *r = &t->rows[i];
    const double half = half_width(t, i, p->alpha);
    TRY(str_add(out, "| ", 2, e));
    for (const char *c = r->label; *c; c++) TRY(str_addf(out, e, "%s%c", *c == '|' ? "\\" : "", *c));
    TRY(str_addf(out, e, " | %lld |", (long long)r->pairs));
    if (r->pairs < 2) return str_addf(out, e, " - | - | - | open |%s\n", isnan(p->difference) ? "" : " - | - |");
    TRY(str_addf(out, e, " %+.4f | %.4f |", r->diff.mean, r->diff.sd));
    if (isfinite(half))
        TRY(str_addf(out, e, " %+.4f to %+.4f |", r->diff.mean - half, r->diff.mean + half));
    else
        TRY(str_add(out, " no bound yet |", -1, e));
    TRY(str_addf(out, e, " %s |",
                 r->diff.mean > half    ? "above the baseline"
                 : r->diff.mean < -half ? "below the baseline"
                                        : "open"));
    if (!isnan(p->difference)) {
        TRY(add_seeds(planning_seeds(p->difference, r->diff.sd, p->alpha, p->power), out, e));
        TRY(add_seeds(planning_seeds(p->difference, planning_deviation_bound(r->diff.sd, r->pairs), p->alpha, p->power), out, e));
    }
    return str_add(out, "\n", 1, e);
}

static tare_status add_note(const struct sweep_table *t, const struct study_plan *p, struct str *out, struct err *e)
{
    TRY(str_addf(
        out, e,
        "\nDifferences to %s, paired by seed. The intervals are valid at every look and for all rows together with probability %g (arXiv 2310.03722, normal differences): the study may stop as soon as one excludes 0.\n",
        t->baseline, 1 - p->alpha));
    if (isnan(p->difference)) return TARE_OK;
    return str_addf(
        out, e,
        "Seeds: the number with which the two-sided paired t-test at %g detects a mean difference of %g with probability %g, if the differences keep their deviation so far. The last column assumes its 80 %% upper bound, because few seeds estimate it poorly. The table's permutation test needs at least 6 pairs for p < 0.05.\n",
        p->alpha, p->difference, p->power);
}

tare_status planning_markdown(const struct sweep_table *t, const struct study_plan *p, struct str *out, struct err *e)
{
    const bool seeds = !isnan(p->difference);
    if (!t->baseline[0]) FAIL(e, TARE_E_CONFIG, "--plan: missing baseline; name one: --baseline key=value, or baseline in [sweep]");
    if (!count_compared(t)) FAIL(e, TARE_E_CONFIG, "--plan: no other row is comparable with the baseline %s", t->baseline);
    TRY(str_addf(out, e, "### %s: %s\n\n| variant | pairs | difference | s.d. | interval at any time | so far |", t->plan->name,
                 t->metric));
    if (seeds) TRY(str_addf(out, e, " seeds for %g | at most |", p->difference));
    TRY(str_addf(out, e, "\n|---|---:|---:|---:|---:|---|%s\n", seeds ? "---:|---:|" : ""));
    for (int64_t i = 0; i < t->n_rows; i++)
        if (is_compared(t, i)) TRY(add_row(t, i, p, out, e));
    return add_note(t, p, out, e);
}
