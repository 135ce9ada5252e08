/* Supervised optimizer steps, and the second optimizer for steps between policy updates. */
#ifndef TARE_CORE_UPDATE_SUPERVISED_H
#define TARE_CORE_UPDATE_SUPERVISED_H

#include "update/trainer.h"

/* Takes one optimizer step on -mean over the tokens of all rows of log p(token), context excluded, minus entropy_coef
 * times their mean entropy. Rows are groups of one rollout. */
struct supervised_report {
    double loss, entropy, grad_norm, lr; /* loss: without the entropy term */
};
tare_status supervised_step(struct trainer *t, const struct batch *b, double entropy_coef, struct supervised_report *r,
                            struct err *e);
/* A second AdamW of the same weights for supervised steps between policy updates: it has separate
 * moments and step count, a constant learning rate, and probabilities at temperature 1 ([relift]).
 * trainer_free frees it. */
struct second_optimizer {
    struct train_config own;
    const struct train_config *train;
    float *moment1, *moment2;
    int64_t optimizer_steps; /* saved */
    double temperature;
};
/* Returns the settings of [train] for an optimizer next to the policy's: a constant learning
 * rate. */
struct train_config supervised_train_config(const struct train_config *c, double lr, double max_grad_norm);
tare_status supervised_add_second(struct trainer *t, const struct config *c, struct err *e);
void supervised_free_second(struct trainer *t);
tare_status supervised_second_step(struct trainer *t, const struct batch *b, double entropy_coef, struct supervised_report *r,
                                   struct err *e);

#endif
