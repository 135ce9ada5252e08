/* The state of each cell in DIR/runs.db, beside the tables of the runs themselves. */
#include "sweep/sweep.h"

#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS cells (cell TEXT PRIMARY KEY, dir TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL,"
    " seconds REAL, value REAL, error TEXT, updated INTEGER NOT NULL)";

struct sweep_db {
    sqlite3 *db;
    char path[FS_PATH];
};

static tare_status refuse(const struct sweep_db *d, struct err *e)
{
    FAIL(e, TARE_E_IO, "%s: %s", d->path, d->db ? sqlite3_errmsg(d->db) : "no memory");
}

tare_status sweep_db_open(const char *dir, struct sweep_db **out, struct err *e)
{
    struct sweep_db *d;
    TRY(mem_new((int64_t)sizeof *d, (void **)&d, e));
    tare_status status = fs_join(d->path, dir, "runs.db", e);
    if (!status && sqlite3_open(d->path, &d->db) != SQLITE_OK) status = refuse(d, e);
    if (!status) {
        sqlite3_busy_timeout(d->db, 60000);
        if (sqlite3_exec(d->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(d->db, SCHEMA, NULL, NULL, NULL) != SQLITE_OK)
            status = refuse(d, e);
    }
    if (status) {
        sweep_db_close(d);
        d = NULL;
    }
    *out = d;
    return status;
}

void sweep_db_close(struct sweep_db *d)
{
    if (!d) return;
    sqlite3_close(d->db);
    mem_free(d);
}

tare_status sweep_db_set(struct sweep_db *d, const char *cell, const struct sweep_record *r, struct err *e)
{
    static const char SQL[] = "INSERT OR REPLACE INTO cells (cell, dir, status, attempts, seconds, value, error, updated)"
                              " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(d->db, SQL, -1, &s, NULL) != SQLITE_OK) return refuse(d, e);
    sqlite3_bind_text(s, 1, cell, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 2, r->dir, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 3, r->status, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 4, r->attempts);
    if (isfinite(r->seconds)) sqlite3_bind_double(s, 5, r->seconds);
    if (isfinite(r->value)) sqlite3_bind_double(s, 6, r->value);
    if (r->error) sqlite3_bind_text(s, 7, r->error, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)time(NULL));
    const tare_status result = sqlite3_step(s) == SQLITE_DONE ? TARE_OK : refuse(d, e);
    sqlite3_finalize(s);
    return result;
}

tare_status sweep_db_get(struct sweep_db *d, const char *cell, struct arena *a, struct sweep_record *out, struct err *e)
{
    sqlite3_stmt *s = NULL;
    tare_status result = TARE_OK;
    *out = (struct sweep_record){.seconds = NAN, .value = NAN};
    if (sqlite3_prepare_v2(d->db, "SELECT status, attempts, error FROM cells WHERE cell = ?1", -1, &s, NULL) != SQLITE_OK)
        return refuse(d, e);
    sqlite3_bind_text(s, 1, cell, -1, SQLITE_TRANSIENT);
    const int got = sqlite3_step(s);
    if (got == SQLITE_ROW) {
        snprintf(out->status, sizeof out->status, "%s", (const char *)sqlite3_column_text(s, 0));
        out->attempts = sqlite3_column_int64(s, 1);
        const char *text = (const char *)sqlite3_column_text(s, 2);
        if (text) result = arena_strdup(a, text, -1, (char **)(uintptr_t)&out->error, e);
    } else if (got != SQLITE_DONE) {
        result = refuse(d, e);
    }
    sqlite3_finalize(s);
    return result;
}

tare_status sweep_db_run_status(struct sweep_db *d, const char *dir, char status[16], struct err *e)
{
    sqlite3_stmt *s = NULL;
    char full[PATH_MAX];
    status[0] = 0;
    if (!realpath(dir, full)) return TARE_OK;
    if (sqlite3_prepare_v2(d->db, "SELECT status FROM runs WHERE dir = ?1", -1, &s, NULL) != SQLITE_OK)
        return TARE_OK; /* no run yet */
    sqlite3_bind_text(s, 1, full, -1, SQLITE_TRANSIENT);
    const int got = sqlite3_step(s);
    if (got == SQLITE_ROW) snprintf(status, 16, "%s", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return got == SQLITE_ROW || got == SQLITE_DONE ? TARE_OK : refuse(d, e);
}
