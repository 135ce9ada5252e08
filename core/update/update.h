/* The policy update: minibatches of whole groups, packed micro-batches in which a prompt is computed once for its G rollouts, the
 * objective (objective.h), AdamW.
 *
 *   L = sum_t c_t v_t + beta sum_t c_t KL_t - lambda sum_t c_t H_t                             (paper Eq. grpo_obj, appendix_objective)
 *   v_t of the objective; of ppo - min(r_t A_t, clip(r_t, 1-eps, 1+eps_high) A_t), r_t = exp(logp_t - old_t)
 *   c_t = 1/n_i * 1/G * 1/M of the minibatch (aggregation = sequence, the paper's means), 1/sum n_i (token), 1/(N length) (constant).
 *
 * One trainer serves reinforcement learning and supervised training: both hand microbatch_run a function that turns a token's logprob,
 * entropy and KL into the three coefficients of its gradient (struct head_grad_row).
 *
 * On the ranks of the model's job all functions are collective and get the same batch; micro-batches are dealt out (microbatch.c), and weights,
 * moments and figures have the same bits for every number of ranks up to gradient_shards.
 */
#ifndef TARE_CORE_UPDATE_H
#define TARE_CORE_UPDATE_H

#include "batch/batch.h"
#include "config/config.h"
#include "model/grads.h"
#include "model/model.h"
#include "update/objective.h"

struct second_optimizer;

struct trainer {
    struct model *m;
    struct model *reference; /* NULL unless a KL coefficient or an estimator asks for it */
    const struct train_config *train;
    const struct loss_config *loss;
    struct objective *objective; /* the caller's; NULL: supervised steps only */
    const double *collected;     /* what the objective collected in the last update, for its apply; NULL: nothing */
    double temperature;          /* of pi and pi_old */
    uint64_t seed;
    int64_t total_steps;                 /* optimizer steps of the whole run, for the schedule */
    int64_t optimizer_steps;             /* done; saved */
    bool overflow;                       /* the last error was a gradient that is not finite, found by all ranks alike */
    int64_t gradient_shards;             /* dist.gradient_shards; 1 unless set */
    struct grads grads;                  /* sums of this optimizer step */
    float *moment1, *moment2;            /* [n_own]; with dist.shard = none [n_params] */
    int64_t moment_bytes;                /* of both, and of the second optimizer's */
    struct second_optimizer *second;     /* supervised.c; NULL: none */
    struct kv_cache cache;               /* one layer, grown as needed */
    struct kv_cache ref_cache;           /* all layers of the reference, and of a pass of the policy where one cache serves both */
    struct kv_cache own_cache;           /* of the policy, where the reference has another shape */
    struct arena pack, acts, head, work; /* a micro-batch's plan, activations, logits; an iteration's arrays */
};

struct update_report { /* means over the tokens of all minibatches; NaN where there was none */
    double loss, entropy, clip_fraction, approx_kl, ratio_max, reference_kl, grad_norm, lr, mismatch;
    int64_t optimizer_steps, skipped, tokens;
};

struct trainer_options {
    struct model *reference; /* NULL: none */
    const struct train_config *train;
    const struct loss_config *loss;
    double temperature; /* of the rollouts; 0: 1 */
    uint64_t seed;
    int64_t total_steps;
};
tare_status trainer_new(struct model *m, const struct trainer_options *o, struct trainer **out, struct err *e);
void trainer_free(struct trainer *t);

/* One iteration: train.epochs passes over the batch in minibatches. b's advantages and row weights are constants. */
tare_status update_run(struct trainer *t, const struct batch *b, struct update_report *report, struct err *e);
/* Gives the objective what the last update collected, for its state. */
tare_status update_apply(struct trainer *t, int64_t step, struct err *e);

/* logprob (and entropy, may be NULL) [T] of the batch's completion tokens under m, at the trainer's temperature. */
tare_status update_logprobs(struct trainer *t, struct model *m, const struct batch *b, float *logprob, float *entropy,
                            struct err *e);

/* ---- supervised.c: one optimizer step on -mean over the tokens of all rows of log p(token), minus entropy_coef times their mean entropy. Rows are
 * groups of one rollout. */
struct sft_report {
    double loss, entropy, grad_norm, lr; /* loss: without the entropy's part */
};
tare_status sft_step(struct trainer *t, const struct batch *b, double entropy_coef, struct sft_report *r, struct err *e);
/* A second AdamW of the same weights, for supervised steps between policy updates: moments and a count of its own, a constant learning rate, and
 * probabilities at temperature 1 ([relift]). trainer_free frees it. */
