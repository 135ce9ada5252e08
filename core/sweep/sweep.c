/* Opens a sweep: prepares and checks every cell's configuration before the first run starts, and
 * finds the progress of each cell. */
#include "sweep/sweep.h"

#include "base/limits.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "observe/run_lock.h"
#include "plugin/plugin.h"
#include "settle/settle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- configuration lines */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns true for keys that do not change a run's numbers, and for the date of its start. */
static bool is_neutral(const char *section, const char *line)
{
    if (!strcmp(section, "[data]") && !strncmp(line, "date ", 5)) return true;
    if (!strcmp(section, "[run]") && !strncmp(line, "paths_from ", 11)) return true;
    return !strcmp(section, "[sweep]") || !strcmp(section, "[log]") || (!strcmp(section, "[run]") && !strncmp(line, "threads ", 8));
}

/* Collects "[section] key = value" lines, sorted, so that the order in the file does not matter. */
static tare_status config_lines(const struct config *c, struct arena *a, const char **out, struct err *e)
{
    OWNED(str_free) struct str text = {0}, line = {0}, sorted = {0};
    const char *lines[2000];
    int n = 0;
    char section[80] = "";
    TRY(config_dump(c, &text, e));
    for (char *at = text.data; at && *at && n < 2000;) {
        char *end = strchr(at, '\n');
        if (end) *end = 0;
        if (*at == '[') {
            snprintf(section, sizeof section, "%s", at);
        } else if (*at && !is_neutral(section, at)) {
            str_clear(&line);
            TRY(str_addf(&line, e, "%s %s", section, at));
            TRY(arena_strdup(a, line.data, line.size, (char **)(uintptr_t)&lines[n++], e));
        }
        at = end ? end + 1 : NULL;
    }
    qsort(lines, (size_t)n, sizeof *lines, by_text);
    for (int i = 0; i < n; i++) TRY(str_addf(&sorted, e, "%s\n", lines[i]));
    return arena_strdup(a, sorted.data, sorted.size, (char **)(uintptr_t)out, e);
}

