/* Chat renderings of the reference file byte for byte, cases rendered by jinja2, refusals with
 * their line, and bounds. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "template/chat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---------------------------------------------------------------- reference renderings */

struct goldens {
    const struct chat *chat;
    int64_t rows, wrong;
};

static tare_status golden(void *ctx, const json_t *row, const char *where, struct err *e)
{
    struct goldens *g = ctx;
    struct str text = {0};
    TRY(chat_render(g->chat, json_object_get(row, "messages"), json_bool_or(row, "add_generation_prompt", 0), NULL, &text, e));
    const json_t *want = json_object_get(row, "text");
    const bool same =
        text.size == (int64_t)json_string_length(want) && !memcmp(text.data, json_string_value(want), (size_t)text.size);
    if (!same && g->wrong++ < 3) printf("%s: other text:\n%s\n--- wanted\n%s\n", where, text.data, json_string_value(want));
    g->rows++;
    str_free(&text);
    return TARE_OK;
}

static void check_goldens(const char *cases, const char *model, const char *template)
{
    char file[300], folder[FS_PATH], path[FS_PATH] = "";
    struct err e = {0};
    struct chat *c = NULL;
    snprintf(file, sizeof file, "models/tokenizers/%s/tokenizer_config.json", model);
    fs_dirname(folder, shared_or_skip(file));
    if (template) assert_ok(fs_join(path, folder, template, &e), &e);
    assert_ok(chat_load(folder, path, &c, &e), &e);
    snprintf(file, sizeof file, "data/chat/%s.jsonl", cases);
    const char *cases_file = shared_or_skip(file);
    const bool whole = shared_is_whole(cases_file);
    FILE *f = fopen(cases_file, "r");
    assert_non_null(f);
    struct goldens g = {.chat = c};
    assert_ok(json_each_line(f, file, golden, &g, &e), &e);
    fclose(f);
    chat_free(c);
    printf("%s: %lld renderings\n", cases, (long long)g.rows);
    assert_true(g.rows > (whole ? 100 : 10));
    assert_int_equal(g.wrong, 0);
}

static void test_references(void **state)
{
    (void)state;
    check_goldens("qwen2.5", "qwen2.5", NULL);
    check_goldens("qwen2.5-instruct", "qwen2.5", "chat_template.instruct.jinja");
    check_goldens("llama-3.1", "llama-3", NULL);
    check_goldens("llama-3", "llama-3", "chat_template.llama-3.jinja");
    check_goldens("smollm2", "smollm2", NULL);
}

/* ---------------------------------------------------------------- cases rendered by jinja2
 * (template_cases.jsonl) */

static tare_status render(const char *source, int64_t n, const json_t *variables, struct str *out, struct err *e)
{
    struct template *t = NULL;
    TRY(template_parse(source, n, "case", &t, e));
    const tare_status status = template_render(t, variables, out, e);
    template_free(t);
    return status;
}

static int64_t n_cases, n_wrong;

/* {"template", "variables", "text"}, or without "text" if jinja2 fails */
static tare_status jinja_case(void *ctx, const json_t *row, const char *where, struct err *e)
{
    (void)ctx;
    (void)e;
    struct str text = {0};
    struct err got = {0};
    const json_t *source = json_object_get(row, "template"), *want = json_object_get(row, "text");
    const tare_status status =
        render(json_string_value(source), (int64_t)json_string_length(source), json_object_get(row, "variables"), &text, &got);
    if (want) {
        if (status)
            n_wrong++, printf("%s: %s: %s\n", where, json_string_value(source), got.message);
        else if (text.size != (int64_t)json_string_length(want) || memcmp(text.data, json_string_value(want), (size_t)text.size))
            n_wrong++,
                printf("%s: %s\ngives  [%s]\nwanted [%s]\n", where, json_string_value(source), text.data, json_string_value(want));
    } else if (!status) {
        n_wrong++, printf("%s: %s\ngives [%s], jinja2 fails\n", where, json_string_value(source), text.data);
    }
    n_cases++;
    str_free(&text);
    return TARE_OK;
}

static void test_jinja_cases(void **state)
{
    (void)state;
    char path[FS_PATH];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/tests/unit/template/template_cases.jsonl", getenv("SOURCE") ? getenv("SOURCE") : ".");
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s cannot be opened", path);
    assert_ok(json_each_line(f, path, jinja_case, NULL, &e), &e);
    fclose(f);
    assert_true(n_cases > 100);
    assert_int_equal(n_wrong, 0);
}

