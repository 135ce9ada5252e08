/* Off-policy traces in a group (LUFFY, arXiv 2504.14945). With rollout.off_policy, a row's own
 * completion, followed by EOS, replaces the last rollout of its group. It is verified and counts in
 * the group's statistics like the others; the loss applies policy shaping to its tokens
 * (update/loss.c). Its probability under the policy that wrote it is unknown and taken as 1:
 * logprob 0. */
#include "loop/hooks.h"

#include "base/log.h"
#include "batch/select.h"
#include "loop/row_completion.h"
#include "rollout/texts.h"

#include <string.h>

struct luffy {
    struct token_ids ids; /* of the step's traces, concatenated */
};

/* Builds a batch of n groups with one trace each. end [n]: group k ends before token end[k]. */
static tare_status trace_batch(const struct token_ids *ids, const int64_t *end, int64_t n, struct arena *a, struct batch *out,
                               struct err *e)
{
    *out = (struct batch){.n_groups = n, .n_rollouts = n, .n_tokens = ids->n};
    TRY(batch_alloc(out, BATCH_ROLLOUT, a, e));
    TRY(arena_new(a, &out->off_policy, n, e));
    for (int64_t k = 0; k < n; k++) {
        out->group_begin[k + 1] = k + 1;
        out->token_begin[k + 1] = end[k];
        out->finish[k] = FINISH_STOP;
        out->off_policy[k] = 1;
        out->policy_version[k] = -1;
    }
    if (ids->n) memcpy(out->ids, ids->data, (size_t)ids->n * sizeof *out->ids);
    return TARE_OK;
}

static tare_status replace_last_rollouts(struct run *r, void *state, struct err *e)
{
    struct token_ids *ids = &((struct luffy *)state)->ids;
    struct batch *b = &r->collector.share.own, traces, mixed;
    /* last: the rollouts that are replaced. end: the ends of their traces. */
    int64_t *last, *end, n = 0;
    if (!b->n_groups) return TARE_OK;
    ids->n = 0;
    TRY(arena_new(&r->arena, &last, b->n_groups, e));
    TRY(arena_new(&r->arena, &end, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (!b->row[m]->completion.data) continue;
        TRY(row_completion_encode(r, b->row[m], b->prompt_begin[m + 1] - b->prompt_begin[m], ids, e));
        last[n] = b->group_begin[m + 1] - 1;
        end[n++] = ids->n;
    }
    TRY(trace_batch(ids, end, n, &r->arena, &traces, e));
    TRY(rollout_texts(r->engine.tokenizer, r->engine.model, &traces, &r->arena, e));
    TRY(batch_replace(b, (struct batch_indices){last, n}, &traces, &r->arena, &mixed, e));
    *b = mixed;
    return TARE_OK;
}

static tare_status check_traces(struct run *r, void *state, struct err *e)
{
    const struct config *c = r->config;
    int64_t traces = 0;
    (void)state;
    const char *where = config_where(c, "rollout", "off_policy");
    for (int64_t i = 0; i < r->engine.train.n; i++) traces += r->engine.train.rows[i].completion.data != NULL;
    if (!traces)
        FAIL(e, TARE_E_CONFIG, "%s: rollout.off_policy needs rows with a \"completion\", but %s has none", where, c->data.train);
    if (c->rollout.group_size < 2)
        FAIL(e, TARE_E_CONFIG, "%s: rollout.off_policy = true replaces the only rollout of a group of 1; raise rollout.group_size",
             where);
    if (estimate_wants(r->learner.estimator, COLUMN_ENTROPY) || estimate_wants(r->learner.estimator, COLUMN_LOGPROB))
        FAIL(
            e, TARE_E_CONFIG,
            "%s: rollout.off_policy cannot be used with the estimator %s: it reads entropies or logprobs of the sampled tokens, and traces have none",
            where, c->estimator.plugin);
    log_info("%lld of %lld rows add a trace to their group", (long long)traces, (long long)r->engine.train.n);
    return TARE_OK;
}

static bool is_on(const struct config *c)
{
    return c->rollout.off_policy;
}

static void free_state(void *state)
{
    token_ids_free(&((struct luffy *)state)->ids);
}

const struct learner_hook luffy_hook = {
    .name = "LUFFY",
    .state_size = sizeof(struct luffy),
    .is_on = is_on,
    .check = check_traces,
    .after_sample = HOOK_STAGE("off_policy", replace_last_rollouts),
    .free = free_state,
};
