/* Recomputes steps of a run from its records, for `tare fork` and `tare reproduce`:
 *
 *   TRY(prefix_find(run, step, &p, e));       the newest complete checkpoint at or before `step`
 *   TRY(prefix_copy(&p, &parts, to, e));      makes `to` a run that was interrupted at p.step
 *   TRY(replay_train(to, step, &o, e));       trains it up to `step`, by `tare train` in a separate process
 *
 * Every random draw is a function of the seed, the step and the prompt, so the copy continues as
 * the run did, bit by bit. The run is only read. */
#ifndef TARE_LAB_REPLAY_REPLAY_H
#define TARE_LAB_REPLAY_REPLAY_H

#include "base/fs.h"
#include "config/config.h"

/* ---------------------------------------------------------------- prefix.c */

struct prefix {
    const char *run;
    int64_t step;             /* of the checkpoint; 0: none, start with the first step */
    char checkpoint[FS_PATH]; /* empty: none */
};
/* TARE_E_NOT_FOUND: the run is missing. TARE_E_CONFIG: the run changed its configuration after that
 * checkpoint, so its steps cannot be recomputed with the current one. */
tare_status prefix_find(const char *run, int64_t step, struct prefix *out, struct err *e);

struct prefix_parts {
    bool rollouts;              /* with the estimator's states of each step */
    const char *const *dropped; /* sections of training.state to omit, NULL-terminated */
};
/* to: an empty or missing folder. */
tare_status prefix_copy(const struct prefix *p, const struct prefix_parts *parts, const char *to, struct err *e);

/* ---------------------------------------------------------------- train.c */

struct replay_options {
    const char *const *keys; /* section.key=value; keys that do not change the training */
    int64_t n_keys;          /* at most 200 */
    const char *run;         /* that DIR is a copy of; NULL: DIR is where it belongs */
    /* for a comparison: no progress line, and no start model made by model.warm_start */
    bool checks;
};
/* Runs `tare train DIR --resume --until STEP` without the sinks that derive from metrics.jsonl, and
 * returns its error. */
tare_status replay_train(const char *dir, int64_t step, const struct replay_options *o, struct err *e);
/* Replaces this process by `tare train DIR --resume`, which removes the folder if it is refused
 * before its first step (TARE_FORKED, core/loop/train.c). Returns only if it cannot be started. */
tare_status replay_continue(const char *dir, struct err *e);

/* ---------------------------------------------------------------- fork.c */

struct fork {
    struct prefix from;
    int64_t step;
    char run[FS_PATH], to[FS_PATH];
    struct config before, after; /* of the run, and of the fork (settled) */
    /* sections of training.state that do not fit `after`, NULL-terminated */
    const char *dropped[5];
};
/* Prepares `tare fork RUN@STEP` and makes every check that is possible without writing. to: NULL
 * for RUN-fork-STEP. */
tare_status fork_open(struct fork *f, const char *run_at_step, const char *to, const char *const *overrides, int64_t n,
                      struct err *e);
/* Makes f->to, a run that was interrupted after f->step. f->to is either complete or absent. */
tare_status fork_make(const struct fork *f, struct err *e);
void fork_close(struct fork *f);

/* ---------------------------------------------------------------- check_files.c, reproduce.c */

struct reproduce_result {
    struct str text; /* a line for each finding, note and range of steps */
    int64_t faults, links;
    int64_t files, lines; /* intact files, and intact lines of metrics.jsonl */
    int64_t unlinked;     /* files and lines after the last link, without checksums */
    int64_t pruned;       /* checkpoints of the chain that checkpoint.keep removed */
    int64_t begins, last; /* the chain covers the steps after `begins` up to `last` */
    char head[40];        /* the last checksum, which covers the whole chain */
};
/* Checks all files of a run against its chain. TARE_E_NOT_FOUND: the run or its chain is
 * missing. */
tare_status reproduce_check_files(const char *run, struct reproduce_result *out, struct err *e);

struct reproduce_request {
    const char *run;
    int64_t first, last; /* steps to recompute; first 0: none */
    int64_t sample;      /* number of additional random steps */
    const char *const *keys;
    int64_t n_keys;
};
/* Recomputes steps, compares them with the run's records and adds the findings to out, which
 * reproduce_check_files has filled. */
tare_status reproduce_steps(const struct reproduce_request *q, struct reproduce_result *out, struct err *e);

#endif
