/* The ranks' pieces of a checkpoint: optimizer-RRRRR-of-NNNNN.state, written by each rank, with a section for each unit and array
 *
 *   moment1.U  moment2.U  weights.U        the rank's piece of unit U (model/shards.h); weights only when the folder's are not in single precision
 *   second1.U  second2.U                   moments of the second optimizer (update.h), where there is one
 *
 * A unit is what the pieces of all files make, one after another, without the padding at its end; so any number of ranks reads it again. */
#ifndef TARE_CORE_CHECKPOINT_OPTIMIZER_H
#define TARE_CORE_CHECKPOINT_OPTIMIZER_H

#include "checkpoint/state.h"
#include "model/model.h"
#include "update/trainer.h"

/* A model in training. */
struct training {
    struct model *model;
    struct trainer *trainer;
    enum dtype dtype; /* in which checkpoints keep the model */
    bool in_pieces;   /* it is such another model */
    /* Another model in training, whose weights are among the pieces too, as sections process.moment1.U, ...; NULL: none. */
    const struct training *reward_model;
};

void optimizer_slices_name(int64_t rank, int64_t ranks, char *out, size_t room);
tare_status optimizer_write_slices(const struct training *t, struct state_writer *w, struct err *e);
/* Moments and weights of this rank, from files that `ranks` ranks wrote; model_refresh comes after. */
tare_status optimizer_read_slices(const struct training *t, const char *folder, int64_t ranks, struct err *e);

#endif
