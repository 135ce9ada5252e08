/* The HTML page: reads the given runs and sweeps and prints their sections in order. */
#include "lab/report/page.h"
#include "base/fs.h"
#include "observe/written.h"

#include <math.h>
#include <string.h>

/* metric, title, note, share, zero, may_log (see struct chart_spec) */
static const struct chart_spec SIGNALS[] = {
    {"response_length/mean", "Response length", "tokens", false, false, false},
    {"policy/entropy", "Policy entropy", "nats a token", false, true, false},
    {"reward/mean", "Training reward", "mean of the batch", false, true, false},
    {"estimator/effective_signal_ratio", "Effective-signal ratio", "groups with scale > 1e-6", true, true, false},
    {0}};
static const struct chart_spec OPTIMISATION[] = {
    {"policy/clip_fraction", "Clip fraction", "tokens whose ratio is clipped", true, true, false},
    {"policy/approx_kl", "KL to the sampling policy", "nats a token", false, false, true},
    {"policy/reference_kl", "KL to the reference", "nats a token", false, false, true},
    {"grad_norm", "Gradient norm", "before clipping", false, true, true},
    {"estimator/advantage_max", "Largest |A|", NULL, false, true, true},
    {"estimator/confidence_mean", "Confidence w", "mean over groups", false, true, false},
    {"estimator/nonzero_advantage_ratio", "Groups with an advantage", "any |A| > 1e-6", true, true, false},
    {"reward/all_wrong_groups", "All-wrong groups", NULL, true, true, false},
    {"reward/all_correct_groups", "All-correct groups", NULL, true, true, false},
    {"response_length/clip_ratio", "Cut responses", "reached max_new_tokens", true, true, false},
    {"policy/loss", "Loss", NULL, false, false, false},
    {"lr", "Learning rate", NULL, false, true, false},
    {0}};
static const struct chart_spec EVALUATION[] = {{"eval/reward", "Held-out reward", "mean", false, true, false},
                                               {"eval/response_length", "Held-out response length", "tokens", false, false, false},
                                               {0}};
static const struct chart_spec SPEED[] = {{"tokens_per_second", "Tokens a second", NULL, false, true, false},
                                          {"time/step", "Seconds a step", NULL, false, true, false},
                                          {0}};

/* ---------------------------------------------------------------- reading runs and sweeps */

/* Returns the step of the fork that RUN/manifest.json names, or 0: not a fork, or not readable. */
static int64_t fork_step(const char *dir)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *manifest = NULL;
    if (fs_join(path, dir, "manifest.json", NULL) || !fs_exists(path) || json_read_file(path, &manifest, NULL)) return 0;
    return json_int_or(json_object_get(manifest, "origin"), "step", 0);
}

static tare_status add_run(struct page *p, const char *dir, struct err *e)
{
    struct run_data *run;
    const struct run_data **list;
    if (p->n_groups == GROUPS_MOST) {
        p->left_out++;
        return TARE_OK;
    }
    TRY(arena_new(&p->arena, &run, 1, e));
    TRY(arena_new(&p->arena, &list, 1, e));
    TRY(run_data_read(dir, &p->arena, run, e));
    TRY(written_report_metrics(dir, e));
    list[0] = run;
    p->groups[p->n_groups++] = (struct curves){.label = run->name, .runs = list, .n = 1, .fork = fork_step(dir)};
    return TARE_OK;
}

