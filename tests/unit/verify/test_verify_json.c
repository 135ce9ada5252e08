/* The verifier json: every keyword with a value on both sides of it, refusals, the position of the
 * value, and limits. */
#include "check.h"
#include "harness.h"

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

static tare_status judge(struct harness *h, const char *schema, const char *completion, const char *answer,
                         struct harness_verdict *v)
{
    char row[4096];
    snprintf(row, sizeof row, "{\"schema\":%s}", schema ? schema : "null");
    return harness_run(h, text(completion), text(answer), schema ? text(row) : (tare_text){0}, v);
}

static const struct rule {
    const char *schema, *valid, *invalid; /* NULL: every value is valid, or none */
} RULES[] = {
    {"true", "1", NULL},
    {"false", NULL, "1"},
    {"{\"type\":\"integer\"}", "1.0", "1.5"},
    {"{\"type\":\"integer\"}", "123456789012345678901234567890", "\"1\""},
    {"{\"type\":[\"null\",\"string\"]}", "null", "0"},
    {"{\"type\":\"boolean\"}", "false", "0"},
    {"{\"enum\":[1,{\"a\":[1]}]}", "{\"a\":[1.0]}", "{\"a\":[true]}"},
    {"{\"const\":9007199254740993}", "9007199254740993", "9007199254740992.0"},
    {"{\"minimum\":-2}", "-2.0", "-2.0001"},
    {"{\"maximum\":9223372036854775807}", "9223372036854775807", "9223372036854775808.0"},
    {"{\"exclusiveMinimum\":1.1}", "1.2", "1.1"},
    {"{\"exclusiveMaximum\":3}", "2.9999999999999996", "3.0"},
    {"{\"multipleOf\":0.0001}", "0.0075", "0.00751"},
    {"{\"multipleOf\":7}", "-21", "20"},
    {"{\"minLength\":2}", "\"\\u00e4\\u00e4\"", "\"\xC3\xA4\""},
    {"{\"maxLength\":1}", "\"\xF0\x9F\x98\x80\"", "\"ab\""},
    {"{\"pattern\":\"^a*$\"}", "\"aaa\"", "\"a\\n\""},
    {"{\"pattern\":\"^\\\\d$\"}", "\"7\"", "\"\xD9\xA7\""}, /* an Arabic digit */
    {"{\"items\":{\"type\":\"string\"}}", "[\"a\"]", "[\"a\",1]"},
    {"{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\"]", "[\"a\",1]"},
    {"{\"minItems\":2}", "[1,1]", "[1]"},
    {"{\"maxItems\":1}", "[1]", "[1,1]"},
    {"{\"uniqueItems\":true}", "[1,true,\"1\"]", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1.0}]"},
    {"{\"contains\":{\"const\":5}}", "[1,5]", "[]"},
    {"{\"contains\":{\"const\":5},\"minContains\":2,\"maxContains\":3}", "[5,5]", "[5,5,5,5]"},
    {"{\"contains\":{\"const\":5},\"minContains\":0}", "[]", NULL},
    {"{\"required\":[\"a\"]}", "{\"a\":null}", "{\"b\":1}"},
    {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"b\":1}", "{\"a\":1}"},
    {"{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"a\":1}", "{\"b\":1}"},
    {"{\"patternProperties\":{\"^x\":{\"type\":\"number\"}},\"additionalProperties\":{\"type\":\"string\"}}",
     "{\"xy\":1,\"z\":\"\"}", "{\"z\":1}"},
    {"{\"propertyNames\":{\"maxLength\":1}}", "{\"a\":1}", "{\"ab\":1}"},
    {"{\"minProperties\":1}", "{\"a\":1}", "{}"},
    {"{\"maxProperties\":0}", "{}", "{\"a\":1}"},
    {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"b\":1}", "{\"a\":1}"},
    {"{\"dependentSchemas\":{\"a\":{\"minProperties\":2}}}", "{\"b\":1}", "{\"a\":1}"},
    {"{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "2", "3"},
    {"{\"anyOf\":[{\"maximum\":1},{\"minimum\":3}]}", "4", "2"},
    {"{\"oneOf\":[{\"minimum\":1},{\"minimum\":3}]}", "2", "4"},
    {"{\"not\":{\"type\":\"string\"}}", "1", "\"\""},
    {"{\"if\":{\"minimum\":10},\"then\":{\"multipleOf\":2},\"else\":{\"multipleOf\":3}}", "9", "11"},
    {"{\"$defs\":{\"a/b\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/a~1b\"}", "null", "1"},
    {"{\"$defs\":{\"x\":{\"$anchor\":\"n\",\"type\":\"null\"}},\"items\":{\"$ref\":\"#n\"}}", "[null]", "[1]"},
    {"{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}", "{\"next\":{\"next\":{}}}",
     "{\"next\":{\"x\":{}}}"},
    {"{\"format\":\"date\",\"unknown\":1}", "\"no date\"", NULL},
    {"\"{\\\"type\\\":\\\"null\\\"}\"", "null", "1"}, /* a schema given as a text */
};

static void every_keyword(void **state)
{
    (void)state;
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "json", NULL), 0);
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        for (int k = 0; k < 2; k++) {
            const char *value = k ? RULES[i].invalid : RULES[i].valid;
            const int code = k ? TARE_VERDICT_WRONG : TARE_VERDICT_CORRECT;
            if (!value) continue;
            assert_int_equal(judge(&h, RULES[i].schema, value, "", &v), 0);
            if (v.v.code != code || v.v.reward != !k)
                fail_msg("%s under %s: %s (%s)", value, RULES[i].schema, harness_code(v.v.code), v.note);
        }
    }
    harness_close(&h);
}

