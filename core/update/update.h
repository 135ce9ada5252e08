/* The policy update: minibatches of whole groups, packed micro-batches in which a prompt is
 * computed once for its G rollouts, the objective (objective.h), AdamW.
 *
 *   L = sum_t c_t v_t + beta sum_t c_t KL_t - lambda sum_t c_t H_t
 *                                                           (paper Eq. grpo_obj, appendix_objective)
 *   v_t: the objective's; ppo: - min(r_t A_t, clip(r_t, 1-eps, 1+eps_high) A_t),
 *        r_t = exp(logp_t - old_t)
 *   c_t = 1/n_i * 1/G * 1/M of the minibatch (aggregation = sequence, the paper's means),
 *         1/sum n_i (token), 1/(N length) (constant)
 *
 * One trainer serves reinforcement learning and supervised training: both pass microbatch_run a
 * function that maps a token's logprob, entropy and KL to the three coefficients of its gradient
 * (struct head_grad_row).
 *
 * On the ranks of the model's job all functions are collective and take the same batch;
 * micro-batches are dealt to the ranks (microbatch.c), and weights, moments and metrics are
 * bit-identical for every number of ranks up to gradient_shards. */
#ifndef TARE_CORE_UPDATE_UPDATE_H
#define TARE_CORE_UPDATE_UPDATE_H

#include "update/trainer.h"

/* Means over the computed tokens of all minibatches, NaN for none; the entropy is over all, with that
 * of the sampler for tokens that were left out. */
struct update_report {
    double loss, entropy, clip_fraction, approx_kl, ratio_max, reference_kl, grad_norm, lr, mismatch;
    double skipped_ratio; /* share of the minibatches' tokens that were left out: train.skip_zero */
    int64_t optimizer_steps, skipped, tokens;
};

/* Runs one iteration: train.epochs passes over the batch in minibatches. The advantages and rollout
 * weights of b are constants. */
tare_status update_run(struct trainer *t, const struct batch *b, struct update_report *report, struct err *e);
/* Passes the objective what the last update_run collected, for its state. Called in every step, also
 * after an update without groups. */
tare_status update_apply(struct trainer *t, int64_t step, struct err *e);

/* Computes logprob (and entropy, may be NULL) [T] of the batch's completion tokens under m, at the
 * trainer's temperature. */
tare_status update_logprobs(struct trainer *t, struct model *m, const struct batch *b, float *logprob, float *entropy,
                            struct err *e);

#endif
