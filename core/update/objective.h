/* Objectives: the policy's loss as a plugin (sdk/include/tare/objective.h), called between the
 * minibatches and the head.
 *
 *   TRY(objective_open(&options, &o, e));
 *   each step:       TRY(objective_begin(o, b, &columns, e));
 *   each minibatch:  TRY(objective_prepare(o, groups, n, logprob, entropy, e));
 *   each block:      TRY(objective_compute(o, &block, sums, &got, e));
 *   at its end:      TRY(objective_apply(o, step, collected, e));
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

/* Fails with the errors of plugin_open, for unknown needs, and for TARE_OBJECTIVE_SAMPLER combined
 * with loss.old_logprobs = sampler or with loss.rollout_is. */
tare_status objective_open(const struct objective_options *o, struct objective **out, struct err *e);
/* Reads the needs of the configuration's objective without opening it, plus
 * TARE_OBJECTIVE_REFERENCE if the estimator reads the reference's logprobs. */
tare_status objective_read_needs(const struct config *c, uint32_t *needs, struct err *e);
void objective_free(struct objective *o); /* NULL: no-op */
uint32_t objective_needs(const struct objective *o);
const struct plugin *objective_plugin(const struct objective *o);
bool objective_prepares(const struct objective *o);
int64_t objective_sums(const struct objective *o); /* numbers that collect adds to */

/* Token columns that are not in the step's batch; they must outlive the step. */
struct objective_columns {
    const float *old;     /* [T] */
    const float *sampled; /* [T] or NULL */
    const double *weight; /* [T] c_t of the current minibatch */
    const int64_t *owner; /* [T] rollout of a token */
};
tare_status objective_begin(struct objective *o, const struct batch *b, const struct objective_columns *columns, struct err *e);

/* Prepares the minibatch's groups. logprob, entropy: [T] under the current weights, or NULL. */
tare_status objective_prepare(struct objective *o, const int64_t *groups, int64_t n, const float *logprob, const float *entropy,
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
/* Computes a block. collect adds to sums [objective_sums]. */
tare_status objective_compute(struct objective *o, const struct token_block *block, double *sums, struct objective_block *out,
                              struct err *e);

/* Updates the state after the step's last minibatch; nothing else changes it. */
tare_status objective_apply(struct objective *o, int64_t step, const double *collected, struct err *e);

/* The plugin's state, framed (plugin.h). */
tare_status objective_save(const struct objective *o, struct str *out, struct err *e);
tare_status objective_load(struct objective *o, const void *data, int64_t n, const char *where, struct err *e);

#endif
