/* Makes a batch of the rollouts that the estimator is shown. It is not shown rollouts without a
 * verdict (the reward of a verifier that crashed or ran out of time means nothing), nor those that
 * the curriculum left out. */
#ifndef TARE_CORE_ESTIMATE_SHOWN_H
#define TARE_CORE_ESTIMATE_SHOWN_H

#include "batch/batch.h"

struct shown {
    struct batch batch;
    const int64_t *rollout, *group; /* index in the whole batch; NULL: the batch is the whole one */
};

/* The arrays live in the arena, or belong to the whole batch. */
tare_status shown_of(const struct batch *whole, struct arena *a, struct shown *out, struct err *e);
/* Spreads the estimator's outputs to the whole batch. Rollouts that it was not shown get advantage,
 * weight and token advantage 0, groups confidence and baseline 0 and no scale. Rollouts that the
 * curriculum only counts get weight 0. */
tare_status shown_spread(const struct shown *j, struct batch *whole, struct arena *a, struct err *e);

#endif
