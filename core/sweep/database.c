/* The state of each cell in DIR/runs.db, next to the tables of the runs.
 *
 * SQLite pages have no checksums, so a flipped bit would be read as it is. A row of `cells` decides
 * what a sweep runs, so it has a checksum: XXH3 of its values as text. */
#include "sweep/sweep.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS cells (cell TEXT PRIMARY KEY, dir TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, seconds REAL, value REAL, error TEXT, updated INTEGER NOT NULL, sum TEXT)";

struct sweep_db {
    sqlite3 *db;
    char path[FS_PATH];
};

static tare_status sqlite_error(const struct sweep_db *d, struct err *e)
{
    FAIL(e, TARE_E_IO, "%s: %s", d->path, d->db ? sqlite3_errmsg(d->db) : "out of memory");
}

static tare_status execute_sql(const struct sweep_db *d, const char *sql, struct err *e)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ? TARE_OK : sqlite_error(d, e);
}

tare_status sweep_db_open(const char *dir, struct sweep_db **out, struct err *e)
{
    struct sweep_db *d;
    TRY(mem_new((int64_t)sizeof *d, (void **)&d, e));
    tare_status status = fs_join(d->path, dir, "runs.db", e);
    if (!status && sqlite3_open(d->path, &d->db) != SQLITE_OK) status = sqlite_error(d, e);
    if (!status) {
        sqlite3_busy_timeout(d->db, 60000);
        status = execute_sql(d, "PRAGMA journal_mode = WAL", e);
    }
    if (!status) status = execute_sql(d, SCHEMA, e);
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

/* ---------------------------------------------------------------- checksums */

/* Columns of a row, in the order of VALUES. */
#define VALUES "cell, dir, status, attempts, seconds, value, error, updated"
enum { V_CELL, V_DIR, V_STATUS, V_ATTEMPTS, V_SECONDS, V_VALUE, V_ERROR, V_UPDATED, N_VALUES, V_SUM = N_VALUES, V_ROWID };

static tare_status add_value(sqlite3_stmt *s, int i, struct str *out, struct err *e)
{
    uint64_t bits;
    double x;
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
        return str_addf(out, e, "i%lld\n", (long long)sqlite3_column_int64(s, i));
    case SQLITE_FLOAT:
        x = sqlite3_column_double(s, i);
        memcpy(&bits, &x, sizeof bits);
        return str_addf(out, e, "r%016llx\n", (unsigned long long)bits);
    case SQLITE_NULL:
        return str_add(out, "n\n", 2, e);
    default:
        TRY(str_addf(out, e, "t%d:", sqlite3_column_bytes(s, i)));
        TRY(str_add(out, (const char *)sqlite3_column_text(s, i), sqlite3_column_bytes(s, i), e));
        return str_add(out, "\n", 1, e);
    }
}

/* Computes the checksum of the current row of s. */
static tare_status row_checksum(sqlite3_stmt *s, char sum[17], struct err *e)
{
    OWNED(str_free) struct str text = {0};
    for (int i = 0; i < N_VALUES; i++) TRY(add_value(s, i, &text, e));
    snprintf(sum, 17, "%016llx", (unsigned long long)fs_hash(text.data, text.size, 0));
    return TARE_OK;
}

static tare_status row_is_whole(sqlite3_stmt *s, bool *whole, struct err *e)
{
    char sum[17];
    const char *was = (const char *)sqlite3_column_text(s, V_SUM);
    TRY(row_checksum(s, sum, e));
    *whole = was && !strcmp(was, sum);
    return TARE_OK;
}

static tare_status remove_row(const struct sweep_db *d, int64_t rowid, struct err *e)
{
    char sql[64];
    snprintf(sql, sizeof sql, "DELETE FROM cells WHERE rowid = %lld", (long long)rowid);
    return execute_sql(d, sql, e);
}

/* Checks a row. retry: removes a damaged row, even of a cell outside this plan; the cell writes it
 * again. */
static tare_status check_cell_row(const struct sweep_db *d, sqlite3_stmt *s, bool retry, struct err *e)
{
    bool whole;
    const char *cell = (const char *)sqlite3_column_text(s, V_CELL);
    TRY(row_is_whole(s, &whole, e));
    if (whole) return TARE_OK;
    if (retry)
        log_warn(
            "%s: the row of cell %s is damaged (its checksum does not match) and was removed; the state of the cell is read from its folder",
            d->path, cell ? cell : "?");
    if (retry) return remove_row(d, sqlite3_column_int64(s, V_ROWID), e);
    FAIL(
        e, TARE_E_CORRUPT,
        "%s: the row of cell %s in the table cells is damaged (its checksum does not match), so it is unknown whether the cell failed; --retry reads the state from its folder, and runs the cell again unless it is done",
        d->path, cell ? cell : "?");
}

/* Checks that the index agrees with the rows; it has no checksum. */
static tare_status check_index(const struct sweep_db *d, struct err *e)
{
    sqlite3_stmt *s = NULL;
    tare_status status = TARE_OK;
    if (sqlite3_prepare_v2(d->db, "PRAGMA integrity_check(cells)", -1, &s, NULL) != SQLITE_OK) return sqlite_error(d, e);
    const int got = sqlite3_step(s);
    const char *text = got == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (text && strcmp(text, "ok"))
        status = err_set(e, TARE_E_CORRUPT, __FILE__, __LINE__,
                         "%s: is damaged: %s; move it away: finished cells are recognised by their folders and run no step again",
                         d->path, text);
    else if (!text)
        status = sqlite_error(d, e);
    sqlite3_finalize(s);
    return status;
}

