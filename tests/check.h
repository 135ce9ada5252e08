/* Shared by all test programs: cmocka's includes in their order, the cases one by one for ctest,
 * skipping with a reason, and reference data.
 *
 * ctest runs a program once for each of its cases (tests/cases.cmake): TARE_TEST_CASE names the
 * case, and the exit status is 77 when it was skipped. Without it the program runs all cases. */
#ifndef TARE_TESTS_CHECK_H
#define TARE_TESTS_CHECK_H

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static int check_skipped;

/* Skips the running case. Every skip has a reason, which is printed at the end of `make test`. */
#undef skip
#define SKIP(...)                                                                                                                  \
    do {                                                                                                                           \
        printf("SKIP: " __VA_ARGS__);                                                                                              \
        putchar('\n');                                                                                                             \
        check_skipped = 1;                                                                                                         \
        _skip(__FILE__, __LINE__);                                                                                                 \
    } while (0)

/* Runs all cases of a program, or serves ctest: prints their names (TARE_TEST_LIST), or runs one
 * of them (TARE_TEST_CASE, a name or a pattern). Returns the exit status. */
static inline int run_cases(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                            CMFixtureFunction teardown)
{
    const char *one = getenv("TARE_TEST_CASE");
    if (getenv("TARE_TEST_LIST")) {
        for (size_t i = 0; i < n; i++) printf("CASE %s\n", tests[i].name);
        return 0;
    }
    size_t fits = 0;
    for (size_t i = 0; i < n; i++) fits += !one || !fnmatch(one, tests[i].name, 0);
    if (!fits) {
        printf("no case '%s'\n", one);
        return 1;
    }
    if (one) cmocka_set_test_filter(one);
    const int failed = _cmocka_run_group_tests(group, tests, n, setup, teardown);
    return failed ? failed : one && check_skipped ? 77 : 0;
}
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(TESTS, SETUP, TEARDOWN) run_cases(#TESTS, TESTS, sizeof(TESTS) / sizeof *(TESTS), SETUP, TEARDOWN)

/* Returns the path of a file of the reference data, in a static buffer: in SHARED if ../shared
 * is there, else in the small part of it in tests/data. Skips the running case if neither has
 * the file. */
static inline const char *shared_or_skip(const char *file)
{
    static char path[4096];
    const char *root = getenv("SHARED"), *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/%s", root ? root : "../shared", file);
    /* TARE_NO_SHARED: as in a clone without the data. */
    if (!getenv("TARE_NO_SHARED") && !access(path, R_OK)) return path;
    snprintf(path, sizeof path, "%s/tests/data/%s", source ? source : ".", file);
    if (access(path, R_OK)) SKIP("reference data: %s is neither in ../shared nor in tests/data", file);
    return path;
}

/* Returns true if a path of shared_or_skip is in the complete reference data, not in the part of
 * it in the tree, which has fewer rows and goldens. */
static inline bool shared_is_whole(const char *path)
{
    return !strstr(path, "/tests/data/");
}

#define assert_ok(X, E)                                                                                                            \
    do {                                                                                                                           \
        const tare_status got_ = (X);                                                                                              \
        if (got_) fail_msg("%s: %s [%s]", #X, (E)->message, (E)->frames);                                                          \
    } while (0)

#endif
