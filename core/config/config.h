/* The configuration: an INI file with its includes, then section.key=value from the command line,
 * parsed into typed, range-checked structs. keys.c holds one table with type, range, default and
 * documentation of every key, from which --help, `tare config docs` and the checks are generated. A
 * plugin's own parameters ([estimator.NAME], ...) are kept as text with their file:line, and
 * checked against the plugin's table when it is loaded. */
#ifndef TARE_CORE_CONFIG_CONFIG_H
#define TARE_CORE_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/str.h"
#include "config/choices.h"

#include <stdbool.h>

struct run_config {
    const char *dir;        /* run.dir */
    const char *name;       /* shown in tables */
    const char *plugins;    /* absolute path of a folder with plugins; empty: none */
    const char *paths_from; /* absolute folder of relative paths; empty: the working folder */
    enum run_as as;         /* trainer whose conventions are the defaults (recipes.c) */
    enum device_choice device;
    enum kernels_choice kernels;
    int64_t seed, threads;
    enum deterministic deterministic;
};

struct model_config {
    const char *path;      /* Hugging Face folder */
    const char *reference; /* folder of the frozen reference policy; empty: a copy of path */
    /* folder of the base model, if path is an adapter; empty: from the adapter */
    const char *base;
    const char *warm_start; /* configuration for `tare sft` that makes a missing path */
    enum precision dtype;   /* of the forward and backward pass */
    enum bf16_sums bf16_sums;
    enum weights weights; /* format of weights that are not trained */
    enum save_dtype save_dtype;
    double rope_theta; /* 0: from config.json */
    int64_t max_position_embeddings;
    /* A new model, if path does not exist and init is not empty. */
    enum model_init init;
    int64_t hidden_size, layers, heads, kv_heads, head_dim, intermediate_size, context;
    bool tie_embeddings;
    double init_std;
};

struct data_config {
    const char *train, *eval; /* JSONL file, or builtin:arithmetic/SPLIT */
    enum prompt_form prompt;
    const char *chat_template;        /* file; empty: the model's */
    const char *chat_template_kwargs; /* JSON object of more variables; empty: none */
    const char *date;                 /* date for a chat template's strftime_now; empty: today's */
    const char *system, *suffix;      /* system message; text after every question */
    bool shuffle;
    bool permute_choices; /* permutes multiple-choice options by permute_seed and the row */
    int64_t permute_seed;
    int64_t limit; /* first rows only; 0: all */
};

struct rollout_config {
    /* M, G, ... */
    int64_t prompts, group_size, max_new_tokens, max_prompt_tokens, batch, kv_tokens, refill_rounds;
    double temperature, top_p, min_p;
    int64_t top_k;
    const char *stop_ids; /* additional ids, separated by commas */
    bool ignore_eos;      /* completions continue to max_new_tokens */
    bool speculate;       /* draft and verify tokens (core/rollout/speculate.c) */
    bool off_policy;      /* a row's completion replaces the last rollout of its group */
};

struct verifier_config {
    /* names separated by spaces or commas, each with an optional weight: "math:1 python:0.1" */
    const char *plugins;
    int64_t workers;
    double timeout;     /* seconds per completion */
    enum opened opened; /* whether the prompt opens the thought; auto is resolved by settle */
    enum overlong overlong;
    int64_t overlong_buffer;
    double overlong_penalty;
    enum isolate isolate;
    enum confine_mode confine; /* this key to file_size: for worker processes */
    bool network;
    int64_t memory, open_files, file_size; /* MB, number, MB; 0: unlimited or inherited */
    double max_crash_share;
};

struct encoder_config {
    const char *plugin;
};

struct codebook_config {
    const char *plugin; /* none: no clusters */
    /* how a missing codebook is trained, on the questions of data.train */
    int64_t clusters, seed, restarts, iterations;
};

