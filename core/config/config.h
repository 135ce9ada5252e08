/* The configuration: an INI file (and the files it includes), then section.key=value from the command line, into typed, range-checked
 * structs. keys.c holds one table with type, range, default and documentation of every key; --help, `tare config docs` and the checks
 * are printed from it. A plugin's own parameters ([estimator.NAME], ...) are kept as text with their file:line, and checked against the
 * plugin's table when it is loaded. */
#ifndef TARE_CORE_CONFIG_CONFIG_H
#define TARE_CORE_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/str.h"
#include "config/choices.h"

#include <stdbool.h>

struct run_config {
    const char *dir;     /* run.dir */
    const char *name;    /* shown in tables */
    const char *plugins; /* a folder with plugins, absolute; empty: none */
    enum run_as as;      /* the trainer whose conventions are the defaults (recipes.c) */
    enum device_choice device;
    enum kernels_choice kernels;
    int64_t seed, threads;
    enum deterministic deterministic;
};

struct model_config {
    const char *path;       /* Hugging Face folder */
    const char *reference;  /* folder of the frozen reference policy; empty: a copy of path */
    const char *base;       /* folder of the base, when path is an adapter; empty: as the adapter says */
    const char *warm_start; /* a config for `tare sft` that makes path when it is absent */
    enum precision dtype;   /* of the forward and backward pass */
    enum bf16_sums bf16_sums;
    enum weights weights; /* that are not trained, as products read them */
    enum save_dtype save_dtype;
    double rope_theta; /* 0: as config.json says */
    int64_t max_position_embeddings;
    /* a new model, when path does not exist and init is not empty */
    enum model_init init;
    int64_t hidden_size, layers, heads, kv_heads, head_dim, intermediate_size, context;
    bool tie_embeddings;
    double init_std;
};

struct data_config {
    const char *train, *eval; /* JSONL file, or builtin:arithmetic/SPLIT */
    enum prompt_form prompt;
    const char *chat_template;   /* file; empty: the model's */
    const char *date;            /* that a chat template's strftime_now tells; empty: today's */
    const char *system, *suffix; /* system message; text after every question */
    bool shuffle;
    bool permute_choices; /* options of multiple choice, by permute_seed and the row */
    int64_t permute_seed;
    int64_t limit; /* first rows only; 0: all */
};

struct rollout_config {
    int64_t prompts, group_size, max_new_tokens, max_prompt_tokens, batch, kv_tokens, refill_rounds; /* M, G, ... */
    double temperature, top_p, min_p;
    int64_t top_k;
    const char *stop_ids; /* extra ids, separated by commas */
    bool ignore_eos;      /* completions run to max_new_tokens */
    bool off_policy;      /* a row's completion takes the place of its group's last rollout */
};

struct verifier_config {
    const char *plugins; /* names separated by spaces or commas; each may have a weight: "math:1 python:0.1" */
    int64_t workers;
    double timeout; /* seconds for one completion */
    enum overlong overlong;
    int64_t overlong_buffer;
    double overlong_penalty;
    enum isolate isolate;
    enum confine_mode confine; /* from here to file_size: of worker processes */
    bool network;
    int64_t memory, open_files, file_size; /* MB, number, MB; 0: as it is */
    double max_crash_share;
};

struct clusterer_config {
    const char *encoder, *codebook;               /* plugin names; codebook none: no clusters */
    const char *corpus;                           /* trains the codebook's file when it is absent; empty: data.train */
    int64_t clusters, seed, restarts, iterations; /* of that training */
};

struct estimator_config {
    const char *plugin;
};

struct objective_config {
    const char *plugin;
};

struct curriculum_config {
    const char *plugin;
};

struct loss_config {
    enum aggregation aggregation;
    int64_t aggregation_length;        /* of constant; 0: rollout.max_new_tokens */
    double clip, clip_high, dual_clip; /* clip_high 0: as clip; dual_clip 0: off */
    double kl_coef, entropy_coef;
    enum kl_form kl;
    enum kl_weight kl_weight;
    enum kl_place kl_place;
    enum old_logprobs old_logprobs;
    enum rollout_is rollout_is;
    double rollout_is_cap;
    double shaping; /* gamma of f(pi) = pi / (pi + gamma), for off-policy tokens */
};

