/* Evaluates a series of checkpoints and tabulates the results together. */
#include "eval/checkpoints.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "eval/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct steps_run {
    const struct config *config;
    struct comm *comm;
    struct eval_steps what;
    struct arena arena;
    char task[256], out[FS_PATH], estimate[FS_PATH], difficulty[FS_PATH];
    struct config runs[EVAL_RUNS]; /* config.ini of each run; read only if base is not given */
    struct difficulty_point *points;
    int64_t n_points, capacity;
};

/* ---- steps and models to evaluate */

tare_status eval_steps_parse(const char *text, struct eval_steps *out, struct err *e)
{
    out->n_steps = 0;
    for (const char *at = text;; at++) {
        char *end;
        const long long step = strtoll(at, &end, 10);
        if (end == at || step < 0 || (*end && *end != ',') || out->n_steps == EVAL_STEPS ||
            (out->n_steps && step <= out->steps[out->n_steps - 1]))
            FAIL(e, TARE_E_CONFIG, "--steps %s: must be growing step numbers separated by commas, such as 0,30,60", text);
        out->steps[out->n_steps++] = step;
        if (!*end) return TARE_OK;
        at = end;
    }
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static tare_status take_step(void *ctx, const char *folder, const char *name, struct err *e)
{
    struct eval_steps *out = ctx;
    char checkpoint[FS_PATH], mark[FS_PATH], *end;
    if (strncmp(name, "step-", 5)) return TARE_OK;
    const long long step = strtoll(name + 5, &end, 10);
    if (*end || step < 1 || out->n_steps == EVAL_STEPS) return TARE_OK;
    TRY(fs_join(checkpoint, folder, name, e));
    TRY(fs_join(mark, checkpoint, "complete.json", e));
    if (fs_exists(mark)) out->steps[out->n_steps++] = step;
    return TARE_OK;
}

/* Lists the complete checkpoints of a run, and 0. */
static tare_status find_steps(const char *run, struct eval_steps *out, struct err *e)
{
    char folder[FS_PATH];
    TRY(fs_join(folder, run, "checkpoints", e));
    if (!fs_is_dir(folder))
        FAIL(e, TARE_E_NOT_FOUND, "%s: missing checkpoints; train with checkpoint.every=30 checkpoint.keep=0", folder);
    out->steps[0] = 0;
    out->n_steps = 1;
    TRY(fs_each(folder, take_step, out, e));
    qsort(out->steps, (size_t)out->n_steps, sizeof *out->steps, by_number);
    return TARE_OK;
}

/* Finds the model of a run at a step. */
static tare_status model_at(const struct steps_run *s, int run, int64_t step, char *path, struct err *e)
{
    const char *base = s->what.base ? s->what.base : s->runs[run].model.path;
    if (!step) return fs_join(path, ".", base, e);
    return checkpoint_path(s->what.runs[run], step, path, e);
}

static tare_status check_models(struct steps_run *s, struct err *e)
{
    for (int r = 0; r < s->what.n_runs; r++) {
        char path[FS_PATH];
        TRY(fs_join(path, s->what.runs[r], "config.ini", e));
        if (!fs_exists(path)) FAIL(e, TARE_E_NOT_FOUND, "%s: not the folder of a run: missing config.ini", s->what.runs[r]);
        if (!s->what.base) TRY(config_load(&s->runs[r], path, NULL, 0, e));
    }
    if (!s->what.n_steps) TRY(find_steps(s->what.runs[0], &s->what, e));
    for (int r = 0; r < s->what.n_runs; r++)
        for (int i = 0; i < s->what.n_steps; i++) {
            char path[FS_PATH], mark[FS_PATH];
            const int64_t step = s->what.steps[i];
            TRY(model_at(s, r, step, path, e));
            TRY(fs_join(mark, path, step ? "complete.json" : "config.json", e));
            if (fs_exists(mark)) continue;
            if (!step)
                FAIL(e, TARE_E_NOT_FOUND, "%s: missing model that %s started from; name it with --base", path, s->what.runs[r]);
            FAIL(
                e, TARE_E_NOT_FOUND,
                "%s: missing complete checkpoint of step %lld; train with checkpoint.every and checkpoint.keep=0, or leave it out of --steps",
                path, (long long)step);
        }
    return TARE_OK;
}

/* ---- output folders */

tare_status eval_task_name(const struct config *c, char task[256], struct err *e)
{
    const char *slash = strrchr(c->data.eval, '/'), *base = slash ? slash + 1 : c->data.eval;
    if (!*c->data.eval) FAIL(e, TARE_E_CONFIG, "data.eval is not set: it must be the JSONL file with the questions");
    snprintf(task, 256, "%s", *c->eval.name ? c->eval.name : base);
    char *ending = strstr(task, ".jsonl");
    if (!*c->eval.name && ending) *ending = 0;
    if (!*c->eval.name)
        for (char *p = task; *p; p++)
            if (strchr(":?&= ", *p)) *p = '-';
    if (strchr(task, '/'))
        FAIL(e, TARE_E_CONFIG, "eval.name = %s: must not contain a slash, because a folder gets this name", task);
    return TARE_OK;
}

static const char *run_name(const char *run)
{
    size_t n = strlen(run);
    while (n > 1 && run[n - 1] == '/') n--;
    const char *at = run + n;
    while (at > run && at[-1] != '/') at--;
    return at;
}

static tare_status folder_of(const struct steps_run *s, int run, int64_t step, char *out, struct err *e)
{
    char name[FS_PATH];
    snprintf(name, sizeof name, "step-%06lld", (long long)step);
    if (*s->config->eval.out) {
        char folder[FS_PATH], label[FS_PATH];
        snprintf(label, sizeof label, "%.*s", (int)strcspn(run_name(s->what.runs[run]), "/"), run_name(s->what.runs[run]));
        TRY(fs_join(folder, s->config->eval.out, label, e));
        return fs_join(out, folder, name, e);
    }
    char folder[FS_PATH], task[FS_PATH];
    TRY(fs_join(folder, s->what.runs[run], "eval", e));
    TRY(fs_join(task, folder, s->task, e));
    return fs_join(out, task, name, e);
}

static tare_status name_folders(struct steps_run *s, struct err *e)
{
    const struct config *c = s->config;
    TRY(eval_task_name(c, s->task, e));
    if (*c->eval.out) {
        TRY(fs_join(s->out, ".", c->eval.out, e));
    } else {
        char folder[FS_PATH];
        TRY(fs_join(folder, s->what.runs[0], "eval", e));
        TRY(fs_join(s->out, folder, s->task, e));
    }
    TRY(fs_join(s->estimate, s->out, "estimate", e));
    if (*c->eval.difficulty) return fs_join(s->difficulty, ".", c->eval.difficulty, e);
    return fs_join(s->difficulty, s->estimate, "questions.jsonl", e);
}

/* ---- evaluations */

static tare_status evaluate_one(struct steps_run *s, struct config *c, const char *model, const char *out, struct err *e)
{
    struct str table = {0};
    c->model.path = model;
    c->eval.out = out;
    log_info("%s", out);
    const tare_status status = eval_run(c, NULL, s->comm, &table, e);
    str_free(&table);
    return status == TARE_E_CANCELLED || !status ? status : err_prefix(e, "%s", out);
}

static tare_status estimate_work(struct steps_run *s, struct err *e)
{
    char model[FS_PATH];
    struct config c = *s->config;
    if (*c.eval.difficulty) return TARE_OK;
    TRY(model_at(s, 0, 0, model, e));
    c.eval.samples = s->what.estimate_samples;
    c.eval.complex_field = c.eval.complex_rules = "";
    c.run.seed++;
    return evaluate_one(s, &c, model, s->estimate, e);
}

static tare_status add_result_row(struct steps_run *s, int run, int64_t step, const json_t *row, struct err *e)
{
    static const char *const SUBSETS[] = {"standard ", "complex "};
    const char *label = json_text_or(row, "label", ""), *subset = "";
    char *copy;
    for (int i = 0; i < 2; i++)
        if (!strncmp(label, SUBSETS[i], strlen(SUBSETS[i]))) {
            subset = i ? "complex" : "standard";
            label += strlen(SUBSETS[i]);
        }
    TRY(arena_strdup(&s->arena, label, -1, &copy, e));
    if (s->n_points == s->capacity)
        TRY(mem_grow((void **)&s->points, &s->capacity, s->n_points + 1, (int64_t)sizeof *s->points, e));
    s->points[s->n_points++] = (struct difficulty_point){.run = s->what.runs[run],
                                                         .subset = subset,
                                                         .bucket = copy,
                                                         .step = step,
                                                         .questions = json_int_or(row, "questions", 0),
                                                         .accuracy = json_double_or(row, "accuracy", NAN),
                                                         .low = json_double_or(row, "low", NAN),
                                                         .high = json_double_or(row, "high", NAN),
                                                         .length = json_double_or(row, "length", NAN)};
    return TARE_OK;
}

static tare_status take_results(struct steps_run *s, int run, int64_t step, const char *folder, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *results = NULL;
    size_t i, k;
    const json_t *table, *row;
    TRY(fs_join(path, folder, "results.json", e));
    TRY(json_read_file(path, &results, e));
    json_array_foreach(json_object_get(results, "tables"), i, table)
    {
        if (strcmp(json_text_or(table, "name", ""), "difficulty")) continue;
        json_array_foreach(json_object_get(table, "rows"), k, row)
        {
            TRY(add_result_row(s, run, step, row, e));
        }
    }
    return TARE_OK;
}

static tare_status evaluate_all(struct steps_run *s, struct err *e)
{
    for (int r = 0; r < s->what.n_runs; r++)
        for (int i = 0; i < s->what.n_steps; i++) {
            char model[FS_PATH], out[FS_PATH];
            struct config c = *s->config;
            c.eval.difficulty = s->difficulty;
            TRY(model_at(s, r, s->what.steps[i], model, e));
            TRY(folder_of(s, r, s->what.steps[i], out, e));
            TRY(evaluate_one(s, &c, model, out, e));
            TRY(take_results(s, r, s->what.steps[i], out, e));
        }
    return TARE_OK;
}

/* ---- the combined table */

static int rank_of(const char *bucket)
{
    static const char *const ORDER[] = {"Easy", "Medium", "Hard", "Hardest"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(bucket, ORDER[i])) return i;
    return 4;
}

static int by_place(const void *a, const void *b)
{
    const struct difficulty_point *x = a, *y = b;
    const int subset = strcmp(y->subset, x->subset); /* standard before complex */
    const int bucket = rank_of(x->bucket) - rank_of(y->bucket), run = strcmp(x->run, y->run);
    if (subset) return subset;
    if (bucket) return bucket;
    if (run) return run;
    return (x->step > y->step) - (x->step < y->step);
}

static bool same_row(const struct difficulty_point *a, const struct difficulty_point *b)
{
    return !strcmp(a->run, b->run) && !strcmp(a->subset, b->subset) && !strcmp(a->bucket, b->bucket);
}

/* Prints one table: a row for each subset, bucket and run, a column for each step. */
static tare_status print_table(const struct steps_run *s, const char *title, bool length, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "\n| %s |%s questions |", title, s->what.n_runs > 1 ? " run |" : ""));
    for (int i = 0; i < s->what.n_steps; i++) TRY(str_addf(out, e, " step %lld |", (long long)s->what.steps[i]));
    TRY(str_addf(out, e, "\n|---|%s---:|", s->what.n_runs > 1 ? "---|" : ""));
    for (int i = 0; i < s->what.n_steps; i++) TRY(str_add(out, "---:|", -1, e));
    TRY(str_add(out, "\n", 1, e));
    for (int64_t at = 0; at < s->n_points;) {
        const struct difficulty_point *p = &s->points[at];
        TRY(str_addf(out, e, "| %s%s%s |", p->subset, *p->subset ? " " : "", p->bucket));
        if (s->what.n_runs > 1) TRY(str_addf(out, e, " %s |", run_name(p->run)));
        TRY(str_addf(out, e, " %lld |", (long long)p->questions));
        for (; at < s->n_points && same_row(p, &s->points[at]); at++)
            TRY(length ? str_addf(out, e, " %.1f |", s->points[at].length) : str_addf(out, e, " %.3f |", s->points[at].accuracy));
        TRY(str_add(out, "\n", 1, e));
    }
    return TARE_OK;
}

