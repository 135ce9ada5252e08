/* `tare sweep`: one run for each cell of the grid in [sweep].
 *
 *   [sweep]
 *   name = study                runs go to runs/NAME/CELL, their numbers to runs/NAME/runs.db;
 *                               default: the name of the file
 *   dir = runs/study            folder of the runs; default: runs/NAME
 *   threads = 1                 threads of each run
 *   concurrent = 0              runs at a time; 0: the usable cores divided by threads
 *   metric = eval/reward        shown in the table; suffix :last (default) :first :mean :max :min :tail
 *   baseline = estimator.plugin=grpo
 *   pair = a.x, a.y | b.z, c.w  lists of equal length that advance together; others are crossed
 *   slurm = --partition=cpu --time=02:00:00
 *   estimator.plugin = grpo, bv_blend   an axis: every key with a dot
 *   run.seed = 1..10
 *   estimator.bv_blend.temperature = log 0.01..1 x 5
 *                               5 values in equal ratios; without log: in equal differences
 *   train.steps = 100..300 step 100
 *   verifier.plugins = math | math, length   | separates values that contain commas
 *
 * A parameter of a plugin ([estimator.NAME] and so on) counts only in cells that run the plugin;
 * cells that become equal are one cell. An axis that counts in no cell is refused, and so are
 * repeated values of an axis. An axis without a value is off. Cells are ordered by seed, so an
 * interrupted sweep has all variants of some seeds.
 *
 * Runs are processes of this program. A run is finished when its metrics hold train.steps and
 * runs.db marks it done. A finished run is never repeated, a killed one continues from its last
 * checkpoint, and one left running by an earlier, killed sweep is waited for. Files that several
 * cells need first (the warm-started model, the codebook) are made by one cell while the others
 * wait, coordinated across processes and machines by a lock file next to them.
 *
 * Errors: TARE_E_CONFIG for the section (file:line), TARE_E_STATE if a finished cell was run with
 * another configuration (naming the keys) or another sweep works in the folder, TARE_E_CANCELLED
 * after an interruption. Not thread-safe; signals are caught. */
#ifndef TARE_CORE_SWEEP_SWEEP_H
#define TARE_CORE_SWEEP_SWEEP_H

#include "base/fs.h"
#include "config/config.h"
#include "observe/run_data.h"
#include "observe/sweep_plan.h"

struct sweep_job { /* one cell, for the scheduler */
    enum sweep_state { SWEEP_PENDING, SWEEP_RUNNING, SWEEP_ELSEWHERE, SWEEP_DONE, SWEEP_FAILED } state;
    char dir[FS_PATH];
    const char **argv; /* arguments of the run; NULL-terminated */
    int64_t steps, attempts;
    /* files made once: model.path of a warm start, the codebook; NULL: none */
    const char *shared[2];
    int lock[2]; /* -1: not held */
    int pid;
    double began;
    const char *config; /* its sorted "section.key = value" lines */
    const char *error;  /* last error of a failed run */
};

struct sweep {
    struct arena arena;
    struct sweep_plan plan;
    const char *file, *slurm;
    const char *const *overrides;
    int64_t n_overrides, concurrent, threads;
    struct sweep_job *jobs; /* [plan.n_cells] */
    struct sweep_db *db;
    struct str verifiers; /* rewards of all cells: verifiers and penalties */
    bool metric_met;      /* sweep.metric was found in a run's records, or needs no check */
};

/* met: another cell with the same files and verifiers was already checked. */
typedef tare_status (*sweep_check)(const struct config *c, bool met, struct err *e);
struct sweep_mode {
    bool retry; /* also run failed cells */
    /* run only this cell (a task of a Slurm array); -1: all */
    int64_t cell;
    /* called for each cell to be run, before the first starts; may be NULL */
    sweep_check check;
    /* called after each cell; true starts no more cells; NULL: run all */
    bool (*enough)(void *ctx, const struct sweep *s);
    void *ctx;
};

/* ---- grid.c: Turns [sweep] of a loaded configuration into axes and cells. Has no side effects. */
tare_status sweep_grid(const struct config *c, struct arena *a, struct sweep_plan *out, struct err *e);
/* Refuses an axis over a parameter that holds a secret: its values would be in names and records. */
tare_status sweep_check_secrets(const struct sweep_plan *plan, const struct config *c, struct err *e);
/* TARE_E_CONFIG: an axis, or the sweep itself, sets the key of an override "section.key=value" in
 * every cell. */
tare_status sweep_check_overrides(const struct sweep_plan *plan, const struct config *c, const char *const *overrides, int64_t n,
                                  struct err *e);
