/* tare estimate: the filter keeps the state between lines; --replay reproduces a run's advantages
 * and finds every changed bit. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "estimate/estimate.h"

#include <string.h>
#include <sys/wait.h>

static struct err e;
static const char *dir;

static void need_tare(void)
{
    if (getenv("TARE") && !access(getenv("TARE"), X_OK)) return;
    SKIP("the program is not built");
}

/* Runs "tare ARGUMENTS", output to a file of the folder. Returns the exit status. */
static int tare(const char *arguments, struct str *out)
{
    char command[4096], path[512];
    snprintf(path, sizeof path, "%s/output", dir);
    snprintf(command, sizeof command, "\"%s\" %s > %s 2>&1", getenv("TARE"), arguments, path);
    const int rc = system(command);
    str_clear(out);
    assert_ok(fs_read_all(path, out, &e), &e);
    return WEXITSTATUS(rc);
}

static void put(const char *file, const char *text, int64_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    assert_ok(fs_write_atomic(path, text, n < 0 ? (int64_t)strlen(text) : n, &e), &e);
}

static const char *const STEPS[] = {
    "{\"groups\":[{\"cluster\":0,\"rewards\":[0.1,0.7,0.3]},{\"cluster\":1,\"rewards\":[1,0]}]}\n",
    "{\"groups\":[{\"cluster\":1,\"rewards\":[0.3,0.3]},{\"cluster\":0,\"rewards\":[0.9,0.1,0.2,1]}]}\n"};

static void filter__carries_the_state(void **state)
{
    (void)state;
    need_tare();
    struct str one = {0}, two = {0};
    char text[1000], arguments[600];
    snprintf(text, sizeof text, "%s\n%s", STEPS[0], STEPS[1]);
    put("steps.jsonl", text, -1);
    snprintf(arguments, sizeof arguments, "estimate bv_blend clusters=2 gamma=0.5 < %s/steps.jsonl", dir);
    assert_int_equal(tare(arguments, &one), 0);
    const char *second = strchr(one.data, '\n') + 1;
    put("second.jsonl", STEPS[1], -1);
    snprintf(arguments, sizeof arguments, "estimate bv_blend clusters=2 gamma=0.5 < %s/second.jsonl", dir);
    assert_int_equal(tare(arguments, &two), 0);
    assert_string_not_equal(second, two.data); /* the second step alone has no history */
    json_t *j;
    assert_ok(json_parse(second, (int64_t)strlen(second), "output", &j, &e), &e);
    const char *const keys[] = {"advantages", "baseline", "scale", "confidence"};
    for (int i = 0; i < 4; i++) assert_int_equal(json_array_size(json_object_get(j, keys[i])), 2);
    assert_int_equal(json_array_size(json_object_get(json_object_get(json_object_get(j, "state"), "per_cluster"), "m1")), 2);
    json_decref(j);
    str_free(&one);
    str_free(&two);
}

static void filter__exit_status(void **state)
{
    (void)state;
    need_tare();
    static const struct {
        const char *arguments;
        int status;
        const char *part;
    } cases[] = {
        {"estimate < /dev/null", 2, "PLUGIN is missing"},
        {"estimate --replay x < /dev/null", 2, "--replay accepts only RUN and --step N"},
        {"estimate grpo --fast < /dev/null", 2, "unknown option --fast"},
        {"estimate grpo gamma=1 < /dev/null", 3, "[estimator.grpo] gamma: unknown key"},
        {"estimate bv_blend < /dev/null", 3, "set codebook.plugin"},
        {"estimate bv_blend clusters=-1 < /dev/null", 3, "clusters = '-1'"},
        {"estimate no_such < /dev/null", 1, "no estimator named 'no_such'"},
        {"estimate /etc/passwd < /dev/null", 1, "not a shared object"},
        {"estimate grpo < /dev/null", 0, ""},
        {"plugin info grpo --ini", 0, "[estimator.grpo]"},
        {"plugin info nothing", 1, "no estimator named 'nothing'"},
        {"plugin list", 0, "estimator  bv_blend"},
        {"plugin list --ini", 2, "usage"},
    };
    struct str out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int status = tare(cases[i].arguments, &out);
        if (status != cases[i].status || !strstr(out.data, cases[i].part))
            fail_msg("tare %s: %d: %s", cases[i].arguments, status, out.data);
    }
    str_free(&out);
}

