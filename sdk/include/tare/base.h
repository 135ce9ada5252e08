/* tare plugin ABI, major 1: the declarations shared by all kinds of plugins.
 *
 * A plugin is a shared object that exports one function, tare_plugin_v1 (see plugin.h). It returns
 * descriptors. Each describes one estimator, verifier, encoder, codebook, objective or curriculum:
 * its name, its parameters, and a table of functions. Nothing else is exchanged at load time.
 *
 * Rules for all structs and functions:
 *
 * Layout. Only fixed-width types are used. A struct that is passed by pointer starts with
 * struct_size, set by its allocator. Members are only ever appended; a reader tests an optional
 * member with TARE_HAS first. Neither side fills a struct past its allocator's size.
 *
 * Ownership never moves. Inputs are views, valid until the call returns; outputs go into the host's
 * buffers. The pointer that `create` returns in *self belongs to the plugin until `destroy`.
 *
 * Errors. A function returns a status and writes a message into the caller's tare_error: the
 * object, the fault, the value, the remedy. A plugin throws no exception across the boundary, never
 * calls exit, installs no signal handler, and writes nothing to stdout or stderr (use host->log).
 *
 * [const] marks a function that may not change its inputs, self included; `tare plugin check`
 * compares the saved state before and after.
 *
 * Functions of every kind: create makes an instance (values: [n_params] in table order, borrowed
 * until destroy) and sets *self; on an error *self is ignored and destroy is not called. destroy
 * frees the instance. save writes the state to a stream and load reads it into a new instance that
 * was created with the same locked parameters; load refuses bytes that it cannot read. A plugin
 * without a state leaves save and load NULL.
 *
 * Flags. Members named flags are 0 except for the bits that this header names. A reader refuses
 * bits that it does not know.
 *
 * Texts are UTF-8 as in the data: they may contain NUL, and a truncated completion may end inside a
 * character. tare_text never gets more members.
 *
 * Threads. Functions are called from the thread that created the instance, or from the host's
 * workers as the descriptor's threading allows. With TARE_INSTANCE_PER_THREAD each worker's
 * instance is created and destroyed by that worker, or before and after all of them by one thread.
 *
 * Locale and floating point. Numbers in text (parameters, state) never depend on the locale. A
 * plugin leaves the floating-point environment as it was.
 *
 * Shapes: M groups (prompts), N rollouts, T completion tokens of all rollouts, C reward components,
 * K clusters, D embedding width. */
#ifndef TARE_BASE_H
#define TARE_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_ABI_MAJOR 1
#define TARE_ABI_MINOR 3
#define TARE_EXPORT __attribute__((visibility("default")))

/* True if member F of *P exists in the build of P's allocator and is set. For pointer and function
 * members. */
#define TARE_HAS(P, F) ((P)->struct_size >= offsetof(__typeof__(*(P)), F) + sizeof((P)->F) && (P)->F)

/* True if member F of *P exists in the build of P's allocator. For numbers, where 0 is a value. */
#define TARE_HAS_NUMBER(P, F) ((P)->struct_size >= offsetof(__typeof__(*(P)), F) + sizeof((P)->F))

/* ---------------------------------------------------------------- status and errors */

/* 0 is success. The numbers never change their meaning; an unknown one is treated as
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

/* How a completion ended: with a stop token, or at the length limit. */
enum tare_finish { TARE_FINISH_STOP = 0, TARE_FINISH_LENGTH = 1 };

/* ---------------------------------------------------------------- parameters */

enum { TARE_BOOL = 1, TARE_INT, TARE_FLOAT, TARE_STRING, TARE_CHOICE, TARE_PATH };

enum {
    TARE_REQUIRED = 1,  /* no default: the user must set it */
    TARE_ABOVE_MIN = 2, /* min is not allowed itself */
    TARE_BELOW_MAX = 4, /* max is not allowed itself */
    TARE_LOG_SCALE = 8, /* sweeps use equal ratios instead of equal steps */
    TARE_SWEEPABLE = 16,
    /* A resumed run must have the same value. For a state from before the parameter existed, the
     * value is the default: choose a default that keeps the plugin's behaviour without the
     * parameter. */
    TARE_LOCKED_ON_RESUME = 32
};

/* One row of a plugin's parameter table. The host checks values against it, documents it, prints it
 * as INI and sweeps over it. Frozen for major 1; the descriptor has the stride nevertheless. */
