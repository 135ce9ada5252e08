#include "serve/answer.h"

#include "base/json.h"
#include "serve/logprobs.h"

#include <string.h>

static tare_status add_text(struct str *out, const char *text, int64_t n, struct err *e)
{
    OWNED(json_decrefp) json_t *j = json_stringn(text ? text : "", (size_t)n);
    if (!j) FAIL(e, TARE_E_INVALID, "invalid UTF-8 in a text");
    return json_print(j, out, e);
}

static const char *finish_reason(const struct choice *c)
{
    return c->finish == FINISH_STOP ? "\"stop\"" : "\"length\"";
}

/* Adds {"id":...,"object":...,"created":...,"model":... */
static tare_status add_head(const struct job *job, const char *object, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", job->id, object, (long long)job->created));
    return add_text(out, job->r.model->name, (int64_t)strlen(job->r.model->name), e);
}

static tare_status add_usage(const struct job *job, struct str *out, struct err *e)
{
    const struct request *r = &job->r;
    int64_t drawn = 0;
    for (int64_t i = 0; r->max_tokens && i < r->n_prompts * r->n; i++) drawn += job->choices[i].tokens.n;
    return str_addf(out, e, "{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld}", (long long)r->ids.n,
                    (long long)drawn, (long long)(r->ids.n + drawn));
}

static tare_status add_ids(const char *name, const int32_t *ids, int64_t n, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, ",\"%s\":[", name));
    for (int64_t i = 0; i < n; i++) TRY(str_addf(out, e, i ? ",%d" : "%d", ids[i]));
    return str_add(out, "]", 1, e);
}

/* Adds the token ids of a choice from `from` on, with those of the prompt at its start, for clients
 * that compare ids. */
static tare_status add_token_ids(const struct job *job, int64_t i, int64_t from, struct str *out, struct err *e)
{
    const struct request *r = &job->r;
    const struct choice *c = &job->choices[i];
    const int64_t p = i / r->n;
    if (!r->token_ids) return TARE_OK;
    if (!from) TRY(add_ids("prompt_token_ids", r->ids.data + r->begin[p], r->begin[p + 1] - r->begin[p], out, e));
    TRY(str_add(out, ",\"token_ids\":[", -1, e));
    for (int64_t k = from; r->max_tokens && k < c->tokens.n; k++)
        TRY(str_addf(out, e, k > from ? ",%d" : "%d", c->tokens.list[k].id));
    return str_add(out, "]", 1, e);
}

/* ---- complete answers */

static tare_status add_whole_choice(const struct job *job, int64_t i, struct str *out, struct err *e)
{
    const struct request *r = &job->r;
    const struct choice *c = &job->choices[i];
    const struct part *p = &job->parts[i / r->n];
    TRY(str_addf(out, e, "%s{\"index\":%lld,", i ? "," : "", (long long)i));
    if (r->chat) {
        TRY(str_add(out, "\"message\":{\"role\":\"assistant\",\"content\":", -1, e));
        TRY(add_text(out, c->text.data, c->text.size, e));
        TRY(str_add(out, ",\"refusal\":null}", -1, e));
    } else {
        struct str text = {0};
        tare_status status = str_add(&text, p->text.data ? p->text.data : "", p->text.size, e);
        if (!status && r->max_tokens) status = str_add(&text, c->text.data ? c->text.data : "", c->text.size, e);
        if (!status) status = str_add(out, "\"text\":", -1, e);
        if (!status) status = add_text(out, text.data, text.size, e);
        str_free(&text);
        TRY(status);
    }
    TRY(str_add(out, ",\"logprobs\":", -1, e));
    TRY(logprobs_add(job, i, &(struct logprobs_span){.prompt = true, .to = c->tokens.n}, out, e));
    TRY(add_token_ids(job, i, 0, out, e));
    return str_addf(out, e, ",\"finish_reason\":%s}", finish_reason(c));
}

tare_status answer_whole(const struct job *job, struct str *out, struct err *e)
{
    const struct request *r = &job->r;
    TRY(add_head(job, r->chat ? "chat.completion" : "text_completion", out, e));
    TRY(str_add(out, ",\"choices\":[", -1, e));
    for (int64_t i = 0; i < r->n_prompts * r->n; i++) TRY(add_whole_choice(job, i, out, e));
    TRY(str_add(out, "],\"usage\":", -1, e));
    TRY(add_usage(job, out, e));
    return str_add(out, "}\n", 2, e);
}

/* ---- streams */

static tare_status begin_event(const struct job *job, struct str *out, struct err *e)
{
    TRY(str_add(out, "data: ", -1, e));
    TRY(add_head(job, job->r.chat ? "chat.completion.chunk" : "text_completion", out, e));
    return str_add(out, ",\"choices\":[", -1, e);
}

static tare_status end_event(struct str *out, struct err *e)
{
    return str_add(out, "}\n\n", -1, e);
}

