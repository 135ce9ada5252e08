/* Off-policy traces in a group (LUFFY, arXiv 2504.14945): with rollout.off_policy the completion that a row brings along, followed by EOS, takes
 * the place of its group's last rollout. It is judged, and counts in the group's statistics, like the others; the loss treats its tokens by
 * policy shaping (update/loss.c). Its probability under the policy that wrote it is not known and taken as 1: logprob 0. */
#include "loop/off_policy.h"

#include "base/log.h"
#include "batch/select.h"
#include "rollout/texts.h"

#include <string.h>

tare_status off_policy_encode(const struct run *r, const struct row *row, int64_t prompt, struct token_ids *out, struct err *e)
{
    const int64_t begin = out->n;
    TRY(tokenizer_encode(r->engine.tokenizer, row->completion.data, row->completion.size, out, e));
    TRY(token_ids_add(out, r->engine.model->eos[0], e));
    const int64_t n = out->n - begin, most = r->config->rollout.max_new_tokens;
    if (n > most || prompt + n > r->engine.model->shape.max_position)
        FAIL(
            e, TARE_E_RANGE,
            "%s: the completion has %lld tokens; rollout.max_new_tokens is %lld, the context %lld. `tare data check FILE model=FOLDER max_tokens=N write=OUT` drops such rows",
            row->where, (long long)n, (long long)most, (long long)r->engine.model->shape.max_position);
    return TARE_OK;
}

/* The traces as a batch of one rollout a group: group k ends before token end[k] of all of them. */
static tare_status trace_batch(const struct run *r, const int64_t *end, int64_t n, struct arena *a, struct batch *out,
                               struct err *e)
{
    *out = (struct batch){.n_groups = n, .n_rollouts = n, .n_tokens = r->trace_ids.n};
    TRY(batch_alloc(out, BATCH_ROLLOUT, a, e));
    TRY(arena_new(a, &out->off_policy, n, e));
    for (int64_t k = 0; k < n; k++) {
        out->group_begin[k + 1] = k + 1;
        out->token_begin[k + 1] = end[k];
        out->finish[k] = FINISH_STOP;
        out->off_policy[k] = 1;
        out->policy_version[k] = -1;
    }
    if (r->trace_ids.n) memcpy(out->ids, r->trace_ids.data, (size_t)r->trace_ids.n * sizeof *out->ids);
    return TARE_OK;
}

tare_status stage_off_policy(struct run *r, struct err *e)
{
    struct batch *b = &r->share.own, traces, mixed;
    int64_t *last, *end, n = 0; /* of the rollouts that go; of their traces' tokens */
    if (!r->config->rollout.off_policy || !b->n_groups) return TARE_OK;
    r->trace_ids.n = 0;
    TRY(arena_new(&r->arena, &last, b->n_groups, e));
    TRY(arena_new(&r->arena, &end, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (!b->row[m]->completion.data) continue;
        TRY(off_policy_encode(r, b->row[m], b->prompt_begin[m + 1] - b->prompt_begin[m], &r->trace_ids, e));
        last[n] = b->group_begin[m + 1] - 1;
        end[n++] = r->trace_ids.n;
    }
    TRY(trace_batch(r, end, n, &r->arena, &traces, e));
    TRY(rollout_texts(r->engine.tokenizer, r->engine.model, &traces, &r->arena, e));
    TRY(batch_replace(b, (struct batch_indices){last, n}, &traces, &r->arena, &mixed, e));
    *b = mixed;
    return TARE_OK;
}

tare_status off_policy_check(const struct run *r, struct err *e)
{
    const struct config *c = r->config;
    int64_t traces = 0;
    if (!c->rollout.off_policy) return TARE_OK;
    const char *where = config_where(c, "rollout", "off_policy");
    for (int64_t i = 0; i < r->engine.train.n; i++) traces += r->engine.train.rows[i].completion.data != NULL;
    if (!traces) FAIL(e, TARE_E_CONFIG, "%s: rollout.off_policy, and no row of %s has a \"completion\"", where, c->data.train);
    if (c->rollout.group_size < 2)
        FAIL(e, TARE_E_CONFIG, "%s: rollout.off_policy leaves no sampled rollout in a group of 1; raise rollout.group_size", where);
    if (estimate_needs(r->estimator) & (TARE_NEED_ENTROPY | TARE_NEED_LOGPROB))
        FAIL(e, TARE_E_CONFIG, "%s: the estimator %s wants entropies or logprobs of the sampled tokens, and traces have none",
             where, c->estimator.plugin);
    log_info("%lld of %lld rows bring a trace into their group", (long long)traces, (long long)r->engine.train.n);
    return TARE_OK;
}
