/* tare plugin ABI, major 1: the declarations shared by all kinds of plugins.
 *
 * A plugin is a shared object that exports one function, tare_plugin_v1 (plugin.h). It returns
 * descriptors. Each describes one estimator, verifier, encoder, codebook, objective, curriculum or
 * environment: its name, its parameters, the columns that it reads, and a table of functions.
 * Nothing else is exchanged at load time.
 *
 * Rules for all structs and functions:
 *
 * Platform. LP64, little-endian, ELF. Saved bytes are little-endian, too, so another machine can load
 * a state.
 *
 * Layout. Only fixed-width types are used. A struct that is passed by pointer starts with struct_size, set by its allocator. Members are only ever appended. A reader
 * tests a member that was not in 1.0 with TARE_KNOWS or TARE_HAS, and never compares struct_size
 * with a sizeof. Neither side writes past the allocator's size. Four structs are used by value or in
 * arrays and never grow: tare_text, tare_value, tare_column, tare_segment.
 *
 * Unknown bits and numbers. In what a plugin owns (flags, types, kinds of wants, verdicts, fates)
 * they must be understood: the host refuses unknown ones by name, except that it passes over a
 * descriptor of an unknown kind. In what the host owns they may be ignored: the host sets a new bit
 * only where ignoring it is harmless, and each enumeration says what a reader does with a number
 * that it does not know. 0 is always "none" or "not known".
 *
 * None. Numbers NaN, indices -1, codes 0, texts size 0, pointers NULL. An output that the plugin
 * does not write keeps its value on entry, which means "not given".
 *
 * Ownership never moves. Inputs are views, valid until the call returns, except those that
 * tare_setup names. Text and bytes that a plugin gives are written to a tare_stream, which copies
 * them. Numbers go into the host's buffers. The pointer that create returns in *self belongs to the
 * plugin until destroy.
 *
 * Errors. A function returns a status and writes a message into the caller's tare_error: the
 * object, the fault, the value, the remedy. A plugin throws no exception across the boundary. It
 * never calls exit or fork, and changes nothing that belongs to the process: signals, working
 * directory, locale, environment, stdin, stdout, stderr (use host->log). Programs are started with
 * posix_spawn.
 *
 * Results are a function of the parameters, the arguments and the saved state, with the same bits
 * on every machine of one kind; random numbers come from host->random. The host calls with
 * round-to-nearest, without flush-to-zero and with masked traps, and restores its own state after
 * the call. Numbers in text (parameters, state) never depend on the locale.
 *
 * Threads. Every function carries a tag:
 *   [setup]   no other function of the instance runs; the thread may be any
 *   [serial]  one call at a time, possibly from different threads
 *   [worker]  as the descriptor's `calls` says: one call at a time, one instance for each thread,
 *             or concurrent calls
 *   [any]     at any time from any thread
 *   [const]   in addition: changes nothing, self included, and repeats its result;
 *             `tare plugin check` compares the saved state before and after
 * A thread has at least 1 MiB of stack. A thread that a plugin starts ends before destroy returns.
 *
 * Texts are UTF-8 as in the data: they may contain NUL, and a truncated completion may end inside a
 * character.
 *
 * Shapes: M groups (prompts), N rollouts, U turns, T tokens, C reward components, K clusters,
 * D embedding width. The host's limits are in limits.h. */
#ifndef TARE_BASE_H
#define TARE_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
static_assert(sizeof(void *) == 8 && sizeof(long) == 8, "the tare plugin ABI is for LP64 machines");
#else
_Static_assert(sizeof(void *) == 8 && sizeof(long) == 8, "the tare plugin ABI is for LP64 machines");
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error the tare plugin ABI is for little-endian machines
#endif

#define TARE_ABI_MAJOR 1
#define TARE_ABI_MINOR 0
#define TARE_EXPORT __attribute__((visibility("default")))

/* True if the allocator of *P knows its member F. The only test of presence there is. */
#define TARE_KNOWS(P, F) ((P)->struct_size >= offsetof(__typeof__(*(P)), F) + sizeof((P)->F))
/* True if the member is also set. For pointers and functions. */
#define TARE_HAS(P, F) (TARE_KNOWS(P, F) && (P)->F)

/* ---------------------------------------------------------------- status and errors */

/* 0 is success. The numbers never change their meaning; a reader treats an unknown one as
 * TARE_E_GENERIC. */
