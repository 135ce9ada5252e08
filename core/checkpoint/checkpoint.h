/* Checkpoint folders: RUN/checkpoints/step-NNNNNN, there completely or not at all.
 *
 *   struct checkpoint k;
 *   TRY(checkpoint_begin(run_dir, step, &k, e));          k.folder is an empty folder beside the others
 *   ... write files into k.folder; on an error: checkpoint_abort(&k) ...
 *   TRY(checkpoint_commit(&k, e));                        syncs, lists, renames; aborts by itself when it fails
 *   TRY(checkpoint_prune(run_dir, keep, -1, e));
 *
 * commit syncs every file, then writes complete.json with the size and XXH3 of each, then renames the folder and syncs its parent. So at
 * every moment a folder named step-NNNNNN holds all its data; a process killed before leaves only step-NNNNNN.tmp-PID, which is never read.
 * Errors: TARE_E_IO with the path and the system's reason (a full disk). One process a run folder (see run_lock).
 */
#ifndef TARE_CORE_CHECKPOINT_CHECKPOINT_H
#define TARE_CORE_CHECKPOINT_CHECKPOINT_H

#include "base/fs.h"

struct checkpoint {
    int64_t step;
    char folder[FS_PATH]; /* to write into; after commit the final one */
    char final[FS_PATH];
};

tare_status checkpoint_begin(const char *run_dir, int64_t step, struct checkpoint *out, struct err *e);
tare_status checkpoint_commit(struct checkpoint *k, struct err *e);
void checkpoint_abort(struct checkpoint *k);

/* Every file that complete.json lists is there with its size and hash; else TARE_E_CORRUPT naming the file. */
tare_status checkpoint_verify(const char *folder, int64_t *step, struct err *e);
/* The same of a model's folder, which may be a checkpoint: one without complete.json passes. */
tare_status checkpoint_check(const char *folder, struct err *e);
/* A model's folder that is not of a run (a supervised training's, a merged adapter's) has the same list in sums.json: written when all its other files are
 * there, which are synced, and compared before the model is used. A folder without one passes: it is another program's. */
tare_status checkpoint_write_sums(const char *folder, struct err *e);
tare_status checkpoint_check_sums(const char *folder, struct err *e);
/* The same of all but the weights: for who reads the tokenizer or the template alone. */
tare_status checkpoint_check_texts(const char *folder, struct err *e);
/* The newest complete checkpoint that passes checkpoint_verify; newer damaged ones are reported as warnings and passed over.
 * folder: FS_PATH bytes. *step = -1 and an empty folder when there is none. */
tare_status checkpoint_latest(const char *run_dir, char *folder, int64_t *step, struct err *e);
/* The same among those of step `last` and before. */
tare_status checkpoint_before(const char *run_dir, int64_t last, char *folder, int64_t *step, struct err *e);
/* How many folders of checkpoints there are, whole or damaged. */
tare_status checkpoint_count(const char *run_dir, int64_t *n, struct err *e);
/* "RUN/checkpoints/step-000012" */
tare_status checkpoint_path(const char *run_dir, int64_t step, char *folder, struct err *e);
/* Removes all but the newest `keep` complete checkpoints (0: keeps all) and that of step `also` (-1: none), and damaged ones older than
 * the newest. */
tare_status checkpoint_prune(const char *run_dir, int64_t keep, int64_t also, struct err *e);
/* For a run that continues after `step` (-1: from the start): removes what a killed process left half-written, and the (damaged) checkpoints
 * of later steps, which are computed again. Call it when the run is locked. */
tare_status checkpoint_clean(const char *run_dir, int64_t step, struct err *e);

#endif
