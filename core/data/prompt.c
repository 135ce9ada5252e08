#define _GNU_SOURCE /* memmem */
#include "data/prompt.h"

#include "base/arena.h"
#include "base/fs.h"
#include "base/log.h"
#include "data/choices.h"

#include <string.h>

struct prompts {
    const struct data_config *config;
    const struct tokenizer *tokenizer;
    struct chat *chat; /* NULL: plain */
};

tare_status prompts_new(const struct data_config *config, const char *folder, const struct tokenizer *t, struct prompts **out,
                        struct err *e)
{
    *out = NULL;
    const bool plain = config->prompt == PROMPT_PLAIN;
    struct prompts *p;
    TRY(mem_new(sizeof *p, (void **)&p, e));
    p->config = config;
    p->tokenizer = t;
    tare_status status = plain ? TARE_OK : chat_load(folder, config->chat_template, &p->chat, e);
    if (!status && p->chat && config->date && *config->date) status = chat_set_date(p->chat, config->date, e);
    if (!status && p->chat) status = chat_set_kwargs(p->chat, config->chat_template_kwargs, e);
    if (status)
        prompts_free(p);
    else
        *out = p;
    return status;
}

void prompts_free(struct prompts *p)
{
    if (!p) return;
    chat_free(p->chat);
    mem_free(p);
}

static json_t *new_message(const char *role, const char *text, int64_t n)
{
    json_t *m = json_object();
    if (json_object_set_new(m, "role", json_string(role)) || json_object_set_new(m, "content", json_stringn(text, (size_t)n))) {
        json_decref(m);
        return NULL;
    }
    return m;
}

static tare_status no_memory(struct err *e)
{
    FAIL(e, TARE_E_NOMEM, "no memory for the messages of a prompt");
}

/* Appends the suffix to the last user message. */
static tare_status add_suffix(const struct prompts *p, json_t *messages, const struct row *row, struct err *e)
{
    const char *suffix = p->config->suffix;
    if (!suffix || !*suffix) return TARE_OK;
    json_t *last = NULL, *m;
    size_t i;
    json_array_foreach(messages, i, m)
    {
        if (!strcmp(json_text_or(m, "role", ""), "user")) last = m;
    }
    const json_t *content = json_object_get(last, "content");
    if (!json_is_string(content))
        FAIL(e, TARE_E_INVALID, "%s: \"messages\" has no user message to which data.suffix can be appended", row->where);
    OWNED(str_free) struct str text = {0};
    TRY(str_add(&text, json_string_value(content), (int64_t)json_string_length(content), e));
    TRY(str_add(&text, suffix, -1, e));
    if (json_object_set_new(last, "content", json_stringn(text.data, (size_t)text.size))) TRY(no_memory(e));
    return TARE_OK;
}

static tare_status question_text(const struct row *row, struct str *out, struct err *e)
{
    TRY(str_add(out, row->question.data, row->question.size, e));
    return choices_render(row, out, e);
}

static bool has_system(const json_t *messages)
{
    return !strcmp(json_text_or(json_array_get(messages, 0), "role", ""), "system");
}

static tare_status make_messages(const struct prompts *p, const struct row *row, json_t **out, struct err *e)
{
    const char *system = p->config->system;
    if (row->messages.data) {
        TRY(json_parse(row->messages.data, row->messages.size, row->where, out, e));
    } else {
        struct str text = {0};
        *out = json_array();
        tare_status status = question_text(row, &text, e);
        if (!status && json_array_append_new(*out, new_message("user", text.data, text.size))) status = no_memory(e);
        str_free(&text);
        TRY(status);
    }
    if (system && *system && !has_system(*out) &&
        json_array_insert_new(*out, 0, new_message("system", system, (int64_t)strlen(system))))
        return no_memory(e);
    return add_suffix(p, *out, row, e);
}

/* Adds a row's "tools" to its variables: a list, or its JSON text as in some of TRL's data sets. */
static tare_status add_tools(const json_t *tools, json_t *variables, const char *where, struct err *e)
{
    OWNED(json_decrefp) json_t *read = NULL;
    if (json_is_string(tools) && json_parse(json_string_value(tools), (int64_t)json_string_length(tools), where, &read, e))
        return err_prefix(e, "\"tools\"");
    if (read) tools = read;
    if (!json_is_array(tools) && !json_is_null(tools))
        FAIL(e, TARE_E_INVALID, "\"tools\" must be a list of the functions that the chat template describes");
    if (json_object_set(variables, "tools", (json_t *)(uintptr_t)tools)) return no_memory(e);
    return TARE_OK;
}

