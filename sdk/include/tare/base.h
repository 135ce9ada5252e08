/* tare plugin ABI, major 1: what every kind of plugin shares.
 *
 * A plugin is a shared object that exports one function, tare_plugin_v1 (see plugin.h). It returns descriptors; each names one
 * estimator, verifier, encoder, codebook, objective or curriculum, its parameters, and a table of functions. Nothing else is exchanged at load time.
 *
 * Rules that hold everywhere:
 *   - Fixed-width types only. A struct that is passed by pointer starts with struct_size, set by whoever allocates it;
 *     members are only ever appended; a reader tests an optional member with TARE_HAS first. Neither side fills a struct past
 *     its allocator's size.
 *   - Ownership never moves. Inputs are views, valid until the call returns; outputs go into the host's buffers. What `create`
 *     returns belongs to the plugin until `destroy`.
 *   - Errors: a status, and a message in the caller's tare_error: what, where, which value, what to do. No exceptions, no exit,
 *     no signals, no output on stdout or stderr (use host->log).
 *   - [const] a function may not change what it is given, self included; `tare plugin check` compares saved state before and after.
 *   - Members named flags are 0 except for the bits that this header names. A reader refuses bits that it does not know.
 *   - Texts are UTF-8 as the data has them: they may contain NUL, and a truncated completion may end inside a character. tare_text
 *     never gets more members.
 *   - Functions are called from the thread that created the instance, or from the host's workers as the descriptor's threading
 *     allows; with TARE_INSTANCE_PER_THREAD each worker's instance is created and destroyed by that worker or before and after all
 *     of them by one thread.
 *   - Numbers in text (parameters, state) never depend on the locale. A plugin leaves the floating-point environment as it was.
 *
 * Shapes: M groups (prompts), N rollouts, T completion tokens of all rollouts, C reward components, K clusters, D embedding width.
 */
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

/* True if member F of *P exists in the build of P's allocator and is set. For pointer and function members. */
#define TARE_HAS(P, F) ((P)->struct_size >= offsetof(__typeof__(*(P)), F) + sizeof((P)->F) && (P)->F)

/* The same for a member that is a number, for which 0 is a value. */
#define TARE_HAS_NUMBER(P, F) ((P)->struct_size >= offsetof(__typeof__(*(P)), F) + sizeof((P)->F))

/* ---------------------------------------------------------------- status and errors */

/* 0 is success. The numbers never change meaning; an unknown one is treated as TARE_E_GENERIC. */
typedef int32_t tare_status;
enum {
    TARE_OK = 0,
    TARE_E_GENERIC = 1,
    TARE_E_INVALID = 10, /* an argument or a row that makes no sense */
    TARE_E_RANGE = 11,   /* a value outside what is allowed */
    TARE_E_CONFIG = 12,  /* the configuration cannot work */
    TARE_E_SHAPE = 13,   /* sizes that do not fit together */
    TARE_E_NOMEM = 20,
    TARE_E_IO = 30,
    TARE_E_CORRUPT = 31,     /* a file or saved state that is damaged or cut short */
    TARE_E_VERSION = 32,     /* a file, state or ABI of another version */
    TARE_E_UNSUPPORTED = 40, /* understood, but not available here */
    TARE_E_NOT_FOUND = 41,
    TARE_E_TIMEOUT = 50,
    TARE_E_CANCELLED = 51,
    TARE_E_STATE = 60,      /* called in the wrong phase */
    TARE_E_NOT_FINITE = 61, /* a NaN or an infinity where a finite number is required */
    TARE_E_COMM = 70,
    TARE_E_DEVICE = 71,
    TARE_E_PLUGIN = 80 /* a plugin broke its contract */
};

/* The caller's buffer for an error. The callee sets code and message; the host adds plugin, kind, phase and step in front. */
typedef struct tare_error {
    uint32_t struct_size;
    tare_status code;
    char message[504]; /* UTF-8, ends with NUL */
} tare_error;

/* A view of UTF-8 bytes. May hold NUL and is not ended by one. */
typedef struct tare_text {
    const char *data;
    int64_t size;
} tare_text;

/* How a completion ended: by a stop token, or at the length limit. */
enum tare_finish { TARE_FINISH_STOP = 0, TARE_FINISH_LENGTH = 1 };

/* ---------------------------------------------------------------- parameters */

enum { TARE_BOOL = 1, TARE_INT, TARE_FLOAT, TARE_STRING, TARE_CHOICE, TARE_PATH };

