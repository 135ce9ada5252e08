#include "config/names.h"

#include "config/critic.h"
#include "config/keys.h"
#include "config/kinds.h"

#include <stdio.h>
#include <string.h>

static const char A_STEP_SAMPLES[] = "a step samples once, and may make several optimizer steps";
static const char ALL_ROLLOUTS[] = "the number of rollouts per optimizer step, over all processes";
static const char EVERY_STEP[] = "every step is logged, in metrics.jsonl; leave it out";
static const char NO_DROPOUT[] = "sampler and update compute the same probabilities, so nothing is dropped; leave it out";
static const char SAMPLES_ITSELF[] = "tare samples with the weights that it trains; leave it out";

struct foreign_name {
    const char *trainer, *name; /* name: its shortest unambiguous suffix, such as "optim.lr" */
    const char *ours;           /* NULL: tare has no such key, and note explains why */
    const char *note;           /* difference in meaning, or NULL */
};

/* The pairs of docs/names.md; e2e/names compares the two. */
static const struct foreign_name NAMES[] = {
    {"TRL", "model_name_or_path", "model.path", NULL},
    {"TRL", "train_dataset", "data.train", NULL},
    {"TRL", "eval_dataset", "data.eval", NULL},
    {"TRL", "num_generations", "rollout.group_size", NULL},
    {"TRL", "generation_batch_size", "rollout.prompts", "counted in prompts, not in rollouts"},
    {"TRL", "per_device_train_batch_size", "train.minibatch", ALL_ROLLOUTS},
    {"TRL", "gradient_accumulation_steps", "train.minibatch", ALL_ROLLOUTS},
    {"TRL", "num_iterations", "train.epochs", NULL},
    {"TRL", "num_train_epochs", "train.steps", A_STEP_SAMPLES},
    {"TRL", "max_steps", "train.steps", A_STEP_SAMPLES},
    {"TRL", "max_completion_length", "rollout.max_new_tokens", NULL},
    {"TRL", "chat_template_path", "data.chat_template", NULL},
    {"TRL", "chat_template_kwargs", "data.chat_template_kwargs", NULL},
    {"TRL", "reward_funcs", "verifier.plugins", "a Python function runs in verifier python"},
    {"TRL", "reward_weights", "verifier.plugins", "NAME:WEIGHT"},
    {"TRL", "mask_truncated_completions", "verifier.overlong", NULL},
    {"TRL", "scale_rewards", "estimator.plugin", "group is grpo, none is dr_grpo"},
    {"TRL", "multi_objective_aggregation", "estimator.plugin", "normalize_then_sum is gdpo"},
    {"TRL", "top_entropy_quantile", "estimator.plugin", "entropy_top"},
    {"TRL", "epsilon", "loss.clip", NULL},
    {"TRL", "epsilon_high", "loss.clip_high", NULL},
    {"TRL", "delta", "loss.dual_clip", "bounds the loss here, the ratio in TRL"},
    {"TRL", "loss_type", "loss.aggregation", "grpo is sequence, dapo is token, dr_grpo is constant"},
    {"TRL", "importance_sampling_level", "objective.plugin", "sequence is gspo"},
    {"TRL", "vllm_importance_sampling_mode", "objective.plugin", "tis, mis"},
    {"TRL", "vllm_importance_sampling_correction", "loss.rollout_is", NULL},
    {"TRL", "use_bias_correction_kl", "loss.kl_weight", "ratio"},
    {"TRL", "beta", "loss.kl_coef", NULL},
    {"TRL", "learning_rate", "train.lr", NULL},
    {"TRL", "lr_scheduler_type", "train.schedule", NULL},
    {"TRL", "gradient_checkpointing", "train.recompute", "layer"},
    {"TRL", "bf16", "model.dtype", "bf16"},
    {"TRL", "use_vllm", NULL, SAMPLES_ITSELF},
    {"TRL", "vllm_mode", NULL, SAMPLES_ITSELF},
    {"TRL", "vllm_gpu_memory_utilization", "rollout.kv_tokens", "counted in tokens of the cache"},
    {"TRL", "use_peft", "lora.rank", "above 0 trains adapters"},
    {"TRL", "lora_r", "lora.rank", NULL},
    {"TRL", "lora_alpha", "lora.alpha", NULL},
    {"TRL", "lora_dropout", NULL, NO_DROPOUT},
    {"TRL", "lora_target_modules", "lora.targets", NULL},
    {"TRL", "use_rslora", "lora.rslora", NULL},
    {"TRL", "use_dora", NULL, "the adapters are LoRA; leave it out"},
    {"TRL", "report_to", "log.export", NULL},
    {"TRL", "logging_steps", NULL, EVERY_STEP},
    {"TRL", "logging_dir", "run.dir", "the log is in the run's folder"},
    {"TRL", "optim", NULL, "the optimizer is AdamW; leave it out"},
    {"TRL", "adam_beta1", "train.beta1", NULL},
    {"TRL", "adam_beta2", "train.beta2", NULL},
    {"TRL", "adam_epsilon", "train.eps", NULL},
    {"TRL", "fp16", "model.dtype", "f32 or bf16; fp16 is not supported"},
    {"TRL", "deepspeed", "dist.shard", NULL},
    {"TRL", "fsdp", "dist.shard", NULL},
    {"TRL", "steps_per_generation", "train.minibatch", A_STEP_SAMPLES},
    {"TRL", "eval_strategy", "eval.every", NULL},
    {"TRL", "push_to_hub", NULL, "nothing is uploaded; `hf upload` takes a checkpoint's folder"},
    {"TRL", "disable_dropout", NULL, NO_DROPOUT},
    {"TRL", "run_name", "run.name", NULL},
    {"TRL", "output_dir", "run.dir", NULL},
    {"TRL", "save_steps", "checkpoint.every", NULL},
    {"TRL", "save_total_limit", "checkpoint.keep", NULL},
    {"TRL", "eval_steps", "eval.every", NULL},
    {"TRL", "eval_on_start", "eval.before", NULL},
    {"TRL", "num_generations_eval", "eval.samples", NULL},
    {"TRL", "log_completions", "log.rollouts", NULL},
    {"verl", "train_files", "data.train", NULL},
    {"verl", "val_files", "data.eval", NULL},
    {"verl", "train_batch_size", "rollout.prompts", NULL},
    {"verl", "rollout.n", "rollout.group_size", NULL},
    {"verl", "ppo_mini_batch_size", "train.minibatch", "counted in rollouts, not in prompts"},
    {"verl", "ppo_max_token_len_per_gpu", "train.micro_tokens", NULL},
    {"verl", "ppo_micro_batch_size_per_gpu", "train.micro_tokens", "counted in tokens"},
    {"verl", "ppo_epochs", "train.epochs", NULL},
    {"verl", "total_training_steps", "train.steps", NULL},
    {"verl", "total_epochs", "train.steps", A_STEP_SAMPLES},
    {"verl", "max_response_length", "rollout.max_new_tokens", NULL},
    {"verl", "max_prompt_length", "rollout.max_prompt_tokens", NULL},
    {"verl", "filter_overlong_prompts", "rollout.max_prompt_tokens", "longer rows are refused"},
    {"verl", "reward_manager", "verifier.plugins", NULL},
    {"verl", "custom_reward_function.path", "verifier.python.file", NULL},
    {"verl", "custom_reward_function.name", "verifier.python.function", NULL},
    {"verl", "reward_model.overlong_buffer", "verifier.overlong", NULL},
    {"verl", "adv_estimator", "estimator.plugin", NULL},
    {"verl", "norm_adv_by_std_in_grpo", "estimator.plugin", "False is dr_grpo"},
    {"verl", "filter_groups.enable", "estimator.plugin", "dapo, or curriculum.plugin=dapo_filter"},
    {"verl", "filter_groups.metric", "estimator.plugin", "dapo, with estimator.dapo.filter"},
    {"verl", "sampler.class_path", "curriculum.plugin", NULL},
    {"verl", "clip_ratio", "loss.clip", NULL},
    {"verl", "clip_ratio_low", "loss.clip", NULL},
    {"verl", "clip_ratio_high", "loss.clip_high", NULL},
    {"verl", "clip_ratio_c", "loss.dual_clip", NULL},
    {"verl", "loss_mode", "objective.plugin", NULL},
    {"verl", "loss_agg_mode", "loss.aggregation", NULL},
    {"verl", "rollout_correction", "loss.rollout_is", NULL},
    {"verl", "use_kl_loss", "loss.kl_coef", NULL},
    {"verl", "kl_loss_coef", "loss.kl_coef", NULL},
    {"verl", "kl_loss_type", "loss.kl", NULL},
    {"verl", "entropy_coeff", "loss.entropy_coef", NULL},
    {"verl", "optim.lr", "train.lr", NULL},
    {"verl", "lr_warmup_steps", "train.warmup_steps", NULL},
    {"verl", "optim.lr_scheduler_type", "train.schedule", NULL},
    {"verl", "optim.betas", "train.beta1", "a pair there, train.beta1 and train.beta2 here"},
    {"verl", "clip_grad", "train.max_grad_norm", NULL},
    {"verl", "grad_clip", "train.max_grad_norm", NULL},
    {"verl", "enable_gradient_checkpointing", "train.recompute", "layer"},
    {"verl", "model_dtype", "model.dtype", NULL},
    {"verl", "actor_rollout_ref.model.path", "model.path", NULL},
    {"verl", "rollout.name", NULL, SAMPLES_ITSELF},
    {"verl", "gpu_memory_utilization", "rollout.kv_tokens", "counted in tokens of the cache"},
    {"verl", "lora_rank", "lora.rank", NULL},
    {"verl", "model.lora_alpha", "lora.alpha", NULL},
    {"verl", "target_modules", "lora.targets", NULL},
    {"verl", "trainer.logger", "log.export", NULL},
    {"verl", "experiment_name", "run.name", NULL},
    {"verl", "default_local_dir", "run.dir", NULL},
    {"verl", "apply_chat_template_kwargs", "data.chat_template_kwargs", NULL},
    {"verl", "data.seed", "run.seed", NULL},
    {"verl", "save_freq", "checkpoint.every", NULL},
    {"verl", "max_actor_ckpt_to_keep", "checkpoint.keep", NULL},
    {"verl", "test_freq", "eval.every", NULL},
    {"verl", "val_before_train", "eval.before", NULL},
    {"verl", "val_kwargs.n", "eval.samples", NULL},
    {"verl", "rollout_data_dir", "log.rollouts", NULL},
    {"verl", "nnodes", "dist.ranks", "on all machines together"},
    {"verl", "n_gpus_per_node", "dist.ranks", "on all machines together"},
    {"verl", "actor.strategy", "dist.shard", NULL},
};

