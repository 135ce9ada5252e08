/* The table of a sweep: one row for each combination of all keys except the seed. Differences to a
 * baseline are paired by seed. */
#include "base/fs.h"
#include "lab/report/page.h"
#include "observe/written.h"

#include <math.h>
#include <string.h>

enum { CONSTRAINTS = 16 };

struct baseline { /* conditions axis = value; all must hold */
    int64_t axis[CONSTRAINTS];
    const char *value[CONSTRAINTS];
    int n;
};

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* ---------------------------------------------------------------- rows */

static bool same_row(const struct sweep_plan *p, int64_t seed, const char **a, const char **b)
{
    for (int64_t i = 0; i < p->n_axes; i++)
        if (i != seed && !same_text(a[i], b[i])) return false;
    return true;
}

static tare_status new_row(struct sweep_table *t, int64_t seed, const struct sweep_cell *c, struct arena *a, struct err *e)
{
    const struct sweep_plan *p = t->plan;
    struct sweep_row *r = &t->rows[t->n_rows++];
    r->baseline = -1;
    TRY(arena_new(a, &r->value, p->n_axes + 1, e));
    for (int64_t i = 0; i < p->n_axes; i++) r->value[i] = i == seed ? NULL : c->value[i];
    TRY(arena_new(a, &r->cells, p->n_cells, e));
    return arena_new(a, &r->x, p->n_cells, e);
}

static tare_status make_rows(struct sweep_table *t, int64_t seed, struct arena *a, struct err *e)
{
    const struct sweep_plan *p = t->plan;
    TRY(arena_new(a, &t->rows, p->n_cells + 1, e));
    for (int64_t c = 0; c < p->n_cells; c++) {
        int64_t i = 0;
        while (i < t->n_rows && !same_row(p, seed, t->rows[i].value, p->cells[c].value)) i++;
        if (i == t->n_rows) TRY(new_row(t, seed, &p->cells[c], a, e));
        struct sweep_row *r = &t->rows[i];
        double x = NAN;
        if (t->runs[c].n_series) TRY(run_data_value(&t->runs[c], t->metric, &x, e));
        r->x[r->n_cells] = x;
        r->cells[r->n_cells++] = c;
        r->n += !isnan(x);
    }
    return TARE_OK;
}

/* Return the shortest suffix of a key that no other axis has. */
static const char *short_key(const struct sweep_plan *p, int64_t axis)
{
    const char *key = p->axes[axis].key, *at = strrchr(key, '.');
    while (at) {
        bool unique = true;
        for (int64_t i = 0; unique && i < p->n_axes; i++) {
            const size_t n = strlen(p->axes[i].key), m = strlen(at);
            unique = i == axis || n < m || strcmp(p->axes[i].key + n - m, at);
        }
        if (unique) return at + 1;
        for (at = at == key ? NULL : at - 1; at && at > key && *at != '.';) at--;
        if (at && *at != '.') return key;
    }
    return key;
}

static bool axis_varies(const struct sweep_table *t, int64_t axis)
{
    const char *first = NULL;
    for (int64_t i = 0; i < t->n_rows; i++) {
        const char *v = t->rows[i].value[axis];
        if (!v) continue;
        if (first && strcmp(first, v)) return true;
        first = v;
    }
    return false;
}

/* Return the file name of a plugin's path: mine.so. */
static const char *file_name(const char *plugin)
{
    const char *slash = strstr(plugin, ".so") ? strrchr(plugin, '/') : NULL;
    return slash ? slash + 1 : plugin;
}

static tare_status label_row(const struct sweep_table *t, struct sweep_row *r, struct arena *a, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    for (int64_t i = 0; i < t->plan->n_axes; i++) {
        const char *key = t->plan->axes[i].key;
        const bool plugin = str_ends_with(key, ".plugin");
        if (!r->value[i] || !axis_varies(t, i)) continue;
        TRY(plugin ? str_addf(&text, e, "%s%s", text.size ? ", " : "", file_name(r->value[i]))
                   : str_addf(&text, e, "%s%s %s", text.size ? ", " : "", short_key(t->plan, i), r->value[i]));
    }
    return arena_strdup(a, text.size ? text.data : t->plan->name, -1, (char **)(uintptr_t)&r->label, e);
}

/* ---------------------------------------------------------------- the baseline */

