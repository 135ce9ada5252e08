/* Reads metrics.jsonl back into series. */
#include "observe/run_data.h"

#include "base/fs.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

enum { TABLE = 4096 }; /* slots of the name table; a power of two */

struct reading {
    struct arena *a;
    struct run_data *out;
    int64_t capacity, lines;
    int32_t slot[TABLE]; /* 1 + index into series */
    struct err *e;
};

tare_status run_before(const char *dir, json_t **out, struct err *e)
{
    char path[FS_PATH], where[FS_PATH + 8];
    struct fs_map m;
    *out = NULL;
    TRY(fs_join(path, dir, "metrics.jsonl", e));
    TRY(fs_map(path, &m, e));
    snprintf(where, sizeof where, "%s:1", path);
    const char *const text = (const char *)m.data;
    const char *const end = m.size ? memchr(text, '\n', (size_t)m.size) : NULL;
    const tare_status status = end ? json_parse(text, end - text, where, out, e) : TARE_OK;
    fs_unmap(&m);
    TRY(status);
    if (*out && json_int_or(*out, "step", -1) == 0) return TARE_OK;
    json_decref(*out);
    *out = NULL;
    return TARE_OK;
}

bool run_data_is_run(const char *dir)
{
    char path[FS_PATH];
    return (!fs_join(path, dir, "metrics.jsonl", NULL) && fs_exists(path)) ||
           (!fs_join(path, dir, "manifest.json", NULL) && fs_exists(path));
}

tare_status run_folder_check(const char *dir, struct err *e)
{
    static const char *const FILES[] = {"metrics.jsonl", "manifest.json", "chain.jsonl"};
    char path[FS_PATH];
    bool there[3];
    struct fs_map m;
    for (int i = 0; i < 3; i++) {
        TRY(fs_join(path, dir, FILES[i], e));
        TRY(fs_there(path, &there[i], e));
        /* opening a pipe would block, so only regular files are mapped */
        if (there[i]) TRY(fs_map(path, &m, e));
        if (there[i]) fs_unmap(&m);
    }
    if (!there[0] && !there[1]) FAIL(e, TARE_E_NOT_FOUND, "%s: no run found (no metrics.jsonl, no manifest.json)", dir);
    return TARE_OK;
}

bool run_data_is_sweep(const char *dir)
{
    char path[FS_PATH];
    return !fs_join(path, dir, "sweep.json", NULL) && fs_exists(path);
}

static tare_status grow_series(struct reading *r)
{
    struct series *larger;
    const int64_t capacity = r->capacity ? 2 * r->capacity : 64;
    if (capacity > TABLE / 2) FAIL(r->e, TARE_E_RANGE, "%s: more than %d metrics", r->out->dir, TABLE / 2);
    TRY(arena_new(r->a, &larger, capacity, r->e));
    for (int64_t i = 0; i < r->out->n_series; i++) larger[i] = r->out->series[i];
    r->out->series = larger;
    r->capacity = capacity;
    return TARE_OK;
}

/* Finds the series called name, or creates it with capacity for a value of every line. */
static tare_status series_of(struct reading *r, const char *name, struct series **out)
{
    struct run_data *d = r->out;
    uint64_t at = fs_hash(name, (int64_t)strlen(name), 0) & (TABLE - 1);
    for (; r->slot[at]; at = (at + 1) & (TABLE - 1)) {
        *out = &d->series[r->slot[at] - 1];
        if (!strcmp((*out)->name, name)) return TARE_OK;
    }
    if (d->n_series == r->capacity) TRY(grow_series(r));
    *out = &d->series[d->n_series++];
    r->slot[at] = (int32_t)d->n_series;
    TRY(arena_strdup(r->a, name, -1, (char **)(uintptr_t) & (*out)->name, r->e));
    TRY(arena_new_raw(r->a, &(*out)->step, r->lines, r->e));
    return arena_new_raw(r->a, &(*out)->value, r->lines, r->e);
}

static tare_status read_values(struct reading *r, const json_t *row, const char *where)
{
    const char *name;
    json_t *value;
    int64_t step;
    TRY(json_get_int(row, "step", where, &step, r->e));
    if (step <= r->out->last_step)
        FAIL(r->e, TARE_E_CORRUPT, "%s: step %lld after step %lld; steps must increase", where, (long long)step,
             (long long)r->out->last_step);
    r->out->last_step = step;
    json_object_foreach((json_t *)(uintptr_t)row, name, value)
    {
        struct series *s;
        if (!json_is_number(value) || !strcmp(name, "step")) continue;
        TRY(series_of(r, name, &s));
        s->step[s->n] = (double)step;
        s->value[s->n++] = json_number_value(value);
    }
    return TARE_OK;
}

