/* The accounting of a region: blocks never overlap and are inside it, released blocks join until
 * the whole is one block again, and requests that do not fit are refused. */
#include "check.h"
#include "region.h"

enum { SIZE = 64 * REGION_ALIGN, PIECES = 64 };

static void blocks_in_random_order(void **state)
{
    (void)state;
    struct region r;
    unsigned char owner[SIZE / REGION_ALIGN] = {0};
    int64_t at[PIECES], size[PIECES];
    int used[PIECES] = {0};
    uint32_t x = 12345;
    int64_t refused = 0, most = 0, held = 0;
    assert_true(region_open(&r, SIZE));
    for (int round = 0; round < 20000; round++) {
        x = x * 1664525u + 1013904223u;
        const int i = (int)(x >> 26) % PIECES;
        if (used[i]) {
            assert_int_equal(region_give(&r, at[i]), size[i]);
            assert_int_equal(region_give(&r, at[i]), 0); /* only once */
            for (int64_t u = at[i] / REGION_ALIGN; u < (at[i] + size[i]) / REGION_ALIGN; u++) {
                assert_int_equal(owner[u], i + 1);
                owner[u] = 0;
            }
            held -= size[i];
            used[i] = 0;
            continue;
        }
        const int64_t bytes = (int64_t)(x >> 8) % (12 * REGION_ALIGN);
        size[i] = region_round(bytes);
        at[i] = region_take(&r, bytes);
        int64_t run = 0, longest = 0; /* the result of a walk over the map */
        for (int u = 0; u < SIZE / REGION_ALIGN; u++) {
            run = owner[u] ? 0 : run + REGION_ALIGN;
            if (run > longest) longest = run;
        }
        assert_true((at[i] < 0) == (longest < size[i]));
        refused += at[i] < 0;
        if (at[i] < 0) continue;
        assert_true(at[i] % REGION_ALIGN == 0 && at[i] + size[i] <= SIZE);
        for (int64_t u = at[i] / REGION_ALIGN; u < (at[i] + size[i]) / REGION_ALIGN; u++) {
            assert_int_equal(owner[u], 0);
            owner[u] = (unsigned char)(i + 1);
        }
        used[i] = 1;
        held += size[i];
        if (held > most) most = held;
        assert_true(r.held == held && r.most == most && region_largest(&r) <= SIZE - held);
    }
    assert_true(refused > 100);
    for (int i = 0; i < PIECES; i++)
        if (used[i]) assert_int_equal(region_give(&r, at[i]), size[i]);
    assert_true(r.n == 1 && r.held == 0 && region_largest(&r) == SIZE);
    region_close(&r);
}

static void sizes_at_the_border(void **state)
{
    (void)state;
    struct region r;
    assert_true(region_open(&r, SIZE));
    assert_int_equal(region_take(&r, SIZE + 1), -1);
    assert_int_equal(region_take(&r, INT64_MAX), -1);
    assert_int_equal(region_take(&r, SIZE), 0);
    assert_int_equal(region_take(&r, 0), -1); /* a block of no bytes is also refused */
    assert_int_equal(region_give(&r, REGION_ALIGN), 0);
    assert_int_equal(region_give(&r, -1), 0);
    assert_int_equal(region_give(&r, 0), SIZE);
    assert_int_equal(region_take(&r, 0), 0);
    assert_int_equal(region_take(&r, 1), REGION_ALIGN);
    region_close(&r);
    assert_int_equal(region_take(&r, 1), -1);
}

/* The smallest hole that is large enough is used, so large holes remain. */
static void the_best_hole(void **state)
{
    (void)state;
    struct region r;
    int64_t at[5];
    static const int64_t units[5] = {8, 1, 3, 1, 20};
    assert_true(region_open(&r, SIZE));
    for (int i = 0; i < 5; i++) at[i] = region_take(&r, units[i] * REGION_ALIGN);
    region_give(&r, at[0]);
    region_give(&r, at[2]);
    assert_int_equal(region_take(&r, 3 * REGION_ALIGN), at[2]);
    assert_int_equal(region_take(&r, 8 * REGION_ALIGN), at[0]);
    region_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_in_random_order), cmocka_unit_test(sizes_at_the_border),
                                       cmocka_unit_test(the_best_hole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