static void what_is_no_schema_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {"{\"unevaluatedProperties\":false}",
                                          "{\"items\":{\"unevaluatedItems\":false}}",
                                          "{\"$ref\":\"other.json\"}",
                                          "{\"$ref\":\"#/$defs/none\"}",
                                          "{\"$defs\":{\"a\":{\"$id\":\"x\"}}}",
                                          "{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}",
                                          "{\"type\":\"text\"}",
                                          "{\"items\":[{}]}",
                                          "{\"minLength\":-1}",
                                          "{\"required\":\"a\"}",
                                          "{\"multipleOf\":0}",
                                          "{\"pattern\":\"(\"}",
                                          "{\"patternProperties\":{\"(\":{}}}",
                                          "{\"enum\":1}",
                                          "{\"allOf\":[]}",
                                          "{\"properties\":[]}",
                                          "1",
                                          "\"{\"",
                                          "{\"$dynamicRef\":\"#\"}",
                                          "{\"uniqueItems\":1}",
                                          "{\"dependentRequired\":{\"a\":\"b\"}}",
                                          NULL};
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "json", NULL), 0);
    for (int i = 0; refused[i]; i++)
        if (!judge(&h, refused[i], "1", "", &v)) fail_msg("%s was accepted as a schema", refused[i]);
    assert_int_not_equal(judge(&h, NULL, "1", "", &v), 0);
    harness_close(&h);
}

static void finds_the_value(void **state)
{
    (void)state;
    static const struct {
        const char *completion;
        int code;
    } cases[] = {{"[1, 2]", TARE_VERDICT_CORRECT},
                 {"<think>{}</think>\n[1, 2]\n", TARE_VERDICT_CORRECT},
                 {"First:\n```json\n[3]\n```\nno:\n```\n[1, 2.0]\n```\nDone.", TARE_VERDICT_CORRECT},
                 {"```json\n[1, 2]", TARE_VERDICT_CORRECT},
                 {"```json\n[1, 2]\n```\nUse it:\n```python\nprint(1)\n```", TARE_VERDICT_CORRECT},
                 {"```json\n[1, 2]\n```\nOutput:\n```\nok\n```", TARE_VERDICT_CORRECT},
                 {"```json\n[1, 2]\n```\nNo:\n```json\n[3]\n```", TARE_VERDICT_WRONG},
                 {"- the value:\n  ~~~json\n  [1, 2]\n  ~~~", TARE_VERDICT_CORRECT},
                 {"<answer>[1, 2]</answer>", TARE_VERDICT_CORRECT},
                 {"```python\n[1, 2]\n```", TARE_VERDICT_NO_ANSWER},
                 {"It is [1, 2]", TARE_VERDICT_UNPARSABLE},
                 {"[1, 2", TARE_VERDICT_UNPARSABLE},
                 {"{\"a\":1,\"a\":1}", TARE_VERDICT_UNPARSABLE},
                 {"1e999", TARE_VERDICT_UNPARSABLE},
                 {"[2, 1]", TARE_VERDICT_WRONG},
                 {"<think>[1, 2]", TARE_VERDICT_NO_ANSWER},
                 {" ", TARE_VERDICT_NO_ANSWER}};
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "json", SETTINGS("compare=answer")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(judge(&h, NULL, cases[i].completion, "[1,2]", &v), 0);
        if (v.v.code != cases[i].code) fail_msg("%s: %s (%s)", cases[i].completion, harness_code(v.v.code), v.note);
    }
    /* an answer that is not JSON is an error of the row */
    assert_int_not_equal(judge(&h, NULL, "1", "one", &v), 0);
    harness_close(&h);
    assert_int_equal(harness_open(&h, "json", SETTINGS("compare=both")), 0);
    assert_int_equal(judge(&h, "{\"type\":\"string\"}", "1", "1", &v), 0);
    assert_int_equal(v.v.code, TARE_VERDICT_WRONG);
    harness_close(&h);
}

/* An infinite schema, one that grows exponentially, a pattern that would take forever, a list
 * compared with itself. */
static void comparisons_have_a_limit(void **state)
{
    (void)state;
    static char list[70000];
    struct harness h = {0};
    struct harness_verdict v;
    size_t n = 0;
    list[n++] = '[';
    for (int i = 0; i < 10000; i++) n += (size_t)snprintf(list + n, sizeof list - n, "%d,", i);
    snprintf(list + n, sizeof list - n, "0]");
    const struct {
        const char *schema, *value;
    } cases[] = {
        {"{\"$ref\":\"#\"}", "1"},
        {"{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}},\"$ref\":\"#/$defs/a\"}", "1"},
        {"{\"pattern\":\"^(a+)+$\"}", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\""},
        {"{\"uniqueItems\":true,\"maxItems\":99999}", list}};
    assert_int_equal(harness_open(&h, "json", NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(judge(&h, cases[i].schema, cases[i].value, "", &v), 0);
        if (v.v.code != TARE_VERDICT_TIMED_OUT) fail_msg("%s: %s (%s)", cases[i].schema, harness_code(v.v.code), v.note);
    }
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_keyword), cmocka_unit_test(what_is_no_schema_is_refused),
                                       cmocka_unit_test(finds_the_value), cmocka_unit_test(comparisons_have_a_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
