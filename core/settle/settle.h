/* Resolves values that a configuration leaves open, before anything is opened and by the same rules
 * on every rank. The results are stored in the configuration, and so recorded with the run:
 *   model.path, model.reference  a run folder becomes its newest checkpoint
 *   codebook.plugin = auto       kmeans if the estimator works by cluster, otherwise none
 *   rollout.max_new_tokens = 0   half of the model's context, at most 512
 *   data.date                    the run's own if it is resumed, otherwise today's in UTC
 *   verifier.opened = auto       true if the chat template's prompt ends with a tag that opens a thought */
#ifndef TARE_CORE_SETTLE_SETTLE_H
#define TARE_CORE_SETTLE_SETTLE_H

#include "base/fs.h"
#include "config/config.h"
#include "dist/comm.h"

/* logs: log one line for each choice. faults: collects errors, and a value with an error is not
 * changed; NULL: the first error is returned. */
tare_status settle(struct config *c, bool logs, struct faults *faults, struct err *e);
/* Collective: settles on every rank; an error on one rank fails all. */
tare_status settle_ranks(struct config *c, struct comm *comm, struct err *e);
/* Resolves a model folder given by the user. folder: FS_PATH bytes, receives the newest intact
 * checkpoint if `given` is a run folder, otherwise `given`. TARE_E_NOT_FOUND: the run has no
 * complete checkpoint. TARE_E_CORRUPT: `given` is a checkpoint with a damaged file. */
tare_status settle_model(const char *given, char *folder, struct err *e);
/* Settles only rollout.max_new_tokens. */
tare_status settle_tokens(struct config *c, bool logs, struct err *e);

#endif
