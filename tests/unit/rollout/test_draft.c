/* Drafts: the continuation of the longest suffix that occurred before, in the sequence or in its
 * group, with a chance that follows what came true; and a bounded memory. */
#include "check.h"

#include "rollout/draft.h"

#include "base/arena.h"
#include "base/rng.h"

static struct err e;

static int64_t propose(struct drafts *d, int64_t handle, int64_t most, int32_t *ids)
{
    double chance[DRAFT_MOST];
    const int64_t n = drafts_propose(d, handle, most, ids, chance);
    for (int64_t i = 0; i < n; i++) assert_true(chance[i] > 0 && chance[i] <= (i ? chance[i - 1] : 1));
    return n;
}

static void append(struct drafts *d, int64_t handle, const int32_t *ids, int64_t n)
{
    assert_ok(drafts_append(d, handle, ids, n, &e), &e);
}

#define EXPECT(D, HANDLE, MOST, ...)                                                                                               \
    do {                                                                                                                           \
        const int32_t want_[] = {__VA_ARGS__};                                                                                     \
        int32_t got_[DRAFT_MOST];                                                                                                  \
        assert_int_equal(propose(D, HANDLE, MOST, got_), sizeof want_ / sizeof *want_);                                            \
        assert_memory_equal(got_, want_, sizeof want_);                                                                            \
    } while (0)

static void continuation_of_the_longest_suffix(void **state)
{
    (void)state;
    const int32_t first[] = {1, 2, 3, 4, 50, 51, 3, 4, 60, 61, 9, 2, 3, 4}, next[] = {50};
    int32_t ids[DRAFT_MOST];
    struct drafts *d;
    assert_ok(drafts_new(&d, &e), &e);
    const int64_t s = drafts_open(d, 7);
    append(d, s, first, 1);
    assert_int_equal(propose(d, s, 5, ids), 0); /* nothing occurred before */
    append(d, s, first + 1, 13);
    EXPECT(d, s, 3, 50, 51, 3); /* after 2 3 4, although 3 4 was followed by 60 more recently */
    assert_int_equal(drafts_length(d, s), 14);
    append(d, s, next, 1);
    EXPECT(d, s, 5, 51, 3, 4, 60, 61);
    append(d, s, first, 1); /* a token that was not expected, and 50 1 is new */
    assert_int_equal(propose(d, s, 5, ids), 0);
    drafts_free(d);
}

static void a_loop_goes_on(void **state)
{
    (void)state;
    const int32_t loop[] = {8, 5, 6, 7, 5, 6, 7, 5, 6};
    struct drafts *d;
    assert_ok(drafts_new(&d, &e), &e);
    const int64_t s = drafts_open(d, 0);
    append(d, s, loop, 9);
    EXPECT(d, s, 8, 7, 5, 6, 7, 5, 6, 7, 5);
    drafts_free(d);
}

static void siblings_and_other_groups(void **state)
{
    (void)state;
    const int32_t ahead[] = {1, 2, 3, 4, 5}, behind[] = {9, 2, 3}, next[] = {4, 5, 6};
    int32_t ids[DRAFT_MOST];
    struct drafts *d;
    assert_ok(drafts_new(&d, &e), &e);
    const int64_t a = drafts_open(d, 1), b = drafts_open(d, 1), other = drafts_open(d, 2);
    append(d, a, ahead, 5);
    append(d, b, behind, 3);
    append(d, other, behind, 3);
    EXPECT(d, b, 5, 4, 5); /* as far as the sibling is */
    assert_int_equal(propose(d, other, 5, ids), 0);
    append(d, b, next, 2);
    assert_int_equal(propose(d, b, 5, ids), 0);
    append(d, a, next + 2, 1); /* the sibling is ahead again, but nothing was appended to b */
    append(d, b, next + 2, 1);
    assert_int_equal(propose(d, b, 5, ids), 0);
    drafts_free(d);
}

/* The chance of a first draft after matches of two tokens. */
static double chance_after(bool right)
{
    struct drafts *d;
    double chance[DRAFT_MOST];
    int32_t ids[DRAFT_MOST];
    assert_ok(drafts_new(&d, &e), &e);
    const int64_t s = drafts_open(d, 0);
    for (int32_t i = 0; i < 20; i++) { /* 100 200 x: the same x or another */
        const int32_t text[] = {i, 100, 200, right ? 300 : 400 + i};
        append(d, s, text, 4);
    }
    const int32_t suffix[] = {99, 100, 200};
    append(d, s, suffix, 3);
    assert_int_equal(drafts_propose(d, s, 1, ids, chance), 1);
    drafts_free(d);
    return chance[0];
}

static void chances_follow_what_came_true(void **state)
{
    (void)state;
    assert_true(chance_after(true) > 0.8);
    assert_true(chance_after(false) < 0.1);
}

/* More sequences than there is space for: the handles of those that lost their place are unknown,
 * and those in use stay. */
static void memory_is_bounded(void **state)
{
    (void)state;
    const struct rng_key key = rng_key(1, RNG_DATA);
    int64_t handle[3 * DRAFT_SOURCES], length[3 * DRAFT_SOURCES] = {0}, kept = 0;
    struct drafts *d;
    assert_ok(drafts_new(&d, &e), &e);
    for (int64_t i = 0; i < 3 * DRAFT_SOURCES; i++) {
        handle[i] = drafts_open(d, (uint64_t)(i % 3));
        assert_true(handle[i] != 0);
        for (int64_t k = 0; k <= i; k += 1 + i / 4) { /* some of the earlier ones, among them the first */
            int32_t ids[40], drafts[DRAFT_MOST];
            const int64_t n = (int64_t)rng_below(key, (uint64_t)(i * 1000 + k), 40);
            if (drafts_length(d, handle[k]) < 0) continue;
            assert_int_equal(drafts_length(d, handle[k]), length[k]);
            for (int64_t t = 0; t < n; t++) ids[t] = (int32_t)rng_below(key, (uint64_t)(i + k + t), 5);
            append(d, handle[k], ids, n);
            length[k] += n;
            assert_true(propose(d, handle[k], DRAFT_MOST, drafts) <= DRAFT_MOST);
        }
    }
    for (int64_t i = 0; i < 3 * DRAFT_SOURCES; i++) kept += drafts_length(d, handle[i]) >= 0;
    assert_int_equal(kept, DRAFT_SOURCES);
    assert_int_equal(drafts_length(d, handle[0]), length[0]);
    assert_int_equal(drafts_length(d, 0), -1);
    drafts_clear(d);
    assert_int_equal(drafts_length(d, handle[0]), -1);
    drafts_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(continuation_of_the_longest_suffix), cmocka_unit_test(a_loop_goes_on),
                                       cmocka_unit_test(siblings_and_other_groups), cmocka_unit_test(chances_follow_what_came_true),
                                       cmocka_unit_test(memory_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
