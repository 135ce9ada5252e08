/* tare plugin ABI, major 1: advantage estimators.
 *
 * One training step, with `self` as it was before the step:
 *   prepare  for every group of every rank; the host adds the vectors in global prompt order, in double   (optional)
 *   compute  rewards -> advantages, from the state before the step and the prepared sums
 *   collect  for every group: what the state needs to know about it; added up by the host in the same way
 *   record   the same, but not added up: one record per group, with its prompt                                 (optional)
 *   ...the policy is updated...
 *   apply    the only function that changes the state; once per step, with the same bits on every rank. A state that is kept by
 *            prompt has apply_records instead: it gets the records of all groups of all ranks, in global prompt order
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
    TARE_GIVES_TOKENS = 32,  /* writes token_advantage */
    TARE_WANTS_LOGPROB = 64, /* minor 1: token_logprob where the host has it, else NULL */
    /* Since minor 2; a plugin that asks for one of these sets abi_minor_needed = 2. */
    TARE_NEED_FINISH = 128,
    TARE_NEED_ROW = 256,
    TARE_NEED_COMPLETION = 512,
    TARE_NEED_TOKEN_ID = 1024,
    TARE_NEED_VERDICTS = 2048, /* component_verdict */
    TARE_NEED_OFF_POLICY = 4096,
    TARE_NEED_POLICY_VERSION = 8192,
    TARE_NEED_SEGMENTS = 16384 /* segment and segment_reward */
};

/* All rollouts of the step, the same on every rank; groups are whole and in global prompt order; M and N may be 0. A Python host or
 * a test may pass the groups of one rank only: a plugin reads sums over all groups from prepare and collect, never from the
 * batch. A rollout that a verifier did not judge (its verdict, or one in component_verdict, is TARE_TIMED_OUT or TARE_CRASHED) has no
 * reward and is not in the batch; so a group may have fewer rollouts than were sampled, and is left out when it has none. */
typedef struct tare_batch {
    uint32_t struct_size, flags;
    int64_t step, n_groups, n_rollouts, n_tokens, n_components, n_clusters;
    const int64_t *group_begin; /* [M+1] rollouts of group m are group_begin[m] .. group_begin[m+1]-1 */
    const uint64_t *prompt_uid; /* [M]   the same for a prompt in every epoch */
    const int32_t *cluster;     /* [M]   in [0, K), or -1: none */
    const double *reward;       /* [N]   finite, never rounded */
    const double *component;    /* [N,C] weighted reward components, or NULL */
    const int32_t *verdict;     /* [N]   tare_verdict_code of the first verifier */
    const int64_t *token_begin; /* [N+1] completion tokens of rollout i, EOS included */
    const float *token_entropy; /* [T]   nats; NULL unless needed. So are the next two */
    const float *token_logprob;
    const float *token_ref_logprob;
    /* Since minor 2. Each is NULL unless needed. */
    const uint8_t *finish;            /* [N]   tare_finish */
    const tare_text *row;             /* [M]   the data set's row as a JSON object; size 0: none */
    const tare_text *completion;      /* [N]   decoded, without the stop token */
    const int32_t *token_id;          /* [T] */
    const int32_t *component_verdict; /* [N,C] tare_verdict_code; 0: a component that no verifier gave (overlong) */
    const uint8_t *off_policy;        /* [N]   1: the row's own completion, not a sample */
    const int64_t *policy_version;    /* [N]   policy steps made before it was sampled; -1: not sampled by this run's policy */
    const int32_t *segment;           /* [T]   which of the verifier's segments the token begins in, from 1; 0: none */
    const double *segment_reward;     /* [T]   sum of the weighted rewards of the segments that end in the token; 0: none */
    /* Since minor 2: what the estimator's own function columns asked for; n_columns is 0 and both are NULL without it. */
    int64_t n_columns;
    const char *const *column_name; /* [n_columns] as columns gave them */
    const double *column;           /* [M,n_columns] fields of the data set's rows; NaN: the row has none of that name */
} tare_batch;

/* Buffers of the host. On entry rollout_weight is 1 and the others are NaN: every one of those must be written. */
typedef struct tare_advantages {
    uint32_t struct_size, flags;
    double *advantage;      /* [N] A */
    double *rollout_weight; /* [N] 0 drops a rollout from the loss */
    double *baseline;       /* [M] b, for the metrics */
    double *scale;          /* [M] s; NaN where the estimator has none */
    double *confidence;     /* [M] w in [0, 1]; 0 where the estimator has none */
    float *token_advantage; /* [T] only with TARE_GIVES_TOKENS, else NULL */
    int64_t refill_groups;  /* how many groups to sample in addition, over all ranks (dynamic sampling); 0 on entry */
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
    /* [const] add the group's share to sum[prepare_size], which is zero on entry for each group */
    tare_status (*prepare)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error);
    /* [const] prepared: [prepare_size] summed over all groups of all ranks */
    tare_status (*compute)(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error);
    tare_status (*collect)(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error); /* [const] */
    tare_status (*apply)(void *self, int64_t step, const double *collected, tare_error *error); /* the only writer */
    /* [const] the state as one JSON object, for people and `tare estimate`; NULL: {} */
    tare_status (*describe)(const void *self, const tare_stream *out, tare_error *error);
    /* Since minor 1, all three or none; a plugin that has them sets abi_minor_needed = 1. */
    int64_t (*record_size)(const void *self); /* doubles of a group's record */
    /* [const] what apply_records needs to know about the group; record[record_size] is zero on entry */
    tare_status (*record)(const void *self, const tare_batch *batch, int64_t group, double *record, tare_error *error);
    /* Called instead of apply. prompt_uid: [n_groups]; a prompt may occur twice. record: [n_groups, record_size] */
    tare_status (*apply_records)(void *self, int64_t step, const double *collected, const uint64_t *prompt_uid,
                                 const double *record, int64_t n_groups, tare_error *error);
    /* Since minor 2; a plugin that has it sets abi_minor_needed = 2. [const] fields of the data set's rows that it reads as numbers (at the
     * top of the row): their names, ended by NULL, at most 64. They live until destroy. Asked once, after create. A row without the field
     * gives NaN; true and false give 1 and 0; the host refuses any other value before the run starts, with file and line. */
    const char *const *(*columns)(const void *self);
} tare_estimator;

#ifdef __cplusplus
}
#endif
#endif
