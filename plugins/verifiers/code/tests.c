#include "tests.h"

#include "common/text.h"

#include <stdlib.h>
#include <string.h>

static json_t *parse_text(json_t *j)
{
    const char *t = json_string_value(j);
    if (t) t += strspn(t, " \t\r\n");
    json_t *inner = t && (*t == '{' || *t == '[') ? json_loads(t, 0, NULL) : NULL;
    return inner ? inner : json_incref(j);
}

/* Converts {"inputs": [...], "outputs": [...]}, as in APPS and TACO. */
static json_t *pair_lists(const json_t *j)
{
    const json_t *in = json_object_get(j, "inputs"), *out = json_object_get(j, "outputs");
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(in); i++)
        json_array_append_new(list, json_pack("{s:O, s:O}", "input", json_array_get(in, i), "output", json_array_get(out, i)));
    return list;
}

/* Returns the arguments of a call: a list (APPS, TACO), or lines of JSON (LiveCodeBench). */
static json_t *call_arguments(json_t *input)
{
    if (json_is_array(input)) return json_incref(input);
    const char *at = json_string_value(input);
    json_t *list = at ? json_array() : NULL;
    while (list && *at) {
        const size_t n = strcspn(at, "\n");
        json_t *one = strspn(at, " \t\r") < n ? json_loadb(at, n, JSON_DECODE_ANY, NULL) : NULL;
        if (one)
            json_array_append_new(list, one);
        else if (strspn(at, " \t\r") < n) {
            json_decref(list);
            return NULL;
        }
        at += n + (at[n] == '\n');
    }
    return list;
}

/* Returns the results that are right: the output, and as in APPS the only item of a list. */
static json_t *call_results(json_t *output, bool text)
{
    json_t *value =
        text ? json_loads(json_is_string(output) ? json_string_value(output) : "", JSON_DECODE_ANY, NULL) : json_incref(output);
    json_t *list = value ? json_pack("[o]", value) : NULL;
    if (!text && json_array_size(output) == 1) json_array_append(list, json_array_get(output, 0));
    return list;
}

/* Writes a test as Python: calls the function, or the method of the program's class Solution. */
static json_t *call_program(const char *name, json_t *input, json_t *output)
{
    static const char TEST[] = "def _check(name, arguments, results):\n"
                               "    def plain(x):\n"
                               "        if isinstance(x, (list, tuple)): return [plain(y) for y in x]\n"
                               "        return {k: plain(v) for k, v in x.items()} if isinstance(x, dict) else x\n"
                               "    called = globals().get(name)\n"
                               "    if called is None: called = getattr(globals()[\"Solution\"](), name)\n"
                               "    assert plain(called(*arguments)) in results\n"
                               "_check(%s, *__import__(\"json\").loads(%s))\n";
    json_t *arguments = call_arguments(input), *results = call_results(output, json_is_string(input)), *program = NULL;
    json_t *both = arguments && results ? json_pack("[O,O]", arguments, results) : NULL;
    char *text = both ? json_dumps(both, JSON_ENSURE_ASCII) : NULL;
    json_t *literal = text ? json_string(text) : NULL, *called = json_string(name);
    char *quoted = literal ? json_dumps(literal, JSON_ENSURE_ASCII | JSON_ENCODE_ANY) : NULL;
    char *quoted_name = called ? json_dumps(called, JSON_ENSURE_ASCII | JSON_ENCODE_ANY) : NULL;
    if (quoted && quoted_name) program = json_sprintf(TEST, quoted_name, quoted);
    free(quoted);
    free(quoted_name);
    free(text);
    json_decref(literal);
    json_decref(called);
    json_decref(both);
    json_decref(arguments);
    json_decref(results);
    return program;
}

