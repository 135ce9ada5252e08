/* The choice verifier against the labelled cases, and rules without cases: permuted options, option
 * texts. */
#include "cases.h"
#include "check.h"

static void test_cases(void **state)
{
    (void)state;
    struct harness h = {0};
    struct case_file f;
    assert_int_equal(harness_open(&h, "choice", NULL), 0);
    assert_int_equal(cases_read(shared_or_skip("data/verify/choice.jsonl"), &f), 0);
    for (int64_t i = 0; i < f.n; i++) { /* the row defines the letters */
        char *old = f.c[i].row_text;
        f.c[i].row_text = malloc(64);
        snprintf(f.c[i].row_text, 64, "{\"letters\":\"%s\"}", json_string_value(json_object_get(f.c[i].object, "letters")));
        f.c[i].row = (tare_text){f.c[i].row_text, (int64_t)strlen(f.c[i].row_text)};
        free(old);
    }
    cases_judge(&h, &f);
    int64_t rows = 0, wrong = 0, fp = 0, letters = 0;
    for (int64_t i = 0; i < f.n; i++) {
        const struct one_case *c = &f.c[i];
        const bool yes = c->verdict == TARE_VERDICT_CORRECT, letter = !strcmp(c->got, c->extracted ? c->extracted : "");
        if ((yes != c->truth || !letter) && getenv("CASES_VERBOSE"))
            printf("  %s %s gold %s took \"%s\" not \"%s\"%s: %.*s\n", c->id, c->kind, c->gold.data, c->got,
                   c->extracted ? c->extracted : "", c->policy ? " (policy)" : "", (int)(c->pred.size < 100 ? c->pred.size : 100),
                   c->pred.data + (c->pred.size < 100 ? 0 : c->pred.size - 100));
        letters += letter;
        if (c->policy) continue;
        rows++, wrong += yes != c->truth, fp += yes && !c->truth;
    }
    printf("choice %lld rows: wrong %lld (false positives %lld); letters as labelled in %lld of %lld\n", (long long)rows,
           (long long)wrong, (long long)fp, (long long)letters, (long long)f.n);
    assert_int_equal(fp, 0);
    assert_true((double)wrong <= 0.01 * (double)rows);
    cases_free(&f);
    harness_close(&h);
}

struct rule {
    const char *completion, *answer, *row;
    int code;
    const char *letter;
};

static void test_rules(void **state)
{
    (void)state;
    static const char options[] = "{\"choices\":[\"Paris\",\"London\",\"42\",\"a rock\"]}";
    static const struct rule rules[] = {
        {"The answer is London.", "B", options, TARE_VERDICT_CORRECT, "B"},
        {"\\boxed{\\text{Paris}}", "London", options, TARE_VERDICT_WRONG, "A"},
        {"\\boxed{42}", "C", options, TARE_VERDICT_CORRECT, "C"},
        {"Answer: 43", "C", options, TARE_VERDICT_NO_ANSWER, ""},
        {"The answer is (E).", "A", options, TARE_VERDICT_NO_ANSWER, ""},
        {"The answer is (E).", "E", "{}", TARE_VERDICT_CORRECT, "E"},
        {"The answer is B.", "Rome", options, TARE_VERDICT_UNPARSABLE, "B"},
        {"The correct answer is A because it rains.", "A", "{}", TARE_VERDICT_CORRECT, "A"},
        {"The answer is A good one.", "A", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"The answer is not B.", "B", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"Options B and C are right.", "B", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"I think I like it.", "I", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"<think>\\boxed{B}</think>", "B", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"<think>So \\boxed{B}", "B", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"The answer is B, as the others fail.", "B", "{}", TARE_VERDICT_CORRECT, "B"},
        {"The answer is B. A cat is no dog.", "B", "{}", TARE_VERDICT_CORRECT, "B"},
        {"\\boxed{B}, where \\boxed", "B", "{}", TARE_VERDICT_CORRECT, "B"},
        {"B. colder than ice\n\nThis follows from the text.", "B", "{}", TARE_VERDICT_CORRECT, "B"},
        {"A. hot\nB. cold\nC. mild", "B", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"A more precise one exists, but \"D\" is the correct answer.", "D", "{}", TARE_VERDICT_CORRECT, "D"},
        {"B is correct. It is cold.", "B", "{}", TARE_VERDICT_CORRECT, "B"},
        {"Option D is the only valid choice.", "D", "{}", TARE_VERDICT_CORRECT, "D"},
        {"The most suitable one here is option C.", "C", "{}", TARE_VERDICT_CORRECT, "C"},
        {"Vitamin C is good.\nA is a letter.", "A", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"The sentence \"C\" is wrong.", "C", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"There is option C, and there is option D.", "D", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"\\boxed{A}\\boxed{}", "A", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"The answer is \\boxed{B", "B", "{}", TARE_VERDICT_CORRECT, "B"},
        {"First \\boxed{A}. No: $\\boxed{\\text{B", "B", "{}", TARE_VERDICT_CORRECT, "B"},
        {"First \\boxed{A}. No: \\boxed{B or", "A", "{}", TARE_VERDICT_NO_ANSWER, ""},
        {"The answer is A. \\boxed{", "A", "{}", TARE_VERDICT_CORRECT, "A"},
        {"\\boxed{B . The answer is C.", "C", "{}", TARE_VERDICT_CORRECT, "C"},
    };
    struct harness h = {0};
    assert_int_equal(harness_open(&h, "choice", NULL), 0);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];
        struct harness_verdict v;
        assert_int_equal(harness_run(&h, (tare_text){r->completion, (int64_t)strlen(r->completion)},
                                     (tare_text){r->answer, (int64_t)strlen(r->answer)},
                                     (tare_text){r->row, (int64_t)strlen(r->row)}, &v),
                         0);
        if (v.v.code != r->code || strcmp(v.extracted, r->letter))
            fail_msg("\"%s\" against \"%s\": %s \"%s\" (%s); should be %s \"%s\"", r->completion, r->answer, harness_code(v.v.code),
                     v.extracted, v.note, harness_code(r->code), r->letter);
    }
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
