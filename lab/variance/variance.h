/* `tare variance`: how far each estimator's policy gradient is from the gradient of the expected
 * reward, at one checkpoint.
 *
 * Every estimator's gradient is a linear combination of the rollouts' score functions s_i. So one
 * backward pass per rollout serves all estimators, group sizes and resampled groups.
 * docs/mathematics.md has the formulas.
 *
 *   pool.c      rollouts of P prompts, their rewards and score functions, in two independent halves
 *   draw.c      a pool from a checkpoint
 *   method.c    the measured estimators and two baselines that know the pool, with their states
 *   groups.c    the rollouts that form the groups of a resampled batch
 *   measure.c   sums by prompt over the groups
 *   interval.c  figures with intervals from those sums
 *   print.c     tables, JSON lines, CSV, figures
 *   run.c       the whole command
 *
 * Everything is a function of the seed: bit-identical for every number of threads. Not
 * thread-safe. */
#ifndef TARE_LAB_VARIANCE_VARIANCE_H
#define TARE_LAB_VARIANCE_VARIANCE_H

#include "batch/batch.h"
#include "config/config.h"

enum {
    VARIANCE_SIZES = 16,
    VARIANCE_FROM = 64,
    VARIANCE_METHODS = 64,
    VARIANCE_BINS = 6,
    VARIANCE_KINDS = 3,
    VARIANCE_CLUSTERS = 32
};

struct variance_options {
    const char *from[VARIANCE_FROM]; /* folders of models, runs or RUN@STEP; none: model.path */
    int64_t n_from;
    /* "NAME" or "NAME key=value ..."; none: all that can be measured */
    const char *estimators[VARIANCE_METHODS];
    int64_t n_estimators;
    int64_t sizes[VARIANCE_SIZES]; /* G */
    int64_t n_sizes;
    int64_t prompts, rollouts; /* P prompts, n rollouts of each */
    int64_t batch;             /* M prompts of a resampled batch; 0: rollout.prompts, at most P */
    int64_t groups;            /* resampled groups of each prompt */
    int64_t warm;              /* simulated steps of the state `warmed`; 0: no such state */
    int64_t width;             /* of the sketches; 0: gradients are kept whole */
    int64_t bootstrap;         /* resamplings for the intervals */
    bool adam;                 /* lengths and directions in the metric of Adam's step (adam.h) */
    bool plan;                 /* only print the memory needed */
    bool json;                 /* print JSON lines instead of the table */
    const char *out;           /* folder of the files; NULL: none */
};
extern const struct variance_options VARIANCE_DEFAULTS;

/* out: the text to print. c is settled. */
tare_status variance_run(const struct config *c, const struct variance_options *o, struct str *out, struct err *e);

#endif
