/* The phases: contract violations of plugins, and metrics. */
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
        {"unwritten", TARE_E_NOT_FINITE, "the advantage of group 1, rollout 1 is nan (reward 0.25): must be written and finite"},
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
        /* a failed step is not applied */
        assert_int_equal(estimate_apply(est, &(struct estimate_update){.step = 12}, &e), TARE_E_STATE);
        estimate_free(est);
    }
}

static void open__refuses(void **state)
{
    (void)state;
    struct estimator *est;
    struct estimate_options o = {.plugin = fixture("unknown_want")};
    assert_int_equal(estimate_open(&o, &est, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "it wants the column \"no_such_column\", which this program does not have"));
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
    assert_true(tiny * 0.1f > 0); /* denormal numbers are not flushed to zero */
    estimate_free(est);
}

/* Only the advantages are required. No confidence counts as 0. */
static void run__needs_no_baseline(void **state)
{
    (void)state;
    const struct estimate_options o = {.plugin = fixture("skips_context")};
    struct estimator *est;
    struct batch b;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse("{\"groups\":[{\"rewards\":[1,0],\"lengths\":[2,1],\"logprob\":[[-1,-3],[-4]]}]}", &b);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_true(b.advantage[0] == -1 && b.advantage[1] == -4 && b.token_advantage[1] == 0.25f);
    assert_true(isnan(b.baseline[0]) && isnan(b.scale[0]) && b.confidence[0] == 0);
    assert_true(estimate_metrics(est)->confidence_mean == 0);
    b.logprob = NULL;
    assert_int_equal(estimate_run(est, &b, &arena, &e), TARE_E_SHAPE);
    assert_non_null(strstr(e.message, "estimator context wants the column logprob, which the batch does not have"));
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

static void take(void *ctx, const char *name, double value, int32_t how)
{
    struct sink *s = ctx;
    (void)how;
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
    o.plugin = "dr_grpo"; /* without a scale, the advantages are used */
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
    o.plugin = fixture("wants_extra");
    assert_ok(estimate_open(&o, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_int_equal(estimate_metrics(est)->extra_groups, 3);
    estimate_free(est);
}

static void parse__refuses(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "\"groups\" is missing"},
        {"{\"groups\":[{\"rewards\":[]}]}", "group 0: missing \"rewards\""},
        {"{\"groups\":[{\"rewards\":[1]},{}]}", "group 1: missing \"rewards\""},
        {"{\"groups\":[{\"rewards\":[1,null]}]}", "group 0, rollout 1: a reward is not a number"},
        {"{\"groups\":[{\"cluster\":-2,\"rewards\":[1]}]}", "\"cluster\" must be a whole number"},
        {"{\"groups\":[{\"cluster\":1.5,\"rewards\":[1]}]}", "\"cluster\" must be a whole number"},
        {"{\"groups\":[{\"uid\":\"12g\",\"rewards\":[1]}]}", "\"uid\" must be a whole number or hexadecimal digits"},
        {"{\"groups\":[{\"rewards\":[1,2],\"lengths\":[1]}]}", "\"lengths\" must be an array of 2"},
        {"{\"groups\":[{\"rewards\":[1],\"lengths\":[0]}]}", "invalid length of 0 tokens"},
        {"{\"groups\":[{\"rewards\":[1],\"entropy\":[[1,2]]}]}", "\"entropy\" must be an array of 1"},
        {"{\"groups\":[{\"rewards\":[1,1],\"components\":[[1],[1,2]]}]}", "2 components, but other rollouts have 1"},
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

/* A cluster that the codebook does not have is an error for every estimator; it does not count as
 * no cluster. */
static void clusters__outside_of_the_codebook_are_refused(void **state)
{
    (void)state;
    static const char *const plugins[] = {"rae", "bv_blend", "grpo"};
    for (size_t k = 0; k < sizeof plugins / sizeof *plugins; k++) {
        struct estimator *est;
        struct batch b;
        assert_ok(estimate_open(&(struct estimate_options){.plugin = plugins[k], .n_clusters = 2}, &est, &e), &e);
        parse("{\"groups\":[{\"cluster\":1,\"rewards\":[1,0]},{\"cluster\":-1,\"rewards\":[1,0]}]}", &b);
        assert_ok(estimate_run(est, &b, &arena, &e), &e);
        parse("{\"groups\":[{\"cluster\":1,\"rewards\":[1,0]},{\"cluster\":2,\"rewards\":[1,0]}]}", &b);
        assert_int_equal(estimate_run(est, &b, &arena, &e), TARE_E_RANGE);
        assert_non_null(strstr(e.message, "group 1 has the cluster 2: must be 0 to 1, or -1 for none"));
        estimate_free(est);
    }
}

/* ---------------------------------------------------------------- columns on demand */

static const char FACTS[] = "{\"groups\":[{\"rewards\":[1,0],\"lengths\":[2,1],\"components\":[[1,0],[0,0]],\"row\":{\"level\":3},"
                            "\"finish\":[\"stop\",\"length\"],\"completions\":[\"it is "
                            "4\",\"\"],\"ids\":[[7,8],[9]],\"verdicts\":[\"correct\",\"unparsable\"],"
                            "\"component_verdicts\":[[\"correct\",null],[\"unparsable\",\"wrong\"]],\"off_policy\":[false,true],"
                            "\"policy_version\":[4,-1]}]}";

static void facts__reach_an_estimator_that_asks(void **state)
{
    (void)state;
    const struct estimate_options o = {.plugin = fixture("facts")};
    struct estimator *est;
    struct batch b;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse(FACTS, &b);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    /* plugin/facts.c: finish + 10 off + 100 (version + 2) + 1e3 texts + 1e6 ids + 1e8 verdicts of
     * the components */
    assert_true(b.advantage[0] == 1 + 0 + 600 + 1e3 * (11 + 7) + 1e6 * 15 + 1e8 * 1);
    assert_true(b.advantage[1] == 2 + 10 + 100 + 1e3 * 11 + 1e6 * 9 + 1e8 * (4 + 2));
    uint8_t *off = b.off_policy;
    b.off_policy = NULL; /* a batch of samples only */
    b.policy_version[1] = 0;
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_true(b.advantage[1] == 2 + 200 + 1e3 * 11 + 1e6 * 9 + 1e8 * (4 + 2));
    b.off_policy = off;
    estimate_free(est);
}

static void facts__that_are_missing_are_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"\"finish\"", "estimator facts wants the column finish, which the batch does not have"},
                                           {"\"row\"", "wants the column row.json, which the batch does not have"},
                                           {"\"completions\"", "wants the column completion, "},
                                           {"\"ids\"", "wants the column token, "},
                                           {"\"component_verdicts\"", "wants the column component.verdict, "},
                                           {"\"policy_version\"", "wants the column policy_version, "}};
    const struct estimate_options o = {.plugin = fixture("facts")};
    struct estimator *est;
    assert_ok(estimate_open(&o, &est, &e), &e);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[sizeof FACTS];
        struct batch b;
        memcpy(text, FACTS, sizeof FACTS);
        /* a name that is similar to no key */
        for (char *at = strstr(text, cases[i][0]) + 1; *at != '"'; at++) *at = 'x';
        parse(text, &b);
        assert_int_equal(estimate_run(est, &b, &arena, &e), TARE_E_SHAPE);
        if (!strstr(e.message, cases[i][1])) fail_msg("%s: %s", cases[i][0], e.message);
    }
    estimate_free(est);
}

