/* tare plugin ABI, major 1: objectives, the policy's loss.
 *
 *   L = sum_t c_t (v_t + beta KL_t - lambda H_t)    over the sampled tokens t of one minibatch
 *
 * An objective computes v_t and its derivatives. The host computes the rest: the weights c_t
 * (loss.aggregation: means over tokens, rollouts, groups), the penalty beta KL_t (loss.kl_coef,
 * loss.kl), the entropy bonus lambda H_t (loss.entropy_coef), and the gradient of the model.
 *
 * One training step, with `self` as it was before the step:
 *   annotate (optional) once for each minibatch, which it sees whole: numbers for each token, from
 *            sums by rollout or by group, for example
 *   compute  blocks of the minibatch's tokens, divided in any way: v_t, dv_t/dlogp_t, dv_t/dH_t,
 *            dv_t/dKL_t
 *   collect  (optional) one rollout at a time, after its compute: its share of the vector that
 *            updates the state; the host adds the shares in batch order
 *   ...all minibatches of the step are done...
 *   apply    (optional) the only function that changes the state; called in every step, with the
 *            same bits on every rank
 *
 * A factor without a gradient (a stop-gradient, detach()) is computed from `detached`, which has
 * the same numbers as logprob. So dv/dlogp is an ordinary derivative with `detached` and `annotated`
 * held fixed, and `tare plugin check` compares it with finite differences. A loss of a whole
 * rollout, L_i = f(S_i) with S_i a sum of terms of its n tokens, is written as v_t = f of the
 * annotated sum with the token's own term replaced by its current value, such that dv_t/dlogp_t = n
 * dL_i/dlogp_t; the weights c_t contain 1/n. */
#ifndef TARE_OBJECTIVE_H
#define TARE_OBJECTIVE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of tare_objective. */
enum {
    /* Values of [loss] that the objective does not read, so that the host can warn a user who sets
     * them: clip and clip_high; dual_clip. */
    TARE_OBJECTIVE_OWN_CLIP = 1,
    TARE_OBJECTIVE_OWN_DUAL_CLIP = 2,
    /* annotate sees logprob and entropy, from a forward pass before each minibatch */
    TARE_OBJECTIVE_LOOKS_AHEAD = 4,
    /* it computes tokens of off-policy rollouts itself; otherwise the host does (loss.shaping) */
    TARE_OBJECTIVE_TREATS_OFF_POLICY = 8,
    /* it writes dkl, the derivative by the column "kl" */
    TARE_OBJECTIVE_GIVES_DKL = 16,
    /* where a token's advantage is 0, its value and its derivatives are 0 too, so the host need not
     * compute rollouts without an advantage (train.skip_zero) */
    TARE_OBJECTIVE_ZERO_AT_ZERO = 32
};

/* The values of [loss] that an objective may use. */
typedef struct tare_loss {
    uint32_t struct_size, flags;
    double clip, clip_high; /* epsilon below and above 1; clip_high is loss.clip where it is not set */
    double dual_clip;       /* above 1; 0: off */
    double kl_coef, entropy_coef, shaping;
} tare_loss;

/* Tokens in the loss: sampled ones of rollouts that the estimator kept, never context, prompts or
 * padding. Columns on the axis TOKEN have an entry for each of them. */
typedef struct tare_tokens {
    uint32_t struct_size, flags;
    int64_t step, n;
    const float *logprob;     /* [n] log pi(token) of the current weights; NULL in annotate without LOOKS_AHEAD */
    const float *detached;    /* [n] equal to logprob, without a gradient */
    const float *old_logprob; /* [n] under the weights at the beginning of the step; 0 for off-policy tokens */
    const float *entropy;     /* [n] H under the current weights; NULL where logprob is */
    const double *advantage;  /* [n] */
    const double *weight;     /* [n] c_t */
    const double *annotated;  /* [n, tare_sizes.prepare] the output of annotate; NULL in annotate and without it */
    /* In annotate, which has the whole minibatch; in compute and collect 0 and NULL. */
    int64_t n_rollouts, n_groups;
    const int64_t *token_begin; /* [n_rollouts+1] the tokens of rollout i are token_begin[i] .. token_begin[i+1]-1 */
    const int64_t *group_begin; /* [n_groups+1] rollouts of group m (one prompt), in the same way */
    const tare_column *column;  /* [n_wants] in the order of the descriptor's table */
} tare_tokens;

/* Output buffers of the host. On entry value and dlogprob are NaN: every entry must be written. The
 * others are 0. */
typedef struct tare_token_loss {
    uint32_t struct_size, flags;
    double *value;    /* [n] v_t */
    double *dlogprob; /* [n] dv_t/dlogp_t */
    double *dentropy; /* [n] dv_t/dH_t */
    double *dkl;      /* [n] dv_t/dKL_t; only with TARE_OBJECTIVE_GIVES_DKL, else NULL */
    uint8_t *clipped; /* [n] 1: a bound took effect, or the token was left out (the metric policy/clip_fraction) */
} tare_token_loss;

/* The function table of an objective. Required beside the head's: compute. */
typedef struct tare_objective {
    TARE_HEAD;
    /* [setup] prepare: annotated doubles of a token; collect; NULL: all 0. */
    tare_status (*sizes)(const void *self, tare_sizes *out, tare_error *error);
    /* [serial] [const] Writes annotated: [n, prepare], zero on entry. */
    tare_status (*annotate)(const void *self, const tare_tokens *minibatch, double *annotated, tare_error *error);
    /* [worker] [const] Writes values and derivatives. A token's outputs depend on that token's
     * columns alone. */
    tare_status (*compute)(const void *self, const tare_tokens *tokens, tare_token_loss *out, tare_error *error);
    /* [worker] [const] Adds the rollout's share to sum: [collect], zero on entry. loss: the output of
     * compute. */
    tare_status (*collect)(const void *self, const tare_tokens *tokens, const tare_token_loss *loss, double *sum,
                           tare_error *error);
    /* [serial] Updates the state; n_groups is 0. */
    tare_status (*apply)(void *self, const tare_update *update, tare_error *error);
} tare_objective;

#ifdef __cplusplus
}
#endif
#endif
