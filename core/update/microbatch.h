/* Forward and backward passes over groups of a batch. The groups are split into micro-batches,
 * which are distributed to the ranks. */
#ifndef TARE_CORE_UPDATE_MICROBATCH_H
#define TARE_CORE_UPDATE_MICROBATCH_H

#include "update/trainer.h"

/* Counts and sums over tokens. Tallies of micro-batches are added in the order of the
 * micro-batches. A tally begins with zeros, so it has sums, and maxima of values of at least 0; for a
 * minimum keep the maximum of the inverse. */
struct tally {
    double loss, entropy, clipped, kl_old, kl_ref, tokens; /* sums */
    double ratio_max, mismatch;                            /* maxima */
};
/* Fills coef for the tokens of a block and adds to the tally; s->kl is NULL unless exact_kl is
 * set. */
typedef tare_status (*token_loss)(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                                  struct err *e);
/* Runs forward and backward over the given groups of b, split into micro-batches; gradients are
 * added to t->grads. loss NULL: forward only. exact_kl also runs the frozen reference. */
struct microbatch_job {
    const struct batch *b;
    const int64_t *groups; /* [n_groups] */
    int64_t n_groups;
    const double *rollout_weight; /* [N] rollouts with weight 0 are skipped; NULL: none */
    /* [N] 1: the rollout's tokens have coefficients of 0; NULL: none. Such rollouts count where the
     * groups are cut, and are then left out as far as the order of the sums allows: single rollouts
     * where kernels.h has row_chains, else micro-batches of nothing else. */
    const uint8_t *zero;
    uint8_t *left_out; /* [N] with zero: set to 1 for the rollouts that are left out, 0 for the others of the groups */
    struct model *m;   /* the policy, or any model for a forward pass */
    bool exact_kl;
    token_loss loss;
    void *ctx;
    struct tally *tally; /* sums are added to it if there is a loss */
    /* Called for each rollout after the loss of all its tokens, with shares + n_shares * rollout.
     * Afterwards every rank has the shares of all rollouts. */
    tare_status (*share)(void *ctx, int64_t rollout, double *share, struct err *e);
    double *shares;           /* [N, n_shares] */
    int64_t n_shares;         /* 0: no share */
    float *logprob, *entropy; /* [T] outputs, written for sampled tokens only; may be NULL */
};
tare_status microbatch_run(struct trainer *t, const struct microbatch_job *job, struct err *e);
/* Runs one micro-batch of these groups instead of a batch: b and the token outputs of the job are
 * not used. */
struct pack_group;
tare_status microbatch_alone(struct trainer *t, const struct microbatch_job *job, struct pack_group *parts, int64_t n,
                             struct err *e);

#endif
