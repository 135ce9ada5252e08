/* Objectives: the policy's loss as a plugin (sdk/include/tare/objective.h), between the minibatches and the head.
 *
 *   TRY(objective_open(&options, &o, e));
 *   each step:       TRY(objective_begin(o, b, &columns, e));
 *   each minibatch:  TRY(objective_prepare(o, groups, n, logprob, entropy, e));
 *   each block:      TRY(objective_compute(o, &block, sums, &got, e));
 *   at its end:      TRY(objective_apply(o, step, collected, e));
 *
 * Columns are in host memory, even when the model is on a device: a block's scores are copied from it and its coefficients to it (microbatch.c),
 * the same few numbers a token for every objective. Not thread-safe. */
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

/* Errors: what plugin_open says; needs that this program does not know; TARE_OBJECTIVE_SAMPLER with loss.old_logprobs = sampler, or together with loss.rollout_is. */
tare_status objective_open(const struct objective_options *o, struct objective **out, struct err *e);
/* What the configuration's objective needs, without opening it; TARE_OBJECTIVE_REFERENCE too where the estimator reads the reference's logprobs. */
tare_status objective_look(const struct config *c, uint32_t *needs, struct err *e);
void objective_free(struct objective *o); /* NULL: nothing */
uint32_t objective_needs(const struct objective *o);
const struct plugin *objective_plugin(const struct objective *o);
bool objective_prepares(const struct objective *o);
int64_t objective_sums(const struct objective *o); /* numbers that collect adds to */

/* Columns by token that the step's batch does not hold itself; they live as long as the step. */
struct objective_columns {
    const float *old;     /* [T] */
    const float *sampled; /* [T] or NULL */
    const double *weight; /* [T] c_t of the current minibatch */
    const int64_t *owner; /* [T] rollout of a token */
};
tare_status objective_begin(struct objective *o, const struct batch *b, const struct objective_columns *columns, struct err *e);

/* The minibatch's groups; logprob and entropy [T]: of the current weights, or NULL. */
tare_status objective_prepare(struct objective *o, const int64_t *groups, int64_t n, const float *logprob, const float *entropy,
                              struct err *e);

/* n tokens of the batch, each known by its index into batch->ids, and what the head knows of them; kl may be NULL. */
struct token_block {
    const int64_t *token;
    int64_t n;
    const float *logprob, *entropy, *kl;
};
/* What the objective gave: [n], valid until the next block. For tokens of traces that it does not treat value is NaN. */
struct objective_block {
    const double *value, *dlogprob, *dentropy, *dkl; /* dkl may be NULL */
    const uint8_t *clipped;
};
/* sums [objective_sums]: collect adds to them. */
tare_status objective_compute(struct objective *o, const struct token_block *block, double *sums, struct objective_block *out,
                              struct err *e);

/* After the step's last minibatch; nothing else changes the state. */
tare_status objective_apply(struct objective *o, int64_t step, const double *collected, struct err *e);

/* The plugin's state, framed (plugin.h). */
tare_status objective_save(const struct objective *o, struct str *out, struct err *e);
tare_status objective_load(struct objective *o, const void *data, int64_t n, const char *where, struct err *e);

#endif
