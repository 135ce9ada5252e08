/* The verifier ifeval: responses with the verdicts of the published program (tests/data/ifeval,
 * written by bench/verify_ifeval.py --golden), and cases beyond it: rewards of several
 * instructions, languages, missing fields of a row. */
#include "check.h"
#include "harness.h"

#include <jansson.h>
#include <math.h>

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

static void expect(struct harness *h, const json_t *o, const char *row, bool followed)
{
    struct harness_verdict v;
    const json_t *completion = json_object_get(o, "completion");
    const tare_text c = {json_string_value(completion), (int64_t)json_string_length(completion)};
    assert_int_equal(harness_run(h, c, text(""), text(row), &v), 0);
    if ((v.v.reward > 0) != followed)
        fail_msg("%s: %s (%s), should be %s", row, harness_code(v.v.code), v.note, followed ? "followed" : "not");
    assert_true(v.v.code == (followed                             ? TARE_VERDICT_CORRECT
                             : v.v.code == TARE_VERDICT_NO_ANSWER ? TARE_VERDICT_NO_ANSWER
                                                                  : TARE_VERDICT_WRONG));
}

static void as_the_published_program(void **state)
{
    (void)state;
    char path[4096], line[8192];
    struct harness strict = {0}, loose = {0};
    int64_t n = 0, followed[2] = {0};
    snprintf(path, sizeof path, "%s/tests/data/ifeval/cases.jsonl", getenv("SOURCE"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(harness_open(&strict, "ifeval", SETTINGS("thought=true")), 0);
    assert_int_equal(harness_open(&loose, "ifeval", SETTINGS("thought=true", "mode=loose")), 0);
    for (; fgets(line, sizeof line, f); n++) {
        json_t *o = json_loads(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(o);
        const bool wanted[2] = {json_is_true(json_object_get(o, "strict")), json_is_true(json_object_get(o, "loose"))};
        expect(&strict, o, line, wanted[0]);
        expect(&loose, o, line, wanted[1]);
        followed[0] += wanted[0];
        followed[1] += wanted[1];
        json_decref(o);
    }
    fclose(f);
    assert_true(n > 200 && followed[0] > 80 && followed[1] > followed[0] && followed[1] < n);
    harness_close(&strict);
    harness_close(&loose);
}

static void judge(const char *const *settings, const char *completion, const char *row, int code, double reward)
{
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "ifeval", settings), 0);
    assert_int_equal(harness_run(&h, text(completion), text(""), text(row), &v), 0);
    if (v.v.code != code || fabs(v.v.reward - reward) > 1e-12)
        fail_msg("'%s' %s: %s, %g (%s)", completion, row, harness_code(v.v.code), v.v.reward, v.note);
    harness_close(&h);
}

#define TWO(A, B) "{\"instruction_id_list\":[\"punctuation:no_comma\",\"" A "\"],\"kwargs\":[{}," B "]}"
#define LANGUAGE(L) "{\"instruction_id_list\":[\"language:response_language\"],\"kwargs\":[{\"language\":\"" L "\"}]}"

static void several_instructions(void **state)
{
    (void)state;
    static const char row[] =
        TWO("length_constraints:number_words", "{\"num_words\":3.0,\"relation\":\"at least\",\"letter\":null}");
    judge(NULL, "one two three", row, TARE_VERDICT_CORRECT, 1);
    judge(NULL, "one two", row, TARE_VERDICT_WRONG, 0);
    judge(SETTINGS("partial=true"), "one two", row, TARE_VERDICT_PARTIAL, 0.5);
    judge(SETTINGS("partial=true"), "one, two", row, TARE_VERDICT_WRONG, 0);
    judge(NULL, " \n", row, TARE_VERDICT_NO_ANSWER, 0);
    judge(NULL, "<think>a, b</think>one two three", row, TARE_VERDICT_CORRECT, 1);
    judge(SETTINGS("thought=true"), "<think>a, b</think>one two three", row, TARE_VERDICT_WRONG, 0);
    judge(NULL, "one \xFF two three \xC3", row, TARE_VERDICT_CORRECT, 1);
    judge(NULL, "Sure, here:\none two three", row, TARE_VERDICT_WRONG, 0);
    judge(SETTINGS("mode=loose"), "Sure, here:\none two three", row, TARE_VERDICT_CORRECT, 1);
}

static void languages(void **state)
{
    (void)state;
    /* two of four letters */
    judge(NULL, "\xEC\x95\x88\xEB\x85\x95 ok", LANGUAGE("ko"), TARE_VERDICT_WRONG, 0);
    judge(NULL, "\xEC\x95\x88\xEB\x85\x95\xED\x95\x98 ok", LANGUAGE("ko"), TARE_VERDICT_CORRECT, 1);
    judge(SETTINGS("language=script"), "Guten Tag", LANGUAGE("de"), TARE_VERDICT_CORRECT, 1);
    judge(SETTINGS("language=script"), "Guten Tag", LANGUAGE("ru"), TARE_VERDICT_WRONG, 0);
    judge(SETTINGS("language=skip"), "Guten Tag", LANGUAGE("ru"), TARE_VERDICT_CORRECT, 1);
}

static void rows_that_lack_something(void **state)
{
    (void)state;
    static const struct {
        const char *row, *says;
    } rows[] = {
        {"{}", "needs instruction_id_list and kwargs"},
        {"{\"instruction_id_list\":[\"startend:quotation\"],\"kwargs\":[]}", "two lists of the same length"},
        {"{\"instruction_id_list\":[\"startend:quotation\"],\"kwargs\":[1]}", "instruction 1 is invalid"},
        {TWO("startend:none", "{}"), "names the unknown instruction 'startend:none': must be one of IFEval's 25"},
        {TWO("length_constraints:number_words", "{\"relation\":\"at least\"}"), "need \"num_words\", a whole number"},
        {TWO("length_constraints:number_words", "{\"num_words\":1.5,\"relation\":\"at least\"}"),
         "need \"num_words\", a whole number"},
        {TWO("length_constraints:number_words", "{\"num_words\":1,\"relation\":\"most\"}"), "need \"relation\", either"},
        {TWO("keywords:existence", "{\"keywords\":[]}"), "need \"keywords\", a list of words"},
        {TWO("keywords:existence", "{\"keywords\":[\"(\"]}"), "the pattern '(' cannot be read"},
        {TWO("startend:end_checker", "{}"), "need \"end_phrase\", a text"},
        {LANGUAGE("de"), "\"de\" shares its letters with other languages"},
        {LANGUAGE("xx"), "language = \"xx\": must be one of the data set's 30"},
    };
    struct harness h = {0};
    assert_int_equal(harness_open(&h, "ifeval", NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_error error = {.struct_size = sizeof error};
        tare_verdict v = {.struct_size = sizeof v}, *verdict = &v;
        const tare_completion a = {.struct_size = sizeof a, .text = text("one two"), .row = text(rows[i].row)};
        const tare_completion *answer = &a;
        assert_int_equal(h.f->verify(h.self, &answer, &verdict, 1, &error), TARE_E_CONFIG);
        if (!strstr(error.message, rows[i].says)) fail_msg("%s: %s", rows[i].row, error.message);
    }
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_published_program),
        cmocka_unit_test(several_instructions),
        cmocka_unit_test(languages),
        cmocka_unit_test(rows_that_lack_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
