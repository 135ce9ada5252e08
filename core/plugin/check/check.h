/* Implements `tare plugin check`, which tests that a plugin keeps the contract. Each test runs in a
 * separate child process, so that a plugin which crashes, hangs or exits fails one test and not the
 * check. Random inputs come from a printed seed: the same seed gives the same inputs. The child is
 * forked, so the calling program must have a single thread. */
#ifndef TARE_CORE_PLUGIN_CHECK_CHECK_H
#define TARE_CORE_PLUGIN_CHECK_CHECK_H

#include "base/fs.h"
#include "plugin/plugin.h"

enum check_outcome { CHECK_PASS, CHECK_FAIL, CHECK_SKIP };

struct check_result {
    const char *name, *what; /* of the test; what it tests */
    enum check_outcome outcome;
    char message[1000]; /* reason for a failure or a skip, or a measurement */
    double seconds;
};

struct check_options {
    const char *path;               /* the file */
    const char *only;               /* name of a single test, or NULL */
    const char *const *assignments; /* "key=value" for every plugin of the file that has the key */
    int64_t n_assignments;
    uint64_t seed;
    const tare_text *rows; /* [n_rows] JSON objects for verifiers; n_rows 0: the check's own row */
    int64_t n_rows;
    bool needs_values; /* TARE_E_CONFIG if a required parameter is missing, instead of a failed test */
    int64_t fewer;     /* 2: half as many rounds in the long tests, and so on; 0: 1 */
    double limit;      /* seconds a test may take; 0: 20 */
    bool in_process;   /* run without child processes, for a debugger */
};

/* Runs the tests and calls each with every result, in order. *failed: the number of failed tests.
 */
tare_status check_run(const struct check_options *o, void (*each)(void *ctx, const struct check_result *r), void *ctx,
                      int64_t *failed, struct err *e);

/* What a built-in plugin needs beside its defaults to be tested; empty for most. */
struct check_example {
    const char *row;               /* NULL: the check's own */
    char assignment[FS_PATH + 64]; /* "key=value", or "" */
    int64_t fewer;                 /* as in check_options */
    char path[FS_PATH];            /* of a temporary file, or "" */
};
tare_status check_example(const char *plugin, struct check_example *out, struct err *e);
void check_example_end(struct check_example *x); /* removes its file */

/* Appends one line that says which file was checked, against which ABI and how: "certificate: xxh3
 * 0123456789abcdef, ABI 1.0, 14 tests, 0 failed, seed 1". Equal files and seeds give equal lines. */
tare_status check_certificate(const struct check_options *o, int64_t tests, int64_t failed, struct str *out, struct err *e);

#endif
