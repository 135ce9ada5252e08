/* Objectives: the policy's loss as a plugin (sdk/include/tare/objective.h), called between the
 * minibatches and the head.
 *
 *   TRY(objective_open(&options, &o, e));
 *   each step:       objective_forget(o);
 *                    TRY(objective_begin(o, b, &columns, e));
 *   each minibatch:  TRY(objective_annotate(o, groups, n, logprob, entropy, e));
 *   each block:      TRY(objective_compute(o, &block, &got, e));
 *   each rollout:    TRY(objective_collect(o, rollout, share, e));
 *   its end:         objective_add(o, shares, n_rollouts);
 *   at its end:      TRY(objective_apply(o, step, updates, skipped, e));
 *
 * Columns are in host memory, even if the model is on a device: a block's logprobs are copied from
 * it and its coefficients to it (microbatch.c), the same few numbers a token for every objective.
 * Not thread-safe. */
#ifndef TARE_CORE_UPDATE_OBJECTIVE_H
#define TARE_CORE_UPDATE_OBJECTIVE_H

#include "batch/batch.h"
#include "config/config.h"
#include "plugin/plugin.h"

struct objective;

struct objective_options {
    const char *plugin;                  /* name or file */
    const struct plugin_search *search;  /* or NULL */
    const struct config_param *settings; /* config.params, or NULL */
    const struct loss_config *loss;
    struct plugin_env env;
};

/* Fails with the errors of plugin_open, and for the column "sampler_logprob" combined with
 * loss.old_logprobs = sampler or with loss.rollout_is. */
tare_status objective_open(const struct objective_options *o, struct objective **out, struct err *e);
void objective_free(struct objective *o); /* NULL: no-op */

/* What an objective needs beside the batch. */
struct objective_uses {
    bool looks_ahead; /* a forward pass before each minibatch */
    bool ref_logprob; /* logprobs of the reference policy */
    bool kl;          /* the exact KL, and with it the reference policy in the update */
};
struct objective_uses objective_uses(const struct objective *o);
/* Reads it from a configuration without creating the objective. ref_logprob is also set if the
 * estimator reads the reference's logprobs. */
tare_status objective_read_uses(const struct config *c, struct objective_uses *out, struct err *e);
bool objective_wants(const struct objective *o, enum column_id column);
bool objective_treats_off_policy(const struct objective *o);
/* A token without an advantage has no gradient, and nothing is collected from it. */
bool objective_zero_at_zero(const struct objective *o);
const struct plugin *objective_plugin(const struct objective *o);
const struct plugin_instance *objective_instance(const struct objective *o);
int64_t objective_collects(const struct objective *o); /* numbers that collect gives for a rollout */

/* Token columns that are not in the step's batch; they must outlive the step. */
struct objective_columns {
    const float *old;     /* [T] */
    const float *sampled; /* [T] or NULL */
    const double *weight; /* [T] c_t of the current minibatch */
    const int64_t *owner; /* [T] rollout of a token */
};
/* Forgets what the last step collected. */
void objective_forget(struct objective *o);
tare_status objective_begin(struct objective *o, const struct batch *b, const struct objective_columns *columns, struct err *e);

/* Annotates the minibatch's groups. logprob, entropy: [T] under the current weights, or both
 * NULL. */
tare_status objective_annotate(struct objective *o, const int64_t *groups, int64_t n, const float *logprob, const float *entropy,
                               struct err *e);

/* n tokens of the batch by their index into batch->ids, with their values from the head; kl may be
 * NULL. */
struct token_block {
    const int64_t *token;
    int64_t n;
    const float *logprob, *entropy, *kl;
};
/* The objective's outputs: [n], valid until the next block. value is NaN for tokens of traces that
 * it does not handle. */
struct objective_block {
    const double *value, *dlogprob, *dentropy, *dkl; /* dkl may be NULL */
    const uint8_t *clipped;
};
tare_status objective_compute(struct objective *o, const struct token_block *block, struct objective_block *out, struct err *e);

/* Writes a rollout's share [objective_collects], zero on entry, after all its tokens were computed.
 * If some were not (a ratio that is not finite), the share is NaN. */
tare_status objective_collect(struct objective *o, int64_t rollout, double *share, struct err *e);
/* Adds the shares of a minibatch's n rollouts [n, objective_collects] in their order. A minibatch
 * with a share of NaN adds nothing: its optimizer step is skipped on all ranks. */
void objective_add(struct objective *o, const double *shares, int64_t n);

/* Updates the state after the step's last minibatch; nothing else changes it. updates: optimizer
 * steps; skipped: those left out because the gradient was not finite. */
tare_status objective_apply(struct objective *o, int64_t step, int64_t updates, int64_t skipped, struct err *e);

/* The plugin's state, framed (plugin.h). */
tare_status objective_save(const struct objective *o, struct str *out, struct err *e);
tare_status objective_load(struct objective *o, const void *data, int64_t n, const char *where, struct err *e);

#endif
