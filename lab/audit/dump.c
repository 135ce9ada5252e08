/* Reads the files of a dump and divides their rows into steps. */
#include "lab/audit/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 1000 };

/* ---------------------------------------------------------------- a file */

struct reading {
    struct audit *a;
    const char *path;
    struct audit_row *rows;
    int64_t n, capacity;
};

/* Returns the number after the last colon of "file:12". */
static int64_t line_of(const char *where)
{
    const char *colon = strrchr(where, ':');
    int64_t line = 0;
    return colon && !str_to_int(colon + 1, &line, NULL) ? line : 0;
}

static tare_status read_row(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct reading *r = ctx;
    struct audit *a = r->a;
    if (!a->mapped) {
        TRY(fields_choose(a->o, object, where, &a->run, &a->map, e));
        a->own = !strcmp(a->map.name, "tare");
        a->mapped = true;
        fields_unused(&a->map, object, a->unused, sizeof a->unused);
    }
    TRY(mem_grow((void **)&r->rows, &r->capacity, r->n + 1, sizeof *r->rows, e));
    struct audit_row *row = &r->rows[r->n];
    TRY(fields_read(&a->map, object, &a->step, row, e));
    if (!a->rows && !r->n && row->no_reward)
        FAIL(e, TARE_E_CONFIG, "%s: %s, the column of the reward, must be a number; name another with --field reward=COLUMN", where,
             a->map.column[AUDIT_REWARD]);
    row->line = line_of(where);
    json_incref(row->object);
    r->n++;
    a->had[AUDIT_STEP] = a->had[AUDIT_STEP] || row->step >= 0;
    a->had[AUDIT_ANSWER] = a->had[AUDIT_ANSWER] || row->answer.data;
    a->had[AUDIT_ADVANTAGE] = a->had[AUDIT_ADVANTAGE] || !isnan(row->advantage);
    a->had[AUDIT_WEIGHT] = a->had[AUDIT_WEIGHT] || !isnan(row->weight);
    a->had[AUDIT_LENGTH] = a->had[AUDIT_LENGTH] || row->length > 0;
    a->had[AUDIT_LOSS_SCALE] = a->had[AUDIT_LOSS_SCALE] || !isnan(row->loss_scale);
    return TARE_OK;
}

/* Returns the step in file names of trainers (12.jsonl, completions_00012.jsonl,
 * step-000012.jsonl), or -1. */
static int64_t number_in_name(const char *path)
{
    static const char *const BEFORE[] = {"completions_", "step-", ""};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof BEFORE / sizeof *BEFORE; i++) {
        const size_t n = strlen(BEFORE[i]), digits = strncmp(name, BEFORE[i], n) ? 0 : strspn(name + n, "0123456789");
        if (digits && digits < 16 && !strcmp(name + n + digits, ".jsonl")) return strtoll(name + n, NULL, 10);
    }
    return -1;
}

/* Finds the estimator's state for RUN/rollouts/step-N.jsonl: RUN/estimator/step-N.state. */
static tare_status find_state(const struct audit *a, const char *path, int64_t number, char *out, bool *there, struct err *e)
{
    char folder[FS_PATH], name[80];
    *there = false;
    if (!a->own || number < 0) return TARE_OK;
    fs_dirname(folder, path);
    snprintf(name, sizeof name, "../estimator/step-%06lld.state", (long long)number);
    TRY(fs_join(out, folder, name, e));
    *there = fs_exists(out);
    return TARE_OK;
}

static int by_row(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    if (x->row_line != y->row_line) return (x->row_line > y->row_line) - (x->row_line < y->row_line);
    return (x->column > y->column) - (x->column < y->column);
}

static json_t *text_or_null(const char *text)
{
    json_t *j = text ? json_string(text) : NULL;
    return j ? j : json_null();
}

static tare_status list_findings(struct audit *a, const char *path, struct err *e)
{
    if (a->n_findings) qsort(a->findings, (size_t)a->n_findings, sizeof *a->findings, by_row);
    for (int64_t i = 0; i < a->n_findings && json_array_size(a->list) < LISTED; i++) {
        const struct finding *f = &a->findings[i];
        json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:s}", "file", path, "row", (json_int_t)f->row_line, "step",
                              (json_int_t)f->step, "group", (json_int_t)f->group, "rollout", (json_int_t)f->rollout, "field",
                              audit_column_name(f->column), "says", text_or_null(f->says), "expected", text_or_null(f->expected),
                              "text", f->text);
        if (!o || json_array_append_new(a->list, o)) FAIL(e, TARE_E_NOMEM, "%s: no memory for the findings", path);
    }
    a->n_findings = 0;
    return TARE_OK;
}

/* Checks the steps of a file. A file with a step in its name is one step; in other files
 * consecutive rows with the same number are a step. */
