/* Tool calls in acts, compared with what TRL, verl and renderers read from the same texts
 * (data/episodes/tool_calls.jsonl of the reference data). Where they agree, so must we, but for the
 * texts in OTHERS. */
#include "base/fs.h"
#include "check.h"
#include "episodes/calls.h"
#include "template/chat.h"

#include <string.h>

static struct err e;
static struct arena arena;

/* Texts on which the peers disagree, or agree on what is no JSON object: our reading, and why. */
static const struct {
    const char *id, *calls; /* a JSON list of [name, arguments] */
    int64_t n_unparsed;
} OTHERS[] = {
    {"hermes/nan", "[]", 1},
    {"hermes/good_then_broken", "[[\"mul\",{\"a\":6,\"b\":7}]]", 1},
    {"hermes/args_null", "[[\"look\",{}]]", 0},
    {"hermes/args_number", "[]", 1},
    {"hermes/no_args", "[[\"look\",{}]]", 0},
    {"hermes/parameters_key", "[[\"mul\",{}]]", 0},
    {"hermes/name_empty", "[]", 1},
    {"hermes/name_number", "[]", 1},
    {"hermes/nbsp", "[]", 1},
    {"hermes/think_unclosed", "[]", 1},
    {"llama/no_end_token", "[[\"mul\",{\"a\":6,\"b\":7}]]", 0},
    {"llama/eom", "[[\"mul\",{\"a\":6,\"b\":7}]]", 0},
    {"llama/text_before", "[]", 1},
    {"llama/text_before_newline", "[]", 1},
    {"llama/newline_after", "[[\"mul\",{\"a\":6,\"b\":7}]]", 0},
    {"llama/arguments_key", "[[\"mul\",{\"a\":6,\"b\":7}]]", 0},
    {"llama/type_last", "[[\"mul\",{\"a\":6,\"b\":7}]]", 0},
    {"llama/many_spaces", "[[\"mul\",{\"a\":6}]]", 0},
    {"llama/params_string", "[]", 1},
    {"llama/no_params", "[[\"look\",{}]]", 0},
    {"llama/name_number", "[]", 1},
    {"llama/args_as_strings", "[[\"mul\",{\"a\":\"6\",\"b\":\"7\"}]]", 0},
    {"xml/spaces_value", "[[\"look\",{\"key\":\"  a b  \"}]]", 0},
    {"xml/python_dict_value", "[[\"put\",{\"key\":\"k\",\"value\":\"{'a': True, 'b': None}\"}]]", 0},
    {"xml/null_int", "[[\"mul\",{\"a\":null,\"b\":null}]]", 0},
    {"xml/number_bad", "[[\"put\",{\"key\":\"k\",\"n\":\"abc\"}]]", 0},
    {"xml/number_nan", "[[\"put\",{\"key\":\"k\",\"n\":\"nan\"}]]", 0},
    {"xml/int_spaces", "[[\"mul\",{\"a\":6,\"b\":7}]]", 0},
    {"xml/unknown_tool", "[[\"div\",{\"a\":\"6\",\"flag\":\"true\"}]]", 0},
    {"xml/no_close_param", "[[\"mul\",{\"a\":\"6\\n<parameter=b>\\n7\"}]]", 0},
    {"xml/no_close_call", "[[\"mul\",{\"a\":6}]]", 0},
    {"xml/cut_in_value", "[]", 1},
    {"xml/name_spaces", "[[\" mul \",{\"a\":\"6\"}]]", 0},
    {"xml/name_quotes", "[[\"\\\"mul\\\"\",{\"a\":\"6\"}]]", 0},
    {"xml/param_spaces", "[[\"mul\",{\" a \":\"6\"}]]", 0},
    {"xml/empty_name", "[]", 1},
    {"xml/close_tag_in_value", "[[\"look\",{\"key\":\"a \"}]]", 0},
    {"xml/call_close_in_value", "[[\"look\",{\"key\":\"a </tool_call> b\"}]]", 0},
    {"xml/crlf", "[[\"look\",{\"key\":\"k1\"}]]", 0},
    {"xml/text_before_tags_as_letters", "[[\"mul\",{\"a\":6,\"b\":7}]]", 0},
    {"xml/two_tags_as_letters", "[[\"mul\",{\"a\":6,\"b\":7}],[\"look\",{\"key\":\"k1\"}]]", 0},
    {"xml-think/text_before", "[]", 1},
    {"xml-think/two", "[]", 2},
    {"xml-think/think_unclosed", "[]", 1},
};

static enum call_syntax syntax_of(const char *family)
{
    return !strcmp(family, "hermes") ? CALLS_HERMES : !strcmp(family, "llama") ? CALLS_LLAMA : CALLS_XML;
}

/* Returns a peer's calls as a list of [name, arguments]; NULL if it cannot read the family. */
static json_t *list_of(const json_t *row, const char *peer)
{
    const json_t *x = json_object_get(row, peer), *calls, *call;
    const bool trl = !strcmp(peer, "trl");
    json_t *out = json_array();
    size_t i;
    calls = json_object_get(x, trl ? "tool_calls" : "calls");
    if (!json_is_object(x) || (!trl && !calls)) {
        json_decref(out);
        return NULL;
    }
    json_array_foreach(calls, i, call)
    {
        const json_t *f = trl ? json_object_get(call, "function") : call;
        const char *status = json_text_or(call, "status", "ok");
        json_t *arguments = json_object_get(f, "arguments"), *read = NULL;
        if (!strcmp(peer, "verl") && json_is_string(arguments) &&
            !json_parse_wide(json_string_value(arguments), (int64_t)json_string_length(arguments), "x", &read, NULL))
            arguments = read;
        if (!strcmp(status, "ok")) json_array_append_new(out, json_pack("[OO]", json_object_get(f, "name"), arguments));
        json_decref(read);
    }
    return out;
}

