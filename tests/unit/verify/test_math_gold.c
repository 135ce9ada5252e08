/* End to end: gold answers of real data sets against themselves (always right), and against a
 * neighbour's (right only if truly equal). GSM8K rows have solutions that end in the answer: these
 * are completions as a model would write them. */
#include "check.h"
#include "harness.h"

#include <jansson.h>

static tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

struct tally {
    int rows, self_wrong, neighbour_equal, solution_wrong;
};

static int judge(struct harness *h, const char *completion, const char *gold)
{
    struct harness_verdict v;
    assert_int_equal(harness_run(h, text(completion), text(gold), (tare_text){0}, &v), 0);
    return v.v.code == TARE_VERDICT_CORRECT;
}

static void run_file(struct harness *h, const char *name, struct tally *t)
{
    char path[256], *line = NULL, *last = strdup(""), *completion = malloc(65536);
    size_t capacity = 0;
    ssize_t n;
    snprintf(path, sizeof path, "data/tasks/%s.jsonl", name);
    FILE *f = fopen(shared_or_skip(path), "r");
    assert_non_null(f);
    *t = (struct tally){0};
    while ((n = getline(&line, &capacity, f)) > 0) {
        json_t *o = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        const char *gold = json_string_value(json_object_get(o, "answer")),
                   *solution = json_string_value(json_object_get(o, "solution"));
        if (gold && strlen(gold) < 4000) {
            t->rows++;
            snprintf(completion, 65536, "So the answer is $\\boxed{%s}$.", gold);
            if (!judge(h, completion, gold)) t->self_wrong++, printf("  %s is not itself\n", gold);
            if (solution && strlen(solution) < 60000) {
                snprintf(completion, 65536, "%s\n#### %s", solution, gold);
                t->solution_wrong += !judge(h, completion, gold);
            }
            snprintf(completion, 65536, "So the answer is $\\boxed{%s}$.", last);
            if (strcmp(last, gold) && judge(h, completion, gold)) t->neighbour_equal++, printf("  %s = %s\n", gold, last);
            free(last);
            last = strdup(gold);
        }
        json_decref(o);
    }
    free(line), free(last), free(completion);
    fclose(f);
    printf("%s: %d rows, %d not equal to themselves, %d solutions not right, %d equal to their neighbour\n", name, t->rows,
           t->self_wrong, t->solution_wrong, t->neighbour_equal);
}

static void test_gold(void **state)
{
    (void)state;
    struct harness h = {0};
    struct tally t;
    if (harness_open(&h, "math", NULL)) {
        SKIP("the plugin math is not built (FLINT is missing)");
    }
    static const char *const files[] = {"gsm8k_test", "gsm8k_train", "math500", "math_train", "math_test_rest"};
    /* neighbours that are equal: 120 and 120 degrees, K = 8 and 8, ... each was checked by hand */
    static const int equal[] = {0, 0, 1, 6, 3};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        run_file(&h, files[i], &t);
        const bool whole = shared_is_whole(shared_or_skip("data/tasks/gsm8k_test.jsonl"));
        assert_true(t.rows >= (whole ? 500 : 40));
        assert_int_equal(t.self_wrong, 0);
        assert_int_equal(t.solution_wrong, 0);
        if (whole)
            assert_int_equal(t.neighbour_equal, equal[i]);
        else
            assert_true(t.neighbour_equal <= equal[i]);
    }
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
