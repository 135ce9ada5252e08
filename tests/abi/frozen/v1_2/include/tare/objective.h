/* tare plugin ABI, major 1, since minor 2: objectives, the policy's loss.
 *
 *   L = sum_t c_t (v_t + beta KL_t - lambda H_t)        over the completion tokens t of one minibatch
 *
 * An objective gives v_t and its derivatives. The rest is the host's: the weights c_t (loss.aggregation: means over tokens, sequences,
 * groups), the penalty beta KL_t (loss.kl_coef, loss.kl), the entropy bonus lambda H_t (loss.entropy_coef), the gradient of the model.
 *
 * One training step, with `self` as it was before the step:
 *   prepare  once for each minibatch, which it sees whole: numbers for each token, from sums by sequence or by group, say    (optional)
 *   compute  blocks of the minibatch's tokens, in any cut: v_t, dv_t/dlogp_t, dv_t/dH_t, dv_t/dKL_t
 *   collect  after each compute: what the state needs to know about the block; the host adds up                             (optional)
 *   ...all minibatches of the step are done...
 *   apply    the only function that changes the state; once a step, with the same bits on every rank                         (optional)
 *
 * A factor through which no gradient shall flow (a stop-gradient, detach()) is computed from `detached`, the same numbers as logprob. So
 * dv/dlogp is an ordinary derivative with `detached` and `prepared` held fixed, and `tare plugin check` compares it with differences.
 * A loss of a whole sequence, L_i = f(S_i) with S_i a sum of terms of its n tokens, is written so: v_t = f of the prepared sum with the
 * token's own term replaced by its current value, such that dv_t/dlogp_t = n dL_i/dlogp_t; the weights c_t hold 1/n.
 */
#ifndef TARE_OBJECTIVE_H
#define TARE_OBJECTIVE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptor needs of an objective: columns that are computed only for those that ask. */
enum {
    TARE_OBJECTIVE_PASS = 1,      /* prepare sees logprob and entropy: a forward pass before each minibatch */
    TARE_OBJECTIVE_REFERENCE = 2, /* ref_logprob: of the frozen reference policy */
    TARE_OBJECTIVE_SAMPLER = 4,   /* sampler_logprob and old_logprob as two columns: asks for loss.old_logprobs = recompute */
    TARE_OBJECTIVE_KL = 8,        /* kl: KL(pi || ref) over the whole vocabulary, and its derivative */
    TARE_OBJECTIVE_TRACES = 16    /* it treats tokens of off-policy traces itself; of others the host does (loss.shaping) */
};

/* Flags of tare_objective: values of [loss] that it does not read, so that somebody who sets them can be told. */
enum {
    TARE_OBJECTIVE_OWN_CLIP = 1,     /* clip and clip_high */
    TARE_OBJECTIVE_OWN_DUAL_CLIP = 2 /* dual_clip */
};

/* The values of [loss] that an objective may build on. */
typedef struct tare_loss {
    uint32_t struct_size, flags;
    double clip, clip_high; /* epsilon below and above 1; clip_high is loss.clip where it is not set */
    double dual_clip;       /* above 1; 0: off */
    double kl_coef, entropy_coef, shaping;
} tare_loss;

/* Tokens that count: those of rollouts which the estimator dropped, prompts and padding are never among them. */
typedef struct tare_tokens {
    uint32_t struct_size, flags;
    int64_t step, n;
    const float *logprob;         /* [n] log pi(token) of the current weights; NULL in prepare without TARE_OBJECTIVE_PASS */
    const float *detached;        /* [n] the same, without a gradient */
    const float *old_logprob;     /* [n] of the weights that began the step */
    const float *sampler_logprob; /* [n] as recorded while sampling; NULL unless needed. So are the next */
    const float *ref_logprob;     /* [n] */
    const float *kl;              /* [n] NULL in prepare, too */
    const float *entropy;         /* [n] H of the current weights; as logprob */
    const double *advantage;      /* [n] */
    const double *weight;         /* [n] c_t */
    const uint8_t *off_policy; /* [n] 1: of a trace that the policy did not sample, whose old_logprob is 0. NULL: there are none */
    const double *prepared;    /* [n, prepare_size] what prepare wrote; NULL in prepare and without it */
    /* In prepare, which has the whole minibatch; 0 and NULL in compute and collect. */
    int64_t n_sequences, n_groups;
    const int64_t *sequence_begin; /* [n_sequences+1] tokens of sequence i are sequence_begin[i] .. sequence_begin[i+1]-1 */
    const int64_t *group_begin;    /* [n_groups+1] sequences of a group (one prompt) */
} tare_tokens;

/* Buffers of the host. On entry value and dlogprob are NaN: each must be written; the others are 0. */
typedef struct tare_token_loss {
    uint32_t struct_size, flags;
    double *value;    /* [n] v_t */
    double *dlogprob; /* [n] dv_t/dlogp_t */
    double *dentropy; /* [n] dv_t/dH_t */
    double *dkl;      /* [n] dv_t/dKL_t; only with TARE_OBJECTIVE_KL, else NULL */
    uint8_t *clipped; /* [n] 1: a bound decided, or the token was left out (the metric policy/clip_fraction) */
} tare_token_loss;

typedef struct tare_objective {
    uint32_t struct_size, flags;
    /* values: [n_params] in table order. loss: a view, valid until create returns. */
    tare_status (*create)(const tare_host *host, const tare_value *values, const tare_loss *loss, void **self, tare_error *error);
    void (*destroy)(void *self);
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error); /* [const] NULL: no state */
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);        /* NULL: no state */
    int64_t (*prepare_size)(const void *self);                                        /* numbers for each token, 1 or more */
    int64_t (*collect_size)(const void *self);                                        /* numbers that the state is updated from */
    /* [const] prepared: [n, prepare_size], zero on entry */
    tare_status (*prepare)(const void *self, const tare_tokens *tokens, double *prepared, tare_error *error);
    /* [const] what a token gets depends on that token's columns alone */
    tare_status (*compute)(const void *self, const tare_tokens *tokens, tare_token_loss *out, tare_error *error);
    /* [const] add the block's share to sum[collect_size]; loss: what compute gave */
    tare_status (*collect)(const void *self, const tare_tokens *tokens, const tare_token_loss *loss, double *sum,
                           tare_error *error);
    tare_status (*apply)(void *self, int64_t step, const double *collected, tare_error *error); /* the only writer */
} tare_objective;

#ifdef __cplusplus
}
#endif
#endif
