#define _GNU_SOURCE /* memmem */
#include "episodes/calls.h"

#include "template/chat.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char BLOCK[] = "<tool_call>", BLOCK_END[] = "</tool_call>";
static const char FUNCTION[] = "<function=", FUNCTION_END[] = "</function>", VALUE[] = "<parameter=", VALUE_END[] = "</parameter>";

/* A text that is read from front to back. */
struct reader {
    const char *at, *end;
};

struct found {
    struct arena *arena;
    const json_t *tools;
    const tare_call **call; /* [n] */
    int64_t n, capacity, n_unparsed;
    struct err *e;
};

static const char *find(struct reader r, const char *text)
{
    return memmem(r.at, (size_t)(r.end - r.at), text, strlen(text));
}

static bool begins_with(struct reader r, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(r.end - r.at) >= n && !memcmp(r.at, text, n);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct reader strip(struct reader r)
{
    while (r.at < r.end && is_blank(*r.at)) r.at++;
    while (r.at < r.end && is_blank(r.end[-1])) r.end--;
    return r;
}

/* Reads JSON as Python does: the last of equal keys counts. Returns NULL for invalid JSON. */
static json_t *read_json(struct reader r, size_t flags)
{
    return json_loadb(r.at, (size_t)(r.end - r.at), JSON_ALLOW_NUL | JSON_DECODE_ANY | flags, NULL);
}

static tare_status add_call(struct found *f, tare_text name, tare_text arguments)
{
    tare_call *call;
    char *copy[2];
    if (f->n == f->capacity) {
        const tare_call **more;
        f->capacity = 2 * f->n + 4;
        TRY(arena_new(f->arena, &more, f->capacity, f->e));
        if (f->n) memcpy(more, f->call, (size_t)f->n * sizeof *more);
        f->call = more;
    }
    TRY(arena_new(f->arena, &call, 1, f->e));
    TRY(arena_strdup(f->arena, name.data, name.size, &copy[0], f->e));
    TRY(arena_strdup(f->arena, arguments.data, arguments.size, &copy[1], f->e));
    *call = (tare_call){.struct_size = sizeof *call, .name = {copy[0], name.size}, .arguments = {copy[1], arguments.size}};
    f->call[f->n++] = call;
    return TARE_OK;
}

/* ---------------------------------------------------------------- JSON */

/* Skips a string, an object, a list, or a number or word of valid JSON. */
static void skip_value(struct reader *r)
{
    int depth = 0;
    do {
        if (*r->at == '"') {
            for (r->at++; r->at < r->end && *r->at != '"'; r->at++) r->at += *r->at == '\\';
        } else if (*r->at == '{' || *r->at == '[') {
            depth++;
        } else if (*r->at == '}' || *r->at == ']') {
            depth--;
        } else if (!depth) {
            while (r->at < r->end && !strchr(",}] \t\r\n", *r->at)) r->at++;
            return;
        }
        r->at++;
    } while (depth && r->at < r->end);
}

/* The text of the last member of that name of an object, which is valid JSON; size 0: none. It keeps
 * the digits that the model wrote. */
static tare_text member_text(struct reader object, const char *name)
{
    struct reader r = {object.at + 1, object.end};
    tare_text out = {0};
    for (;;) {
        while (r.at < r.end && (is_blank(*r.at) || *r.at == ',')) r.at++;
        if (r.at >= r.end || *r.at != '"') return out;
        const char *key = r.at + 1;
        skip_value(&r);
        const bool same = (size_t)(r.at - 1 - key) == strlen(name) && !memcmp(key, name, strlen(name));
        while (r.at < r.end && (is_blank(*r.at) || *r.at == ':')) r.at++;
        const char *value = r.at;
        skip_value(&r);
        if (same) out = (tare_text){value, r.at - value};
    }
}

/* Adds the call that an object describes. arguments: names of their member, the first that it has. */
static tare_status add_object(struct found *f, struct reader text, const char *const arguments[2])
{
    OWNED(json_decrefp) json_t *object = NULL;
    text = strip(text);
    if (text.at < text.end && *text.at == '{') object = read_json(text, JSON_DECODE_INT_AS_REAL);
    const json_t *name = json_object_get(object, "name"), *given = NULL;
    int which = 0;
    for (int k = 0; k < 2 && arguments[k] && !given; k++)
        if ((given = json_object_get(object, arguments[k]))) which = k;
    if (!json_is_string(name) || !json_string_length(name) || (given && !json_is_object(given) && !json_is_null(given))) {
        f->n_unparsed++;
        return TARE_OK;
    }
    const tare_text called = {json_string_value(name), (int64_t)json_string_length(name)};
    OWNED(str_free) struct str printed = {0};
    if (!json_is_object(given)) return add_call(f, called, (tare_text){"{}", 2});
    const tare_text written = member_text(text, arguments[which]);
    if (written.size) return add_call(f, called, written);
    TRY(json_print(given, &printed, f->e)); /* its key is written with escapes */
    return add_call(f, called, (tare_text){printed.data, printed.size});
}

static tare_status read_hermes(struct found *f, struct reader r)
{
    static const char *const ARGUMENTS[2] = {"arguments", NULL};
    while ((r.at = find(r, BLOCK))) {
        r.at += sizeof BLOCK - 1;
        const char *end = find(r, BLOCK_END);
        if (!end) {
            f->n_unparsed++;
            return TARE_OK;
        }
        TRY(add_object(f, (struct reader){r.at, end}, ARGUMENTS));
        r.at = end;
    }
    return TARE_OK;
}

static tare_status read_llama(struct found *f, struct reader r)
{
    static const char *const ARGUMENTS[2] = {"parameters", "arguments"};
    static const char *const BEFORE[] = {"<|start_header_id|>assistant<|end_header_id|>", "<|python_tag|>"};
    for (size_t k = 0; k < sizeof BEFORE / sizeof *BEFORE; k++) {
        r = strip(r);
        if (begins_with(r, BEFORE[k])) r.at += strlen(BEFORE[k]);
    }
    r = strip(r);
    if (r.at < r.end && *r.at == '{') return add_object(f, r, ARGUMENTS);
    f->n_unparsed += find(r, "\"name\"") && (find(r, "\"parameters\"") || find(r, "\"arguments\""));
    return TARE_OK;
}

/* ---------------------------------------------------------------- xml */

/* The type that the schemas give a parameter, or NULL. */
static const char *type_of(const json_t *tools, tare_text function, tare_text parameter)
{
    size_t i;
    const json_t *tool;
    json_array_foreach(tools, i, tool)
    {
        const json_t *f = json_object_get(tool, "function");
        if (!f) f = tool;
        const char *name = json_text_or(f, "name", "");
        if ((int64_t)strlen(name) != function.size || memcmp(name, function.data, strlen(name)) != 0) continue;
        const json_t *properties = json_object_get(json_object_get(f, "parameters"), "properties");
        const json_t *type = json_object_get(json_object_getn(properties, parameter.data, (size_t)parameter.size), "type");
        return json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
    }
    return NULL;
}

static bool is_word(struct reader r, const char *word)
{
    return (size_t)(r.end - r.at) == strlen(word) && !strncasecmp(r.at, word, strlen(word));
}

/* Converts a value to its type. A value of another type stays a text, for the tool to refuse. */
static json_t *typed_value(struct reader r, const char *type)
{
    struct reader bare = strip(r);
    json_t *j = NULL;
    if (type && strcmp(type, "string") != 0) {
        if (is_word(bare, "null") || is_word(bare, "none")) return json_null();
        if (!strcmp(type, "boolean")) {
            if (is_word(bare, "true") || is_word(bare, "false")) return json_boolean(tolower((unsigned char)*bare.at) == 't');
        } else {
            if (bare.at < bare.end && *bare.at == '+') bare.at++;
            j = read_json(bare, 0);
        }
        if (j) return j;
    }
    r.at += begins_with(r, "\r\n") ? 2 : begins_with(r, "\n");
    if (r.at < r.end && r.end[-1] == '\n') r.end--;
    if (r.at < r.end && r.end[-1] == '\r') r.end--;
    return json_stringn(r.at, (size_t)(r.end - r.at));
}

/* Reads NAME> behind <function= or <parameter=. */
static bool read_name(struct reader *r, tare_text *out)
{
    const char *end = memchr(r->at, '>', (size_t)(r->end - r->at));
    if (!end || end == r->at) return false;
    *out = (tare_text){r->at, end - r->at};
    r->at = end + 1;
    return true;
}

/* Reads the values of a function into arguments, and moves behind its end. */
static bool read_values(const struct found *f, tare_text function, struct reader *r, json_t *arguments)
{
    for (;;) {
        const char *value = find(*r, VALUE), *end = find(*r, FUNCTION_END), *block = find(*r, BLOCK_END);
        if (block && (!end || block < end)) end = block; /* </function> is missing */
        if (!value || (end && end < value)) {
            if (end) r->at = end == block ? end : end + sizeof FUNCTION_END - 1;
            return end != NULL;
        }
        tare_text key;
        r->at = value + sizeof VALUE - 1;
        if (!read_name(r, &key) || !(end = find(*r, VALUE_END))) return false;
        json_t *j = typed_value((struct reader){r->at, end}, type_of(f->tools, function, key));
        if (!j || json_object_setn_new(arguments, key.data, (size_t)key.size, j)) return false;
        r->at = end + sizeof VALUE_END - 1;
    }
}

static tare_status read_xml(struct found *f, struct reader r)
{
    while ((r.at = find(r, BLOCK))) {
        OWNED(json_decrefp) json_t *arguments = json_object();
        OWNED(str_free) struct str printed = {0};
        tare_text name;
        const struct reader block = {r.at + sizeof BLOCK - 1, r.end};
        r.at = block.at;
        const char *next = find(block, BLOCK), *function = find(block, FUNCTION);
        bool ok = function && (!next || function < next);
        if (ok) {
            r.at = function + sizeof FUNCTION - 1;
            ok = read_name(&r, &name) && read_values(f, name, &r, arguments);
        }
        if (!ok) {
            f->n_unparsed++;
            continue;
        }
        TRY(json_print(arguments, &printed, f->e));
        TRY(add_call(f, name, (tare_text){printed.data, printed.size}));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- acts */

/* Returns the first tag of a thought in a text, or NULL. opens: it is an opening one; only closing
 * ones are looked for within a thought. *end: the text behind it. */
static const char *next_tag(struct reader r, bool within, bool *opens, const char **end)
{
    const char *first = NULL;
    for (const struct chat_thought *t = CHAT_THOUGHTS; t->open; t++)
        for (int k = within; k < 2; k++) {
            const char *tag = k ? t->close : t->open, *at = find(r, tag);
            if (!at || (first && at >= first)) continue;
            first = at;
            *opens = !k;
            *end = at + strlen(tag);
        }
    return first;
}

/* Returns the text after the last thought. *within: the text ends inside a thought. */
static struct reader after_thought(struct reader r, bool open, bool *within)
{
    while (next_tag(r, open, &open, &r.at)) {
    }
    *within = open;
    return r;
}

tare_status calls_read(struct call_reader by, tare_text act, struct arena *a, struct calls *out, struct err *e)
{
    struct found f = {.arena = a, .tools = by.tools, .e = e};
    const char *text = act.size ? act.data : "";
    bool within;
    struct reader r = {text, text + act.size};
    const struct reader said = after_thought(r, by.in_thought, &within);
    if (!within) r = said;
    if (by.syntax == CALLS_HERMES) TRY(read_hermes(&f, r));
    if (by.syntax == CALLS_LLAMA) TRY(read_llama(&f, r));
    if (by.syntax == CALLS_XML) TRY(read_xml(&f, r));
    if (within) f = (struct found){.n_unparsed = f.n + f.n_unparsed}; /* a thought that does not end calls nothing */
    *out = (struct calls){f.call, f.n, f.n_unparsed};
    return TARE_OK;
}
