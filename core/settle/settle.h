/* What a configuration leaves open is decided before anything is opened, by the same rules on every rank, and set in the configuration, so
 * that it is recorded with the run:
 *   model.path, model.reference  of a run's folder its newest checkpoint is taken
 *   clusterer.codebook = auto    kmeans where the estimator works by cluster, else none
 *   rollout.max_new_tokens = 0   half of the model's context, at most 512
 *   data.date                    of a run that is resumed its own, else today's, in UTC; of several ranks rank 0's
 */
#ifndef TARE_CORE_SETTLE_SETTLE_H
#define TARE_CORE_SETTLE_SETTLE_H

#include "base/fs.h"
#include "config/config.h"
#include "dist/comm.h"

/* say: tells in a line what was chosen. With faults (else NULL) each error is told, and what could not be settled stays as it was. */
tare_status settle(struct config *c, bool say, struct faults *faults, struct err *e);
/* The same on every rank, each of which calls it; the error of one is the error of all. */
tare_status settle_ranks(struct config *c, struct comm *comm, struct err *e);
/* A model's folder as a user names it. folder (FS_PATH bytes): the newest checkpoint that verifies when `given` is the folder of a run, else
 * `given`. TARE_E_NOT_FOUND: a run without a whole checkpoint. TARE_E_CORRUPT: `given` is a checkpoint with a damaged
 * file. */
tare_status settle_model(const char *given, char *folder, struct err *e);
/* rollout.max_new_tokens alone. */
tare_status settle_tokens(struct config *c, bool say, struct err *e);

#endif
