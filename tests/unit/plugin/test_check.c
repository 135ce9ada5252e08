/* tare plugin check on plugins that break the contract: the right test fails, says why, and the checking program goes on. */
#include "check.h"

#include "plugin/check/check.h"

#include <string.h>

static struct err e;

struct found {
    char failed[400]; /* names of the tests that failed */
    char message[4000];
    int64_t passed;
};

static void take(void *ctx, const struct check_result *r)
{
    struct found *f = ctx;
    f->passed += r->outcome == CHECK_PASS;
    if (r->outcome != CHECK_FAIL) return;
    size_t used = strlen(f->failed);
    snprintf(f->failed + used, sizeof f->failed - used, "%s ", r->name);
    used = strlen(f->message);
    snprintf(f->message + used, sizeof f->message - used, "%s: %s\n", r->name, r->message);
}

static struct found check_file(const char *path, const char *only, double limit)
{
    struct found f = {.passed = 0};
    const struct check_options o = {.path = path, .only = only, .seed = 7, .limit = limit};
    int64_t failed;
    assert_ok(check_run(&o, take, &f, &failed, &e), &e);
    assert_true(!failed == !f.failed[0]);
    return f;
}

static const char *fixture(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), name);
    return path;
}

static void check__finds_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *name, *test, *part;
    } cases[] = {
        {"aborts", "shapes", "killed by signal 6"},
#ifndef __SANITIZE_ADDRESS__ /* which makes an exit of it */
        {"segfaults", "shapes", "killed by signal 11"},
#endif
        {"hangs", "shapes", "still running after 0.5 s"},
        {"exits", "instances", "a plugin may not call exit"},
        {"writes_state", "phases", "changed the state; only apply may"},
        {"counts_calls", "phases", "compute again on the same batch: advantages"},
        {"counts_calls", "ranks", "advantages of a rank"},
        {"overwrites_sums", "sums", "collect does not add"},
        {"leaks_memory", "memory", "destroy left 1 pieces of memory"},
        {"leaks_files", "parameters", "create and destroy left 1 files open"},
        {"takes_signals", "parameters", "changed how a signal is handled"},
        {"changes_locale", "process", "tare_plugin_v1 changed the locale"},
        {"forgets_cluster", "shapes", "no cluster: the advantage of rollout 0"},
        {"past_end", "shapes", "wrote outside of an output buffer"},
        {"unwritten", "shapes", "the advantage of rollout"},
        {"trusts_state", "state", "load takes a state that is cut short"},
        {"create_fails", "parameters", "with the defaults: estimator hostile: create: factor 1 does not please"},
        {"silent_failure", "parameters", "and no message"},
        {"no_entry", "loads", "exports no function tare_plugin_v1"},
        {"null_member", "loads", "the function compute is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct found f = check_file(fixture(cases[i].name), cases[i].test, 0.5);
        if (!strstr(f.failed, cases[i].test) || !strstr(f.message, cases[i].part))
            fail_msg("%s, test %s: failed '%s': %s", cases[i].name, cases[i].test, f.failed, f.message);
    }
}

static void check__passes_good_plugins(void **state)
{
    (void)state;
    static const char *const names[] = {"bv_blend", "grpo", "krpo", "passk", "rl_zvp", "spo"};
    for (int i = 0; i < 6; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/estimators/%s.so", getenv("TARE_PLUGIN_PATH"), names[i]);
        const struct found f = check_file(path, NULL, 20);
        if (f.failed[0] || f.passed < 10) fail_msg("%s: %lld passed; %s", names[i], (long long)f.passed, f.message);
    }
    const struct found f = check_file(fixture("good"), NULL, 20);
    assert_string_equal(f.failed, "");
}

static void check__knows_its_tests(void **state)
{
    (void)state;
    struct found f = {.passed = 0};
    int64_t failed;
    const struct check_options o = {.path = fixture("good"), .only = "nothing"};
    assert_int_equal(check_run(&o, take, &f, &failed, &e), TARE_E_INVALID);
    f = check_file("/nowhere.so", NULL, 1);
    assert_non_null(strstr(f.failed, "loads"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check__finds_what_is_wrong), cmocka_unit_test(check__passes_good_plugins),
                                       cmocka_unit_test(check__knows_its_tests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
