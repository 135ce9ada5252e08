/* Completions -> verdicts and rewards.
 *
 *   reward_i = sum_c weight_c r_c(completion_i, row_i) + overlong_i
 *
 * component [N, C] holds the summands: the verifiers' in their order, the environment's (the sum over
 * the turns of an episode), overlong.
 *
 * The verifiers (verifier.plugins = "math:1 format:0.1", or "math math as strict:0.5") are plugins.
 * The first one gives the verdict, the extracted text and the note. Each completion is verified
 * separately by any free worker, so neither the number of workers nor the batch can change a
 * verdict. A plugin is called from as many threads as its descriptor's calls allow. A plugin with
 * TARE_VERIFIER_TOGETHER gets all items of a call at once and in order: those of a step on this
 * rank. The deadline of a call (verifier.timeout per completion) is passed to the plugin;
 * verifier.isolate = process enforces it.
 *
 * A reward that is not finite, or a call that fails, is an error that names plugin, row and sample;
 * nothing is trained on it. A worker process that dies is not an error: the verdict is `crashed`,
 * the reward 0, and it is counted.
 *
 * A plugin with submit, poll and take has at most verifier.workers completions in flight, all from the
 * calling thread. They may be submitted while other completions are still being sampled
 * (verify_begin). This process then enforces their deadlines.
 *
 * Overlong (l_i: tokens of completion i, EOS included; L = rollout.max_new_tokens; only the summand
 * of the chosen option is added):
 *   zero    a completion truncated at L gets reward 0, whatever the verifiers return
 *   linear  - penalty * max(0, l_i - (L - buffer)) / buffer
 *           DAPO, arXiv 2503.14476, equation 13 ("soft overlong punishment")
 *
 * Threads: verify_* of one struct from one thread at a time.
 */
#ifndef TARE_CORE_VERIFY_VERIFY_H
#define TARE_CORE_VERIFY_VERIFY_H

#include "batch/batch.h"
#include "call/confine.h"
#include "config/config.h"
#include "plugin/plugin.h"

struct verify;

struct verify_options {
    int64_t workers;        /* 0: one per core */
    double timeout;         /* seconds per completion; 0: none */
    const char *worker;     /* the program to start for worker processes; NULL: this one */
    bool processes;         /* plugins run in worker processes */
    struct confine confine; /* for worker processes; verify_add sets namespaces */
    double max_crash_share; /* of the verdicts of a call; a larger share is an error */
    bool opened;            /* default of the verifiers' parameter `opened` */
    enum overlong overlong;
    int64_t overlong_buffer, max_new_tokens;
    double overlong_penalty;
    bool environment; /* the rewards of episodes are a component, before overlong */
};

tare_status verify_new(const struct verify_options *options, struct verify **out, struct err *e);
/* One entry of verifier.plugins. A plugin may be used several times under different names; the
 * parameters of each use are in [verifier.AS]. */
struct verify_use {
    const char *plugin, *as; /* as: NULL: the plugin's name */
    double weight;
};
/* Adds a verifier. settings: config.params or the result of plugin_settings (plugin/plugin.h). */
tare_status verify_add(struct verify *v, const struct verify_use *use, const struct plugin_search *search,
                       const struct config_param *settings, const struct plugin_env *env, struct err *e);
/* Calls verify_new and verify_add for [verifier] and [verifier.NAME]. */
tare_status verify_open(const struct config *c, const struct plugin_search *search, const struct plugin_env *env,
                        struct verify **out, struct err *e);
void verify_close(struct verify *v); /* no-op for NULL */
void verify_close_at(struct verify **v);

/* C: the verifiers, plus 1 if overlong is on */
int64_t verify_n_components(const struct verify *v);
/* its name in verifier.plugins, or "overlong" */
const char *verify_component_name(const struct verify *v, int64_t c);
const struct plugin *verify_plugin(const struct verify *v, int64_t c); /* NULL for overlong */
/* One instance, for plugin_explain; NULL for overlong. */
struct plugin_instance *verify_instance(const struct verify *v, int64_t c);
/* The identity of a verifier in worker processes, as plugin_identity writes it; NULL: in this process,
 * or without the function. */
