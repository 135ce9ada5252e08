/* The estimator mt_grpo, compared with the authors' code (data/episodes/mt_grpo.jsonl of the
 * reference data), and the bias of its variants by exact expectations. */
#include "episodes.h"

static tare_text names[] = {{"environment", 11}, {"answer", 6}};

/* A turn for the tokens before the first result, and one for those after it. */
static void read_rollout(const json_t *row, size_t i, struct sample *s)
{
    const json_t *lengths = json_array_get(json_object_get(row, "segments"), i),
                 *result = json_array_get(json_object_get(row, "first_result_segment"), i);
    const double turn = json_number_value(json_array_get(json_object_get(row, "turn_reward"), i)),
                 outcome = json_number_value(json_array_get(json_object_get(row, "outcome_reward"), i));
    int64_t n[2] = {0};
    size_t k;
    json_t *length;
    json_array_foreach(lengths, k, length) if (k % 2 == 0) n[json_is_integer(result) && k > (size_t)json_integer_value(result)] +=
        json_integer_value(length);
    s->component[s->b.n_rollouts][0] = turn;
    s->component[s->b.n_rollouts][1] = outcome;
    sample_turn(s, n[0], turn, -1);
    if (json_is_integer(result)) sample_turn(s, n[1], 0, -1);
    s->reward[s->b.n_rollouts] = turn + outcome;
    sample_end_rollout(s);
}

/* Their advantages of sampled tokens are those of our turns, in order. */
static int64_t compare_rollout(const json_t *row, size_t i, const struct sample *s)
{
    const json_t *sampled = json_array_get(json_object_get(row, "sampled"), i),
                 *want = json_array_get(json_object_get(row, "advantages"), i);
    int64_t t = s->token[i];
    size_t k;
    json_t *x;
    json_array_foreach(want, k, x)
    {
        if (!json_integer_value(json_array_get(sampled, k))) continue;
        const double A = (double)s->b.token_advantage[t++], theirs = json_number_value(x);
        if (!(fabs(A - theirs) <= 3e-5 * (1 + fabs(theirs))))
            fail_msg("%s, rollout %zu, token %zu: %.9g, expected %.9g", json_string_value(json_object_get(row, "id")), i, k, A,
                     theirs);
    }
    assert_int_equal(t, s->token[i + 1]);
    return t - s->token[i];
}

static int64_t compare_row(const json_t *row)
{
    static struct sample s;
    const size_t n = json_array_size(json_object_get(row, "segments"));
    const json_int_t size = json_integer_value(json_object_get(row, "group_size"));
    const json_t *lambda = json_object_get(json_object_get(row, "params"), "turn_advantage_coef");
    char settings[128];
    struct arena a;
    struct err e = {0};
    int64_t compared = 0;
    arena_init(&a, "test");
    sample_new(&s);
    for (size_t i = 0; i < n; i++) {
        read_rollout(row, i, &s);
        if ((json_int_t)(i + 1) % size == 0) sample_end_group(&s);
    }
    s.b.n_components = 2;
    s.b.component = s.component[0];
    snprintf(settings, sizeof settings, "outcome=verifiers;lambda=%.17g", json_number_value(lambda));
    struct estimator *est = sample_open("mt_grpo", settings, &(struct estimate_options){.component_name = names});
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    for (size_t i = 0; i < n; i++) compared += compare_rollout(row, i, &s);
    estimate_free(est);
    arena_free(&a);
    return compared;
}

static void equals_the_released_code(void **state)
{
    (void)state;
    const char *path = shared_or_skip("data/episodes/mt_grpo.jsonl");
    const int64_t n = sample_rows(path, compare_row), least = shared_is_whole(path) ? 1000 : 50;
    if (n < least) fail_msg("only %lld tokens were compared", (long long)n);
}

/* The policy stops with probability 1/2 and reward 0, or takes another turn, which pays 1. The
 * gradient of the expected reward by the logit of going on is p (1 - p) = 1/4. Returns the mean of
 * A (a - p) over the first turns of a group of three, over all eight groups. */
static double expected_gradient(const char *settings)
{
    static struct sample s;
    struct arena a;
    double sum = 0;
    arena_init(&a, "test");
    for (int group = 0; group < 8; group++) {
        sample_new(&s);
        for (int i = 0; i < 3; i++) {
            const bool more = group >> i & 1;
            sample_turn(&s, 1, more, -1);
            if (more) sample_turn(&s, 1, 0, -1);
            sample_end_rollout(&s);
        }
        sample_end_group(&s);
        sample_run(&s, "mt_grpo", settings, &a);
        for (int i = 0; i < 3; i++) sum += (double)s.b.token_advantage[s.token[i]] * ((group >> i & 1) - 0.5);
    }
    arena_free(&a);
    return sum / 8 / 3;
}

static void bias_by_turns(void **state)
{
    (void)state;
    const double unbiased = (1 - 1.0 / 3) / 4;
    assert_true(fabs(expected_gradient("turns=all;norm=none") - unbiased) < 1e-7);
    assert_true(fabs(expected_gradient("turns=first;norm=none") - unbiased) < 1e-7);
    assert_true(expected_gradient("turns=reached;norm=none") == 0); /* -E[R] for the further turn */
}

static void by_hand(void **state)
{
    static struct sample s;
    struct arena a;
    (void)state;
    arena_init(&a, "test");
    sample_new(&s); /* rewards of turns 1, 2 and the outcome 3; and the outcome 1 after a turn of 0 */
    sample_turn(&s, 2, 1, -1);
    sample_turn(&s, 1, 2, -1);
    sample_turn(&s, 1, 3, -1);
    sample_end_rollout(&s);
    sample_turn(&s, 1, 0, -1);
    sample_turn(&s, 1, 1, -1);
    sample_end_rollout(&s);
    sample_end_group(&s);
    const struct {
        const char *settings;
        float A[6];
    } cases[] = {
        {"turns=all;norm=none;lambda=2", {4, 4, 3, 1, -4, -3}}, /* 1 + 2 (1/2 + 1), 1 + 2 1, 1; and the negative */
        {"turns=reached;norm=none;lambda=2", {2, 2, 1, 1, -2, -1}},
        {"turns=first;norm=none;lambda=2", {4, 4, 1, 1, -4, -1}},
        {"turns=all;norm=none;lambda=0", {1, 1, 1, 1, -1, -1}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sample_run(&s, "mt_grpo", cases[k].settings, &a);
        for (int t = 0; t < 6; t++)
            if (s.b.token_advantage[t] != cases[k].A[t])
                fail_msg("%s, token %d: %g, expected %g", cases[k].settings, t, (double)s.b.token_advantage[t],
                         (double)cases[k].A[t]);
    }
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_the_released_code), cmocka_unit_test(bias_by_turns),
                                       cmocka_unit_test(by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