static tare_status check_steps(struct audit *a, const struct reading *r, struct err *e)
{
    char state[FS_PATH];
    bool there;
    const int64_t in_name = number_in_name(r->path);
    for (int64_t at = 0; at < r->n;) {
        struct audit_step s = {.row = r->rows + at, .file = r->path, .in_name = in_name};
        while (at + s.n < r->n && (in_name >= 0 || r->rows[at + s.n].step == r->rows[at].step)) s.n++;
        s.number = in_name >= 0 ? in_name : r->rows[at].step;
        TRY(find_state(a, r->path, s.number, state, &there, e));
        s.state = there ? state : NULL;
        TRY(check_step(a, &s, e));
        a->steps++;
        a->groups += s.n_groups;
        a->rows += s.n;
        at += s.n;
    }
    return list_findings(a, r->path, e);
}

/* Checks a dump of a run, RUN/rollouts/step-N.jsonl, against the run's checksums. */
static tare_status check_written(struct audit *a, const char *path, struct err *e)
{
    char folder[FS_PATH], run[FS_PATH], name[64];
    const int64_t number = number_in_name(path);
    if (!a->own || number < 0) return TARE_OK;
    fs_dirname(folder, path);
    fs_dirname(run, folder);
    if (strcmp(a->written.run, run)) { /* several runs may be named */
        written_report(&a->written);
        written_close(&a->written);
        TRY(written_open(run, &a->written, e));
    }
    snprintf(name, sizeof name, "rollouts/step-%06lld.jsonl", (long long)number);
    return written_file(&a->written, name, e);
}

static tare_status read_file(struct audit *a, const char *path, struct err *e)
{
    struct reading r = {.a = a, .path = path};
    const char *end = strrchr(path, '.');
    if (end && (!strcmp(end, ".parquet") || !strcmp(end, ".pt")))
        FAIL(e, TARE_E_INVALID, "%s: must be JSON lines; convert it with tools/to_jsonl.py %s --rows -o %.*s.jsonl", path, path,
             (int)(end - path), path);
    FILE *f = fopen(path, "rb");
    if (!f) FAIL(e, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: %s", path, strerror(errno));
    tare_status status = json_each_line(f, path, read_row, &r, e);
    fclose(f);
    if (!status) status = check_written(a, path, e);
    if (!status) status = check_steps(a, &r, e);
    for (int64_t i = 0; i < r.n; i++) json_decref(r.rows[i].object);
    mem_free(r.rows);
    arena_reset(&a->step);
    a->files++;
    return status;
}

/* ---------------------------------------------------------------- folders */

struct names {
    struct arena arena;
    struct name {
        char *path;
        int64_t number;
    } * at;
    int64_t n, capacity;
};

static tare_status take_name(void *ctx, const char *folder, const char *name, struct err *e)
{
    struct names *l = ctx;
    char path[FS_PATH];
    const size_t n = strlen(name);
    if (n < 7 || strcmp(name + n - 6, ".jsonl") != 0) return TARE_OK;
    TRY(fs_join(path, folder, name, e));
    if (fs_check_regular(path, false, e)) return err_prefix(e, "%s: invalid file of rows", folder);
    TRY(mem_grow((void **)&l->at, &l->capacity, l->n + 1, sizeof *l->at, e));
    TRY(arena_strdup(&l->arena, path, -1, &l->at[l->n].path, e));
    l->at[l->n++].number = number_in_name(path);
    return TARE_OK;
}

static int by_number(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : strcmp(x->path, y->path);
}

static tare_status read_folder(struct audit *a, const char *path, struct err *e)
{
    char rollouts[FS_PATH];
    struct names l = {0};
    TRY(fs_join(rollouts, path, "rollouts", e));
    const char *folder = fs_is_dir(rollouts) ? rollouts : path;
    arena_init(&l.arena, "names of files");
    tare_status status = fs_each(folder, take_name, &l, e);
    if (!status && !l.n)
        status = err_set(e, TARE_E_NOT_FOUND, __FILE__, __LINE__,
                         "%s: no .jsonl file in it; convert Parquet files with tools/to_jsonl.py --rows", folder);
    if (!status) qsort(l.at, (size_t)l.n, sizeof *l.at, by_number);
    for (int64_t i = 0; !status && i < l.n; i++) status = read_file(a, l.at[i].path, e);
    mem_free(l.at);
    arena_free(&l.arena);
    return status;
}

tare_status dump_read(struct audit *a, struct err *e)
{
    for (int64_t i = 0; i < a->o->n_dumps; i++) TRY((fs_is_dir(a->o->dumps[i]) ? read_folder : read_file)(a, a->o->dumps[i], e));
    return TARE_OK;
}