static tare_status add_sweep(struct page *p, const char *dir, bool alone, struct err *e)
{
    if (p->n_plans == PLANS_MOST) FAIL(e, TARE_E_RANGE, "%s: a report can have at most %d sweeps", dir, PLANS_MOST);
    struct sweep_plan *plan = &p->plans[p->n_plans];
    struct sweep_table *t = &p->tables[p->n_plans++];
    TRY(sweep_plan_read(dir, &p->arena, plan, e));
    TRY(sweep_table_make(plan, NULL, NULL, &p->arena, t, e));
    for (int64_t i = 0; i < t->n_rows; i++) {
        const struct sweep_row *r = &t->rows[i];
        const struct run_data **list;
        int64_t n = 0;
        char label[400];
        TRY(arena_new(&p->arena, &list, r->n_cells + 1, e));
        for (int64_t c = 0; c < r->n_cells; c++)
            if (t->runs[r->cells[c]].n_series) list[n++] = &t->runs[r->cells[c]];
        if (!n) continue;
        if (p->n_groups == GROUPS_MOST) {
            p->left_out++;
            continue;
        }
        snprintf(label, sizeof label, "%s%s%s", alone ? "" : plan->name, alone ? "" : ": ", r->label);
        struct curves *g = &p->groups[p->n_groups++];
        TRY(arena_strdup(&p->arena, label, -1, (char **)(uintptr_t)&g->label, e));
        g->runs = list;
        g->n = n;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- head */

static tare_status add_tile(struct str *out, const char *what, const char *value, struct err *e)
{
    TRY(str_add(out, "<div><b>", -1, e));
    TRY(svg_text(out, value, -1, e));
    TRY(str_add(out, "</b><span>", -1, e));
    TRY(svg_text(out, what, -1, e));
    return str_add(out, "</span></div>", -1, e);
}

static tare_status add_tiles(const struct run_data *r, struct str *out, struct err *e)
{
    static const struct {
        const char *metric, *what, *format;
    } TILES[] = {{"reward/mean:tail", "training reward, last fifth", "%.3f"},
                 {"estimator/effective_signal_ratio:mean", "effective-signal ratio, mean", "%.2f"},
                 {"estimator/nonzero_advantage_ratio:mean", "groups with an advantage, mean", "%.2f"},
                 {"policy/entropy:last", "policy entropy at the end", "%.3f"},
                 {"tokens_per_second:mean", "tokens a second", "%.0f"}};
    char text[80];
    double first, last, x;
    TRY(str_add(out, "<div class=\"tiles\">", -1, e));
    TRY(run_data_value(r, "eval/reward:first", &first, e));
    TRY(run_data_value(r, "eval/reward:last", &last, e));
    snprintf(text, sizeof text, "%.3f \xE2\x86\x92 %.3f", first, last);
    if (isfinite(first)) TRY(add_tile(out, "held-out reward, first and last", text, e));
    for (int i = 0; i < 5; i++) {
        TRY(run_data_value(r, TILES[i].metric, &x, e));
        snprintf(text, sizeof text, TILES[i].format, x);
        if (isfinite(x)) TRY(add_tile(out, TILES[i].what, text, e));
    }
    snprintf(text, sizeof text, "%lld", (long long)r->last_step);
    TRY(add_tile(out, "steps", text, e));
    const struct series *time = run_data_find(r, "time/step");
    double seconds = 0;
    if (time)
        for (int64_t i = 0; i < time->n; i++) seconds += time->value[i];
    if (seconds >= 3600)
        snprintf(text, sizeof text, "%.0f h %02.0f min", floor(seconds / 3600), floor(fmod(seconds, 3600) / 60));
    else
        snprintf(text, sizeof text, "%.0f min %02.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
    TRY(add_tile(out, "in the steps", text, e));
    return str_add(out, "</div>\n", -1, e);
}

static tare_status add_text_file(const char *dir, const char *name, const char *title, struct str *out, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    TRY(fs_join(path, dir, name, e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(fs_read_all(path, &text, e));
    TRY(str_addf(out, e, "<details><summary>%s</summary><pre>", title));
    TRY(svg_text(out, text.data, text.size, e));
    return str_add(out, "</pre></details>\n", -1, e);
}

/* The page shows text from a model and a data set, all of it escaped. If one place ever forgot to
 * escape, the policy would still keep the browser from running or loading anything except the
 * script and the style sheet in style.c, which it names by their hashes. */
tare_status page_head(const char *title, struct str *out, struct err *e)
{
    TRY(str_addf(
        out, e,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\""
        "default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>",
        REPORT_STYLE_SHA256, REPORT_SCRIPT_SHA256));
    TRY(svg_text(out, title, -1, e));
    TRY(str_add(out, "</title>\n<style>", -1, e));
    TRY(str_add(out, REPORT_STYLE, -1, e));
    TRY(str_add(out, "</style></head><body>\n<h1>", -1, e));
    TRY(svg_text(out, title, -1, e));
    return str_add(out, "</h1>\n", -1, e);
}

tare_status page_foot(struct str *out, struct err *e)
{
    TRY(str_add(out, "<script>", -1, e));
    TRY(str_add(out, REPORT_SCRIPT, -1, e));
    return str_add(out, "</script></body></html>\n", -1, e);
}

/* ---------------------------------------------------------------- sections */

static tare_status add_charts(struct page *p, const char *title, const char *class, const struct chart_spec *specs, struct str *out,
                              struct err *e)
{
    OWNED(str_free) struct str body = {0};
    for (; specs->metric; specs++) TRY(curves_chart(p, specs, &body, e));
    if (body.size) TRY(str_addf(out, e, "<h2>%s</h2>\n", title));
    if (body.size) TRY(curves_key(p, out, e));
    if (body.size) TRY(str_addf(out, e, "<div class=\"%s\">", class));
    if (body.size) TRY(str_add(out, body.data, body.size, e));
    if (body.size) TRY(str_add(out, "</div>\n", -1, e));
    return TARE_OK;
}

static bool has_bands(const struct page *p)
{
    for (int64_t g = 0; g < p->n_groups; g++)
        if (p->groups[g].n > 1) return true;
    return false;
}

static bool has_forks(const struct page *p)
{
    for (int64_t g = 0; g < p->n_groups; g++)
        if (p->groups[g].fork) return true;
    return false;
}

static tare_status add_sections(struct page *p, struct str *out, struct err *e)
{
    for (int64_t i = 0; i < p->n_plans; i++) TRY(sweep_section(p, &p->tables[i], out, e));
    TRY(studies_section(p, out, e));
    TRY(add_charts(p, "The four training signals", "charts two", SIGNALS, out, e));
    if (has_bands(p)) TRY(str_add(out, "<p class=\"dim\">Lines: means over seeds. Bands: one standard deviation.</p>\n", -1, e));
    if (has_forks(p)) TRY(str_add(out, "<p class=\"dim\">Dotted: the fork; steps up to it are copies.</p>\n", -1, e));
    TRY(curves_components(p, out, e));
    TRY(add_charts(p, "Held-out questions", "charts", EVALUATION, out, e));
    TRY(curves_subjects(p, out, e));
    TRY(add_charts(p, "Optimisation", "charts", OPTIMISATION, out, e));
    TRY(curves_clusters(p, out, e));
    TRY(str_add(out, "<h2>Verdicts and time</h2>\n<div class=\"charts\">", -1, e));
    TRY(curves_verdicts(p, out, e));
    TRY(curves_stages(p, out, e));
    for (const struct chart_spec *s = SPEED; s->metric; s++) TRY(curves_chart(p, s, out, e));
    return str_add(out, "</div>\n", -1, e);
}

tare_status page_print(struct page *p, struct str *out, struct err *e)
{
    const struct run_data *single = p->n_groups == 1 && p->groups[0].n == 1 ? p->groups[0].runs[0] : NULL;
    TRY(page_head(p->title, out, e));
    if (single) TRY(add_tiles(single, out, e));
    if (!p->n_groups) TRY(str_add(out, "<p>No step has been recorded yet.</p>\n", -1, e));
    TRY(add_sections(p, out, e));
    if (!p->n_plans)
        for (int64_t g = 0; g < p->n_groups; g++) TRY(page_evals_section(p, p->groups[g].runs[0], out, e));
    if (single) TRY(rollouts_section(p, single->dir, out, e));
    if (single) TRY(add_text_file(single->dir, "config.ini", "config.ini", out, e));
    if (single) TRY(add_text_file(single->dir, "manifest.json", "manifest.json", out, e));
    return page_foot(out, e);
}

static tare_status read_paths(struct page *p, const char *const *paths, int64_t n, struct err *e)
{
    OWNED(str_free) struct str title = {0};
    for (int64_t i = 0; i < n; i++) {
        if (run_data_is_sweep(paths[i]))
            TRY(add_sweep(p, paths[i], n == 1, e));
        else
            TRY(add_run(p, paths[i], e));
    }
    if (p->n_plans == 1 && n == 1)
        TRY(str_add(&title, p->plans[0].name, -1, e));
    else
        for (int64_t g = 0; g < p->n_groups && g < 4; g++) TRY(str_addf(&title, e, "%s%s", g ? ", " : "", p->groups[g].label));
    if (title.size == 0) TRY(str_add(&title, "report", -1, e));
    return arena_strdup(&p->arena, title.data, title.size, (char **)(uintptr_t)&p->title, e);
}

void page_close(struct page *p)
{
    if (p) arena_free(&p->arena);
    mem_free(p);
}

void page_close_at(struct page **p)
{
    page_close(*p);
}

tare_status page_open(const char *const *paths, int64_t n, struct page **out, struct err *e)
{
    TRY(mem_new((int64_t)sizeof **out, (void **)out, e));
    arena_init(&(*out)->arena, "report");
    return read_paths(*out, paths, n, e);
}

tare_status report_html(const char *const *paths, int64_t n, struct str *out, struct err *e)
{
    OWNED(page_close_at) struct page *p = NULL;
    TRY(page_open(paths, n, &p, e));
    return page_print(p, out, e);
}