/* Writes a run's files of step 1: the state before it, and its rollouts. flip: change one bit of
 * one advantage. */
static void write_run(bool flip)
{
    struct estimate_options o = {.plugin = "bv_blend", .n_clusters = 2};
    struct config_param gamma = {"estimator.bv_blend", "gamma", "0.5", "test", NULL, NULL};
    struct estimator *est;
    struct arena a;
    struct batch b;
    struct str text = {0};
    o.settings = &gamma;
    arena_init(&a, "test");
    assert_ok(estimate_open(&o, &est, &e), &e);
    for (int s = 0; s < 2; s++) {
        json_t *object;
        assert_ok(json_parse(STEPS[s], (int64_t)strlen(STEPS[s]), "test", &object, &e), &e);
        assert_ok(estimate_parse(object, "test", &a, &b, &e), &e);
        json_decref(object);
        b.step = s;
        assert_ok(estimate_run(est, &b, &a, &e), &e);
        if (s == 1) break;
        assert_ok(estimate_apply(est, &(struct estimate_update){.step = s}, &e), &e);
    }
    assert_ok(estimate_save(est, &text, &e), &e);
    put("estimator/step-000001.state", text.data, text.size);
    str_clear(&text);
    for (int64_t m = 0; m < b.n_groups; m++) {
        for (int64_t i = b.group_begin[m]; i < b.group_begin[m + 1]; i++) {
            double advantage = b.advantage[i];
            uint64_t bits;
            memcpy(&bits, &advantage, 8);
            bits ^= flip && i == 3;
            memcpy(&advantage, &bits, 8);
            str_addf(&text, &e,
                     "{\"id\":\"q%lld\",\"sample\":%lld,\"group\":%lld,\"cluster\":%d,\"reward\":%.17g,\"advantage\":%.17g,"
                     "\"length\":7}\n",
                     (long long)m, (long long)i, (long long)m, b.cluster[m], b.reward[i], advantage);
        }
    }
    put("rollouts/step-000001.jsonl", text.data, text.size);
    put("config.ini", "[estimator]\nplugin = bv_blend\n[estimator.bv_blend]\ngamma = 0.5\n", -1);
    str_free(&text);
    estimate_free(est);
    arena_free(&a);
}

static void replay__gives_the_same_bits(void **state)
{
    (void)state;
    need_tare();
    struct str out = {0};
    char arguments[600];
    write_run(false);
    snprintf(arguments, sizeof arguments, "estimate --replay %s --step 1", dir);
    const int status = tare(arguments, &out);
    if (status || !strstr(out.data, "6 advantages, bit-identical to the run's") || !strstr(out.data, "{\"advantages\":[["))
        fail_msg("%d: %s", status, out.data);
    write_run(true);
    assert_int_equal(tare(arguments, &out), 1);
    assert_non_null(strstr(out.data, "group 1, rollout 1: the advantage is"));
    snprintf(arguments, sizeof arguments, "estimate --replay %s --step 2", dir);
    assert_int_equal(tare(arguments, &out), 1);
    assert_non_null(strstr(out.data, "missing: a run records the rollouts"));
    str_free(&out);
}

static int setup(void **state)
{
    (void)state;
    char path[400];
    if (!(dir = make_test_folder("tare-replay"))) return -1;
    snprintf(path, sizeof path, "%s/estimator", dir);
    if (fs_mkdirs(path, &e)) return -1;
    snprintf(path, sizeof path, "%s/rollouts", dir);
    return fs_mkdirs(path, &e) ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    return fs_remove_tree(dir, &e) ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(filter__carries_the_state), cmocka_unit_test(filter__exit_status),
                                       cmocka_unit_test(replay__gives_the_same_bits)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
