/* All records of a run except checkpoints, in one handle: the folder lock, manifest.json,
 * config.ini, metrics in their sinks, rollout dumps, their checksum chain, and the progress line.
 *
 *   TRY(run_lock_check(config->run.dir, resume, e));   early; writes nothing
 *   ...                                                open everything, find the checkpoint
 *   TRY(observe_open(config, &manifest, resume, step, &o, e));   step of the checkpoint; -1: none
 *   each step:  observe_set(o, "reward/mean", x) ...
 *               TRY(observe_step(o, step, &batch, e));
 *               if a checkpoint is due: TRY(observe_sync(o, e)), checkpoint_commit,
 *               TRY(observe_checkpoint(o, step, e))
 *   observe_close(o, "done", e);
 *
 * Only rank 0 has a handle. On the other ranks it is NULL, and all functions but observe_open do
 * nothing with it. The order above records every step exactly once (see metrics.h). observe_set may
 * be called from any thread, the others from one. */
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

/* Creates and locks the folder, cuts all records back to `step`, and writes manifest.json and
 * config.ini. */
tare_status observe_open(const struct config *c, const struct manifest *m, bool resume, int64_t step, struct observe **out,
                         struct err *e);
/* Writes config.ini at path. before: the file that it continues from `step`, whose differences are
 * kept as comments; NULL: none. */
tare_status observe_config(const char *path, const struct config *c, const char *before, int64_t step, struct err *e);
/* Sets one metric of the current step; the last value wins. */
void observe_set(struct observe *o, const char *name, double value);
/* Writes the state from which the step's advantages were estimated, and adds it to the chain. Call
 * it before observe_step. */
tare_status observe_state(struct observe *o, int64_t step, const struct str *state, struct err *e);
/* Records the step in every sink, dumps its rollouts (batch NULL: none), and shows progress. */
tare_status observe_step(struct observe *o, int64_t step, const struct batch *b, struct err *e);
/* Returns the metrics.jsonl line of the last step; NULL if o is NULL. */
const struct str *observe_line(const struct observe *o);
/* Syncs everything recorded so far. Call it before checkpoint_commit. */
tare_status observe_sync(struct observe *o, struct err *e);
/* Records that the checkpoint of the step is complete. */
tare_status observe_checkpoint(struct observe *o, int64_t step, struct err *e);
/* Records a rollback: a link of the chain, then the manifest. */
tare_status observe_rollback(struct observe *o, const struct manifest_rollback *b, struct err *e);
/* Closes the records. status for runs.db: done, interrupted or failed. Always frees o; no-op for
 * NULL. */
tare_status observe_close(struct observe *o, const char *status, struct err *e);

#endif