/* ---------------------------------------------------------------- fields of rows as numbers */

static const char ROWS[] = "{\"groups\":[{\"rewards\":[1,2],\"row\":{\"level\":3,\"weight\":0.5}},"
                           "{\"rewards\":[1],\"row\":{\"weight\":true,\"level\":null}},{\"rewards\":[1],\"row\":{\"id\":\"x\"}}]}";

/* plugin/columns.c: R (1 + 10 level + 1000 weight), 7 for a missing field */
static void fields__reach_an_estimator_that_asks(void **state)
{
    (void)state;
    const struct estimate_options o = {.plugin = fixture("columns")};
    const struct config_param one = {.section = "estimator.columns", .key = "by", .value = "weight"};
    const double want[2][4] = {{531, 1062, 1071, 7071}, {501, 1002, 1001, 7001}};
    for (int k = 0; k < 2; k++) {
        struct estimate_options with = o;
        struct estimator *est;
        struct batch b;
        if (k) with.settings = &one;
        assert_ok(estimate_open(&with, &est, &e), &e);
        assert_true(estimate_wants(est, COLUMN_ROW_FIELD) && !estimate_wants(est, COLUMN_ROW_JSON));
        parse(ROWS, &b);
        assert_ok(estimate_run(est, &b, &arena, &e), &e);
        for (int i = 0; i < 4; i++) assert_true(b.advantage[i] == want[k][i]);
        /* the group is dropped, and its row with it */
        b.verdict[0] = b.verdict[1] = TARE_VERDICT_TIMED_OUT;
        assert_ok(estimate_run(est, &b, &arena, &e), &e);
        for (int i = 0; i < 4; i++) assert_true(b.advantage[i] == (i < 2 ? 0 : want[k][i]));
        b.row_json = NULL;
        assert_int_equal(estimate_run(est, &b, &arena, &e), TARE_E_SHAPE);
        assert_non_null(strstr(e.message, k ? "wants the column row.weight, but the batch has no rows; give each group its row: "
                                              "\"row\":{\"weight\":1}"
                                            : "wants the column row.level, but"));
        estimate_free(est);
    }
}

