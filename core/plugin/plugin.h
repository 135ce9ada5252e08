/* Plugins: finding, checking and loading shared objects, their parameters, the host's services for
 * them, and their saved state.
 *
 *   const struct plugin *p;
 *   TRY(plugin_open("grpo", TARE_KIND_ESTIMATOR, &search, &p, e));
 *   TRY(plugin_params(p, config.params, &arena, &values, e));
 *   TRY(plugin_create(p, values, 0, &env, &instance, e));
 *   ...p->estimator->compute(instance->self, ...) between plugin_enter and plugin_leave,
 *      or one of the calls below...
 *   plugin_destroy(instance);
 *
 * A file is opened once in a process (by real path), and never closed: threads and exit handlers
 * may still refer to its code. The file is checked as ELF before the dynamic loader runs any of its
 * code, so that a text file, another machine's object or an object for another ABI is refused with
 * a message that says so. The floating-point environment is restored after every call into a
 * plugin.
 *
 * Threads: plugin_open and plugin_list may be called from any thread; an instance as its
 * descriptor's threading allows. */
#ifndef TARE_CORE_PLUGIN_PLUGIN_H
#define TARE_CORE_PLUGIN_PLUGIN_H

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"
#include "config/kinds.h"
#include "plugin/columns.h"

#include <fenv.h>
#include <stdbool.h>
#include <tare/plugin.h>

/* ---------------------------------------------------------------- loading */

/* One descriptor of a loaded file. Lives until the process ends. The tables are the host's copies:
 * a member that the plugin's build did not have is NULL, so it can be tested and called without
 * TARE_HAS. */
struct plugin {
    const char *path; /* real path */
    uint64_t hash;    /* XXH3 of the file, for the run's manifest */
    uint32_t minor_built;
    tare_descriptor desc;
    const char *build;        /* of the file: "tare-sdk 1.0.0, c, gcc 12.2"; NULL: not given */
    const tare_param *params; /* [desc.n_params], in this build's layout */
    const tare_want *wants;   /* [desc.n_wants], the same */
    const int16_t *column;    /* [desc.n_wants] enum column_id of each want */
    union {
        const tare_head *head;
#define PLUGIN_TABLE(CONSTANT, NAME, ...) const tare_##NAME *NAME;
        /* const tare_estimator *estimator; and so on: desc.kind has the one to use */
        PLUGIN_KINDS(PLUGIN_TABLE)
#undef PLUGIN_TABLE
    };
};

/* Adds a folder to those that are searched for names: TARE_PLUGIN_PATH, the folder of the
 * executable and PREFIX/lib/tare. A pointer to it may be NULL everywhere. */
struct plugin_search {
    const char *folder; /* run.plugins; NULL or empty: none */
};

/* Name of the verifier and the estimator that are functions of the program which loads this library
 * (core/api). No file has this name. */
#define PLUGIN_OF_CALLER "python_function"

/* The plugins of this project, including those that are missing from this build. The list ends with
 * a NULL name. */
struct plugin_builtin {
    const char *folder; /* "verifiers" */
    const char *name;
    const char *needs; /* Debian packages in addition to the engine's; NULL: none */
    bool built;
};
extern const struct plugin_builtin PLUGIN_BUILTINS[];

/* Opens a plugin. name: a name on the search path ("grpo"), or a file (with a '/' or ending in
 * .so). For a file with several plugins of the kind: "FILE.so:NAME". Errors: TARE_E_NOT_FOUND lists
 * the folders searched and the most similar name; TARE_E_VERSION, TARE_E_CORRUPT and TARE_E_PLUGIN
 * say what is wrong with the file. */
tare_status plugin_open(const char *name, int32_t kind, const struct plugin_search *search, const struct plugin **out,
                        struct err *e);

/* Adds plugins of the program itself, which are found by their names before any file. origin:
 * replaces a file's path in messages, and lives as long as the process. Plugins already added under
 * this origin stay. */
tare_status plugin_add(const char *origin, const tare_plugin *plugin, struct err *e);

/* Visit every plugin of a file, or of every file on the search path. visit returns non-zero to
 * stop. A file that cannot be used is reported with plugin NULL and the reason in why. */
typedef tare_status (*plugin_visit)(void *ctx, const char *path, const struct plugin *plugin, const struct err *why);
tare_status plugin_each(const char *path, plugin_visit visit, void *ctx, struct err *e);
tare_status plugin_list(const struct plugin_search *search, plugin_visit visit, void *ctx, struct err *e);

