#include "serve/prompt.h"

#include "base/json.h"

#include <string.h>

static tare_status refuse_type(struct refusal *no, const char *param, const char *what)
{
    REFUSE(no, 400, "invalid_value", param, TARE_E_INVALID, "%s", what);
}

static const char PROMPT_FORMS[] = "'prompt' must be a text, a list of texts, a list of token ids, or a list of lists of token ids";

/* ---- completions */

static tare_status encode_text(struct request *r, const char *text, int64_t n, struct refusal *no)
{
    const struct tokenizer *t = r->model->engine.tokenizer;
    const int32_t bos = tokenizer_role_id(t, TOKEN_BOS);
    if (!r->chat && r->add_special && tokenizer_add_bos(t) && bos >= 0) TRY(token_ids_add(&r->ids, bos, &no->e));
    return tokenizer_encode(t, text, n, &r->ids, &no->e);
}

static tare_status take_ids(struct request *r, const json_t *list, struct refusal *no)
{
    const int64_t vocab = r->model->engine.model->shape.vocab;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= vocab)
            REFUSE(no, 400, "invalid_value", "prompt", TARE_E_RANGE, "'prompt': token %zu must be an integer from 0 to %lld", i,
                   (long long)vocab - 1);
        TRY(token_ids_add(&r->ids, (int32_t)id, &no->e));
    }
    return TARE_OK;
}

/* Adds a prompt: a text or a list of ids. */
static tare_status add_prompt(struct request *r, const json_t *prompt, struct refusal *no)
{
    if (json_is_string(prompt))
        TRY(encode_text(r, json_string_value(prompt), (int64_t)json_string_length(prompt), no));
    else if (json_is_array(prompt))
        TRY(take_ids(r, prompt, no));
    else
        return refuse_type(no, "prompt", PROMPT_FORMS);
    const int64_t n = r->ids.n - r->begin[r->n_prompts], context = r->model->engine.model->shape.max_position;
    if (!n) return refuse_type(no, "prompt", "'prompt' must have at least one token");
    if (n >= context)
        REFUSE(no, 400, "context_length_exceeded", r->chat ? "messages" : "prompt", TARE_E_RANGE,
               "the prompt has %lld tokens; with a new token at most %lld fit into the model's context of %lld", (long long)n,
               (long long)context - 1, (long long)context);
    r->begin[++r->n_prompts] = r->ids.n;
    return TARE_OK;
}

static tare_status take_prompts(struct request *r, struct refusal *no)
{
    const json_t *p = r->prompt, *first = json_array_get(p, 0);
    const bool several = json_is_string(first) || json_is_array(first);
    const size_t n = several ? json_array_size(p) : 1;
    if (!p) return refuse_type(no, "prompt", "'prompt' is missing");
    TRY(mem_new((int64_t)(n + 1) * (int64_t)sizeof *r->begin, (void **)&r->begin, &no->e));
    for (size_t i = 0; i < n; i++) TRY(add_prompt(r, several ? json_array_get(p, i) : p, no));
    return TARE_OK;
}

/* ---- chat */

static const char CONTENT_FORMS[] = "the 'content' of a message must be a text, or a list of {\"type\": \"text\", \"text\": ...}";

/* Joins the parts of a message, because templates need a single text. */
static tare_status join_parts(const json_t *parts, struct str *text, struct refusal *no)
{
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *t = json_object_get(part, "text");
        if (strcmp(json_text_or(part, "type", ""), "text") != 0 || !json_is_string(t))
            return refuse_type(no, "messages", CONTENT_FORMS);
        TRY(str_add(text, json_string_value(t), (int64_t)json_string_length(t), &no->e));
    }
    return TARE_OK;
}

static tare_status add_message(const json_t *message, json_t *to, struct refusal *no)
{
    const json_t *content = json_object_get(message, "content");
    OWNED(str_free) struct str text = {0};
    if (!json_is_object(message) || !json_is_string(json_object_get(message, "role")))
        return refuse_type(no, "messages", "a message must be an object with a text as 'role'");
    json_t *copy = json_copy((json_t *)(uintptr_t)message);
    tare_status status = copy && !json_array_append_new(to, copy) ? TARE_OK : TARE_E_NOMEM;
    if (!status && json_is_array(content)) {
        status = join_parts(content, &text, no);
        if (!status && json_object_set_new(copy, "content", json_stringn(text.data ? text.data : "", (size_t)text.size)))
            status = TARE_E_NOMEM;
    } else if (!status && !json_is_string(content)) {
        status = refuse_type(no, "messages", CONTENT_FORMS);
    }
    if (status == TARE_E_NOMEM) FAIL(&no->e, TARE_E_NOMEM, "no memory for a message");
    return status;
}

static tare_status render_chat(struct request *r, const json_t *messages, struct refusal *no)
{
    OWNED(str_free) struct str text = {0};
    const tare_status status = chat_prompt(r->model->chat, messages, r->template_variables, &text, &no->e);
    /* from the template's raise_exception */
    if (status) request_refuse(no, 400, "invalid_value", "messages");
    TRY(status);
    OWNED(json_decrefp) json_t *whole = json_stringn(text.data ? text.data : "", (size_t)text.size);
    return whole ? add_prompt(r, whole, no) : refuse_type(no, "messages", "the chat template produced invalid UTF-8");
}

static tare_status take_messages(struct request *r, struct refusal *no)
{
    if (!r->model->chat)
        REFUSE(no, 400, "no_chat_template", "model", TARE_E_UNSUPPORTED,
               "the model '%s' has no chat template for messages; use /v1/completions, or serve it with data.chat_template=FILE",
               r->model->name);
    if (!json_is_array(r->messages) || !json_array_size(r->messages))
        return refuse_type(no, "messages", "'messages' must be a list of at least one message");
    OWNED(json_decrefp) json_t *messages = json_array();
    if (!messages) FAIL(&no->e, TARE_E_NOMEM, "no memory for messages");
    for (size_t i = 0; i < json_array_size(r->messages); i++) TRY(add_message(json_array_get(r->messages, i), messages, no));
    TRY(mem_new(2 * (int64_t)sizeof *r->begin, (void **)&r->begin, &no->e));
    return render_chat(r, messages, no);
}

tare_status prompt_of_request(struct request *r, struct refusal *no)
{
    return r->chat ? take_messages(r, no) : take_prompts(r, no);
}
