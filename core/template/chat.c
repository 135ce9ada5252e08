#include "template/chat.h"

#include "base/arena.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "template/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char *const CHAT_VARIABLES[] = {
    "messages", "add_generation_prompt", "bos_token", "eos_token", "pad_token", "unk_token", "tools", "documents", NULL};

struct chat {
    struct template *template;
    json_t *variables; /* bos_token, eos_token, ... */
};

/* Reads chat_template of tokenizer_config.json: a string, or a list of {"name","template"} from
 * which "default" is used. */
static const json_t *template_of(const json_t *config)
{
    const json_t *t = json_object_get(config, "chat_template"), *entry;
    size_t i;
    if (json_is_string(t)) return t;
    json_array_foreach(t, i, entry)
    {
        if (!strcmp(json_text_or(entry, "name", ""), "default")) return json_object_get(entry, "template");
    }
    return NULL;
}

static tare_status set_variables(struct chat *c, const json_t *config, struct err *e)
{
    static const char *const names[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    c->variables = json_object();
    bool failed = !c->variables;
    for (int k = 0; k < 4; k++) {
        const json_t *v = json_object_get(config, names[k]);
        if (json_is_object(v)) v = json_object_get(v, "content");
        if (json_is_string(v))
            failed |= json_object_set_new(c->variables, names[k], json_stringn(json_string_value(v), json_string_length(v))) != 0;
    }
    failed |=
        json_object_set_new(c->variables, "tools", json_null()) || json_object_set_new(c->variables, "documents", json_null());
    if (failed) FAIL(e, TARE_E_NOMEM, "no memory for the variables of a chat template");
    return TARE_OK;
}

static tare_status read_template(struct chat *c, const char *folder, const char *file, const json_t *config,
                                 const char *config_path, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    if (file && *file)
        snprintf(path, sizeof path, "%s", file);
    else
        TRY(fs_join(path, folder, "chat_template.jinja", e));
    if ((file && *file) || fs_exists(path)) {
        TRY(fs_read_written(path, &text, e));
        return template_parse(text.data, text.size, path, &c->template, e);
    }
    const json_t *t = template_of(config);
    if (!json_is_string(t))
        FAIL(
            e, TARE_E_NOT_FOUND,
            "%s has no chat template (neither chat_template.jinja nor chat_template in tokenizer_config.json); set one with data.chat_template or template=FILE, or set data.prompt = plain",
            folder);
    snprintf(path, sizeof path, "%.4000s (chat_template)", config_path);
    return template_parse(json_string_value(t), (int64_t)json_string_length(t), path, &c->template, e);
}

void chat_free(struct chat *c)
{
    if (!c) return;
    template_free(c->template);
    json_decref(c->variables);
    mem_free(c);
}

static void chat_free_at(struct chat **c)
{
    chat_free(*c);
}

tare_status chat_load(const char *folder, const char *file, struct chat **out, struct err *e)
{
    char config_path[FS_PATH];
    OWNED(json_decrefp) json_t *config = NULL;
    OWNED(chat_free_at) struct chat *c = NULL;
    *out = NULL;
    TRY(fs_join(config_path, folder, "tokenizer_config.json", e));
    TRY(mem_new(sizeof *c, (void **)&c, e));
    if (fs_exists(config_path)) TRY(json_read_wide(config_path, &config, e));
    TRY(set_variables(c, config, e));
    TRY(read_template(c, folder, file, config, config_path, e));
    template_set_now(c->template, (int64_t)time(NULL));
    *out = c;
    c = NULL;
    return TARE_OK;
}

/* Returns the days from 1970-01-01 to a date of the Gregorian calendar (years from 1970). */
static int64_t days_to(int64_t year, int64_t month, int64_t day)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const int64_t leaps = (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 - 477;
    const bool leap = (year % 4 == 0 && year % 100) || year % 400 == 0;
    return 365 * (year - 1970) + leaps + before[month - 1] + (leap && month > 2) + day - 1;
}

tare_status chat_set_date(struct chat *c, const char *date, struct err *e)
{
    int year, month, day, used = 0;
    static const int length[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (sscanf(date, "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 || used != 10 || date[10] || year < 1970 || month < 1 ||
        month > 12 || day < 1 || day > length[month - 1])
        FAIL(e, TARE_E_CONFIG, "data.date = %s: must be written as 2026-11-22", date);
    template_set_now(c->template, 86400 * days_to(year, month, day));
    return TARE_OK;
}

tare_status chat_render(const struct chat *c, const json_t *messages, bool add_generation_prompt, const json_t *extra,
                        struct str *out, struct err *e)
{
    /* a shallow copy */
    OWNED(json_decrefp) json_t *variables = json_copy(c->variables);
    /* variables are missing if json_object_set ran out of memory */
    bool failed = json_object_size(variables) != json_object_size(c->variables);
    failed = failed || json_object_set(variables, "messages", (json_t *)messages);
    failed = failed || json_object_set_new(variables, "add_generation_prompt", json_boolean(add_generation_prompt));
    if (!failed && extra) failed = json_object_update(variables, (json_t *)extra) != 0;
    if (failed)
        FAIL(e, TARE_E_NOMEM, "no memory for the variables of a chat template");
    else
        TRY(template_render(c->template, variables, out, e));
    return TARE_OK;
}

/* ---------------------------------------------------------------- continued messages */

static tare_text strip_text(tare_text t, bool right)
{
    const char *p = t.data, *end = t.data + t.size;
    while (p < end) {
        const unsigned char *q = (const unsigned char *)p;
        if (!value_is_python_space(utf8_next(&q))) break;
        p = (const char *)q;
    }
    while (right && end > p) {
        const char *last = end - 1;
        while ((*last & 0xC0) == 0x80) last--;
        const unsigned char *q = (const unsigned char *)last;
        if (!value_is_python_space(utf8_next(&q))) break;
        end = last;
    }
    return (tare_text){p, end - p};
}

/* Returns the text of a message, or its last part with a text; size 0: none. */
static tare_text content_of(const json_t *message)
{
    const json_t *content = json_object_get(message, "content"), *text = content;
    for (size_t i = json_array_size(content); i-- > 0;) {
        text = json_object_get(json_array_get(content, i), "text");
        if (text) break;
    }
    return json_is_string(text) ? (tare_text){json_string_value(text), (int64_t)json_string_length(text)} : (tare_text){"", 0};
}

tare_status chat_continue(const struct chat *c, const json_t *messages, const json_t *extra, struct str *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    const tare_text content = content_of(json_array_get(messages, json_array_size(messages) - 1)), bare = strip_text(content, true),
                    left = strip_text(content, false);
    if (!bare.size)
        FAIL(
            e, TARE_E_INVALID,
            "the last message is the assistant's and has no text that an answer could continue; remove it, or give it \"content\"");
    TRY(chat_render(c, messages, false, extra, &text, e));
    int64_t at = text.size - bare.size;
    while (at >= 0 && memcmp(text.data + at, bare.data, (size_t)bare.size)) at--;
    if (at < 0)
        FAIL(
            e, TARE_E_INVALID,
            "%s leaves out or changes the last message, which is the assistant's, so no answer can continue it; remove that message",
            c->template->where);
    const bool whole =
        left.data == content.data && at + left.size <= text.size && !memcmp(text.data + at, left.data, (size_t)left.size);
    return str_add(out, text.data, at + (whole ? left.size : bare.size), e);
}

tare_status chat_prompt(const struct chat *c, const json_t *messages, const json_t *extra, struct str *out, struct err *e)
{
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const bool assistant = json_array_size(messages) && !strcmp(json_text_or(last, "role", ""), "assistant");
    return assistant ? chat_continue(c, messages, extra, out, e) : chat_render(c, messages, true, extra, out, e);
}

/* As in plugins/verifiers/common/text.c, which cannot include this file. */
const struct chat_thought CHAT_THOUGHTS[] = {{"<think>", "</think>"},           {"<thinking>", "</thinking>"},
                                             {"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"},
                                             {"◁think▷", "◁/think▷"},           {NULL, NULL}};

bool chat_opens_thought(const struct chat *c)
{
    OWNED(json_decrefp) json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "1 + 1 = ?");
    OWNED(str_free) struct str text = {0};
    struct err refused = {0};
    if (!messages || chat_prompt(c, messages, NULL, &text, &refused)) return false;
    const tare_text prompt = strip_text((tare_text){text.data, text.size}, true);
    for (const struct chat_thought *t = CHAT_THOUGHTS; t->open; t++) {
        const int64_t n = (int64_t)strlen(t->open);
        if (prompt.size >= n && !memcmp(prompt.data + prompt.size - n, t->open, (size_t)n)) return true;
    }
    return false;
}

tare_status chat_set_variables(struct chat *c, const json_t *variables, const char *where, struct err *e)
{
    static const char *const TAKEN[] = {"messages", "add_generation_prompt"};
    if (!json_is_object(variables))
        FAIL(e, TARE_E_CONFIG, "%s: must be a JSON object of variables, such as {\"enable_thinking\": false}", where);
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++)
        if (json_object_get(variables, TAKEN[i]))
            FAIL(e, TARE_E_CONFIG, "%s: \"%s\" is set for every prompt and cannot be replaced; remove it", where, TAKEN[i]);
    if (json_object_update(c->variables, (json_t *)(uintptr_t)variables))
        FAIL(e, TARE_E_NOMEM, "no memory for the variables of a chat template");
    return TARE_OK;
}

tare_status chat_set_kwargs(struct chat *c, const char *text, struct err *e)
{
    OWNED(json_decrefp) json_t *variables = NULL;
    if (!text || !*text) return TARE_OK;
    TRY(err_as_config(json_parse(text, (int64_t)strlen(text), "data.chat_template_kwargs", &variables, e), e));
    return chat_set_variables(c, variables, "data.chat_template_kwargs", e);
}

tare_status chat_blame(const struct chat *c, struct str *out, struct err *e)
{
    OWNED(str_free) struct str unknown = {0};
    TRY(template_unknown(c->template, CHAT_VARIABLES, &unknown, e));
    if (unknown.size) return str_addf(out, e, "%s reads %s (not defined)", c->template->where, unknown.data);
    return str_addf(out, e, "%s does not write them", c->template->where);
}