static bool ends_in(const char *text, const char *name)
{
    const size_t n = strlen(text), m = strlen(name);
    return n >= m && !strcmp(text + n - m, name) && (n == m || text[n - m - 1] == '.');
}

/* Finds the longest entry that "section.key" equals or ends in; NULL: none. */
static const struct foreign_name *find_foreign(const char *section, const char *key)
{
    char full[256];
    if (snprintf(full, sizeof full, "%s%s%s", section, *section ? "." : "", key) >= (int)sizeof full) return NULL;
    const struct foreign_name *longest = NULL;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (ends_in(full, NAMES[i].name) && (!longest || strlen(NAMES[i].name) > strlen(longest->name))) longest = &NAMES[i];
    return longest;
}

bool config_is_section(const char *section)
{
    for (const struct config_section *s = CONFIG_SECTIONS; s->name; s++)
        if (!strcmp(s->name, section)) return true;
    return false;
}

static const char *nearer_name(const char *wanted, const char *best, const char *candidate)
{
    if (!*wanted) return best;
    const int64_t most = 1 + (int64_t)strlen(wanted) / 3, d = str_distance(wanted, candidate);
    return d <= most && (!best || d < str_distance(wanted, best)) ? candidate : best;
}

/* Lists the keys of a section that start with the given text, or else the nearest one:
 * "'warmup_steps' or 'warmup_ratio'"; empty: none. */
