#include "lab/variance/print.h"

#include "config/config.h"

#include <math.h>
#include <string.h>

tare_status print_need(const struct variance_need *n, const struct variance_options *o, const char *from, struct str *out,
                       struct err *e)
{
    TRY(str_addf(out, e, "%s: %lld prompts x %lld rollouts, %lld parameters\n", from, (long long)o->prompts, (long long)o->rollouts,
                 (long long)n->params));
    TRY(str_addf(out, e, "  model, gradients and sampling %10.3f GB\n", (double)n->model / 1e9));
    if (o->width)
        TRY(str_addf(out, e, "  sketches of %-5lld cells       %10.3f GB\n  their table                    %10.3f GB\n",
                     (long long)o->width, (double)n->vectors / 1e9, (double)n->table / 1e9));
    else
        TRY(str_addf(out, e, "  gradients, kept whole          %10.3f GB\n", (double)n->vectors / 1e9));
    TRY(str_addf(out, e, "  sums of the estimators         %10.3f GB\n  together                       %10.3f GB",
                 (double)n->work / 1e9, (double)n->total / 1e9));
    return n->memory ? str_addf(out, e, " of %.1f GB\n", (double)n->memory / 1e9) : str_add(out, "\n", -1, e);
}

/* ---------------------------------------------------------------- tables */

/* Add a figure in multiples of unit, with its interval. */
static tare_status add_figure(struct figure f, double unit, struct str *out, struct err *e)
{
    if (!isfinite(f.value) || !(unit > 0)) return str_add(out, " - |", -1, e);
    TRY(str_addf(out, e, " %.4g", f.value / unit));
    if (isfinite(f.low)) TRY(str_addf(out, e, " [%.3g, %.3g]", f.low / unit, f.high / unit));
    return str_add(out, " |", -1, e);
}

static tare_status add_share(double x, struct str *out, struct err *e)
{
    return isfinite(x) ? str_addf(out, e, " %.1f %% |", 100 * x) : str_add(out, " - |", -1, e);
}

static tare_status print_row(const struct result *x, struct str *out, struct err *e)
{
    const double unit = x->target.value;
    TRY(str_addf(out, e, "| %s | %s |", x->method->label, STATE_NAMES[x->state]));
    if (*x->why) return str_addf(out, e, " not measured: %s | | | | | | | |\n", x->why);
    TRY(add_figure(x->direction, 1, out, e));
    TRY(add_figure(x->ahead, 1, out, e));
    TRY(add_figure(x->mean_direction, 1, out, e));
    TRY(add_figure(x->bias, unit, out, e));
    TRY(add_figure(x->variance, unit, out, e));
    TRY(add_share(x->effective, out, e));
    TRY(add_share(x->kind[KIND_WRONG].square, out, e));
    TRY(add_share(x->kind[KIND_WRONG].signal, out, e));
    return str_add(out, "\n", 1, e);
}

static tare_status print_head(const struct report_of *r, struct str *out, struct err *e)
{
    const struct variance_pool *p = r->pool;
    const struct figure t = r->result[0].target;
    double pass = 0;
    for (int64_t m = 0; m < p->batch.n_groups; m++) pass += p->pass[m] / (double)p->batch.n_groups;
    TRY(str_addf(out, e, "## %s", r->at->given));
    if (r->at->step) TRY(str_addf(out, e, ", step %lld", (long long)r->at->step));
    TRY(str_addf(out, e, "\n\n%lld prompts x %lld rollouts, %.1f %% of them correct; batches of %lld prompts; |g*|^2 = %.4g",
                 (long long)p->batch.n_groups, (long long)r->options->rollouts, 100 * pass, (long long)r->batch, t.value));
    if (isfinite(t.low)) TRY(str_addf(out, e, " [%.3g, %.3g]", t.low, t.high));
    if (!(t.value > 0)) TRY(str_add(out, ": not distinguishable from noise, use more rollouts", -1, e));
    TRY(str_add(out, "\n", 1, e));
    if (r->options->adam)
        TRY(str_add(out, "lengths and directions are those of Adam's step: each coordinate divided by sqrt(v) + eps\n", -1, e));
    if (p->sketched)
        TRY(str_addf(out, e, "sketches of %lld cells: a squared length is off by %.1f %% (one standard deviation)\n",
                     (long long)p->sketched, 100 * sqrt(2 / (double)p->sketched)));
    for (int64_t i = 0; i < r->methods->n_left_out; i++)
        TRY(str_addf(out, e, "%s%s (%s)%s", i ? ", " : "left out: ", r->methods->left_out[i].name, r->methods->left_out[i].why,
                     i + 1 < r->methods->n_left_out ? "" : "\n"));
    return TARE_OK;
}