/* Reads a row's own variables of the template: "chat_template_kwargs" (verl:
 * "apply_chat_template_kwargs") and "tools". *out NULL: none. */
static tare_status row_variables(const struct row *row, json_t **out, struct err *e)
{
    static const char *const NAMES[] = {"chat_template_kwargs", "apply_chat_template_kwargs"};
    OWNED(json_decrefp) json_t *object = NULL;
    *out = NULL;
    if (!row->json.size || (!memmem(row->json.data, (size_t)row->json.size, "\"tools\"", 7) &&
                            !memmem(row->json.data, (size_t)row->json.size, "chat_template_kwargs", 20)))
        return TARE_OK;
    TRY(json_parse(row->json.data, row->json.size, row->where, &object, e));
    if (!(*out = json_object())) return no_memory(e);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        json_t *more = json_object_get(object, NAMES[i]);
        if (!more || json_is_null(more)) continue;
        if (!json_is_object(more) || json_object_get(more, "messages") || json_object_get(more, "add_generation_prompt"))
            FAIL(e, TARE_E_INVALID,
                 "\"%s\" must be an object of the chat template's variables, other than messages and add_generation_prompt",
                 NAMES[i]);
        if (json_object_update(*out, more)) return no_memory(e);
    }
    const json_t *tools = json_object_get(object, "tools");
    return tools ? add_tools(tools, *out, row->where, e) : TARE_OK;
}

tare_status prompts_text(const struct prompts *p, const struct row *row, struct str *out, struct err *e)
{
    if (!p->chat) {
        TRY(question_text(row, out, e));
        return p->config->suffix ? str_add(out, p->config->suffix, -1, e) : TARE_OK;
    }
    OWNED(json_decrefp) json_t *messages = NULL, *variables = NULL;
    if (make_messages(p, row, &messages, e) || row_variables(row, &variables, e) ||
        chat_prompt(p->chat, messages, variables, out, e))
        return err_prefix(e, "%s", row->where);
    return TARE_OK;
}

/* ---------------------------------------------------------------- prompts with a message */

bool prompts_are_chat(const struct prompts *p)
{
    return p->chat != NULL;
}

static tare_status add_message(json_t *messages, struct prompt_message m, struct err *e)
{
    json_t *j = new_message(m.role, m.text.data, m.text.size);
    bool bad = !j;
    if (j && m.name.size) json_put(j, &bad, "name", json_stringn(m.name.data, (size_t)m.name.size));
    if (j && m.call_id.size) json_put(j, &bad, "tool_call_id", json_stringn(m.call_id.data, (size_t)m.call_id.size));
    return json_array_append_new(messages, json_unless(bad, j)) ? no_memory(e) : TARE_OK;
}

static tare_status add_turn(json_t *messages, struct prompt_turn turn, struct err *e)
{
    for (int64_t k = 0; k < turn.n; k++) TRY(add_message(messages, turn.m[k], e));
    return TARE_OK;
}

/* The template's variables of a row, with the tools of a turn. row NULL: none. */
static tare_status turn_variables(const struct row *row, const json_t *tools, json_t **out, struct err *e)
{
    *out = NULL;
    if (row) TRY(row_variables(row, out, e));
    if (!tools) return TARE_OK;
    if (!*out && !(*out = json_object())) return no_memory(e);
    return json_object_set(*out, "tools", (json_t *)(uintptr_t)tools) ? no_memory(e) : TARE_OK;
}

tare_status prompts_text_with(const struct prompts *p, const struct row *row, bool question, struct prompt_turn turn,
                              struct str *out, struct err *e)
{
    OWNED(json_decrefp) json_t *messages = NULL, *variables = NULL;
    const char *system = p->config->system;
    if (question) {
        TRY(make_messages(p, row, &messages, e));
    } else {
        messages = json_array();
        if (system && *system)
            TRY(add_message(messages, (struct prompt_message){.role = "system", .text = {system, (int64_t)strlen(system)}}, e));
    }
    TRY(add_turn(messages, turn, e));
    if (turn_variables(row, turn.tools, &variables, e) || chat_prompt(p->chat, messages, variables, out, e))
        return err_prefix(e, "%s", row->where);
    return TARE_OK;
}

