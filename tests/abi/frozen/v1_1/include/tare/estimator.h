/* tare plugin ABI, major 1: advantage estimators.
 *
 * One training step, with `self` as it was before the step:
 *   prepare  for every group of every rank; the host adds the vectors in global prompt order, in double   (optional)
 *   compute  rewards -> advantages, from the state before the step and the prepared sums
 *   collect  for every group: what the state needs to know of it; the host adds again
 *   record   the same, but not added: one record a group, with its prompt                                   (optional)
 *   ...the policy is updated...
 *   apply    the only function that changes the state; once a step, with the same bits on every rank. apply_records for a state
 *            that is kept by prompt: with the records of all groups of all ranks, in global prompt order
 * The order is the paper's: confidence from pre-update moments, moments updated after the policy step. A plugin never calls a
 * collective; state is replicated, not sharded.
 */
#ifndef TARE_ESTIMATOR_H
#define TARE_ESTIMATOR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptor needs: columns of the batch that are computed only for estimators that ask. */
enum {
    TARE_NEED_ENTROPY = 1,
    TARE_NEED_LOGPROB = 2,
    TARE_NEED_REF_LOGPROB = 4,
    TARE_NEED_COMPONENTS = 8,
    TARE_NEED_CLUSTER = 16,
    TARE_GIVES_TOKENS = 32, /* writes token_advantage */
    TARE_WANTS_LOGPROB = 64 /* minor 1: token_logprob where the host has it, else NULL */
};

/* The rollouts of this rank; groups are whole; M and N may be 0. */
typedef struct tare_batch {
    uint32_t struct_size, flags;
    int64_t step, n_groups, n_rollouts, n_tokens, n_components, n_clusters;
    const int64_t *group_begin; /* [M+1] rollouts of group m are group_begin[m] .. group_begin[m+1]-1 */
    const uint64_t *prompt_uid; /* [M]   the same for a prompt in every epoch */
    const int32_t *cluster;     /* [M]   in [0, K), or -1: none */
    const double *reward;       /* [N]   finite, never rounded */
    const double *component;    /* [N,C] weighted reward components, or NULL */
    const int32_t *verdict;     /* [N]   tare_verdict_code */
    const int64_t *token_begin; /* [N+1] completion tokens of rollout i, EOS included */
    const float *token_entropy; /* [T]   nats; NULL unless needed. So are the next two */
    const float *token_logprob;
    const float *token_ref_logprob;
} tare_batch;

/* Buffers of the host. rollout_weight comes filled with 1, the others with NaN: every one must be written. */
typedef struct tare_advantages {
    uint32_t struct_size, flags;
    double *advantage;      /* [N] A */
    double *rollout_weight;     /* [N] 0 drops a rollout from the loss */
    double *baseline;       /* [M] b, for the metrics */
    double *scale;          /* [M] s; NaN where the estimator has none */
    double *confidence;     /* [M] w in [0, 1]; 0 where the estimator has none */
    float *token_advantage; /* [T] only with TARE_GIVES_TOKENS, else NULL */
    int64_t refill_groups;  /* how many groups to sample in addition (dynamic sampling); comes as 0 */
} tare_advantages;

typedef struct tare_estimator {
    uint32_t struct_size, flags;
    /* values: [n_params] in table order. n_clusters: K of the run's codebook, 0 without one. */
    tare_status (*create)(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error);
    void (*destroy)(void *self);
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error); /* [const] NULL: no state */
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);        /* NULL: no state */
    int64_t (*prepare_size)(const void *self);                                        /* doubles a group adds to; NULL: 0 */
    int64_t (*collect_size)(const void *self);                                        /* NULL: 0 */
    /* [const] add group's share to sum[prepare_size]; sum comes zeroed for each group */
    tare_status (*prepare)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error);
    /* [const] prepared: [prepare_size] summed over all groups of all ranks */
    tare_status (*compute)(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error);
    tare_status (*collect)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error); /* [const] */
    tare_status (*apply)(void *self, int64_t step, const double *collected, tare_error *error); /* the only writer */
    /* [const] the state as one JSON object, for people and `tare estimate`; NULL: {} */
    tare_status (*describe)(const void *self, const tare_stream *out, tare_error *error);
    /* Since minor 1, all three or none; a plugin with them says abi_minor_needed = 1. */
    int64_t (*record_size)(const void *self); /* doubles of a group's record */
    /* [const] what apply_records has to know of the group; record[record_size] comes zeroed */
    tare_status (*record)(const void *self, const tare_batch *batch, int64_t group, double *record, tare_error *error);
    /* In the place of apply. prompt_uid: [n_groups]; a prompt may be there twice. record: [n_groups, record_size] */
    tare_status (*apply_records)(void *self, int64_t step, const double *collected, const uint64_t *prompt_uid,
                                 const double *record, int64_t n_groups, tare_error *error);
} tare_estimator;

#ifdef __cplusplus
}
#endif
#endif
