#include "rollout/texts.h"

static bool is_stop(const struct model *m, int32_t id)
{
    for (int64_t i = 0; i < m->n_eos; i++)
        if (m->eos[i] == id) return true;
    return false;
}

tare_status rollout_completion_text(const struct decoding *d, struct completion_ids x, tare_text *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    char *copy = NULL;
    if (x.n && x.finish == FINISH_STOP && (is_stop(d->model, x.ids[x.n - 1]) || tokenizer_is_special(d->tokenizer, x.ids[x.n - 1])))
        x.n--;
    TRY(tokenizer_decode(d->tokenizer, x.ids, x.n, true, &text, e));
    TRY(arena_strdup(d->arena, text.data ? text.data : "", text.size, &copy, e));
    *out = (tare_text){copy, text.size};
    return TARE_OK;
}

tare_status rollout_texts(const struct tokenizer *t, const struct model *m, struct batch *b, struct arena *a, struct err *e)
{
    const struct decoding d = {t, m, a};
    TRY(arena_new(a, &b->completion, b->n_rollouts, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const int64_t first = b->token_begin[i];
        TRY(rollout_completion_text(&d, (struct completion_ids){b->ids + first, b->token_begin[i + 1] - first, b->finish[i]},
                                    &b->completion[i], e));
    }
    return TARE_OK;
}

tare_status rollout_token_ends(const struct tokenizer *t, struct batch *b, struct arena *a, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(arena_new(a, &b->token_end, b->n_tokens, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const int64_t all = b->completion[i].size, last = b->token_begin[i + 1] - 1;
        struct token_stream s;
        str_clear(&text);
        token_stream_init(&s, t, true);
        for (int64_t k = b->token_begin[i]; k <= last; k++) {
            TRY(token_stream_push(&s, b->ids[k], &text, e));
            if (k == last) TRY(token_stream_end(&s, &text, e));
            b->token_end[k] = text.size < all ? text.size : all;
        }
        token_stream_free(&s);
    }
    return TARE_OK;
}