/* Renders a question and an answer that is a tool call. */
static tare_status render_call(const struct prompts *p, struct str *out, struct err *e)
{
    OWNED(json_decrefp)
    json_t *variables =
        json_pack("{s:[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}}}}}]}", "tools", "type", "function", "function", "name", "qzNAME",
                  "description", "x", "parameters", "type", "object", "properties", "qzKEY", "type", "string", "description", "x");
    OWNED(json_decrefp)
    json_t *messages = json_pack("[{s:s, s:s}, {s:s, s:s, s:[{s:s, s:s, s:{s:s, s:{s:s}}}]}]", "role", "user", "content", "x",
                                 "role", "assistant", "content", "", "tool_calls", "id", "qzID00000", "type", "function",
                                 "function", "name", "qzNAME", "arguments", "qzKEY", "qzVALUE");
    if (!messages || !variables) return no_memory(e);
    return chat_render(p->chat, messages, false, variables, out, e);
}

tare_status prompts_call_syntax(const struct prompts *p, enum call_syntax *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    struct err unused = {0};
    *out = CALLS_NONE;
    if (!p->chat) return TARE_OK;
    const tare_status status = render_call(p, &text, &unused);
    if (status == TARE_E_NOMEM) return *e = unused, status;
    if (status) return TARE_OK; /* the template knows no calls */
    /* the schema's name comes first, so the last one is the call's */
    const char *name = NULL, *block = NULL;
    for (const char *next = text.size ? text.data : ""; (next = strstr(next, "qzNAME")); next++) name = next;
    if (!name) return TARE_OK;
    for (const char *next = text.data; (next = strstr(next, "<tool_call>")) && next < name; next++) block = next;
    if (name - text.data >= 10 && !strncmp(name - 10, "<function=", 10))
        *out = CALLS_XML;
    else if (strstr(name, "\"parameters\"") && strstr(name, "qzVALUE"))
        *out = CALLS_LLAMA;
    else if (block && name - block < 40 && strstr(name, "\"arguments\""))
        *out = CALLS_HERMES;
    return TARE_OK;
}

bool prompts_open_thought(const struct prompts *p)
{
    return p->chat && chat_opens_thought(p->chat);
}

/* Number of the line, from 1, that byte n of a text is in. */
static int64_t line_in_text(const struct str *text, int64_t n)
{
    int64_t line = 1;
    for (int64_t i = 0; i < n; i++) line += text->data[i] == '\n';
    return line;
}

tare_status prompts_after_answer(const struct prompts *p, const struct row *row, struct prompt_turn turn, struct str *out,
                                 struct err *e)
{
    static const char ASKED[] = "qzASKEDqz", ANSWERED[] = "qzANSWEREDqz"; /* no template writes these itself */
    OWNED(json_decrefp) json_t *messages = json_array(), *variables = NULL;
    OWNED(str_free) struct str sampled = {0}, written = {0};
    int64_t same = 0;
    TRY(add_message(messages, (struct prompt_message){.role = "user", .text = {ASKED, sizeof ASKED - 1}}, e));
    TRY(turn_variables(row, turn.tools, &variables, e));
    TRY(chat_prompt(p->chat, messages, variables, &sampled, e));
    TRY(str_add(&sampled, ANSWERED, -1, e));
    TRY(add_message(messages, (struct prompt_message){.role = "assistant", .text = {ANSWERED, sizeof ANSWERED - 1}}, e));
    TRY(add_turn(messages, turn, e));
    TRY(chat_prompt(p->chat, messages, variables, &written, e));
    while (same < sampled.size && same < written.size && sampled.data[same] == written.data[same]) same++;
    if (same < sampled.size)
        FAIL(
            e, TARE_E_CONFIG,
            "the chat template writes an earlier turn otherwise than it was sampled, from byte %lld on (line %lld of the conversation); episodes need a template that repeats what came before unchanged",
            (long long)same, (long long)line_in_text(&written, same < written.size ? same : written.size));
    return str_add(out, written.data + same, written.size - same, e);
}

tare_status prompts_encode(const struct prompts *p, const struct row *row, struct token_ids *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(prompts_text(p, row, &text, e));
    if (!p->chat && tokenizer_add_bos(p->tokenizer)) TRY(token_ids_add(out, tokenizer_role_id(p->tokenizer, TOKEN_BOS), e));
    return tokenizer_encode(p->tokenizer, text.data, text.size, out, e);
}

