#include "engine/text.h"

#include <string.h>

tare_status stage_prompts(const struct prompts *p, const struct chosen_rows *chosen, struct token_ids *ids, struct batch *b,
                          struct arena *a, struct err *e)
{
    const int64_t n = chosen->n;
    b->n_groups = n;
    TRY(arena_new(a, &b->row, n, e));
    TRY(arena_new(a, &b->row_json, n, e));
    TRY(arena_new(a, &b->prompt_uid, n, e));
    TRY(arena_new(a, &b->occurrence, n, e));
    TRY(arena_new(a, &b->prompt_begin, n + 1, e));
    ids->n = 0;
    for (int64_t m = 0; m < n; m++) {
        b->row[m] = &chosen->data->rows[chosen->rows[m]];
        b->row_json[m] = b->row[m]->json;
        b->prompt_uid[m] = b->row[m]->uid;
        b->occurrence[m] = chosen->occurrence ? chosen->occurrence[m] : 0;
        TRY(prompts_encode(p, b->row[m], ids, e));
        b->prompt_begin[m + 1] = ids->n;
        if (b->prompt_begin[m + 1] == b->prompt_begin[m]) FAIL(e, TARE_E_INVALID, "%s: the prompt has no token", b->row[m]->where);
    }
    TRY(arena_new_raw(a, &b->prompt_ids, ids->n, e));
    b->n_prompt_tokens = ids->n;
    memcpy(b->prompt_ids, ids->data, (size_t)ids->n * sizeof *ids->data);
    return TARE_OK;
}

static bool is_stop(const struct model *m, int32_t id)
{
    for (int64_t i = 0; i < m->n_eos; i++)
        if (m->eos[i] == id) return true;
    return false;
}

tare_status completion_text(const struct decoding *d, struct completion_ids x, tare_text *out, struct err *e)
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

tare_status stage_texts(const struct tokenizer *t, const struct model *m, struct batch *b, struct arena *a, struct err *e)
{
    const struct decoding d = {t, m, a};
    TRY(arena_new(a, &b->completion, b->n_rollouts, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const int64_t first = b->token_begin[i];
        TRY(completion_text(&d, (struct completion_ids){b->ids + first, b->token_begin[i + 1] - first, b->finish[i]},
                            &b->completion[i], e));
    }
    return TARE_OK;
}

tare_status stage_token_ends(const struct tokenizer *t, struct batch *b, struct arena *a, struct err *e)
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
