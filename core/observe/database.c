#include "base/fs.h"
#include "observe/sinks.h"

#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, dir TEXT NOT NULL UNIQUE, status TEXT NOT NULL, step INTEGER NOT NULL, started INTEGER NOT NULL, updated INTEGER NOT NULL, config TEXT, manifest TEXT);CREATE TABLE IF NOT EXISTS metrics (run INTEGER NOT NULL, step INTEGER NOT NULL, name TEXT NOT NULL, value REAL, PRIMARY KEY (run, step, name)) WITHOUT ROWID;";

struct database {
    sqlite3 *db;
    sqlite3_stmt *insert, *update;
    int64_t run;
    char path[FS_PATH];
};

static tare_status sqlite_error(const struct database *d, struct err *e)
{
    FAIL(e, TARE_E_IO, "%s: %s", d->path, d->db ? sqlite3_errmsg(d->db) : "out of memory");
}

static tare_status run_sql(struct database *d, const char *sql, struct err *e)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ? TARE_OK : sqlite_error(d, e);
}

static int bind_text(sqlite3_stmt *s, int i, const char *text)
{
    return text ? sqlite3_bind_text(s, i, text, -1, SQLITE_TRANSIENT) : sqlite3_bind_null(s, i);
}

/* Makes a run name unique: several runs of one file share run.name, so the folder's name is added
 * if another folder uses it. */
static tare_status unique_name(struct database *d, const char *dir, const char **name, char *buffer, size_t n, struct err *e)
{
    sqlite3_stmt *s = NULL;
    tare_status status = TARE_OK;
    const char *slash = strrchr(dir, '/');
    if (sqlite3_prepare_v2(d->db, "SELECT 1 FROM runs WHERE name = ?1 AND dir <> ?2", -1, &s, NULL) != SQLITE_OK ||
        bind_text(s, 1, *name) != SQLITE_OK || bind_text(s, 2, dir) != SQLITE_OK) {
        status = sqlite_error(d, e);
    } else {
        const int found = sqlite3_step(s);
        if (found == SQLITE_ROW && strcmp(*name, slash ? slash + 1 : dir)) {
            snprintf(buffer, n, "%.300s (%.300s)", *name, slash ? slash + 1 : dir);
            *name = buffer;
        } else if (found != SQLITE_ROW && found != SQLITE_DONE) {
            status = sqlite_error(d, e);
        }
    }
    sqlite3_finalize(s);
    return status;
}

/* Inserts the row of this run, or updates it if the folder was used before. */
static tare_status upsert_run(struct database *d, const char *dir, const struct database_run *run, struct err *e)
{
    static const char SQL[] =
        "INSERT INTO runs (name, dir, status, step, started, updated, config, manifest) VALUES (?1, ?2, 'running', -1, ?3, ?3, ?4, ?5) ON CONFLICT (dir) DO UPDATE SET name = ?1, status = 'running', step = -1, updated = ?3, config = ?4, manifest = ?5, started = CASE WHEN ?6 THEN ?3 ELSE started END RETURNING id";
    sqlite3_stmt *s = NULL;
    tare_status status = TARE_OK;
    if (sqlite3_prepare_v2(d->db, SQL, -1, &s, NULL) != SQLITE_OK || bind_text(s, 1, run->name) != SQLITE_OK ||
        bind_text(s, 2, dir) != SQLITE_OK || sqlite3_bind_int64(s, 3, (sqlite3_int64)time(NULL)) != SQLITE_OK ||
        bind_text(s, 4, run->config) != SQLITE_OK || bind_text(s, 5, run->manifest) != SQLITE_OK ||
        sqlite3_bind_int(s, 6, run->fresh) != SQLITE_OK || sqlite3_step(s) != SQLITE_ROW) {
        status = sqlite_error(d, e);
    } else {
        d->run = sqlite3_column_int64(s, 0);
        if (sqlite3_step(s) != SQLITE_DONE) status = sqlite_error(d, e);
    }
    sqlite3_finalize(s);
    return status;
}

