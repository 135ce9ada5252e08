/* Figures of a step: as many as the loop records, and an error for one more. */
#include "check.h"

#include "loop/step_metrics.h"

static void one_too_many(void **state)
{
    (void)state;
    static struct run r;
    static char names[FIGURES + 1][16];
    struct err e = {0};
    for (int i = 0; i < FIGURES; i++) {
        snprintf(names[i], sizeof names[i], "time/%d", i);
        assert_ok(figure_add(&r, names[i], 1, &e), &e);
    }
    assert_ok(figure_add(&r, names[0], 2, &e), &e); /* an existing figure grows */
    assert_true(r.figures[0].value == 3);
    assert_int_equal(figure_add(&r, "time/more", 1, &e), TARE_E_STATE);
    assert_non_null(strstr(e.message, "time/more"));
    assert_int_equal(r.n_figures, FIGURES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
