/* Results of an evaluation: results.json first, then the Markdown table from it, so that both
 * agree. */
#include "eval/eval.h"

#include "batch/verdict.h"
#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static bool is_correct(const struct eval_sample *s)
{
    return s->verdict == TARE_VERDICT_CORRECT;
}

static int64_t n_correct(const struct eval_report *r, int64_t q)
{
    int64_t c = 0;
    for (int64_t i = 0; i < r->k; i++) c += is_correct(&r->samples[q * r->k + i]);
    return c;
}

/* 0x626F6F747374 is "bootst" in ASCII. */
static struct eval_resampling resampling_of(const struct eval_report *r)
{
    return (struct eval_resampling){.rounds = r->config->eval.bootstrap,
                                    .key = rng_derive(rng_key((uint64_t)r->config->run.seed, RNG_DATA), 0x626F6F747374u)};
}

/* ---------------------------------------------------------------- all questions */

enum { MAX_POWERS = 64 };

/* 1, 2, 4, ... below k, and k. */
static int pass_sizes(int64_t k, int64_t out[MAX_POWERS])
{
    int n = 0;
    for (int64_t j = 1; j < k; j *= 2) out[n++] = j;
    out[n++] = k;
    return n;
}

static tare_status pass_json(const struct eval_report *r, json_t **out, struct err *e)
{
    int64_t size[MAX_POWERS], n = r->data->n;
    const int m = pass_sizes(r->k, size);
    double low[MAX_POWERS], high[MAX_POWERS], *x; /* x [n, m] */
    TRY(mem_new(n * m * (int64_t)sizeof *x, (void **)&x, e));
    for (int64_t q = 0; q < n; q++)
        for (int j = 0; j < m; j++) x[q * m + j] = eval_pass_at(r->k, n_correct(r, q), size[j]);
    tare_status s = eval_bootstrap(&(struct eval_values){.x = x, .n = n, .m = m}, resampling_of(r), low, high, e);
    json_t *list = *out = json_array();
    bool bad = !list;
    for (int j = 0; !s && j < m; j++) {
        double sum = 0;
        for (int64_t q = 0; q < n; q++) sum += x[q * m + j];
        json_t *o = json_object();
        json_put(o, &bad, "k", json_integer(size[j]));
        json_put(o, &bad, "value", number_or_null(sum / (double)n));
        json_put(o, &bad, "low", number_or_null(low[j]));
        json_put(o, &bad, "high", number_or_null(high[j]));
        if (json_array_append_new(list, o)) bad = true;
    }
    mem_free(x);
    if (!s && bad) s = err_set(e, TARE_E_NOMEM, __FILE__, __LINE__, "no memory for the results");
    return s;
}

static int compare_lengths(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tare_status length_json(const struct eval_report *r, json_t **out, struct err *e)
{
    const int64_t n = r->data->n * r->k;
    double *length, sum = 0, cut = 0;
    TRY(mem_new(n * (int64_t)sizeof *length, (void **)&length, e));
    for (int64_t i = 0; i < n; i++) {
        length[i] = (double)r->samples[i].length;
        sum += length[i];
        cut += r->samples[i].cut;
    }
    qsort(length, (size_t)n, sizeof *length, compare_lengths);
    bool bad = !(*out = json_object());
    json_put(*out, &bad, "mean", number_or_null(sum / (double)n));
    json_put(*out, &bad, "median", number_or_null(eval_quantile(length, n, 0.5)));
    json_put(*out, &bad, "p90", number_or_null(eval_quantile(length, n, 0.9)));
    json_put(*out, &bad, "max", number_or_null(length[n - 1]));
    json_put(*out, &bad, "limit", json_integer(r->max_new_tokens));
    json_put(*out, &bad, "cut", number_or_null(cut / (double)n));
    mem_free(length);
    if (bad) FAIL(e, TARE_E_NOMEM, "no memory for the results");
    return TARE_OK;
}

static json_t *verdicts_json(const struct eval_report *r)
{
    json_t *o = json_object();
    bool bad = !o;
    for (int32_t code = TARE_VERDICT_CORRECT; code <= TARE_VERDICT_PARTIAL; code++) {
        int64_t n = 0;
        for (int64_t i = 0; i < r->data->n * r->k; i++) n += r->samples[i].verdict == code;
        json_put(o, &bad, verdict_name(code), json_integer(n));
    }
    return o;
}

static double mean_reward(const struct eval_report *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->data->n * r->k; i++) sum += r->samples[i].reward;
    return sum / (double)(r->data->n * r->k);
}

/* ---------------------------------------------------------------- by group */

struct place {
    int32_t rank;
    const char *label;
    int64_t q;
};

static int by_label(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    struct err ignored;
    double u, v;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (!str_to_double(x->label, &u, &ignored) && !str_to_double(y->label, &v, &ignored) && u != v) return u < v ? -1 : 1;
    const int order = strcmp(x->label, y->label);
    return order ? order : (x->q > y->q) - (x->q < y->q);
}

