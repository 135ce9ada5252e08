/* What every test program shares: cmocka's includes in their order, and the reference folder beside the checkout. */
#ifndef TARE_TESTS_CHECK_H
#define TARE_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

/* Path of a file of the shared reference data, in a static buffer; skips the running test with its reason when it is not there. */
static inline const char *shared_or_skip(const char *file)
{
    static char path[4096];
    const char *root = getenv("SHARED");
    snprintf(path, sizeof path, "%s/%s", root ? root : "../shared", file);
    if (access(path, R_OK)) {
        printf("SKIP: %s is not there (reference data beside the checkout)\n", path);
        skip();
    }
    return path;
}

#define assert_ok(X, E)                                                                                                            \
    do {                                                                                                                           \
        const tare_status got_ = (X);                                                                                              \
        if (got_) fail_msg("%s: %s [%s]", #X, (E)->message, (E)->frames);                                                          \
    } while (0)

#endif
