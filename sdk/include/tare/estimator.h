/* tare plugin ABI, major 1: advantage estimators.
 *
 * One training step, with `self` as it was before the step:
 *   prepare  (optional) for every group of every rank: a vector of sums; the host adds the
 *            vectors in global prompt order, in double
 *   compute  rewards -> advantages, from the state before the step and the prepared sums
 *   collect  for every group: the vector that updates the state, added by the host in the same way
 *   record   (optional) like collect, but not added: one record for each group, with its prompt
 *   ...the policy is updated...
 *   apply    the only function that changes the state; called once per step, with the same bits on
 *            every rank. A state that is kept by prompt has apply_records instead, which gets the
 *            records of all groups of all ranks, in global prompt order
 *
 * The order is the paper's: confidence from the moments before the update, moments updated after
 * the policy step. A plugin never calls a collective; the state is replicated, not sharded. */
#ifndef TARE_ESTIMATOR_H
#define TARE_ESTIMATOR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptor needs: optional columns of the batch, which are computed only for estimators that need
 * them. */
enum {
    TARE_NEED_ENTROPY = 1,
    TARE_NEED_LOGPROB = 2,
    TARE_NEED_REF_LOGPROB = 4,
    TARE_NEED_COMPONENTS = 8,
    TARE_NEED_CLUSTER = 16,
    TARE_GIVES_TOKENS = 32,  /* writes token_advantage */
    TARE_WANTS_LOGPROB = 64, /* Since minor 1: token_logprob where the host has it, else NULL. */
    /* Since minor 2; a plugin that needs one of these sets abi_minor_needed = 2. */
    TARE_NEED_FINISH = 128,
    TARE_NEED_ROW = 256,
    TARE_NEED_COMPLETION = 512,
    TARE_NEED_TOKEN_ID = 1024,
    TARE_NEED_VERDICTS = 2048, /* component_verdict */
    TARE_NEED_OFF_POLICY = 4096,
    TARE_NEED_POLICY_VERSION = 8192,
    TARE_NEED_SEGMENTS = 16384 /* segment and segment_reward */
};

/* All rollouts of the step, equal on every rank. Groups are complete and in global prompt order; M
 * and N may be 0. A Python host or a test may pass the groups of one rank only: a plugin takes sums
 * over all groups from prepare and collect, never from the batch.
 *
 * A rollout without a verdict (its verdict, or one in component_verdict, is TARE_TIMED_OUT or
 * TARE_CRASHED) has no reward and is not in the batch. A group may therefore have fewer rollouts
 * than were sampled, and is missing when it has none. */
typedef struct tare_batch {
    uint32_t struct_size, flags;
    int64_t step, n_groups, n_rollouts, n_tokens, n_components, n_clusters;
    /* [M+1] rollouts of group m are group_begin[m] .. group_begin[m+1]-1 */
    const int64_t *group_begin;
    const uint64_t *prompt_uid; /* [M]   equal for a prompt in every epoch */
    const int32_t *cluster;     /* [M]   in [0, K), or -1: none */
    const double *reward;       /* [N]   finite, never rounded */
    const double *component;    /* [N,C] weighted reward components, or NULL */
    const int32_t *verdict;     /* [N]   tare_verdict_code of the first verifier */
    const int64_t *token_begin; /* [N+1] completion tokens of rollout i, EOS included */
    const float *token_entropy; /* [T]   nats; NULL unless needed, like the next two */
    const float *token_logprob;
    const float *token_ref_logprob;
    /* Since minor 2. Each is NULL unless needed. */
    const uint8_t *finish;       /* [N]   tare_finish */
    const tare_text *row;        /* [M]   the data set's row as a JSON object; size 0: none */
    const tare_text *completion; /* [N]   decoded, without the stop token */
    const int32_t *token_id;     /* [T] */
    /* [N,C] tare_verdict_code; 0: a component without a verifier (overlong) */
    const int32_t *component_verdict;
    const uint8_t *off_policy; /* [N]   1: the row's own completion, not a sample */
    /* [N]   policy steps before it was sampled; -1: not sampled by this run's policy */
    const int64_t *policy_version;
    /* [T]   index, from 1, of the verifier's segment in which the token begins; 0: none */
    const int32_t *segment;
    /* [T]   sum of the weighted rewards of the segments that end in the token; 0: none */
    const double *segment_reward;
    /* Since minor 2: the columns requested by the estimator's function columns. Without it
     * n_columns is 0 and both are NULL. */
    int64_t n_columns;
    const char *const *column_name; /* [n_columns] as returned by columns */
    /* [M,n_columns] fields of the data set's rows; NaN: the row lacks the field */
    const double *column;
} tare_batch;