tare_status sweep_db_check(struct sweep_db *d, bool retry, struct err *e)
{
    sqlite3_stmt *s = NULL;
    tare_status status = check_index(d, e);
    if (status) return status;
    if (sqlite3_prepare_v2(d->db, "SELECT " VALUES ", sum, rowid FROM cells NOT INDEXED", -1, &s, NULL) != SQLITE_OK)
        return sqlite_error(d, e);
    int got;
    while ((got = sqlite3_step(s)) == SQLITE_ROW && !status) status = check_cell_row(d, s, retry, e);
    if (!status && got != SQLITE_DONE) status = sqlite_error(d, e);
    sqlite3_finalize(s);
    return status;
}

/* Stores the checksum of a row that was just written, computed from the values that SQLite
 * returns. */
static tare_status write_checksum(struct sweep_db *d, const char *cell, struct err *e)
{
    sqlite3_stmt *row = NULL, *s = NULL;
    char sum[17];
    tare_status status = TARE_OK;
    if (sqlite3_prepare_v2(d->db, "SELECT " VALUES " FROM cells WHERE cell = ?1", -1, &row, NULL) != SQLITE_OK ||
        sqlite3_bind_text(row, 1, cell, -1, SQLITE_TRANSIENT) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
        status = sqlite_error(d, e);
    if (!status) status = row_checksum(row, sum, e);
    sqlite3_finalize(row);
    if (status) return status;
    if (sqlite3_prepare_v2(d->db, "UPDATE cells SET sum = ?2 WHERE cell = ?1", -1, &s, NULL) != SQLITE_OK ||
        sqlite3_bind_text(s, 1, cell, -1, SQLITE_TRANSIENT) != SQLITE_OK ||
        sqlite3_bind_text(s, 2, sum, -1, SQLITE_TRANSIENT) != SQLITE_OK || sqlite3_step(s) != SQLITE_DONE)
        status = sqlite_error(d, e);
    sqlite3_finalize(s);
    return status;
}

/* ---------------------------------------------------------------- rows */

static tare_status write_row(struct sweep_db *d, const char *cell, const struct sweep_record *r, struct err *e)
{
    static const char SQL[] = "INSERT OR REPLACE INTO cells (" VALUES ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(d->db, SQL, -1, &s, NULL) != SQLITE_OK) return sqlite_error(d, e);
    sqlite3_bind_text(s, 1, cell, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 2, r->dir, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 3, r->status, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 4, r->attempts);
    if (isfinite(r->seconds)) sqlite3_bind_double(s, 5, r->seconds);
    if (isfinite(r->value)) sqlite3_bind_double(s, 6, r->value);
    if (r->error) sqlite3_bind_text(s, 7, r->error, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)time(NULL));
    const tare_status result = sqlite3_step(s) == SQLITE_DONE ? TARE_OK : sqlite_error(d, e);
    sqlite3_finalize(s);
    return result;
}

tare_status sweep_db_set(struct sweep_db *d, const char *cell, const struct sweep_record *r, struct err *e)
{
    TRY(execute_sql(d, "BEGIN IMMEDIATE", e));
    tare_status status = write_row(d, cell, r, e);
    if (!status) status = write_checksum(d, cell, e);
    if (!status) return execute_sql(d, "COMMIT", e);
    sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* Reads a row. A damaged row, which sweep_db_check has reported, counts as missing. */
static tare_status read_row(sqlite3_stmt *s, struct arena *a, struct sweep_record *out, struct err *e)
{
    bool whole;
    const char *text = (const char *)sqlite3_column_text(s, V_ERROR);
    TRY(row_is_whole(s, &whole, e));
    if (!whole) return TARE_OK;
    snprintf(out->status, sizeof out->status, "%s", (const char *)sqlite3_column_text(s, V_STATUS));
    out->attempts = sqlite3_column_int64(s, V_ATTEMPTS);
    return text ? arena_strdup(a, text, -1, (char **)(uintptr_t)&out->error, e) : TARE_OK;
}

tare_status sweep_db_get(struct sweep_db *d, const char *cell, struct arena *a, struct sweep_record *out, struct err *e)
{
    sqlite3_stmt *s = NULL;
    tare_status result = TARE_OK;
    *out = (struct sweep_record){.seconds = NAN, .value = NAN};
    if (sqlite3_prepare_v2(d->db, "SELECT " VALUES ", sum FROM cells NOT INDEXED WHERE cell = ?1", -1, &s, NULL) != SQLITE_OK)
        return sqlite_error(d, e);
    sqlite3_bind_text(s, 1, cell, -1, SQLITE_TRANSIENT);
    const int got = sqlite3_step(s);
    if (got == SQLITE_ROW)
        result = read_row(s, a, out, e);
    else if (got != SQLITE_DONE)
        result = sqlite_error(d, e);
    sqlite3_finalize(s);
    return result;
}

tare_status sweep_db_run_status(struct sweep_db *d, const char *dir, char status[16], struct err *e)
{
    sqlite3_stmt *s = NULL;
    char full[PATH_MAX];
    status[0] = 0;
    if (!realpath(dir, full)) {
        if (!fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", dir, strerror(errno));
        return TARE_OK;
    }
    if (sqlite3_prepare_v2(d->db, "SELECT status FROM runs WHERE dir = ?1", -1, &s, NULL) != SQLITE_OK)
        return TARE_OK; /* no run exists yet */
    sqlite3_bind_text(s, 1, full, -1, SQLITE_TRANSIENT);
    const int got = sqlite3_step(s);
    if (got == SQLITE_ROW) snprintf(status, 16, "%s", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return got == SQLITE_ROW || got == SQLITE_DONE ? TARE_OK : sqlite_error(d, e);
}
