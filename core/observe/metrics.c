#include "observe/metrics.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "observe/sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct names { /* metrics of the current step */
    char **name;
    double *value;
    int64_t n, capacity;
};

struct metrics {
    char path[FS_PATH]; /* metrics.jsonl */
    int fd;
    int64_t last; /* last recorded step; -1: none */
    struct names now;
    bool lost; /* metrics_set ran out of memory; reported by metrics_step */
    pthread_mutex_t lock;
    struct str line;
    struct events *events;
    struct database *database;
};

static double unix_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---------------------------------------------------------------- names */

static void names_clear(struct names *s)
{
    for (int64_t i = 0; i < s->n; i++) free(s->name[i]);
    s->n = 0;
}

static void names_free(struct names *s)
{
    names_clear(s);
    free(s->name);
    free(s->value);
    *s = (struct names){0};
}

static bool names_set(struct names *s, const char *name, double value)
{
    for (int64_t i = 0; i < s->n; i++) {
        if (strcmp(s->name[i], name)) continue;
        s->value[i] = value;
        return true;
    }
    if (s->n == s->capacity) {
        const int64_t wanted = s->capacity ? 2 * s->capacity : 64;
        char **names = realloc(s->name, (size_t)wanted * sizeof *names);
        if (names) s->name = names;
        double *values = realloc(s->value, (size_t)wanted * sizeof *values);
        if (values) s->value = values;
        if (!names || !values) return false;
        s->capacity = wanted;
    }
    if (!(s->name[s->n] = strdup(name))) return false;
    s->value[s->n++] = value;
    return true;
}

void metrics_set(struct metrics *m, const char *name, double value)
{
    pthread_mutex_lock(&m->lock);
    if (!names_set(&m->now, name, value)) m->lost = true;
    pthread_mutex_unlock(&m->lock);
}

double metrics_get(struct metrics *m, const char *name)
{
    double value = NAN;
    pthread_mutex_lock(&m->lock);
    for (int64_t i = 0; i < m->now.n; i++)
        if (!strcmp(m->now.name[i], name)) value = m->now.value[i];
    pthread_mutex_unlock(&m->lock);
    return value;
}

/* ---------------------------------------------------------------- metrics.jsonl */

static tare_status print_line(int64_t step, const struct names *s, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "{\"step\":%lld", (long long)step));
    for (int64_t i = 0; i < s->n; i++) {
        json_t *name = json_string(s->name[i]);
        if (!name) FAIL(e, TARE_E_INVALID, "metric '%s': its name is not valid UTF-8", s->name[i]);
        tare_status status = str_add(out, ",", 1, e);
        if (!status) status = json_print(name, out, e);
        json_decref(name);
        TRY(status);
        TRY(isfinite(s->value[i]) ? str_addf(out, e, ":%.17g", s->value[i]) : str_add(out, ":null", -1, e));
    }
    return str_add(out, "}\n", 2, e);
}

/* Parses a line of metrics.jsonl into step, names and values. */
static tare_status parse_line(const char *text, int64_t n, const char *where, int64_t *step, struct names *s, struct err *e)
{
    OWNED(json_decrefp) json_t *o = NULL;
    names_clear(s);
    tare_status status = json_parse(text, n, where, &o, e);
    if (!status && !json_is_object(o)) status = err_set(e, TARE_E_CORRUPT, __FILE__, __LINE__, "%s: must be a JSON object", where);
    if (!status) status = json_get_int(o, "step", where, step, e);
    if (status) {
        if (e) e->code = TARE_E_CORRUPT;
        return TARE_E_CORRUPT;
    }
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value)
    {
        if (!strcmp(key, "step")) continue;
        if (!names_set(s, key, json_is_number(value) ? json_number_value(value) : NAN))
            FAIL(e, TARE_E_NOMEM, "%s: out of memory", where);
    }
    return TARE_OK;
}

