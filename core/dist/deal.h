/* A batch's groups on the ranks: dealt out before sampling, whole again on every rank after verification.
 *
 * What is dealt depends on the prompts alone, so all ranks know it. A rank's share is a batch of its own with its groups in their order; joined, the
 * batch has the same bytes on every rank, and the same as if one rank had made all of it. On one rank nothing is copied. */
#ifndef TARE_CORE_DIST_DEAL_H
#define TARE_CORE_DIST_DEAL_H

#include "batch/batch.h"
#include "config/config.h"
#include "dist/comm.h"

struct share {
    struct batch own; /* this rank's groups; data from the whole batch's arrays, everything else of its own */
    int64_t *rank;    /* [M] whose a group is */
};

/* all: with rows and prompts. c: how many rollouts, and the longest one, as a measure of what sampling costs. */
tare_status deal_batch(const struct batch *all, const struct rollout_config *c, struct comm *comm, struct arena *a,
                       struct share *out, struct err *e);
/* Rollouts, texts and verdicts of all ranks' groups into the whole batch. Collective. */
tare_status deal_join(struct share *s, struct comm *comm, struct arena *a, struct batch *all, struct err *e);

#endif
