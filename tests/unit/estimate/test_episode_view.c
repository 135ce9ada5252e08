/* An estimator's view of episodes: turns, acts, the mask and lengths of the batch, next to a
 * completion without turns. */
#include "check.h"

#include "estimate/estimate.h"

#include <math.h>
#include <string.h>
#include <tare/sdk.h>

enum { N = 3, T = 14, U = 6 };

static const uint8_t SAMPLED[T] = {1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1};
static const int64_t TURN_BEGIN[] = {0, 3, 4, 6}, ACT_BEGIN[] = {0, 4, 6, 8, 10, 13}, ACT_END[] = {2, 5, 8, 10, 12, 14};
static const int64_t LENGTH[] = {5, 2, 3}, TOKEN_BEGIN[] = {0, 8, 10, 14};
static const double TURN_REWARD[] = {0, 0, 0.5, 1, 0, -2};
static const uint8_t TURN_FINISH[] = {1, 1, 2, 1, 1, 1};
static int runs;

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)setup, (void)error;
    *self = &runs;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out, tare_error *error)
{
    (void)self, (void)prepared, (void)error;
    runs++;
    assert_int_equal(b->n_turns, U);
    assert_int_equal(b->n_tokens, T);
    assert_memory_equal(b->turn_begin, TURN_BEGIN, sizeof TURN_BEGIN);
    assert_memory_equal(b->token_begin, TOKEN_BEGIN, sizeof TOKEN_BEGIN);
    assert_memory_equal(b->act_begin, ACT_BEGIN, sizeof ACT_BEGIN);
    assert_memory_equal(b->act_end, ACT_END, sizeof ACT_END);
    assert_memory_equal(b->sampled, SAMPLED, sizeof SAMPLED);
    assert_memory_equal(b->length, LENGTH, sizeof LENGTH);
    for (int c = 0; c < 5; c++) assert_int_equal(b->column[c].n, U);
    assert_memory_equal(TARE_COLUMN(b, 0, double), TURN_REWARD, sizeof TURN_REWARD);
    assert_memory_equal(TARE_COLUMN(b, 1, uint8_t), TURN_FINISH, sizeof TURN_FINISH);
    for (int u = 0; u < U; u++) {
        assert_int_equal(TARE_COLUMN(b, 2, int64_t)[u], -1);
        assert_int_equal(TARE_COLUMN(b, 3, int32_t)[u], 0);
        assert_int_equal(TARE_COLUMN(b, 4, int32_t)[u], 0);
    }
    for (int i = 0; i < N; i++) out->advantage[i] = (double)b->length[i];
    for (int t = 0; t < T; t++)
        if (b->sampled[t]) out->token_advantage[t] = (float)t; /* context stays NaN */
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .flags = TARE_ESTIMATOR_GIVES_TOKENS,
                                         .create = create,
                                         .destroy = destroy,
                                         .compute = compute};
static const tare_want WANTS[] = {{.name = "turn.reward", .axis = TARE_AXIS_TURN, .type = TARE_F64, .width = 1},
                                  {.name = "turn.finish", .axis = TARE_AXIS_TURN, .type = TARE_U8, .width = 1},
                                  {.name = "turn.state", .axis = TARE_AXIS_TURN, .type = TARE_I64, .width = 1},
                                  {.name = "turn.calls", .axis = TARE_AXIS_TURN, .type = TARE_I32, .width = 1},
                                  {.name = "turn.unparsed", .axis = TARE_AXIS_TURN, .type = TARE_I32, .width = 1}};
static const tare_descriptor LOOKER = {.struct_size = sizeof LOOKER,
                                       .kind = TARE_KIND_ESTIMATOR,
                                       .name = "looker",
                                       .version = "1.0.0",
                                       .summary = "compares the turns that it is shown",
                                       .param_size = sizeof(tare_param),
                                       .functions = &FUNCTIONS,
                                       TARE_WANTS(WANTS, 5)};
static const tare_descriptor *const DESCRIPTORS[] = {&LOOKER};
static const tare_plugin PLUGIN = {.struct_size = sizeof PLUGIN, .n_descriptors = 1, .descriptors = DESCRIPTORS};

static void turns_of_a_batch(void **state)
{
    struct err e = {0};
    struct arena a;
    struct estimator *est;
    int64_t group[] = {0, 2, 3}, turn[] = {0, 3, 3, 5}, begin[] = {0, 4, 6, 0, 3}, end[] = {2, 5, 8, 2, 4};
    int64_t token[] = {0, 8, 10, 14};
    uint8_t finish[] = {2, 1, 3}, turn_finish[] = {1, 1, 2, 1, 1}, sampled[T];
    uint64_t uid[] = {7, 8};
    double reward[] = {0.5, 1, -2};
    int32_t verdict[] = {1, 1, 2}, ids[T] = {0};
    float numbers[T] = {0};
    (void)state;
    arena_init(&a, "test");
    memcpy(sampled, SAMPLED, sizeof sampled);
    struct batch b = {.n_groups = 2,
                      .n_rollouts = N,
                      .n_turns = 5,
                      .n_tokens = T,
                      .group_begin = group,
                      .token_begin = token,
                      .turn_begin = turn,
                      .act_begin = begin,
                      .act_end = end,
                      .turn_finish = turn_finish,
                      .sampled = sampled,
                      .finish = finish,
                      .prompt_uid = uid,
                      .reward = reward,
                      .verdict = verdict,
                      .ids = ids,
                      .logprob = numbers,
                      .entropy = numbers};
    assert_ok(plugin_add("test", &PLUGIN, &e), &e);
    assert_ok(estimate_open(&(struct estimate_options){.plugin = "looker"}, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &a, &e), &e);
    assert_int_equal(runs, 1);
    for (int i = 0; i < N; i++) assert_true(b.advantage[i] == (double)LENGTH[i]);
    for (int t = 0; t < T; t++) assert_true(b.token_advantage[t] == (SAMPLED[t] ? (float)t : 0));
    estimate_free(est);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(turns_of_a_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
