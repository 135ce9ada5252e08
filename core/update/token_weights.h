/* The factor of each token's loss in the mean over a minibatch. */
#ifndef TARE_CORE_UPDATE_TOKEN_WEIGHTS_H
#define TARE_CORE_UPDATE_TOKEN_WEIGHTS_H

#include "batch/batch.h"
#include "config/config.h"

struct minibatch {         /* of whole groups */
    const int64_t *groups; /* [n] */
    int64_t n, length;     /* length: tokens of the longest possible completion, for aggregation = constant */
};
/* Writes weight[n_tokens of the batch] for the tokens of the groups. A rollout with rollout_weight
 * 0 counts in no mean, nor does a group without other rollouts. */
tare_status token_weights(const struct batch *b, const struct loss_config *c, const struct minibatch *part, double *weight,
                          struct err *e);

#endif
