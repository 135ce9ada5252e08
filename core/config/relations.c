#include "config/relations.h"

#include "base/fs.h"
#include "config/exports.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Reports "train.minibatch = 60 (x.ini:3) and rollout.group_size = 8 (default): fault; remedy". */
#define APART(C, S1, K1, S2, K2, F, V1, V2, ...)                                                                                   \
    FAIL(e, TARE_E_CONFIG, #S1 "." #K1 " = " F " (%s) and " #S2 "." #K2 " = " F " (%s): %s", V1, config_where((C), #S1, #K1), V2,  \
         config_where((C), #S2, #K2), __VA_ARGS__)
#define LL(X) ((long long)(X))

struct number_text {
    char text[24];
};

/* Formats a value for APART, whose two values share one format. */
static struct number_text in_digits(int64_t value)
{
    struct number_text n;
    snprintf(n.text, sizeof n.text, "%lld", LL(value));
    return n;
}

/* What an episode of several turns does not go with. */
static tare_status check_environment(const struct config *c, struct err *e)
{
    const char *name = c->environment.plugin;
    if (!*name) return TARE_OK;
    if (c->run.device == RUN_CUDA)
        APART(c, environment, plugin, run, device, "%s", name, "cuda", "episodes are played on the CPU only");
    if (c->rollout.off_policy)
        APART(c, environment, plugin, rollout, off_policy, "%s", name, "true", "traces have one turn; remove one of the two");
    if (c->relift.rows)
        APART(c, environment, plugin, relift, rows, "%s", name, in_digits(c->relift.rows).text,
              "ReLIFT's supervised rows have one turn; set relift.rows = 0");
    if (c->process_reward.implicit)
        APART(c, environment, plugin, process_reward, implicit, "%s", name, "true",
              "the process reward model reads single completions; set process_reward.implicit = false");
    return TARE_OK;
}

static tare_status check_rollout(const struct config *c, struct err *e)
{
    const int64_t all = c->rollout.prompts * c->rollout.group_size;
    if (c->rollout.prompts > INT64_MAX / c->rollout.group_size || all > 1 << 30)
        APART(c, rollout, prompts, rollout, group_size, "%lld", LL(c->rollout.prompts), LL(c->rollout.group_size),
              "too many rollouts per step");
    if (c->train.minibatch % c->rollout.group_size)
        APART(c, train, minibatch, rollout, group_size, "%lld", LL(c->train.minibatch), LL(c->rollout.group_size),
              "a minibatch holds whole groups; make it a multiple of the group size");
    if (c->train.minibatch > all)
        APART(
            c, train, minibatch, rollout, prompts, "%lld", LL(c->train.minibatch), LL(c->rollout.prompts),
            "a minibatch cannot exceed the step's prompts times rollout.group_size; lower train.minibatch or raise rollout.prompts");
    const int64_t longest = c->model.max_position_embeddings;
    if (longest && c->rollout.max_new_tokens >= longest)
        APART(c, rollout, max_new_tokens, model, max_position_embeddings, "%lld", LL(c->rollout.max_new_tokens), LL(longest),
              "the context has no space for a prompt; lower the former");
    return TARE_OK;
}

static tare_status check_sums(const struct config *c, struct err *e)
{
    static const char what[] = "tiles order the products of bf16 weights on the CPU; omit model.bf16_sums, or change the other key";
    if (c->model.bf16_sums != SUMS_TILES) return TARE_OK;
    if (c->model.dtype != PRECISION_BF16)
        APART(c, model, bf16_sums, model, dtype, "%s", "tiles", config_chosen(c, "model", "dtype"), what);
    if (c->model.weights == WEIGHTS_INT8) APART(c, model, bf16_sums, model, weights, "%s", "tiles", "int8", what);
    if (c->run.device == RUN_CUDA) APART(c, model, bf16_sums, run, device, "%s", "tiles", "cuda", what);
    return TARE_OK;
}

static tare_status check_ranks(const struct config *c, struct err *e)
{
    if (c->dist.ranks > c->dist.gradient_shards)
        APART(c, dist, ranks, dist, gradient_shards, "%lld", LL(c->dist.ranks), LL(c->dist.gradient_shards),
              "some ranks would not take part in the update; set the latter to a multiple of the number of ranks");
    return TARE_OK;
}

static tare_status check_export(const struct config *c, struct err *e)
{
    const struct export_service *service[EXPORTS];
    int n;
    if (exports_read(c->log.export, service, &n, e))
        return err_prefix(e, "%s: log.export = %s", config_where(c, "log", "export"), c->log.export);
    return TARE_OK;
}

static tare_status check_prompt(const struct config *c, struct err *e)
{
    if (c->data.prompt == PROMPT_PLAIN && *c->data.system)
        APART(
            c, data, system, data, prompt, "%s", "(a text)", "plain",
            "a plain prompt has no system message, so the model would not see it; set data.prompt = chat, or leave data.system empty");
    return TARE_OK;
}

static tare_status check_loss(const struct config *c, struct err *e)
{
    const struct loss_config *l = &c->loss;
    if (l->clip_high > 0 && l->clip_high < l->clip)
        APART(c, loss, clip_high, loss, clip, "%g", l->clip_high, l->clip,
              "the upper epsilon must be at least the lower one; 0 uses loss.clip for both");
    if (l->dual_clip > 0 && l->dual_clip <= 1)
        FAIL(e, TARE_E_CONFIG, "loss.dual_clip = %g (%s): must be above 1; 0 switches it off", l->dual_clip,
             config_where(c, "loss", "dual_clip"));
    if (l->aggregation_length && l->aggregation != AGGREGATE_CONSTANT)
        APART(c, loss, aggregation_length, loss, aggregation, "%s", in_digits(l->aggregation_length).text,
              config_chosen(c, "loss", "aggregation"), "the length is used only with aggregation = constant");
    if (l->kl == KL_EXACT && l->kl_weight != KL_PLAIN)
        APART(c, loss, kl_weight, loss, kl, "%s", config_chosen(c, "loss", "kl_weight"), "exact",
              "only an estimate from the sampled token has a weight; set loss.kl = k1, k2 or k3");
    if (l->kl == KL_EXACT && l->kl_place != KL_IN_LOSS)
        APART(c, loss, kl_place, loss, kl, "%s", config_chosen(c, "loss", "kl_place"), "exact",
              "only an estimate from the sampled token can be part of the reward; set loss.kl = k1, k2 or k3");
    if (l->kl_place == KL_IN_REWARD && l->kl_weight != KL_PLAIN)
        APART(c, loss, kl_weight, loss, kl_place, "%s", config_chosen(c, "loss", "kl_weight"), "reward",
              "a KL in the reward has no gradient; set loss.kl_weight = none");
    if (l->rollout_is != ROLLOUT_IS_NONE && l->old_logprobs == OLD_SAMPLER)
        APART(c, loss, rollout_is, loss, old_logprobs, "%s", config_chosen(c, "loss", "rollout_is"),
              config_chosen(c, "loss", "old_logprobs"),
              "importance weights need both probabilities; set loss.old_logprobs = recompute");
    return TARE_OK;
}

static tare_status check_verifier(const struct config *c, struct err *e)
{
    const struct verifier_config *v = &c->verifier;
    if (v->overlong != OVERLONG_LINEAR) return TARE_OK;
    if (v->overlong_buffer < 1)
        APART(c, verifier, overlong, verifier, overlong_buffer, "%s", config_chosen(c, "verifier", "overlong"), "0",
              "a linear penalty needs the length of its ramp, 1 or more");
    if (c->rollout.max_new_tokens && v->overlong_buffer > c->rollout.max_new_tokens)
        APART(c, verifier, overlong_buffer, rollout, max_new_tokens, "%lld", LL(v->overlong_buffer), LL(c->rollout.max_new_tokens),
              "the ramp is longer than the longest completion");
    return TARE_OK;
}

static tare_status check_eval(const struct config *c, struct err *e)
{
    const char *key = c->eval.every ? "every" : c->eval.before ? "before" : c->eval.after ? "after" : NULL;
    if (key && !*c->data.eval)
        FAIL(e, TARE_E_CONFIG, "eval.%s (%s) needs questions, but data.eval (%s) is empty; name a file, or switch it off", key,
             config_where(c, "eval", key), config_where(c, "data", "eval"));
    return TARE_OK;
}

static tare_status check_new_model(const struct config *c, struct err *e)
{
    const struct model_config *m = &c->model;
    if (m->init == INIT_NONE) return TARE_OK;
    if (!*m->path)
        FAIL(e, TARE_E_CONFIG, "model.init = %s (%s) needs model.path: the folder of the new model",
             config_chosen(c, "model", "init"), config_where(c, "model", "init"));
    if (m->heads % m->kv_heads)
        APART(c, model, heads, model, kv_heads, "%lld", LL(m->heads), LL(m->kv_heads),
              "the key and value heads must divide the query heads");
    if (!m->head_dim && m->hidden_size % m->heads)
        APART(c, model, hidden_size, model, heads, "%lld", LL(m->hidden_size), LL(m->heads),
              "the heads must divide the width, unless model.head_dim is set");
    if (m->head_dim % 2)
        FAIL(e, TARE_E_CONFIG, "model.head_dim = %lld (%s): must be even (rotary pairs)", LL(m->head_dim),
             config_where(c, "model", "head_dim"));
    if (!m->head_dim && m->hidden_size / m->heads % 2)
        APART(c, model, hidden_size, model, heads, "%lld", LL(m->hidden_size), LL(m->heads),
              "the width of a head must be even (rotary pairs)");
    return TARE_OK;
}

#define TARGET_TEXT(ID, TEXT) TEXT,
#define TARGET_LIST(ID, TEXT) ", " TEXT
static const char *const TARGETS[LORA_KINDS] = {CHOICES_LORA_TARGET(TARGET_TEXT)};
enum { ALL_TARGETS = (1 << LORA_KINDS) - 1 };

static unsigned targets_named(const char *name, size_t n)
{
    if (n == strlen("all-linear") && !strncmp(name, "all-linear", n)) return ALL_TARGETS;
    for (unsigned i = 0; i < LORA_KINDS; i++)
        if (strlen(TARGETS[i]) == n && !strncmp(TARGETS[i], name, n)) return 1u << i;
    return 0;
}

tare_status config_lora_targets(const char *names, const char *where, unsigned *out, struct err *e)
{
    static const char SEPARATORS[] = ", \t";
    *out = 0;
    for (const char *at = names + strspn(names, SEPARATORS); *at; at += strspn(at, SEPARATORS)) {
        const size_t n = strcspn(at, SEPARATORS);
        const unsigned named = targets_named(at, n);
        if (!named)
            FAIL(e, TARE_E_CONFIG, "%s: \"%.*s\" is not a linear layer that can have an adapter; allowed: all-linear%s", where,
                 (int)n, at, "" CHOICES_LORA_TARGET(TARGET_LIST));
        *out |= named;
        at += n;
    }
    if (!*out) FAIL(e, TARE_E_CONFIG, "%s: names no layer; all-linear selects all of them", where);
    return TARE_OK;
}

static tare_status check_lora(const struct config *c, struct err *e)
{
    const struct lora_config *l = &c->lora;
    unsigned targets;
    char where[FS_PATH + 64];
    snprintf(where, sizeof where, "%s: lora.targets", config_where(c, "lora", "targets"));
    TRY(config_lora_targets(l->targets, where, &targets, e));
    return TARE_OK;
}

static tare_status check_relift(const struct config *c, struct err *e)
{
    const struct relift_config *l = &c->relift;
    if (!l->rows) return TARE_OK;
    if (l->minibatch && l->rows % l->minibatch)
        APART(c, relift, minibatch, relift, rows, "%lld", LL(l->minibatch), LL(l->rows), "the former must divide the latter");
    if (c->rollout.off_policy)
        APART(c, relift, rows, rollout, off_policy, "%s", in_digits(l->rows).text, "true",
              "an off-policy trace in the group solves its question, so no demonstration would be collected; use one of the two");
    return TARE_OK;
}

static tare_status check_process(const struct config *c, struct err *e)
{
    if (!c->process_reward.implicit) return TARE_OK;
    if (c->lora.rank)
        APART(c, process_reward, implicit, lora, rank, "%s", "true", in_digits(c->lora.rank).text,
              "the process reward model trains all of its weights, without adapters; remove one of the two");
    if (c->rollout.off_policy)
        APART(c, process_reward, implicit, rollout, off_policy, "%s", "true", "true",
              "the process reward model learns only from the policy's own rollouts; remove one of the two");
    return TARE_OK;
}

static tare_status check_rollback(const struct config *c, struct err *e)
{
    if (c->train.on_nonfinite != NONFINITE_ROLLBACK) return TARE_OK;
    if (!c->checkpoint.every)
        APART(c, train, on_nonfinite, checkpoint, every, "%s", "rollback", "0",
              "a rollback needs a checkpoint; set checkpoint.every");
    if (!c->checkpoint.optimizer)
        APART(c, train, on_nonfinite, checkpoint, optimizer, "%s", "rollback", "false",
              "a rollback needs the optimizer in the checkpoint");
    return TARE_OK;
}

static tare_status check_run(const struct config *c, struct err *e)
{
    if (!*c->run.dir)
        FAIL(e, TARE_E_CONFIG, "%s: run.dir is empty; set it to the folder of the run", config_where(c, "run", "dir"));
    if (c->train.warmup_steps && c->train.warmup_steps > c->train.steps * c->train.epochs * c->rollout.prompts)
        APART(c, train, warmup_steps, train, steps, "%lld", LL(c->train.warmup_steps), LL(c->train.steps),
              "the warmup is longer than the training; lower train.warmup_steps (0: none), or raise train.steps");
    return TARE_OK;
}

tare_status config_check_relations(const struct config *c, struct faults *faults, struct err *e)
{
    tare_status (*const checks[])(const struct config *, struct err *) = {
        check_run,
        /* without a file (`tare generate MODEL rollout.group_size=1`) nothing is trained */
        c->file ? check_rollout : NULL,
        check_environment,
        check_sums,
        check_ranks,
        check_export,
        check_prompt,
        check_loss,
        check_verifier,
        check_rollback,
        check_relift,
        check_process,
        check_eval,
        check_lora,
        check_new_model,
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i]) TRY(err_note_fault(faults, checks[i](c, e), e));
    return TARE_OK;
}

/* Recognises "Qwen/Qwen2.5-0.5B": one slash, and only characters used in hub names. */
static bool is_hub_name(const char *path)
{
    const char *slash = strchr(path, '/');
    if (!slash || slash == path || !slash[1] || strchr(slash + 1, '/') || *path == '.') return false;
    for (const char *p = path; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("/._-", *p)) return false;
    return true;
}

tare_status config_no_model(const struct config *c, const char *otherwise, struct err *e)
{
    const char *where = config_where(c, "model", "path"), *path = c->model.path;
    if (is_hub_name(path))
        FAIL(
            e, TARE_E_CONFIG,
            "%s: model.path = %s does not exist; %s. Is it a name on the Hugging Face hub? tare downloads nothing: `hf download %s --local-dir %s` makes that folder",
            where, path, otherwise, path, path);
    FAIL(e, TARE_E_CONFIG, "%s: model.path = %s does not exist; %s", where, path, otherwise);
}