/* ---------------------------------------------------------------- refusals and bounds */

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *source, *message;
    } cases[] = {
        {"a\n{% call f() %}{% endcall %}", "case:2: the tag 'call' is not supported"},
        {"a\n{% for x in y %}{% macro f() %}{% endmacro %}{% endfor %}", "case:2: a macro inside of a loop"},
        {"{% macro g() %}{% macro f() %}{% endmacro %}{% endmacro %}", "define it at the top level"},
        {"{% macro f() %}{{ varargs }}{% endmacro %}", "varargs in the macro 'f' is not supported"},
        {"{% macro f() %}{{ caller() }}{% endmacro %}", "the function caller() is not supported"},
        {"{% macro f(a=1, b) %}{% endmacro %}", "a parameter without a default follows one that has a default"},
        {"{% for x in y %}{% macro f() %}{% break %}", "a macro inside of a loop"},
        {"{% macro f() %}{% break %}{% endmacro %}", "outside of a loop"},
        {"\n\n{% include 'x' %}", "case:3: the tag 'include'"},
        {"{{ x | nofilter }}", "case:1: the filter 'nofilter' is not supported"},
        {"{{ 1\n is notest }}", "case:2: the test 'notest' is not supported"},
        {"{{ x.format(1) }}", "the method format() is not supported"},
        {"{{ nofunction(1) }}", "the function nofunction() is not supported"},
        {"{{ 1 is odd is true }}", "tests cannot be chained"},
        {"{% raw %}", "case:1: the template ends before endraw"},
        {"{% if 1 if 2 else 3 %}{% endif %}", "needs parentheses"},
        {"{{ x.strip(foo=1) }}", "strip does not support the argument 'foo'"},
        {"{% for x in y recursive %}{% endfor %}", "recursive loops"},
        {"{% if x %}\nabc", "case:2: the template ends before elif"},
        {"{% for x in y %}{% endif %}", "the tag 'endif' is not supported here"},
        {"abc {{ x", "is not closed with }}"},
        {"abc {# x", "is not closed with #}"},
        {"{{ 'abc }}", "a string is not closed"},
        {"{{ '\\ud800' }}", "malformed escape"},
        {"{{ }}", "expected an expression"},
        {"{{ 1 2 }}", "expected }}"},
        {"{% break %}", "outside of a loop"},
        {"{{ a ? b }}", "unexpected character '?'"},
        {"\xFF", "not valid UTF-8"},
        {"{{ 99999999999999999999 }}", "64 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct template *t = NULL;
        struct err e = {0};
        assert_int_not_equal(template_parse(cases[i].source, (int64_t)strlen(cases[i].source), "case", &t, &e), TARE_OK);
        assert_null(t);
        if (!strstr(e.message, cases[i].message)) fail_msg("%s: %s", cases[i].source, e.message);
    }
}

/* A method without its call: Python prints its address, which no model has learnt. */
static void test_methods_without_a_call(void **state)
{
    static const char *const sources[] = {
        "a{{ x.upper }}",   "a{{ x['upper'] }}",      "a{{ x.strip ~ 'b' }}",
        "a{{ [x.title] }}", "a{{ x.split | upper }}", "a{{ l.count }}",
        "a{{ d.get }}",     "a{{ d['get'] }}",        "a{% if x.lower == 'b' %}{% endif %}{{ x.casefold | tojson }}"};
    OWNED(json_decrefp) json_t *variables = json_pack("{s:s, s:[i], s:{}}", "x", "text", "l", 1, "d");
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        OWNED(str_free) struct str out = {0};
        struct err e = {0};
        if (!render(sources[i], (int64_t)strlen(sources[i]), variables, &out, &e)) fail_msg("%s gives %s", sources[i], out.data);
        if (!strstr(e.message, "case:1: ") || !strstr(e.message, "method") || !strstr(e.message, "() to call it"))
            fail_msg("%s: %s", sources[i], e.message);
    }
}