static tare_status print_markdown(const struct steps_run *s, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "## %s by difficulty: %lld %s a question at each step, buckets from ", s->task,
                 (long long)s->config->eval.samples, s->config->eval.samples == 1 ? "sample" : "samples"));
    TRY(*s->config->eval.difficulty
            ? str_addf(out, e, "%s\n", s->difficulty)
            : str_addf(out, e, "%lld samples before reinforcement learning\n", (long long)s->what.estimate_samples));
    TRY(print_table(s, "accuracy", false, out, e));
    return print_table(s, "mean tokens", true, out, e);
}

static json_t *finite_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *as_json(const struct steps_run *s)
{
    json_t *points = json_array();
    for (int64_t i = 0; i < s->n_points; i++) {
        const struct difficulty_point *p = &s->points[i];
        json_array_append_new(points,
                              json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "run", p->run, "subset", p->subset,
                                        "bucket", p->bucket, "step", (json_int_t)p->step, "questions", (json_int_t)p->questions,
                                        "accuracy", finite_or_null(p->accuracy), "low", finite_or_null(p->low), "high",
                                        finite_or_null(p->high), "length", finite_or_null(p->length)));
    }
    return json_pack("{s:s, s:I, s:s, s:s, s:o}", "task", s->task, "samples", (json_int_t)s->config->eval.samples, "difficulty",
                     s->difficulty, "buckets", s->config->eval.buckets, "points", points);
}

