/* The verifiers regex, format, length and repetition: each rule with cases on both sides of it. */
#include "check.h"
#include "harness.h"

#include <math.h>

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct rule {
    const char *completion, *answer;
    int code;
    double reward;
};

static void try_all(const char *plugin, const char *const *settings, const struct rule *rules, size_t n)
{
    struct harness h = {0};
    assert_int_equal(harness_open(&h, plugin, settings), 0);
    for (size_t i = 0; i < n; i++) {
        struct harness_verdict v;
        const struct rule *r = &rules[i];
        const tare_text c = {r->completion, (int64_t)strlen(r->completion)},
                        a = {r->answer ? r->answer : "", r->answer ? (int64_t)strlen(r->answer) : 0};
        assert_int_equal(harness_run(&h, c, a, (tare_text){0}, &v), 0);
        if (v.v.code != r->code || fabs(v.v.reward - r->reward) > 1e-12)
            fail_msg("%s: \"%s\": %s, %g (%s); should be %s, %g", plugin, r->completion, harness_code(v.v.code), v.v.reward, v.note,
                     harness_code(r->code), r->reward);
        assert_true(*v.note);
    }
    harness_close(&h);
}
#define TRY_ALL(PLUGIN, SETTINGS, RULES) try_all(PLUGIN, SETTINGS, RULES, sizeof(RULES) / sizeof *(RULES))

static void finds_a_pattern(void **state)
{
    (void)state;
    static const struct rule found[] = {
        {"it is 42", "", TARE_VERDICT_CORRECT, 1},    {"it is 4", "", TARE_VERDICT_WRONG, 0},
        {" \n", "", TARE_VERDICT_NO_ANSWER, 0},       {"<think>42</think> none", "", TARE_VERDICT_WRONG, 0},
        {"<think>42", "", TARE_VERDICT_NO_ANSWER, 0}, {"\xFF 42 \xC3", "", TARE_VERDICT_CORRECT, 1}};
    TRY_ALL("regex", SETTINGS("pattern=\\d{2}"), found);
    static const struct rule whole[] = {
        {" 42\n", "", TARE_VERDICT_CORRECT, 1}, {"42.", "", TARE_VERDICT_WRONG, 0}, {"a 42", "", TARE_VERDICT_WRONG, 0}};
    TRY_ALL("regex", SETTINGS("pattern=\\d{2}", "whole=true"), whole);
    static const struct rule absent[] = {
        {"fine", "", TARE_VERDICT_CORRECT, 1}, {"sorry", "", TARE_VERDICT_WRONG, 0}, {"", "", TARE_VERDICT_CORRECT, 1}};
    TRY_ALL("regex", SETTINGS("pattern=(?i)SORRY", "absent=true"), absent);
    static const struct rule thought[] = {{"<think>42</think> none", "", TARE_VERDICT_CORRECT, 1}};
    TRY_ALL("regex", SETTINGS("pattern=42", "thought=true"), thought);
}

static void compares_a_group(void **state)
{
    (void)state;
    static const struct rule rules[] = {{"## 42 ", " 42", TARE_VERDICT_CORRECT, 1},
                                        {"## 42 ", "43", TARE_VERDICT_WRONG, 0},
                                        {"42", "42", TARE_VERDICT_WRONG, 0},
                                        {"##", "", TARE_VERDICT_CORRECT, 1}};
    TRY_ALL("regex", SETTINGS("pattern=##(?<x>[ \\d]*)", "group=x"), rules);
    TRY_ALL("regex", SETTINGS("pattern=##([ \\d]*)", "group=1"), rules);
    struct harness h = {0};
    assert_int_not_equal(harness_open(&h, "regex", SETTINGS("pattern=##(?<x>.)", "group=y")), 0);
    assert_int_not_equal(harness_open(&h, "regex", SETTINGS("pattern=##(.)", "group=2")), 0);
    assert_int_not_equal(harness_open(&h, "regex", SETTINGS("pattern=##(.)", "group=1", "absent=true")), 0);
    assert_int_not_equal(harness_open(&h, "regex", SETTINGS("pattern=(")), 0);
}

/* The search would take 2^40 steps. */
static void a_search_has_a_limit(void **state)
{
    (void)state;
    static const struct rule rules[] = {{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "", TARE_VERDICT_TIMED_OUT, 0},
                                        {"aaa", "", TARE_VERDICT_CORRECT, 1}};
    TRY_ALL("regex", SETTINGS("pattern=^(a+)+$"), rules);
}

static void a_row_has_its_pattern(void **state)
{
    (void)state;
    struct harness h = {0};
    struct harness_verdict v;
    const tare_text c = {"x\"y", 3}, none = {0};
    static const char good[] = "{\"regex\":\"^x\\\"y$\"}", other[] = "{\"pattern\":\"x\"}", broken[] = "{\"regex\":\"(\"}";
    assert_int_equal(harness_open(&h, "regex", NULL), 0);
    assert_int_equal(harness_run(&h, c, none, (tare_text){good, sizeof good - 1}, &v), 0);
    assert_int_equal(v.v.code, TARE_VERDICT_CORRECT);
    assert_int_equal(harness_run(&h, c, none, (tare_text){other, sizeof other - 1}, &v), TARE_E_CONFIG);
    assert_int_equal(harness_run(&h, c, none, (tare_text){broken, sizeof broken - 1}, &v), TARE_E_CONFIG);
    assert_int_equal(harness_run(&h, c, none, none, &v), TARE_E_CONFIG);
    harness_close(&h);
}

