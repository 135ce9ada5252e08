/* Batches for estimators under test, and what a plugin makes of one. All memory is the test's arena. */
#ifndef TARE_CORE_PLUGIN_CHECK_TRIAL_H
#define TARE_CORE_PLUGIN_CHECK_TRIAL_H

#include "plugin/check/internal.h"

/* A batch, and the outputs of one step on it. */
struct trial {
    tare_batch b;
    tare_advantages out;
    int64_t prepare_size, collect_size, record_size;
    double *prepared, *collected, *records; /* records: [groups, record_size] */
    const char **columns;                   /* [b.n_columns] copies of the names that the plugin asked for */
};

enum trial_shape { TRIAL_MIXED, TRIAL_EQUAL, TRIAL_SINGLES, TRIAL_UNCLUSTERED, TRIAL_EMPTY, TRIAL_SHAPES };
extern const char *const TRIAL_NAMES[TRIAL_SHAPES]; /* "mixed rewards", ... */

/* Groups of a shape, as the engine would show them: columns that the plugin does not declare are NULL, and some prompts come back, within a batch
 * and between batches. Rewards are 0 and 1 for a plugin that takes no others. */
tare_status trial_batch(struct check *c, enum trial_shape shape, int64_t groups, tare_batch *out, struct err *e);
/* Groups of a batch in another order, or some of them: groups[0], ... groups[n - 1]. */
tare_status trial_groups(struct check *c, const tare_batch *from, const int64_t *groups, int64_t n, tare_batch *out, struct err *e);

/* An instance with some steps of history. */
tare_status trial_instance(struct check *c, struct plugin_instance **out, struct err *e);
/* prepare, compute, collect and record on t->b; the outputs are checked. */
tare_status trial_run(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e);
tare_status trial_apply(const struct plugin_instance *i, const struct trial *t, struct err *e);
/* The vectors of the groups of t->b are added to sum [size]. */
typedef tare_status (*trial_group)(const void *, const tare_batch *, int64_t, double *, tare_error *);
struct trial_phase {
    trial_group call; /* NULL: nothing is added */
    const char *name;
    int64_t size;
};
tare_status trial_add(struct check *c, const struct plugin_instance *i, const struct trial *t, struct trial_phase phase,
                      double *sum, struct err *e);
/* compute alone, with the sums in t->prepared, and the records. */
tare_status trial_compute(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e);

/* Everything that compute writes: to the bit, or within the rounding of sums in another order. */
tare_status trial_same_outputs(const struct trial *a, const struct trial *b, bool to_the_bit, const char *what, struct err *e);
/* Outputs, sums and records, to the bit. */
tare_status trial_same(const struct trial *a, const struct trial *b, const char *what, struct err *e);
tare_status trial_same_numbers(const double *was, const double *is, int64_t n, const char *what, struct err *e);

#endif