static const char *list_similar(const char *section, const char *key, char *buffer, size_t n)
{
    const char *best = NULL;
    size_t at = 0;
    buffer[0] = 0;
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) {
        if (strcmp(k->section, section)) continue;
        best = nearer_name(key, best, k->key);
        if (*key && !strncmp(k->key, key, strlen(key)) && at < n)
            at += (size_t)snprintf(buffer + at, n - at, "%s'%s'", at ? " or " : "", k->key);
    }
    if (best && !at) snprintf(buffer, n, "'%s'", best);
    return buffer;
}

/* Names the present key of one in [clusterer], which became [encoder] and [codebook]. */
static tare_status split_section(const char *section, const char *key, const char *where, struct err *e)
{
    const char *plugin = strchr(section, '.');
    if (plugin)
        FAIL(e, TARE_E_CONFIG,
             "%s: unknown section [%s]; parameters of an encoder go in [encoder%s], those of a codebook in [codebook%s]", where,
             section, plugin, plugin);
    const bool chooses = !strcmp(key, "encoder") || !strcmp(key, "codebook");
    FAIL(e, TARE_E_CONFIG, "%s: unknown section [clusterer], which is [encoder] and [codebook]: clusterer.%s is %s.%s", where, key,
         chooses ? key : "codebook", chooses ? "plugin" : key);
}

