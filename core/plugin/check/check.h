/* tare plugin check: does a plugin keep the contract? Each test runs in a child process of its own, so that a plugin which crashes, hangs
 * or exits fails one test and not the check. Random inputs come from a seed that is printed: the same seed, the same inputs.
 * The child is forked: call this from a program with one thread. */
#ifndef TARE_CORE_PLUGIN_CHECK_CHECK_H
#define TARE_CORE_PLUGIN_CHECK_CHECK_H

#include "plugin/plugin.h"

enum check_outcome { CHECK_PASS, CHECK_FAIL, CHECK_SKIP };

struct check_result {
    const char *name, *what; /* of the test; what it looks at */
    enum check_outcome outcome;
    char message[1000]; /* why it failed or was skipped, or a number worth telling */
    double seconds;
};

struct check_options {
    const char *path;               /* the file */
    const char *only;               /* one test by name, or NULL */
    const char *const *assignments; /* "key=value" for every plugin of the file that has the key */
    int64_t n_assignments;
    uint64_t seed;
    double limit;    /* seconds a test may take; 0: 20 */
    bool in_process; /* no children: for a debugger */
};

/* Runs the tests and calls each with every result, in order. *failed: how many failed. */
tare_status check_run(const struct check_options *o, void (*each)(void *ctx, const struct check_result *r), void *ctx,
                      int64_t *failed, struct err *e);

#endif