/* Adds the members of a chunk's choice before its logprobs. */
static tare_status add_delta(const struct job *job, int64_t i, const struct str *text, struct str *out, struct err *e)
{
    const bool first = !job->choices[i].begun;
    TRY(str_addf(out, e, "{\"index\":%lld,", (long long)i));
    if (!job->r.chat) {
        TRY(str_add(out, "\"text\":", -1, e));
        return add_text(out, text->data, text->size, e);
    }
    TRY(str_addf(out, e, "\"delta\":{%s\"content\":", first ? "\"role\":\"assistant\"," : ""));
    TRY(add_text(out, text->data, text->size, e));
    return str_add(out, "}", 1, e);
}

/* Returns the number of tokens whose text can be sent. */
static int64_t tokens_ready(const struct choice *c)
{
    int64_t n = c->sent_tokens;
    while (n < c->tokens.n && (c->done || c->tokens.list[n].offset < c->ready)) n++;
    return n;
}

static tare_status add_chunk(struct job *job, int64_t i, const struct str *text, struct str *out, struct err *e)
{
    struct choice *c = &job->choices[i];
    const struct logprobs_span span = {.prompt = !c->begun, .from = c->sent_tokens, .to = tokens_ready(c)};
    TRY(begin_event(job, out, e));
    TRY(add_delta(job, i, text, out, e));
    TRY(str_add(out, ",\"logprobs\":", -1, e));
    TRY(logprobs_add(job, i, &span, out, e));
    TRY(add_token_ids(job, i, c->sent_tokens, out, e));
    TRY(str_addf(out, e, ",\"finish_reason\":%s}]%s", c->done ? finish_reason(c) : "null", job->r.usage ? ",\"usage\":null" : ""));
    c->sent_tokens = span.to;
    return end_event(out, e);
}

tare_status answer_chunk(struct job *job, int64_t i, struct str *out, struct err *e)
{
    struct choice *c = &job->choices[i];
    const struct part *p = &job->parts[i / job->r.n];
    OWNED(str_free) struct str text = {0};
    if (c->sent == c->ready && !c->done) return TARE_OK;
    tare_status status = str_reserve(&text, 0, e);
    if (!status && !c->begun) status = str_add(&text, p->text.data ? p->text.data : "", p->text.size, e);
    if (!status && job->r.max_tokens) status = str_add(&text, c->text.data + c->sent, c->ready - c->sent, e);
    if (!status) status = add_chunk(job, i, &text, out, e);
    c->begun = true;
    c->sent = c->ready;
    return status;
}

tare_status answer_end(const struct job *job, struct str *out, struct err *e)
{
    if (job->r.usage) {
        TRY(begin_event(job, out, e));
        TRY(str_add(out, "],\"usage\":", -1, e));
        TRY(add_usage(job, out, e));
        TRY(end_event(out, e));
    }
    return str_add(out, "data: [DONE]\n\n", -1, e);
}

/* ---- errors, models */

static tare_status add_or_null(struct str *out, const char *text, struct err *e)
{
    return text && *text ? add_text(out, text, (int64_t)strlen(text), e) : str_add(out, "null", -1, e);
}

tare_status answer_refusal(const struct refusal *no, struct str *out, struct err *e)
{
    const char *message = no->e.message;
    TRY(str_add(out, "{\"error\":{\"message\":", -1, e));
    TRY(add_or_null(out, str_utf8_error(message, (int64_t)strlen(message)) ? "invalid UTF-8 in the request" : message, e));
    TRY(str_add(out, ",\"type\":", -1, e));
    TRY(add_or_null(out, no->type, e));
    TRY(str_add(out, ",\"param\":", -1, e));
    TRY(add_or_null(out, str_utf8_error(no->param, (int64_t)strlen(no->param)) ? NULL : no->param, e));
    TRY(str_add(out, ",\"code\":", -1, e));
    TRY(add_or_null(out, no->code, e));
    return str_add(out, "}}\n", -1, e);
}

static tare_status add_model(const struct server *s, const struct served *m, struct str *out, struct err *e)
{
    TRY(str_add(out, "{\"id\":", -1, e));
    TRY(add_text(out, m->name, (int64_t)strlen(m->name), e));
    return str_addf(out, e, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"tare\",\"max_model_len\":%lld}",
                    (long long)s->began, (long long)m->engine.model->shape.max_position);
}

tare_status answer_model(const struct server *s, const struct served *m, struct str *out, struct err *e)
{
    TRY(add_model(s, m, out, e));
    return str_add(out, "\n", 1, e);
}

tare_status answer_models(const struct server *s, struct str *out, struct err *e)
{
    TRY(str_add(out, "{\"object\":\"list\",\"data\":[", -1, e));
    for (int64_t i = 0; i < s->models.n; i++) {
        if (i) TRY(str_add(out, ",", 1, e));
        TRY(add_model(s, &s->models.list[i], out, e));
    }
    return str_add(out, "]}\n", -1, e);
}