static tare_status prepare_statements(struct database *d, struct err *e)
{
    static const char INSERT[] = "INSERT INTO metrics (run, step, name, value) VALUES (?1, ?2, ?3, ?4)";
    static const char UPDATE[] = "UPDATE runs SET step = max(step, ?2), updated = ?3, status = coalesce(?4, status) WHERE id = ?1";
    if (sqlite3_prepare_v2(d->db, INSERT, -1, &d->insert, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(d->db, UPDATE, -1, &d->update, NULL) != SQLITE_OK)
        return sqlite_error(d, e);
    return TARE_OK;
}

static tare_status open_file(struct database *d, struct err *e)
{
    if (sqlite3_open(d->path, &d->db) != SQLITE_OK) return sqlite_error(d, e);
    sqlite3_busy_timeout(d->db, 10000); /* milliseconds; other runs write too, briefly */
    TRY(run_sql(d, "PRAGMA journal_mode = WAL", e));
    /* rows lost in a power failure are restored from metrics.jsonl */
    TRY(run_sql(d, "PRAGMA synchronous = NORMAL", e));
    TRY(run_sql(d, "BEGIN IMMEDIATE", e));
    return run_sql(d, SCHEMA, e);
}

tare_status database_open(const char *run_dir, struct database_run run, struct database **out, struct err *e)
{
    *out = NULL;
    struct database *d = calloc(1, sizeof *d);
    if (!d) FAIL(e, TARE_E_NOMEM, "%s: out of memory for the database", run_dir);
    char folder[FS_PATH], full[PATH_MAX], sql[100];
    if (!realpath(run_dir, full)) snprintf(full, sizeof full, "%s", run_dir);
    fs_dirname(folder, full);
    tare_status status = fs_join(d->path, folder, "runs.db", e);
    char own[FS_PATH];
    if (!status) status = open_file(d, e);
    if (!status) status = unique_name(d, full, &run.name, own, sizeof own, e);
    if (!status) status = upsert_run(d, full, &run, e);
    if (!status) status = prepare_statements(d, e);
    snprintf(sql, sizeof sql, "DELETE FROM metrics WHERE run = %lld", (long long)d->run);
    if (!status) status = run_sql(d, sql, e);
    if (status) {
        database_close(d);
        return status;
    }
    *out = d;
    return TARE_OK;
}

tare_status database_begin(struct database *d, struct err *e)
{
    return run_sql(d, "BEGIN IMMEDIATE", e);
}

static tare_status insert_value(struct database *d, int64_t step, const char *name, double value, struct err *e)
{
    sqlite3_stmt *s = d->insert;
    sqlite3_reset(s);
    if (sqlite3_bind_int64(s, 1, d->run) != SQLITE_OK || sqlite3_bind_int64(s, 2, step) != SQLITE_OK ||
        bind_text(s, 3, name) != SQLITE_OK ||
        (isfinite(value) ? sqlite3_bind_double(s, 4, value) : sqlite3_bind_null(s, 4)) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_DONE)
        return sqlite_error(d, e);
    return TARE_OK;
}

static tare_status update_run(struct database *d, int64_t step, const char *status, struct err *e)
{
    sqlite3_stmt *s = d->update;
    sqlite3_reset(s);
    if (sqlite3_bind_int64(s, 1, d->run) != SQLITE_OK || sqlite3_bind_int64(s, 2, step) != SQLITE_OK ||
        sqlite3_bind_int64(s, 3, (sqlite3_int64)time(NULL)) != SQLITE_OK || bind_text(s, 4, status) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_DONE)
        return sqlite_error(d, e);
    sqlite3_reset(s);
    return TARE_OK;
}

tare_status database_add(struct database *d, const struct metric_row *row, struct err *e)
{
    for (int64_t i = 0; i < row->n; i++) TRY(insert_value(d, row->step, row->names[i], row->values[i], e));
    sqlite3_reset(d->insert);
    return update_run(d, row->step, NULL, e);
}

tare_status database_commit(struct database *d, struct err *e)
{
    return run_sql(d, "COMMIT", e);
}

tare_status database_status(struct database *d, const char *status, struct err *e)
{
    /* rolls back a step that failed halfway */
    if (!sqlite3_get_autocommit(d->db)) TRY(run_sql(d, "ROLLBACK", e));
    return update_run(d, -1, status, e);
}

/* Closing rolls back an unfinished transaction. */
void database_close(struct database *d)
{
    if (!d) return;
    sqlite3_finalize(d->insert);
    sqlite3_finalize(d->update);
    sqlite3_close(d->db);
    free(d);
}
