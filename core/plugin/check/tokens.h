/* Minibatches for objectives under test, and a plugin's outputs for them. All memory is the test's
 * arena. */
#ifndef TARE_CORE_PLUGIN_CHECK_TOKENS_H
#define TARE_CORE_PLUGIN_CHECK_TOKENS_H

#include "plugin/check/internal.h"

/* A minibatch with all of its columns, and the outputs of one step on it. */
struct tokens_trial {
    tare_tokens t; /* as prepare sees it, apart from the optional columns */
    int64_t prepare_size, collect_size;
    double *prepared, *collected;
    tare_token_loss out;
};

/* MIXED: advantages and ratios of all sorts. ON_POLICY: the current weights sampled the tokens.
 * EQUAL: advantages of 0. ONE: a single token. */
enum tokens_shape { TOKENS_MIXED, TOKENS_ON_POLICY, TOKENS_EQUAL, TOKENS_ONE, TOKENS_SHAPES };
extern const char *const TOKENS_NAMES[TOKENS_SHAPES];
tare_status tokens_batch(struct check *c, enum tokens_shape shape, struct tokens_trial *out, struct err *e);

/* Runs prepare, compute (in blocks of that many tokens; 0: one block) and collect, and checks the
 * outputs. */
tare_status tokens_run(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e);
/* Runs compute alone, on changed columns, with the numbers that prepare gave before. */
tare_status tokens_compute(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e);
tare_status tokens_apply(const struct plugin_instance *i, const struct tokens_trial *x, struct err *e);
/* Makes an instance with a history of some steps. */
tare_status tokens_instance(struct check *c, struct plugin_instance **out, struct err *e);

/* Compares values, derivatives, marks and sums bit for bit. */
tare_status tokens_same(const struct tokens_trial *a, const struct tokens_trial *b, const char *what, struct err *e);

#endif