tare_status print_table(const struct report_of *r, struct str *out, struct err *e)
{
    TRY(print_head(r, out, e));
    for (int64_t k = 0; k < r->options->n_sizes; k++) {
        const int64_t size = r->options->sizes[k];
        const struct result *any = NULL;
        for (int64_t i = 0; i < r->n && !any; i++)
            if (r->result[i].size == size && !*r->result[i].why) any = &r->result[i];
        TRY(str_addf(out, e, "\n### G = %lld", (long long)size));
        if (any)
            TRY(str_addf(out, e, ": %.1f %% of the groups all wrong, %.1f %% mixed, %.1f %% all correct", 100 * any->kind[0].groups,
                         100 * any->kind[1].groups, 100 * any->kind[2].groups));
        TRY(str_addf(
            out, e,
            "\n\n| estimator | state | direction | less that of %s | direction of the mean | bias / \\|g*\\|^2 | variance / \\|g*\\|^2 | effective | all wrong: of the square | of the signal |\n|---|---|---|---|---|---|---|---|---|---|\n",
            r->reference));
        for (int64_t i = 0; i < r->n; i++)
            if (r->result[i].size == size) TRY(print_row(&r->result[i], out, e));
    }
    return str_add(out, "\n", 1, e);
}

/* ---------------------------------------------------------------- JSON lines */

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *figure_json(struct figure f)
{
    return json_pack("[o, o, o]", real_or_null(f.value), real_or_null(f.low), real_or_null(f.high));
}

static json_t *part_json(const char *name, const struct part *p)
{
    return json_pack("{s:s, s:I, s:o, s:o, s:o}", "name", name, "prompts", (json_int_t)p->prompts, "signal",
                     real_or_null(p->signal), "square", real_or_null(p->square), "snr", real_or_null(p->snr));
}

static json_t *parts_json(const struct report_of *r, const struct result *x)
{
    json_t *kinds = json_array(), *bins = json_array(), *clusters = json_array();
    for (int k = 0; k < VARIANCE_KINDS; k++)
        json_array_append_new(kinds,
                              json_pack("{s:s, s:o, s:o, s:o}", "name", KIND_NAMES[k], "groups", real_or_null(x->kind[k].groups),
                                        "signal", real_or_null(x->kind[k].signal), "square", real_or_null(x->kind[k].square)));
    for (int b = 0; b < VARIANCE_BINS; b++)
        if (x->bin[b].prompts) json_array_append_new(bins, part_json(BIN_NAMES[b], &x->bin[b]));
    for (int k = 0; k < VARIANCE_CLUSTERS; k++) {
        char number[32];
        if (!x->cluster[k].prompts) continue;
        snprintf(number, sizeof number, "%d", k);
        json_array_append_new(clusters, part_json(r->pool->cluster_name ? r->pool->cluster_name[k] : number, &x->cluster[k]));
    }
    return json_pack("{s:o, s:o, s:o}", "groups", kinds, "difficulty", bins, "clusters", clusters);
}

static json_t *result_json(const struct report_of *r, const struct result *x)
{
    json_t *o = json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I}", "kind", "estimator", "checkpoint", r->at->given, "step",
                          (json_int_t)r->at->step, "estimator", x->method->label, "state", STATE_NAMES[x->state], "group_size",
                          (json_int_t)x->size, "prompts", (json_int_t)r->batch);
    if (!o || *x->why) {
        if (o) json_object_set_new(o, "not_measured", json_string(x->why));
        return o;
    }
    const struct {
        const char *name;
        struct figure f;
    } FIGURES[] = {{"direction", x->direction}, {"direction_ahead", x->ahead}, {"mean_direction", x->mean_direction},
                   {"bias", x->bias},           {"variance", x->variance},     {"second_moment", x->second},
                   {"target", x->target}};
    for (size_t k = 0; k < sizeof FIGURES / sizeof *FIGURES; k++)
        json_object_set_new(o, FIGURES[k].name, figure_json(FIGURES[k].f));
    json_object_set_new(o, "sampling_share", real_or_null(x->sampling));
    json_object_set_new(o, "effective", real_or_null(x->effective));
    json_object_set_new(o, "parts", parts_json(r, x));
    return o;
}

