/* A run's beginning, made again from its records: for a run that branches off, and for one that is checked.
 *
 *   TRY(prefix_find(run, step, &p, e));       the newest whole checkpoint at most at `step`
 *   TRY(prefix_copy(&p, &what, to, e));       `to` is then a run that was interrupted at p.step
 *   TRY(replay_train(to, step, e));           the steps from there to `step`, by `tare train` as a process of its own
 *
 * Every draw is a function of the seed, the step and the prompt, so the copy goes on as the run did, to the bit. The run is only read. */
#ifndef TARE_LAB_REPLAY_REPLAY_H
#define TARE_LAB_REPLAY_REPLAY_H

#include "base/fs.h"
#include "config/config.h"

/* ---------------------------------------------------------------- prefix.c */

struct prefix {
    const char *run;
    int64_t step;             /* of the checkpoint; 0: there is none, the run begins anew */
    char checkpoint[FS_PATH]; /* empty: none */
};
/* TARE_E_NOT_FOUND: no run is there; TARE_E_CONFIG: the run went on with another configuration after that checkpoint, so its steps cannot be made
 * again with the one it has now. */
tare_status prefix_find(const char *run, int64_t step, struct prefix *out, struct err *e);

struct prefix_parts {
    bool rollouts;              /* and the estimator's states, step by step */
    const char *const *dropped; /* sections of training.state that are left out, NULL at the end: those parts begin anew */
};
/* to: a folder that is not there, or empty. */
tare_status prefix_copy(const struct prefix *p, const struct prefix_parts *parts, const char *to, struct err *e);

/* ---------------------------------------------------------------- train.c */

struct replay_options {
    const char *const *keys; /* section.key=value; what may differ between two trainings that are the same */
    int64_t n_keys;          /* at most 200 */
    bool checks; /* only to compare: without a progress line, and with the model that is there (none is made by model.warm_start) */
};
/* `tare train DIR --resume --until STEP` without the sinks that are made from metrics.jsonl; ends with its error. */
tare_status replay_train(const char *dir, int64_t step, const struct replay_options *o, struct err *e);
/* `tare train DIR --resume` in the place of this process, which removes the folder where it is refused before its first step (TARE_FORKED,
 * core/loop/train.c); returns only when it cannot be started. */
tare_status replay_go_on(const char *dir, struct err *e);

/* ---------------------------------------------------------------- fork.c */

struct fork {
    struct prefix from;
    int64_t step;
    char run[FS_PATH], to[FS_PATH];
    struct config before, after; /* the run's configuration, and the fork's (settled) */
    const char *anew[5];         /* sections of training.state that do not fit the fork's configuration; NULL at the end */
};
/* What `tare fork RUN@STEP` would do, with everything refused that can be known: nothing is written. to: NULL for RUN-fork-STEP. */
tare_status fork_open(struct fork *f, const char *run_at_step, const char *to, const char *const *overrides, int64_t n,
                      struct err *e);
/* Makes f->to, a run that was interrupted after f->step; it is there whole or not at all. */
tare_status fork_make(const struct fork *f, struct err *e);
void fork_close(struct fork *f);

/* ---------------------------------------------------------------- sums.c, verify_run.c */

struct verify_result {
    struct str text;                     /* a line for each fault, note and range of steps */
    int64_t faults, links, files, lines; /* files and lines of metrics.jsonl whose sums are right */
    int64_t unlinked;                    /* files and lines after the last link, which have no sums */
    int64_t pruned;                      /* checkpoints that the chain names and checkpoint.keep removed */
    int64_t begins, last;                /* the step that the chain begins after; the last one it has */
    char head[40];                       /* the last sum, which stands for all of it */
};
/* The sums of all files of a run. TARE_E_NOT_FOUND: no run, or one without chain.jsonl. */
tare_status replay_verify_sums(const char *run, struct verify_result *out, struct err *e);

struct verify_steps {
    const char *run;
    int64_t first, last; /* first 0: none */
    int64_t sample;      /* so many more, drawn at random */
    const char *const *keys;
    int64_t n_keys;
};
/* Steps made again and compared. out: of replay_verify_sums, is added to. */
tare_status verify_replay(const struct verify_steps *v, struct verify_result *out, struct err *e);

#endif
