/* What one training step carries from folder to folder: the prompts, their rollouts, and what each stage adds. Arrays live in the step
 * arena. M groups, N rollouts, T completion tokens. Groups are in global prompt order; on several ranks a batch holds this rank's groups. */
#ifndef TARE_CORE_BATCH_H
#define TARE_CORE_BATCH_H

#include "base/arena.h"

enum finish { FINISH_STOP = 0, FINISH_LENGTH = 1 };

struct batch {
    int64_t step, n_groups, n_rollouts, n_tokens;
    /* data */
    const struct row **row; /* [M] data/dataset.h */
    uint64_t *prompt_uid;   /* [M] the same for a prompt in every epoch */
    int64_t *occurrence;    /* [M] how often this prompt came earlier in this step */
    int64_t *prompt_begin;  /* [M+1] */
    int32_t *prompt_ids;    /* [prompt_begin[M]] */
    /* rollout */
    int64_t *group_begin;  /* [M+1] rollouts of group m */
    int64_t *token_begin;  /* [N+1] completion tokens of rollout i, EOS included */
    int32_t *ids;          /* [T] */
    float *logprob;        /* [T] under the policy that sampled, softmax at the sampling temperature, nats */
    float *entropy;        /* [T] the same */
    float *ref_logprob;    /* [T] or NULL */
    uint8_t *finish;       /* [N] enum finish */
    uint8_t *off_policy;   /* [N] 1: a trace of the row, not sampled; its logprob and entropy are 0. NULL: none */
    tare_text *completion; /* [N] decoded, without the stop token */
    double mismatch;       /* policy/sampler_mismatch: largest |recomputed - sampled| logprob */
    /* verify */
    double *reward;    /* [N] */
    double *component; /* [N, n_components] weighted */
    int64_t n_components;
    int32_t *verdict;     /* [N] tare_verdict_code of the first verifier */
    tare_text *extracted; /* [N] */
    const char **reason;  /* [N] or NULL inside */
    /* cluster */
    int32_t *cluster; /* [M], -1: none */
    int64_t n_clusters;
    /* estimate */
    double *advantage, *row_weight;        /* [N] */
    double *baseline, *scale, *confidence; /* [M] */
    float *token_advantage;                /* [T] or NULL */
};

#endif