static json_t *pool_json(const struct report_of *r)
{
    const struct variance_pool *p = r->pool;
    json_t *left_out = json_object(), *pass = json_array();
    for (int64_t i = 0; i < r->methods->n_left_out; i++)
        json_object_set_new(left_out, r->methods->left_out[i].name, json_string(r->methods->left_out[i].why));
    for (int64_t m = 0; m < p->batch.n_groups; m++) json_array_append_new(pass, json_real(p->pass[m]));
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:o, s:s, s:o}", "kind", "checkpoint", "metric",
                     r->options->adam ? "adam" : "plain", "checkpoint", r->at->given, "step", (json_int_t)r->at->step, "prompts",
                     (json_int_t)p->batch.n_groups, "rollouts", (json_int_t)r->options->rollouts, "sketch_width",
                     (json_int_t)p->sketched, "mean_length", p->mean_length, "pass", pass, "reference", r->reference, "left_out",
                     left_out);
}

static tare_status print_line(json_t *o, struct str *out, struct err *e)
{
    if (!o) FAIL(e, TARE_E_INVALID, "cannot write the figures as JSON; check that the paths are valid UTF-8");
    tare_status status = json_print(o, out, e);
    if (!status) status = str_add(out, "\n", 1, e);
    json_decref(o);
    return status;
}

tare_status print_lines(const struct report_of *r, struct str *out, struct err *e)
{
    TRY(print_line(pool_json(r), out, e));
    for (int64_t i = 0; i < r->n; i++) TRY(print_line(result_json(r, &r->result[i]), out, e));
    return TARE_OK;
}

/* ---------------------------------------------------------------- CSV */

static tare_status csv_text(const char *text, struct str *out, struct err *e)
{
    TRY(str_add(out, "\"", 1, e));
    for (; *text; text++) TRY(*text == '"' ? str_add(out, "\"\"", 2, e) : str_add(out, text, 1, e));
    return str_add(out, "\",", 2, e);
}

static tare_status csv_number(double x, struct str *out, struct err *e)
{
    char text[32];
    if (isfinite(x)) TRY(str_add(out, str_from_double(text, x), -1, e));
    return str_add(out, ",", 1, e);
}

static tare_status csv_figure(struct figure f, struct str *out, struct err *e)
{
    TRY(csv_number(f.value, out, e));
    TRY(csv_number(f.low, out, e));
    return csv_number(f.high, out, e);
}

static tare_status csv_row(const struct report_of *r, const struct result *x, struct str *out, struct err *e)
{
    const struct figure figures[] = {x->direction, x->ahead, x->mean_direction, x->bias, x->variance, x->second, x->target};
    TRY(csv_text(r->at->given, out, e));
    TRY(str_addf(out, e, "%lld,", (long long)r->at->step));
    TRY(csv_text(x->method->label, out, e));
    TRY(str_addf(out, e, "%s,%lld,%lld,", STATE_NAMES[x->state], (long long)x->size, (long long)r->batch));
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) TRY(csv_figure(figures[k], out, e));
    TRY(csv_number(x->sampling, out, e));
    TRY(csv_number(x->effective, out, e));
    for (int k = 0; k < VARIANCE_KINDS; k++) {
        TRY(csv_number(x->kind[k].groups, out, e));
        TRY(csv_number(x->kind[k].signal, out, e));
        TRY(csv_number(x->kind[k].square, out, e));
    }
    out->data[out->size - 1] = '\n';
    return TARE_OK;
}

tare_status print_csv(const struct report_of *r, struct str *out, struct err *e)
{
    static const char *const FIGURES[] = {"direction", "direction_ahead", "mean_direction", "bias",
                                          "variance",  "second_moment",   "target"};
    if (!out->size) {
        TRY(str_add(out, "checkpoint,step,estimator,state,group_size,prompts", -1, e));
        for (size_t k = 0; k < sizeof FIGURES / sizeof *FIGURES; k++)
            TRY(str_addf(out, e, ",%s,%s_low,%s_high", FIGURES[k], FIGURES[k], FIGURES[k]));
        TRY(str_add(out, ",sampling_share,effective", -1, e));
        for (int k = 0; k < VARIANCE_KINDS; k++)
            TRY(str_addf(out, e, ",%s_groups,%s_signal,%s_square", KIND_NAMES[k], KIND_NAMES[k], KIND_NAMES[k]));
        TRY(str_add(out, "\n", 1, e));
    }
    for (int64_t i = 0; i < r->n; i++)
        if (!*r->result[i].why) TRY(csv_row(r, &r->result[i], out, e));
    return TARE_OK;
}
