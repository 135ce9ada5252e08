/* Off-policy traces in a group (LUFFY, arXiv 2504.14945): with rollout.off_policy the completion that a row brings along, with EOS behind it, takes
 * the place of its group's last rollout. It is judged, and counts in the group's statistics, like the others; the loss treats its tokens by
 * policy shaping (update/loss.c). Its probability under the policy that wrote it is not known and taken as 1: logprob 0. */
#include "loop/run.h"

#include "base/log.h"

#include <string.h>

static tare_status encode_trace(struct run *r, int64_t m, struct err *e)
{
    const struct batch *b = &r->share.own;
    const struct row *row = b->row[m];
    const int64_t begin = r->trace_ids.n, prompt = b->prompt_begin[m + 1] - b->prompt_begin[m];
    TRY(tokenizer_encode(r->tokenizer, row->completion.data, row->completion.size, &r->trace_ids, e));
    TRY(token_ids_add(&r->trace_ids, r->model->eos[0], e));
    const int64_t n = r->trace_ids.n - begin, most = r->config->rollout.max_new_tokens;
    if (n > most || prompt + n > r->model->shape.max_position)
        FAIL(e, TARE_E_RANGE,
             "%s: the completion has %lld tokens; rollout.max_new_tokens is %lld, the context %lld. `tare data check FILE "
             "model=FOLDER "
             "max_tokens=N write=OUT` drops such rows",
             row->where, (long long)n, (long long)most, (long long)r->model->shape.max_position);
    return TARE_OK;
}

/* The batch again, with trace m (ids trace[begin[m]] .. trace[begin[m+1]], none where they are equal) as the last rollout of group m. */
static tare_status replace_last(struct run *r, const int64_t *begin, struct err *e)
{
    struct batch *b = &r->share.own, old = *b;
    struct arena *a = &r->arena;
    const int32_t *trace = r->trace_ids.data;
    int64_t at = 0;
    TRY(arena_new(a, int64_t, b->n_rollouts + 1, &b->token_begin, e));
    TRY(arena_new(a, int32_t, old.n_tokens + r->trace_ids.n, &b->ids, e));
    TRY(arena_new(a, float, old.n_tokens + r->trace_ids.n, &b->logprob, e));
    TRY(arena_new(a, float, old.n_tokens + r->trace_ids.n, &b->entropy, e));
    TRY(arena_new(a, uint8_t, b->n_rollouts, &b->off_policy, e));
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            const int64_t from = old.token_begin[i], traced = begin[m + 1] - begin[m];
            const bool off = traced && i == b->group_begin[m + 1] - 1;
            const int64_t n = off ? traced : old.token_begin[i + 1] - from;
            memcpy(b->ids + at, off ? trace + begin[m] : old.ids + from, (size_t)n * sizeof *b->ids);
            if (!off) memcpy(b->logprob + at, old.logprob + from, (size_t)n * sizeof *b->logprob);
            if (!off) memcpy(b->entropy + at, old.entropy + from, (size_t)n * sizeof *b->entropy);
            if (off) b->off_policy[i] = 1, b->finish[i] = FINISH_STOP;
            b->token_begin[i + 1] = at += n;
        }
    b->n_tokens = at;
    return TARE_OK;
}

tare_status stage_off_policy(struct run *r, struct err *e)
{
    const struct batch *b = &r->share.own;
    int64_t *begin;
    if (!r->config->rollout.off_policy) return TARE_OK;
    r->trace_ids.n = 0;
    TRY(arena_new(&r->arena, int64_t, b->n_groups + 1, &begin, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (b->row[m]->completion.data) TRY(encode_trace(r, m, e));
        begin[m + 1] = r->trace_ids.n;
    }
    return replace_last(r, begin, e);
}

tare_status off_policy_check(const struct run *r, struct err *e)
{
    const struct config *c = r->config;
    int64_t traces = 0;
    if (!c->rollout.off_policy) return TARE_OK;
    const char *where = config_where(c, "rollout", "off_policy");
    for (int64_t i = 0; i < r->train.n; i++) traces += r->train.rows[i].completion.data != NULL;
    if (!traces) FAIL(e, TARE_E_CONFIG, "%s: rollout.off_policy, and no row of %s has a \"completion\"", where, c->data.train);
    if (c->rollout.group_size < 2)
        FAIL(e, TARE_E_CONFIG, "%s: rollout.off_policy leaves no sampled rollout in a group of 1; raise rollout.group_size", where);
    if (estimate_needs(r->estimator) & (TARE_NEED_ENTROPY | TARE_NEED_LOGPROB))
        FAIL(e, TARE_E_CONFIG, "%s: the estimator %s wants entropies or logprobs of the sampled tokens, and traces have none",
             where, c->estimator.plugin);
    log_info("%lld of %lld rows bring a trace into their group", (long long)traces, (long long)r->train.n);
    return TARE_OK;
}
