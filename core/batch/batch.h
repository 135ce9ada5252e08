/* The data of one training step: the prompts, their rollouts, and the columns that each stage adds.
 *
 * A batch is a set of columns over axes: M groups, N rollouts, their turns and T tokens after the
 * prompt, and the tokens of the prompts. BATCH_COLUMNS names every column once. The struct, choosing groups (select.h) and
 * bytes for other ranks (pack.h) are written against that table, so a new column is one line in it.
 * A column is NULL until its stage has run.
 *
 *   struct batch b = {.n_groups = M, .n_rollouts = N, .n_tokens = T};
 *   TRY(batch_alloc(&b, BATCH_ROLLOUT, arena, e));      every column of that stage, zeroed
 *
 * Arrays are in the step's arena. Groups are in global prompt order; on several ranks a batch may
 * hold one rank's groups. A batch is a value: a copy of the struct is another view of the same
 * arrays.
 *
 * A rollout is a completion, all of whose tokens are sampled, or an episode of several turns, in
 * which the texts of an environment lie between the sampled parts. Without episodes the columns
 * `sampled` and turn_begin are absent (turns.h). */
#ifndef TARE_CORE_BATCH_BATCH_H
#define TARE_CORE_BATCH_BATCH_H

#include "base/arena.h"

#include <tare/batch.h>

enum finish {
    FINISH_STOP = TARE_FINISH_STOP,
    FINISH_LENGTH = TARE_FINISH_LENGTH,
    FINISH_ENDED = TARE_FINISH_ENDED /* by the environment, after a turn with a stop token */
};

/* The stage that writes a column. Stages can be combined with |. */
enum batch_stage {
    BATCH_DATA = 1,
    BATCH_ROLLOUT = 2,
    BATCH_VERIFY = 4,
    BATCH_CLUSTER = 8,
    BATCH_REFERENCE = 16,
    BATCH_ESTIMATE = 32,
    BATCH_ALL = 63
};

/* The axes of columns: X(axis, number of entries, parent axis, column with the counts). Entry i of
 * the parent has the entries from begin[i] up to begin[i+1]. A parent comes before its children,
 * the groups come first. */
#define BATCH_AXES(X)                                                                                                              \
    X(GROUP, n_groups, GROUP, row)                                                                                                 \
    X(PROMPT, n_prompt_tokens, GROUP, prompt_begin)                                                                                \
    X(ROLLOUT, n_rollouts, GROUP, group_begin)                                                                                     \
    X(TURN, n_turns, ROLLOUT, turn_begin)                                                                                          \
    X(TOKEN, n_tokens, ROLLOUT, token_begin)

/* The columns: X(stage, name, type, axis, kind, values per entry). Kinds, with the ownership of the
 * data that an entry points to:
 *
 *   NUMBER    copied
 *   OPTIONAL  a number that exists only if it is needed; 0 for parts of a batch without it
 *   MASK      like OPTIONAL, but 1 for parts of a batch without it
 *   BEGIN     of a child axis, one entry more than its own axis; recounted when groups are chosen
 *   OPTIONAL_BEGIN  like BEGIN; without it the child axis has no entries
 *   TEXT      tare_text: copies of a batch share its bytes, packed bytes contain them; data may be NULL
 *   STRING    const char *, owned like TEXT
 *   LOCAL     a pointer into this process: shared by copies, never packed (every rank has its own)
 */
