/* Scores of given tokens: a failed operation is an error without values. */
#include "unit/model/small.h"

#include "fault.h"
#include "infer/score.h"

static void failed_operation(void **state)
{
    (void)state;
    static const int32_t ids[] = {1, 5, 7, 9};
    static const int64_t begin[] = {0, 4};
    const struct score_lines lines = {.ids = ids, .begin = begin, .n = 1, .temperature = 1};
    float logprob[3], entropy[3];
    struct err e = {0};
    struct scorer *s;
    struct model *m = small_model(SMALL_ARCHS[0], false, NULL);
    assert_ok(scorer_new(m, &s, &e), &e);
    assert_ok(scorer_run(s, &lines, logprob, entropy, &e), &e);
    kernel_fail(&m->ctx, TARE_E_NOMEM, "no memory for a product");
    assert_int_equal(scorer_run(s, &lines, logprob, entropy, &e), TARE_E_NOMEM);
    assert_non_null(strstr(e.message, "no memory for a product"));
    scorer_free(s);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failed_operation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
