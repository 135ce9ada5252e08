/* Sample and verify the rollouts of a checkpoint, with their score functions. */
#ifndef TARE_LAB_VARIANCE_DRAW_H
#define TARE_LAB_VARIANCE_DRAW_H

#include "base/fs.h"
#include "lab/variance/pool.h"

struct checkpoint_at {
    char folder[FS_PATH]; /* of a model */
    const char *given;    /* as the user named it */
    int64_t step;         /* 0: not a checkpoint of a run */
    struct str estimator; /* state of the run's estimator; empty: none */
};
/* Finds the checkpoint `given`: the folder of a model, of a checkpoint, or of a run (its newest
 * checkpoint), or RUN@STEP. */
tare_status variance_find_checkpoint(const char *given, struct checkpoint_at *out, struct err *e);
void variance_close_checkpoint(struct checkpoint_at *c);

/* Memory needed by a measurement, in bytes. */
struct variance_need {
    int64_t rollouts, params, model, vectors, table, work, total;
    int64_t memory; /* of this machine; 0: unknown */
};
/* Reads only config.json. model.path is the checkpoint. */
tare_status variance_need(const struct config *c, const struct variance_options *o, struct variance_need *out, struct err *e);

/* Fills the pool, which owns its texts. model.path is the checkpoint. */
tare_status variance_draw(const struct config *c, const struct variance_options *o, int64_t step, struct variance_pool *out,
                          struct err *e);

#endif
