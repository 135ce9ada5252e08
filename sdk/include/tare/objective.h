/* tare plugin ABI, major 1, since minor 2: objectives, the policy's loss.
 *
 *   L = sum_t c_t (v_t + beta KL_t - lambda H_t)    over the completion tokens t of one minibatch
 *
 * An objective computes v_t and its derivatives. The host computes the rest: the weights c_t
 * (loss.aggregation: means over tokens, sequences, groups), the penalty beta KL_t (loss.kl_coef,
 * loss.kl), the entropy bonus lambda H_t (loss.entropy_coef), and the gradient of the model.
 *
 * One training step, with `self` as it was before the step:
 *   prepare  (optional) once for each minibatch, which it sees whole: numbers for each token, from
 *            sums by sequence or by group, for example
 *   compute  blocks of the minibatch's tokens, divided in any way: v_t, dv_t/dlogp_t, dv_t/dH_t,
 *            dv_t/dKL_t
 *   collect  (optional) after each compute: the block's share of the vector that updates the state;
 *            the host adds the shares
 *   ...all minibatches of the step are done...
 * apply    (optional) the only function that changes the state; called once per step, with the same
 *            bits on every rank
 *
 * A factor without a gradient (a stop-gradient, detach()) is computed from `detached`, which has
 * the same numbers as logprob. So dv/dlogp is an ordinary derivative with `detached` and `prepared`
 * held fixed, and `tare plugin check` compares it with finite differences. A loss of a whole
 * sequence, L_i = f(S_i) with S_i a sum of terms of its n tokens, is written as v_t = f of the
 * prepared sum with the token's own term replaced by its current value, such that dv_t/dlogp_t = n
 * dL_i/dlogp_t; the weights c_t contain 1/n. */
#ifndef TARE_OBJECTIVE_H
#define TARE_OBJECTIVE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptor needs of an objective: optional columns, which are computed only for objectives that
 * need them. */
enum {
    /* prepare sees logprob and entropy, from a forward pass before each minibatch */
    TARE_OBJECTIVE_PASS = 1,
    TARE_OBJECTIVE_REFERENCE = 2, /* ref_logprob: logprobs of the frozen reference policy */
    /* sampler_logprob and old_logprob as two columns: requires loss.old_logprobs = recompute */
    TARE_OBJECTIVE_SAMPLER = 4,
    TARE_OBJECTIVE_KL = 8, /* kl: KL(pi || ref) over the whole vocabulary, and its derivative */
    /* it computes tokens of off-policy traces itself; otherwise the host does (loss.shaping) */
    TARE_OBJECTIVE_TRACES = 16
};

/* Flags of tare_objective: values of [loss] that the objective does not read, so that the host can
 * warn a user who sets them. */
enum {
    TARE_OBJECTIVE_OWN_CLIP = 1,     /* clip and clip_high */
    TARE_OBJECTIVE_OWN_DUAL_CLIP = 2 /* dual_clip */
};

/* The values of [loss] that an objective may use. */
typedef struct tare_loss {
    uint32_t struct_size, flags;
    /* epsilon below and above 1; clip_high is loss.clip where it is not set */
    double clip, clip_high;
    double dual_clip; /* above 1; 0: off */
    double kl_coef, entropy_coef, shaping;
} tare_loss;

/* Tokens in the loss. Tokens of rollouts that the estimator dropped, of prompts and of padding are
 * never among them. */
typedef struct tare_tokens {
    uint32_t struct_size, flags;
    int64_t step, n;
    /* [n] log pi(token) of the current weights; NULL in prepare without TARE_OBJECTIVE_PASS */
    const float *logprob;
    const float *detached;    /* [n] equal to logprob, without a gradient */
    const float *old_logprob; /* [n] under the weights at the beginning of the step */
    /* [n] as recorded while sampling; NULL unless needed, like the next two */
    const float *sampler_logprob;
    const float *ref_logprob; /* [n] */
    const float *kl;          /* [n] also NULL in prepare */
    const float *entropy;     /* [n] H under the current weights; NULL where logprob is */
    const double *advantage;  /* [n] */
    const double *weight;     /* [n] c_t */
    /* [n] 1: token of an off-policy trace, which the policy did not sample; its old_logprob is 0.
     * NULL: no such token */
    const uint8_t *off_policy;
    /* [n, prepare_size] the output of prepare; NULL in prepare and without it */
    const double *prepared;
    /* For prepare, which has the whole minibatch; 0 and NULL in compute and collect. */
    int64_t n_sequences, n_groups;
    /* [n_sequences+1] tokens of sequence i are sequence_begin[i] .. sequence_begin[i+1]-1 */
    const int64_t *sequence_begin;
    /* [n_groups+1] sequences of group m (one prompt), in the same way */
    const int64_t *group_begin;
} tare_tokens;

/* Output buffers of the host. On entry value and dlogprob are NaN: every entry must be written. The
 * others are 0. */
typedef struct tare_token_loss {
    uint32_t struct_size, flags;
    double *value;    /* [n] v_t */
    double *dlogprob; /* [n] dv_t/dlogp_t */
    double *dentropy; /* [n] dv_t/dH_t */
    double *dkl;      /* [n] dv_t/dKL_t; only with TARE_OBJECTIVE_KL, else NULL */
    /* [n] 1: a bound took effect, or the token was left out (the metric policy/clip_fraction) */
    uint8_t *clipped;
} tare_token_loss;

/* The function table of an objective. Only create, destroy and compute are required. */
typedef struct tare_objective {
    uint32_t struct_size, flags;
    /* Creates an instance. values: [n_params] in table order. loss: a view, valid until create
     * returns. */
    tare_status (*create)(const tare_host *host, const tare_value *values, const tare_loss *loss, void **self, tare_error *error);
    void (*destroy)(void *self);
    /* [const] NULL: no state */
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);
    /* NULL: no state */
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);
    /* numbers for each token, 1 or more */
    int64_t (*prepare_size)(const void *self);
    int64_t (*collect_size)(const void *self); /* size of the vector that updates the state */
    /* [const] Writes prepared: [n, prepare_size], zero on entry. */
    tare_status (*prepare)(const void *self, const tare_tokens *tokens, double *prepared, tare_error *error);
    /* [const] Writes values and derivatives. A token's outputs depend on that token's columns
     * alone. */
    tare_status (*compute)(const void *self, const tare_tokens *tokens, tare_token_loss *out, tare_error *error);
    /* [const] Adds the block's share to sum: [collect_size]. loss: the output of compute. */
    tare_status (*collect)(const void *self, const tare_tokens *tokens, const tare_token_loss *loss, double *sum,
                           tare_error *error);
    /* the only function that changes the state */
    tare_status (*apply)(void *self, int64_t step, const double *collected, tare_error *error);
} tare_objective;

#ifdef __cplusplus
}
#endif
#endif
