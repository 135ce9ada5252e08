/* What a run writes besides checkpoints, in one handle: the lock on its folder, manifest.json, config.ini, metrics in their
 * sinks, rollout dumps, the chain of their sums, and the progress line.
 *
 *   TRY(run_lock_check(config->run.dir, resume, e));           early: nothing is written
 *   ...                                                        open everything, find the checkpoint to continue from
 *   TRY(observe_open(config, &manifest, resume, step, &o, e)); step: of the checkpoint, -1 to start from the beginning
 *   each step:  observe_set(o, "reward/mean", x) ...
 *               TRY(observe_step(o, step, &batch, e));
 *               when a checkpoint is due: TRY(observe_sync(o, e)), then checkpoint_commit, then TRY(observe_checkpoint(o, step, e))
 *   observe_close(o, "done", e);
 *
 * On several ranks rank 0 has it; on the others the handle is NULL, and all functions but observe_open do nothing with it.
 * The order above is what makes a run exactly-once (metrics.h says why). observe_set may be called from any thread, the rest from one.
 */
#ifndef TARE_CORE_OBSERVE_OBSERVE_H
#define TARE_CORE_OBSERVE_OBSERVE_H

#include "batch/batch.h"
#include "config/config.h"
#include "observe/chain.h"
#include "observe/manifest.h"
#include "observe/metrics.h"
#include "observe/progress.h"
#include "observe/rollouts.h"
#include "observe/run_lock.h"

struct observe;

/* Makes and locks the folder, cuts all records back to `step`, writes manifest.json and config.ini. */
tare_status observe_open(const struct config *c, const struct manifest *m, bool resume, int64_t step, struct observe **out,
                         struct err *e);
/* Writes config.ini at path. before: the file that it continues from `step`, whose differences are kept as comments; NULL: none. */
tare_status observe_config(const char *path, const struct config *c, const char *before, int64_t step, struct err *e);
/* The value of one metric of the step that comes next; set twice: the last one. */
void observe_set(struct observe *o, const char *name, double value);
/* The sum of a file that the step wrote, for the chain; name: in the run's folder. Before observe_step. */
tare_status observe_cover(struct observe *o, const char *name, const struct str *text, struct err *e);
/* Records the step in every sink, dumps its rollouts (batch NULL: none), and shows progress. */
tare_status observe_step(struct observe *o, int64_t step, const struct batch *b, struct err *e);
/* The line of metrics.jsonl of the last step; NULL: o is NULL. */
const struct str *observe_line(const struct observe *o);
/* Everything recorded so far is on the disk. Before checkpoint_commit. */
tare_status observe_sync(struct observe *o, struct err *e);
/* The checkpoint of the step has its name. */
tare_status observe_checkpoint(struct observe *o, int64_t step, struct err *e);
/* The run goes back: a link of the chain, then the manifest. */
tare_status observe_rollback(struct observe *o, const struct manifest_rollback *b, struct err *e);
/* status: done, interrupted, failed: shown in runs.db. o is gone in any case; NULL: nothing. */
tare_status observe_close(struct observe *o, const char *status, struct err *e);

#endif
