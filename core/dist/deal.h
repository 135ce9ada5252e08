/* Deals a batch's groups to the ranks before sampling, and joins them on every rank after
 * verification.
 *
 * The deal depends on the prompts alone, so all ranks compute the same. A rank's share is a
 * separate batch with its groups in their order; the joined batch has the same bytes on every rank,
 * as if one rank had made all of it. On one rank nothing is copied. */
#ifndef TARE_CORE_DIST_DEAL_H
#define TARE_CORE_DIST_DEAL_H

#include "batch/batch.h"
#include "config/config.h"
#include "dist/comm.h"

struct share {
    struct batch own; /* this rank's groups; DATA columns point into the whole batch, the others are its own */
    int64_t *rank;    /* [M] rank of each group */
};

/* all: with rows and prompts. c: the number of rollouts and the longest one, from which the
 * sampling cost is estimated. */
tare_status deal_batch(const struct batch *all, const struct rollout_config *c, struct comm *comm, struct arena *a,
                       struct share *out, struct err *e);
/* Joins rollouts, texts and verdicts of all ranks' groups in the whole batch. Collective. */
tare_status deal_join(struct share *s, struct comm *comm, struct arena *a, struct batch *all, struct err *e);

#endif
