#include "serve/logprobs.h"

#include "base/json.h"

#include <string.h>

static tare_status add_json(struct str *out, const char *text, int64_t n, struct err *e)
{
    OWNED(json_decrefp) json_t *j = json_stringn(text, (size_t)n);
    if (!j) FAIL(e, TARE_E_INVALID, "invalid UTF-8 in a token");
    return json_print(j, out, e);
}

/* ---- token names: distinct, also for tokens that are part of a character or have no text */

static tare_status add_name(const struct tokenizer *t, int32_t id, struct str *out, struct err *e)
{
    const tare_text bytes = tokenizer_bytes(t, id);
    if (bytes.size && !str_utf8_error(bytes.data, bytes.size)) return add_json(out, bytes.data, bytes.size, e);
    if (!bytes.size) return str_addf(out, e, "\"token_id:%d\"", id);
    TRY(str_add(out, "\"bytes:", -1, e));
    for (int64_t i = 0; i < bytes.size; i++) TRY(str_addf(out, e, "\\\\x%02x", (unsigned char)bytes.data[i]));
    return str_add(out, "\"", 1, e);
}

static bool same_name(const struct tokenizer *t, int32_t a, int32_t b)
{
    const tare_text x = tokenizer_bytes(t, a), y = tokenizer_bytes(t, b);
    return a == b || (x.size && x.size == y.size && !memcmp(x.data, y.data, (size_t)x.size));
}

/* ---- completions: lists of tokens, logprobs, alternatives, offsets */

struct text_form {
    const struct tokenizer *tokenizer;
    const struct request *r;
    struct str tokens, logprobs, top, offsets;
    int64_t n;
};

static tare_status add_entry(const struct text_form *f, const struct likely *x, struct str *out, struct err *e)
{
    TRY(add_name(f->tokenizer, x->id, out, e));
    return str_addf(out, e, ":%.9g", (double)x->logprob);
}

/* Adds {"token": logprob, ...} of the likeliest tokens and of the token itself. */
static tare_status add_top(const struct text_form *f, const struct token_info *info, struct str *out, struct err *e)
{
    const struct likely own = {info->id, info->logprob};
    bool has_own = false;
    if (!info->known) return str_add(out, "null", -1, e);
    TRY(str_add(out, "{", 1, e));
    for (int64_t i = 0; i < info->n_top; i++) {
        bool twice = false;
        for (int64_t k = 0; k < i; k++) twice |= same_name(f->tokenizer, info->top[k].id, info->top[i].id);
        if (twice) continue;
        has_own |= same_name(f->tokenizer, info->top[i].id, info->id);
        if (i) TRY(str_add(out, ",", 1, e));
        TRY(add_entry(f, &info->top[i], out, e));
    }
    if (!has_own && info->n_top) TRY(str_add(out, ",", 1, e));
    if (!has_own) TRY(add_entry(f, &own, out, e));
    return str_add(out, "}", 1, e);
}