struct second_optimizer {
    struct train_config own;
    const struct train_config *train;
    float *moment1, *moment2;
    int64_t optimizer_steps; /* saved */
    double temperature;
};
/* [train]'s settings for an optimizer beside the policy's: a constant learning rate. */
struct train_config train_constant(const struct train_config *c, double lr, double max_grad_norm);
tare_status trainer_add_second(struct trainer *t, const struct config *c, struct err *e);
void trainer_free_second(struct trainer *t);
tare_status sft_step_second(struct trainer *t, const struct batch *b, double entropy_coef, struct sft_report *r, struct err *e);

/* ---- process_reward.c: the implicit process reward model (PRIME), whose trainer t is; its reference is t->reference. */
/* reward [T]: beta times log phi - log ref of the batch's tokens; ref [T]: the latter. */
tare_status process_rewards(struct trainer *t, const struct batch *b, double beta, float *reward, float *ref, struct err *e);
/* The largest sum of process_reward from a token to the end of its rollout, in absolute value. */
double process_largest(const struct batch *b);
/* out [T]: process_reward as estimators see it ([process_reward] norm). */
void process_normed(const struct batch *b, const struct process_config *c, double *out);
/* How often the batch's process_reward ranks two rollouts of a group as their outcomes do; 0.5 for a group of equal ones. */
tare_status process_accuracy(const struct batch *b, struct arena *a, double *accuracy, struct err *e);
struct process_report { /* means over the optimizer steps */
    double loss, grad_norm, lr;
    int64_t optimizer_steps, rollouts;
};
/* Optimizer steps on the cross entropy of the rollouts' outcomes: rewards, held within 0 and 1. Those without a row_weight are left out. */
tare_status process_update(struct trainer *t, const struct batch *b, const struct process_config *c, struct process_report *r,
                           struct err *e);
/* The optimizer of that model: [train]'s with the keys of [process_reward]. */
struct train_config process_train_config(const struct config *c);

/* ---- score.c: t->grads.sum becomes weight * sum over the tokens of one rollout of grad log p(token), in the layout of the weights. The rollout is
 * one of the group's. */
tare_status update_score(struct trainer *t, const struct batch *b, int64_t group, int64_t rollout, double weight, struct err *e);

/* ---- schedule.c: lr of optimizer step s = 0, 1, ... */
double schedule_lr(const struct train_config *c, int64_t s, int64_t total);

/* ---- microbatch.c */
/* What is counted over tokens; micro-batches' tallies are added in the order of the micro-batches. */
struct tally {
    double loss, entropy, clipped, kl_old, kl_ref, tokens; /* sums */
    double ratio_max, mismatch;                            /* maxima */
    double *sums;                                          /* [microbatch_job.n_sums] */
};
/* Fills coef for the tokens of a block and counts; s->kl is NULL unless exact KL was asked for. */
typedef tare_status (*token_loss)(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                                  struct err *e);
/* Forward and backward over the given groups of b, cut into micro-batches; gradients are added to t->grads. loss NULL: forward only. The frozen
 * reference is run when exact_kl. */
struct microbatch_job {
    const struct batch *b;
    const int64_t *groups; /* [n_groups] */
    int64_t n_groups;
    const double *row_weight; /* [N] rollouts with weight 0 are left out; NULL: all */
    struct model *m;          /* the policy, or any model for a forward pass */
    bool exact_kl;
    token_loss loss;
    void *ctx;
    struct tally *tally;      /* with a loss: added to */
    int64_t n_sums;           /* of tally->sums */
    float *logprob, *entropy; /* [T] outputs, may be NULL */
};
tare_status microbatch_run(struct trainer *t, const struct microbatch_job *job, struct err *e);
/* One micro-batch of these pieces in place of a batch's: b and the outputs by token of the job are not used. */
struct pack_group;
tare_status microbatch_alone(struct trainer *t, const struct microbatch_job *job, struct pack_group *pieces, int64_t n,
                             struct err *e);

/* ---- largest.c: on a backend that counts, the largest micro-batches that groups of these lengths can give, whatever the lengths up to these are */
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

/* ---- optimizer.c: clips by global norm, AdamW on every parameter, makes the compute copy again, zeroes the gradients. A norm that is not
 * finite, or whose square is not in single precision, is TARE_E_NOT_FINITE with t->overflow, or skipped (train.on_nonfinite). */
tare_status optimizer_step(struct trainer *t, double *grad_norm, double *lr, bool *skipped, struct err *e);

#endif