/* ---------------------------------------------------------------- all prompts of a data set */

static bool same_text(tare_text a, tare_text b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

/* Detects prompts that have the same ids although the rows ask different questions: the model then
 * never sees the question. */
struct prompt_comparison {
    uint64_t first; /* hash of the first prompt */
    bool equal, rows_differ;
};

static void compare_prompts(struct prompt_comparison *k, const struct dataset *d, int64_t i, const struct token_ids *ids)
{
    const struct row *a = &d->rows[0], *b = &d->rows[i];
    const uint64_t hash = fs_hash(ids->data, ids->n * (int64_t)sizeof *ids->data, 0);
    if (!i) *k = (struct prompt_comparison){.first = hash, .equal = true};
    k->equal = k->equal && hash == k->first;
    k->rows_differ = k->rows_differ || !same_text(a->question, b->question) || !same_text(a->messages, b->messages);
}

static tare_status warn_equal_prompts(const struct prompts *p, const struct dataset *d, struct err *e)
{
    OWNED(str_free) struct str why = {0}, names = {0};
    TRY(chat_blame(p->chat, &why, e));
    for (int k = 0; CHAT_VARIABLES[k]; k++) TRY(str_addf(&names, e, "%s%s", k ? ", " : "", CHAT_VARIABLES[k]));
    log_warn(
        "%s: all %lld prompts are the same text, so the model does not see the question: the chat template %s; a template's variables are %s (show prompts with `tare data show`)",
        d->name, (long long)d->n, why.data, names.data);
    return TARE_OK;
}

/* Warns about rows that have a system message, on which data.system has no effect. */
static tare_status warn_own_system(const struct prompts *p, const struct dataset *d, struct err *e)
{
    int64_t own = 0;
    for (int64_t i = 0; p->config->system && *p->config->system && i < d->n; i++) {
        OWNED(json_decrefp) json_t *messages = NULL;
        const tare_text text = d->rows[i].messages;
        if (!text.data) continue;
        TRY(json_parse(text.data, text.size, d->rows[i].where, &messages, e));
        own += has_system(messages);
    }
    if (own)
        log_warn("%s: %lld of %lld rows have a system message of their own, which data.system does not replace", d->name,
                 (long long)own, (long long)d->n);
    return TARE_OK;
}

/* Refuses ids for which the model has no embedding: the tokenizer belongs to another model. */
static tare_status check_ids(const struct row *row, const struct token_ids *ids, int64_t vocab, struct err *e)
{
    for (int64_t k = 0; vocab && k < ids->n; k++)
        if (ids->data[k] >= vocab)
            FAIL(
                e, TARE_E_RANGE,
                "%s: token %lld of the prompt is %d, but the model's ids are 0 to %lld; check that tokenizer.json and config.json belong to the same model",
                row->where, (long long)k, ids->data[k], (long long)vocab - 1);
    return TARE_OK;
}

tare_status prompts_check(const struct prompts *p, const struct dataset *d, const struct prompt_limits *limits, uint64_t *hash,
                          struct err *e)
{
    OWNED(token_ids_free) struct token_ids ids = {0};
    struct prompt_comparison k = {0};
    for (int64_t i = 0; i < d->n; i++) {
        const struct row *row = &d->rows[i];
        ids.n = 0;
        TRY(prompts_encode(p, row, &ids, e));
        if (ids.n > limits->tokens)
            FAIL(
                e, TARE_E_RANGE,
                "%s: the prompt has %lld tokens, but at most %lld are allowed (context %lld, rollout.max_prompt_tokens %lld); shorten or drop the row",
                row->where, (long long)ids.n, (long long)limits->tokens, (long long)limits->context, (long long)limits->most);
        TRY(check_ids(row, &ids, limits->vocab, e));
        compare_prompts(&k, d, i, &ids);
        if (hash) *hash = fs_hash(ids.data, ids.n * (int64_t)sizeof *ids.data, *hash);
        if (hash) *hash = fs_hash(row->answer.data, row->answer.size, *hash);
    }
    if (!limits->warns || !p->chat) return TARE_OK;
    TRY(warn_own_system(p, d, e));
    return k.equal && k.rows_differ ? warn_equal_prompts(p, d, e) : TARE_OK;
}
