/* `tare eval CONFIG --checkpoints RUN ...`: accuracy on the questions of CONFIG by difficulty, over
 * the checkpoints of one or more runs (the paper's figure).
 *
 * Difficulty is estimated before reinforcement learning: the initial model of the first run answers
 * every question estimate_samples times, with separate samples (run.seed + 1), so that the same
 * luck does not both classify a question and count for it. eval.difficulty, if set, replaces this
 * estimate. Then each run is evaluated at each step (step 0: its initial model), and the accuracy
 * and length of every bucket are combined in one table and one figure.
 *
 *   RUN/eval/TASK/step-NNNNNN/      one evaluation each (eval.h), continued after interruptions;
 *                                   also shown by `tare report RUN`
 *   FIRST/eval/TASK/estimate/       the estimate
 *   FIRST/eval/TASK/difficulty.json .md .html
 *
 * With eval.out set: eval.out/RUNNAME/step-NNNNNN, eval.out/estimate, eval.out/difficulty.*.
 *
 * Not thread-safe: one at a time, like eval_run. */
#ifndef TARE_CORE_EVAL_CHECKPOINTS_H
#define TARE_CORE_EVAL_CHECKPOINTS_H

#include "base/str.h"
#include "config/config.h"
#include "dist/comm.h"
#include "observe/difficulty.h"

enum { EVAL_RUNS = 16, EVAL_STEPS = 400 };

struct eval_steps {
    const char *runs[EVAL_RUNS]; /* folders */
    int n_runs;
    /* Growing. n_steps 0: 0 and all checkpoints of the first run. */
    int64_t steps[EVAL_STEPS];
    int n_steps;
    int64_t estimate_samples;
    /* Model of step 0 for all runs. NULL: model.path of each RUN/config.ini. */
    const char *base;
    difficulty_figure figure; /* draws difficulty.html; NULL for none */
};

/* Parses "0,30,60" into steps. TARE_E_CONFIG if the numbers do not grow. */
tare_status eval_steps_parse(const char *text, struct eval_steps *out, struct err *e);
/* Checks that every checkpoint exists before the first sample is drawn. The table is appended as
 * Markdown on rank 0 (comm: as in eval_run). TARE_E_CANCELLED: interrupted; the same call
 * continues. */
tare_status eval_steps_run(const struct config *c, const struct eval_steps *what, struct comm *comm, struct str *table,
                           struct err *e);

#endif