typedef int32_t tare_status;
enum {
    TARE_OK = 0,
    TARE_E_GENERIC = 1,
    TARE_E_INVALID = 10, /* an invalid argument or row */
    TARE_E_RANGE = 11,   /* a value outside what is allowed */
    TARE_E_CONFIG = 12,  /* the configuration cannot work */
    TARE_E_SHAPE = 13,   /* sizes that do not match */
    TARE_E_NOMEM = 20,
    TARE_E_IO = 30,
    TARE_E_CORRUPT = 31,     /* a file or saved state that is damaged or cut short */
    TARE_E_VERSION = 32,     /* another version of a file, state or ABI */
    TARE_E_UNSUPPORTED = 40, /* valid, but not available here */
    TARE_E_NOT_FOUND = 41,
    TARE_E_TIMEOUT = 50,
    TARE_E_CANCELLED = 51,
    TARE_E_STATE = 60,      /* called in the wrong phase */
    TARE_E_NOT_FINITE = 61, /* a NaN or an infinity where a finite number is required */
    TARE_E_COMM = 70,
    TARE_E_DEVICE = 71,
    TARE_E_PLUGIN = 80 /* a plugin violated its contract */
};

/* The caller's buffer for an error. The callee sets code and message; the host prefixes the
 * plugin's kind and name, the phase and the step. */
typedef struct tare_error {
    uint32_t struct_size;
    tare_status code;
    char message[504]; /* UTF-8, ends with NUL */
} tare_error;

/* A view of UTF-8 bytes. It may contain NUL and does not end with one. */
typedef struct tare_text {
    const char *data;
    int64_t size;
} tare_text;

/* ---------------------------------------------------------------- parameters */

enum { TARE_PARAM_BOOL = 1, TARE_PARAM_INT, TARE_PARAM_FLOAT, TARE_PARAM_STRING, TARE_PARAM_CHOICE, TARE_PARAM_PATH };

/* Flags of tare_param. */
enum {
    TARE_PARAM_REQUIRED = 1,   /* no default: the user must set it */
    TARE_PARAM_MIN = 2,        /* min is the least value */
    TARE_PARAM_MAX = 4,        /* max is the greatest value */
    TARE_PARAM_ABOVE_MIN = 8,  /* with MIN: min is not allowed itself */
    TARE_PARAM_BELOW_MAX = 16, /* with MAX: max is not allowed itself */
    TARE_PARAM_LOG_SCALE = 32, /* sweeps use equal ratios instead of equal steps */
    TARE_PARAM_SWEEPABLE = 64,
    /* A resumed run must have the same value. For a state from before the parameter existed, the
     * value is the default: choose a default that keeps the plugin's behaviour without the
     * parameter. */
    TARE_PARAM_LOCKED_ON_RESUME = 128,
    /* A string such as an access key: never printed, recorded, put in a state or swept. The value
     * is the name of an environment variable; the plugin gets the variable's value. */
    TARE_PARAM_SECRET = 256,
    TARE_PARAM_DEPRECATED = 512, /* accepted with a warning; doc says what replaces it */
    TARE_PARAM_EXPERT = 1024,    /* listed last in the documentation */
    /* A path of a file that the run itself may make (a codebook that it trains): the host supplies
     * the default and does not require the file to exist. */
    TARE_PARAM_RUN_FILE = 2048
};

/* One row of a plugin's parameter table. The host checks values against it, documents it, prints it
 * as INI and sweeps over it. Rows grow: the descriptor has the stride (param_size). */
typedef struct tare_param {
    const char *key;            /* [a-z][a-z0-9_]* */
    const char *fallback;       /* the default as in an INI file; NULL with TARE_PARAM_REQUIRED */
    const char *doc;            /* one sentence, with the symbol and equation that it stands for */
    const char *unit;           /* or NULL */
    const char *const *choices; /* TARE_PARAM_CHOICE: ends with NULL; the value is the index */
    double min, max;            /* for INT (exact up to 2^53) and FLOAT; 0 without MIN, MAX */
    int32_t type;
    uint32_t flags;
    const char *group;              /* heading in documents and forms; NULL: none */
    const char *const *choice_docs; /* [choices] a sentence each; NULL: none */
    const char *const *old_keys;    /* earlier names, still accepted with a note; ends with NULL */
} tare_param;

/* A checked value, in table order: i for bool, int and choice, f for float, s for string and path
 * (ends with NUL, lives until destroy). A path is absolute; an empty one stays empty. */
typedef union tare_value {
    int64_t i;
    double f;
    const char *s;
} tare_value;

/* ---------------------------------------------------------------- columns */

/* The axis of a column: what it has an entry for. */
enum {
    TARE_AXIS_ONE = 0, /* one entry */
    TARE_AXIS_ROW,     /* [R] rows of the data set */
    TARE_AXIS_GROUP,   /* [M] */
    TARE_AXIS_ROLLOUT, /* [N] */
    TARE_AXIS_TURN,    /* [U] */
    TARE_AXIS_TOKEN    /* [T] */
};