static int64_t count_characters(const char *text, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* Adds the tokens from .. to of a list. before: characters of the answer that precede the list's
 * text. */
static tare_status add_tokens(struct text_form *f, const struct token_list *list, const struct logprobs_span *span,
                              const struct str *text, int64_t before, struct err *e)
{
    int64_t bytes = 0;
    for (int64_t i = span->from; i < span->to; i++) {
        const struct token_info *info = &list->list[i];
        const int64_t offset = info->offset < text->size ? info->offset : text->size;
        const char *comma = f->n++ ? "," : "";
        before += count_characters(text->data + bytes, offset - bytes);
        bytes = offset;
        TRY(str_add(&f->tokens, comma, -1, e));
        TRY(add_name(f->tokenizer, info->id, &f->tokens, e));
        TRY(str_add(&f->top, comma, -1, e));
        TRY(add_top(f, info, &f->top, e));
        TRY(str_addf(&f->offsets, e, "%s%lld", comma, (long long)before));
        if (info->known)
            TRY(str_addf(&f->logprobs, e, "%s%.9g", comma, (double)info->logprob));
        else
            TRY(str_addf(&f->logprobs, e, "%snull", comma));
    }
    return TARE_OK;
}

static tare_status print_text_form(const struct text_form *f, struct str *out, struct err *e)
{
    const char *const none = "";
    TRY(str_addf(out, e, "{\"tokens\":[%s],\"token_logprobs\":[%s],", f->tokens.data ? f->tokens.data : none,
                 f->logprobs.data ? f->logprobs.data : none));
    if (f->r->top)
        TRY(str_addf(out, e, "\"top_logprobs\":[%s],", f->top.data ? f->top.data : none));
    else
        TRY(str_add(out, "\"top_logprobs\":null,", -1, e));
    return str_addf(out, e, "\"text_offset\":[%s]}", f->offsets.data ? f->offsets.data : none);
}

static tare_status add_text_form(const struct job *job, int64_t i, const struct logprobs_span *span, struct str *out, struct err *e)
{
    const struct request *r = &job->r;
    const struct choice *c = &job->choices[i];
    const struct part *p = &job->parts[i / r->n];
    const int64_t before = r->echo ? count_characters(p->text.data, p->text.size) : 0;
    struct text_form f = {.tokenizer = r->model->engine.tokenizer, .r = r};
    tare_status status = TARE_OK;
    if (r->echo && span->prompt) status = add_tokens(&f, &p->tokens, &(struct logprobs_span){.to = p->tokens.n}, &p->text, 0, e);
    if (!status && r->max_tokens) status = add_tokens(&f, &c->tokens, span, &c->text, before, e);
    if (!status) status = print_text_form(&f, out, e);
    str_free(&f.tokens);
    str_free(&f.logprobs);
    str_free(&f.top);
    str_free(&f.offsets);
    return status;
}

/* ---- chat: an object for each token */

static tare_status add_chat_token(const struct tokenizer *t, const struct likely *x, struct str *out, struct err *e)
{
    const tare_text bytes = tokenizer_bytes(t, x->id);
    OWNED(str_free) struct str text = {0};
    TRY(str_add(out, "{\"token\":", -1, e));
    TRY(tokenizer_decode(t, &x->id, 1, false, &text, e));
    TRY(add_json(out, text.data ? text.data : "", text.size, e));
    TRY(str_addf(out, e, ",\"logprob\":%.9g,\"bytes\":[", (double)x->logprob));
    for (int64_t i = 0; i < bytes.size; i++) TRY(str_addf(out, e, "%s%u", i ? "," : "", (unsigned char)bytes.data[i]));
    return str_add(out, "]", 1, e);
}

static tare_status add_chat_form(const struct job *job, int64_t i, const struct logprobs_span *span, struct str *out, struct err *e)
{
    const struct tokenizer *t = job->r.model->engine.tokenizer;
    TRY(str_add(out, "{\"content\":[", -1, e));
    for (int64_t k = span->from; k < span->to; k++) {
        const struct token_info *info = &job->choices[i].tokens.list[k];
        if (k > span->from) TRY(str_add(out, ",", 1, e));
        TRY(add_chat_token(t, &(struct likely){info->id, info->logprob}, out, e));
        TRY(str_add(out, ",\"top_logprobs\":[", -1, e));
        for (int64_t j = 0; j < info->n_top; j++) {
            if (j) TRY(str_add(out, ",", 1, e));
            TRY(add_chat_token(t, &info->top[j], out, e));
            TRY(str_add(out, "}", 1, e));
        }
        TRY(str_add(out, "]}", -1, e));
    }
    return str_add(out, "],\"refusal\":null}", -1, e);
}

tare_status logprobs_add(const struct job *job, int64_t choice, const struct logprobs_span *span, struct str *out, struct err *e)
{
    if (!job->r.logprobs) return str_add(out, "null", -1, e);
    return job->r.chat ? add_chat_form(job, choice, span, out, e) : add_text_form(job, choice, span, out, e);
}
