/* libtare.so: the engine for other programs. `import tare` loads it through sdk/python/tare, which
 * needs no compiler.
 *
 * Version 1. Functions and members are only added; a struct that a caller fills begins with its
 * size. Handles are opaque. Every function that can fail returns a status (tare/base.h) and writes
 * a message to *error, which may be NULL. No function ends the process, catches a signal, or writes
 * to standard output. Messages go to the caller's function, or to standard error without one.
 *
 * A handle is used by one thread at a time, in the process that made it (TARE_E_STATE in a child of
 * fork). Several handles, of models and of runs, may be open at once. Results live as long as their
 * handle, unless stated otherwise. */
#ifndef TARE_CORE_API_API_H
#define TARE_CORE_API_API_H

#include <tare/estimator.h>
#include <tare/verifier.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_API_VERSION 2

typedef struct tare_api_error {
    tare_status code;
    char message[2000]; /* UTF-8, ends with NUL */
} tare_api_error;

TARE_EXPORT int32_t tare_api_version(void);
TARE_EXPORT const char *tare_api_release(void); /* of the program, "0.1.0" */
/* level: TARE_LOG_...; text is valid during the call. Called from any thread. */
typedef void (*tare_api_log)(void *ctx, int32_t level, const char *text);
/* Called first, once. program: the file of the program tare, next to which plugins and
 * configurations are found, and which is started as a worker (verifier.isolate = process). log
 * NULL: messages go to standard error. */
TARE_EXPORT tare_status tare_api_begin(const char *program, tare_api_log log, void *ctx, tare_api_error *error);
TARE_EXPORT void tare_api_log_level(int32_t least);
/* Frees a result that the caller owns. */
TARE_EXPORT void tare_api_free(void *memory);

/* ---------------------------------------------------------------- models */

typedef struct tare_api_model tare_api_model;
typedef struct tare_api_facts {
    int64_t vocab, hidden, layers, context;
    int32_t has_tokenizer;
} tare_api_facts;

/* folder: a model's or a run's. settings: n strings key=value, the keys of `tare generate`. */
TARE_EXPORT tare_status tare_api_model_open(const char *folder, const char *const *settings, int64_t n, tare_api_model **out,
                                            tare_api_error *error);
TARE_EXPORT void tare_api_model_close(tare_api_model *m); /* may be NULL */
TARE_EXPORT tare_status tare_api_model_facts(const tare_api_model *m, tare_api_facts *out, tare_api_error *error);
typedef struct tare_api_settings {
    const char *const *list; /* [n] key=value */
    int64_t n;
} tare_api_settings;
/* Text allocated by the library and owned by the caller: tare_api_free(data). NUL-terminated. */
typedef struct tare_api_text {
    char *data;
    int64_t size;
} tare_api_text;
/* Answers lines of JSON like `tare generate`. settings: sampling settings, for this call alone. */
TARE_EXPORT tare_status tare_api_generate(tare_api_model *m, const tare_text *lines, const tare_api_settings *settings,
                                          tare_api_text *out, tare_api_error *error);
typedef struct tare_api_lines {
    const int32_t *ids;
    const int64_t *begin; /* [n+1], from 0: line i has ids begin[i] .. begin[i+1]-1 */
    int64_t n;
    double temperature;
} tare_api_lines;
/* Computes logprobs of given tokens under the softmax at a temperature. logprob, entropy: one value
 * for each token except the first of each line. */
TARE_EXPORT tare_status tare_api_score(tare_api_model *m, const tare_api_lines *lines, float *logprob, float *entropy,
                                       tare_api_error *error);
/* Computes mean-pooled last hidden states, [n, hidden]. */
TARE_EXPORT tare_status tare_api_embed(tare_api_model *m, const tare_text *texts, int64_t n, float *out, tare_api_error *error);
/* *ids: owned by the caller. */
TARE_EXPORT tare_status tare_api_encode(tare_api_model *m, tare_text text, int32_t **ids, int64_t *n, tare_api_error *error);
TARE_EXPORT tare_status tare_api_decode(tare_api_model *m, const int32_t *ids, int64_t n, tare_api_text *out,
                                        tare_api_error *error);

