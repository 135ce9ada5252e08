/* `tare sweep`: one run for each cell of the grid in [sweep].
 *
 *   [sweep]
 *   name = study                  runs go to runs/NAME/CELL, their numbers to runs/NAME/runs.db; default: the file's name
 *   dir = runs/study              the folder itself, where it should be another
 *   threads = 1                   of each run
 *   concurrent = 0                runs at a time; 0: as many as the cores that this process may use are enough for
 *   metric = eval/reward          of the table, with :last :first :mean :max :min :tail after it (default last)
 *   baseline = estimator.plugin=grpo
 *   pair = a.x, a.y | b.z, c.w    lists that advance together (equal lengths); all others are crossed
 *   slurm = --partition=cpu --time=02:00:00
 *   estimator.plugin = grpo, bv_blend                   an axis: every key with a dot
 *   run.seed = 1..10
 *   estimator.bv_blend.temperature = log 0.01..1 x 5    5 values in equal ratios; without log: in equal differences
 *   train.steps = 100..300 step 100
 *   verifier.plugins = math | math, length              | separates values that hold commas
 *
 * A parameter of a plugin ([estimator.NAME] and so on) counts only in cells that run the plugin; cells that are equal then are one cell. An axis
 * that counts in no cell is refused, and so are values that an axis has twice. An axis without a value is off.
 * Cells are in the order of the seeds, so that a sweep that is cut short has all variants of some seeds.
 *
 * Runs are processes of this program. One is finished when its metrics hold train.steps and runs.db says so; a finished one is never
 * repeated, one that was killed continues from its last checkpoint, one that an earlier, killed sweep left running is waited for. What several
 * cells need first (the warm-started model, the codebook's file) is made by one of them while the others wait, across processes and machines
 * by a lock file beside it.
 *
 * Errors: TARE_E_CONFIG for the section (file:line), TARE_E_STATE when a finished cell was run with another configuration (naming the keys)
 * or another sweep works in the folder, TARE_E_CANCELLED after an interruption. Not thread-safe; signals are caught. */
#ifndef TARE_CORE_SWEEP_SWEEP_H
#define TARE_CORE_SWEEP_SWEEP_H

#include "base/fs.h"
#include "config/config.h"
#include "observe/run_data.h"
#include "observe/sweep_plan.h"

struct sweep_job { /* one cell, as the scheduler sees it */
    enum sweep_state { SWEEP_PENDING, SWEEP_RUNNING, SWEEP_ELSEWHERE, SWEEP_DONE, SWEEP_FAILED } state;
    char dir[FS_PATH];
    const char **argv; /* of the run; NULL-ended */
    int64_t steps, attempts;
    const char *shared[2]; /* what is made once: model.path with a warm start, the codebook's file; NULL: nothing */
    int lock[2];           /* -1: not held */
    int pid;
    double began;
    const char *config; /* its sorted "section.key = value" lines */
    const char *error;  /* the last line of a failed run */
};

struct sweep {
    struct arena arena;
    struct sweep_plan plan;
    const char *file, *slurm;
    const char *const *overrides;
    int64_t n_overrides, concurrent, threads;
    struct sweep_job *jobs; /* [plan.n_cells] */
    struct sweep_db *db;
    struct str verifiers; /* of all cells: what gives rewards of its own */
    bool metric_met;      /* sweep.metric was looked for in what a run has recorded, or needs not be */
};

/* met: a cell that reads the same files and opens the same verifiers was looked at before. */
typedef tare_status (*sweep_check)(const struct config *c, bool met, struct err *e);
struct sweep_mode {
    bool retry;                                       /* failed cells too */
    int64_t cell;                                     /* this one alone (a task of a Slurm array); -1: all */
    sweep_check check;                                /* NULL, or of each cell that is to run, before the first is started */
    bool (*enough)(void *ctx, const struct sweep *s); /* asked after each cell: true starts no more. NULL: all are run */
    void *ctx;
};

/* ---- grid.c: [sweep] of a loaded configuration as axes and cells. Pure. */
tare_status sweep_grid(const struct config *c, struct arena *a, struct sweep_plan *out, struct err *e);
/* TARE_E_CONFIG: an override "section.key=value" that an axis, or the sweep itself, decides in every cell. */
tare_status sweep_check_overrides(const struct sweep_plan *plan, const struct config *c, const char *const *overrides, int64_t n,
                                  struct err *e);