const char *plugin_kind_name(int32_t kind); /* "estimator", ...; 0: "plugin" */
/* Returns the value of a key of tare_descriptor.about ("paper"), or NULL. */
const char *plugin_about(const struct plugin *p, const char *key);
/* Returns the section that has the parameters: [estimator.NAME], [verifier.NAME], [encoder.NAME],
 * [codebook.NAME], [objective.NAME], [curriculum.NAME], [environment.NAME]. */
const char *plugin_section_kind(int32_t kind);

/* ---------------------------------------------------------------- parameters */

/* Checks the settings of section [KIND.NAME] (plugin_section_kind) against the plugin's table. out:
 * values in table order with the defaults filled in, strings in the arena. settings: config.params
 * (other sections are ignored), or the result of plugin_settings; NULL: none. Errors: TARE_E_CONFIG
 * "file:line: [estimator.bv_blend] gama: unknown key; did you mean gamma?" */
tare_status plugin_params(const struct plugin *p, const struct config_param *settings, struct arena *a, const tare_value **out,
                          struct err *e);
/* Like plugin_params with the section [KIND.name], for a plugin that is used under another name. */
tare_status plugin_params_as(const struct plugin *p, const char *name, const struct config_param *settings, struct arena *a,
                             const tare_value **out, struct err *e);
/* Returns the index of the parameter with this name, now or earlier, or -1. */
int64_t plugin_find_param(const struct plugin *p, const char *key);
/* Checks each setting of the plugin's section separately, for unknown keys and invalid values.
 * faults: collects all faults; NULL: stops at the first. */
tare_status plugin_check_params(const struct plugin *p, const struct config_param *settings, struct faults *faults, struct err *e);
struct plugin_words {
    const char *const *at; /* "NAME=VALUE", [n] */
    int64_t n;
};
/* Turns n strings "key=value" into settings of this plugin, placed before those in `next`: the last
 * assignment of a key wins. */
tare_status plugin_settings(const struct plugin *p, struct plugin_words assignments, const struct config_param *next,
                            struct arena *a, const struct config_param **out, struct err *e);
/* Returns true for the command line of the verifier `command`, the only parameter that names files
 * without being a TARE_PARAM_PATH. */
bool plugin_is_command(const struct plugin *p, const tare_param *param);
/* Writes value i as in an INI file. */
tare_status plugin_value_text(const struct plugin *p, int64_t i, tare_value value, struct str *out, struct err *e);
/* Documents every parameter, in one of the formats. */
enum plugin_format { PLUGIN_TEXT, PLUGIN_INI, PLUGIN_JSON, PLUGIN_MARKDOWN };
tare_status plugin_describe(const struct plugin *p, enum plugin_format format, struct str *out, struct err *e);

/* ---------------------------------------------------------------- instances */

/* Services of the engine for an instance. All members may be zero. The functions may be called from
 * any thread. */
struct plugin_env {
    uint64_t seed; /* run.seed */
    void *ctx;
    const char *instance; /* its name in the run; NULL: the plugin's */
    /* name: "estimator/...", "verifier.strict/..."; how: TARE_METRIC_... */
    void (*metric)(void *ctx, const char *name, double value, int32_t how);
    int32_t (*cancelled)(void *ctx);
    /* "tare.embed/1" -> const tare_embed_v1 * */
    const void *(*extension)(void *ctx, const char *id);
    /* for an objective, until create returns; NULL: the defaults of [loss] */
    const tare_loss *loss;
    /* for a curriculum, until destroy returns; NULL: eight rows of one file. The columns are made by
     * curriculum/columns.c from the plugin's wants. */
    const tare_dataset *dataset;
    /* The extension "tare.row_fields/1" (tare/base.h), until destroy returns; NULL: not offered. */
    const char *row_fields;
};

struct plugin_instance {
    const struct plugin *plugin;
    void *self;
    const char *name;         /* its name in the run */
    const tare_value *values; /* the instance's own copy, as configured */
    const tare_value *given;  /* as the plugin gets them: absolute paths, values of secrets */
    const uint8_t *wanted;    /* [desc.n_wants] 0: turned off by select */
    tare_sizes sizes;         /* of kinds with the function sizes; again after fit and load */
    tare_host host;
    struct plugin_env env;
    tare_setup setup;
    tare_loss loss;       /* of an objective */
    tare_dataset dataset; /* of a curriculum without an engine */
    struct arena arena;   /* the copies above */
    int64_t n_clusters;
    int64_t allocated; /* bytes held through host->alloc; atomic */
    bool misnamed;     /* a metric's name was refused; atomic */
};

