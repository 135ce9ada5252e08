#ifndef TARE_CORE_UPDATE_LARGEST_H
#define TARE_CORE_UPDATE_LARGEST_H

#include "update/trainer.h"

/* On a counting backend, the largest micro-batches of groups whose prompts and completions have at
 * most these lengths. */
struct update_largest {
    int64_t groups, rollouts; /* groups of a shard of a minibatch; rollouts of a group */
    int64_t prompt, completion;
    bool exact_kl, forward; /* exact_kl: with the reference's logits; forward: also with a pass without loss */
};
struct update_memory {     /* bytes of the backend's memory */
    int64_t rows, targets; /* of the largest micro-batch */
    int64_t activations;   /* with the key/value cache */
    int64_t head;          /* chunks of logits */
    int64_t reference;     /* key/value caches of forward passes without loss */
};
tare_status update_count(struct trainer *t, const struct update_largest *l, struct update_memory *out, struct err *e);

#endif
