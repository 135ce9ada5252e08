/* A curriculum's view of episodes: turns, mask and lengths of the new groups in keep, and of all groups
 * of the step in apply. */
#include "check.h"

#include "curriculum/curriculum.h"

#include <math.h>
#include <string.h>
#include <tare/sdk.h>

enum { N = 2, T = 9, U = 3, PARTS = 2 };

/* Two episodes: an act, two tokens of context, an act; and an act. */
static const uint8_t SAMPLED[T] = {1, 1, 0, 0, 1, 1, 1, 1, 1};
static const int64_t TOKEN_BEGIN[] = {0, 6, 9}, TURN_BEGIN[] = {0, 2, 3}, ACT_BEGIN[] = {0, 4, 6}, ACT_END[] = {2, 6, 9};
static const int64_t LENGTH[] = {4, 3};
static int kept, applied;

static void check_part(const tare_batch *b, int64_t part)
{
    for (int i = 0; i < N; i++) {
        assert_int_equal(b->token_begin[part * N + i + 1], part * T + TOKEN_BEGIN[i + 1]);
        assert_int_equal(b->turn_begin[part * N + i + 1], part * U + TURN_BEGIN[i + 1]);
        assert_int_equal(b->length[part * N + i], LENGTH[i]);
    }
    for (int u = 0; u < U; u++) {
        assert_int_equal(b->act_begin[part * U + u], part * T + ACT_BEGIN[u]);
        assert_int_equal(b->act_end[part * U + u], part * T + ACT_END[u]);
    }
    assert_memory_equal(b->sampled + part * T, SAMPLED, T);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)setup, (void)error;
    *self = &kept;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status keep(const void *self, const tare_batch *b, tare_kept *out, tare_error *error)
{
    (void)self, (void)out, (void)error;
    kept++;
    assert_true(b->n_turns == U && b->n_tokens == T && b->n_rollouts == N);
    check_part(b, 0);
    return TARE_OK;
}

static tare_status apply(void *self, const tare_batch *b, tare_error *error)
{
    (void)self, (void)error;
    applied++;
    assert_true(b->n_turns == PARTS * U && b->n_tokens == PARTS * T && b->n_rollouts == PARTS * N);
    for (int64_t k = 0; k < PARTS; k++) check_part(b, k);
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_put(out, &kept, sizeof kept);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    (void)self, (void)error;
    return tare_get(in, &kept, sizeof kept);
}

static const tare_curriculum FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                          .create = create,
                                          .destroy = destroy,
                                          .save = save,
                                          .load = load,
                                          .keep = keep,
                                          .apply = apply};
static const tare_descriptor LOOKER = {.struct_size = sizeof LOOKER,
                                       .kind = TARE_KIND_CURRICULUM,
                                       .name = "looker",
                                       .version = "1.0.0",
                                       .summary = "compares the turns that it is shown",
                                       .param_size = sizeof(tare_param),
                                       .want_size = sizeof(tare_want),
                                       .state_version = 1,
                                       .state_oldest = 1,
                                       .functions = &FUNCTIONS};
static const tare_descriptor *const DESCRIPTORS[] = {&LOOKER};
static const tare_plugin PLUGIN = {.struct_size = sizeof PLUGIN, .n_descriptors = 1, .descriptors = DESCRIPTORS};

static void turns_of_all_groups(void **state)
{
    struct err e = {0};
    struct arena a;
    struct curriculum *c;
    struct row rows[PARTS] = {{.uid = 7, .level = NAN, .where = "here", .id = "id"},
                              {.uid = 8, .level = NAN, .where = "here", .id = "id"}};
    struct dataset data = {.rows = rows, .n = PARTS, .n_sources = 1, .name = "a file"};
    int64_t group[] = {0, N}, token[] = {0, 6, 9}, turn[] = {0, 2, 3}, begin[] = {0, 4, 0}, end[] = {2, 6, 3};
    uint8_t sampled[T], finish[] = {3, 1};
    uint64_t uid[] = {7};
    double reward[] = {1, 0};
    int32_t verdict[] = {1, 2};
    (void)state;
    arena_init(&a, "test");
    memcpy(sampled, SAMPLED, T);
    assert_ok(plugin_add("test", &PLUGIN, &e), &e);
    assert_ok(
        curriculum_open(&(struct curriculum_options){.plugin = "looker", .rows = &data, .prompts = 2, .group_size = 2}, &c, &e),
        &e);
    assert_ok(curriculum_begin(c, 1, &a, &e), &e);
    for (int k = 0; k < PARTS; k++) {
        const struct row *row = &rows[k];
        struct batch b = {.step = 1,
                          .n_groups = 1,
                          .n_rollouts = N,
                          .n_turns = U,
                          .n_tokens = T,
                          .row = &row,
                          .prompt_uid = uid,
                          .group_begin = group,
                          .token_begin = token,
                          .turn_begin = turn,
                          .act_begin = begin,
                          .act_end = end,
                          .sampled = sampled,
                          .finish = finish,
                          .reward = reward,
                          .verdict = verdict};
        assert_ok(curriculum_keep(c, &b, &e), &e);
    }
    assert_ok(curriculum_apply(c, &e), &e);
    assert_true(kept == PARTS && applied == 1);
    curriculum_free(c);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(turns_of_all_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
