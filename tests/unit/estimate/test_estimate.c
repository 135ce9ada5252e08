/* The phases: what a plugin may not do, and metrics. */
#include "check.h"

#include "estimate/estimate.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

static struct err e;
static struct arena arena;

static const char *fixture(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), name);
    return path;
}

static void parse(const char *text, struct batch *b)
{
    json_t *object;
    assert_ok(json_parse(text, (int64_t)strlen(text), "test", &object, &e), &e);
    assert_ok(estimate_parse(object, "test", &arena, b, &e), &e);
    json_decref(object);
}

static const char STEP[] = "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0]},{\"cluster\":1,\"rewards\":[0.5,0.25]}]}";

static void run__names_what_a_plugin_did_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tare_status code;
        const char *part;
    } cases[] = {
        {"nan_advantage", TARE_E_NOT_FINITE, "estimator hostile: compute, step 12: the advantage of group 0, rollout 0 is "},
        {"unwritten", TARE_E_NOT_FINITE,
         "the advantage of group 1, rollout 1 is nan (reward 0.25); each has to be written and finite"},
        {"bad_confidence", TARE_E_NOT_FINITE, "the confidence of group 0 is 1.5"},
        {"infinite_scale", TARE_E_NOT_FINITE, "the scale of group 0 is inf"},
        {"negative_weight", TARE_E_NOT_FINITE, "the weight of group 0, rollout 0 is -1"},
        {"past_end", TARE_E_PLUGIN, "estimator hostile: compute, step 12: it wrote outside of its output buffers"},
        {"nan_sums", TARE_E_NOT_FINITE, "collect, step 12: number 0 of group 0's sums is nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct estimate_options o = {.plugin = fixture(cases[i].name)};
        struct estimator *est;
        struct batch b;
        assert_ok(estimate_open(&o, &est, &e), &e);
        parse(STEP, &b);
        b.step = 12;
        const tare_status status = estimate_run(est, &b, &arena, &e);
        if (status != cases[i].code || !strstr(e.message, cases[i].part)) fail_msg("%s: %d %s", cases[i].name, status, e.message);
        assert_int_equal(estimate_apply(est, 12, &e), TARE_E_STATE); /* nothing half-done is applied */
        estimate_free(est);
    }
}

static void open__refuses(void **state)
{
    (void)state;
    struct estimator *est;
    struct estimate_options o = {.plugin = fixture("unknown_needs")};
    assert_int_equal(estimate_open(&o, &est, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "needs columns that this program does not know"));
    o.plugin = fixture("negative_size");
    assert_int_equal(estimate_open(&o, &est, &e), TARE_E_PLUGIN);
    assert_null(est);
}

static void run__keeps_the_floating_point_mode(void **state)
{
    (void)state;
    const struct estimate_options o = {.plugin = fixture("changes_fp")};
    struct estimator *est;
    struct batch b;
    volatile float tiny = 1e-38f;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse(STEP, &b);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_true(tiny * 0.1f > 0); /* not flushed to zero */
    estimate_free(est);
}

static void run__refuses_a_nan_reward(void **state)
{
    (void)state;
    const struct estimate_options o = {.plugin = "grpo"};
    struct estimator *est;
    struct batch b;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse(STEP, &b);
    b.reward[4] = (double)NAN;
    b.step = 3;
    assert_int_equal(estimate_run(est, &b, &arena, &e), TARE_E_NOT_FINITE);
    assert_non_null(strstr(e.message, "step 3: the reward of group 1, rollout 1 is nan"));
    estimate_free(est);
}

/* ---------------------------------------------------------------- metrics */

struct sink {
    char text[2000];
};

static void take(void *ctx, const char *name, double value)
{
    struct sink *s = ctx;
    const size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s=%g\n", name, value);
}