/* Writes 1 or 0 for each want: those that the values need. wanted: [desc.n_wants]. Needs no
 * instance. */
tare_status plugin_select(const struct plugin *p, const tare_value *values, uint8_t *wanted, struct err *e);
/* True if the plugin's table has a column as one that is not optional, whatever the values. */
bool plugin_requires(const struct plugin *p, enum column_id column);
/* Returns KEY of a want "row.KEY", or the value of the parameter P for "row.$P". NULL: another column,
 * or an empty value. */
const char *plugin_row_key(const struct plugin *p, const tare_value *values, uint32_t want);
/* True if the instance wants a column. */
bool plugin_wants(const struct plugin_instance *i, enum column_id column);
/* Fills one entry of tare_batch.column or tare_tokens.column: NULL data where the want is turned off
 * or absent. data: [n, width] of the column's type. Refuses a width that the want does not allow, and
 * NULL data for a want that is not optional: "estimator X wants the column entropy, which ..." with
 * `missing` as the rest of the sentence. */
struct plugin_column {
    const void *data;
    int64_t n, width;
    const char *missing;
};
tare_status plugin_column(const struct plugin_instance *i, uint32_t want, const struct plugin_column *from, tare_column *out,
                          struct err *e);
/* Creates an instance. n_clusters: for estimators, K of the run's codebook, 0 without one. */
tare_status plugin_create(const struct plugin *p, const tare_value *values, int64_t n_clusters, const struct plugin_env *env,
                          struct plugin_instance **out, struct err *e);
void plugin_destroy(struct plugin_instance *i); /* no-op for NULL */
void plugin_destroy_at(struct plugin_instance **i);
struct plugin_wanted {
    const char *name;
    int32_t kind;
    const struct plugin_search *search;
    const struct config_param *settings;
    int64_t n_clusters;
    const struct plugin_env *env;
};
/* plugin_open, plugin_params and plugin_create in one call. */
tare_status plugin_new(const struct plugin_wanted *w, struct plugin_instance **out, struct err *e);

/* Brackets for a call into a plugin: they keep the floating-point environment, and turn the
 * plugin's error into "estimator bv_blend: compute, step 12: message". step < 0: not in the
 * message. plugin_leave returns the status (0 stays 0).
 *     struct plugin_call c;
 *     plugin_enter(&c);
 *     TRY(plugin_leave(&c, i, "compute", step,
 *                      i->plugin->estimator->compute(i->self, ..., &c.error), e)); */
struct plugin_call {
    fenv_t fenv;
    tare_error error;
};
void plugin_enter(struct plugin_call *c);
/* While on, every call of exit() is an error, not only one in a plugin's call: a thread that a
 * plugin started may make one. For a program that ends by returning from main. */
void plugin_guard_exit(bool on);
/* For `tare plugin check`, which observes the changes that a call makes to the process: enter runs
 * before each call into a plugin, leave after it, while the floating-point environment is as the
 * plugin left it. NULL: none. Set while no other thread calls plugins. */
struct plugin_watch {
    void *ctx;
    void (*enter)(void *ctx);
    void (*leave)(void *ctx, const struct plugin_instance *i, const char *phase);
};
void plugin_watch(const struct plugin_watch *watch);
tare_status plugin_leave(struct plugin_call *c, const struct plugin_instance *i, const char *phase, int64_t step,
                         tare_status status, struct err *e);

/* The calls below check the outputs (verdict codes, finite numbers, clusters in
 * range). */
/* Verifiers. */
tare_status plugin_verify(struct plugin_instance *i, const tare_completion *const *completions, tare_verdict *const *verdicts,
                          int64_t n, struct err *e);
/* Returns the inputs that the verdicts depend on in addition to the completion, with these
 * parameters (TARE_USES_ANSWER, ...). Needs no instance. */
tare_status plugin_uses(const struct plugin *p, const tare_value *values, uint32_t *out, struct err *e);
/* True if the verifier offers submit, poll, take and cancel. */
bool plugin_waits(const struct plugin *p);
tare_status plugin_submit(struct plugin_instance *i, const tare_completion *completion, int64_t ticket, struct err *e);
tare_status plugin_poll(struct plugin_instance *i, const tare_waiting *w, struct err *e);
/* completion: the one that was submitted. */
tare_status plugin_take(struct plugin_instance *i, const tare_completion *completion, int64_t ticket, tare_verdict *out,
                        struct err *e);
