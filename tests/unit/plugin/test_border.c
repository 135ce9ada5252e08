/* What a plugin gives to the host: texts, names, secrets, streams and sizes. */
#define _GNU_SOURCE /* memmem */
#include "check.h"

#include "base/log.h"
#include "plugin/plugin.h"

#include <stdlib.h>
#include <string.h>

static const char SECRET[] = "open-sesame-47";
static struct err e;
static struct arena arena;

static tare_status open_fixture(const char *name, const struct plugin **p)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), name);
    e = (struct err){0};
    return plugin_open(path, TARE_KIND_ESTIMATOR, NULL, p, &e);
}

static void fails_with(const char *name, tare_status status, tare_status expected, const char *part)
{
    if (status != expected || !strstr(e.message, part))
        fail_msg("%s: status %d (expected %d): %s (expected '%s')", name, status, expected, e.message, part);
}

static tare_status create(const char *name, const char *const *words, int64_t n, const struct plugin_env *env,
                          struct plugin_instance **i)
{
    const struct plugin *p;
    const struct config_param *settings;
    const tare_value *values;
    setenv("TEXTS_TOKEN", SECRET, 1);
    assert_ok(open_fixture(name, &p), &e);
    assert_ok(plugin_settings(p, (struct plugin_words){words, n}, NULL, &arena, &settings, &e), &e);
    assert_ok(plugin_params(p, settings, &arena, &values, &e), &e);
    return plugin_create(p, values, 0, env, i, &e);
}

static struct plugin_instance *with_secret(const char *name, const struct plugin_env *env)
{
    const char *word = "token=TEXTS_TOKEN";
    struct plugin_instance *i;
    assert_ok(create(name, &word, 1, env, &i), &e);
    return i;
}

static void texts__are_lines_of_utf8(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"old_key_is_a_key", "parameter rate lists mode in old_keys, which is also a name of parameter mode"},
        {"old_key_of_two", "parameter mode lists style in old_keys, which is also a name of parameter rate"},
        {"old_key_twice", "parameter rate lists lr in old_keys, which is also a name of parameter rate"},
        {"old_key_invalid", "parameter rate has an invalid name in old_keys"},
        {"doc_of_two_lines", "the documentation of parameter rate has the control character 0x0a; it must be one line"},
        {"unit_with_escape", "the unit of parameter rate has the control character 0x1b"},
        {"default_not_utf8", "the default of parameter label is not valid UTF-8"},
        {"summary_of_two_lines", "summary has the control character 0x0a"},
        {"about_of_two_lines", "paper has the control character 0x0a"},
        {"about_not_utf8", "paper is not valid UTF-8"},
        {"choice_twice", "parameter mode has the choice 'low' twice"},
        {"choice_without_doc", "parameter mode has choice_docs, but none for the choice 'high'"},
        {"field_of_secret",
         "it wants the field \"row.$token\", but has no parameter token of the type TARE_PARAM_STRING that is not secret"},
    };
    const struct plugin *p;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        fails_with(cases[k][0], open_fixture(cases[k][0], &p), TARE_E_PLUGIN, cases[k][1]);
    assert_ok(open_fixture("plain_texts", &p), &e);
}

static void texts__of_parameters_are_shown(void **state)
{
    (void)state;
    const struct plugin *p;
    struct str text = {0};
    assert_ok(open_fixture("plain_texts", &p), &e);
    assert_ok(plugin_describe(p, PLUGIN_TEXT, &text, &e), &e);
    assert_non_null(strstr(text.data, "speed:\n    rate "));
    assert_non_null(strstr(text.data, "earlier: lr, speed"));
    assert_non_null(strstr(text.data, "low: the least"));
    assert_non_null(strstr(text.data, "secret: the name of an environment variable"));
    str_free(&text);
}

static void identity__is_a_line_of_text(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"identity_binary", "identity wrote the byte 0x00; it must be one line of text"},
        {"identity_of_two_lines", "identity wrote the byte 0x0a"},
        {"identity_not_utf8", "identity wrote bytes that are not UTF-8"},
        {"identity_endless", "identity wrote 10007 bytes; at most 4096"},
        {"identity_with_secret", "identity wrote the value of the secret parameter token"},
    };
    struct str text = {0};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct plugin_instance *i = with_secret(cases[k][0], NULL);
        fails_with(cases[k][0], plugin_identity(i, &text, &e), TARE_E_PLUGIN, cases[k][1]);
        plugin_destroy(i);
        str_clear(&text);
    }
    struct plugin_instance *i = with_secret("plain_texts", NULL);
    assert_ok(plugin_identity(i, &text, &e), &e);
    assert_string_equal(text.data, "texts/0.1.0 rate=1 mode=low label=none judge-7");
    plugin_destroy(i);
    str_free(&text);
}

