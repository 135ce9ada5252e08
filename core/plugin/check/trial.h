/* Batches for estimators under test, and a plugin's outputs for them. All memory is the test's
 * arena. */
#ifndef TARE_CORE_PLUGIN_CHECK_TRIAL_H
#define TARE_CORE_PLUGIN_CHECK_TRIAL_H

#include "plugin/check/internal.h"

/* A batch, and the outputs of one step on it. */
struct trial {
    tare_batch b;
    tare_advantages out;
    int64_t prepare_size, collect_size, record_size;
    double *prepared, *collected, *records; /* records: [groups, record_size] */
};

enum trial_shape { TRIAL_MIXED, TRIAL_EQUAL, TRIAL_SINGLES, TRIAL_UNCLUSTERED, TRIAL_WIDE, TRIAL_TURNS, TRIAL_EMPTY, TRIAL_SHAPES };
extern const char *const TRIAL_NAMES[TRIAL_SHAPES]; /* "mixed rewards", ... */

/* Makes groups of a shape as the engine would show them: the columns are those that the plugin
 * wants, and some prompts recur, within a batch and between batches. Rewards are 0 and 1 for a
 * plugin that accepts no others. */
tare_status trial_batch(struct check *c, enum trial_shape shape, int64_t groups, tare_batch *out, struct err *e);
/* Makes a batch from the groups groups[0], ... groups[n - 1] of another batch, in this order. */
tare_status trial_groups(struct check *c, const tare_batch *from, const int64_t *groups, int64_t n, tare_batch *out, struct err *e);
/* Copies a batch, with absurd numbers in the columns of its context tokens, which must not change any
 * output. */
tare_status trial_absurd(struct check *c, const tare_batch *from, tare_batch *out, struct err *e);

/* Returns a batch as the engine shows it to this instance: wants that are turned off have no data, and
 * "updated_logprob" is there only after the policy step. column: [TARE_LIMIT_WANTS], the caller's. */
tare_batch trial_show(const struct check *c, const struct plugin_instance *i, const tare_batch *b, bool after, tare_column *column);

/* Makes an instance with a history of some steps. */
tare_status trial_instance(struct check *c, struct plugin_instance **out, struct err *e);
/* Runs prepare, compute, collect and record on t->b, and checks the outputs. */
tare_status trial_run(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e);
tare_status trial_apply(const struct plugin_instance *i, const struct trial *t, struct err *e);
/* Adds the vectors of the groups of t->b to sum [size]. */
typedef tare_status (*trial_group)(const void *, const tare_batch *, int64_t, double *, tare_error *);
struct trial_phase {
    trial_group call; /* NULL: nothing is added */
    const char *name;
    int64_t size;
};
tare_status trial_add(struct check *c, const struct plugin_instance *i, const struct trial *t, struct trial_phase phase,
                      double *sum, struct err *e);
/* Runs compute alone, with the sums in t->prepared, and the records. */
tare_status trial_compute(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e);

/* Compares all outputs of compute: bit for bit, or within the rounding of sums in another order. */
tare_status trial_same_outputs(const struct trial *a, const struct trial *b, bool to_the_bit, const char *what, struct err *e);
/* Compares outputs, sums and records bit for bit. */
tare_status trial_same(const struct trial *a, const struct trial *b, const char *what, struct err *e);
tare_status trial_same_numbers(const double *was, const double *is, int64_t n, const char *what, struct err *e);

#endif