static tare_status read_lines(struct reading *r, const struct str *text, const char *path)
{
    const char *at = text->data, *end = text->data + text->size;
    for (int64_t line = 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) break; /* partial last line */
        char where[FS_PATH + 32];
        json_t *row = NULL;
        snprintf(where, sizeof where, "%s:%lld", path, (long long)line);
        tare_status status = json_parse(at, newline - at, where, &row, r->e);
        if (!status) status = read_values(r, row, where);
        json_decref(row);
        if (status) return status;
        at = newline + 1;
    }
    return TARE_OK;
}

tare_status run_data_read(const char *dir, struct arena *a, struct run_data *out, struct err *e)
{
    char path[FS_PATH];
    *out = (struct run_data){.last_step = -1};
    TRY(arena_strdup(a, dir, -1, (char **)(uintptr_t)&out->dir, e));
    size_t n = strlen(out->dir);
    while (n > 1 && out->dir[n - 1] == '/') n--;
    size_t begin = n;
    while (begin && out->dir[begin - 1] != '/') begin--;
    TRY(arena_strdup(a, out->dir + begin, (int64_t)(n - begin), (char **)(uintptr_t)&out->name, e));
    TRY(fs_join(path, dir, "metrics.jsonl", e));
    if (!fs_exists(path)) {
        if (run_data_is_run(dir)) return TARE_OK; /* nothing recorded yet */
        FAIL(e, TARE_E_NOT_FOUND, "%s: no run found (no metrics.jsonl)", dir);
    }
    OWNED(str_free) struct str text = {0};
    OWNED(mem_free_at) struct reading *r = NULL;
    TRY(fs_read_all(path, &text, e));
    TRY(mem_new((int64_t)sizeof *r, (void **)&r, e));
    r->a = a;
    r->out = out;
    r->e = e;
    for (int64_t i = 0; i < text.size; i++) r->lines += text.data[i] == '\n';
    return read_lines(r, &text, path);
}

const struct series *run_data_find(const struct run_data *r, const char *name)
{
    for (int64_t i = 0; i < r->n_series; i++)
        if (!strcmp(r->series[i].name, name)) return &r->series[i];
    return NULL;
}

static double mean_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return n ? sum / (double)n : NAN;
}

tare_status run_data_value(const struct run_data *r, const char *metric, double *out, struct err *e)
{
    static const char *const HOW[] = {"last", "first", "mean", "max", "min", "tail"};
    char name[300];
    const char *colon = strrchr(metric, ':');
    int how = 0;
    snprintf(name, sizeof name, "%.*s", (int)(colon ? colon - metric : (long)strlen(metric)), metric);
    while (colon && how < 6 && strcmp(colon + 1, HOW[how])) how++;
    if (how == 6)
        FAIL(e, TARE_E_INVALID, "metric %s: unknown suffix ':%s'; allowed after the colon: last, first, mean, max, min, tail",
             metric, colon + 1);
    const struct series *s = run_data_find(r, name);
    *out = NAN;
    if (!s || !s->n) return TARE_OK;
    const double *x = s->value;
    const int64_t tail = (s->n + 4) / 5;
    *out = how == 1 ? x[0] : how == 2 ? mean_of(x, s->n) : how == 5 ? mean_of(x + s->n - tail, tail) : x[s->n - 1];
    if (how == 3 || how == 4)
        for (int64_t i = 0; i < s->n; i++)
            if (!i || (how == 3 ? x[i] > *out : x[i] < *out)) *out = x[i];
    return TARE_OK;
}

/* Skips a line left partial by a kill or torn by a crash of the machine: a resumed run handles
 * it. */
tare_status run_last_step(const char *dir, int64_t *step, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    *step = -1;
    TRY(fs_join(path, dir, "metrics.jsonl", e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(fs_read_all(path, &text, e));
    int64_t end = text.size;
    while (end > 0 && text.data[end - 1] != '\n') end--;
    while (end > 0) {
        int64_t begin = end - 1;
        while (begin > 0 && text.data[begin - 1] != '\n') begin--;
        OWNED(json_decrefp) json_t *row = NULL;
        struct err torn = {0};
        if (!json_parse(text.data + begin, end - 1 - begin, path, &row, &torn)) return json_get_int(row, "step", path, step, e);
        if (torn.code == TARE_E_NOMEM) {
            *e = torn;
            return torn.code;
        }
        end = begin;
    }
    return TARE_OK;
}
