/* Context tokens, which lie between the turns of an episode, must not move an estimator's results:
 * `tare plugin check` finds the estimators that they do move. */
#include "check.h"

#include "plugin/check/check.h"

#include <string.h>

struct outcome {
    bool failed;
    char message[1000];
};

static void take(void *ctx, const struct check_result *r)
{
    struct outcome *o = ctx;
    if (strcmp(r->name, "context")) return;
    o->failed = r->outcome == CHECK_FAIL;
    snprintf(o->message, sizeof o->message, "%s", r->message);
}

static void context__faults_are_found(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"skips_context", NULL},
        {"counts_context", "without its context tokens: advantages"},
        {"reads_context", "absurd columns of the context tokens: advantages"},
        {"spreads_context", "without its context tokens: the advantage of token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct outcome o = {.failed = false};
        int64_t failed;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), cases[i][0]);
        assert_ok(check_run(&(struct check_options){.path = path, .only = "context", .seed = 7}, take, &o, &failed, &e), &e);
        if (o.failed != (cases[i][1] != NULL) || (o.failed && !strstr(o.message, cases[i][1])))
            fail_msg("%s: %s", cases[i][0], o.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(context__faults_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
