/* tare plugin ABI, major 1: advantage estimators.
 *
 * One training step, with `self` as it was before the step:
 *   prepare  (optional) for every group of every rank: a vector of sums; the host adds the
 *            vectors in global prompt order, in double
 *   compute  rewards -> advantages, from the state before the step and the prepared sums
 *   ...the policy is updated...
 *   collect  (optional) for every group: the vector that updates the state, added by the host in the
 *            same way
 *   record   (optional) like collect, but not added: one record for each group, with its prompt
 *   apply    (optional) the only function that changes the state; called in every step, with the
 *            same bits on every rank
 *
 * The order is the paper's: confidence from the moments before the update, moments updated after the
 * policy step. The host calls collect and record before the policy step unless the column
 * "updated_logprob" is wanted. A plugin never calls a collective; the state is replicated, not
 * sharded.
 *
 * The batch has all groups of the step, equal on every rank; a Python host or a test may pass the
 * groups of one rank only. So a plugin takes sums over all groups from prepare and collect, never
 * from the batch. */
#ifndef TARE_ESTIMATOR_H
#define TARE_ESTIMATOR_H

#include "batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of tare_estimator. */
enum { TARE_ESTIMATOR_GIVES_TOKENS = 1 /* writes token_advantage */ };

/* Output buffers of the host. */
typedef struct tare_advantages {
    uint32_t struct_size, flags;
    double *advantage;      /* [N] A; must be written, finite */
    double *rollout_weight; /* [N] 1 on entry; 0 drops a rollout from the loss */
    /* [T] with TARE_ESTIMATOR_GIVES_TOKENS, else NULL; must be written where sampled is 1, is not
     * read elsewhere */
    float *token_advantage;
    double *baseline;     /* [M] b, for the metrics; NaN on entry: none */
    double *scale;        /* [M] s; NaN on entry: none */
    double *confidence;   /* [M] w in [0, 1]; NaN on entry: none */
    int64_t extra_groups; /* groups to sample in addition, over all ranks (dynamic sampling) */
} tare_advantages;

/* The function table of an estimator. Required beside the head's: compute. */
typedef struct tare_estimator {
    TARE_HEAD;
    /* [setup] prepare, collect and record; NULL: all 0. */
    tare_status (*sizes)(const void *self, tare_sizes *out, tare_error *error);
    /* [serial] [const] Adds the group's share to sum: [prepare], zero on entry for each group. */
    tare_status (*prepare)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error);
    /* [serial] [const] Computes the advantages. prepared: [prepare] summed over all groups of all
     * ranks. */
    tare_status (*compute)(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error);
    /* [serial] [const] Adds the group's share to sum: [collect], zero on entry for each group. */
    tare_status (*collect)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error);
    /* [serial] [const] Writes the group's record: [record], zero on entry. */
    tare_status (*record)(const void *self, const tare_batch *batch, int64_t group, double *record, tare_error *error);
    /* [serial] Updates the state. */
    tare_status (*apply)(void *self, const tare_update *update, tare_error *error);
} tare_estimator;

#ifdef __cplusplus
}
#endif
#endif
