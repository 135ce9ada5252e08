/* `tare sft`: supervised training, and the warm start of the other verbs. */
#ifndef TARE_CORE_SFT_SFT_H
#define TARE_CORE_SFT_SFT_H

#include "config/config.h"
#include "dist/comm.h"

/* warm_start.c: makes model.path by `tare sft` of model.warm_start when the folder is absent. */
tare_status warm_start(const struct config *c, struct err *e);
bool warm_start_due(const struct config *c);
/* The configuration that makes it, to be freed by the caller; file: FS_PATH bytes, where it was read from. */
tare_status warm_start_config(const struct config *c, char *file, struct config *child, struct err *e);
/* sft.c: `tare sft`. The checkpoints lie in SFT.OUT.training until the model is written. */
enum sft_start {
    SFT_NEW,    /* refused where there are checkpoints */
    SFT_RESUME, /* from the last complete one, with the configuration that it was started with */
    SFT_CHANGE, /* the same; another configuration may change the training from here on */
    SFT_GO_ON   /* as SFT_RESUME if there is one */
};
/* comm: of the job, which it closes; all ranks call it (NULL: this process alone). The model has the same bits on any number of ranks. */
tare_status sft_run(const struct config *c, enum sft_start start, struct comm *comm, struct err *e);

#endif
