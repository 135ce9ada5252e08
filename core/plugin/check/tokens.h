/* Minibatches for objectives under test, and a plugin's outputs for them. All memory is the test's
 * arena. */
#ifndef TARE_CORE_PLUGIN_CHECK_TOKENS_H
#define TARE_CORE_PLUGIN_CHECK_TOKENS_H

#include "plugin/check/internal.h"

/* A minibatch with all of its columns, and the outputs of one step on it. */
struct tokens_trial {
    tare_tokens t; /* the whole minibatch, without wanted columns */
    const float *sampled, *ref, *kl;
    const uint8_t *off_policy;
    const int32_t *turn;
    double *annotated, *collected;
    tare_token_loss out;
};

struct tokens_range {
    int64_t first, n;
    bool before; /* as annotate sees them */
};

/* MIXED: advantages and ratios of all sorts. ON_POLICY: the current weights sampled the tokens.
 * EQUAL: advantages of 0. ONE: a single token. */
enum tokens_shape { TOKENS_MIXED, TOKENS_ON_POLICY, TOKENS_EQUAL, TOKENS_ONE, TOKENS_SHAPES };
extern const char *const TOKENS_NAMES[TOKENS_SHAPES];
tare_status tokens_batch(struct check *c, enum tokens_shape shape, struct tokens_trial *out, struct err *e);

/* Runs annotate, compute (in blocks of that many tokens; 0: one block) and collect, and checks the
 * outputs. */
tare_status tokens_run(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e);
/* Runs compute and collect, on changed columns, with the numbers that annotate gave before. */
tare_status tokens_compute(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e);
/* Makes the plugin's view of the tokens first, ... first + n - 1. */
tare_status tokens_view(struct check *c, const struct plugin_instance *i, const struct tokens_trial *x, struct tokens_range r,
                        tare_tokens *out, struct err *e);
/* Adds what collect gives for a rollout to sum. */
tare_status tokens_collect(struct check *c, const struct plugin_instance *i, const struct tokens_trial *x, int64_t rollout,
                           double *sum, struct err *e);
/* x NULL: a step without groups. */
tare_status tokens_apply(struct check *c, const struct plugin_instance *i, const struct tokens_trial *x, struct err *e);
/* Makes an instance with a history of some steps. */
tare_status tokens_instance(struct check *c, struct plugin_instance **out, struct err *e);

/* Compares values, derivatives, marks and sums bit for bit. */
tare_status tokens_same(const struct plugin_instance *i, const struct tokens_trial *a, const struct tokens_trial *b,
                        const char *what, struct err *e);

#endif
