/* `tare sft`: supervised training, and the warm start of other commands. */
#ifndef TARE_CORE_SFT_SFT_H
#define TARE_CORE_SFT_SFT_H

#include "config/config.h"
#include "dist/comm.h"

/* warm_start.c: Makes model.path with `tare sft` of model.warm_start if the folder is missing. */
tare_status warm_start(const struct config *c, struct err *e);
bool warm_start_due(const struct config *c);
/* Loads the configuration that makes it; the caller frees child. file: FS_PATH bytes, receives its
 * path. */
tare_status warm_start_config(const struct config *c, char *file, struct config *child, struct err *e);
/* sft.c: `tare sft`. Checkpoints are in SFT.OUT.training until the model is written. */
enum sft_start {
    SFT_NEW,    /* refused if checkpoints exist */
    SFT_RESUME, /* from the last complete checkpoint, with the original configuration */
    SFT_CHANGE, /* the same; another configuration may change the training from here on */
    SFT_GO_ON   /* like SFT_RESUME if there is a checkpoint */
};
/* Writes the path of SFT.OUT.training; FS_PATH bytes. */
tare_status sft_folder(const struct config *c, char *folder, struct err *e);
/* comm: communicator of the job, which sft_run closes; all ranks call it (NULL: a single process).
 * The model has the same bits on any number of ranks. */
tare_status sft_run(const struct config *c, enum sft_start start, struct comm *comm, struct err *e);

#endif