/* Finds the first line in which two configurations differ, for a message. */
static void first_difference(const char *a, const char *b, char *out, size_t size)
{
    while (*a && *b) {
        const size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || strncmp(a, b, n)) break;
        a += n + 1;
        b += m + 1;
    }
    snprintf(out, size, "%.*s (now: %.*s)", (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

/* ---------------------------------------------------------------- jobs */

struct arguments {
    struct arena *arena;
    const char **list;
    int64_t n;
    struct err *e;
};

/* Appends an argument: format, with x for the first %s and y for the second. */
static tare_status add_argument(struct arguments *to, const char *format, const char *x, const char *y)
{
    struct err *e = to->e;
    OWNED(str_free) struct str text = {0};
    TRY(str_addf(&text, e, "%s", ""));
    for (const char *f = format; *f; f++)
        TRY(*f == '1' ? str_add(&text, x, -1, e) : *f == '2' ? str_add(&text, y, -1, e) : str_add(&text, f, 1, e));
    return arena_strdup(to->arena, text.data, text.size, (char **)(uintptr_t)&to->list[to->n++], e);
}

/* Builds "tare train FILE overrides axes run.dir run.name run.threads", with space for --resume. */
static tare_status make_arguments(struct sweep *s, const struct sweep_cell *cell, struct sweep_job *job, struct err *e)
{
    char threads[32];
    snprintf(threads, sizeof threads, "%lld", (long long)s->threads);
    TRY(arena_new(&s->arena, &job->argv, s->n_overrides + s->plan.n_axes + 10, e));
    struct arguments to = {&s->arena, job->argv, 0, e};
    TRY(add_argument(&to, "tare", "", ""));
    TRY(add_argument(&to, "train", "", ""));
    TRY(add_argument(&to, "1", s->file, ""));
    for (int64_t i = 0; i < s->n_overrides; i++)
        if (strncmp(s->overrides[i], "sweep.", 6)) TRY(add_argument(&to, "1", s->overrides[i], ""));
    for (int64_t i = 0; i < s->plan.n_axes; i++)
        if (cell->value[i]) TRY(add_argument(&to, "1=2", s->plan.axes[i].key, cell->value[i]));
    TRY(add_argument(&to, "run.name=1", cell->name, ""));
    TRY(add_argument(&to, "run.dir=1", job->dir, ""));
    return add_argument(&to, "run.threads=1", threads, "");
}

static tare_status check_plugin(const struct config *c, const char *name, int32_t kind, struct err *e)
{
    const struct plugin *p;
    const tare_value *values;
    OWNED(arena_free) struct arena a = {0};
    const struct plugin_search search = {.folder = c->run.plugins};
    TRY(plugin_open(name, kind, &search, &p, e));
    arena_init(&a, "parameters");
    return plugin_params(p, c->params, &a, &values, e);
}

/* Checks the metric now: an unknown one would be noticed only at the end. */
static tare_status check_metric(const struct sweep *s, const struct config *c, struct err *e)
{
    if (strncmp(s->plan.metric, "eval/", 5) || (*c->data.eval && (c->eval.after || c->eval.every))) return TARE_OK;
    FAIL(e, TARE_E_CONFIG,
         "sweep.metric = %s, but the run does not evaluate; set data.eval and eval.after = true, or another metric",
         s->plan.metric);
}

static tare_status take_config(struct sweep *s, struct sweep_job *job, const struct config *c, struct err *e)
{
    const char *path = NULL;
    for (int32_t kind = PLUGIN_FIRST_KIND; kind <= PLUGIN_LAST_KIND; kind++)
        if (config_kind_is_single(kind)) TRY(check_plugin(c, config_kind_choice(c, kind), kind, e));
    TRY(sweep_check_secrets(&s->plan, c, e));
    TRY(check_metric(s, c, e));
    if (!s->verifiers.size || strcmp(s->verifiers.data, c->verifier.plugins) != 0)
        TRY(str_addf(&s->verifiers, e, " %s", c->verifier.plugins));
    TRY(config_lines(c, &s->arena, &job->config, e));
    job->steps = c->train.steps;
    if (c->model.warm_start[0]) TRY(arena_strdup(&s->arena, c->model.path, -1, (char **)(uintptr_t)&job->shared[0], e));
    TRY(cluster_given_file(c, &path, e));
    if (path && *path) TRY(arena_strdup(&s->arena, path, -1, (char **)(uintptr_t)&job->shared[1], e));
    return TARE_OK;
}

/* Turns the "command line" of a message into the cell and its axis values: "cell lr-0.1 (train.lr =
 * 0.1)". */
tare_status sweep_name_cell(const struct sweep *s, int64_t i, struct err *e)
{
    char values[300] = "";
    const struct sweep_cell *cell = &s->plan.cells[i];
    size_t n = 0;
    for (int64_t k = 0; k < s->plan.n_axes && n < sizeof values; k++)
        if (cell->value[k])
            n += (size_t)snprintf(values + n, sizeof values - n, "%s%s = %s", n ? ", " : "", s->plan.axes[k].key, cell->value[k]);
    /* drops a character cut by the limit */
    const int64_t cut = str_utf8_error(values, (int64_t)strlen(values));
    if (cut) values[cut - 1] = 0;
    return err_prefix(e, "cell %s (%s%s)", cell->name, values, n < sizeof values ? "" : "...");
}

tare_status sweep_load_cell(const struct sweep *s, int64_t i, struct config *c, struct err *e)
{
    const char *const *settings = s->jobs[i].argv + 3;
    int64_t n = 0;
    while (settings[n] && strcmp(settings[n], "--resume") != 0) n++;
    tare_status status = config_load(c, s->file, settings, n, e);
    if (!status) status = settle(c, false, NULL, e);
    return status ? err_as_config(sweep_name_cell(s, i, e), e) : TARE_OK;
}

static tare_status make_job(struct sweep *s, int64_t i, struct err *e)
{
    struct sweep_job *job = &s->jobs[i];
    const struct sweep_cell *cell = &s->plan.cells[i];
    OWNED(config_free) struct config c = {0};
    job->lock[0] = job->lock[1] = -1;
    TRY(fs_join(job->dir, s->plan.dir, cell->name, e));
    TRY(make_arguments(s, cell, job, e));
    TRY(sweep_load_cell(s, i, &c, e));
    return take_config(s, job, &c, e) ? err_as_config(sweep_name_cell(s, i, e), e) : TARE_OK;
}

static tare_status option_int(const struct config *c, const char *key, int64_t least, int64_t *out, struct err *e)
{
    const char *text = sweep_option(c, key);
    *out = least;
    if (!text) return TARE_OK;
    if (str_to_int(text, out, e) || *out < least || *out > 4096)
        FAIL(e, TARE_E_CONFIG, "%s: sweep.%s = %s: must be from %lld to 4096", config_where(c, "sweep", key), key, text,
             (long long)least);
    return TARE_OK;
}

static tare_status read_options(struct sweep *s, const struct config *c, struct err *e)
{
    const char *slurm = sweep_option(c, "slurm");
    TRY(option_int(c, "threads", 1, &s->threads, e));
    TRY(option_int(c, "concurrent", 0, &s->concurrent, e));
    if (!s->concurrent) s->concurrent = limits_cores() / s->threads;
    if (!s->concurrent) s->concurrent = 1;
    return arena_strdup(&s->arena, slurm ? slurm : "", -1, (char **)(uintptr_t)&s->slurm, e);
}

tare_status sweep_open(struct sweep *s, const char *file, const char *const *overrides, int64_t n, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    *s = (struct sweep){.file = file, .overrides = overrides, .n_overrides = n};
    arena_init(&s->arena, "sweep");
    TRY(config_load(&c, file, overrides, n, e));
    config_use_log_level(&c);
    TRY(sweep_grid(&c, &s->arena, &s->plan, e));
    TRY(sweep_check_overrides(&s->plan, &c, overrides, n, e));
    TRY(read_options(s, &c, e));
    TRY(arena_new(&s->arena, &s->jobs, s->plan.n_cells + 1, e));
    for (int64_t i = 0; i < s->plan.n_cells; i++) TRY(make_job(s, i, e));
    char what[FS_PATH];
    snprintf(what, sizeof what, "%.3000s: sweep.metric", config_where(&c, "sweep", "metric"));
    return sweep_check_metric(s, what, s->plan.metric, e);
}

void sweep_close(struct sweep *s)
{
    if (s->jobs)
        for (int64_t i = 0; i < s->plan.n_cells; i++) sweep_unlock_shared(&s->jobs[i], true);
    sweep_db_close(s->db);
    str_free(&s->verifiers);
    arena_free(&s->arena);
    *s = (struct sweep){0};
}

tare_status sweep_begin(struct sweep *s, struct err *e)
{
    TRY(fs_mkdirs(s->plan.dir, e));
    TRY(sweep_plan_write(&s->plan, e));
    return sweep_db_open(s->plan.dir, &s->db, e);
}

/* ---------------------------------------------------------------- progress */

/* Checks that the run in the cell's folder was made with the cell's current configuration. */
static tare_status check_same(struct sweep *s, const struct sweep_job *job, struct err *e)
{
    char path[FS_PATH], difference[400];
    OWNED(config_free) struct config c = {0};
    OWNED(arena_free) struct arena a = {0};
    const char *lines;
    TRY(fs_join(path, job->dir, "config.ini", e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(config_load(&c, path, NULL, 0, e));
    arena_init(&a, "configuration");
    TRY(config_lines(&c, &a, &lines, e));
    if (strcmp(lines, job->config)) {
        first_difference(lines, job->config, difference, sizeof difference);
        FAIL(e, TARE_E_STATE, "%s was run with another configuration: %s; give the sweep another name, or remove %s", job->dir,
             difference, s->plan.dir);
    }
    return TARE_OK;
}

static tare_status find_progress(struct sweep *s, int64_t i, bool retry, struct err *e)
{
    struct sweep_job *job = &s->jobs[i];
    struct sweep_record known;
    char run[16], lock[FS_PATH];
    int64_t step;
    TRY(sweep_db_get(s->db, s->plan.cells[i].name, &s->arena, &known, e));
    job->attempts = known.attempts;
    job->error = known.error;
    TRY(check_same(s, job, e));
    TRY(fs_join(lock, job->dir, "lock", e));
    TRY(run_last_step(job->dir, &step, e));
    TRY(sweep_db_run_status(s->db, job->dir, run, e));
    if (sweep_is_locked(lock))
        job->state = SWEEP_ELSEWHERE;
    else if (step >= job->steps && (!strcmp(known.status, "done") || !strcmp(run, "done")))
        job->state = SWEEP_DONE;
    else if (!strcmp(known.status, "failed") && !retry)
        job->state = SWEEP_FAILED;
    else
        job->state = SWEEP_PENDING;
    return TARE_OK;
}

tare_status sweep_look(struct sweep *s, bool retry, struct err *e)
{
    TRY(sweep_db_check(s->db, retry, e));
    for (int64_t i = 0; i < s->plan.n_cells; i++) TRY(find_progress(s, i, retry, e));
    return TARE_OK;
}
