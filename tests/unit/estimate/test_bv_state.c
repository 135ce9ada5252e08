/* The estimator bv_state in its limits: one visit, many visits, and one state only. */
#include "episodes.h"

static struct err e;

static void near(double x, double wanted, double tolerance)
{
    if (!(fabs(x - wanted) <= tolerance * (1 + fabs(wanted)))) fail_msg("%.9g, expected %.9g", x, wanted);
}

/* One group of n one-turn episodes from a state. */
static void one_state(struct sample *s, const double *reward, int64_t n, int64_t key)
{
    sample_new(s);
    for (int64_t i = 0; i < n; i++) {
        sample_turn(s, 1, reward[i], key);
        sample_end_rollout(s);
    }
    sample_end_group(s);
}

static void step(struct estimator *est, struct sample *s, struct arena *a)
{
    estimate_begin(est);
    assert_ok(estimate_run(est, &s->b, a, &e), &e);
    assert_ok(estimate_apply(est, &(struct estimate_update){.updates = 1}, &e), &e);
}

/* A state that is seen once has no advantage at first, as in gigpo; with a history of rewards 1, 0, 0
 * (m1 = 1/3, variance v_prior = 1/4, mass n0 = 8) it has w (R - m1) / sqrt(w / 4). */
static void one_visit(void **state)
{
    static struct sample s;
    const double once[] = {1}, before[] = {1, 0, 0};
    const double w = exp(-0.5 / sqrt(8 + 1e-8) / 0.5);
    struct estimator *est = sample_open("bv_state", "episode=0;temperature=0.5;delta=1e-8", NULL);
    struct arena a;
    (void)state;
    arena_init(&a, "test");
    one_state(&s, once, 1, 5);
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    assert_true(s.b.token_advantage[0] == 0);
    one_state(&s, before, 3, 5);
    step(est, &s, &a);
    one_state(&s, once, 1, 5);
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    near((double)s.b.token_advantage[0], w * (1 - 1.0 / 3) / sqrt(w / 4), 1e-6);
    near(s.b.confidence[0], w, 1e-12);
    one_state(&s, once, 1, 6); /* another state has no history */
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    assert_true(s.b.token_advantage[0] == 0 && s.b.confidence[0] == 0);
    one_state(&s, once, 1, -1); /* nor has a turn without a key */
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    assert_true(s.b.token_advantage[0] == 0 && s.b.confidence[0] == 0);
    estimate_free(est);
    arena_free(&a);
}

/* With an infinite mass the baseline is the history's mean, whatever the group's. */
static void many_visits(void **state)
{
    static struct sample s;
    const double before[] = {1, 0, 0}, now[] = {1, 1, 0, 1};
    struct estimator *est = sample_open("bv_state", "episode=0;norm=none;n0=1e30", NULL);
    struct arena a;
    (void)state;
    arena_init(&a, "test");
    one_state(&s, before, 3, 5);
    step(est, &s, &a);
    one_state(&s, now, 4, 5);
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    for (int i = 0; i < 4; i++) near((double)s.b.token_advantage[i], now[i] - 1.0 / 3, 1e-6);
    estimate_free(est);
    arena_free(&a);
}

/* Episodes of up to four turns in a few states: equal numbers in both samples. */
static void some_episodes(struct sample *s, int64_t states, int64_t salt)
{
    sample_new(s);
    for (int64_t m = 0; m < 3; m++) {
        for (int64_t i = 0; i < 5; i++) {
            const int64_t turns = 1 + (m + 2 * i + salt) % 4;
            for (int64_t u = 0; u < turns; u++)
                sample_turn(s, 1, (double)((3 * i + u + m * m + salt) % 5) / 4, (7 * i + 3 * u + m) % states);
            sample_end_rollout(s);
        }
        sample_end_group(s);
    }
}

/* Without confidence in the history it is gigpo. */
static void gigpo_without_history(void **state)
{
    static struct sample s, t;
    struct arena a;
    (void)state;
    arena_init(&a, "test");
    some_episodes(&s, 4, 0);
    some_episodes(&t, 4, 0);
    sample_run(&s, "bv_state", "omega=0.7;discount=0.9;delta=1e-6", &a);
    sample_run(&t, "gigpo", "omega=0.7;gamma=0.9", &a);
    for (int64_t u = 0; u < s.b.n_turns; u++) near((double)s.b.token_advantage[u], (double)t.b.token_advantage[u], 1e-6);
    arena_free(&a);
}

/* Returns of the turns of s as the rewards of t's rollouts, which are all in one cluster. */
static void returns_as_rewards(const struct sample *s, double discount, struct sample *t)
{
    sample_new(t);
    for (int64_t m = 0; m < s->b.n_groups; m++) {
        for (int64_t i = s->group[m]; i < s->group[m + 1]; i++)
            for (int64_t u = s->turn[i]; u < s->turn[i + 1]; u++) {
                double sum = 0;
                for (int64_t k = s->turn[i + 1] - 1; k >= u; k--) sum = s->turn_reward[k] + discount * sum;
                sample_turn(t, 1, sum, 0);
                sample_end_rollout(t);
            }
        sample_end_group(t);
    }
}

/* With one state everywhere it is bv_blend on the returns of the turns, over several steps. */
static void one_state_is_bv_blend(void **state)
{
    static struct sample s, t;
    struct estimator *ours = sample_open("bv_state", "episode=0;discount=0.9;gamma=0.9;v_floor=0", NULL),
                     *blend = sample_open("bv_blend", "clusters=1", NULL);
    struct arena a;
    (void)state;
    arena_init(&a, "test");
    for (int64_t k = 0; k < 4; k++) {
        some_episodes(&s, 1, k);
        returns_as_rewards(&s, 0.9, &t);
        step(ours, &s, &a);
        step(blend, &t, &a);
        for (int64_t u = 0; u < s.b.n_turns; u++) assert_true(s.b.token_advantage[u] == (float)t.b.advantage[u]);
        for (int64_t m = 0; m < s.b.n_groups; m++) near(s.b.confidence[m], t.b.confidence[m], 1e-12);
        assert_true(k == 0 || s.b.confidence[0] > 0);
    }
    estimate_free(ours);
    estimate_free(blend);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_visit), cmocka_unit_test(many_visits),
                                       cmocka_unit_test(gigpo_without_history), cmocka_unit_test(one_state_is_bv_blend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