struct train_config {
    int64_t steps, minibatch, epochs, micro_tokens;
    double lr, lr_floor, warmup_ratio;
    int64_t warmup_steps; /* counts optimizer steps; when 0 warmup_ratio of all is used */
    enum schedule schedule;
    double beta1, beta2, eps, weight_decay, max_grad_norm;
    enum recompute recompute;
    enum on_nonfinite on_nonfinite;
    int64_t max_rollbacks;
    bool prompt_sharing;
};

struct lora_config {
    int64_t rank; /* 0: off */
    double alpha;
    const char *targets; /* names of linear layers, or all-linear */
    bool rslora;
};

struct process_config { /* an implicit process reward model that is trained with the policy */
    bool implicit;
    const char *model; /* folder that it begins from; empty: model.path */
    int64_t minibatch;
    double beta, lr, max_grad_norm;
    enum process_norm norm;
};

struct relift_config { /* supervised updates between policy updates; rows 0: off */
    int64_t rows, minibatch, epochs;
    double reward, lr, entropy_coef, max_grad_norm;
};

struct sft_config {
    int64_t steps, batch, epochs; /* rows an optimizer step; epochs used when steps is 0 */
    bool train_on_prompt;
    const char *out; /* folder of the result */
};

struct dist_config {
    int64_t ranks;
    enum communicator communicator;
    double timeout_s;
    enum shard shard;
    int64_t gradient_shards;
};

enum { EVAL_ROWS_AT_ONCE = 256 }; /* questions that an evaluation inside training samples together */
struct eval_config {
    int64_t every, samples, rows, max_new_tokens; /* every 0: only by `tare eval` */
    double temperature, top_p, min_p;
    int64_t top_k;
    bool before, after; /* evaluate before the first and after the last step */
    /* of `tare eval` */
    const char *name, *out;
    int64_t chunk, bootstrap;
    const char *difficulty, *buckets, *complex_field, *complex_rules;
};

struct checkpoint_config {
    int64_t every, keep;
    bool optimizer, last;
};

struct log_config {
    bool tensorboard, database, rollouts;
    const char *export;
    enum level level;
    enum progress_form progress;
};

struct config_param { /* one [kind.name] key = value, unparsed */
    const char *section, *key, *value, *where;
    struct config_param *next;
};

struct config {
    struct run_config run;
    struct model_config model;
    struct data_config data;
    struct rollout_config rollout;
    struct verifier_config verifier;
    struct clusterer_config clusterer;
    struct estimator_config estimator;
    struct objective_config objective;
    struct curriculum_config curriculum;
    struct loss_config loss;
    struct train_config train;
    struct lora_config lora;
    struct process_config process_reward;
    struct relift_config relift;
    struct sft_config sft;
    struct dist_config dist;
    struct eval_config eval;
    struct checkpoint_config checkpoint;
    struct log_config log;
    struct config_param *params; /* plugin parameters, last assignment of a key wins */
    const char *file;            /* NULL when there is none */
    const char
        *dir; /* folder of file: relative paths inside are relative to the working directory, includes and warm_start to this */
    struct arena arena;
    struct config_source *sources; /* where each key was set, for messages */
};

/* as=NAME among the overrides is run.as=NAME. file may be NULL, builtin:NAME for configs/NAME.ini as installed, or the folder of a run for its config.ini; overrides: n strings
 * "section.key=value". The struct is filled with defaults first. */
tare_status config_load(struct config *c, const char *file, const char *const *overrides, int64_t n, struct err *e);
/* The same, but every error is told (err_note_fault), and what is wrong keeps its default. Fails when the file cannot be read at all. */
tare_status config_load_telling(struct config *c, const char *file, const char *const *overrides, int64_t n, struct faults *faults,
                                struct err *e);