/* The type of an entry: uint8_t, int32_t, ..., tare_text. */
enum { TARE_U8 = 1, TARE_I32, TARE_I64, TARE_U64, TARE_F32, TARE_F64, TARE_TEXT };

/* Flags of tare_want. */
enum { TARE_WANT_OPTIONAL = 1 /* without the column the plugin gets data NULL; else it is refused */ };

/* A column that a plugin reads. The host's registry lists the names with axis, type and width
 * (docs/columns.md, `tare plugin columns`); name, axis and type must be as listed there. A column
 * that no plugin wants is not computed. "row.KEY" is the field KEY of the data set's rows as a
 * number: NaN where a row lacks it, 1 and 0 for true and false; any other value is refused before
 * the run starts, with file and line. "row.$P" is the field that the plugin's string parameter P
 * names; an empty value turns the want off. Names that begin with "x." are never the host's. */
typedef struct tare_want {
    const char *name;
    int32_t axis, type;
    uint32_t flags;
    uint32_t width; /* numbers of an entry; 0: as many as there are (tare_column.width) */
} tare_want;

/* A column: [n, width] entries of the want's type. data NULL: an optional column that is absent, or
 * one that tare_head.select turned off. */
typedef struct tare_column {
    const void *data;
    int64_t n, width;
} tare_column;

/* ---------------------------------------------------------------- streams */

/* Bytes that a plugin gives or gets. Both functions return a status that the plugin passes on. For
 * saved states the host writes kind, name, versions, length and a hash around the plugin's bytes,
 * and checks them before the plugin reads. */
typedef struct tare_stream {
    uint32_t struct_size, flags;
    void *ctx;
    /* Copies size bytes. NULL when reading. Texts for people are cut by the host where they are too
     * long. */
    tare_status (*write)(void *ctx, const void *data, int64_t size);
    /* Fills data with size bytes; TARE_E_CORRUPT when fewer are left. NULL when writing. */
    tare_status (*read)(void *ctx, void *data, int64_t size);
    int64_t size;           /* when reading: all bytes that there are */
    uint32_t state_version; /* in load: the writer's tare_descriptor.state_version */
    uint32_t reserved;
} tare_stream;

/* ---------------------------------------------------------------- what the host offers */

/* Levels of log. An unknown number counts as the nearest. */
enum { TARE_LOG_DEBUG = 0, TARE_LOG_INFO = 1, TARE_LOG_WARN = 2, TARE_LOG_ERROR = 3 };

/* How the values that a metric is given in one step, by any call, thread, worker or rank, become
 * one. An unknown number counts as LAST. */
enum { TARE_METRIC_LAST = 0, TARE_METRIC_SUM, TARE_METRIC_MEAN, TARE_METRIC_MIN, TARE_METRIC_MAX };

/* Services of the host for an instance; lives until destroy returns. All functions are [any].
 * Extensions are those of the engine's own process: the entry point, a worker process and the Python
 * host have none. There, cancelled returns 0; the host ends a worker instead. The entry point's
 * random draws from seed 0, and its metrics are dropped.
 *
 * An extension's id is "tare.NAME/REVISION", or begins with a domain of its author,
 * "org.example.NAME/REVISION". It never changes: a draft keeps its id when it becomes stable, and a
 * changed one has another revision. */
typedef struct tare_host {
    uint32_t struct_size, abi_minor;
    void *ctx;
    const char *name, *version; /* "tare", "0.1.0" */
    void (*log)(void *ctx, int32_t level, const char *message);
    /* Returns zeroed memory, counted against the plugin; NULL when memory is exhausted. align: a
     * power of two up to 2^20; below 16 counts as 16. */
    void *(*alloc)(void *ctx, int64_t size, int64_t align);
    void (*release)(void *ctx, void *memory);
    /* Writes n random words from Philox, keyed by (run.seed, kind, instance, stream, counter): equal
     * on every rank and thread. */
    tare_status (*random)(void *ctx, uint64_t stream, uint64_t counter, uint32_t *out, int64_t n);
    /* Records a value with the step's metrics, as KIND/name, or as KIND.INSTANCE/name where the
     * instance has a name of its own. how: TARE_METRIC_... */
    void (*metric)(void *ctx, const char *name, double value, int32_t how);
    int32_t (*cancelled)(void *ctx); /* returns 1 when the run is stopping: return soon */
    int64_t (*now_ns)(void *ctx);    /* the clock of deadlines (CLOCK_MONOTONIC) */
    /* Returns the struct of an extension ("tare.embed/1"), which lives until destroy returns. NULL:
     * not offered. A query never changes behaviour. */
    const void *(*extension)(void *ctx, const char *id);
} tare_host;