/* Output buffers of the host. On entry rollout_weight is 1 and the others are NaN: every entry of
 * those must be written. */
typedef struct tare_advantages {
    uint32_t struct_size, flags;
    double *advantage;      /* [N] A */
    double *rollout_weight; /* [N] 0 drops a rollout from the loss */
    double *baseline;       /* [M] b, for the metrics */
    double *scale;          /* [M] s; NaN where the estimator has no scale */
    double *confidence;     /* [M] w in [0, 1]; 0 where the estimator has no confidence */
    float *token_advantage; /* [T] only with TARE_GIVES_TOKENS, else NULL */
    /* number of groups to sample in addition, over all ranks (dynamic sampling); 0 on entry */
    int64_t refill_groups;
} tare_advantages;

/* The function table of an estimator. Functions that may be NULL say so. */
typedef struct tare_estimator {
    uint32_t struct_size, flags;
    /* Creates an instance. values: [n_params] in table order. n_clusters: K of the run's codebook,
     * 0 without one. */
    tare_status (*create)(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self, tare_error *error);
    void (*destroy)(void *self);
    /* [const] NULL: no state */
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error); /* NULL: no state */
    /* doubles in the vector that a group adds to; NULL: 0 */
    int64_t (*prepare_size)(const void *self);
    int64_t (*collect_size)(const void *self); /* NULL: 0 */
    /* [const] Adds the group's share to sum: [prepare_size], zero on entry for each group. */
    tare_status (*prepare)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error);
    /* [const] Computes the advantages. prepared: [prepare_size] summed over all groups of all
     * ranks. */
    tare_status (*compute)(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error);
    /* [const] adds to sum: [collect_size] */
    tare_status (*collect)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error);
    /* the only function that changes the state */
    tare_status (*apply)(void *self, int64_t step, const double *collected, tare_error *error);
    /* [const] Writes the state as one JSON object, for display and `tare estimate`; NULL: {}. */
    tare_status (*describe)(const void *self, const tare_stream *out, tare_error *error);
    /* Since minor 1, all three or none; a plugin that has them sets abi_minor_needed = 1.
     * record_size returns the doubles in a group's record. */
    int64_t (*record_size)(const void *self);
    /* [const] Writes the group's record for apply_records. record: [record_size], zero on entry. */
    tare_status (*record)(const void *self, const tare_batch *batch, int64_t group, double *record, tare_error *error);
    /* Called instead of apply. prompt_uid: [n_groups]; a prompt may occur twice. record: [n_groups,
     * record_size]. */
    tare_status (*apply_records)(void *self, int64_t step, const double *collected, const uint64_t *prompt_uid,
                                 const double *record, int64_t n_groups, tare_error *error);
    /* [const] Since minor 2; a plugin that has it sets abi_minor_needed = 2. Returns the names of
     * the fields of the data set's rows (at the top level of the row) that the estimator reads as
     * numbers: at most 64, ended by NULL. They live until destroy. Called once, after create. A row
     * without the field gives NaN; true and false give 1 and 0; the host refuses any other value
     * before the run starts, with file and line. */
    const char *const *(*columns)(const void *self);
} tare_estimator;

#ifdef __cplusplus
}
#endif
#endif
