/* Reads a run's numbers back from metrics.jsonl.
 *
 * Results live in the given arena. A run that is being written may be read: a partial last line is
 * skipped. Errors: TARE_E_NOT_FOUND, TARE_E_IO with the path, TARE_E_CORRUPT with file:line.
 * Functions may be called from any thread, each with its own arena. */
#ifndef TARE_CORE_OBSERVE_RUN_DATA_H
#define TARE_CORE_OBSERVE_RUN_DATA_H

#include "base/arena.h"
#include "base/json.h"

#include <stdbool.h>

struct series { /* finite values of one metric, by increasing step */
    const char *name;
    double *step, *value; /* [n] */
    int64_t n;
};

struct run_data {
    const char *dir, *name; /* name: the folder's name */
    struct series *series;
    int64_t n_series, last_step; /* last_step -1: nothing recorded yet */
};

tare_status run_data_read(const char *dir, struct arena *a, struct run_data *out, struct err *e);
/* Returns NULL if the run has no such metric. */
const struct series *run_data_find(const struct run_data *r, const char *name);
/* Evaluates "eval/reward" with an optional suffix: ":last" (the default), ":first", ":mean",
 * ":max", ":min", ":tail" (mean over the last fifth of the values). NAN: no value. TARE_E_INVALID:
 * unknown suffix. */
tare_status run_data_value(const struct run_data *r, const char *metric, double *out, struct err *e);
/* Reads the last step in metrics.jsonl; -1: no such file or no complete line. */
tare_status run_last_step(const char *dir, int64_t *step, struct err *e);
/* Reads the metrics recorded before the first step, as an object owned by the caller; NULL:
 * metrics.jsonl begins with step 1. */
tare_status run_before(const char *dir, json_t **out, struct err *e);
bool run_data_is_run(const char *dir);
/* Checks that dir is a run folder. TARE_E_NOT_FOUND: it is not; TARE_E_IO: unknown. */
tare_status run_folder_check(const char *dir, struct err *e);
bool run_data_is_sweep(const char *dir);

#endif