enum {
    TARE_REQUIRED = 1,  /* no default: the user must set it */
    TARE_ABOVE_MIN = 2, /* min itself is not allowed */
    TARE_BELOW_MAX = 4, /* max itself is not allowed */
    TARE_LOG_SCALE = 8, /* sweeps use equal ratios */
    TARE_SWEEPABLE = 16,
    TARE_LOCKED_ON_RESUME =
        32 /* a resumed run must have the same value. A state from before the parameter existed counts as saved with the
                                  default: choose a default that keeps what the plugin did without it */
};

/* One row of a plugin's parameter table. The host checks values against it, documents it, prints it as INI and sweeps over it.
 * Frozen for major 1 (the stride is in the descriptor nevertheless). */
typedef struct tare_param {
    const char *key;
    const char *fallback;       /* the default, as it would be in the INI file; NULL with TARE_REQUIRED */
    const char *doc;            /* one sentence, with the symbol and equation it stands for */
    const char *unit;           /* or NULL */
    const char *const *choices; /* TARE_CHOICE: ended by NULL; the value is the index */
    double min, max; /* TARE_INT, TARE_FLOAT: inclusive unless the flags say otherwise; min == max == 0: any finite number */
    int32_t type;
    uint32_t flags;
} tare_param;

/* A checked value, in table order: i for bool, int and choice, f for float, s for string and path (NUL-ended, lives until
 * destroy). */
typedef union tare_value {
    int64_t i;
    double f;
    const char *s;
} tare_value;

/* ---------------------------------------------------------------- streams for saved state */

/* The host writes id, version, length and a hash around what the plugin writes, and checks them before it lets the plugin read. */
typedef struct tare_stream {
    uint32_t struct_size, flags;
    void *ctx;
    tare_status (*write)(void *ctx, const void *data, int64_t size);
    tare_status (*read)(void *ctx, void *data, int64_t size); /* TARE_E_CORRUPT when fewer bytes are left */
    /* Since minor 2, for load: the version of the plugin that wrote the bytes, as in its descriptor; a text that lives until load
     * returns. NULL: not known. The host reads states of the plugin's own major version only. */
    const char *version;
} tare_stream;

/* ---------------------------------------------------------------- what the host offers */

enum { TARE_LOG_DEBUG = 0, TARE_LOG_INFO = 1, TARE_LOG_WARN = 2, TARE_LOG_ERROR = 3 };

/* Lives until after the last destroy. Every function may be called from any thread. */
typedef struct tare_host {
    uint32_t struct_size, abi_minor;
    void *ctx;
    void (*log)(void *ctx, int32_t level, const char *message);
    void *(*alloc)(void *ctx, int64_t size, int64_t align); /* zeroed, counted against the plugin; NULL when memory is exhausted */
    void (*release)(void *ctx, void *memory);
    /* Philox keyed by (run seed, plugin, stream, counter): the same on every rank and thread. n words. */
    tare_status (*random)(void *ctx, uint64_t stream, uint64_t counter, uint32_t *out, int64_t n);
    void (*metric)(void *ctx, const char *name, double value); /* recorded as KIND/name with the step's metrics */
    int32_t (*cancelled)(void *ctx);                           /* 1: the run is being stopped, return soon */
    /* "tare.embed/1", "tare.logprob/1"; NULL: not offered. What it returns lives until the instance's destroy returns; the entry
     * point gets no extensions. */
    const void *(*extension)(void *ctx, const char *id);
} tare_host;

/* Extension "tare.embed/1": mean-pooled last hidden states of the frozen initial policy. */
typedef struct tare_embed_v1 {
    uint32_t struct_size, flags;
    void *ctx;
    int64_t (*dim)(void *ctx);                                                                       /* D */
    tare_status (*identity)(void *ctx, char *text, int64_t capacity);                                /* which weights: a hash */
    tare_status (*embed)(void *ctx, const tare_text *texts, int64_t n, float *out, tare_error *err); /* out: [n, D] */
} tare_embed_v1;

/* Extension "tare.logprob/1": logprobs of this step's completion tokens under the current weights, callable after the policy
 * step and before apply returns. rollout: an index into the step's batch; out: [tokens of the rollout]. For estimators, which
 * request it in create: their collect and record are then called after the policy step as well, so that the host can add up over
 * the ranks what they find. */
typedef struct tare_logprob_v1 {
    uint32_t struct_size, flags;
    void *ctx;
    tare_status (*logprob)(void *ctx, int64_t rollout, float *out, tare_error *err);
} tare_logprob_v1;

#ifdef __cplusplus
}
#endif
#endif
