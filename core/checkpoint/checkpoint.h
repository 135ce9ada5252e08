/* Checkpoint folders RUN/checkpoints/step-NNNNNN, which are either complete or absent.
 *
 *   struct checkpoint k;
 *   TRY(checkpoint_begin(run_dir, step, &k, e));   k.folder is an empty temporary folder
 *   ... write files into k.folder; on an error: checkpoint_abort(&k) ...
 *   TRY(checkpoint_commit(&k, e));                 syncs, lists, renames; aborts on failure
 *   TRY(checkpoint_prune(run_dir, keep, -1, e));
 *
 * commit syncs every file, writes complete.json with the size and XXH3 of each, renames the folder
 * and syncs its parent. A folder named step-NNNNNN therefore always holds all its data; a process
 * killed earlier leaves only step-NNNNNN.tmp-PID, which is never read. Errors: TARE_E_IO with the
 * path and the system's reason, such as a full disk. One process per run folder (see run_lock). */
#ifndef TARE_CORE_CHECKPOINT_CHECKPOINT_H
#define TARE_CORE_CHECKPOINT_CHECKPOINT_H

#include "base/fs.h"

struct checkpoint {
    int64_t step;
    char folder[FS_PATH]; /* folder to write into; the final one after commit */
    char final[FS_PATH];
};

tare_status checkpoint_begin(const char *run_dir, int64_t step, struct checkpoint *out, struct err *e);
tare_status checkpoint_commit(struct checkpoint *k, struct err *e);
void checkpoint_abort(struct checkpoint *k);

/* Checks that every file listed in complete.json exists with its size and hash. Otherwise returns
 * TARE_E_CORRUPT and names the file. */
tare_status checkpoint_verify(const char *folder, int64_t *step, struct err *e);
/* Like checkpoint_verify, for a model folder that may be a checkpoint: a folder without
 * complete.json passes. */
tare_status checkpoint_check(const char *folder, struct err *e);
/* A model folder outside a run (from `tare sft` or `tare merge`) has the same list in sums.json. It
 * is written after all other files, which are synced, and checked before the model is used. A
 * folder without sums.json passes: another program wrote it. */
tare_status checkpoint_write_sums(const char *folder, struct err *e);
tare_status checkpoint_check_sums(const char *folder, struct err *e);
/* Like checkpoint_check_sums without the weights, for callers that read only the tokenizer or the
 * template. */
tare_status checkpoint_check_texts(const char *folder, struct err *e);
/* Finds the newest complete checkpoint that passes checkpoint_verify. Damaged newer ones are
 * skipped with a warning. folder: FS_PATH bytes. *step = -1 and an empty folder if no checkpoint
 * passes. */
tare_status checkpoint_latest(const char *run_dir, char *folder, int64_t *step, struct err *e);
/* Like checkpoint_latest, among the checkpoints up to step `last`. */
tare_status checkpoint_before(const char *run_dir, int64_t last, char *folder, int64_t *step, struct err *e);
/* Counts the checkpoint folders, complete or damaged. */
tare_status checkpoint_count(const char *run_dir, int64_t *n, struct err *e);
/* Writes "RUN/checkpoints/step-000012" into folder. */
tare_status checkpoint_path(const char *run_dir, int64_t step, char *folder, struct err *e);
/* Keeps the newest `keep` complete checkpoints (0: all) and that of step `also` (-1: none). Removes
 * the others, and damaged ones older than the newest. */
tare_status checkpoint_prune(const char *run_dir, int64_t keep, int64_t also, struct err *e);
/* Prepares a run that continues after `step` (-1: from the start): removes incomplete folders left
 * by a killed process and damaged checkpoints of later steps, which will be computed again. Call it
 * with the run lock held. */
tare_status checkpoint_clean(const char *run_dir, int64_t step, struct err *e);

#endif