void config_free(struct config *c);
/* Where a key was set ("configs/x.ini:12", "command line", "default"). */
const char *config_where(const struct config *c, const char *section, const char *key);
/* The text of a key's choice, for messages and records ("bf16" of model.dtype). "" for a key that has no choices. */
const char *config_chosen(const struct config *c, const char *section, const char *key);
/* run.kernels and model.bf16_sums as kernels_cpu takes them: NULL for auto and pairs. */
const char *config_kernels(const struct config *c);
/* Names as lora.targets has them ("q_proj, v_proj", or all-linear): bit i of out is the layer i of CHOICES_LORA_TARGET. where: for messages. */
tare_status config_lora_targets(const char *names, const char *where, unsigned *out, struct err *e);
/* Whether clusterer.codebook has been decided (settle/settle.h): it is not "auto" any more. */
bool config_codebook_settled(const struct config *c);
/* Whether clusterer.codebook names a plugin. */
bool config_has_codebook(const struct config *c);
/* The resolved configuration as INI text that loads to the same values. */
tare_status config_dump(const struct config *c, struct str *out, struct err *e);
/* Messages from here on are those that log.level asks for, unless -v or -q was given. */
void config_use_log_level(const struct config *c);
/* The reference of every key, Markdown or plain text. */
tare_status config_docs(struct str *out, bool markdown, struct err *e);
/* The plain text of one section, of one key, or of all keys of a name: "lora", "train.lr", "lr". TARE_E_CONFIG: there is none, and what may be meant. */
tare_status config_docs_of(const char *name, struct str *out, struct err *e);
/* TARE_E_CONFIG: model.path is not there, and what a user may have meant; otherwise: what to do. */
tare_status config_no_model(const struct config *c, const char *otherwise, struct err *e);
/* Fails, always: a key without a section, or a word that is none, and what may be meant. where: as it was given; wrong: what is wrong with it. */
tare_status config_no_key(const char *word, const char *where, const char *wrong, struct err *e);
/* The same, but only where it is known what is meant: argument, as it was given ("--num_generations=8", "lr"), is another trainer's name, or a key of
 * ours. TARE_OK: it is neither. */
tare_status config_hint(const char *argument, const char *where, const char *wrong, struct err *e);
/* True for another trainer's name. *ours: the corresponding key, or NULL if tare has none. config_hint reports it. */
bool config_is_foreign(const char *argument, const char **ours);
/* A commented configuration to begin with: the keys a first run sets, the others by their reference. */
tare_status config_starter(struct str *out, struct err *e);
/* What differs, in the order of the table, then the plugins' parameters ([sweep] is left out). The texts live until visit returns. */
struct config_difference {
    const char *section, *key, *before, *after;
    bool
        changes_training; /* false: a run may be resumed with it (files that may have moved, what is recorded, how the work is spread) */
};
typedef tare_status (*config_difference_visit)(void *ctx, const struct config_difference *d, struct err *e);
tare_status config_compare(const struct config *before, const struct config *after, config_difference_visit visit, void *ctx,
                           struct err *e);
/* resume.c: before a training is resumed. Every difference to the configuration in its folder is told; one that changes the training is
 * TARE_E_CONFIG unless it is allowed. */
struct config_resume {
    const char *run;    /* the folder, which has config.ini */
    const char *advice; /* what to do when values are refused */
    bool allow_change;
    bool supervised; /* `tare sft`: it reads [sft] and leaves out what is for rollouts and rewards */
};
tare_status config_check_resume(const struct config_resume *how, const struct config *now, struct err *e);
/* Whether a run with another value of this key would be another training. */
bool config_changes_training(const char *section, const char *key);
/* Whether [KIND.NAME] belongs to a plugin that the configuration chooses. */
bool config_uses(const struct config *c, const char *section);
/* Applies the text form of one key of a section to the struct (as the command line does). */
tare_status config_set(struct config *c, const char *section, const char *key, const char *value, const char *where, struct err *e);

#endif
