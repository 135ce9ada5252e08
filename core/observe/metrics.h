/* The numbers of each step, in three sinks: metrics.jsonl, TensorBoard events, and SQLite.
 *
 * metrics.jsonl is the record: one line a step, {"step":n,"reward/mean":...}, 17 significant digits, null for what is not finite.
 * The other two say the same and can be made from it at any time.
 *
 * Exactly once. A step s is recorded (metrics_step: JSONL, then TensorBoard, then SQLite), then synced (metrics_sync), and only then the
 * checkpoint of s becomes visible. A process may be killed anywhere:
 *   - within or after metrics_step, before the checkpoint of s is visible: the run continues from an earlier checkpoint c < s.
 *     metrics_open keeps the lines of metrics.jsonl up to c (a half-written last line goes with the rest) and makes the other two
 *     sinks from them anew; the steps c+1 .. s come again, with the same values.
 *   - after the checkpoint is visible: all lines up to s are on the disk, since they were synced before. Nothing is missing.
 *   - within metrics_open: metrics.jsonl is replaced in one rename, the events file likewise, the database in one transaction. Each is the
 *     old one or the new one, and the next metrics_open does the same work again from metrics.jsonl.
 * After the power is lost, the sinks may also lack their newest steps; those are newer than the newest checkpoint, for the same reason.
 *
 * A database that cannot be opened or written is a warning, and the run continues without it: the next metrics_open makes it whole.
 *
 * metrics_set may be called from any thread; the rest from one. Errors: TARE_E_IO naming the sink; a damaged line in the middle of
 * metrics.jsonl is TARE_E_CORRUPT with file:line.
 */
#ifndef TARE_CORE_OBSERVE_METRICS_H
#define TARE_CORE_OBSERVE_METRICS_H

#include "base/str.h"

#include <stdbool.h>

struct metrics;

struct metrics_options {
    const char *dir;               /* of the run; exists */
    const char *name;              /* of the run, for the database */
    const char *config, *manifest; /* texts for the database; may be NULL */
    bool tensorboard, database;    /* the database is runs.db in the folder that holds dir */
    int64_t keep;                  /* continue after this step; -1: nothing is kept */
};

tare_status metrics_open(const struct metrics_options *o, struct metrics **out, struct err *e);
void metrics_set(struct metrics *m, const char *name, double value);
/* Value set for the step that comes next (NaN: not set). */
double metrics_get(struct metrics *m, const char *name);
/* Records what was set, and forgets it. Steps must grow (TARE_E_STATE). */
tare_status metrics_step(struct metrics *m, int64_t step, struct err *e);
/* The line of metrics.jsonl that was recorded last. */
const struct str *metrics_line(const struct metrics *m);
tare_status metrics_sync(struct metrics *m, struct err *e);
/* status for the database's table of runs. m is gone in any case; NULL: nothing. */
tare_status metrics_close(struct metrics *m, const char *status, struct err *e);

/* Whether DIR/tensorboard says what DIR/metrics.jsonl says: else TARE_E_CORRUPT. TARE_E_NOT_FOUND: the run has no events. open: the run was killed or
 * is going on, so one of them may be ahead of the other. */
tare_status metrics_check_events(const char *dir, bool open, struct err *e);

#endif