static tare_status parse_baseline(const struct sweep_table *t, struct baseline *b, struct arena *a, struct err *e)
{
    char *text;
    TRY(arena_strdup(a, t->baseline, -1, &text, e));
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
        part += strspn(part, " ");
        part[strcspn(part, " ")] = 0;
        char *equals = strchr(part, '=');
        if (!equals || b->n == CONSTRAINTS)
            FAIL(e, TARE_E_INVALID, "baseline '%s': expected key=value (at most %d, separated by commas)", t->baseline,
                 CONSTRAINTS);
        *equals = 0;
        b->value[b->n] = equals + 1;
        b->axis[b->n] = sweep_plan_axis(t->plan, part);
        if (b->axis[b->n] < 0)
            FAIL(e, TARE_E_INVALID, "baseline '%s': the sweep has no axis %s; use a key of [sweep]", t->baseline, part);
        b->n++;
    }
    return TARE_OK;
}

static bool has_values(const struct sweep_row *r, const struct baseline *b)
{
    for (int i = 0; i < b->n; i++)
        if (!same_text(r->value[b->axis[i]], b->value[i])) return false;
    return b->n > 0;
}

/* Return true if both rows agree on every axis that both use, except the axes that the baseline
 * names. */
static bool is_comparable(const struct sweep_plan *p, const struct baseline *b, const struct sweep_row *x,
                          const struct sweep_row *y)
{
    for (int64_t i = 0; i < p->n_axes; i++) {
        bool named = false;
        for (int k = 0; k < b->n; k++) named |= b->axis[k] == i;
        if (!named && x->value[i] && y->value[i] && strcmp(x->value[i], y->value[i])) return false;
    }
    return true;
}

static tare_status compare_to_base(struct sweep_table *t, int64_t seed, struct sweep_row *r, const struct sweep_row *base,
                                   struct err *e)
{
    OWNED(mem_free_at) double *d = NULL;
    r->p = NAN;
    TRY(mem_new((r->n_cells + 1) * (int64_t)sizeof *d, (void **)&d, e));
    for (int64_t i = 0; i < r->n_cells; i++)
        for (int64_t j = 0; j < base->n_cells; j++) {
            const struct sweep_cell *x = &t->plan->cells[r->cells[i]], *y = &t->plan->cells[base->cells[j]];
            if ((seed >= 0 && !same_text(x->value[seed], y->value[seed])) || isnan(r->x[i]) || isnan(base->x[j])) continue;
            d[r->pairs++] = r->x[i] - base->x[j];
            break;
        }
    TRY(statistics_moments(d, r->pairs, &r->diff, e));
    if (r->pairs > 1) r->p = statistics_permutation(d, r->pairs);
    return TARE_OK;
}

static tare_status make_differences(struct sweep_table *t, int64_t seed, struct arena *a, struct err *e)
{
    struct baseline b = {0};
    double *p;
    int64_t found = 0;
    if (!t->baseline[0]) return TARE_OK;
    TRY(parse_baseline(t, &b, a, e));
    TRY(arena_new(a, &p, t->n_rows, e));
    for (int64_t i = 0; i < t->n_rows; i++) found += has_values(&t->rows[i], &b);
    if (!found) FAIL(e, TARE_E_INVALID, "baseline '%s': no row of the sweep has these values", t->baseline);
    for (int64_t i = 0; i < t->n_rows; i++) {
        struct sweep_row *r = &t->rows[i];
        int64_t candidates = 0;
        p[i] = r->p = r->p_holm = NAN;
        for (int64_t j = 0; j < t->n_rows; j++) {
            if (!has_values(&t->rows[j], &b) || !is_comparable(t->plan, &b, r, &t->rows[j])) continue;
            r->baseline = j;
            candidates++;
        }
        if (has_values(r, &b)) {
            r->baseline = i;
            continue;
        }
        if (candidates != 1) r->baseline = -1; /* none, or ambiguous */
        if (r->baseline >= 0) TRY(compare_to_base(t, seed, r, &t->rows[r->baseline], e));
        p[i] = r->p;
    }
    TRY(statistics_holm(p, t->n_rows, e));
    for (int64_t i = 0; i < t->n_rows; i++) t->rows[i].p_holm = p[i];
    return TARE_OK;
}

