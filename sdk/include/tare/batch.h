/* tare plugin ABI, major 1: the batch, as estimators and curricula see it. */
#ifndef TARE_BATCH_H
#define TARE_BATCH_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a completion or a turn ended. A reader treats an unknown number as TARE_FINISH_LENGTH. */
enum {
    TARE_FINISH_NONE = 0,
    TARE_FINISH_STOP,   /* with a stop token */
    TARE_FINISH_LENGTH, /* at the length limit */
    TARE_FINISH_ENDED   /* by the environment */
};

/* The judgement on a completion. A reader treats an unknown number as TARE_VERDICT_PARTIAL. */
enum {
    TARE_VERDICT_NONE = 0, /* nobody judged */
    TARE_VERDICT_CORRECT,
    TARE_VERDICT_WRONG,
    TARE_VERDICT_NO_ANSWER,  /* the completion contains no possible answer */
    TARE_VERDICT_UNPARSABLE, /* an answer was found but cannot be read */
    TARE_VERDICT_TIMED_OUT,
    TARE_VERDICT_CRASHED, /* set by the host, never by a plugin */
    TARE_VERDICT_PARTIAL  /* a reward between wrong and correct */
};

/* What becomes of a rollout. The host refuses an unknown number; a reader of the column "fate"
 * treats one as TARE_FATE_LEFT_OUT. */
enum {
    TARE_FATE_KEPT = 0,
    TARE_FATE_LEFT_OUT = 1, /* neither the estimator nor the loss sees it */
    TARE_FATE_COUNTED = 2   /* the estimator sees it, the loss does not */
};

/* Rollouts in groups. Groups are complete and in global prompt order; M and N may be 0. The rollouts
 * of group m are group_begin[m] .. group_begin[m+1]-1, the turns of rollout i are turn_begin[i] ..
 * turn_begin[i+1]-1, and so on.
 *
 * The tokens of a rollout are those after the prompt. Without an environment they are one turn: the
 * completion, all sampled, end-of-sequence token included. In an episode of several turns the text
 * of the environment lies between the sampled parts; these context tokens have sampled 0. Their
 * logprobs and entropies are not the policy's choices, so sums over tokens run over the sampled ones
 * and means divide by length.
 *
 * A rollout whose verdict, or that of a component, is TIMED_OUT or CRASHED has no reward, and
 * estimators do not see it. A group may therefore have fewer rollouts than were sampled, and is
 * missing when it has none. */
typedef struct tare_batch {
    uint32_t struct_size, flags;
    int64_t step, n_groups, n_rollouts, n_turns, n_tokens;
    int64_t n_before;           /* curricula, in keep: groups sampled earlier in this step */
    const int64_t *group_begin; /* [M+1] rollouts */
    const int64_t *turn_begin;  /* [N+1] turns */
    const int64_t *token_begin; /* [N+1] tokens, context included */
    const int64_t *act_begin;   /* [U] the first sampled token of a turn, an index into [T] */
    const int64_t *act_end;     /* [U] the token after the last sampled one */
    const uint8_t *sampled;     /* [T] 1: sampled from the policy; 0: context */
    const int64_t *length;      /* [N] sampled tokens */
    const uint64_t *prompt_uid; /* [M] equal for a prompt in every epoch and run */
    const double *reward;       /* [N] finite, never rounded */
    const tare_column *column;  /* [n_wants] in the order of the descriptor's table */
} tare_batch;

#ifdef __cplusplus
}
#endif
#endif
