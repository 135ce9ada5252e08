/* Turns of a batch, by hand: episodes, completions, both in one batch, and chosen rollouts. */
#include "check.h"

#include "batch/select.h"
#include "batch/turns.h"

#include <string.h>

enum { N = 4, T = 17 };

static struct arena arena;
static struct err e;

/* Two groups of two rollouts; a letter is a token, a small one is context. */
static struct batch made(const char *const rollouts[N])
{
    struct batch b = {.n_groups = 2, .n_rollouts = N, .n_tokens = T};
    int64_t at = 0, u = 0;
    assert_ok(batch_alloc(&b, BATCH_DATA | BATCH_ROLLOUT, &arena, &e), &e);
    assert_ok(arena_new(&arena, &b.sampled, T, &e), &e);
    assert_ok(arena_new(&arena, &b.turn_begin, N + 1, &e), &e);
    assert_ok(arena_new(&arena, &b.act_begin, T, &e), &e);
    assert_ok(arena_new(&arena, &b.act_end, T, &e), &e);
    b.group_begin[1] = 2, b.group_begin[2] = 4;
    for (int64_t i = 0; i < N; i++) {
        const char *text = rollouts[i];
        for (int64_t k = 0; text[k]; k++, at++) {
            b.ids[at] = text[k];
            b.sampled[at] = text[k] < 'a';
            if (b.sampled[at] && (!k || text[k - 1] >= 'a')) b.act_begin[u++] = k;
            if (b.sampled[at]) b.act_end[u - 1] = k + 1;
        }
        b.turn_begin[i + 1] = u;
        b.token_begin[i + 1] = at;
    }
    b.n_tokens = at;
    b.n_turns = u;
    return b;
}

static const char *const EPISODES[N] = {"ABcdE", "F", "GhIjK", "LMno"};

static void same(const int64_t *got, const int64_t *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) assert_int_equal(got[i], want[i]);
}

static void episodes(void **state)
{
    (void)state;
    static const int64_t BEGIN[] = {0, 2, 3, 6, 7}, ACTS[] = {0, 4, 5, 6, 8, 10, 11}, ENDS[] = {2, 5, 6, 7, 9, 11, 13};
    static const int64_t LENGTH[] = {3, 1, 3, 2};
    static const int32_t TURN[] = {0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0};
    const struct batch b = made(EPISODES);
    struct turns t;
    assert_ok(turns_of(&b, &arena, &t, &e), &e);
    assert_int_equal(t.n, 7);
    same(t.begin, BEGIN, 5);
    same(t.act_begin, ACTS, 7);
    same(t.act_end, ENDS, 7);
    same(t.length, LENGTH, N);
    for (int64_t u = 0; u < 7; u++) assert_int_equal(t.at[u], u);
    for (int64_t i = 0, k = 0; i < N; i++)
        for (; k < b.token_begin[i + 1]; k++) assert_int_equal(batch_turn_of(&b, i, k), TURN[k]);
    assert_int_equal(batch_count_sampled(&b, 0, b.n_tokens), 9);
    assert_memory_equal(t.sampled, b.sampled, (size_t)b.n_tokens);
}

static void completions_are_one_turn(void **state)
{
    (void)state;
    static const int64_t BEGIN[] = {0, 1, 2, 3, 4};
    struct batch b = made(EPISODES);
    struct turns t;
    b.turn_begin = NULL, b.sampled = NULL, b.n_turns = 0;
    assert_ok(turns_of(&b, &arena, &t, &e), &e);
    assert_int_equal(t.n, N);
    same(t.begin, BEGIN, N + 1);
    same(t.act_begin, b.token_begin, N);
    same(t.act_end, b.token_begin + 1, N);
    for (int64_t i = 0; i < N; i++) assert_int_equal(t.length[i], b.token_begin[i + 1] - b.token_begin[i]);
    for (int64_t k = 0; k < b.n_tokens; k++) assert_true(t.sampled[k] == 1 && batch_is_sampled(&b, k));
    for (int64_t u = 0; u < t.n; u++) assert_true(t.at[u] == -1 && t.rollout[u] == u);
}

/* Indices of acts are right wherever the rollout moves to. */
static void chosen_rollouts_keep_their_turns(void **state)
{
    (void)state;
    static const int64_t GROUPS[] = {1, 0}, ACTS[] = {0, 2, 4, 5, 9, 13, 14}, ENDS[] = {1, 3, 5, 7, 11, 14, 15};
    const struct batch b = made(EPISODES);
    struct batch out, part;
    struct turns t;
    assert_ok(batch_select(&b, (struct batch_indices){GROUPS, 2}, BATCH_ALL, &arena, &out, &e), &e);
    assert_ok(turns_of(&out, &arena, &t, &e), &e);
    assert_int_equal(t.n, 7);
    same(t.act_begin, ACTS, 7);
    same(t.act_end, ENDS, 7);
    const uint8_t keep[N] = {0, 1, 1, 0};
    assert_ok(batch_keep(&b, keep, &arena, &part, &e), &e);
    assert_ok(turns_of(&part, &arena, &t, &e), &e);
    assert_int_equal(t.n, 4);
    assert_int_equal(t.act_begin[3], 5);
    assert_int_equal(t.length[1], 3);
}

/* A rollout from elsewhere, a trace for example, has no turns: it is one, and all of its tokens are
 * sampled. */
static void a_completion_among_episodes(void **state)
{
    (void)state;
    static const int64_t AT[] = {2}, BEGIN[] = {0, 2, 3, 4, 5};
    const struct batch b = made(EPISODES);
    struct batch with = made(EPISODES), out;
    struct turns t;
    with.n_groups = with.n_rollouts = 1;
    with.group_begin[1] = 1;
    with.turn_begin = NULL, with.sampled = NULL, with.n_turns = 0;
    with.n_tokens = with.token_begin[1];
    assert_ok(batch_replace(&b, (struct batch_indices){AT, 1}, &with, &arena, &out, &e), &e);
    assert_ok(turns_of(&out, &arena, &t, &e), &e);
    same(t.begin, BEGIN, N + 1);
    assert_true(t.at[3] == -1 && t.rollout[3] == 2);
    assert_int_equal(t.act_begin[3], 6);
    assert_int_equal(t.act_end[3], 11);
    assert_int_equal(t.length[2], 5);
    assert_int_equal(batch_turn_of(&out, 2, 10), 0);
    assert_int_equal(batch_turn_of(&out, 0, 4), 1);
}

static int open_arena(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(episodes), cmocka_unit_test(completions_are_one_turn),
                                       cmocka_unit_test(chosen_rollouts_keep_their_turns),
                                       cmocka_unit_test(a_completion_among_episodes)};
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