/* Fail if no run recorded the metric: its name is probably misspelt. */
static tare_status check_metric(const struct sweep_table *t, struct err *e)
{
    const struct run_data *first = NULL;
    OWNED(str_free) struct str names = {0};
    char name[300];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(t->metric, ":"), t->metric);
    for (int64_t c = 0; c < t->plan->n_cells; c++) {
        if (!t->runs[c].n_series) continue;
        if (run_data_find(&t->runs[c], name)) return TARE_OK;
        if (!first) first = &t->runs[c];
    }
    if (!first) return TARE_OK;
    for (int64_t i = 0; i < first->n_series; i++) TRY(str_addf(&names, e, "%s%s", i ? ", " : "", first->series[i].name));
    FAIL(e, TARE_E_CONFIG, "unknown metric %s; %s has: %s", t->metric, first->name, names.data);
}

static tare_status read_runs(struct sweep_table *t, struct arena *a, struct err *e)
{
    const struct sweep_plan *p = t->plan;
    TRY(arena_new(a, &t->runs, p->n_cells + 1, e));
    for (int64_t c = 0; c < p->n_cells; c++) {
        char dir[FS_PATH];
        TRY(fs_join(dir, p->dir, p->cells[c].name, e));
        if (!run_data_is_run(dir)) continue;
        TRY(run_data_read(dir, a, &t->runs[c], e));
        TRY(written_report_metrics(dir, e));
    }
    return TARE_OK;
}

tare_status sweep_table_make(const struct sweep_plan *p, const char *metric, const char *baseline, struct arena *a,
                             struct sweep_table *out, struct err *e)
{
    const int64_t seed = sweep_plan_axis(p, "run.seed");
    *out = (struct sweep_table){
        .plan = p, .metric = metric ? metric : p->metric, .baseline = baseline ? baseline : p->baseline, .runs = out->runs};
    if (!out->runs) TRY(read_runs(out, a, e));
    TRY(check_metric(out, e));
    TRY(make_rows(out, seed, a, e));
    double *x;
    TRY(arena_new(a, &x, p->n_cells + 1, e));
    for (int64_t i = 0; i < out->n_rows; i++) {
        struct sweep_row *r = &out->rows[i];
        int64_t n = 0;
        for (int64_t c = 0; c < r->n_cells; c++)
            if (!isnan(r->x[c])) x[n++] = r->x[c];
        TRY(label_row(out, r, a, e));
        TRY(statistics_moments(x, n, &r->m, e));
    }
    return make_differences(out, seed, a, e);
}

/* ---------------------------------------------------------------- printing */

static void print_number(char *cell, const char *format, double x)
{
    if (isfinite(x))
        snprintf(cell, SWEEP_CELL, format, x);
    else
        strcpy(cell, "-");
}

static void print_interval(char *cell, const char *format, double low, double high)
{
    if (!isfinite(low)) return print_number(cell, format, low);
    snprintf(cell, SWEEP_CELL, format, low);
    const size_t n = strlen(cell);
    const size_t more = (size_t)snprintf(cell + n, SWEEP_CELL - n, " to ");
    snprintf(cell + n + more, SWEEP_CELL - n - more, format, high);
}

int sweep_table_cells(const struct sweep_table *t, int64_t i, char cells[SWEEP_CELLS][SWEEP_CELL])
{
    const struct sweep_row *r = &t->rows[i];
    const bool baseline = r->baseline == i, compared = r->baseline >= 0 && !baseline;
    if (r->n == r->n_cells)
        snprintf(cells[0], SWEEP_CELL, "%lld", (long long)r->n);
    else
        snprintf(cells[0], SWEEP_CELL, "%lld of %lld", (long long)r->n, (long long)r->n_cells);
    print_number(cells[1], "%.4f", r->m.mean);
    print_number(cells[2], "%.4f", r->m.sd);
    print_interval(cells[3], "%.4f", r->m.low, r->m.high);
    if (!t->baseline[0]) return 4;
    for (int k = 4; k < SWEEP_CELLS; k++) strcpy(cells[k], baseline ? "" : "-");
    if (baseline) strcpy(cells[4], "baseline");
    if (!compared) return SWEEP_CELLS;
    print_number(cells[4], "%+.4f", r->diff.mean);
    print_interval(cells[5], "%+.4f", r->diff.low, r->diff.high);
    snprintf(cells[6], SWEEP_CELL, "%lld", (long long)r->pairs);
    print_number(cells[7], "%.3g", r->p);
    print_number(cells[8], "%.3g", r->p_holm);
    return SWEEP_CELLS;
}