struct environment_config {
    const char *plugin;            /* empty: none */
    int64_t max_turns, max_tokens; /* 0: no limit but the environment's; the model's context */
    bool question;                 /* the row's question begins the prompt */
    enum call_syntax calls;
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
    int64_t aggregation_length;        /* for constant; 0: rollout.max_new_tokens */
    double clip, clip_high, dual_clip; /* clip_high 0: as clip; dual_clip 0: off */
    double kl_coef, kl_floor, entropy_coef;
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
    int64_t warmup_steps; /* in optimizer steps; 0: warmup_ratio decides */
    enum schedule schedule;
    double beta1, beta2, eps, weight_decay, max_grad_norm;
    enum recompute recompute;
    enum on_nonfinite on_nonfinite;
    int64_t max_rollbacks;
    bool prompt_sharing, skip_zero;
};

struct lora_config {
    int64_t rank; /* 0: off */
    double alpha;
    const char *targets; /* names of linear layers, or all-linear */
    bool rslora;
};

struct process_config { /* an implicit process reward model, trained with the policy */
    bool implicit;
    const char *model; /* initial weights; empty: model.path */
    int64_t minibatch;
    double beta, lr, max_grad_norm;
    enum process_norm norm;
};

struct relift_config { /* supervised updates between policy updates; rows 0: off */
    int64_t rows, minibatch, epochs;
    double reward, lr, entropy_coef, max_grad_norm;
};

