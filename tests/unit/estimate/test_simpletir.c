/* The estimator simpletir: rollouts with void turns count in the group and not in the loss. */
#include "episodes.h"

static void void_turns_have_no_weight(void **state)
{
    static struct sample s;
    static int32_t calls[] = {1, 0, 1, 0, 0, 0, 0, 1, 1};
    /* call, answer; call, nothing; neither call nor answer before an answer; an answer at once;
     * calls without an answer */
    const int turns[] = {2, 2, 2, 1, 2};
    const int32_t verdicts[] = {TARE_VERDICT_CORRECT, TARE_VERDICT_NO_ANSWER, TARE_VERDICT_CORRECT, TARE_VERDICT_WRONG,
                                TARE_VERDICT_NO_ANSWER};
    const double weights[] = {1, 0, 0, 1, 1}, rewards[] = {1, 0, 1, 0, 0};
    const double sigma = sqrt((2 * 0.36 + 3 * 0.16) / 4);
    struct arena a;
    (void)state;
    arena_init(&a, "test");
    sample_new(&s);
    for (int i = 0; i < 5; i++) {
        for (int u = 0; u < turns[i]; u++) sample_turn(&s, 1, u == turns[i] - 1 ? rewards[i] : 0, -1);
        sample_end_rollout(&s);
        s.verdict[i] = verdicts[i];
    }
    sample_end_group(&s);
    s.b.turn_calls = calls;
    sample_run(&s, "simpletir", "", &a);
    for (int i = 0; i < 5; i++) {
        assert_true(s.b.rollout_weight[i] == weights[i]);
        assert_true(fabs(s.b.advantage[i] - (rewards[i] - 0.4) / (sigma + 1e-6)) < 1e-12);
    }
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(void_turns_have_no_weight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