static void knows_the_form_of_a_thought(void **state)
{
    (void)state;
    static const struct rule plain[] = {{"<think>a</think>b", "", TARE_VERDICT_CORRECT, 1},
                                        {"\n<think>a\n</think>\n\nb\n", "", TARE_VERDICT_CORRECT, 1},
                                        {"a</think>b", "", TARE_VERDICT_WRONG, 0},
                                        {"x<think>a</think>b", "", TARE_VERDICT_WRONG, 0},
                                        {"<think>a<think>a</think>b", "", TARE_VERDICT_WRONG, 0},
                                        {"<think>a</think>b<think>", "", TARE_VERDICT_WRONG, 0},
                                        {"<think>a</think></think>b", "", TARE_VERDICT_WRONG, 0},
                                        {"<think> </think>b", "", TARE_VERDICT_WRONG, 0},
                                        {"<think>a</think> ", "", TARE_VERDICT_WRONG, 0},
                                        {"<think>a", "", TARE_VERDICT_WRONG, 0},
                                        {"</think>", "", TARE_VERDICT_WRONG, 0},
                                        {" ", "", TARE_VERDICT_NO_ANSWER, 0}};
    TRY_ALL("format", NULL, plain);
    static const struct rule opened[] = {{"a</think>b", "", TARE_VERDICT_CORRECT, 1},
                                         {"<think>a</think>b", "", TARE_VERDICT_CORRECT, 1},
                                         {"a b", "", TARE_VERDICT_WRONG, 0}};
    TRY_ALL("format", SETTINGS("opened=true"), opened);
    /* begins with it, and does not repeat it */
    static const struct rule partial[] = {{"<think>a", "", TARE_VERDICT_PARTIAL, 0.4},
                                          {"<think>a</think>", "", TARE_VERDICT_PARTIAL, 0.8},
                                          {"hello", "", TARE_VERDICT_PARTIAL, 0.2}};
    TRY_ALL("format", SETTINGS("partial=true"), partial);
    static const struct rule enclosed[] = {{"<think>a</think>\n<answer>b</answer>\n", "", TARE_VERDICT_CORRECT, 1},
                                           {"<think>a</think><answer> </answer>", "", TARE_VERDICT_WRONG, 0},
                                           {"<think>a</think><answer>b</answer>c", "", TARE_VERDICT_WRONG, 0},
                                           {"<think>a</think>c<answer>b</answer>", "", TARE_VERDICT_WRONG, 0},
                                           {"<think>a</think><answer>b<answer></answer>", "", TARE_VERDICT_WRONG, 0},
                                           {"<think>a</think><answer></answer>b</answer>", "", TARE_VERDICT_WRONG, 0},
                                           {"<think>a</think><answer>", "", TARE_VERDICT_WRONG, 0},
                                           {"<think>a</think>b", "", TARE_VERDICT_WRONG, 0}};
    TRY_ALL("format", SETTINGS("answer_open=<answer>"), enclosed);
    struct harness h = {0};
    assert_int_not_equal(harness_open(&h, "format", SETTINGS("close=")), 0);
}

static void rewards_a_length(void **state)
{
    (void)state;
    static const struct rule most[] = {{"a b", "", TARE_VERDICT_CORRECT, 1},
                                       {"a b c d", "", TARE_VERDICT_CORRECT, 1},
                                       {"a b c d e", "", TARE_VERDICT_PARTIAL, 0.5},
                                       {"a b c d e\xC2\xA0"
                                        "f",
                                        "", TARE_VERDICT_WRONG, 0},
                                       {"a b c d e f g", "", TARE_VERDICT_WRONG, 0},
                                       {"", "", TARE_VERDICT_CORRECT, 1}};
    TRY_ALL("length", SETTINGS("unit=words", "length=4", "width=2"), most);
    static const struct rule target[] = {{"\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4", "", TARE_VERDICT_CORRECT, 1},
                                         {"aaa", "", TARE_VERDICT_PARTIAL, 0.75},
                                         {"\xFF\xFF\xFF\xFF\xFF", "", TARE_VERDICT_PARTIAL, 0.75},
                                         {"", "", TARE_VERDICT_WRONG, 0}};
    TRY_ALL("length", SETTINGS("unit=characters", "mode=target", "length=4", "width=4"), target);
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "length", SETTINGS("unit=words", "mode=target", "width=2", "field=words")), 0);
    assert_int_equal(harness_run(&h, (tare_text){"a b", 3}, (tare_text){0}, (tare_text){"{\"words\": 3}", 12}, &v), 0);
    assert_true(v.v.reward == 0.5);
    assert_int_equal(harness_run(&h, (tare_text){"a b", 3}, (tare_text){0}, (tare_text){"{\"words\":\"3\"}", 13}, &v),
                     TARE_E_CONFIG);
    harness_close(&h);
    assert_int_equal(harness_open(&h, "length", NULL), 0); /* the harness has no tokens */
    assert_int_equal(harness_run(&h, (tare_text){"a b", 3}, (tare_text){0}, (tare_text){0}, &v), TARE_E_CONFIG);
    harness_close(&h);
}

