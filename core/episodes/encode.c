#define _GNU_SOURCE /* memmem */
#include "episodes/encode.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

static const char *const ROLES[] = {[TARE_ROLE_SYSTEM] = "system", [TARE_ROLE_USER] = "user", [TARE_ROLE_TOOL] = "tool"};

static tare_status find_special(struct encode *x, struct err *e)
{
    const int64_t size = tokenizer_size(x->tokenizer);
    TRY(arena_new(&x->arena, &x->special, size, e));
    for (int32_t id = 0; id < size; id++)
        if (tokenizer_is_special(x->tokenizer, id) && tokenizer_bytes(x->tokenizer, id).size)
            x->special[x->n_special++] = tokenizer_bytes(x->tokenizer, id);
    return TARE_OK;
}

tare_status encode_begin(struct encode *x, const struct prompts *p, const struct tokenizer *t,
                         const struct environment_config *config, struct err *e)
{
    *x = (struct encode){.prompts = p, .tokenizer = t, .config = config, .name = "", .syntax = config->calls};
    arena_init(&x->arena, "environment's texts");
    TRY(find_special(x, e));
    if (x->syntax == CALLS_AUTO) TRY(prompts_call_syntax(p, &x->syntax, e));
    if (!prompts_are_chat(p)) return TARE_OK;
    OWNED(str_free) struct str unused = {0};
    const struct prompt_message m = {.role = "user", .text = {"x", 1}};
    x->in_thought = prompts_open_thought(p);
    return prompts_after_answer(p, NULL, (struct prompt_turn){.m = &m, .n = 1}, &unused, e);
}

void encode_end(struct encode *x)
{
    arena_free(&x->arena);
}

/* ---------------------------------------------------------------- texts */

/* Returns where the first text of a special token begins, or n. */
static int64_t special_begin(const struct encode *x, tare_text text)
{
    int64_t first = text.size;
    for (int64_t k = 0; k < x->n_special; k++) {
        const char *at = memmem(text.data, (size_t)text.size, x->special[k].data, (size_t)x->special[k].size);
        if (at && at - text.data < first) first = at - text.data;
    }
    return first;
}

/* Appends the ids of what the environment said. A special token's text is encoded in two parts, as
 * any other text. */
static tare_status encode_said(const struct encode *x, tare_text said, struct token_ids *ids, struct err *e)
{
    while (said.size) {
        int64_t part = special_begin(x, said);
        if (part < said.size)
            for (part++; part < said.size && ((unsigned char)said.data[part] & 0xc0) == 0x80;)
                part++; /* with its first character */
        TRY(tokenizer_encode(x->tokenizer, said.data, part, ids, e));
        said.data += part;
        said.size -= part;
    }
    return TARE_OK;
}

static tare_text all_said(const struct plugin_episode *at)
{
    return (tare_text){at->said.data ? at->said.data : "", at->said.size};
}

/* ---------------------------------------------------------------- messages */

/* Messages for the template. What must not be read as special tokens is rendered as a mark. */
struct rendered {
    struct prompt_message *m; /* [n] */
    tare_text *said;          /* [n] size 0: not marked */
    char (*mark)[24];
    int64_t n;
    struct arena arena;
};

static void rendered_free(struct rendered *r)
{
    arena_free(&r->arena);
}

static tare_text name_part(const struct plugin_episode *at, int64_t begin, int64_t end)
{
    return (tare_text){at->names.data ? at->names.data + begin : "", end - begin};
}

static tare_status messages_of(const struct encode *x, const struct plugin_episode *at, struct rendered *out, struct err *e)
{
    *out = (struct rendered){.n = at->n_messages};
    arena_init(&out->arena, "messages");
    TRY(arena_new(&out->arena, &out->m, out->n + 1, e));
    TRY(arena_new(&out->arena, &out->said, out->n + 1, e));
    TRY(arena_new(&out->arena, &out->mark, out->n + 1, e));
    for (int64_t k = 0; k < out->n; k++) {
        const struct episode_message *from = &at->message[k];
        const tare_text said = {all_said(at).data + from->begin, from->end - from->begin};
        out->m[k] = (struct prompt_message){ROLES[from->role], said, name_part(at, from->name, from->call_id),
                                            name_part(at, from->call_id, from->id_end)};
        if (special_begin(x, said) == said.size) continue;
        const int n = snprintf(out->mark[k], sizeof out->mark[k], "qzSAID%lldqz", (long long)k);
        out->m[k].text = (tare_text){out->mark[k], n};
        out->said[k] = said;
    }
    return TARE_OK;
}

