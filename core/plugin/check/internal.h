/* Declarations shared by the files of the check. */
#ifndef TARE_CORE_PLUGIN_CHECK_INTERNAL_H
#define TARE_CORE_PLUGIN_CHECK_INTERNAL_H

#include "base/rng.h"
#include "plugin/check/check.h"
#include "plugin/internal.h"

/* State of the process that loading or calling a plugin may not change. printed: bytes on standard
 * output and error, where surroundings_catch_output catches them. */
struct surroundings {
    unsigned fp;
    char locale[256], directory[1024];
    uint64_t signals;
    int64_t files, threads, printed[2];
};
struct surroundings surroundings_now(void);
/* Compares the two. when: "create", ...: the subject of the message. */
tare_status surroundings_same(const struct surroundings *before, const struct surroundings *after, const char *when, struct err *e);
void surroundings_catch_output(void);

/* One test in its process. */
struct check {
    const struct check_options *options;
    const struct plugin *plugin; /* the plugin under test; NULL in tests of the file */
    const tare_value *values;    /* its parameters */
    struct arena arena;          /* lives as long as the test */
    struct rng_key key;
    uint64_t drawn;
    struct str note;  /* printed with a pass */
    void *kept;       /* stored by a check_instance_function for its check_pair_function */
    bool skipped;     /* set by check_skip */
    bool untested;    /* a required parameter is missing */
    bool binary;      /* the estimator accepts rewards of 0 and 1 only */
    bool no_optional; /* the host has none of the optional columns */
    /* Runs around every call (check_watch). */
    struct plugin_watch watch;
    struct surroundings before;
    struct err violation; /* the first one */
};

typedef tare_status (*check_function)(struct check *c, struct err *e);
struct check_test {
    const char *name, *what;
    int32_t kind; /* 0: a test of the file */
    check_function run;
};

/* Skips a test that does not apply to this plugin: return check_skip(c, e, "the plugin has no
 * state"). The only way to a SKIP. */
tare_status check_skip(struct check *c, struct err *e, const char *why);
/* Checks an instance that loaded a state cut short: it may be a whole state, as a shorter list is one,
 * but then it is saved as it was read. whole: bytes of the state before it was cut. */
tare_status check_cut(const struct plugin_instance *x, const struct str *cut, int64_t whole, struct err *e);
/* Fails where load went on after its stream had no bytes left. why: the host's refusal. */
tare_status check_ignored(const struct err *why, struct err *e);
/* Loads a plugin's own state cut short (even rounds), or with random bytes (odd ones). load may
 * refuse or accept it without a crash; a short state must be refused, or be a state itself. */
tare_status check_damaged(struct check *c, const struct str *raw, int round, struct err *e);
/* Watches the process around every call into a plugin from now on. Switched off where several
 * threads make calls. */
void check_watch(struct check *c, bool on);
/* file.c: calls each with the values of the test, one parameter after another at its ends, inside
 * its range and at its choices. what: "key = value". */
typedef tare_status (*check_values_function)(struct check *c, const tare_value *values, const char *what, struct err *e);
tare_status check_values(struct check *c, check_values_function each, struct err *e);
/* memory.c: the test "an allocation that fails is reported, and nothing leaks". */
tare_status check_memory(struct check *c, struct err *e);
/* verifier.c: sets the rows that the completions get; n 0: the check's own. */
void check_verifier_rows(const tare_text *rows, int64_t n);
/* hosts.c: the tests "oldest" and "future", which repeat a test under hosts with other sizes of
 * their structs. */
tare_status check_oldest(struct check *c, struct err *e);
tare_status check_future(struct check *c, struct err *e);

extern const struct check_test CHECK_FILE[], CHECK_ANY[], CHECK_ESTIMATOR[], CHECK_VERIFIER[], CHECK_CLUSTERER[], CHECK_OBJECTIVE[],
    CHECK_CURRICULUM[], CHECK_ENVIRONMENT[]; /* each ends with name NULL */

/* Returns n, or fewer where the options say so; at least 1. */
int64_t check_rounds(const struct check *c, int64_t n);
uint64_t check_below(struct check *c, uint64_t n); /* the next random number in [0, n) */
double check_uniform(struct check *c);
/* Returns a field of a row: any number, and sometimes NaN, a missing one. Equal for equal prompts and
 * names. */
double check_field(const char *name, uint64_t uid);
/* Returns the services of the checking host: the seed and tare.embed/1. */
tare_status check_env(struct check *c, struct plugin_env *out, struct err *e);
/* Makes a new instance with the test's parameters. */
tare_status check_instance(struct check *c, struct plugin_instance **out, struct err *e);
/* The first makes an instance with a history; the second runs several steps on two instances, which
 * must give equal results. */
typedef tare_status (*check_instance_function)(struct check *c, struct plugin_instance **out, struct err *e);
typedef tare_status (*check_pair_function)(struct check *c, struct plugin_instance *a, struct plugin_instance *b, struct err *e);
/* run.c: saves, loads into a new instance, and continues both as without a break. Also tests
 * damaged states. */
tare_status check_state(struct check *c, check_instance_function used, check_pair_function go_on, struct err *e);
enum { CHECK_CLUSTERS = 5 };
/* [loss] of objectives under test. */
extern const tare_loss CHECK_LOSS;
/* Rows of three files for curricula under test, without columns. */
extern const tare_dataset CHECK_DATASET;
/* Copies a data set, with the columns that the plugin wants of its rows. */
tare_status check_dataset(struct check *c, const tare_dataset *rows, const tare_dataset **out, struct err *e);

/* elf.c: how a shared object was linked. */
struct elf_link {
    bool code_relocations, static_tls;
    char folders[256]; /* of DT_RPATH or DT_RUNPATH; "": none */
};
tare_status elf_linking(const char *path, struct elf_link *out, struct err *e);
/* elf.c: calls visit with every symbol that a shared object exports. */
tare_status elf_exports(const char *path, tare_status (*visit)(void *ctx, const char *name, bool unique, struct err *e), void *ctx,
                        struct err *e);

#endif
