/* Completions -> verdicts and rewards.
 *
 *   reward_i = sum_c weight_c r_c(completion_i, row_i) + overlong_i            component [N, C]: the summands, overlong last
 *
 * The verifiers (verifier.plugins = "math:1 format:0.1", or "math math as strict:0.5") are plugins; the first one gives the verdict, the extracted text and the reason.
 * Every completion is judged alone, by whichever worker is free, so neither the number of workers nor the batch can change a verdict. A
 * plugin is called from as many threads as its descriptor's threading allows. One with TARE_JUDGES_TOGETHER gets all of a call's items at
 * once, in their order: those of a step on this rank. The deadline of a call (verifier.timeout for each of its completions) is handed to
 * the plugin; verifier.isolate = process enforces it. A reward that is not finite, or a call that fails, is an error naming plugin,
 * row and sample: nothing is trained on it. A worker process that dies is not: its verdict is `crashed`, its reward 0, and it is counted.
 * A plugin with submit and poll has up to verifier.workers answers under way at a time, all from the calling thread; they may be handed to
 * it while others are still sampled (verify_begin). It is then this process that gives up what is late.
 *
 * Overlong (tokens l_i of completion i, EOS included; L = rollout.max_new_tokens; only the option's summand is added):
 *   zero    a completion that was cut at L gets reward 0, whatever the verifiers say
 *   linear  - penalty * max(0, l_i - (L - buffer)) / buffer                  DAPO, arXiv 2503.14476, equation 13 ("soft overlong punishment")
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
    int64_t workers;        /* 0: one for each core */
    double timeout;         /* seconds for one completion; 0: none */
    const char *worker;     /* the program that is started for worker processes; NULL: this one */
    bool processes;         /* plugins run in worker processes */
    struct confine confine; /* of worker processes; namespaces is set by verify_add */
    double max_crash_share; /* of one call's verdicts; more is an error */
    enum overlong overlong;
    int64_t overlong_buffer, max_new_tokens;
    double overlong_penalty;
};

tare_status verify_new(const struct verify_options *options, struct verify **out, struct err *e);
/* One entry of verifier.plugins. A plugin may be used more than once, under names of their own: its parameters are those of [verifier.AS]. */
struct verify_use {
    const char *plugin, *as; /* as: NULL: the plugin's name */
    double weight;
};
/* One more verifier. settings: config.params or what plugin_settings made (plugin/plugin.h). */
tare_status verify_add(struct verify *v, const struct verify_use *use, const struct plugin_search *search,
                       const struct config_param *settings, const struct plugin_env *env, struct err *e);
/* verify_new and verify_add from [verifier] and [verifier.NAME]. */
tare_status verify_open(const struct config *c, const struct plugin_search *search, const struct plugin_env *env,
                        struct verify **out, struct err *e);
void verify_close(struct verify *v); /* NULL: nothing */
void verify_close_at(struct verify **v);

int64_t verify_n_components(const struct verify *v);                   /* C: the verifiers, and overlong where it is on */
const char *verify_component_name(const struct verify *v, int64_t c);  /* its name in verifier.plugins; "overlong" */
const struct plugin *verify_plugin(const struct verify *v, int64_t c); /* NULL for overlong */
struct plugin_instance *verify_instance(const struct verify *v,
                                        int64_t c); /* one instance, for verify_explain; NULL for overlong */

/* Whether a verifier rewards parts of completions. verify_run maps them to tokens where the batch has token_end. */
bool verify_gives_segments(const struct verify *v);

/* One completion. The texts are views; extracted is the caller's buffer. */
struct verify_item {
    tare_text prompt, completion, answer, row;
    const char *name;       /* of the row, for messages: its id */
    uint64_t uid;           /* of the row */
    int64_t group;          /* rollouts of one prompt have the same number and stand side by side */
    int64_t sample, tokens; /* which rollout of the row; completion tokens */
    int32_t finish;         /* enum finish; -1: not known */
    bool off_policy;
    char *extracted; /* [capacity], or NULL */
    int64_t capacity;
    tare_segment *segment; /* the caller's buffer, [segment_capacity], or NULL */
    int64_t segment_capacity;
    double reward;      /* from here on: results */
    int32_t verdict;    /* tare_verdict_code of the first verifier */
    const char *reason; /* lives as long as v, or NULL */
    int64_t extracted_size;
    int64_t n_segments;
};

/* What each component says of each item: [n, C], or NULL where it is not wanted. */
struct verify_parts {
    double *component; /* the summands of the reward */
    int32_t *verdict;  /* tare_verdict_code; 0 for overlong */
};

/* On failure the error of the first item that failed; results are then undefined. */
tare_status verify_items(struct verify *v, struct verify_item *items, int64_t n, struct verify_parts parts, struct err *e);

/* Verifiers that wait for something else may begin before the batch is whole. verify_begin: n answers come, what was begun before is given
 * up; verify_submit: the answer `at` of the next verify_items or verify_run, whose texts live until then; verify_turn: a look, without
 * waiting, at what is judged. Who is submitted and who is not changes no verdict. */
bool verify_waits(const struct verify *v);
tare_status verify_begin(struct verify *v, int64_t n, struct err *e);
tare_status verify_submit(struct verify *v, int64_t at, const struct verify_item *item, struct err *e);
tare_status verify_turn(struct verify *v, struct err *e);
/* What an item has of group m; the rest is its rollout's. */
struct verify_item verify_item_of(const struct batch *b, int64_t m);

/* Fills reward, component, n_components, verdict, component_verdict, extracted and reason of the batch, in the arena; segment and segment_reward
 * where a verifier gives segments and the batch has token_end. */
tare_status verify_run(struct verify *v, struct batch *b, struct arena *a, struct err *e);

/* The main function of a worker process (`tare verify --worker`): answers requests on fd until it is closed. Returns the exit status. */
int verify_worker(int fd);

/* How many of n verdicts have each code: counts[code], for the metrics verifier/<verdict>. */
void verify_count(const int32_t *verdicts, int64_t n, int64_t counts[TARE_PARTIAL + 1]);

#endif
