/* The verifiers exact and number, each rule with cases on both sides of it. */
#include "check.h"
#include "harness.h"

struct rule {
    const char *completion, *answer;
    int code;
    const char *extracted;
};

static void try_all(const char *plugin, const char *const *settings, const struct rule *rules, size_t n)
{
    struct harness h = {0};
    assert_int_equal(harness_open(&h, plugin, settings), 0);
    for (size_t i = 0; i < n; i++) {
        struct harness_verdict v;
        const tare_text c = {rules[i].completion, (int64_t)strlen(rules[i].completion)},
                        a = {rules[i].answer, (int64_t)strlen(rules[i].answer)};
        assert_int_equal(harness_run(&h, c, a, (tare_text){0}, &v), 0);
        if (v.v.code != rules[i].code || (rules[i].extracted && strcmp(v.extracted, rules[i].extracted)))
            fail_msg("%s: \"%s\" against \"%s\": %s, extracted \"%s\" (%s); should be %s, \"%s\"", plugin, rules[i].completion,
                     rules[i].answer, harness_code(v.v.code), v.extracted, v.note, harness_code(rules[i].code),
                     rules[i].extracted ? rules[i].extracted : "any");
        assert_true((v.v.code == TARE_VERDICT_CORRECT) == (v.v.reward == 1.0) &&
                    (v.v.code == TARE_VERDICT_CORRECT || v.v.reward == 0.0));
        assert_true(*v.note);
    }
    harness_close(&h);
}
#define TRY_ALL(PLUGIN, SETTINGS, RULES) try_all(PLUGIN, SETTINGS, RULES, sizeof(RULES) / sizeof *(RULES))

static void test_exact(void **state)
{
    (void)state;
    static const struct rule plain[] = {
        {" Paris\n", "Paris", TARE_VERDICT_CORRECT, "Paris"}, {"paris", "Paris", TARE_VERDICT_WRONG, "paris"},
        {"Paris.", "Paris", TARE_VERDICT_WRONG, NULL},        {"New  York", "New York", TARE_VERDICT_WRONG, NULL},
        {" \n", "Paris", TARE_VERDICT_NO_ANSWER, ""},         {"", "", TARE_VERDICT_CORRECT, ""}};
    TRY_ALL("exact", NULL, plain);
    static const struct rule loose[] = {{"NEW \n york", "New York", TARE_VERDICT_CORRECT, NULL},
                                        {"newyork", "New York", TARE_VERDICT_WRONG, NULL}};
    TRY_ALL("exact", ((const char *const[]){"ignore_case=true", "collapse=true", NULL}), loose);
    static const struct rule strict[] = {{"a ", "a", TARE_VERDICT_WRONG, NULL}, {"a", "a", TARE_VERDICT_CORRECT, NULL}};
    TRY_ALL("exact", ((const char *const[]){"strip=false", NULL}), strict);
}

/* A thought that the prompt opened ends at its closing tag, in each notation. */
static void test_thoughts(void **state)
{
    (void)state;
    static const char *const opened[] = {"opened=true", NULL};
    static const struct rule number[] = {
        {"5 + 5 = 10, so 10", "10", TARE_VERDICT_NO_ANSWER, ""},
        {"5 + 5 = 10</think>", "10", TARE_VERDICT_NO_ANSWER, ""},
        {"maybe 11</think>10", "10", TARE_VERDICT_CORRECT, "10"},
        {"maybe 11</thinking>10", "10", TARE_VERDICT_CORRECT, "10"},
        {"maybe 11[/THINK]10", "10", TARE_VERDICT_CORRECT, "10"},
        {"maybe 11◁/think▷10", "10", TARE_VERDICT_CORRECT, "10"},
        {"maybe 11</think>10<think>12", "10", TARE_VERDICT_NO_ANSWER, ""},
    };
    TRY_ALL("number", opened, number);
    static const struct rule own[] = {
        {"[THINK]11[/THINK]10", "10", TARE_VERDICT_CORRECT, "10"},
        {"<thinking>5 + 5 = 10", "10", TARE_VERDICT_NO_ANSWER, ""},
        {"<think>1</think>7<seed:think>10", "10", TARE_VERDICT_NO_ANSWER, ""},
    };
    TRY_ALL("number", NULL, own);
    static const struct rule exact[] = {{"10", "10", TARE_VERDICT_NO_ANSWER, ""},
                                        {"so 10</think>\n10", "10", TARE_VERDICT_CORRECT, "10"}};
    TRY_ALL("exact", opened, exact);
    static const struct rule whole[] = {{"so 10</think>\n10", "10", TARE_VERDICT_WRONG, NULL}};
    TRY_ALL("exact", NULL, whole);
}