static tare_status unknown_section(const char *section, const char *key, const char *where, struct err *e)
{
    char name[64];
    const char *best = NULL, *plugin = strchr(section, '.');
    snprintf(name, sizeof name, "%.*s", (int)strcspn(section, "."), section);
    if (!strcmp(name, "clusterer")) return split_section(section, key, where, e);
    for (const struct config_section *s = CONFIG_SECTIONS; !plugin && s->name; s++) best = nearer_name(name, best, s->name);
    for (int32_t kind = PLUGIN_FIRST_KIND; plugin && kind <= PLUGIN_LAST_KIND; kind++)
        best = nearer_name(name, best, CONFIG_KINDS[kind].name);
    if (best) FAIL(e, TARE_E_CONFIG, "%s: unknown section [%s]; did you mean [%s%s]?", where, section, best, plugin ? plugin : "");
    FAIL(
        e, TARE_E_CONFIG,
        "%s: unknown section [%s]; `tare config docs` lists them; the parameters of a plugin go in a section such as [estimator.grpo]",
        where, section);
}

/* Sections whose plugins have their own parameters, in [SECTION.NAME]. */
bool config_is_plugin_section(const char *section)
{
    const int32_t kind = config_kind_of_section(section);
    return kind && !strcmp(section, CONFIG_KINDS[kind].name);
}

/* A plugin's parameter belongs in [SECTION.NAME]. A key of the same name in another section is
 * probably not meant. */
static tare_status unknown_of_plugin(const char *section, const char *key, const char *where, const char *elsewhere, struct err *e)
{
    if (elsewhere)
        FAIL(e, TARE_E_CONFIG, "%s: [%s] has no key '%s'; a plugin's own parameters go in [%s.NAME] (%s.%s is another key)", where,
             section, key, section, elsewhere, key);
    FAIL(e, TARE_E_CONFIG, "%s: [%s] has no key '%s'; a plugin's own parameters go in [%s.NAME]", where, section, key, section);
}

static tare_status unknown_name(const struct foreign_name *f, const char *where, const char *best, struct err *e)
{
    char otherwise[200] = "";
    /* a key of tare that differs by one letter is just as likely; a more distant one is a
     * coincidence */
    if (best && str_distance(strrchr(f->name, '.') ? strrchr(f->name, '.') + 1 : f->name, best) <= 1)
        snprintf(otherwise, sizeof otherwise, "; or did you mean '%s'?", best);
    if (!f->ours)
        FAIL(e, TARE_E_CONFIG, "%s: %s's %s has no counterpart here: %s%s", where, f->trainer, f->name, f->note, otherwise);
    FAIL(e, TARE_E_CONFIG, "%s: %s's %s is %s here%s%s%s (docs/names.md)%s", where, f->trainer, f->name, f->ours,
         f->note ? " (" : "", f->note ? f->note : "", f->note ? ")" : "", otherwise);
}

/* Finds the name of another trainer that the key is a misspelling of; NULL: none. Underscores do not
 * count: learningrate is learning_rate. */
static const struct foreign_name *misspelt_foreign(const char *key)
{
    const struct foreign_name *best = NULL;
    int64_t least = 1 + (int64_t)strlen(key) / 6;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *dot = strrchr(NAMES[i].name, '.'), *name = dot ? dot + 1 : NAMES[i].name;
        char plain[128];
        size_t n = 0;
        for (; *name && n + 1 < sizeof plain; name++)
            if (*name != '_' || strchr(key, '_')) plain[n++] = *name;
        plain[n] = 0;
        const int64_t d = str_distance(key, plain);
        if (!NAMES[i].ours || d > least || (best && d == least)) continue;
        best = &NAMES[i];
        least = d;
    }
    return best;
}