/* Extension "tare.embed/1": mean-pooled last hidden states of the frozen initial policy. */
typedef struct tare_embed_v1 {
    uint32_t struct_size, flags;
    void *ctx;
    int64_t (*dim)(void *ctx); /* D */
    /* writes a hash of the weights */
    tare_status (*identity)(void *ctx, const tare_stream *out, tare_error *error);
    /* out: [n, D] */
    tare_status (*embed)(void *ctx, const tare_text *texts, int64_t n, float *out, tare_error *error);
} tare_embed_v1;

/* Extension "tare.progress/1": how far the run is. */
typedef struct tare_progress_v1 {
    uint32_t struct_size, flags;
    void *ctx;
    int64_t (*finished)(void *ctx); /* [any] finished steps */
    int64_t steps;                  /* all steps of the run */
} tare_progress_v1;

/* Extension "tare.row_fields/1", a const char * and not a struct: the fields that the rows of each
 * data set of the run have, as JSON: {"data.train": ["answer", "id"], "data.eval": [...]}. A field
 * counts if any row has it. */

/* ---------------------------------------------------------------- instances */

struct tare_loss;    /* objective.h */
struct tare_dataset; /* curriculum.h */

/* What an instance is created from. All that it points to lives until destroy returns. */
typedef struct tare_setup {
    uint32_t struct_size, flags;
    const tare_host *host;
    const tare_value *values;           /* [n_params] in table order */
    const char *instance;               /* its name in the run: "strict" of `python as strict` */
    int64_t n_clusters;                 /* estimators: K of the run's codebook; 0: none */
    const struct tare_loss *loss;       /* objectives; else NULL */
    const struct tare_dataset *dataset; /* curricula; else NULL */
} tare_setup;

/* Numbers of an instance, 0 on entry; they stay the same as long as the instance lives. */
typedef struct tare_sizes {
    uint32_t struct_size, flags;
    /* estimators: doubles in a group's vectors; objectives: annotated doubles of a token, and the
     * vector of collect */
    int64_t prepare, collect;
    int64_t record;   /* estimators: doubles in a group's record */
    int64_t dim;      /* encoders and codebooks: D; 0: a codebook that takes rows */
    int64_t clusters; /* codebooks: K; after fit where there is one */
} tare_sizes;

/* The step's update, for apply. */
typedef struct tare_update {
    uint32_t struct_size, flags;
    int64_t step;
    /* optimizer steps, and those of them that were skipped because the gradient was not finite */
    int64_t updates, skipped;
    const double *collected; /* [tare_sizes.collect], summed over all groups of all ranks */
    /* estimators: the step's groups in global prompt order; a prompt may occur twice */
    int64_t n_groups;
    const uint64_t *prompt_uid; /* [n_groups] */
    const double *record;       /* [n_groups, tare_sizes.record] */
} tare_update;

/* The head of every function table. create, destroy and those named by the kind are required; the
 * others may be NULL.
 *
 *   create    [setup] Makes an instance and sets *self. After an error *self is ignored and destroy
 *             is not called.
 *   destroy   [setup] Frees the instance.
 *   save      [serial] [const] Writes the state. Both save and load, or neither: no state.
 *   load      [setup] Reads the state into a new instance whose locked parameters are the same. It
 *             refuses bytes that it cannot read. The host refuses states older than
 *             tare_descriptor.state_oldest.
 *   describe  [serial] [const] Writes the state as one JSON object for people. An array of K numbers
 *             inside an object "per_cluster" becomes a metric of each cluster.
 *   identity  [serial] [const] Writes what results depend on beside name, version and parameters, as
 *             text: the hash of a weights file, the name of a judge's model. The host records it
 *             with the run and compares it on resume.
 *   select    [any] [const] Turns off wants that these values do not need: sets entries of wanted,
 *             [n_wants], 1 on entry, to 0. Called before create. */
#define TARE_HEAD                                                                                                                  \
    uint32_t struct_size, flags;                                                                                                   \
    tare_status (*create)(const tare_setup *setup, void **self, tare_error *error);                                                \
    void (*destroy)(void *self);                                                                                                   \
    tare_status (*save)(const void *self, const tare_stream *out, tare_error *error);                                              \
    tare_status (*load)(void *self, const tare_stream *in, tare_error *error);                                                     \
    tare_status (*describe)(const void *self, const tare_stream *out, tare_error *error);                                          \
    tare_status (*identity)(const void *self, const tare_stream *out, tare_error *error);                                          \
    tare_status (*select)(const tare_value *values, uint8_t *wanted, tare_error *error)

/* The head alone, to reach it in a table of any kind. */
typedef struct tare_head {
    TARE_HEAD;
} tare_head;

#ifdef __cplusplus
}
#endif
#endif