static void test_number_without_a_limit(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {"123456789012345678901234567890", "123456789012345678901234567890", TARE_VERDICT_CORRECT, NULL},
        {"123456789012345678901234567890", "123456789012345678901234567891", TARE_VERDICT_WRONG, NULL},
        {"246913578024691357802469135780/2", "123456789012345678901234567890", TARE_VERDICT_CORRECT, NULL},
        {"246913578024691357802469135782/2", "123456789012345678901234567890", TARE_VERDICT_WRONG, NULL},
        {"99999999999999999999 1/2", "199999999999999999999/2", TARE_VERDICT_CORRECT, NULL},
        {"1000 1/1000", "1000.001", TARE_VERDICT_CORRECT, NULL},
    };
    TRY_ALL("number", NULL, rules);
}

static void test_number(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {"The sum is 3 + 4 = 7.", "7", TARE_VERDICT_CORRECT, "7"},
        {"first 7, then 8", "7", TARE_VERDICT_WRONG, "8"},
        {"no digits here", "7", TARE_VERDICT_NO_ANSWER, ""},
        {"", "7", TARE_VERDICT_NO_ANSWER, ""},
        {"it is -12", "-12", TARE_VERDICT_CORRECT, "-12"},
        {"it is \xE2\x88\x92"
         "12",
         "-12", TARE_VERDICT_CORRECT, NULL},
        {"it is +12", "12", TARE_VERDICT_CORRECT, "+12"},
        {"between 3-5", "5", TARE_VERDICT_CORRECT, "5"},
        {"10 - 5", "5", TARE_VERDICT_CORRECT, "5"},
        {"it is 12", "-12", TARE_VERDICT_WRONG, NULL},
        {"-0", "0", TARE_VERDICT_CORRECT, NULL},
        {"cost: $1,234,567.50", "1234567.5", TARE_VERDICT_CORRECT, "1,234,567.50"},
        {"-$1,000", "-1000", TARE_VERDICT_CORRECT, NULL},
        {"1,2,3", "3", TARE_VERDICT_CORRECT, "3"},
        {"1,2345", "2345", TARE_VERDICT_UNPARSABLE, NULL},
        {"0.50", "1/2", TARE_VERDICT_CORRECT, NULL},
        {".5", "0.5", TARE_VERDICT_CORRECT, ".5"},
        {"3/6", "1/2", TARE_VERDICT_CORRECT, "3/6"},
        {"\\frac{3}{6}", "0.5", TARE_VERDICT_CORRECT, NULL},
        {"-\\dfrac{3}{6}", "-0.5", TARE_VERDICT_CORRECT, NULL},
        {"\\frac{x}{2}", "2", TARE_VERDICT_UNPARSABLE, NULL},
        {"\\frac{3}{4}", "4", TARE_VERDICT_WRONG, NULL},
        {"1/3", "0.3333333333333333", TARE_VERDICT_WRONG, NULL},
        {"0.333...", "0.333", TARE_VERDICT_CORRECT, NULL},
        {"2 1/2 cups", "2.5", TARE_VERDICT_CORRECT, "2 1/2"},
        {"-2 1/2", "-5/2", TARE_VERDICT_CORRECT, "-2 1/2"},
        {"2 1/2", "1/2", TARE_VERDICT_WRONG, NULL},
        {"1/0", "0", TARE_VERDICT_UNPARSABLE, "1/0"},
        {"42.", "42", TARE_VERDICT_CORRECT, "42"},
        {"\\boxed{42}", "42", TARE_VERDICT_CORRECT, "42"},
        {"007", "7", TARE_VERDICT_CORRECT, "007"},
        {"50%", "50", TARE_VERDICT_CORRECT, "50%"},
        {"50%", "0.5", TARE_VERDICT_WRONG, NULL},
        {"1.85e5", "185000", TARE_VERDICT_CORRECT, "1.85e5"},
        {"1e999999999", "1e999999998", TARE_VERDICT_WRONG, NULL},
        {"10e999999998", "1e999999999", TARE_VERDICT_CORRECT, NULL},
        {"1e9999999999999999", "1", TARE_VERDICT_UNPARSABLE, NULL},
        {"1.85 \\times 10^5", "185000", TARE_VERDICT_CORRECT, NULL},
        {"2^5", "5", TARE_VERDICT_UNPARSABLE, NULL},
        {"on 3/4/2024", "2024", TARE_VERDICT_UNPARSABLE, NULL},
        {"at 3:45", "45", TARE_VERDICT_UNPARSABLE, NULL},
        {"10 m^2", "10", TARE_VERDICT_CORRECT, "10"},
        {"3 molecules of H2O", "3", TARE_VERDICT_CORRECT, "3"},
        {"72", "She sold 48 / 2 = 24. In all 48 + 24 = 72.\n#### 72", TARE_VERDICT_CORRECT, "72"},
        {"72", "seventy", TARE_VERDICT_UNPARSABLE, NULL},
        {"72", "71 or 72", TARE_VERDICT_UNPARSABLE, NULL},
    };
    TRY_ALL("number", NULL, rules);
}

