/* The ranks' slices of a checkpoint. Each rank writes optimizer-RRRRR-of-NNNNN.state with one
 * section for each unit and array:
 *
 *   moment1.U  moment2.U   the rank's slice of unit U (model/shards.h)
 *   weights.U              the same; only if the folder's weights are not in single precision
 *   second1.U  second2.U   moments of the second optimizer (update.h), if there is one
 *
 * Concatenating the slices of all files gives a unit, with padding at its end removed, so any
 * number of ranks can read the checkpoint. */
#ifndef TARE_CORE_CHECKPOINT_OPTIMIZER_H
#define TARE_CORE_CHECKPOINT_OPTIMIZER_H

#include "checkpoint/state.h"
#include "model/model.h"
#include "update/trainer.h"

/* A model being trained. */
struct training {
    struct model *model;
    struct trainer *trainer;
    enum dtype dtype;     /* precision of the model in checkpoints */
    bool is_reward_model; /* this model is the reward_model of another one */
    /* Process reward model, whose weights are stored in slices too, as sections process.moment1.U,
     * ...; NULL: none. */
    const struct training *reward_model;
};

void optimizer_slices_name(int64_t rank, int64_t ranks, char *out, size_t capacity);
tare_status optimizer_write_slices(const struct training *t, struct state_writer *w, struct err *e);
/* Reads this rank's moments and weights from files that `ranks` ranks wrote. The caller refreshes
 * the model afterwards. */
tare_status optimizer_read_slices(const struct training *t, const char *folder, int64_t ranks, struct err *e);

#endif
