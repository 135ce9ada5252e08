/* The numbers of a step that an estimator gets: tare_update, the columns of turns, and the names of
 * the reward's components. The estimator is part of this program. */
#include "check.h"

#include "estimate/estimate.h"

#include <string.h>
#include <tare/sdk.h>

static struct err e;

enum { W_NAME, W_TURN_REWARD, W_TURN_STATE, W_CALLS, W_UPDATED, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_NAME] = {.name = "component.name", .axis = TARE_AXIS_ONE, .type = TARE_TEXT},
    [W_TURN_REWARD] = {.name = "turn.reward", .axis = TARE_AXIS_TURN, .type = TARE_F64, .width = 1},
    [W_TURN_STATE] = {.name = "turn.state", .axis = TARE_AXIS_TURN, .type = TARE_I64, .width = 1},
    [W_CALLS] = {.name = "turn.calls", .axis = TARE_AXIS_TURN, .type = TARE_I32, .width = 1},
    [W_UPDATED] = {.name = "updated_logprob", .axis = TARE_AXIS_TOKEN, .type = TARE_F32, .width = 1},
};

static tare_update got;      /* the last update */
static float sum_of_updated; /* of the last collect */

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    static int nothing;
    (void)setup, (void)error;
    *self = &nothing;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)self, (void)out, (void)error;
    return TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    (void)self, (void)in, (void)error;
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out, tare_error *error)
{
    const tare_column *names = &b->column[W_NAME];
    (void)self, (void)prepared;
    if (names->n != 1 || names->width != 2 || TARE_COLUMN(b, W_NAME, tare_text)[1].size != 6)
        return tare_fail(error, TARE_E_SHAPE, "the names of the components are wrong");
    if (b->column[W_UPDATED].data) return tare_fail(error, TARE_E_STATE, "updated_logprob is there before the policy step");
    if (b->n_turns != b->n_rollouts) return tare_fail(error, TARE_E_SHAPE, "%lld turns", (long long)b->n_turns);
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const int64_t u = b->turn_begin[i];
        if (b->act_begin[u] != b->token_begin[i] || b->act_end[u] != b->token_begin[i + 1] ||
            b->length[i] != b->act_end[u] - b->act_begin[u] || TARE_COLUMN(b, W_TURN_STATE, int64_t)[u] != -1)
            return tare_fail(error, TARE_E_SHAPE, "rollout %lld is not one turn", (long long)i);
        out->advantage[i] = TARE_COLUMN(b, W_TURN_REWARD, double)[u] + TARE_COLUMN(b, W_CALLS, int32_t)[u];
    }
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->collect = 1;
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)sum, (void)error;
    for (int64_t t = b->token_begin[b->group_begin[group]]; t < b->token_begin[b->group_begin[group + 1]]; t++)
        sum_of_updated += TARE_COLUMN(b, W_UPDATED, float)[t];
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    (void)self, (void)error;
    got = *update;
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .sizes = sizes,
                                         .compute = compute,
                                         .collect = collect,
                                         .apply = apply};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_ESTIMATOR,
                                           .name = "of_test",
                                           .version = "1.0.0",
                                           .summary = "rewards of turns",
                                           .license = "Apache-2.0",
                                           TARE_WANTS(WANTS, N_WANTS),
                                           .state_version = 1,
                                           .state_oldest = 1,
                                           .functions = &FUNCTIONS};

static void apply__gets_the_numbers_of_the_step(void **state)
{
    (void)state;
    static const char STEP[] =
        "{\"groups\":[{\"uid\":7,\"rewards\":[1,0],\"lengths\":[2,1],\"components\":[[1,0],[0,0]],"
        "\"verdicts\":[\"crashed\",\"wrong\"]},{\"uid\":8,\"rewards\":[0.5],\"components\":[[0,0.5]],\"verdicts\":[\"correct\"]}]}";
    static const tare_descriptor *const ALL[] = {&DESCRIPTOR};
    static const tare_plugin PLUGIN = {
        .struct_size = sizeof PLUGIN, .minor_built = TARE_ABI_MINOR, .n_descriptors = 1, .descriptors = ALL, .build = TARE_BUILD};
    const tare_text names[] = {{"math", 4}, {"format", 6}};
    const float updated[] = {-100, -100, -1, -2};
    struct estimator *est;
    struct arena a;
    struct batch b;
    json_t *object;
    arena_init(&a, "test");
    assert_ok(plugin_add("the test", &PLUGIN, &e), &e);
    assert_ok(estimate_open(&(struct estimate_options){.plugin = "of_test", .component_name = names}, &est, &e), &e);
    assert_true(estimate_wants(est, COLUMN_UPDATED_LOGPROB));
    assert_ok(json_parse(STEP, sizeof STEP - 1, "test", &object, &e), &e);
    assert_ok(estimate_parse(object, "test", &a, &b, &e), &e);
    json_decref(object);
    assert_ok(estimate_run(est, &b, &a, &e), &e);
    assert_true(b.advantage[0] == 0 && b.advantage[1] == 0 && b.advantage[2] == 0.5);
    struct estimate_update u = {.step = 3, .updates = 4, .skipped = 1, .logprob = updated};
    assert_ok(estimate_apply(est, &u, &e), &e);
    assert_true(got.step == 3 && got.updates == 4 && got.skipped == 1);
    assert_true(got.n_groups == 2 && got.prompt_uid[0] == 7 && got.prompt_uid[1] == 8);
    assert_true(sum_of_updated == -3); /* the crashed rollout is not shown */
    /* a required column is refused by name */
    u.logprob = NULL;
    assert_ok(estimate_run(est, &b, &a, &e), &e);
    assert_int_equal(estimate_apply(est, &u, &e), TARE_E_SHAPE);
    assert_non_null(strstr(e.message, "estimator of_test wants the column updated_logprob, which is not computed here"));
    estimate_free(est);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(apply__gets_the_numbers_of_the_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