/* A number is read whole or not at all: each pair of lines is one form, and the fragment that must not
 * be taken from it. */
static const struct rule WHOLE[] = {
    {"<think>12</think>", "12", TARE_VERDICT_NO_ANSWER, ""},
    {"<think>12", "12", TARE_VERDICT_NO_ANSWER, ""},
    {"<think>5*2=12</think>The answer is twelve.", "12", TARE_VERDICT_NO_ANSWER, ""},
    {"<think>3</think>12", "12", TARE_VERDICT_CORRECT, "12"},
    {"1 234 567", "1234567", TARE_VERDICT_CORRECT, NULL},
    {"1 234 567", "567", TARE_VERDICT_WRONG, NULL},
    {"1\xC2\xA0"
     "234",
     "1234", TARE_VERDICT_CORRECT, NULL},
    {"1\xE2\x80\xAF"
     "234",
     "1234", TARE_VERDICT_CORRECT, NULL},
    {"2019 120", "120", TARE_VERDICT_CORRECT, "120"},
    {"1'234'567", "1234567", TARE_VERDICT_CORRECT, NULL},
    {"the '70s and 12", "12", TARE_VERDICT_CORRECT, "12"},
    {"1{,}234", "1234", TARE_VERDICT_CORRECT, NULL},
    {"1\\,234", "1234", TARE_VERDICT_CORRECT, NULL},
    {"1.234.567", "1234567", TARE_VERDICT_CORRECT, NULL},
    {"1.234.567", "567", TARE_VERDICT_WRONG, NULL},
    {"1.234", "1.234", TARE_VERDICT_CORRECT, NULL},
    {"1.234,56", "1234.56", TARE_VERDICT_CORRECT, NULL},
    {"1.234,56", "56", TARE_VERDICT_WRONG, NULL},
    {"1,23,456", "123456", TARE_VERDICT_CORRECT, NULL},
    {"12,345,67", "67", TARE_VERDICT_UNPARSABLE, NULL},
    {"1,5", "5", TARE_VERDICT_UNPARSABLE, NULL},
    {"1, 5", "5", TARE_VERDICT_CORRECT, "5"},
    {"1,2,3", "3", TARE_VERDICT_CORRECT, "3"},
    {"it is \xE2\x80\x93"
     "12",
     "-12", TARE_VERDICT_CORRECT, NULL},
    {"it is \xE2\x80\x93 12", "12", TARE_VERDICT_CORRECT, NULL},
    {"3\xE2\x80\x93"
     "5",
     "5", TARE_VERDICT_CORRECT, NULL},
    {"x = - 5", "-5", TARE_VERDICT_CORRECT, NULL},
    {"- 5 apples", "5", TARE_VERDICT_CORRECT, NULL},
    {"\xEF\xBC\x91\xEF\xBC\x92", "12", TARE_VERDICT_CORRECT, NULL},
    {"\xC2\xBD", "0.5", TARE_VERDICT_CORRECT, NULL},
    {"2\xC2\xBD", "2.5", TARE_VERDICT_CORRECT, NULL},
    {"2\xC2\xBD", "2", TARE_VERDICT_WRONG, NULL},
    {"10\xC2\xB2", "10", TARE_VERDICT_UNPARSABLE, NULL},
    {"10 m\xC2\xB2", "10", TARE_VERDICT_CORRECT, "10"},
    {"3 / 4", "0.75", TARE_VERDICT_CORRECT, NULL},
    {"3 / 4", "4", TARE_VERDICT_WRONG, NULL},
    {"3 km/h", "3", TARE_VERDICT_CORRECT, "3"},
    {"\\frac34", "0.75", TARE_VERDICT_CORRECT, NULL},
    {"\\frac{-3}{4}", "-0.75", TARE_VERDICT_CORRECT, NULL},
    {"\\sqrt{16}", "16", TARE_VERDICT_UNPARSABLE, NULL},
    {"\\sqrt{16} = 4", "4", TARE_VERDICT_CORRECT, NULL},
    {"1.5 x 10^3", "1500", TARE_VERDICT_CORRECT, NULL},
    {"1.5 x 10^{-3}", "0.0015", TARE_VERDICT_CORRECT, NULL},
    {"1.5 x 10^3", "3", TARE_VERDICT_WRONG, NULL},
    {"5 x 10", "10", TARE_VERDICT_CORRECT, "10"},
    {"5 million", "5000000", TARE_VERDICT_CORRECT, NULL},
    {"5 million", "5", TARE_VERDICT_WRONG, NULL},
    {"5 millimetres", "5", TARE_VERDICT_CORRECT, "5"},
    {"$3k", "3000", TARE_VERDICT_CORRECT, NULL},
    {"3 km", "3", TARE_VERDICT_CORRECT, "3"},
    {"on 2024-01-05", "5", TARE_VERDICT_UNPARSABLE, NULL},
    {"call 555-1234", "1234", TARE_VERDICT_UNPARSABLE, NULL},
    {"between 10-15", "15", TARE_VERDICT_CORRECT, "15"},
    {"0x1F", "0", TARE_VERDICT_UNPARSABLE, NULL},
    {"0.(3)", "3", TARE_VERDICT_UNPARSABLE, NULL},
    {"So there are 40 +", "40", TARE_VERDICT_UNPARSABLE, "40"},
    {"We have $x = 42 \\cdot", "42", TARE_VERDICT_UNPARSABLE, "42"},
    {"So \\boxed{4", "4", TARE_VERDICT_UNPARSABLE, "4"},
    {"So \\boxed{4}. She has 5", "5", TARE_VERDICT_CORRECT, "5"},
    {"1. We first add.\n2.", "2", TARE_VERDICT_UNPARSABLE, "2"},
    {"It is\n2.", "2", TARE_VERDICT_CORRECT, "2"},
    {"It is 9.\n```python\nrange(1, 10)\n```", "9", TARE_VERDICT_CORRECT, "9"},
    {"```python\nprint(9)\n```\nOutput:\n```\n9\n```", "9", TARE_VERDICT_CORRECT, "9"},
    {"```python\nprint(9)\n```", "9", TARE_VERDICT_NO_ANSWER, ""},
    {"The answer is 5!", "5", TARE_VERDICT_CORRECT, "5"},
};

