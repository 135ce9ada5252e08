/* Groups that are dropped from a step (dynamic sampling) count in the sums and records of the
 * estimator's state like the others. */
#include "check.h"

#include "estimate/estimate.h"

#include <string.h>

static struct err e;
static struct arena arena;

#define FIRST "{\"uid\":\"5\",\"cluster\":0,\"rewards\":[1,0,0]}"
#define SECOND "{\"uid\":\"6\",\"cluster\":1,\"rewards\":[1,1]}"
#define THIRD "{\"uid\":\"7\",\"cluster\":0,\"rewards\":[0,0]}"

/* The state after two steps on the groups of `stay`, from which those of `leave` were dropped
 * (NULL: none). */
static void state_of(const char *plugin, const char *stay, const char *const leave[2], struct str *out)
{
    const struct estimate_options o = {.plugin = plugin, .n_clusters = 2};
    struct estimator *est;
    assert_ok(estimate_open(&o, &est, &e), &e);
    for (int step = 1; step < 3; step++) {
        struct batch b, dropped;
        json_t *object;
        estimate_begin(est);
        for (int k = 0; k < 2 && leave[k]; k++) {
            assert_ok(json_parse(leave[k], (int64_t)strlen(leave[k]), "test", &object, &e), &e);
            assert_ok(estimate_parse(object, "test", &arena, &dropped, &e), &e);
            assert_ok(estimate_drop(est, &dropped, &arena, &e), &e);
            json_decref(object);
        }
        assert_ok(json_parse(stay, (int64_t)strlen(stay), "test", &object, &e), &e);
        assert_ok(estimate_parse(object, "test", &arena, &b, &e), &e);
        json_decref(object);
        b.step = step;
        assert_ok(estimate_run(est, &b, &arena, &e), &e);
        assert_ok(estimate_apply(est, &(struct estimate_update){.step = step}, &e), &e);
    }
    assert_ok(estimate_save(est, out, &e), &e);
    estimate_free(est);
}

static void dropped__groups_reach_collect_and_record(void **state)
{
    (void)state;
    static const char *const PLUGINS[] = {"bv_blend", "eb_blend", "spo"};
    for (size_t i = 0; i < sizeof PLUGINS / sizeof *PLUGINS; i++) {
        struct str whole = {0}, parts = {0}, without = {0};
        const char *const none[2] = {NULL, NULL};
        const char *const some[2] = {"{\"groups\":[" SECOND "]}", "{\"groups\":[" THIRD "]}"};
        state_of(PLUGINS[i], "{\"groups\":[" FIRST "," SECOND "," THIRD "]}", none, &whole);
        state_of(PLUGINS[i], "{\"groups\":[" FIRST "]}", some, &parts);
        state_of(PLUGINS[i], "{\"groups\":[" FIRST "]}", none, &without);
        if (whole.size != parts.size || memcmp(whole.data, parts.data, (size_t)whole.size))
            fail_msg("%s: the state is not the one of a step that all groups stay in", PLUGINS[i]);
        if (whole.size == without.size && !memcmp(whole.data, without.data, (size_t)whole.size))
            fail_msg("%s: the dropped groups change nothing, so this test shows nothing", PLUGINS[i]);
        str_free(&whole);
        str_free(&parts);
        str_free(&without);
    }
}

/* A step that begins again, after a rollback, has forgotten the groups it dropped. */
static void begin__forgets(void **state)
{
    (void)state;
    static const char STAYS[] = "{\"groups\":[" FIRST "]}", LEAVES[] = "{\"groups\":[" SECOND "]}";
    const struct estimate_options o = {.plugin = "bv_blend", .n_clusters = 2};
    struct str states[2] = {{0}, {0}};
    for (int again = 0; again < 2; again++) {
        struct estimator *est;
        struct batch b, dropped;
        json_t *stay, *gone;
        assert_ok(json_parse(STAYS, sizeof STAYS - 1, "test", &stay, &e), &e);
        assert_ok(json_parse(LEAVES, sizeof LEAVES - 1, "test", &gone, &e), &e);
        assert_ok(estimate_parse(stay, "test", &arena, &b, &e), &e);
        assert_ok(estimate_parse(gone, "test", &arena, &dropped, &e), &e);
        assert_ok(estimate_open(&o, &est, &e), &e);
        estimate_begin(est);
        if (again) assert_ok(estimate_drop(est, &dropped, &arena, &e), &e);
        estimate_begin(est);
        assert_ok(estimate_run(est, &b, &arena, &e), &e);
        assert_ok(estimate_apply(est, &(struct estimate_update){.step = 1}, &e), &e);
        assert_ok(estimate_save(est, &states[again], &e), &e);
        estimate_free(est);
        json_decref(stay);
        json_decref(gone);
    }
    assert_int_equal(states[0].size, states[1].size);
    assert_memory_equal(states[0].data, states[1].data, (size_t)states[0].size);
    str_free(&states[0]);
    str_free(&states[1]);
}

static int end(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

static int start(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dropped__groups_reach_collect_and_record),
                                       cmocka_unit_test(begin__forgets)};
    return cmocka_run_group_tests(tests, start, end);
}
