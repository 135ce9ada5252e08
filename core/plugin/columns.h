/* The columns that plugins can want, by kind of plugin. docs/columns.md and `tare plugin columns` are
 * made from this table, and sdk/python has the same names.
 *
 * COLUMN(ID, KIND, NAME, AXIS, TYPE, WIDTH, DOC): TARE_KIND_KIND may want NAME. WIDTH 0: the
 * number of reward components. A new column is one line here and one in the function that fills the
 * columns of the kind: estimate/view.c, update/columns.c, curriculum/columns.c.
 *
 * "row.KEY", a field of the data set's rows, is COLUMN_ROW_FIELD: F64 on the axis GROUP for
 * estimators and curricula, and on the axis ROW for curricula. */
#ifndef TARE_CORE_PLUGIN_COLUMNS_H
#define TARE_CORE_PLUGIN_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
#define PLUGIN_COLUMNS(COLUMN) \
    COLUMN(COMPONENT_NAME,    ESTIMATOR,  "component.name",    ONE,     TEXT, 0, "names of the reward components") \
    COLUMN(CLUSTER,           ESTIMATOR,  "cluster",           GROUP,   I32,  1, "the prompt's cluster, in [0, K); -1: none") \
    COLUMN(ROW_JSON,          ESTIMATOR,  "row.json",          GROUP,   TEXT, 1, "the data set's row as a JSON object; size 0: none") \
    COLUMN(COMPONENT,         ESTIMATOR,  "component",         ROLLOUT, F64,  0, "weighted reward components") \
    COLUMN(COMPONENT_VERDICT, ESTIMATOR,  "component.verdict", ROLLOUT, I32,  0, "verdict of each component; 0: no verifier") \
    COLUMN(VERDICT,           ESTIMATOR,  "verdict",           ROLLOUT, I32,  1, "verdict of the first verifier (TARE_VERDICT_...)") \
    COLUMN(FINISH,            ESTIMATOR,  "finish",            ROLLOUT, U8,   1, "how the completion ended (TARE_FINISH_...)") \
    COLUMN(COMPLETION,        ESTIMATOR,  "completion",        ROLLOUT, TEXT, 1, "the completion, decoded, without the stop token") \
    COLUMN(OFF_POLICY,        ESTIMATOR,  "off_policy",        ROLLOUT, U8,   1, "1: the row's own completion, not a sample") \
    COLUMN(POLICY_VERSION,    ESTIMATOR,  "policy_version",    ROLLOUT, I64,  1, "policy steps before it was sampled; -1: another policy") \
    COLUMN(TURN_REWARD,       ESTIMATOR,  "turn.reward",       TURN,    F64,  1, "reward of the turn; of a single turn, the rollout's") \
    COLUMN(TURN_STATE,        ESTIMATOR,  "turn.state",        TURN,    I64,  1, "equal numbers: equal states before the turn; -1: none") \
    COLUMN(TURN_FINISH,       ESTIMATOR,  "turn.finish",       TURN,    U8,   1, "how the turn ended (TARE_FINISH_...)") \
    COLUMN(TURN_CALLS,        ESTIMATOR,  "turn.calls",        TURN,    I32,  1, "tool calls of the turn") \
    COLUMN(TURN_UNPARSED,     ESTIMATOR,  "turn.unparsed",     TURN,    I32,  1, "tool calls of the turn that could not be read") \
    COLUMN(TOKEN,             ESTIMATOR,  "token",             TOKEN,   I32,  1, "token ids") \
    COLUMN(LOGPROB,           ESTIMATOR,  "logprob",           TOKEN,   F32,  1, "log pi(token) when sampled, nats") \
    COLUMN(ENTROPY,           ESTIMATOR,  "entropy",           TOKEN,   F32,  1, "entropy when sampled, nats") \
    COLUMN(REF_LOGPROB,       ESTIMATOR,  "ref_logprob",       TOKEN,   F32,  1, "log pi(token) of the frozen reference policy") \
    COLUMN(UPDATED_LOGPROB,   ESTIMATOR,  "updated_logprob",   TOKEN,   F32,  1, "log pi(token) after the policy step; in collect and record only") \
    COLUMN(SEGMENT,           ESTIMATOR,  "segment",           TOKEN,   I32,  1, "the verifier's segment in which the token begins, from 1; 0: none") \
    COLUMN(SEGMENT_REWARD,    ESTIMATOR,  "segment_reward",    TOKEN,   F64,  1, "weighted rewards of the segments that end in the token") \
    COLUMN(SAMPLER_LOGPROB,   OBJECTIVE,  "sampler_logprob",   TOKEN,   F32,  1, "log pi(token) when sampled; needs loss.old_logprobs = recompute") \
    COLUMN(LOSS_REF_LOGPROB,  OBJECTIVE,  "ref_logprob",       TOKEN,   F32,  1, "log pi(token) of the frozen reference policy") \
    COLUMN(KL,                OBJECTIVE,  "kl",                TOKEN,   F32,  1, "KL(pi || ref) over the vocabulary; not in annotate") \
    COLUMN(LOSS_OFF_POLICY,   OBJECTIVE,  "off_policy",        TOKEN,   U8,   1, "1: of the row's own completion, not a sample") \
    COLUMN(LOSS_TURN,         OBJECTIVE,  "turn",              TOKEN,   I32,  1, "turn of the token in its rollout, from 0") \
    COLUMN(ROW_INDEX,         CURRICULUM, "row.index",         GROUP,   I64,  1, "the data set's row, an index into tare_dataset") \
    COLUMN(GROUP_VERDICT,     CURRICULUM, "verdict",           ROLLOUT, I32,  1, "verdict of the first verifier; TIMED_OUT, CRASHED: no reward") \
    COLUMN(GROUP_FINISH,      CURRICULUM, "finish",            ROLLOUT, U8,   1, "how the completion ended (TARE_FINISH_...)") \
    COLUMN(FATE,              CURRICULUM, "fate",              ROLLOUT, U8,   1, "the output of keep (TARE_FATE_...); in apply only")
/* clang-format on */

enum column_id {
    COLUMN_ABSENT = -1, /* an optional column that this program does not have */
    COLUMN_ROW_FIELD = 0,
#define COLUMN_ID(ID, ...) COLUMN_##ID,
    PLUGIN_COLUMNS(COLUMN_ID)
#undef COLUMN_ID
        COLUMN_IDS
};

struct column_info {
    const char *name;
    int32_t kind, axis, type, width;
    const char *doc;
};
/* By enum column_id; entry 0 is that of "row.KEY". */
extern const struct column_info COLUMNS[COLUMN_IDS];

/* Returns the column that a plugin of this kind gets for a name and an axis, or COLUMN_ABSENT. */
enum column_id column_find(int32_t kind, const char *name, int32_t axis);
/* Bytes of an entry of a type (TARE_U8, ...); 0: unknown type. */
int64_t column_type_size(int32_t type);
const char *column_type_name(int32_t type); /* "u8", "f64", "text" */
const char *column_axis_name(int32_t axis); /* "group" */

#endif