static void fields__that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"level\":\"hard\"}", "rows.jsonl:7: \"level\" is a text, but the estimator reads it as a number"},
        {"{\"weight\":[1]}", "rows.jsonl:7: \"weight\" is a list"},
        {"{\"weight\":{}}", "rows.jsonl:7: \"weight\" is an object"}};
    const struct estimate_options o = {.plugin = fixture("columns")};
    struct estimator *est;
    struct batch b;
    uint64_t seen = 0;
    assert_ok(estimate_open(&o, &est, &e), &e);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tare_text row = {cases[i][0], (int64_t)strlen(cases[i][0])};
        assert_int_equal(estimate_check_row(est, row, "rows.jsonl:7", &seen, &e), TARE_E_INVALID);
        if (!strstr(e.message, cases[i][1])) fail_msg("%s: %s", cases[i][0], e.message);
    }
    const tare_text level = {"{\"level\":2}", 11}, both = {"{\"level\":null,\"weight\":false}", 29};
    assert_ok(estimate_check_row(est, level, "rows.jsonl:8", &seen, &e), &e);
    assert_int_equal(estimate_check_seen(est, seen, "rows.jsonl", &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "rows.jsonl: no row has a number in the field \"weight\", which estimator columns reads"));
    assert_ok(estimate_check_row(est, both, "rows.jsonl:9", &seen, &e), &e);
    assert_ok(estimate_check_seen(est, seen, "rows.jsonl", &e), &e);
    parse("{\"groups\":[{\"rewards\":[1],\"row\":{}},{\"rewards\":[1],\"row\":{\"level\":\"3\"}}]}", &b);
    assert_int_equal(estimate_run(est, &b, &arena, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "the row of group 1: \"level\" is a text"));
    estimate_free(est);
}

static void facts__are_checked(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"finish\":[\"stop\"]", "\"finish\" must be an array of 2"},
        {"\"finish\":[\"stop\",\"end\"]", "rollout 1: \"finish\" must be \"stop\" or \"length\""},
        {"\"completions\":[\"a\",1]", "rollout 1: \"completions\" must be a text"},
        {"\"ids\":[[1],[1,2]]", "rollout 1: \"ids\" must be an array of token ids"},
        {"\"ids\":[[1],[-1]]", "rollout 1: \"ids\" must be"},
        {"\"verdicts\":[\"correct\",\"fine\"]", "rollout 1: \"verdicts\" must be a verdict"},
        {"\"component_verdicts\":[[\"wrong\"],[]]", "rollout 0: \"component_verdicts\" must be an array"},
        {"\"off_policy\":[0,1]", "rollout 0: \"off_policy\" must be true or false"},
        {"\"policy_version\":[0,-2]", "rollout 1: \"policy_version\" must be"},
        {"\"segments\":[[1],[2]]", "rollout 1: \"segments\" must be an array"},
        {"\"segment_rewards\":[[1],[\"a\"]]", "rollout 1: \"segment_rewards\" must be an array of numbers"},
        {"\"row\":[]", "\"row\" must be an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        json_t *object;
        struct batch b;
        snprintf(text, sizeof text, "{\"groups\":[{\"rewards\":[1,0],%s}]}", cases[i][0]);
        assert_ok(json_parse(text, (int64_t)strlen(text), "x", &object, &e), &e);
        const tare_status status = estimate_parse(object, "x:1", &arena, &b, &e);
        if (!status || !strstr(e.message, cases[i][1])) fail_msg("%s: %d %s", text, status, e.message);
        json_decref(object);
    }
    json_t *object;
    struct batch b;
    static const char SOME[] = "{\"groups\":[{\"rewards\":[1],\"finish\":[\"stop\"]},{\"rewards\":[1]}]}";
    assert_ok(json_parse(SOME, (int64_t)strlen(SOME), "x", &object, &e), &e);
    assert_int_equal(estimate_parse(object, "x", &arena, &b, &e), TARE_E_SHAPE);
    assert_non_null(strstr(e.message, "group 1: \"finish\" must be an array of 1, one for each reward; other groups have it"));
    json_decref(object);
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
        cmocka_unit_test(run__needs_no_baseline),
        cmocka_unit_test(run__refuses_a_nan_reward),
        cmocka_unit_test(metrics__are_given),
        cmocka_unit_test(parse__refuses),
        cmocka_unit_test(clusters__outside_of_the_codebook_are_refused),
        cmocka_unit_test(parse__reads_uids),
        cmocka_unit_test(facts__reach_an_estimator_that_asks),
        cmocka_unit_test(facts__that_are_missing_are_named),
        cmocka_unit_test(facts__are_checked),
        cmocka_unit_test(fields__reach_an_estimator_that_asks),
        cmocka_unit_test(fields__that_are_no_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
