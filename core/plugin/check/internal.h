/* What the files of the check share. */
#ifndef TARE_CORE_PLUGIN_CHECK_INTERNAL_H
#define TARE_CORE_PLUGIN_CHECK_INTERNAL_H

#include "base/rng.h"
#include "plugin/check/check.h"
#include "plugin/internal.h"

/* One test in its process. */
struct check {
    const struct check_options *options;
    const struct plugin *plugin; /* the one under test; NULL in tests of the file */
    const tare_value *values;    /* its parameters */
    struct arena arena;          /* lives as long as the test */
    struct rng_key key;
    uint64_t drawn;
    struct str note;         /* told beside a pass */
    const tare_batch *batch; /* what tare.logprob/1 is asked about */
    tare_logprob_v1 extension;
};

typedef tare_status (*check_function)(struct check *c, struct err *e);
struct check_test {
    const char *name, *what;
    int32_t kind; /* 0: of the file */
    check_function run;
};

extern const struct check_test CHECK_FILE[], CHECK_ANY[], CHECK_ESTIMATOR[], CHECK_VERIFIER[],
    CHECK_CLUSTERER[]; /* ended by name NULL */

uint64_t check_below(struct check *c, uint64_t n); /* the next random number in [0, n) */
double check_uniform(struct check *c);
/* What the checking host offers: the seed, and tare.logprob/1 for estimators. */
struct plugin_env check_env(struct check *c);
/* A new instance with the test's parameters. */
tare_status check_instance(struct check *c, struct plugin_instance **out, struct err *e);
enum { CHECK_CLUSTERS = 5 };

/* elf.c: calls visit with every symbol that a shared object exports. */
tare_status elf_exports(const char *path, tare_status (*visit)(void *ctx, const char *name, bool unique, struct err *e), void *ctx,
                        struct err *e);

#endif