/* Reads {"fn_name", "inputs", "outputs"}: tests that call a function of the program. */
static tare_status take_calls(json_t *j, const char *field, struct tests *out, tare_error *error)
{
    const char *name = json_string_value(json_object_get(j, "fn_name"));
    const json_t *in = json_object_get(j, "inputs"), *want = json_object_get(j, "outputs");
    const size_t n = json_array_size(in);
    if (!name || !*name || !n || n != json_array_size(want))
        return tare_fail(error, TARE_E_CONFIG,
                         "the row's \"%s\" has \"fn_name\": it must be a name, with as many \"inputs\" as \"outputs\"", field);
    out->list = json_array();
    out->programs = true;
    for (size_t i = 0; i < n; i++) {
        json_t *one = call_program(name, json_array_get(in, i), json_array_get(want, i));
        if (!one)
            return tare_fail(
                error, TARE_E_CONFIG,
                "the row's \"%s\" calls %s: inputs[%zu] must be a list of arguments, or lines of JSON with an output in JSON",
                field, name, i);
        json_array_append_new(out->list, one);
    }
    return TARE_OK;
}

static bool is_one(const json_t *test, bool programs)
{
    return programs ? json_is_string(test)
                    : json_is_string(json_object_get(test, "input")) && json_is_string(json_object_get(test, "output"));
}

static tare_status take_tests(json_t *j, const char *field, struct tests *out, tare_error *error)
{
    const json_t *name = json_object_get(j, "fn_name");
    if (name && !json_is_null(name)) return take_calls(j, field, out, error);
    if (json_is_object(j) && json_array_size(json_object_get(j, "inputs")) == json_array_size(json_object_get(j, "outputs")))
        out->list = pair_lists(j);
    else if (json_is_array(j))
        out->list = json_incref(j);
    else if (json_is_string(j))
        out->list = json_pack("[O]", j);
    out->programs = json_is_string(json_array_get(out->list, 0));
    for (size_t i = 0; i < json_array_size(out->list); i++)
        if (!is_one(json_array_get(out->list, i), out->programs)) json_array_clear(out->list);
    if (json_array_size(out->list)) return TARE_OK;
    return tare_fail(
        error, TARE_E_CONFIG,
        "the row has no tests in its field \"%s\"; given as [{\"input\": text, \"output\": text}, ...], {\"inputs\": [texts], \"outputs\": [texts]}, the same with \"fn_name\", or as Python with assert, a text or a list of texts",
        field);
}

tare_status tests_read(tare_text row, const char *field, struct tests *out, tare_error *error)
{
    *out = (struct tests){.row = row.size ? json_loadb(row.data, (size_t)row.size, JSON_ALLOW_NUL, NULL) : NULL};
    json_t *j = parse_text(json_object_get(out->row, field));
    const tare_status s = take_tests(j, field, out, error);
    json_decref(j);
    return s;
}

void tests_free(struct tests *t)
{
    json_decref(t->list);
    json_decref(t->row);
}

/* Returns the next line, without blanks at its end; false if only empty lines remain. */
static bool next_line(tare_text t, int64_t *at, tare_text *line)
{
    if (!text_trim(text_slice(t, *at, t.size)).size) return false;
    const char *end = memchr(t.data + *at, '\n', (size_t)(t.size - *at));
    const int64_t next = end ? end - t.data : t.size;
    *line = text_slice(t, *at, next);
    while (line->size && text_is_space(line->data[line->size - 1])) line->size--;
    *at = next + (next < t.size);
    return true;
}

static bool next_word(tare_text t, int64_t *at, tare_text *word)
{
    while (*at < t.size && text_is_space(t.data[*at])) ++*at;
    const int64_t begin = *at;
    while (*at < t.size && !text_is_space(t.data[*at])) ++*at;
    *word = text_slice(t, begin, *at);
    return word->size > 0;
}

bool tests_same(tare_text a, tare_text b, bool words)
{
    bool (*const next)(tare_text, int64_t *, tare_text *) = words ? next_word : next_line;
    for (int64_t i = 0, k = 0;;) {
        tare_text x = {0}, y = {0};
        const bool more = next(a, &i, &x);
        if (more != next(b, &k, &y)) return false;
        if (!more) return true;
        if (!text_equal(x, y, false)) return false;
    }
}