/* ---------------------------------------------------------------- training runs */

typedef struct tare_api_run tare_api_run;
typedef struct tare_api_batch tare_api_batch;

/* A column by its name in the registry (docs/columns.md); those that the registry does not have, by
 * the engine's (core/batch/batch.h). */
typedef struct tare_api_column {
    const char *name;
    const void *data;
    int64_t n, width; /* n entries of width values each */
    int32_t type;     /* TARE_U8, ..., TARE_TEXT (data NULL: none), TARE_API_STRING */
} tare_api_column;
enum { TARE_API_STRING = 64 }; /* const char *; NULL: none */

/* A step as an advantage function sees it. The columns of batch->column, without those that are
 * absent, are [n_columns] in `column`. */
typedef struct tare_api_view {
    uint32_t struct_size;
    const tare_batch *batch;
    const tare_api_column *column;
    int64_t n_columns;
} tare_api_view;

/* Functions of the caller that act as plugins: verifier.plugins = python_function, estimator.plugin
 * = python_function. They are called in the thread that makes the step. A non-zero status ends the
 * step with the error's message; TARE_E_CANCELLED interrupts the run. */
typedef struct tare_api_asked {
    uint32_t struct_size;
    const char *instance; /* its name in verifier.plugins: "f" of `python_function as f` */
    const tare_host *host;
    int64_t n;
    const tare_completion *const *completion; /* [n] */
    const tare_verdict *const *verdict;       /* [n] the streams of `extracted` and `note`, which may be NULL */
    double *reward;                           /* [n] out; NaN on entry: no reward, which counts as 0 */
} tare_api_asked;
typedef tare_status (*tare_api_reward)(void *ctx, const tare_api_asked *asked, tare_error *error);
typedef tare_status (*tare_api_advantage)(void *ctx, const tare_api_view *view, double *advantage, tare_error *error);

typedef struct tare_api_run_options {
    uint32_t struct_size;
    int32_t resume, allow_change; /* as for `tare train` */
    const char *config;           /* a file, or builtin:NAME */
    const char *const *settings;  /* [n] section.key=value */
    int64_t n;
    void *ctx; /* for the two functions, which may be NULL */
    tare_api_reward reward;
    tare_api_advantage advantage;
} tare_api_run_options;

typedef struct tare_api_place {
    const char *dir;
    int64_t step, steps; /* finished steps; all steps */
} tare_api_place;

/* Does everything that `tare train` does before its first step: the warm start, the evaluation
 * before training. */
TARE_EXPORT tare_status tare_api_run_open(const tare_api_run_options *options, tare_api_run **out, tare_api_error *error);
TARE_EXPORT tare_status tare_api_run_place(const tare_api_run *run, tare_api_place *out, tare_api_error *error);
/* Makes one step. *out: owned by the caller, NULL after the last step. If a function of the caller
 * fails, the run is as before the step, which can be repeated. */
TARE_EXPORT tare_status tare_api_run_step(tare_api_run *run, tare_api_batch **out, tare_api_error *error);
/* Writes a checkpoint of the last complete step. */
TARE_EXPORT tare_status tare_api_run_save(tare_api_run *run, tare_api_error *error);
/* Saves as `tare train` does on SIGINT if steps remain. Always frees run, which may be NULL. */
TARE_EXPORT tare_status tare_api_run_close(tare_api_run *run, tare_api_error *error);

/* A step's batch, valid until tare_api_batch_free, even after its run is closed. */
/* Fills out with the columns that the step filled, at most `most`. Returns their number. */
TARE_EXPORT int64_t tare_api_batch_columns(const tare_api_batch *b, tare_api_column *out, int64_t most);
/* Returns the step's line of metrics.jsonl. */
TARE_EXPORT const char *tare_api_batch_metrics(const tare_api_batch *b);
TARE_EXPORT void tare_api_batch_free(tare_api_batch *b); /* may be NULL */

#ifdef __cplusplus
}
#endif
#endif