/* Two prompts: lengths 10, 30, 20, and 7, 7. */
static void compares_lengths_in_a_group(void **state)
{
    (void)state;
    static const int64_t tokens[] = {10, 30, 20, 7, 7}, group[] = {4, 4, 4, 5, 5};
    static const double reward[] = {0.5, -0.5, 0, 0, 0};
    tare_completion a[5];
    tare_verdict v[5];
    const tare_completion *pa[5];
    tare_verdict *pv[5];
    for (int i = 0; i < 5; i++) {
        a[i] = (tare_completion){.struct_size = sizeof a[i], .text = {"x", 1}, .group = group[i], .n_tokens = tokens[i]};
        v[i] = (tare_verdict){.struct_size = sizeof v[i]};
        pa[i] = &a[i], pv[i] = &v[i];
    }
    struct harness h = {0};
    tare_error error = {.struct_size = sizeof error};
    assert_int_equal(harness_open(&h, "length", SETTINGS("mode=group")), 0);
    assert_true(h.f->flags & TARE_VERIFIER_TOGETHER);
    assert_int_equal(h.f->verify(h.self, pa, pv, 5, &error), 0);
    for (int i = 0; i < 5; i++) assert_true(v[i].reward == reward[i]);
    assert_int_equal(v[0].code, TARE_VERDICT_CORRECT);
    assert_int_equal(v[1].code, TARE_VERDICT_WRONG);
    assert_int_equal(v[2].code, TARE_VERDICT_PARTIAL);
    harness_close(&h);
}

static void repetition_costs(void **state)
{
    (void)state;
    static const struct rule rules[] = {{"a b c d", "", TARE_VERDICT_CORRECT, 0},
                                        {"", "", TARE_VERDICT_CORRECT, 0},
                                        {"a", "", TARE_VERDICT_CORRECT, 0},
                                        {"a b a b", "", TARE_VERDICT_PARTIAL, -2.0 / 3}, /* ab ba ab */
                                        {"A b \xC3\x84 \xC3\xA4 a B", "", TARE_VERDICT_PARTIAL, -2.0 / 5},
                                        {"x x x x x", "", TARE_VERDICT_PARTIAL, -2.0 * 3 / 4}};
    TRY_ALL("repetition", SETTINGS("n=2", "penalty=2"), rules);
}

/* Text without blanks, and punctuation; below, texts that must cost nothing. */
static void repetition_without_blanks(void **state)
{
    (void)state;
    static const char *const repeats[] = {
        "\xE5\xA5\xBD\xE7\x9A\x84\xE5\xA5\xBD\xE7\x9A\x84\xE5\xA5\xBD\xE7\x9A\x84\xE5\xA5\xBD\xE7\x9A\x84",
        "\xE3\x81\xAF\xE3\x81\x84\xE3\x80\x81\xE3\x81\xAF\xE3\x81\x84\xE3\x80\x81\xE3\x81\xAF\xE3\x81\x84\xE3\x80\x82",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "hahahahahahahahahahahahahahahahaha",
        "\\frac{1}{2}+\\frac{1}{2}+\\frac{1}{2}+\\frac{1}{2}",
        "a, b, c. a b c! a b c? a b c;",
        NULL};
    static const char *const varied[] = {
        "Rindfleischetikettierungsueberwachungsaufgabenuebertragungsgesetz", "https://example.com/a/long/path/to/some/file.html",
        "\xE4\xBB\x8A\xE5\xA4\xA9\xE5\xA4\xA9\xE6\xB0\x94\xE5\xBE\x88\xE5\xA5\xBD\xEF\xBC\x8C\xE6\x88\x91",
        "It rained, then it poured. Then it stopped!", NULL};
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "repetition", NULL), 0);
    for (int k = 0; k < 2; k++)
        for (const char *const *t = k ? varied : repeats; *t; t++) {
            assert_int_equal(harness_run(&h, (tare_text){*t, (int64_t)strlen(*t)}, (tare_text){0}, (tare_text){0}, &v), 0);
            if (k ? v.v.reward < 0 : v.v.reward > -0.3) fail_msg("\"%s\": %g", *t, v.v.reward);
        }
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_pattern),
        cmocka_unit_test(compares_a_group),
        cmocka_unit_test(a_search_has_a_limit),
        cmocka_unit_test(a_row_has_its_pattern),
        cmocka_unit_test(knows_the_form_of_a_thought),
        cmocka_unit_test(rewards_a_length),
        cmocka_unit_test(compares_lengths_in_a_group),
        cmocka_unit_test(repetition_costs),
        cmocka_unit_test(repetition_without_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