static void test_whole_numbers(void **state)
{
    (void)state;
    TRY_ALL("number", NULL, WHOLE);
}

static void test_parameters_of_number(void **state)
{
    (void)state;
    static const struct rule hundredth[] = {{"50%", "0.5", TARE_VERDICT_CORRECT, NULL},
                                            {"50\\%", "50", TARE_VERDICT_WRONG, NULL},
                                            {"0.5%", "1/200", TARE_VERDICT_CORRECT, NULL}};
    TRY_ALL("number", ((const char *const[]){"percent=hundredth", NULL}), hundredth);
    static const struct rule plain[] = {{"1,234", "234", TARE_VERDICT_CORRECT, NULL}};
    TRY_ALL("number", ((const char *const[]){"thousands=false", NULL}), plain);
}

/* Digit strings far beyond any machine word, and a fraction too long to multiply. */
static void test_long(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct harness h = {0};
    assert_int_equal(harness_open(&h, "number", NULL), 0);
    char *a = malloc(2 * N + 4), *b = malloc(2 * N + 4);
    memset(a, '7', N), memset(b, '7', N);
    a[N] = b[N] = '1';
    struct harness_verdict v;
    assert_int_equal(harness_run(&h, (tare_text){a, N + 1}, (tare_text){b, N + 1}, (tare_text){0}, &v), 0);
    assert_int_equal(v.v.code, TARE_VERDICT_CORRECT);
    b[N] = '2';
    assert_int_equal(harness_run(&h, (tare_text){a, N + 1}, (tare_text){b, N + 1}, (tare_text){0}, &v), 0);
    assert_int_equal(v.v.code, TARE_VERDICT_WRONG);
    a[N] = '/', memset(a + N + 1, '3', N);
    assert_int_equal(harness_run(&h, (tare_text){a, 2 * N + 1}, (tare_text){b, N + 1}, (tare_text){0}, &v), 0);
    assert_int_equal(v.v.code, TARE_VERDICT_UNPARSABLE);
    assert_int_equal(harness_run(&h, (tare_text){"a\0b 5", 5}, (tare_text){"5", 1}, (tare_text){0}, &v), 0);
    assert_int_equal(v.v.code, TARE_VERDICT_CORRECT);
    free(a), free(b);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact),
                                       cmocka_unit_test(test_thoughts),
                                       cmocka_unit_test(test_number),
                                       cmocka_unit_test(test_whole_numbers),
                                       cmocka_unit_test(test_parameters_of_number),
                                       cmocka_unit_test(test_number_without_a_limit),
                                       cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