/* Counts one group: question indices [n]; x: scratch [n]. */
static tare_status group_json(const struct eval_report *r, const struct place *places, int64_t n, double *x, json_t **out,
                              struct err *e)
{
    double sum = 0, length = 0, logs = 0, cut = 0, low, high;
    const double samples = (double)(n * r->k);
    for (int64_t i = 0; i < n; i++) {
        const struct eval_sample *s = r->samples + places[i].q * r->k;
        x[i] = (double)n_correct(r, places[i].q) / (double)r->k;
        sum += x[i];
        for (int64_t j = 0; j < r->k; j++) {
            length += (double)s[j].length;
            logs += log(fmax(1, (double)s[j].length));
            cut += s[j].cut;
        }
    }
    TRY(eval_bootstrap(&(struct eval_values){.x = x, .n = n, .m = 1}, resampling_of(r), &low, &high, e));
    bool bad = !(*out = json_object());
    json_put(*out, &bad, "label", json_string(places->label));
    json_put(*out, &bad, "questions", json_integer(n));
    json_put(*out, &bad, "accuracy", number_or_null(sum / (double)n));
    json_put(*out, &bad, "low", number_or_null(low));
    json_put(*out, &bad, "high", number_or_null(high));
    json_put(*out, &bad, "length", number_or_null(length / samples));
    json_put(*out, &bad, "length_geometric", number_or_null(exp(logs / samples)));
    json_put(*out, &bad, "cut", number_or_null(cut / samples));
    if (bad) FAIL(e, TARE_E_INVALID, "a row of the table of accuracies cannot be written as JSON; is its label valid UTF-8?");
    return TARE_OK;
}

static tare_status table_json(const struct eval_report *r, const struct eval_grouping *g, json_t *tables, struct arena *a,
                              struct err *e)
{
    struct place *places;
    double *x;
    int64_t n = 0;
    TRY(arena_new(a, &places, r->data->n, e));
    TRY(arena_new(a, &x, r->data->n, e));
    for (int64_t q = 0; q < r->data->n; q++)
        if (g->label[q]) places[n++] = (struct place){g->rank[q], g->label[q], q};
    qsort(places, (size_t)n, sizeof *places, by_label);
    json_t *rows = json_array(), *table = json_pack("{s:s, s:o}", "name", g->name, "rows", rows);
    if (!table || json_array_append_new(tables, table)) FAIL(e, TARE_E_NOMEM, "no memory for the results");
    for (int64_t begin = 0, end; begin < n; begin = end) {
        json_t *o = NULL;
        end = begin + 1;
        while (end < n && !strcmp(places[end].label, places[begin].label)) end++;
        const tare_status s = group_json(r, places + begin, end - begin, x, &o, e);
        if (json_array_append_new(rows, o) && !s) FAIL(e, TARE_E_NOMEM, "no memory for the results");
        TRY(s);
    }
    return TARE_OK;
}

tare_status eval_results(const struct eval_report *r, json_t **out, struct err *e)
{
    OWNED(json_decrefp) json_t *o = json_object(), *tables = json_array();
    OWNED(arena_free) struct arena a = {0};
    json_t *pass = NULL, *length = NULL;
    bool bad = !o;
    arena_init(&a, "results");
    json_put(o, &bad, "task", json_string(r->task));
    json_put(o, &bad, "questions", json_integer(r->data->n));
    json_put(o, &bad, "samples", json_integer(r->k));
    json_put(o, &bad, "temperature", number_or_null(r->config->eval.temperature));
    TRY(pass_json(r, &pass, e));
    json_put(o, &bad, "pass", pass);
    json_put(o, &bad, "reward", number_or_null(mean_reward(r)));
    json_put(o, &bad, "verdicts", verdicts_json(r));
    TRY(length_json(r, &length, e));
    json_put(o, &bad, "length", length);
    json_put(o, &bad, "tables", json_incref(tables));
    for (int i = 0; !bad && i < r->n_groupings; i++) TRY(table_json(r, &r->groupings[i], tables, &a, e));
    if (r->identity) json_put(o, &bad, "settings", json_deep_copy(r->identity));
    if (bad) FAIL(e, TARE_E_INVALID, "the results cannot be written as JSON");
    *out = json_incref(o);
    return TARE_OK;
}

/* ---------------------------------------------------------------- Markdown */

static double real_of(const json_t *o, const char *key)
{
    return json_double_or(o, key, NAN);
}

static tare_status add_share(struct str *out, const json_t *o, const char *key, struct err *e)
{
    const double x = real_of(o, key);
    return isnan(x) ? str_add(out, " - |", -1, e) : str_addf(out, e, " %.1f %% |", 100 * x);
}