/* clang-format off */
#define BATCH_COLUMNS(X)                                                                                                           \
    X(DATA,      row,             const struct row *, GROUP,   LOCAL,    1)        /* data/dataset.h */                            \
    X(DATA,      row_json,        tare_text,          GROUP,   TEXT,     1)        /* row as a JSON object */                      \
    X(DATA,      prompt_uid,      uint64_t,           GROUP,   NUMBER,   1)        /* equal for a prompt in every epoch */         \
    X(DATA,      occurrence,      int64_t,            GROUP,   NUMBER,   1)        /* earlier rows of this prompt in the step */   \
    X(DATA,      prompt_begin,    int64_t,            GROUP,   BEGIN,    1)        /* [M+1] */                                     \
    X(DATA,      prompt_ids,      int32_t,            PROMPT,  NUMBER,   1)                                                        \
    X(DATA,      prompt_text,     tare_text,          GROUP,   TEXT,     1)        /* the text they encode, if recorded */         \
    X(DATA,      samples,         int64_t,            GROUP,   OPTIONAL, 1)        /* rollouts requested; 0: rollout.group_size */ \
    X(ROLLOUT,   group_begin,     int64_t,            GROUP,   BEGIN,    1)        /* [M+1] rollouts of a group */                 \
    X(ROLLOUT,   token_begin,     int64_t,            ROLLOUT, BEGIN,    1)        /* [N+1] tokens after the prompt, with EOS */    \
    X(ROLLOUT,   turn_begin,      int64_t,            ROLLOUT, OPTIONAL_BEGIN, 1)  /* [N+1] turns of an episode */                 \
    X(ROLLOUT,   act_begin,       int64_t,            TURN,    OPTIONAL, 1)        /* first sampled token, from token_begin */     \
    X(ROLLOUT,   act_end,         int64_t,            TURN,    OPTIONAL, 1)        /* token after the last sampled one */          \
    X(ROLLOUT,   turn_finish,     uint8_t,            TURN,    OPTIONAL, 1)        /* enum finish */                               \
    X(ROLLOUT,   turn_reward,     double,             TURN,    OPTIONAL, 1)        /* of the environment */                         \
    X(ROLLOUT,   turn_state,      int64_t,            TURN,    OPTIONAL, 1)        /* equal: equal states before it; -1: none */   \
    X(ROLLOUT,   turn_calls,      int32_t,            TURN,    OPTIONAL, 1)        /* tool calls that were read */                   \
    X(ROLLOUT,   turn_unparsed,   int32_t,            TURN,    OPTIONAL, 1)        /* and that could not be read */                  \
    X(ROLLOUT,   episode_verdict, int32_t,            ROLLOUT, OPTIONAL, 1)        /* of the environment; 0: none */               \
    X(ROLLOUT,   sampled,         uint8_t,            TOKEN,   MASK,     1)        /* 0: context; logprob, entropy 0 */            \
    X(ROLLOUT,   ids,             int32_t,            TOKEN,   NUMBER,   1)                                                        \
    X(ROLLOUT,   logprob,         float,              TOKEN,   NUMBER,   1)        /* when sampled, at that temperature; nats */   \
    X(ROLLOUT,   entropy,         float,              TOKEN,   NUMBER,   1)        /* as for logprob */                            \
    X(ROLLOUT,   finish,          uint8_t,            ROLLOUT, NUMBER,   1)        /* enum finish */                               \
    X(ROLLOUT,   off_policy,      uint8_t,            ROLLOUT, OPTIONAL, 1)        /* 1: a trace; logprob, entropy 0 */            \
    X(ROLLOUT,   policy_version,  int64_t,            ROLLOUT, NUMBER,   1)        /* policy steps before it; -1: another policy */ \
    X(ROLLOUT,   completion,      tare_text,          ROLLOUT, TEXT,     1)        /* decoded, without the stop token */           \
    X(ROLLOUT,   token_end,       int64_t,            TOKEN,   OPTIONAL, 1)        /* its end in completion, in bytes */           \
    X(VERIFY,    reward,          double,             ROLLOUT, NUMBER,   1)                                                        \
    X(VERIFY,    component,       double,             ROLLOUT, NUMBER,   n_components) /* of the reward, weighted */               \
    X(VERIFY,    verdict,         int32_t,            ROLLOUT, NUMBER,   1)        /* TARE_VERDICT_..., first verifier */         \
    X(VERIFY,    component_verdict, int32_t,          ROLLOUT, NUMBER,   n_components) /* of each verifier; 0: overlong */         \
    X(VERIFY,    extracted,       tare_text,          ROLLOUT, TEXT,     1)        /* the answer in the completion */              \
    X(VERIFY,    reason,          const char *,       ROLLOUT, STRING,   1)        /* of the verdict; NULL: none */                \
    X(VERIFY,    segment,         int32_t,            TOKEN,   OPTIONAL, 1)        /* of the verifier, from 1; 0: none */          \
    X(VERIFY,    segment_reward,  double,             TOKEN,   OPTIONAL, 1)        /* of segments ending in the token, weighted */ \
    X(VERIFY,    fate,            uint8_t,            ROLLOUT, OPTIONAL, 1)        /* TARE_FATE_..., set by the curriculum */   \
    X(CLUSTER,   cluster,         int32_t,            GROUP,   NUMBER,   1)        /* -1: none */                                  \
    X(REFERENCE, ref_logprob,     float,              TOKEN,   OPTIONAL, 1)        /* under the frozen reference */                \
    X(REFERENCE, process_reward,  float,              TOKEN,   OPTIONAL, 1)        /* of the implicit model, before norm */        \
    X(REFERENCE, process_ref,     float,              TOKEN,   OPTIONAL, 1)        /* logprobs of its reference */                 \
    X(ESTIMATE,  advantage,       double,             ROLLOUT, NUMBER,   1)                                                        \
    X(ESTIMATE,  rollout_weight,  double,             ROLLOUT, NUMBER,   1)        /* in the loss; all 0: the group is dropped */  \
    X(ESTIMATE,  baseline,        double,             GROUP,   NUMBER,   1)                                                        \
    X(ESTIMATE,  scale,           double,             GROUP,   NUMBER,   1)        /* NaN: none */                                 \
    X(ESTIMATE,  confidence,      double,             GROUP,   NUMBER,   1)        /* w, from 0 to 1 */                            \
    X(ESTIMATE,  token_advantage, float,              TOKEN,   OPTIONAL, 1)
/* clang-format on */

#define BATCH_COUNT(AXIS, COUNT, PARENT, BEGIN) int64_t COUNT;
#define BATCH_FIELD(STAGE, NAME, TYPE, AXIS, KIND, WIDTH) TYPE *NAME;
struct batch {
    int64_t step, n_components, n_clusters;
    BATCH_AXES(BATCH_COUNT)
    BATCH_COLUMNS(BATCH_FIELD)
};
#undef BATCH_COUNT
#undef BATCH_FIELD

/* Allocates every column of the stages except those that may be absent, zeroed, for the numbers of groups,
 * rollouts, ... in the struct. */
tare_status batch_alloc(struct batch *b, unsigned stages, struct arena *a, struct err *e);
/* Approximate bytes of all columns for the numbers of groups, rollouts, ... in the struct; texts
 * are not counted. */
int64_t batch_bytes(const struct batch *b);
/* Makes n_groups groups of one shape: rollouts, prompt tokens, tokens of a completion. Counts the
 * other axes and fills BEGIN columns. */
tare_status batch_regular(struct batch *b, int64_t rollouts, int64_t prompt, int64_t completion, struct arena *a, struct err *e);
/* Sets the columns of the stages, and the counts of their axes, to those of `from`. */
void batch_adopt(struct batch *to, const struct batch *from, unsigned stages);

#endif
