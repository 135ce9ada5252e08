/* The policy loss of one token block: the objective, KL, entropy and importance weights. loss.c has
 * the equations. */
#ifndef TARE_CORE_UPDATE_LOSS_H
#define TARE_CORE_UPDATE_LOSS_H

#include "update/microbatch.h"
#include "update/objective.h"

struct policy_loss {
    struct objective *objective;
    const struct batch *b;
    const struct loss_config *c;
    struct objective_columns columns;
    double *ratio;        /* [T] */
    const float *sampled; /* [T] for truncated importance sampling; NULL: none */
    bool traces;          /* the objective handles traces itself */
    /* If true, a ratio that is not finite is an error. If false, the gradient's norm becomes
     * non-finite on all ranks instead. */
    bool stops;
    bool first; /* the weights are still the sampling weights: measure the mismatch */
};

struct loss_term {
    double value, dlogp;
};
/* Estimates KL(pi || ref) from one token, with its derivative in logp. */
struct loss_term loss_kl_estimate(enum kl_form form, double logp, double ref);

/* A token_loss (microbatch.h) with ctx a struct policy_loss: fills coef for a block of tokens and
 * adds to the tally. */
tare_status loss_policy_tokens(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally,
                               struct err *e);
/* microbatch_job.share with the same ctx: what the objective collects of a rollout. */
tare_status loss_policy_share(void *ctx, int64_t rollout, double *share, struct err *e);

#endif
