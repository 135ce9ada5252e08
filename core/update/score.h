#ifndef TARE_CORE_UPDATE_SCORE_H
#define TARE_CORE_UPDATE_SCORE_H

#include "update/trainer.h"

/* t->grads.sum = weight * sum over the tokens of one rollout of grad log p(token), in the layout of
 * the weights. The rollout must belong to the group. */
tare_status update_score(struct trainer *t, const struct batch *b, int64_t group, int64_t rollout, double weight, struct err *e);

#endif