tare_status sweep_table_note(const struct sweep_table *t, const char *before, struct str *out, struct err *e)
{
    TRY(str_addf(
        out, e,
        "%sIntervals: bootstrap over seeds (10,000 resamplings, percentiles 2.5 and 97.5), no interval below %d seeds. s.d.: over seeds, n - 1.",
        before, STATS_SEEDS));
    if (t->baseline[0])
        TRY(str_addf(
            out, e,
            " Difference: to %s, paired by seed; p: two-sided, signs of the paired differences flipped (all patterns up to 16 pairs, else 100,000 random ones); Holm over the rows of this table. With n pairs p cannot be below 2^(1-n).",
            t->baseline));
    return str_add(out, "\n", 1, e);
}

tare_status sweep_table_markdown(const struct sweep_table *t, struct str *out, struct err *e)
{
    const bool compared = t->baseline[0] != 0;
    TRY(str_addf(out, e, "### %s: %s\n\n| variant | seeds | mean | s.d. | 95 %% interval |", t->plan->name, t->metric));
    if (compared) TRY(str_add(out, " difference | 95 % interval | pairs | p | p (Holm) |", -1, e));
    TRY(str_addf(out, e, "\n|---|---:|---:|---:|---:|%s\n", compared ? "---:|---:|---:|---:|---:|" : ""));
    for (int64_t i = 0; i < t->n_rows; i++) {
        char cells[SWEEP_CELLS][SWEEP_CELL];
        const int n = sweep_table_cells(t, i, cells);
        TRY(str_add(out, "| ", -1, e));
        for (const char *c = t->rows[i].label; *c; c++) TRY(str_addf(out, e, "%s%c", *c == '|' ? "\\" : "", *c));
        TRY(str_add(out, " |", -1, e));
        for (int k = 0; k < n; k++) TRY(str_addf(out, e, "%s%s |", *cells[k] ? " " : "", cells[k]));
        TRY(str_add(out, "\n", 1, e));
    }
    return sweep_table_note(t, "\n", out, e);
}

static tare_status csv_text(struct str *out, const char *text, struct err *e)
{
    if (!text) return TARE_OK;
    if (!strpbrk(text, ",\"\n")) return str_add(out, text, -1, e);
    TRY(str_add(out, "\"", 1, e));
    for (; *text; text++) TRY(str_addf(out, e, "%s%c", *text == '"' ? "\"" : "", *text));
    return str_add(out, "\"", 1, e);
}

static tare_status csv_number(struct str *out, double x, struct err *e)
{
    char text[40];
    return isfinite(x) ? str_addf(out, e, ",%s", str_from_double(text, x)) : str_add(out, ",", 1, e);
}

tare_status sweep_table_csv(const struct sweep_table *t, struct str *out, struct err *e)
{
    const int64_t seed = sweep_plan_axis(t->plan, "run.seed");
    TRY(str_add(out, "variant", -1, e));
    for (int64_t i = 0; i < t->plan->n_axes; i++)
        if (i != seed) TRY(str_addf(out, e, ",%s", t->plan->axes[i].key));
    TRY(str_add(out, ",metric,seeds,planned,mean,sd,low,high,baseline,pairs,difference,difference_low,difference_high,p,p_holm\n",
                -1, e));
    for (int64_t k = 0; k < t->n_rows; k++) {
        const struct sweep_row *r = &t->rows[k];
        const bool differs = r->baseline >= 0 && r->baseline != k;
        TRY(csv_text(out, r->label, e));
        for (int64_t i = 0; i < t->plan->n_axes; i++) {
            if (i == seed) continue;
            TRY(str_add(out, ",", 1, e));
            TRY(csv_text(out, r->value[i], e));
        }
        TRY(str_addf(out, e, ",%s,%lld,%lld", t->metric, (long long)r->n, (long long)r->n_cells));
        const double own[] = {r->m.mean, r->m.sd, r->m.low, r->m.high};
        for (int i = 0; i < 4; i++) TRY(csv_number(out, own[i], e));
        TRY(str_add(out, ",", 1, e));
        if (r->baseline >= 0) TRY(csv_text(out, t->rows[r->baseline].label, e));
        TRY(differs ? str_addf(out, e, ",%lld", (long long)r->pairs) : str_add(out, ",", 1, e));
        const double other[] = {r->diff.mean, r->diff.low, r->diff.high, r->p, r->p_holm};
        for (int i = 0; i < 5; i++) TRY(csv_number(out, differs ? other[i] : NAN, e));
        TRY(str_add(out, "\n", 1, e));
    }
    return TARE_OK;
}