/* Appends the ids of a rendered text, whose marks stand for what was said. */
static tare_status encode_rendered(const struct encode *x, tare_text text, const struct rendered *r, struct token_ids *ids,
                                   struct err *e)
{
    for (int64_t k = 0; k < r->n; k++) {
        const tare_text mark = r->m[k].text;
        const char *at = r->said[k].size ? memmem(text.data, (size_t)text.size, mark.data, (size_t)mark.size) : NULL;
        if (!at) continue;
        TRY(tokenizer_encode(x->tokenizer, text.data, at - text.data, ids, e));
        TRY(encode_said(x, r->said[k], ids, e));
        text.size -= at + mark.size - text.data;
        text.data = at + mark.size;
    }
    return tokenizer_encode(x->tokenizer, text.data, text.size, ids, e);
}

static struct prompt_turn turn_of(const struct plugin_episode *at, const struct rendered *r)
{
    return (struct prompt_turn){r->m, r->n, at->tool_list};
}

/* ---------------------------------------------------------------- turns */

tare_status encode_observation(const struct encode *x, const struct plugin_episode *at, const struct row *row, int32_t stop,
                               struct token_ids *ids, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    OWNED(rendered_free) struct rendered r = {0};
    if (!prompts_are_chat(x->prompts)) return encode_said(x, all_said(at), ids, e);
    if (!at->n_messages)
        FAIL(e, TARE_E_PLUGIN, "environment %s: an observation without a message; in a chat it must be messages", x->name);
    TRY(messages_of(x, at, &r, e));
    TRY(prompts_after_answer(x->prompts, row, turn_of(at, &r), &text, e));
    /* the act ended with the template's token, or with another one */
    const tare_text end = tokenizer_bytes(x->tokenizer, stop);
    const int64_t drawn = end.size <= text.size && !memcmp(text.data, end.data, (size_t)end.size) ? end.size : 0;
    return encode_rendered(x, (tare_text){text.data + drawn, text.size - drawn}, &r, ids, e);
}

tare_status encode_opening(const struct encode *x, const struct plugin_episode *at, const struct row *row, struct token_ids *ids,
                           struct str *text, struct err *e)
{
    OWNED(rendered_free) struct rendered r = {0};
    const bool chat = prompts_are_chat(x->prompts);
    if (chat && (at->n_messages || at->tool_list)) {
        TRY(messages_of(x, at, &r, e));
        TRY(prompts_text_with(x->prompts, row, x->config->question || !at->n_messages, turn_of(at, &r), text, e));
        return encode_rendered(x, (tare_text){text->data, text->size}, &r, ids, e);
    }
    if (!at->n_messages || x->config->question) {
        TRY(prompts_encode(x->prompts, row, ids, e));
        TRY(prompts_text(x->prompts, row, text, e));
    }
    TRY(str_add(text, all_said(at).data, at->said.size, e));
    return encode_said(x, all_said(at), ids, e);
}

tare_status encode_check_tools(const struct encode *x, const struct plugin_episode *at, struct err *e)
{
    OWNED(str_free) struct str with = {0}, without = {0};
    const struct prompt_message m = {.role = "user", .text = {"x", 1}};
    if (x->syntax == CALLS_NONE && x->config->calls == CALLS_AUTO)
        FAIL(e, TARE_E_CONFIG,
             "environment %s offers tools, but %s; set environment.calls to hermes, llama or xml, or to none if its acts are texts",
             x->name,
             prompts_are_chat(x->prompts) ? "the chat template writes no tool calls in a known syntax" : "the prompts are plain");
    if (!prompts_are_chat(x->prompts)) return TARE_OK;
    const struct row none = {.where = "a trial prompt"};
    TRY(prompts_text_with(x->prompts, &none, false, (struct prompt_turn){&m, 1, at->tool_list}, &with, e));
    TRY(prompts_text_with(x->prompts, &none, false, (struct prompt_turn){&m, 1, NULL}, &without, e));
    if (with.size == without.size && !memcmp(with.data, without.data, (size_t)with.size))
        log_warn("environment %s offers tools, but the chat template does not show them to the model", x->name);
    return TARE_OK;
}