static void metrics__are_given(void **state)
{
    (void)state;
    struct sink sink = {""};
    struct estimate_options o = {.plugin = "grpo", .env = {.ctx = &sink, .metric = take}};
    struct estimator *est;
    struct batch b;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse("{\"groups\":[{\"rewards\":[1,0]},{\"rewards\":[1,1]},{\"rewards\":[0]},{\"rewards\":[2,0,1]}]}", &b);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_string_equal(sink.text,
                        "estimator/effective_signal_ratio=0.5\nestimator/nonzero_advantage_ratio=0.5\nestimator/confidence_mean=0\n"
                        "estimator/advantage_max=1\n");
    estimate_free(est);
    sink.text[0] = 0;
    o.plugin = "dr_grpo"; /* no scale: the advantages decide */
    assert_ok(estimate_open(&o, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_non_null(strstr(sink.text, "effective_signal_ratio=0.5\n"));
    estimate_free(est);
    sink.text[0] = 0;
    o.plugin = fixture("metrics");
    assert_ok(estimate_open(&o, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_non_null(strstr(sink.text, "estimator/answer=42\n"));
    estimate_free(est);
    o.plugin = fixture("wants_refill");
    assert_ok(estimate_open(&o, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_int_equal(estimate_metrics(est)->refill_groups, 3);
    estimate_free(est);
}

static void parse__refuses(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "\"groups\" is missing"},
        {"{\"groups\":[{\"rewards\":[]}]}", "group 0 has no \"rewards\""},
        {"{\"groups\":[{\"rewards\":[1]},{}]}", "group 1 has no \"rewards\""},
        {"{\"groups\":[{\"rewards\":[1,null]}]}", "group 0, rollout 1: a reward is not a number"},
        {"{\"groups\":[{\"cluster\":-2,\"rewards\":[1]}]}", "\"cluster\" has to be a whole number"},
        {"{\"groups\":[{\"cluster\":1.5,\"rewards\":[1]}]}", "\"cluster\" has to be a whole number"},
        {"{\"groups\":[{\"uid\":\"12g\",\"rewards\":[1]}]}", "\"uid\" has to be a whole number, or hexadecimal digits"},
        {"{\"groups\":[{\"rewards\":[1,2],\"lengths\":[1]}]}", "\"lengths\" has to be an array of 2"},
        {"{\"groups\":[{\"rewards\":[1],\"lengths\":[0]}]}", "a length of 0 tokens"},
        {"{\"groups\":[{\"rewards\":[1],\"entropy\":[[1,2]]}]}", "\"entropy\" has to be an array of 1"},
        {"{\"groups\":[{\"rewards\":[1,1],\"components\":[[1],[1,2]]}]}", "2 components where the others have 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *object;
        struct batch b;
        assert_ok(json_parse(cases[i][0], (int64_t)strlen(cases[i][0]), "x", &object, &e), &e);
        const tare_status status = estimate_parse(object, "x:1", &arena, &b, &e);
        if (!status || !strstr(e.message, cases[i][1]) || strncmp(e.message, "x:1: ", 5))
            fail_msg("%s: %d %s", cases[i][0], status, e.message);
        json_decref(object);
    }
}

static void parse__reads_uids(void **state)
{
    (void)state;
    struct batch b;
    parse("{\"groups\":[{\"uid\":7,\"rewards\":[1]},{\"uid\":\"fedcba9876543210\",\"rewards\":[1]},{\"rewards\":[1]}]}", &b);
    assert_true(b.prompt_uid[0] == 7 && b.prompt_uid[1] == 0xfedcba9876543210u && b.prompt_uid[2] == 2);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__names_what_a_plugin_did_wrong),
        cmocka_unit_test(open__refuses),
        cmocka_unit_test(run__keeps_the_floating_point_mode),
        cmocka_unit_test(run__refuses_a_nan_reward),
        cmocka_unit_test(metrics__are_given),
        cmocka_unit_test(parse__refuses),
        cmocka_unit_test(parse__reads_uids),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
