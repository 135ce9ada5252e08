/* Records the numbers of each step in three sinks: metrics.jsonl, TensorBoard events, and SQLite.
 *
 * metrics.jsonl is the record, with one line per step, {"step":n,"reward/mean":...}, in 17
 * significant digits and null for values that are not finite. The other two sinks hold the same
 * values and can be rebuilt from it at any time.
 *
 * Every step is recorded exactly once. A step s is recorded (metrics_step: JSONL, then TensorBoard,
 * then SQLite), then synced (metrics_sync), and only then does the checkpoint of s become visible.
 * A process may be killed at any point:
 *   - Before the checkpoint of s is visible: the run continues from an earlier checkpoint c < s.
 *     metrics_open keeps the lines of metrics.jsonl up to c, drops the others with a partial last
 *     line, and rebuilds the other sinks. Steps c+1 .. s are computed again, with the same values.
 *   - After the checkpoint is visible: all lines up to s were synced before. Nothing is missing.
 *   - Within metrics_open: metrics.jsonl and the events file are each replaced by one rename, the
 *     database in one transaction. Each is either old or new, and the next metrics_open repeats
 *     the work from metrics.jsonl.
 * After a power failure the sinks may lack their newest steps, which are newer than the newest
 * checkpoint for the same reason.
 *
 * If the database cannot be opened or written, the run warns and continues without it; the next
 * metrics_open rebuilds it.
 *
 * metrics_set may be called from any thread, the others from one. Errors: TARE_E_IO naming the
 * sink; TARE_E_CORRUPT with file:line for a damaged line in the middle of metrics.jsonl. */
#ifndef TARE_CORE_OBSERVE_METRICS_H
#define TARE_CORE_OBSERVE_METRICS_H

#include "base/str.h"

#include <stdbool.h>

struct metrics;

struct metrics_options {
    const char *dir;               /* existing folder of the run */
    const char *name;              /* of the run, for the database */
    const char *config, *manifest; /* texts for the database; may be NULL */
    bool tensorboard, database;    /* the database is runs.db in the parent of dir */
    int64_t keep;                  /* continue after this step; -1: keep nothing */
};

tare_status metrics_open(const struct metrics_options *o, struct metrics **out, struct err *e);
void metrics_set(struct metrics *m, const char *name, double value);
/* Returns the value set for the current step (NaN: not set). */
double metrics_get(struct metrics *m, const char *name);
/* Records the values that were set, and clears them. Steps must increase (TARE_E_STATE). */
tare_status metrics_step(struct metrics *m, int64_t step, struct err *e);
/* Returns the last recorded line of metrics.jsonl. */
const struct str *metrics_line(const struct metrics *m);
tare_status metrics_sync(struct metrics *m, struct err *e);
/* Closes the sinks. status: for the database's table of runs. Always frees m; no-op for NULL. */
tare_status metrics_close(struct metrics *m, const char *status, struct err *e);

/* Checks that DIR/tensorboard agrees with DIR/metrics.jsonl; TARE_E_CORRUPT if not.
 * TARE_E_NOT_FOUND: the run has no events. open: the run was killed or is running, so either may be
 * ahead. */
tare_status metrics_check_events(const char *dir, bool open, struct err *e);

#endif
