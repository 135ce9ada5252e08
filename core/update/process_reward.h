#ifndef TARE_CORE_UPDATE_PROCESS_REWARD_H
#define TARE_CORE_UPDATE_PROCESS_REWARD_H

#include "update/trainer.h"

/* The implicit process reward model (PRIME). t is its trainer; t->reference is its reference. */
/* reward[T] = beta (log phi - log ref) of the batch's tokens; ref[T] = log ref. Both are zero on
 * entry, and stay zero for context. */
tare_status process_reward_compute(struct trainer *t, const struct batch *b, double beta, float *reward, float *ref, struct err *e);
/* Returns the largest absolute sum of process_reward from a token to the end of its rollout. */
double process_reward_largest(const struct batch *b);
/* out[T] = process_reward as estimators see it ([process_reward] norm). */
void process_reward_normed(const struct batch *b, const struct process_config *c, double *out);
/* Computes how often the batch's process_reward ranks two rollouts of a group as their outcomes do;
 * 0.5 for a group of equal outcomes. */
tare_status process_reward_accuracy(const struct batch *b, struct arena *a, double *accuracy, struct err *e);
struct process_reward_report { /* means over the optimizer steps */
    double loss, grad_norm, lr;
    int64_t optimizer_steps, rollouts;
};
/* Takes optimizer steps on the cross entropy of the rollouts' outcomes: rewards, clamped to [0, 1].
 * Rollouts with rollout_weight 0 are skipped. */
tare_status process_reward_update(struct trainer *t, const struct batch *b, const struct process_config *c,
                                  struct process_reward_report *r, struct err *e);
/* Returns the optimizer settings of that model: [train] with the keys of [process_reward]. */
struct train_config process_reward_train_config(const struct config *c);

#endif