void plugin_cancel(struct plugin_instance *i, int64_t ticket);
tare_status plugin_explain(struct plugin_instance *i, tare_completion *completion, struct str *out,
                           struct err *e); /* TARE_E_UNSUPPORTED: not offered */
/* Encoders. out: [n, D]. */
tare_status plugin_encode(struct plugin_instance *i, const tare_text *texts, int64_t n, float *out, struct err *e);
/* Encoders and codebooks; D and K are in sizes. plugin_fit learns from a corpus of texts or rows;
 * without a fit function it returns TARE_OK. */
tare_status plugin_fit(struct plugin_instance *i, const tare_text *items, int64_t n, struct err *e);
struct plugin_assignment {
    const float *embedding; /* [n, dim], or NULL for a codebook of rows */
    const tare_text *rows;  /* [n] */
    int64_t n;
    int32_t *cluster; /* [n], output */
    float *distance;  /* [n], output, or NULL */
};
/* Codebooks: assigns a cluster to each embedding [n, D] or row [n]. */
tare_status plugin_assign(const struct plugin_instance *i, const struct plugin_assignment *q, struct err *e);
tare_status plugin_cluster_name(const struct plugin_instance *i, int64_t k, struct str *out, struct err *e);

/* Overwrites the values of the instance's secrets in a text, or refuses bytes that contain one. Values
 * below 4 and 8 bytes are not looked for: they may be there by chance. what: the function that gave
 * the bytes. */
void plugin_hide_secrets(const struct plugin_instance *i, char *text, int64_t n);
tare_status plugin_refuse_secrets(const struct plugin_instance *i, const char *what, const char *data, int64_t n, struct err *e);

/* Every kind. Appends one line of text with name, version, parameters (secrets left out) and the text
 * of its identity function. Equal lines mean equal results. */
tare_status plugin_identity(const struct plugin_instance *i, struct str *out, struct err *e);
/* Appends the state as the plugin describes it, one JSON object; "{}" without a describe function. */
tare_status plugin_describe_state(const struct plugin_instance *i, struct str *out, struct err *e);

/* ---------------------------------------------------------------- saved state */

/* Appends the plugin's state, framed with kind, name, version, parameters locked on resume, length
 * and XXH3. The body is empty for a plugin without a state. */
tare_status plugin_save(const struct plugin_instance *i, struct str *out, struct err *e);
/* Loads a framed state. where: names the source in messages. Refused: another plugin, a state version that load does
 * not read, another value of a locked parameter (one that the state does not name must have its
 * default), damaged or truncated bytes, or trailing bytes. *used: bytes of the frame; with used
 * NULL, n must be the frame's length. */
tare_status plugin_load(struct plugin_instance *i, const void *data, int64_t n, int64_t *used, const char *where, struct err *e);
/* Reads K of the codebook in the run that wrote a framed state, to make an instance that can load
 * it. where: names the source in messages. TARE_E_CORRUPT when the bytes are not a state. */
tare_status plugin_state_clusters(const void *data, int64_t n, const char *where, int64_t *clusters, struct err *e);
/* Save and load the plugin's own bytes without a frame (an encoder's fitted state inside a
 * codebook's file). */
tare_status plugin_save_raw(const struct plugin_instance *i, struct str *out, struct err *e);
tare_status plugin_load_raw(struct plugin_instance *i, const void *data, int64_t n, const char *where, struct err *e);

/* Limit on the bytes that a plugin may write in one call: 4 GiB, so that a plugin that never stops
 * does not exhaust the machine's memory. */
#define PLUGIN_MOST_STATE (1LL << 32)
/* A stream over a string, for describe, explain and save: write appends to out, read takes from
 * data. */
struct plugin_stream {
    struct str *out;
    const char *data;
    int64_t at, size;       /* at: bytes written, or read */
    bool full;              /* more than PLUGIN_MOST_STATE was written */
    tare_status failed;     /* the first status other than TARE_OK that the plugin got */
    uint32_t state_version; /* of the plugin that wrote the data; 0: unknown */
    /* For a text of people: at most this many bytes are kept, and the text is cut at a character. 0:
     * no limit but PLUGIN_MOST_STATE. */
    int64_t keep;
};
tare_stream plugin_stream(struct plugin_stream *s);

#endif
