#include "lab/compare/finder.h"
#include "lab/report/report.h"

#include <math.h>
#include <string.h>

enum { ROWS = 20 }; /* of the printed table */

/* ---------------------------------------------------------------- paired differences */

/* Computes a bootstrap interval of the mean from blocks of about n^(1/3) steps, because
 * neighbouring steps are correlated. */
static tare_status bootstrap_interval(const double *d, int64_t n, struct moments *out, struct err *e)
{
    const int64_t length = (int64_t)fmax(1, round(cbrt((double)n))), blocks = n / length;
    OWNED(mem_free_at) double *mean = NULL;
    TRY(mem_new((blocks + 1) * (int64_t)sizeof *mean, (void **)&mean, e));
    for (int64_t k = 0; k < blocks; k++) {
        const int64_t begin = n * k / blocks, end = n * (k + 1) / blocks;
        double sum = 0;
        for (int64_t i = begin; i < end; i++) sum += d[i];
        mean[k] = sum / (double)(end - begin);
    }
    return statistics_moments(mean, blocks, out, e);
}

static json_t *json_finite(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *compare_row_of_step(const struct records *r, int64_t step)
{
    int64_t low = 0, high = r->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (r->at[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n && r->at[low].step == step ? r->at[low].row : NULL;
}

static const json_t *value_at(const struct finder *f, int k, int64_t step)
{
    return json_object_get(compare_row_of_step(&f->records[k], step), f->o->metric);
}

/* Returns the last step that the runs have in common through a fork, or 0. A manifest names the step
 * of its fork, and nested in it that of the fork's own run. The step counts if all metrics up to it
 * are equal, so that the folders may have been moved since. */
static int64_t fork_step(const struct finder *f)
{
    const int64_t different = compare_different_step(f);
    int64_t last = 0;
    for (int k = 0; k < 2; k++) {
        for (const json_t *o = json_object_get(f->manifest[k], "origin"); o; o = json_object_get(o, "origin")) {
            const int64_t step = json_int_or(o, "step", 0);
            if (step > last && step < different) last = step;
        }
    }
    return last;
}

static tare_status take_pairs(struct finder *f, int64_t fork, json_t *rows, double *d, int64_t *n, struct err *e)
{
    for (int64_t i = 0; i < f->records[0].n; i++) {
        const int64_t step = f->records[0].at[i].step;
        const json_t *a = value_at(f, 0, step), *b = value_at(f, 1, step);
        if (fork && step <= fork) continue;
        if (step < f->o->first || step > f->o->last || !json_is_number(a) || !json_is_number(b)) continue;
        const double x = json_number_value(a), y = json_number_value(b);
        json_t *row = json_pack("[I, f, f, f]", (json_int_t)step, x, y, y - x);
        if (!row || json_array_append_new(rows, row)) FAIL(e, TARE_E_NOMEM, "no memory for the curve");
        d[(*n)++] = y - x;
    }
    return TARE_OK;
}

tare_status compare_curve(struct finder *f, struct err *e)
{
    OWNED(json_decrefp) json_t *rows = json_array();
    OWNED(mem_free_at) double *d = NULL;
    double sum = 0;
    int64_t n = 0;
    const int64_t fork = fork_step(f);
    struct moments m = {NAN, NAN, NAN, NAN};
    TRY(mem_new((f->records[0].n + 1) * (int64_t)sizeof *d, (void **)&d, e));
    TRY(take_pairs(f, fork, rows, d, &n, e));
    if (n) TRY(bootstrap_interval(d, n, &m, e));
    for (int64_t i = 0; i < n; i++) sum += d[i];
    json_object_set_new(f->result, "curve",
                        json_pack("{s:s, s:I, s:O, s:I, s:o, s:o, s:o}", "metric", f->o->metric, "fork", (json_int_t)fork, "rows",
                                  rows, "n", (json_int_t)n, "mean", json_finite(n ? sum / (double)n : NAN), "low",
                                  json_finite(m.low), "high", json_finite(m.high)));
    return TARE_OK;
}

/* ---------------------------------------------------------------- as text */

static tare_status print_value(const json_t *j, struct str *out, struct err *e)
{
    if (!j || json_is_null(j)) return str_add(out, "(none)", -1, e);
    if (json_is_real(j)) return str_addf(out, e, "%.17g", json_real_value(j));
    return json_print(j, out, e);
}

static tare_status print_difference(const json_t *d, struct str *out, struct err *e)
{
    const int64_t count = json_int_or(d, "count", 0);
    const json_t *a = json_object_get(d, "a"), *b = json_object_get(d, "b"), *by = json_object_get(d, "by");
    TRY(str_addf(out, e, "  %-16s step %lld: %s", json_text_or(d, "what", ""), (long long)json_int_or(d, "step", 0),
                 json_text_or(d, "where", "")));
    if (!json_is_null(a) || !json_is_null(b)) {
        TRY(str_add(out, ": ", 2, e));
        TRY(print_value(a, out, e));
        TRY(str_add(out, " -> ", 4, e));
        TRY(print_value(b, out, e));
    }
    if (json_is_number(by)) TRY(str_addf(out, e, " (by %.9g)", json_number_value(by)));
    if (count > 1) TRY(str_addf(out, e, "; %lld differ in this step", (long long)count));
    return str_add(out, "\n", 1, e);
}

static tare_status print_list(const json_t *result, const char *name, const char *title, struct str *out, struct err *e)
{
    size_t i;
    json_t *text;
    json_array_foreach(json_object_get(result, name), i, text)
    {
        TRY(str_addf(out, e, "%s: %s\n", title, json_string_value(text)));
    }
    return TARE_OK;
}

/* Describes the effect of a changed key: for a file of rows, if the rows differ. */
static const char *describe_effect(const json_t *key)
{
    const char *rows = json_text_or(key, "rows", "");
    const bool changes = json_bool_or(key, "changes_training", 1);
    if (!strcmp(rows, "other")) return changes ? "   (the data differ)" : "   (the data differ; does not change training)";
    if (!strcmp(rows, "unknown") && changes) return "   (no record of the data)";
    return changes ? "" : "   (does not change training)";
}

static tare_status print_keys(const json_t *result, struct str *out, struct err *e)
{
    size_t i;
    json_t *k;
    const json_t *keys = json_object_get(result, "configuration");
    if (json_array_size(keys)) TRY(str_add(out, "configuration\n", -1, e));
    json_array_foreach(keys, i, k)
    {
        const char *key = json_text_or(k, "key", ""), *a = json_text_or(k, "a", ""), *b = json_text_or(k, "b", "");
        if (strcmp(a, b))
            TRY(str_addf(out, e, "  %s: %s -> %s%s\n", key, a, b, describe_effect(k)));
        else
            TRY(str_addf(out, e, "  %s: %s in both%s\n", key, a, describe_effect(k)));
    }
    return TARE_OK;
}

static tare_status print_counts(const json_t *n, const char *title, struct str *out, struct err *e)
{
    return str_addf(out, e, "%s: %lld steps of metrics, %lld of rollouts, %lld states of the estimator, %lld checkpoints\n", title,
                    (long long)json_int_or(n, "steps", 0), (long long)json_int_or(n, "rollouts", 0),
                    (long long)json_int_or(n, "estimator_states", 0), (long long)json_int_or(n, "checkpoints", 0));
}

tare_status compare_print_differences(const json_t *result, struct str *out, struct err *e)
{
    size_t i;
    json_t *d;
    const json_t *all = json_object_get(result, "differences"), *n = json_object_get(result, "compared");
    const json_t *only[] = {json_object_get(result, "only_a"), json_object_get(result, "only_b")};
    const bool whole =
        !json_object_size(only[0]) && !json_object_size(only[1]) && !json_array_size(json_object_get(result, "damaged"));
    const json_t *first = json_object_get(result, "first_step");
    if (json_is_integer(first))
        TRY(str_addf(out, e, "first difference at step %lld; the first of each kind:\n", (long long)json_integer_value(first)));
    json_array_foreach(all, i, d) TRY(print_difference(d, out, e));
    if (!json_array_size(all))
        TRY(str_add(out, whole ? "no difference: bit-identical\n" : "no difference in what both runs have\n", -1, e));
    TRY(print_counts(n, "compared", out, e));
    if (json_object_size(only[0])) TRY(print_counts(only[0], "only in a, not compared", out, e));
    if (json_object_size(only[1])) TRY(print_counts(only[1], "only in b, not compared", out, e));
    return print_list(result, "damaged", "damaged", out, e);
}

/* Prints at most ROWS equidistant rows, including the last one. */
static tare_status print_curve(const json_t *curve, struct str *out, struct err *e)
{
    const json_t *rows = json_object_get(curve, "rows"), *low = json_object_get(curve, "low");
    const int64_t n = (int64_t)json_array_size(rows), every = (n + ROWS - 1) / ROWS;
    const int64_t fork = json_int_or(curve, "fork", 0);
    char after[64] = "";
    if (fork) snprintf(after, sizeof after, " after the fork at step %lld", (long long)fork);
    if (!n) return str_addf(out, e, "no common step%s has %s\n", after, json_text_or(curve, "metric", ""));
    TRY(str_addf(out, e, "\n%s\n%8s %12s %12s %12s\n", json_text_or(curve, "metric", ""), "step", "a", "b", "b - a"));
    for (int64_t i = (n - 1) % every; i < n; i += every) {
        const json_t *r = json_array_get(rows, (size_t)i);
        TRY(str_addf(out, e, "%8lld %12.6g %12.6g %12.6g\n", (long long)json_integer_value(json_array_get(r, 0)),
                     json_number_value(json_array_get(r, 1)), json_number_value(json_array_get(r, 2)),
                     json_number_value(json_array_get(r, 3))));
    }
    TRY(str_addf(out, e, "mean difference over %lld steps%s: %.6g", (long long)n, after, json_double_or(curve, "mean", NAN)));
    if (!json_is_number(low)) return str_add(out, " (too few steps for an interval)\n", -1, e);
    return str_addf(out, e, ", 95 %% interval %.6g to %.6g\n", json_number_value(low), json_double_or(curve, "high", NAN));
}

tare_status compare_print(const json_t *result, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "a: %s\nb: %s\n", json_text_or(result, "a", ""), json_text_or(result, "b", "")));
    TRY(print_keys(result, out, e));
    TRY(compare_print_differences(result, out, e));
    TRY(print_list(result, "notes", "note", out, e));
    return print_curve(json_object_get(result, "curve"), out, e);
}