static tare_status write_text(const struct steps_run *s, const char *name, const struct str *text, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, s->out, name, e));
    return fs_write_atomic(path, text->data, text->size, e);
}

static tare_status write_all(struct steps_run *s, struct str *table, struct err *e)
{
    OWNED(str_free) struct str text = {0}, title = {0};
    OWNED(json_decrefp) json_t *o = NULL;
    qsort(s->points, (size_t)s->n_points, sizeof *s->points, by_place);
    TRY(fs_mkdirs(s->out, e));
    TRY(print_markdown(s, table, e));
    TRY(write_text(s, "difficulty.md", table, e));
    if (!(o = as_json(s))) FAIL(e, TARE_E_INVALID, "the table cannot be written as JSON; are the paths valid UTF-8?");
    TRY(json_print(o, &text, e));
    TRY(str_add(&text, "\n", 1, e));
    TRY(write_text(s, "difficulty.json", &text, e));
    str_clear(&text);
    TRY(str_addf(&title, e, "%s by difficulty", s->task));
    if (!s->what.figure) return TARE_OK;
    TRY(s->what.figure(title.data, s->points, s->n_points, &text, e));
    TRY(write_text(s, "difficulty.html", &text, e));
    log_info("figure: %s/difficulty.html", s->out);
    return TARE_OK;
}

static tare_status evaluate_steps(struct steps_run *s, struct str *table, struct err *e)
{
    TRY(check_models(s, e));
    TRY(name_folders(s, e));
    TRY(estimate_work(s, e));
    TRY(evaluate_all(s, e));
    return comm_agree(s->comm, s->comm->rank ? TARE_OK : write_all(s, table, e), e);
}

tare_status eval_steps_run(const struct config *c, const struct eval_steps *what, struct comm *comm, struct str *table,
                           struct err *e)
{
    struct steps_run *s;
    TRY(mem_new((int64_t)sizeof *s, (void **)&s, e));
    s->config = c;
    s->comm = comm;
    s->what = *what;
    arena_init(&s->arena, "steps");
    const tare_status status = evaluate_steps(s, table, e);
    for (int r = 0; r < EVAL_RUNS; r++)
        if (s->runs[r].file) config_free(&s->runs[r]);
    mem_free(s->points);
    arena_free(&s->arena);
    mem_free(s);
    return status;
}