const char *verify_identity(const struct verify *v, int64_t c);
/* The name of the first verifier that does not give a completion the same verdict every time, so
 * that a recorded one cannot be compared; NULL: all do. */
const char *verify_unrepeatable(const struct verify *v);

/* Returns whether a verifier rewards parts of completions. verify_run maps them to tokens if the
 * batch has token_end. */
bool verify_gives_segments(const struct verify *v);

/* A text that a verifier writes through a stream, cut at a character; ends with NUL. */
enum { VERIFY_TEXT = TARE_LIMIT_EXTRACTED > TARE_LIMIT_NOTE ? TARE_LIMIT_EXTRACTED : TARE_LIMIT_NOTE };
struct verify_text {
    int64_t size, limit;
    bool cut; /* some bytes were left out, and all later ones are */
    char data[VERIFY_TEXT + 1];
};

/* One completion to verify. The texts are views; extracted and note are the caller's buffers. */
struct verify_item {
    tare_text prompt, completion, answer, row;
    tare_text messages;     /* the episode; size 0: one turn */
    const char *name;       /* the row's id, for messages */
    uint64_t uid;           /* uid of the row */
    int64_t group;          /* rollouts of one prompt are adjacent and share this number */
    int64_t sample, tokens; /* index of the rollout within its row; sampled tokens, 0: unknown */
    int64_t turns;          /* 0: unknown */
    int32_t finish;         /* TARE_FINISH_... */
    bool off_policy;
    double episode_reward;                /* of the environment, for verify_options.environment */
    int32_t episode_verdict;              /* TARE_VERDICT_...; 0: by the reward */
    struct verify_text *extracted, *note; /* outputs of the first verifier; NULL: not wanted */
    tare_segment *segment;                /* the caller's buffer, [segment_capacity], or NULL */
    int64_t segment_capacity;
    double reward;   /* results from here on */
    int32_t verdict; /* TARE_VERDICT_... of the first verifier */
    int64_t n_segments;
};

/* Results of each component for each item, [n, C]; NULL: not wanted. */
struct verify_parts {
    double *component; /* the summands of the reward */
    int32_t *verdict;  /* TARE_VERDICT_...; 0 for overlong */
};

/* Judges n items. On failure returns the error of the first item that failed; the results are then
 * undefined. */
tare_status verify_items(struct verify *v, struct verify_item *items, int64_t n, struct verify_parts parts, struct err *e);

/* Verifiers with submit, poll and take may start before the batch is complete. verify_begin drops what
 * was submitted before and announces n completions. verify_submit submits completion `at` of the next
 * verify_items or verify_run; its texts must live until then. verify_poll collects finished
 * verdicts without waiting. Submitting early never changes a verdict. */
bool verify_waits(const struct verify *v);
tare_status verify_begin(struct verify *v, int64_t n, struct err *e);
tare_status verify_submit(struct verify *v, int64_t at, const struct verify_item *item, struct err *e);
tare_status verify_poll(struct verify *v, struct err *e);
/* Returns the fields of an item that group m determines; the caller fills in those of the
 * rollout. */
struct verify_item verify_item_of(const struct batch *b, int64_t m);

/* Fills reward, component, n_components, verdict, component_verdict, extracted and reason (the note) of the
 * batch, in the arena; also segment and segment_reward if a verifier gives segments and the batch
 * has token_end. */
tare_status verify_run(struct verify *v, struct batch *b, struct arena *a, struct err *e);

/* Runs a worker process (`tare verify --worker`): answers requests on fd until it is closed.
 * Returns the exit status. */
int verify_worker(int fd);

/* Counts the verdicts of each code into counts[code], for the metrics verifier/<verdict>. */
void verify_count(const int32_t *verdicts, int64_t n, int64_t counts[TARE_VERDICT_PARTIAL + 1]);

#endif
