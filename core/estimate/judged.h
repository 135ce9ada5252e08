/* A batch without the rollouts that the estimator is not shown: those that no verifier judged (of one that crashed or ran out of time the
 * reward says nothing), and those that the curriculum left out. */
#ifndef TARE_CORE_ESTIMATE_JUDGED_H
#define TARE_CORE_ESTIMATE_JUDGED_H

#include "batch/batch.h"

struct judged {
    struct batch batch;
    const int64_t *rollout, *group; /* of each of the batch's, its place in the whole; NULL: they are the whole */
};

/* The arrays live in the arena, or are those of the whole. */
tare_status judged_of(const struct batch *whole, struct arena *a, struct judged *out, struct err *e);
/* The columns that the estimator wrote, for the whole: advantage, weight and token advantage 0, confidence and baseline 0 and no scale for
 * what it was not shown; weight 0 for what the curriculum only counts. */
tare_status judged_spread(const struct judged *j, struct batch *whole, struct arena *a, struct err *e);

#endif