static void describe__writes_one_json_object(void **state)
{
    (void)state;
    static const char *const names[] = {"describes_in_words", "describes_a_list", "describes_two"};
    struct str text = {0};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct plugin_instance *i = with_secret(names[k], NULL);
        fails_with(names[k], plugin_describe_state(i, &text, &e), TARE_E_PLUGIN,
                   "estimator texts: describe must write one JSON object");
        plugin_destroy(i);
        str_clear(&text);
    }
    struct plugin_instance *i = with_secret("describes_nothing", NULL);
    assert_ok(plugin_describe_state(i, &text, &e), &e);
    assert_string_equal(text.data, "{}");
    plugin_destroy(i);
    str_free(&text);
}

static char logged[2000];
static void on_log(void *ctx, enum log_level level, const char *text)
{
    (void)ctx, (void)level;
    strncat(logged, text, sizeof logged - strlen(logged) - 1);
}

static char measured[2000];
static void on_metric(void *ctx, const char *name, double value, int32_t how)
{
    (void)ctx, (void)value, (void)how;
    strncat(strncat(measured, name, sizeof measured - strlen(measured) - 2), " ", 2);
}

static tare_status compute(struct plugin_instance *i)
{
    double advantage[2];
    const int64_t begin[] = {0, 2};
    const double reward[] = {1, 0};
    const tare_column column = {0};
    const tare_batch batch = {
        .struct_size = sizeof batch, .n_groups = 1, .n_rollouts = 2, .group_begin = begin, .reward = reward, .column = &column};
    tare_advantages out = {.struct_size = sizeof out, .advantage = advantage};
    struct plugin_call c;
    plugin_enter(&c);
    return plugin_leave(&c, i, "compute", 3, i->plugin->estimator->compute(i->self, &batch, NULL, &out, &c.error), &e);
}

static void secrets__are_in_no_message(void **state)
{
    (void)state;
    const struct plugin_env env = {.metric = on_metric};
    logged[0] = measured[0] = 0;
    log_set_sink(on_log, NULL);
    plugin_destroy(with_secret("logs_secret", NULL));
    log_set_sink(NULL, NULL);
    assert_string_equal(logged, "estimator texts: **************");
    struct plugin_instance *i = with_secret("fails_with_secret", NULL);
    fails_with("compute", compute(i), TARE_E_IO, "estimator texts: compute, step 3: cannot log in as **************");
    plugin_destroy(i);
    i = with_secret("measures_secret", &env);
    assert_ok(compute(i), &e);
    plugin_destroy(i);
    assert_null(strstr(measured, SECRET));
}

static void secrets__are_in_nothing_that_is_stored(void **state)
{
    (void)state;
    struct str text = {0};
    struct plugin_instance *i = with_secret("saves_secret", NULL);
    fails_with("save", plugin_save(i, &text, &e), TARE_E_PLUGIN, "save wrote the value of the secret parameter token");
    plugin_destroy(i);
    str_clear(&text);
    i = with_secret("describes_secret", NULL);
    fails_with("describe", plugin_describe_state(i, &text, &e), TARE_E_PLUGIN,
               "describe wrote the value of the secret parameter token");
    plugin_destroy(i);
    str_clear(&text);
    i = with_secret("plain_texts", NULL);
    assert_ok(plugin_save(i, &text, &e), &e);
    assert_null(memmem(text.data, (size_t)text.size, SECRET, strlen(SECRET)));
    plugin_destroy(i);
    str_free(&text);
}

/* A user who writes the secret where its variable belongs does not find it in a message. */
static void secrets__written_for_their_variable_are_not_repeated(void **state)
{
    (void)state;
    const char *words[] = {"token=sk-4711", "token=NO_SUCH_VARIABLE"};
    struct plugin_instance *i;
    fails_with("a secret", create("plain_texts", &words[0], 1, NULL, &i), TARE_E_CONFIG,
               "must be the name of an environment variable");
    assert_null(strstr(e.message, "4711"));
    fails_with("no variable", create("plain_texts", &words[1], 1, NULL, &i), TARE_E_CONFIG, "NO_SUCH_VARIABLE, which is not set");
}

