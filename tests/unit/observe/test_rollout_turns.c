/* Turns and masks of episodes in the rollouts' records: written, read back, and damaged. */
#include "check.h"

#include "base/json.h"
#include "base/str.h"
#include "observe/rollout_turns.h"
#include "observe/rollouts.h"

#include <string.h>

static struct arena arena;
static struct err e;

enum { T = 12 };

/* An episode of three turns, the second of which is followed by no text, and a completion. */
static struct batch made(void)
{
    static const uint8_t SAMPLED[T] = {1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t BEGIN[] = {0, 5, 7}, END[] = {2, 7, 9};
    struct batch b = {.n_groups = 1, .n_rollouts = 2, .n_tokens = T, .n_turns = 3};
    assert_ok(batch_alloc(&b, BATCH_ROLLOUT, &arena, &e), &e);
    assert_ok(arena_new(&arena, &b.sampled, T, &e), &e);
    assert_ok(arena_new(&arena, &b.turn_begin, 3, &e), &e);
    assert_ok(arena_new(&arena, &b.act_begin, 3, &e), &e);
    assert_ok(arena_new(&arena, &b.act_end, 3, &e), &e);
    assert_ok(arena_new(&arena, &b.turn_finish, 3, &e), &e);
    b.group_begin[1] = 2;
    b.token_begin[1] = 9, b.token_begin[2] = T;
    b.turn_begin[1] = b.turn_begin[2] = 3;
    memcpy(b.sampled, SAMPLED, T);
    for (int t = 0; t < T; t++) b.ids[t] = 100 + t;
    for (int u = 0; u < 3; u++) {
        b.act_begin[u] = BEGIN[u];
        b.act_end[u] = END[u];
        b.turn_finish[u] = u == 2 ? FINISH_LENGTH : FINISH_STOP;
    }
    b.finish[0] = FINISH_ENDED, b.finish[1] = FINISH_STOP;
    return b;
}

static json_t *line_of(const struct str *text, int n)
{
    const char *at = text->data;
    json_t *o;
    while (n--) at = strchr(at, '\n') + 1;
    assert_ok(json_parse(at, strchr(at, '\n') - at, "line", &o, &e), &e);
    return o;
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    const struct batch b = made();
    struct str text = {0};
    struct rollout_turns x;
    assert_ok(rollouts_print(&b, &text, &e), &e);
    json_t *o = line_of(&text, 0);
    assert_int_equal(json_int_or(o, "length", -1), 6); /* sampled tokens */
    assert_string_equal(json_text_or(o, "finish", ""), "ended");
    assert_ok(rollout_turns_read(o, "line 1", &arena, &x, &e), &e);
    assert_int_equal(x.n, 3);
    assert_int_equal(x.n_tokens, 9);
    assert_memory_equal(x.ids, b.ids, 9 * sizeof *x.ids);
    assert_memory_equal(x.sampled, b.sampled, 9);
    assert_memory_equal(x.act_begin, b.act_begin, 3 * sizeof *x.act_begin);
    assert_memory_equal(x.act_end, b.act_end, 3 * sizeof *x.act_end);
    assert_memory_equal(x.finish, b.turn_finish, 3);
    json_decref(o);
    o = line_of(&text, 1);
    assert_ok(rollout_turns_read(o, "line 2", &arena, &x, &e), &e);
    assert_int_equal(x.n, 0);
    assert_null(json_object_get(o, "ids"));
    assert_null(json_object_get(o, "sampled"));
    assert_int_equal(json_int_or(o, "length", -1), 3);
    json_decref(o);
    str_free(&text);
}

static void damaged_records_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "{\"turns\":[]}",
        "{\"turns\":[],\"ids\":[1],\"sampled\":[]}",
        "{\"turns\":[],\"ids\":[1],\"sampled\":[2]}",
        "{\"turns\":[],\"ids\":[-1],\"sampled\":[1]}",
        "{\"turns\":[],\"ids\":[4294967296],\"sampled\":[1]}",
        "{\"turns\":[],\"ids\":[1,2],\"sampled\":[9223372036854775807,2]}",
        "{\"turns\":[7],\"ids\":[1],\"sampled\":[1]}",
        "{\"turns\":[{\"begin\":0,\"end\":2}],\"ids\":[1],\"sampled\":[1]}",
        "{\"turns\":[{\"begin\":0,\"end\":0}],\"ids\":[1],\"sampled\":[1]}",
        "{\"turns\":[{\"begin\":0,\"end\":2}],\"ids\":[1,2],\"sampled\":[1,1]}",
        "{\"turns\":[{\"begin\":0,\"end\":2}],\"ids\":[1,2],\"sampled\":[0,1,1]}",
        "{\"turns\":[{\"begin\":0,\"end\":2},{\"begin\":1,\"end\":2}],\"ids\":[1,2],\"sampled\":[2]}",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct rollout_turns x;
        json_t *o;
        assert_ok(json_parse(BAD[i], (int64_t)strlen(BAD[i]), "bad", &o, &e), &e);
        if (rollout_turns_read(o, "line 1", &arena, &x, &e) != TARE_E_CORRUPT) fail_msg("read: %s", BAD[i]);
        assert_non_null(strstr(e.message, "line 1"));
        json_decref(o);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read_back),
                                       cmocka_unit_test(damaged_records_are_refused)};
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