struct sft_config {
    int64_t steps, batch, epochs; /* rows per optimizer step; epochs counts if steps is 0 */
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

/* Most questions sampled together by an evaluation during training; see config_eval_rows. */
enum { EVAL_ROWS_AT_ONCE = 256 };
struct eval_config {
    int64_t every, samples, rows, max_new_tokens; /* every 0: only with `tare eval` */
    double temperature, top_p, min_p;
    int64_t top_k;
    bool before, after; /* evaluate before the first and after the last step */
    /* For `tare eval`. */
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
    const char *folder; /* that a relative path counts from; NULL: the working folder */
    struct config_param *next;
};

struct config {
    struct run_config run;
    struct model_config model;
    struct data_config data;
    struct rollout_config rollout;
    struct verifier_config verifier;
    struct encoder_config encoder;
    struct codebook_config codebook;
    struct environment_config environment;
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
    struct config_param *params; /* plugin parameters; the last assignment of a key wins */
    const char *file;            /* NULL without a file */
    const char *dir;             /* folder of file */
    /* run.paths_from, if it is not the working folder: paths of files are absolute then. Otherwise
     * NULL. */
    const char *base;
    struct arena arena;
    struct config_source *sources; /* origin of each key, for messages */
};

/* Loads a configuration on top of the defaults. file: a path, builtin:NAME for the installed
 * configs/NAME.ini, the folder of a run for its config.ini, or NULL. overrides: n strings
 * "section.key=value"; as=NAME stands for run.as=NAME. */
tare_status config_load(struct config *c, const char *file, const char *const *overrides, int64_t n, struct err *e);
/* Like config_load, but collects every error in `faults` (err_note_fault); a wrong value keeps its
 * default. Fails if the file cannot be read at all. */
tare_status config_load_collecting(struct config *c, const char *file, const char *const *overrides, int64_t n,
                                   struct faults *faults, struct err *e);
void config_free(struct config *c);
/* Loads a run's config.ini to compare it with `now`. A run.paths_from on the command line, which
 * names the present place of the run's files, counts for both. */
tare_status config_load_before(struct config *c, const char *file, const struct config *now, struct err *e);
/* Counts the relative paths of a resumed run's configuration from the one that folder/config.ini
 * records. */
tare_status config_resume_paths(struct config *c, const char *folder, struct err *e);
/* Returns the place where a key was set: "configs/x.ini:12", "command line", "default". */
const char *config_where(const struct config *c, const char *section, const char *key);
/* Returns the text of a key's choice for messages and records ("bf16" for model.dtype), or "" for a
 * key without choices. */
const char *config_chosen(const struct config *c, const char *section, const char *key);
/* Returns run.kernels and model.bf16_sums in the form for kernels_cpu: NULL for auto and pairs. */
const char *config_kernels(const struct config *c);
/* Returns true if a training with this configuration evaluates. */
bool config_evaluates(const struct config *c);
/* Returns the number of questions that an evaluation during training samples together when `rows`
 * of them remain; rows < 0: unknown, then the most that eval.rows allows. The plan of the memory
 * and the evaluation itself both use it. */
int64_t config_eval_rows(const struct config *c, int64_t rows);
/* Parses lora.targets ("q_proj, v_proj", or all-linear). Bit i of out is layer i of
 * CHOICES_LORA_TARGET. where: for messages. */
tare_status config_lora_targets(const char *names, const char *where, unsigned *out, struct err *e);
/* Returns true if codebook.plugin is no longer "auto" (settle/settle.h). */
bool config_codebook_settled(const struct config *c);
/* Returns true if codebook.plugin names a plugin. */
bool config_has_codebook(const struct config *c);
/* Prints the resolved configuration as INI text that loads to the same values. */
tare_status config_dump(const struct config *c, struct str *out, struct err *e);
/* Sets the log level from log.level, unless -v or -q was given. */
void config_use_log_level(const struct config *c);
/* Prints the reference of every key as Markdown or plain text. */
tare_status config_docs(struct str *out, bool markdown, struct err *e);
/* Prints the reference of a section, a key, or all keys with a name: "lora", "train.lr", "lr".
 * TARE_E_CONFIG: unknown name, with suggestions. */
tare_status config_docs_of(const char *name, struct str *out, struct err *e);
/* Always fails with TARE_E_CONFIG: model.path does not exist, with suggestions. otherwise: the
 * remedy. */
tare_status config_no_model(const struct config *c, const char *otherwise, struct err *e);
/* Always fails: a key without a section, or an unknown word, with suggestions. where: its origin;
 * wrong: the fault. */
tare_status config_no_key(const char *word, const char *where, const char *wrong, struct err *e);
/* Like config_no_key, but returns TARE_OK unless the argument ("--num_generations=8", "lr") is
 * another trainer's name or one of our keys. */
tare_status config_hint(const char *argument, const char *where, const char *wrong, struct err *e);
/* Returns true for another trainer's name. *ours: the corresponding key, or NULL if tare has none.
 * config_hint reports it. */
bool config_is_foreign(const char *argument, const char **ours);
/* Prints a commented configuration to start from: the keys needed for a first run, and others
 * commented out. */
tare_status config_starter(struct str *out, struct err *e);
/* Visits the differences in table order, then those of plugin parameters; [sweep] is ignored. The
 * texts are valid until visit returns. */
struct config_difference {
    const char *section, *key, *before, *after;
    /* false: a run may be resumed with the new value (file locations, records, distribution of
     * work) */
    bool changes_training;
};
typedef tare_status (*config_difference_visit)(void *ctx, const struct config_difference *d, struct err *e);
tare_status config_compare(const struct config *before, const struct config *after, config_difference_visit visit, void *ctx,
                           struct err *e);
/* resume.c: Compares the configuration in a training's folder with the current one. Logs every
 * difference; one that changes the training is TARE_E_CONFIG unless allowed. */
struct config_resume {
    const char *run;    /* folder that contains config.ini */
    const char *advice; /* the remedy when values are refused */
    bool allow_change;
    bool supervised; /* `tare sft`: reads [sft] and ignores keys for rollouts and rewards */
};
tare_status config_check_resume(const struct config_resume *how, const struct config *now, struct err *e);
/* Returns true if a different value of this key makes a different training. */
bool config_changes_training(const char *section, const char *key);
/* Returns true if [KIND.NAME] belongs to a plugin chosen by the configuration. */
bool config_uses(const struct config *c, const char *section);
/* Sets one key of a section from its text form, like the command line. */
tare_status config_set(struct config *c, const char *section, const char *key, const char *value, const char *where, struct err *e);

#endif