static void metrics__have_names_of_columns(void **state)
{
    (void)state;
    const struct plugin_env env = {.metric = on_metric};
    logged[0] = measured[0] = 0;
    log_set_sink(on_log, NULL);
    struct plugin_instance *i = with_secret("measures_oddly", &env);
    assert_ok(compute(i), &e);
    plugin_destroy(i);
    log_set_sink(NULL, NULL);
    assert_string_equal(measured, "estimator/good/name-1.5_x ");
    assert_non_null(strstr(logged, "a metric's name must have 1 to 63"));
    assert_null(strstr(strstr(logged, "metric's name") + 1, "metric's name")); /* once */
}

static void select__writes_its_wants_alone(void **state)
{
    (void)state;
    struct plugin_instance *i;
    fails_with("selects_beyond", create("selects_beyond", NULL, 0, NULL, &i), TARE_E_PLUGIN,
               "select wrote entry 1 of wanted, but the plugin has 1 wants");
}

static void streams__end_a_call_that_goes_on_after_an_error(void **state)
{
    (void)state;
    struct str text = {0};
    for (int k = 0; k < 2; k++) {
        struct plugin_instance *i = with_secret(k ? "writes_negative" : "writes_null", NULL);
        fails_with("save", plugin_save(i, &text, &e), TARE_E_PLUGIN, "save goes on after its stream failed (invalid)");
        plugin_destroy(i);
        str_clear(&text);
    }
    struct plugin_instance *i = with_secret("reads_on", NULL);
    assert_ok(plugin_save(i, &text, &e), &e);
    fails_with("load", plugin_load(i, text.data, text.size, NULL, "here", &e), TARE_E_CORRUPT,
               "load goes on after its stream failed");
    plugin_destroy(i);
    str_free(&text);
}

/* A size that is not there is not read, however large. */
static void streams__keep_what_people_read(void **state)
{
    (void)state;
    struct str text = {0};
    struct plugin_stream s = {.out = &text, .keep = 4};
    const tare_stream stream = plugin_stream(&s);
    assert_int_equal(stream.write(stream.ctx, "abcdef", INT64_MAX), TARE_OK);
    assert_int_equal(stream.write(stream.ctx, "ghijkl", INT64_MAX), TARE_OK);
    assert_int_equal(stream.write(stream.ctx, NULL, 1), TARE_E_INVALID);
    assert_int_equal(stream.write(stream.ctx, "m", 1), TARE_OK);
    assert_int_equal(text.size, 4);
    assert_string_equal(text.data, "abcd");
    str_free(&text);
}

static void sizes__stay_the_same_after_load(void **state)
{
    (void)state;
    struct str text = {0};
    struct plugin_instance *i = with_secret("grows_at_load", NULL);
    assert_ok(plugin_save(i, &text, &e), &e);
    fails_with("load", plugin_load(i, text.data, text.size, NULL, "here", &e), TARE_E_PLUGIN,
               "sizes: collect is 1000 after load, but was 1");
    plugin_destroy(i);
    str_free(&text);
}

/* A locked text of several lines is one value of the state's frame. */
static void state__keeps_a_locked_text_of_two_lines(void **state)
{
    (void)state;
    static const char *const words[] = {"label=a\nrate=7\\n", "label=a\nrate=7\n", "label=a"};
    struct str text = {0};
    struct plugin_instance *i;
    assert_ok(create("plain_texts", &words[0], 1, NULL, &i), &e);
    assert_ok(plugin_save(i, &text, &e), &e);
    assert_ok(plugin_load(i, text.data, text.size, NULL, "here", &e), &e);
    plugin_destroy(i);
    for (int k = 1; k < 3; k++) {
        assert_ok(create("plain_texts", &words[k], 1, NULL, &i), &e);
        fails_with("label", plugin_load(i, text.data, text.size, NULL, "here", &e), TARE_E_CONFIG,
                   "saved with label=a\\nrate=7\\\\n");
        plugin_destroy(i);
    }
    str_free(&text);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts__are_lines_of_utf8),
        cmocka_unit_test(texts__of_parameters_are_shown),
        cmocka_unit_test(identity__is_a_line_of_text),
        cmocka_unit_test(describe__writes_one_json_object),
        cmocka_unit_test(secrets__are_in_no_message),
        cmocka_unit_test(secrets__are_in_nothing_that_is_stored),
        cmocka_unit_test(secrets__written_for_their_variable_are_not_repeated),
        cmocka_unit_test(metrics__have_names_of_columns),
        cmocka_unit_test(select__writes_its_wants_alone),
        cmocka_unit_test(streams__end_a_call_that_goes_on_after_an_error),
        cmocka_unit_test(streams__keep_what_people_read),
        cmocka_unit_test(sizes__stay_the_same_after_load),
        cmocka_unit_test(state__keeps_a_locked_text_of_two_lines),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