static struct metric_row row_of(int64_t step, const struct names *s)
{
    struct metric_row row = {.step = step, .n = s->n, .names = (const char *const *)s->name, .values = s->value, .unix_time = 0};
    for (int64_t i = 0; i < s->n; i++)
        if (!strcmp(s->name[i], "time/unix") && isfinite(s->value[i])) row.unix_time = s->value[i];
    return row;
}

/* Continues without the database, which can be rebuilt from metrics.jsonl at any time: a full disk,
 * a persistent lock or a path too long for SQLite does not end the run. */
static void drop_database(struct metrics *m, const struct err *why)
{
    log_warn(
        "%s; this run continues without the database; metrics.jsonl has every step, and --resume rebuilds the database from it",
        why->message);
    database_close(m->database);
    m->database = NULL;
}

static void add_to_database(struct metrics *m, const struct metric_row *row)
{
    struct err why = {0};
    if (m->database && database_add(m->database, row, &why)) drop_database(m, &why);
}

/* Feeds the lines with step <= keep to the open sinks. *kept: bytes of these lines. The last line
 * may be partial (no newline, or invalid JSON) if a process was killed. A line after that of step
 * keep is written again anyway, so it may be torn by a crash of the machine. Any other bad line is
 * an error. */
static tare_status replay_lines(struct metrics *m, const struct str *text, int64_t keep, struct str *records, int64_t *kept,
                                struct err *e)
{
    OWNED(names_free) struct names s = {0};
    int64_t number = 1;
    *kept = 0;
    for (const char *p = text->data, *end = p + text->size; p < end; number++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (!newline) break;
        char where[FS_PATH + 32];
        snprintf(where, sizeof where, "%s:%lld", m->path, (long long)number);
        int64_t step = 0;
        const tare_status status = parse_line(p, newline - p, where, &step, &s, e);
        if (status == TARE_E_CORRUPT && (newline + 1 == end || m->last >= keep)) break;
        TRY(status);
        if (step > keep) break;
        if (step <= m->last)
            FAIL(e, TARE_E_CORRUPT, "%s: step %lld after step %lld; remove the line", where, (long long)step, (long long)m->last);
        const struct metric_row row = row_of(step, &s);
        if (records) TRY(events_row(records, &row, e));
        add_to_database(m, &row);
        m->last = step;
        p = newline + 1;
        *kept = p - text->data;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- opening */

static tare_status cut_and_open(struct metrics *m, const struct str *text, int64_t kept, struct err *e)
{
    if (!fs_exists(m->path) || kept != text->size) TRY(fs_write_atomic(m->path, text->data, kept, e));
    m->fd = open(m->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (m->fd < 0) FAIL(e, TARE_E_IO, "%s: %s", m->path, strerror(errno));
    return TARE_OK;
}

static tare_status open_sinks(struct metrics *m, const struct metrics_options *o, const struct str *text, struct str *records,
                              struct err *e)
{
    int64_t kept = 0;
    struct err why = {0};
    const struct database_run run = {o->name, o->config, o->manifest, o->keep < 0};
    if (o->database && database_open(o->dir, run, &m->database, &why)) drop_database(m, &why);
    if (o->tensorboard) TRY(events_header(records, unix_seconds(), e));
    if (text->size && o->keep >= 0) TRY(replay_lines(m, text, o->keep, o->tensorboard ? records : NULL, &kept, e));
    if (o->keep > 0 && m->last < o->keep)
        log_warn("%s: the last recorded step is %lld, but the run continues after step %lld", m->path, (long long)m->last,
                 (long long)o->keep);
    TRY(cut_and_open(m, text, kept, e));
    if (o->tensorboard) TRY(events_open(o->dir, records, &m->events, e));
    if (m->database && database_commit(m->database, &why)) drop_database(m, &why);
    return TARE_OK;
}

static void destroy_metrics(struct metrics *m)
{
    if (m->fd >= 0) close(m->fd);
    events_close(m->events);
    database_close(m->database);
    names_free(&m->now);
    str_free(&m->line);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

tare_status metrics_open(const struct metrics_options *o, struct metrics **out, struct err *e)
{
    *out = NULL;
    struct metrics *m = calloc(1, sizeof *m);
    if (!m) FAIL(e, TARE_E_NOMEM, "%s: out of memory for metrics", o->dir);
    m->fd = -1;
    m->last = -1;
    pthread_mutex_init(&m->lock, NULL);
    OWNED(str_free) struct str text = {0}, records = {0};
    tare_status status = fs_join(m->path, o->dir, "metrics.jsonl", e);
    if (!status && fs_exists(m->path)) status = fs_read_all(m->path, &text, e);
    if (!status) status = open_sinks(m, o, &text, &records, e);
    if (status) {
        destroy_metrics(m);
        return status;
    }
    *out = m;
    return TARE_OK;
}

/* ---------------------------------------------------------------- a step */

static tare_status record_step(struct metrics *m, int64_t step, struct err *e)
{
    if (m->lost) FAIL(e, TARE_E_NOMEM, "out of memory for the metrics of step %lld", (long long)step);
    if (step <= m->last)
        FAIL(e, TARE_E_STATE, "metrics of step %lld after those of step %lld", (long long)step, (long long)m->last);
    if (!names_set(&m->now, "time/unix", unix_seconds()))
        FAIL(e, TARE_E_NOMEM, "out of memory for the metrics of step %lld", (long long)step);
    str_clear(&m->line);
    TRY(print_line(step, &m->now, &m->line, e));
    /* Set before the sinks run: a line that may be partly written must not be followed by another
     * of this step. */
    m->last = step;
    TRY(fs_check_open(m->fd, m->path, e));
    TRY(events_append_all(m->fd, m->path, m->line.data, m->line.size, e));
    const struct metric_row row = row_of(step, &m->now);
    if (m->events) TRY(events_add(m->events, &row, e));
    struct err why = {0};
    if (m->database && database_begin(m->database, &why)) drop_database(m, &why);
    add_to_database(m, &row);
    if (m->database && database_commit(m->database, &why)) drop_database(m, &why);
    return TARE_OK;
}

tare_status metrics_step(struct metrics *m, int64_t step, struct err *e)
{
    pthread_mutex_lock(&m->lock);
    const tare_status status = record_step(m, step, e);
    names_clear(&m->now);
    pthread_mutex_unlock(&m->lock);
    return status;
}

const struct str *metrics_line(const struct metrics *m)
{
    return &m->line;
}

tare_status metrics_sync(struct metrics *m, struct err *e)
{
    if (fsync(m->fd)) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", m->path, strerror(errno));
    return m->events ? events_sync(m->events, e) : TARE_OK;
}

tare_status metrics_close(struct metrics *m, const char *status, struct err *e)
{
    if (!m) return TARE_OK;
    const tare_status result = metrics_sync(m, e);
    struct err why = {0};
    if (m->database && database_status(m->database, status, &why)) drop_database(m, &why);
    destroy_metrics(m);
    return result;
}

/* ---------------------------------------------------------------- checking */

/* Builds the expected TensorBoard events from the rows of metrics.jsonl. */
static tare_status expected_events(const char *dir, struct str *records, struct err *e)
{
    struct metrics m = {.last = -1};
    OWNED(str_free) struct str text = {0};
    int64_t kept;
    TRY(fs_join(m.path, dir, "metrics.jsonl", e));
    if (fs_exists(m.path)) TRY(fs_read_all(m.path, &text, e));
    if (text.size) TRY(replay_lines(&m, &text, INT64_MAX, records, &kept, e));
    return TARE_OK;
}

tare_status metrics_check_events(const char *dir, bool open, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str records = {0}, file = {0};
    int64_t head = 0;
    TRY(fs_join(path, dir, EVENTS_FILE, e));
    TRY(fs_read_all(path, &file, e));
    TRY(expected_events(dir, &records, e));
    TRY(events_read_header(&file, path, &head, e));
    const int64_t n = file.size - head, same = n < records.size ? n : records.size;
    if ((n != records.size && !open) || (same && memcmp(file.data + head, records.data, (size_t)same)))
        FAIL(e, TARE_E_CORRUPT, "%s: differs from metrics.jsonl", EVENTS_FILE);
    return TARE_OK;
}
