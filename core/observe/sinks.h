/* The two sinks that are rebuilt from metrics.jsonl. Internal to core/observe. */
#ifndef TARE_CORE_OBSERVE_SINKS_H
#define TARE_CORE_OBSERVE_SINKS_H

#include "base/str.h"

#include <stdbool.h>

struct metric_row { /* one step */
    int64_t step, n;
    double unix_time; /* seconds since 1970 */
    const char *const *names;
    const double *values; /* NaN and infinities are omitted */
};

/* ---- tensorboard.c: RUN/tensorboard/events.out.tfevents.*, TFRecord frames around protobuf
 * Events: length (u64), masked CRC32C of it (u32), data, masked CRC32C of data (u32), all
 * little-endian. */
/* Prints the first record of a file. */
tare_status events_header(struct str *out, double unix_time, struct err *e);
tare_status events_row(struct str *out, const struct metric_row *row, struct err *e);
/* Measures the header at the start of a file; TARE_E_CORRUPT if it is invalid. */
tare_status events_read_header(const struct str *file, const char *path, int64_t *size, struct err *e);
extern const char EVENTS_FILE[]; /* relative to the run folder */
uint32_t events_crc32c(const void *data, int64_t n);

struct events;
/* Replaces the file by `records` (the header and some rows) in one rename, and opens it for
 * appending. */
tare_status events_open(const char *run_dir, const struct str *records, struct events **out, struct err *e);
tare_status events_add(struct events *t, const struct metric_row *row, struct err *e);
tare_status events_sync(struct events *t, struct err *e);
void events_close(struct events *t);

/* ---- database.c: runs.db in the parent of the run folder, shared by all runs (WAL).
 *     runs(id, name, dir, status, step, started, updated, config, manifest)
 *     metrics(run, step, name, value) */
struct database;
/* Begins a transaction that removes this run's metrics. Rows are then added, and database_commit
 * ends it. */
struct database_run {
    const char *name, *config, *manifest;
    bool fresh; /* the run starts now, in a folder that may have been used before */
};
tare_status database_open(const char *run_dir, struct database_run run, struct database **out, struct err *e);
tare_status database_begin(struct database *d, struct err *e);
tare_status database_add(struct database *d, const struct metric_row *row, struct err *e);
tare_status database_commit(struct database *d, struct err *e);
tare_status database_status(struct database *d, const char *status, struct err *e);
void database_close(struct database *d);

/* Appends all of data to fd; a short write (a full disk) is an error. */
tare_status events_append_all(int fd, const char *path, const void *data, int64_t n, struct err *e);

#endif