typedef struct tare_param {
    const char *key;
    /* the default, written as in an INI file; NULL with TARE_REQUIRED */
    const char *fallback;
    const char *doc;            /* one sentence, with the symbol and equation that it stands for */
    const char *unit;           /* or NULL */
    const char *const *choices; /* TARE_CHOICE: ends with NULL; the value is the index */
    /* For TARE_INT and TARE_FLOAT: inclusive unless the flags say otherwise. min == max == 0: any
     * finite number. */
    double min, max;
    int32_t type;
    uint32_t flags;
} tare_param;

/* A checked value, in table order: i for bool, int and choice, f for float, s for string and path
 * (ends with NUL, lives until destroy). */
typedef union tare_value {
    int64_t i;
    double f;
    const char *s;
} tare_value;

/* ---------------------------------------------------------------- streams for saved state */

/* A plugin's saved state. The host writes id, version, length and a hash around the plugin's bytes,
 * and checks them before the plugin reads. Both functions return a status that the plugin passes
 * on. */
typedef struct tare_stream {
    uint32_t struct_size, flags;
    void *ctx;
    tare_status (*write)(void *ctx, const void *data, int64_t size);
    /* Fills data with size bytes. TARE_E_CORRUPT when fewer bytes remain. */
    tare_status (*read)(void *ctx, void *data, int64_t size);
    /* Since minor 2, for load: the version of the plugin that wrote the bytes, as in its
     * descriptor; a text that lives until load returns. NULL: unknown. The host reads states of the
     * plugin's own major version only. */
    const char *version;
} tare_stream;

/* ---------------------------------------------------------------- what the host offers */

enum { TARE_LOG_DEBUG = 0, TARE_LOG_INFO = 1, TARE_LOG_WARN = 2, TARE_LOG_ERROR = 3 };

/* Services of the host for an instance. Lives until after the last destroy. Every function may be
 * called from any thread. */
typedef struct tare_host {
    uint32_t struct_size, abi_minor;
    void *ctx;
    void (*log)(void *ctx, int32_t level, const char *message);
    /* Returns zeroed memory, counted against the plugin; NULL when memory is exhausted. */
    void *(*alloc)(void *ctx, int64_t size, int64_t align);
    void (*release)(void *ctx, void *memory);
    /* Writes n random words from Philox, keyed by (run seed, plugin, stream, counter): equal on
     * every rank and thread. */
    tare_status (*random)(void *ctx, uint64_t stream, uint64_t counter, uint32_t *out, int64_t n);
    /* records a value as KIND/name with the step's metrics */
    void (*metric)(void *ctx, const char *name, double value);
    int32_t (*cancelled)(void *ctx); /* returns 1 when the run is stopping: return soon */
    /* Returns the struct of an extension ("tare.embed/1", "tare.logprob/1"), which lives until the
     * instance's destroy returns. NULL: not offered. The entry point gets no extensions. */
    const void *(*extension)(void *ctx, const char *id);
} tare_host;

/* Extension "tare.embed/1": mean-pooled last hidden states of the frozen initial policy. */
typedef struct tare_embed_v1 {
    uint32_t struct_size, flags;
    void *ctx;
    int64_t (*dim)(void *ctx); /* D */
    /* writes a hash of the weights */
    tare_status (*identity)(void *ctx, char *text, int64_t capacity);
    /* out: [n, D] */
    tare_status (*embed)(void *ctx, const tare_text *texts, int64_t n, float *out, tare_error *err);
} tare_embed_v1;

/* Extension "tare.row_fields/1", a const char * and not a struct, for verifiers: the fields that the
 * rows of each data set of the run have, as JSON: {"data.train": ["answer", "id"], "data.eval":
 * [...]}. A field counts if any row has it. */

/* Extension "tare.logprob/1": logprobs of this step's completion tokens under the current weights.
 * Callable after the policy step and before apply returns. rollout: an index into the step's batch;
 * out: [tokens of the rollout]. For estimators, which request it in create: their collect and
 * record are then called after the policy step as well, so that the host can add up their vectors
 * over the ranks. */
typedef struct tare_logprob_v1 {
    uint32_t struct_size, flags;
    void *ctx;
    tare_status (*logprob)(void *ctx, int64_t rollout, float *out, tare_error *err);
} tare_logprob_v1;

#ifdef __cplusplus
}
#endif
#endif