/* Returns an option of [sweep] as text; NULL: not set. */
const char *sweep_option(const struct config *c, const char *key);
/* ---- values.c: Expands "log 0.01..1 x 5" and similar into texts. where: for messages. */
tare_status sweep_values(const char *text, const char *where, struct arena *a, const char ***values, int64_t *n, struct err *e);

/* Prints the shortest text of x, whole numbers without an exponent. buffer: 32 bytes. */
const char *sweep_number(char *buffer, double x);

/* ---- sweep.c */
/* Reads the configuration, and prepares and checks that of every cell. Writes nothing. */
tare_status sweep_open(struct sweep *s, const char *file, const char *const *overrides, int64_t n, struct err *e);
void sweep_close(struct sweep *s);
/* Loads and settles a cell's configuration. */
tare_status sweep_load_cell(const struct sweep *s, int64_t i, struct config *c, struct err *e);
/* Prefixes a message with a cell and its values. Returns e->code. */
tare_status sweep_name_cell(const struct sweep *s, int64_t i, struct err *e);
/* check.c: Calls check (may be NULL) for the cells from first to end - 1 that are to run. */
tare_status sweep_check_cells(struct sweep *s, int64_t first, int64_t end, sweep_check check, struct err *e);
/* Finds the progress of each cell from its folder and the database. */
tare_status sweep_look(struct sweep *s, bool retry, struct err *e);
/* Warns about plugins whose files changed since runs of the sweep were made. */
tare_status sweep_warn_changed(const struct sweep *s, struct err *e);
/* Opens the database and writes sweep.json. */
tare_status sweep_begin(struct sweep *s, struct err *e);

/* ---- metric.c: TARE_E_CONFIG: no cell records such a metric, or it ends in an unknown ":word".
 * (Plugins may report metrics of any name.) what: for messages. */
tare_status sweep_check_metric(const struct sweep *s, const char *what, const char *metric, struct err *e);
/* Checks sweep.metric against a run's records. The metrics of plugins are unknown until a run has
 * made a step; if the metric is missing then, warns once. */
void sweep_look_metric(struct sweep *s, const struct sweep_job *job);

/* ---- scheduler.c */
tare_status sweep_run(struct sweep *s, const struct sweep_mode *mode, struct err *e);

/* ---- slurm.c: Prints an sbatch script for the unfinished cells, and submits it. */
tare_status sweep_slurm_script(const struct sweep *s, struct str *out, struct err *e);
tare_status sweep_slurm_submit(struct sweep *s, struct err *e);

/* ---- suggest.c: Prints lines of [sweep] for the parameters that a plugin declares sweepable. */
tare_status sweep_suggest(const char *plugin, struct str *out, struct err *e);

/* ---- lock.c: Files shared by cells. */
bool sweep_is_locked(const char *file); /* by another process, with flock */
/* *ready: all files that job needs exist, or job holds the locks to make them. Otherwise another
 * job is making one. */
tare_status sweep_lock_shared(struct sweep_job *job, bool *ready, struct err *e);
/* Releases the locks of files that exist by now, or of all. */
void sweep_unlock_shared(struct sweep_job *job, bool all);

/* ---- database.c: cells(cell, dir, status, attempts, seconds, value, error, updated, sum) in
 * DIR/runs.db */
tare_status sweep_db_open(const char *dir, struct sweep_db **out, struct err *e);
void sweep_db_close(struct sweep_db *d);
struct sweep_record {
    char status[16];         /* "": no row */
    const char *dir, *error; /* error NULL: none */
    int64_t attempts;
    double seconds, value; /* NAN: none */
};
tare_status sweep_db_set(struct sweep_db *d, const char *cell, const struct sweep_record *r, struct err *e);
/* Checks the rows; TARE_E_CORRUPT names the cell of a damaged one. retry: only warns, because the
 * recorded failures are then ignored. */
tare_status sweep_db_check(struct sweep_db *d, bool retry, struct err *e);
/* Reads status, attempts and error. The error lives in the arena. */
tare_status sweep_db_get(struct sweep_db *d, const char *cell, struct arena *a, struct sweep_record *out, struct err *e);
/* Reads the status that the run itself wrote last into the table of runs: "done", "running", ...;
 * "" for none. */
tare_status sweep_db_run_status(struct sweep_db *d, const char *dir, char status[16], struct err *e);

/* Estimates the seconds until `open` cells are done, `concurrent` at a time. each: seconds per
 * cell. begun: seconds already spent on running cells, each at most that. */
double sweep_time_left(double each, int64_t open, double begun, int64_t concurrent);

#endif