tare_status names_unknown_key(const char *section, const char *key, const char *where, struct err *e)
{
    char full[256];
    const struct foreign_name *foreign = config_is_plugin_section(section) ? NULL : find_foreign(section, key);
    snprintf(full, sizeof full, "%s.%s", section, key);
    if (!config_is_plugin_section(section) && critic_has_key(section, key))
        FAIL(e, TARE_E_CONFIG, "%s: %s %s", where, full, CRITIC_MISSING);
    if (!config_is_section(section))
        return foreign ? unknown_name(foreign, where, NULL, e) : unknown_section(section, key, where, e);
    const char *best = NULL, *elsewhere = NULL;
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) {
        if (!strcmp(k->section, section)) best = nearer_name(key, best, k->key);
        if (!strcmp(k->key, key) && !elsewhere) elsewhere = k->section;
    }
    if (foreign) return unknown_name(foreign, where, best, e);
    char likely[400];
    if (*list_similar(section, key, likely, sizeof likely))
        FAIL(e, TARE_E_CONFIG, "%s: [%s] has no key '%s'; did you mean %s?", where, section, key, likely);
    if (config_is_plugin_section(section)) return unknown_of_plugin(section, key, where, elsewhere, e);
    if (elsewhere) FAIL(e, TARE_E_CONFIG, "%s: [%s] has no key '%s'; did you mean '%s.%s'?", where, section, key, elsewhere, key);
    const struct foreign_name *near = misspelt_foreign(key);
    if (near)
        FAIL(e, TARE_E_CONFIG, "%s: [%s] has no key '%s'; did you mean %s, which is %s's %s?", where, section, key, near->ours,
             near->trainer, near->name);
    FAIL(e, TARE_E_CONFIG, "%s: [%s] has no key '%s'; `tare config docs` lists them", where, section, key);
}

/* Finds the nearest among all keys and all names of other trainers; NULL: none is near. */
static const char *nearest_name(const char *wanted)
{
    const char *best = NULL;
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) best = nearer_name(wanted, best, k->key);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) best = nearer_name(wanted, best, NAMES[i].name);
    return best;
}

tare_status names_foreign(const char *name, struct str *out, struct err *e)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const struct foreign_name *f = &NAMES[i];
        if (strcmp(f->name, name)) continue;
        TRY(str_addf(out, e, "%s's %s%s%s%s%s\n", f->trainer, name, f->ours ? ": " : "", f->ours ? f->ours : "",
                     f->note ? ": " : "", f->note ? f->note : ""));
    }
    return TARE_OK;
}

tare_status config_no_key(const char *key, const char *where, const char *wrong, struct err *e)
{
    char places[300] = "";
    size_t n = 0;
    const struct foreign_name *foreign = find_foreign("", key);
    if (critic_has_key("", key)) FAIL(e, TARE_E_CONFIG, "%s: %s %s", where, key, CRITIC_MISSING);
    if (foreign) return unknown_name(foreign, where, NULL, e);
    for (const struct config_key *k = CONFIG_KEYS; k->section && n < sizeof places; k++) {
        if (!strcmp(k->key, key))
            n += (size_t)snprintf(places + n, sizeof places - n, "%s[%s]", n ? " and " : " is a key of ", k->section);
        if (!strcmp(k->section, key) && !strncmp(k->key, "plugin", 6)) /* estimator=grpo */
            FAIL(e, TARE_E_CONFIG, "%s: %s; did you mean %s.%s?", where, wrong, key, k->key);
    }
    if (config_is_section(key)) /* lora=16 */
        FAIL(e, TARE_E_CONFIG, "%s: %s; [%s] is a section, whose keys `tare config docs %s` lists", where, wrong, key, key);
    const char *near = NULL;
    if (*key && !n && !strchr(key, '.')) near = nearest_name(key);
    if (near) FAIL(e, TARE_E_CONFIG, "%s: %s; did you mean %s?", where, wrong, near);
    FAIL(e, TARE_E_CONFIG, "%s: %s%s%s%s", where, wrong, n ? "; " : "", n ? key : "", places);
}

/* Extracts "lr" from "--lr=1". */
static void bare_word(const char *argument, char word[100])
{
    const char *name = argument + strspn(argument, "-");
    snprintf(word, 100, "%.*s", (int)strcspn(name, "="), name);
}

bool config_is_foreign(const char *argument, const char **ours)
{
    char word[100];
    bare_word(argument, word);
    const struct foreign_name *f = find_foreign("", word);
    *ours = f ? f->ours : NULL;
    return f != NULL;
}

tare_status config_hint(const char *argument, const char *where, const char *wrong, struct err *e)
{
    char word[100];
    bare_word(argument, word);
    bool known = find_foreign("", word) || critic_has_key("", word);
    for (const struct config_key *k = CONFIG_KEYS; k->section && !known; k++) known = !strcmp(k->key, word);
    return known ? config_no_key(word, where, wrong, e) : TARE_OK;
}