static tare_status add_interval(struct str *out, const json_t *o, struct err *e)
{
    const double low = real_of(o, "low"), high = real_of(o, "high");
    return isnan(low) ? str_add(out, " - |", -1, e) : str_addf(out, e, " %.1f - %.1f |", 100 * low, 100 * high);
}

/* A vertical bar would end the cell. */
static tare_status add_table_cell(struct str *out, const char *text, struct err *e)
{
    TRY(str_add(out, "| ", -1, e));
    for (; *text; text++) TRY(*text == '|' ? str_add(out, "\\|", 2, e) : str_add(out, *text == '\n' ? " " : text, 1, e));
    return str_add(out, " |", -1, e);
}

static tare_status print_table(const json_t *table, struct str *out, struct err *e)
{
    size_t i;
    const json_t *row;
    TRY(str_addf(
        out, e,
        "\n| %s | questions | accuracy | 95 %% interval | mean tokens | geometric | cut |\n|---|---:|---:|---:|---:|---:|---:|\n",
        json_text_or(table, "name", "")));
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        TRY(add_table_cell(out, json_text_or(row, "label", ""), e));
        TRY(str_addf(out, e, " %lld |", (long long)json_int_or(row, "questions", 0)));
        TRY(add_share(out, row, "accuracy", e));
        TRY(add_interval(out, row, e));
        TRY(str_addf(out, e, " %.1f | %.1f |", real_of(row, "length"), real_of(row, "length_geometric")));
        TRY(add_share(out, row, "cut", e));
        TRY(str_add(out, "\n", 1, e));
    }
    return TARE_OK;
}

static tare_status print_pass(const json_t *results, struct str *out, struct err *e)
{
    const int64_t k = json_int_or(results, "samples", 0);
    size_t i;
    const json_t *p;
    TRY(str_add(out, "\n| metric | value | 95 % interval |\n|---|---:|---:|\n", -1, e));
    json_array_foreach(json_object_get(results, "pass"), i, p)
    {
        if (i || k == 1)
            TRY(str_addf(out, e, "| pass@%lld |", (long long)json_int_or(p, "k", 0)));
        else
            TRY(str_addf(out, e, "| pass@1 = avg@%lld |", (long long)k));
        TRY(add_share(out, p, "value", e));
        TRY(add_interval(out, p, e));
        TRY(str_add(out, "\n", 1, e));
    }
    return str_addf(out, e, "| mean reward | %.4f | |\n", real_of(results, "reward"));
}

tare_status eval_markdown(const json_t *results, struct str *out, struct err *e)
{
    const json_t *length = json_object_get(results, "length"), *v, *table;
    const char *name;
    size_t i;
    TRY(str_addf(out, e, "## %s: %lld questions, %lld %s each, temperature %g\n", json_text_or(results, "task", ""),
                 (long long)json_int_or(results, "questions", 0), (long long)json_int_or(results, "samples", 0),
                 json_int_or(results, "samples", 0) == 1 ? "sample" : "samples", real_of(results, "temperature")));
    TRY(print_pass(results, out, e));
    TRY(str_add(out, "\n| verdict | samples |\n|---|---:|\n", -1, e));
    json_object_foreach((json_t *)(uintptr_t)json_object_get(results, "verdicts"), name, v)
    {
        if (json_integer_value(v)) TRY(str_addf(out, e, "| %s | %lld |\n", name, (long long)json_integer_value(v)));
    }
    TRY(str_addf(out, e,
                 "\n| tokens: mean | median | p90 | max | cut at %lld |\n|---:|---:|---:|---:|---:|\n| %.1f | %.1f | %.1f | %.0f |",
                 (long long)json_int_or(length, "limit", 0), real_of(length, "mean"), real_of(length, "median"),
                 real_of(length, "p90"), real_of(length, "max")));
    TRY(add_share(out, length, "cut", e));
    TRY(str_add(out, "\n", 1, e));
    json_array_foreach(json_object_get(results, "tables"), i, table)
    {
        TRY(print_table(table, out, e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- questions.jsonl */

tare_status eval_questions(const struct eval_report *r, struct str *out, struct err *e)
{
    for (int64_t q = 0; q < r->data->n; q++) {
        const int64_t c = n_correct(r, q);
        double length = 0;
        for (int64_t i = 0; i < r->k; i++) length += (double)r->samples[q * r->k + i].length;
        json_t *o = json_pack("{s:s, s:I, s:I, s:f, s:f}", "id", r->data->rows[q].id, "samples", (json_int_t)r->k, "correct",
                              (json_int_t)c, "pass_rate", (double)c / (double)r->k, "length", length / (double)r->k);
        tare_status s =
            o ? json_print(o, out, e)
              : err_set(e, TARE_E_INVALID, __FILE__, __LINE__, "%s: the id cannot be written as JSON", r->data->rows[q].where);
        if (!s) s = str_add(out, "\n", 1, e);
        json_decref(o);
        TRY(s);
    }
    return TARE_OK;
}
