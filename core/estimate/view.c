#include "estimate/view.h"

#include <math.h>

/* Optional columns: X(need, column of the batch, member of tare_batch, name in messages). */
#define ON_DEMAND(X)                                                                                                               \
    X(ENTROPY, entropy, token_entropy, "the tokens' entropy")                                                                      \
    X(LOGPROB, logprob, token_logprob, "the tokens' logprobs")                                                                     \
    X(REF_LOGPROB, ref_logprob, token_ref_logprob, "the reference policy's logprobs")                                              \
    X(COMPONENTS, component, component, "the reward's components")                                                                 \
    X(FINISH, finish, finish, "how the completions ended (finish)")                                                                \
    X(ROW, row_json, row, "the data set's rows")                                                                                   \
    X(COMPLETION, completion, completion, "the completions' texts")                                                                \
    X(TOKEN_ID, ids, token_id, "the completions' token ids")                                                                       \
    X(VERDICTS, component_verdict, component_verdict, "each verifier's verdicts")                                                  \
    X(POLICY_VERSION, policy_version, policy_version, "the policy's version")                                                      \
    X(SEGMENTS, segment, segment, "the segments of a verifier")                                                                    \
    X(SEGMENTS, segment_reward, segment_reward, "the rewards of a verifier's segments")

#define BIT(NEED, FROM, TO, WHAT) | TARE_NEED_##NEED
enum { KNOWN_NEEDS = (TARE_NEED_CLUSTER | TARE_NEED_OFF_POLICY | TARE_GIVES_TOKENS | TARE_WANTS_LOGPROB) ON_DEMAND(BIT) };

tare_status estimate_check_needs(const struct plugin *p, struct err *e)
{
    if (p->desc.needs & ~(uint32_t)KNOWN_NEEDS)
        FAIL(e, TARE_E_UNSUPPORTED, "estimator %s: unknown needs 0x%x; update tare", p->desc.name, p->desc.needs);
    return TARE_OK;
}

static tare_status check_columns(const struct plugin *p, const struct columns *c, const struct batch *b, struct err *e)
{
#define MISSING(NEED, FROM, TO, WHAT)                                                                                              \
    if ((p->desc.needs & TARE_NEED_##NEED) && !b->FROM)                                                                            \
        FAIL(e, TARE_E_SHAPE, "estimator %s needs " WHAT ", but the batch has none", p->desc.name);
    ON_DEMAND(MISSING)
    if (c->n && !b->row_json)
        FAIL(
            e, TARE_E_SHAPE,
            "estimator %s reads \"%s\" of the data set's rows, but the batch has no rows; give each group its row: \"row\":{\"%s\":1}",
            p->desc.name, c->name[0], c->name[0]);
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
            if (!isfinite(b->reward[i]))
                FAIL(e, TARE_E_NOT_FINITE, "step %lld: the reward of group %lld, rollout %lld is %g: must be finite",
                     (long long)b->step, (long long)m, (long long)(i - b->group_begin[m]), b->reward[i]);
    return TARE_OK;
}

tare_status estimate_view(const struct plugin *p, const struct columns *c, const struct batch *b, struct arena *a, tare_batch *out,
                          struct err *e)
{
    const uint32_t needs = p->desc.needs;
    TRY(check_columns(p, c, b, e));
    *out = (tare_batch){.struct_size = sizeof *out,
                        .step = b->step,
                        .n_groups = b->n_groups,
                        .n_rollouts = b->n_rollouts,
                        .n_tokens = b->n_tokens,
                        .n_components = b->n_components,
                        .n_clusters = b->n_clusters,
                        .group_begin = b->group_begin,
                        .prompt_uid = b->prompt_uid,
                        .cluster = b->cluster,
                        .reward = b->reward,
                        .verdict = b->verdict,
                        .token_begin = b->token_begin};
#define SHOW(NEED, FROM, TO, WHAT)                                                                                                 \
    if (needs & TARE_NEED_##NEED) out->TO = b->FROM;
    ON_DEMAND(SHOW)
    if (needs & TARE_WANTS_LOGPROB) out->token_logprob = b->logprob;
    if (c->n) {
        out->n_columns = c->n;
        out->column_name = c->name;
        TRY(columns_of(c, b, a, &out->column, e));
    }
    if (!(needs & TARE_NEED_OFF_POLICY)) return TARE_OK;
    uint8_t *none = b->off_policy; /* a batch without that column has samples only */
    if (!none) TRY(arena_new(a, &none, b->n_rollouts + 1, e));
    out->off_policy = none;
    return TARE_OK;
}
