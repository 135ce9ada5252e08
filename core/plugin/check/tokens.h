/* Minibatches for objectives under test, and what a plugin makes of one. All memory is the test's arena. */
#ifndef TARE_CORE_PLUGIN_CHECK_TOKENS_H
#define TARE_CORE_PLUGIN_CHECK_TOKENS_H

#include "plugin/check/internal.h"

/* A minibatch with all of its columns, and what one step on it gave. */
struct tokens_trial {
    tare_tokens t; /* as prepare sees it, but for the columns that need not be shown */
    int64_t prepare_size, collect_size;
    double *prepared, *collected;
    tare_token_loss out;
};

/* MIXED: advantages and ratios of all sorts. ON_POLICY: the weights are those that sampled. EQUAL: advantages of 0. ONE: a single token. */
enum tokens_shape { TOKENS_MIXED, TOKENS_ON_POLICY, TOKENS_EQUAL, TOKENS_ONE, TOKENS_SHAPES };
extern const char *const TOKENS_NAMES[TOKENS_SHAPES];
tare_status tokens_batch(struct check *c, enum tokens_shape shape, struct tokens_trial *out, struct err *e);

/* prepare, compute (in blocks of that many tokens; 0: one) and collect; outputs are checked. */
tare_status tokens_run(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e);
/* compute alone, on changed columns, with what prepare gave before. */
tare_status tokens_compute(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e);
tare_status tokens_apply(const struct plugin_instance *i, const struct tokens_trial *x, struct err *e);
/* An instance with some steps of history. */
tare_status tokens_instance(struct check *c, struct plugin_instance **out, struct err *e);

/* Values, derivatives, marks and sums, to the bit. */
tare_status tokens_same(const struct tokens_trial *a, const struct tokens_trial *b, const char *what, struct err *e);

#endif
