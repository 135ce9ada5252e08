/* `tare eval CONFIG --checkpoints RUN ...`: the questions of CONFIG by difficulty, over the checkpoints of one or more runs (the paper's figure).
 *
 * The estimate is made before reinforcement learning: the model that the first run starts from answers every question estimate_samples times, with samples of
 * its own (run.seed + 1), so that the same luck does not both sort a question and count for it. eval.difficulty, when set, is taken in its place. Then each
 * run is evaluated at each step (step 0: the model it started from), and the accuracy and length of every bucket come together in one table and one figure.
 *
 *   RUN/eval/TASK/step-NNNNNN/      an evaluation each (eval.h), continued where it was interrupted; also what `tare report RUN` shows
 *   FIRST/eval/TASK/estimate/       the estimate
 *   FIRST/eval/TASK/difficulty.json .md .html
 * With eval.out set: eval.out/RUNNAME/step-NNNNNN, eval.out/estimate, eval.out/difficulty.*.
 *
 * Not thread-safe: one at a time, as eval_run. */
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
    int64_t steps[EVAL_STEPS]; /* growing; n_steps 0: 0 and all checkpoints that the first run has */
    int n_steps;
    int64_t estimate_samples;
    const char *base;         /* the model of step 0 for all runs; NULL: model.path of each RUN/config.ini */
    difficulty_figure figure; /* draws difficulty.html; NULL for none */
};

/* "0,30,60" -> steps. TARE_E_CONFIG: not growing numbers. */
tare_status eval_steps_parse(const char *text, struct eval_steps *out, struct err *e);
/* Every checkpoint is known to be there before the first sample is drawn. The table as Markdown is appended, on rank 0 (comm: as in eval_run). TARE_E_CANCELLED: interrupted; the same call
 * continues. */
tare_status eval_steps_run(const struct config *c, const struct eval_steps *what, struct comm *comm, struct str *table,
                           struct err *e);

#endif