/* An option of [sweep] as text; NULL: not given. */
const char *sweep_option(const struct config *c, const char *key);
/* ---- values.c: "log 0.01..1 x 5" and so on as texts. where: for messages. */
tare_status sweep_values(const char *text, const char *where, struct arena *a, const char ***values, int64_t *n, struct err *e);

/* Shortest text of x; whole numbers without an exponent. buffer of 32 bytes. */
const char *sweep_number(char *buffer, double x);

/* ---- sweep.c */
/* Reads the configuration, makes every cell's own and checks it. Nothing is written. */
tare_status sweep_open(struct sweep *s, const char *file, const char *const *overrides, int64_t n, struct err *e);
void sweep_close(struct sweep *s);
/* A cell's configuration, settled. */
tare_status sweep_load_cell(const struct sweep *s, int64_t i, struct config *c, struct err *e);
/* Puts a cell and its values in front of a message; e->code. */
tare_status sweep_name_cell(const struct sweep *s, int64_t i, struct err *e);
/* check.c: check (NULL: nothing) of the cells from first to end - 1 that are to run. */
tare_status sweep_check_cells(struct sweep *s, int64_t first, int64_t end, sweep_check check, struct err *e);
/* Finds out how far each cell is: from its folder and the database. */
tare_status sweep_look(struct sweep *s, bool retry, struct err *e);
/* Warns of plugins whose files are not those that runs of the sweep were made with. */
tare_status sweep_warn_changed(const struct sweep *s, struct err *e);
/* Opens the database, writes sweep.json. */
tare_status sweep_begin(struct sweep *s, struct err *e);

/* ---- metric.c: TARE_E_CONFIG: no cell records such a metric (what a plugin reports may have any name), or it ends in an unknown ":word". what:
 * for messages. */
tare_status sweep_check_metric(const struct sweep *s, const char *what, const char *metric, struct err *e);
/* What plugins report has no list: whether sweep.metric is among it is known when a run has made a step. Then a name that it has not recorded is told, once. */
void sweep_look_metric(struct sweep *s, const struct sweep_job *job);

/* ---- scheduler.c */
tare_status sweep_run(struct sweep *s, const struct sweep_mode *mode, struct err *e);

/* ---- slurm.c: an sbatch script for the cells that are not done yet, as text; and its submission */
tare_status sweep_slurm_script(const struct sweep *s, struct str *out, struct err *e);
tare_status sweep_slurm_submit(struct sweep *s, struct err *e);

/* ---- suggest.c: lines of [sweep] for the parameters that a plugin declares sweepable */
tare_status sweep_suggest(const char *plugin, struct str *out, struct err *e);

/* ---- lock.c: what cells share */
bool sweep_is_locked(const char *file); /* another process holds flock on it */
/* All that job needs is there, or is this job's to make (locks held). false: another one is making it. */
tare_status sweep_lock_shared(struct sweep_job *job, bool *ready, struct err *e);
/* Lets go of the locks of what is there by now; all: of all. */
void sweep_unlock_shared(struct sweep_job *job, bool all);

/* ---- database.c: cells(cell, dir, status, attempts, seconds, value, error, updated, sum) in DIR/runs.db */
tare_status sweep_db_open(const char *dir, struct sweep_db **out, struct err *e);
void sweep_db_close(struct sweep_db *d);
struct sweep_record {
    char status[16];         /* "": there is no row */
    const char *dir, *error; /* error NULL: none */
    int64_t attempts;
    double seconds, value; /* NAN: none */
};
tare_status sweep_db_set(struct sweep_db *d, const char *cell, const struct sweep_record *r, struct err *e);
/* Whether each row is as it was written: TARE_E_CORRUPT names the cell of one that is not. retry: a warning, for then what a row says of a failure decides nothing. */
tare_status sweep_db_check(struct sweep_db *d, bool retry, struct err *e);
/* status, attempts and error; the error lies in the arena. */
tare_status sweep_db_get(struct sweep_db *d, const char *cell, struct arena *a, struct sweep_record *out, struct err *e);
/* What the run itself wrote last in the table of runs: "done", "running", ...; "" when nothing. */
tare_status sweep_db_run_status(struct sweep_db *d, const char *dir, char status[16], struct err *e);

/* Seconds until `open` cells are done, `concurrent` of them at a time: a cell takes `each`; begun: what those that run have done, each at most
 * that. */
double sweep_time_left(double each, int64_t open, double begun, int64_t concurrent);

#endif
