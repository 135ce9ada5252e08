#ifndef TARE_CORE_UPDATE_LARGEST_H
#define TARE_CORE_UPDATE_LARGEST_H

#include "update/trainer.h"

/* On a backend that counts, the largest micro-batches that groups of these lengths can give, whatever the lengths up to these are */
struct update_largest {
    int64_t groups, rollouts; /* in one shard of a minibatch; of a group */
    int64_t prompt, completion;
    bool exact_kl, forward; /* with the reference's logits; a pass without a loss too */
};
struct update_memory {     /* bytes of the backend's memory */
    int64_t rows, targets; /* of the largest micro-batch */
    int64_t activations, head,
        reference; /* with the caches of keys and values; chunks of logits; what the forward passes' cache takes */
};
tare_status update_count(struct trainer *t, const struct update_largest *l, struct update_memory *out, struct err *e);
/* One of them alone, forward and backward; fills rows and targets. */
tare_status update_walk(struct trainer *t, const struct update_largest *l, struct update_memory *out, struct err *e);

#endif
