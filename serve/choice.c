#include "serve/choice.h"

#include <string.h>

/* ---- logprobs */

/* Finds the ids of the k largest logits by insertion, because k is small. Returns their number. */
static int64_t find_largest(const float *logits, int64_t vocab, int64_t k, int32_t *ids)
{
    int64_t n = 0;
    for (int64_t v = 0; v < vocab; v++) {
        if (n == k && !(logits[v] > logits[ids[n - 1]])) continue;
        int64_t at = n < k ? n++ : n - 1;
        for (; at > 0 && logits[v] > logits[ids[at - 1]]; at--) ids[at] = ids[at - 1];
        ids[at] = (int32_t)v;
    }
    return n;
}

/* Adds the likeliest alternatives: log p(v) = log p(id) + (z_v - z_id) / T, which reuses the sum
 * over the vocabulary of the token itself. */
static tare_status add_likely(struct token_info *info, const struct request *r, const float *logits, struct err *e)
{
    const double temperature = r->temperature > 0 ? r->temperature : 1;
    const int64_t vocab = r->model->engine.model->shape.vocab;
    int32_t ids[MAX_TOP];
    info->n_top = find_largest(logits, vocab, r->top < vocab ? r->top : vocab, ids);
    TRY(mem_new(info->n_top * (int64_t)sizeof *info->top, (void **)&info->top, e));
    for (int64_t i = 0; i < info->n_top; i++) {
        const double step = ((double)logits[ids[i]] - (double)logits[info->id]) / temperature;
        info->top[i] = (struct likely){ids[i], (float)((double)info->logprob + step)};
    }
    return TARE_OK;
}

tare_status choice_list_add(struct token_list *list, int32_t id, int64_t offset, struct err *e)
{
    TRY(mem_grow((void **)&list->list, &list->capacity, list->n + 1, (int64_t)sizeof *list->list, e));
    list->list[list->n++] = (struct token_info){.id = id, .offset = offset};
    return TARE_OK;
}

tare_status choice_info_set(struct token_info *info, const struct request *r, const struct session_token *t, struct err *e)
{
    info->logprob = t->logprob;
    info->known = true;
    return r->logprobs && r->top && t->logits ? add_likely(info, r, t->logits, e) : TARE_OK;
}

void choice_list_free(struct token_list *list)
{
    for (int64_t i = 0; i < list->n; i++) mem_free(list->list[i].top);
    mem_free(list->list);
    *list = (struct token_list){0};
}

/* ---- text */

void choice_init(struct choice *c, const struct request *r)
{
    *c = (struct choice){0};
    token_stream_init(&c->stream, r->model->engine.tokenizer, true);
}

void choice_free(struct choice *c)
{
    choice_list_free(&c->tokens);
    token_stream_free(&c->stream);
    str_free(&c->text);
}

/* Cuts the text before the first stop string that begins at c->ready or later. Returns true if
 * there is one. */
static bool cut_at_stop(struct choice *c, const struct request *r)
{
    int64_t first = c->text.size;
    for (int64_t i = 0; i < r->n_stop; i++) {
        const struct str *stop = &r->stop[i];
        for (int64_t at = c->ready; at + stop->size <= c->text.size && at < first; at++)
            if (!memcmp(c->text.data + at, stop->data, (size_t)stop->size)) first = at;
    }
    if (first == c->text.size) return false;
    c->text.size = first;
    c->text.data[first] = 0;
    return true;
}

/* Holds back the longest end of the text that may be the beginning of a stop string. */
static void hold_back(struct choice *c, const struct request *r)
{
    int64_t held = 0;
    for (int64_t i = 0; i < r->n_stop; i++) {
        const struct str *stop = &r->stop[i];
        int64_t n = stop->size - 1 < c->text.size - c->ready ? stop->size - 1 : c->text.size - c->ready;
        while (n > held && memcmp(c->text.data + c->text.size - n, stop->data, (size_t)n) != 0) n--;
        if (n > held) held = n;
    }
    c->ready = c->text.size - held;
}

/* True for an id that ends a completion; it is not part of the text. */
static bool is_end(const struct request *r, const struct session_token *t)
{
    const struct model *m = r->model->engine.model;
    if (!t->ends || t->finish != FINISH_STOP) return false;
    for (int64_t i = 0; i < m->n_eos; i++)
        if (m->eos[i] == t->id) return true;
    return tokenizer_is_special(r->model->engine.tokenizer, t->id);
}

tare_status choice_add(struct choice *c, const struct request *r, const struct session_token *t, bool *more, struct err *e)
{
    const int64_t offset = c->text.size;
    TRY(str_reserve(&c->text, 0, e));
    if (!is_end(r, t)) TRY(token_stream_push(&c->stream, t->id, &c->text, e));
    if (t->ends) TRY(token_stream_end(&c->stream, &c->text, e));
    TRY(choice_list_add(&c->tokens, t->id, offset, e));
    TRY(choice_info_set(&c->tokens.list[c->tokens.n - 1], r, t, e));
    const bool stopped = cut_at_stop(c, r);
    c->done = stopped || t->ends;
    c->finish = stopped ? FINISH_STOP : t->finish;
    if (c->done)
        c->ready = c->text.size;
    else
        hold_back(c, r);
    *more = !c->done;
    return TARE_OK;
}
