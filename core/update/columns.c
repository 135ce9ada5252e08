#include "update/columns.h"

#include "batch/turns.h"

static tare_status gather_floats(const float *from, const struct loss_tokens *x, struct arena *a, const void **out, struct err *e)
{
    float *to;
    if (!from) return TARE_OK;
    TRY(arena_new_raw(a, &to, x->n + 1, e));
    for (int64_t i = 0; i < x->n; i++) to[i] = from[x->token[i]];
    *out = to;
    return TARE_OK;
}

static tare_status mark_off_policy(const struct loss_tokens *x, struct arena *a, const void **out, struct err *e)
{
    uint8_t *to;
    TRY(arena_new(a, &to, x->n + 1, e));
    if (x->b->off_policy)
        for (int64_t i = 0; i < x->n; i++) to[i] = x->b->off_policy[x->owner[x->token[i]]];
    *out = to;
    return TARE_OK;
}

static tare_status number_turns(const struct loss_tokens *x, struct arena *a, const void **out, struct err *e)
{
    int32_t *to;
    TRY(arena_new(a, &to, x->n + 1, e));
    for (int64_t i = 0; i < x->n; i++) to[i] = batch_turn_of(x->b, x->owner[x->token[i]], x->token[i]);
    *out = to;
    return TARE_OK;
}

static tare_status fill_want(const struct plugin_instance *i, const struct loss_tokens *x, uint32_t want, struct arena *a,
                             tare_column *out, struct err *e)
{
    struct plugin_column from = {.n = x->n, .width = 1, .missing = "which this step does not have"};
    if (!i->wanted[want]) return TARE_OK;
    switch (i->plugin->column[want]) {
    case COLUMN_SAMPLER_LOGPROB:
        TRY(gather_floats(x->sampled, x, a, &from.data, e));
        break;
    case COLUMN_LOSS_REF_LOGPROB:
        TRY(gather_floats(x->b->ref_logprob, x, a, &from.data, e));
        from.missing = "and the batch has no logprobs of the reference policy";
        break;
    case COLUMN_KL:
        if (x->before) return TARE_OK;
        from.data = x->kl;
        from.missing = "and the update has no reference policy";
        break;
    case COLUMN_LOSS_OFF_POLICY:
        TRY(mark_off_policy(x, a, &from.data, e));
        break;
    case COLUMN_LOSS_TURN:
        TRY(number_turns(x, a, &from.data, e));
        break;
    default:
        break;
    }
    return plugin_column(i, want, &from, out, e);
}

tare_status update_columns(const struct plugin_instance *i, const struct loss_tokens *x, struct arena *a, const tare_column **out,
                           struct err *e)
{
    tare_column *column;
    TRY(arena_new(a, &column, i->plugin->desc.n_wants + 1, e));
    for (uint32_t w = 0; w < i->plugin->desc.n_wants; w++) TRY(fill_want(i, x, w, a, &column[w], e));
    *out = column;
    return TARE_OK;
}
