#include "tests.h"

#include "common/text.h"

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

static bool is_one(const json_t *test, bool programs)
{
    return programs ? json_is_string(test)
                    : json_is_string(json_object_get(test, "input")) && json_is_string(json_object_get(test, "output"));
}

static tare_status take_tests(json_t *j, const char *field, struct tests *out, tare_error *error)
{
    if (json_object_get(j, "fn_name"))
        return tare_fail(error, TARE_E_UNSUPPORTED,
                         "the row's \"%s\" has \"fn_name\": tests that call a function are given as Python, with assert", field);
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
        "the row has no tests in its field \"%s\"; given as [{\"input\": text, \"output\": text}, ...], {\"inputs\": [texts], \"outputs\": [texts]}, or as Python with assert, a text or a list of texts",
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
