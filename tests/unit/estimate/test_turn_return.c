/* The estimator turn_return on episodes that were computed by hand. */
#include "check.h"
#include "estimate/estimate.h"

#include <math.h>

enum { N = 5, T = 12 };

static void near(double x, double wanted)
{
    if (!(fabs(x - wanted) <= 1e-6)) fail_msg("%.9g, expected %.9g", x, wanted);
}

/* Group 0: episodes with the rewards 1, 0; 0, 1; 1. Group 1: completions without turns. */
static void run(const char *gamma, struct arena *a, struct batch *b)
{
    static int64_t group[] = {0, 3, 5}, turn[] = {0, 2, 4, 5, 5, 5}, begin[] = {0, 3, 0, 2, 0}, end[] = {2, 4, 1, 3, 1};
    static int64_t token[] = {0, 4, 7, 8, 10, 12};
    static uint8_t finish[N], turn_finish[5], sampled[T] = {1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1};
    static uint64_t uid[] = {7, 8};
    static double reward[N] = {1, 1, 1, 1, 0}, turn_reward[] = {1, 0, 0, 1, 1};
    static int32_t verdict[N] = {1, 1, 1, 1, 2}, ids[T];
    static float numbers[T];
    struct err e = {0};
    struct estimator *est;
    struct config_param settings = {.section = "estimator.turn_return", .key = "gamma", .value = gamma, .where = "test"};
    *b = (struct batch){.n_groups = 2,
                        .n_rollouts = N,
                        .n_turns = 5,
                        .n_tokens = T,
                        .group_begin = group,
                        .token_begin = token,
                        .turn_begin = turn,
                        .act_begin = begin,
                        .act_end = end,
                        .turn_finish = turn_finish,
                        .turn_reward = turn_reward,
                        .sampled = sampled,
                        .finish = finish,
                        .prompt_uid = uid,
                        .reward = reward,
                        .verdict = verdict,
                        .ids = ids,
                        .logprob = numbers,
                        .entropy = numbers};
    assert_ok(estimate_open(&(struct estimate_options){.plugin = "turn_return", .settings = &settings}, &est, &e), &e);
    assert_ok(estimate_run(est, b, a, &e), &e);
    estimate_free(est);
}

static void by_hand(void **state)
{
    static const struct {
        const char *gamma;
        double first[3], second[2]; /* A of the first and of the second turns of group 0 */
    } cases[] = {
        /* returns 1, 0.5, 1: mean 5/6, deviation 0.288675; then 0, 1 */
        {"0.5", {0.5773503, -1.1547005, 0.5773503}, {-0.7071068, 0.7071068}},
        /* rewards of the turn alone: 1, 0, 1 */
        {"0", {0.5773503, -1.1547005, 0.5773503}, {-0.7071068, 0.7071068}},
        /* all returns are 1: exactly 0 */
        {"1", {0, 0, 0}, {-0.7071068, 0.7071068}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct arena a;
        struct batch b;
        arena_init(&a, "test");
        run(cases[k].gamma, &a, &b);
        const float *A = b.token_advantage;
        near((double)A[0], cases[k].first[0]);
        near((double)A[1], cases[k].first[0]);
        near((double)A[2], 0); /* context */
        near((double)A[3], cases[k].second[0]);
        near((double)A[4], cases[k].first[1]);
        near((double)A[6], cases[k].second[1]);
        near((double)A[7], cases[k].first[2]);
        if (k == 2) assert_true(A[0] == 0 && A[4] == 0 && A[7] == 0);
        near((double)A[8], 0.7071068); /* grpo */
        near((double)A[11], -0.7071068);
        near(b.advantage[1], cases[k].first[1]);
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