static bool equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    if (json_is_array(a) && json_is_array(b)) {
        bool same = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; same && i < json_array_size(a); i++) same = equal(json_array_get(a, i), json_array_get(b, i));
        return same;
    }
    if (!json_is_object(a) || !json_is_object(b)) return json_equal(a, b);
    const char *key;
    json_t *value;
    bool same = json_object_size(a) == json_object_size(b);
    json_object_foreach((json_t *)(uintptr_t)a, key, value)
    {
        same = same && json_object_get(b, key) && equal(value, json_object_get(b, key));
    }
    return same;
}

static json_t *ours(const json_t *row, const json_t *tools, int64_t *n_unparsed)
{
    const char *family = json_string_value(json_object_get(row, "family"));
    const json_t *text = json_object_get(row, "text");
    json_t *out = json_array();
    struct calls got;
    /* an act ends before its end token */
    int64_t n = (int64_t)json_string_length(text);
    const char *s = json_string_value(text);
    static const char *const ENDS[] = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>"};
    for (size_t k = 0; k < 4;) {
        const int64_t size = (int64_t)strlen(ENDS[k]);
        const bool ends = n >= size && !memcmp(s + n - size, ENDS[k], (size_t)size);
        if (ends) n -= size;
        k = ends ? 0 : k + 1;
    }
    assert_ok(calls_read((struct call_reader){syntax_of(family), !strcmp(family, "xml-think"), tools}, (tare_text){s, n}, &arena,
                         &got, &e),
              &e);
    for (int64_t i = 0; i < got.n; i++) {
        json_t *arguments;
        const tare_call *c = got.call[i];
        assert_int_equal(c->struct_size, sizeof *c);
        assert_ok(json_parse_wide(c->arguments.data, c->arguments.size, "arguments", &arguments, &e), &e);
        assert_true(json_is_object(arguments));
        json_array_append_new(out, json_pack("[s%o]", c->name.data, (size_t)c->name.size, arguments));
    }
    *n_unparsed = got.n_unparsed;
    return out;
}

static int other(const char *id)
{
    for (size_t k = 0; k < sizeof OTHERS / sizeof *OTHERS; k++)
        if (!strcmp(OTHERS[k].id, id)) return (int)k;
    return -1;
}

static bool compare(const json_t *row, const json_t *tools)
{
    static const char *const PEERS[] = {"trl", "verl", "renderers"};
    const char *id = json_string_value(json_object_get(row, "id"));
    int64_t n_unparsed;
    json_t *got = ours(row, tools, &n_unparsed), *want = NULL, *peer;
    bool agree = true;
    const int k = other(id);
    for (int p = 0; p < 3; p++) {
        if (!(peer = list_of(row, PEERS[p]))) continue;
        if (want) agree = agree && equal(peer, want);
        if (!want) want = json_incref(peer);
        json_decref(peer);
    }
    if (k >= 0) {
        json_decref(want);
        assert_ok(json_parse(OTHERS[k].calls, (int64_t)strlen(OTHERS[k].calls), id, &want, &e), &e);
    }
    const bool right = (k >= 0 || agree) && equal(got, want) && (k < 0 || n_unparsed == OTHERS[k].n_unparsed);
    if (!right) {
        char *s = json_dumps(got, JSON_COMPACT);
        print_error("%s: %s, %lld unparsed%s\n", id, s, (long long)n_unparsed, agree ? "" : " (the peers disagree)");
        free(s);
    }
    json_decref(got);
    json_decref(want);
    return right;
}

static void as_peers(void **state)
{
    (void)state;
    char rows[4096], file[4096];
    struct str text = {0};
    json_t *tools;
    int64_t n = 0, wrong = 0;
    snprintf(rows, sizeof rows, "%s", shared_or_skip("data/episodes/tool_calls.jsonl"));
    snprintf(file, sizeof file, "%s", shared_or_skip("data/episodes/tool_calls.tools.json"));
    assert_ok(json_read_file(file, &tools, &e), &e);
    assert_ok(fs_read_all(rows, &text, &e), &e);
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *row;
        assert_ok(json_parse_wide(line, (int64_t)strlen(line), rows, &row, &e), &e);
        wrong += !compare(row, json_object_get(tools, "tools"));
        json_decref(row);
        n++;
    }
    if (wrong) fail_msg("%lld of %lld texts", (long long)wrong, (long long)n);
    assert_true(n >= 40);
    json_decref(tools);
    str_free(&text);
}

/* A thought ends at its own family's tag, also one that the prompt has opened. */
static void thoughts_of_every_family(void **state)
{
    (void)state;
    static const char CALL[] = "<tool_call>{\"name\": \"look\"}</tool_call>";
    for (const struct chat_thought *t = CHAT_THOUGHTS; t->open; t++)
        for (int opened = 0; opened < 2; opened++)
            for (int closed = 0; closed < 2; closed++) {
                char text[200];
                struct calls got;
                const int n = snprintf(text, sizeof text, "%shm %s%s%s", opened ? "" : t->open, closed ? "" : CALL,
                                       closed ? t->close : "", closed ? CALL : "");
                assert_ok(calls_read((struct call_reader){CALLS_HERMES, opened, NULL}, (tare_text){text, n}, &arena, &got, &e), &e);
                if (got.n != closed || got.n_unparsed != !closed)
                    fail_msg("%s: %lld calls, %lld unparsed", text, (long long)got.n, (long long)got.n_unparsed);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_peers), cmocka_unit_test(thoughts_of_every_family)};
    arena_init(&arena, "calls");
    const int status = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(&arena);
    return status;
}