/* Templates that would run for ever, or exhaust memory or the stack. */
static void test_bounds(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='ab') %}{% for a in range(1000) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{{ 'abc' * 1000000000000 }}",
        "{% set ns = namespace(s=[]) %}{% for a in range(90000) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
        ("{% set ns = namespace(s=[], t=[]) %}{% for a in range(90) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% "
         "endfor %}{{ ns.s == ns.t }}"),
        "{{ range(1000000000) }}",
        "{% set ns = namespace(s='a') %}{% for a in range(90000) %}{% set ns.s = ns.s.replace('a', 'aa') %}{% endfor %}",
        "{{ [1] | tojson(indent=1000000000) }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ 1 // 0 }}",
        "{{ 1e22 | int }}",
        "{{ '1e22' | int }}",
        "{{ raise_exception('no') }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(a) %}{{ f(a ~ a) }}{% endmacro %}{{ f('ab') }}",
        "{% macro f(a) %}{% for b in [1] %}{% for c in [1] %}{{ f(a + 1) }}{% endfor %}{% endfor %}{% endmacro %}{{ f(0) }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    };
    json_t *none = json_object();
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct str out = {0};
        struct err e = {0};
        if (!render(sources[i], (int64_t)strlen(sources[i]), none, &out, &e)) fail_msg("%s: ends well", sources[i]);
        assert_int_equal(strncmp(e.message, "case:1: ", 8), 0);
        assert_int_equal(out.size, 0);
        str_free(&out);
    }
    struct str deep = {0}, out = {0};
    struct err e = {0};
    assert_ok(str_add(&deep, "{{ ", -1, &e), &e);
    for (int i = 0; i < 100000; i++) assert_ok(str_add(&deep, "(", 1, &e), &e);
    for (int i = 0; i < 100000; i++) assert_ok(str_add(&deep, ")", 1, &e), &e);
    assert_ok(str_add(&deep, " }}", -1, &e), &e);
    assert_int_not_equal(render(deep.data, deep.size, none, &out, &e), TARE_OK);
    if (!strstr(e.message, "nested more than")) fail_msg("%s", e.message);
    str_free(&deep);
    str_free(&out);
    json_decref(none);
}

/* strftime_now returns the date that was set, in UTC in every time zone; invalid dates are
 * refused. */
static void the_date_is_set(void **state)
{
    (void)state;
    static const char CONFIG[] = "{\"chat_template\":\"{{ strftime_now('%d %b %Y %H:%M') }}\"}";
    static const char *const WRONG[] = {"2024-13-01", "2024-02-30", "yesterday", "2024-2-1", "2024-02-29T00:00", "1969-12-31"};
    const char *folder = make_test_folder("tare-chat-date");
    char path[FS_PATH];
    struct chat *c;
    struct str text = {0};
    struct err e = {0};
    json_t *messages = json_array();
    assert_non_null(folder);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    assert_ok(fs_write_atomic(path, CONFIG, (int64_t)strlen(CONFIG), &e), &e);
    setenv("TZ", "Pacific/Auckland", 1);
    tzset();
    assert_ok(chat_load(folder, NULL, &c, &e), &e);
    assert_ok(chat_set_date(c, "2024-02-29", &e), &e);
    assert_ok(chat_render(c, messages, false, NULL, &text, &e), &e);
    assert_string_equal(text.data, "29 Feb 2024 00:00");
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        assert_int_equal(chat_set_date(c, WRONG[i], &e), TARE_E_CONFIG);
        assert_non_null(strstr(e.message, "must be written as"));
    }
    unsetenv("TZ");
    json_decref(messages);
    str_free(&text);
    chat_free(c);
    fs_remove_tree(folder, NULL);
}

/* The prompt that a template writes tells whether it opens a thought. */
static void a_thought_is_opened(void **state)
{
    (void)state;
    static const struct {
        const char *template;
        bool opened;
    } CASES[] = {
        {"{{ messages[0].content }}{% if add_generation_prompt %}<think>\\n{% endif %}", true},
        {"{{ messages[0].content }}<think>", true},
        {"{{ messages[0].content }}[THINK]", true},
        {"{{ messages[0].content }}◁think▷ ", true},
        {"{{ messages[0].content }}<think>\\n\\n</think>\\n\\n", false},
        {"<think> {{ messages[0].content }}", false},
        {"{{ raise_exception('no') }}<think>", false},
        {"", false},
    };
    const char *folder = make_test_folder("tare-chat-thought");
    assert_non_null(folder);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char path[FS_PATH], config[300];
        struct chat *c;
        struct err e = {0};
        snprintf(config, sizeof config, "{\"chat_template\":\"%s\"}", CASES[i].template);
        snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
        assert_ok(fs_write_atomic(path, config, (int64_t)strlen(config), &e), &e);
        assert_ok(chat_load(folder, NULL, &c, &e), &e);
        if (chat_opens_thought(c) != CASES[i].opened) fail_msg("%s", CASES[i].template);
        chat_free(c);
    }
    fs_remove_tree(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jinja_cases), cmocka_unit_test(test_refusals),   cmocka_unit_test(test_methods_without_a_call),
        cmocka_unit_test(test_bounds),      cmocka_unit_test(the_date_is_set), cmocka_unit_test(a_thought_is_opened),
        cmocka_unit_test(test_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
