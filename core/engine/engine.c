#include "engine/engine.h"

#include "base/fs.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "data/choices.h"
#include "dist/device.h"
#include "engine/device_memory.h"
#include "model/adapter.h"
#include "model/hf_config.h"
#include "update/process_reward.h"
#include "verify/rows.h"

#include <string.h>

void engine_init(struct engine *g, const struct config *c, struct comm *comm)
{
    *g = (struct engine){.config = c, .comm = comm};
    arena_init(&g->arena, "engine");
}

/* ---------------------------------------------------------------- data */

static tare_status load_rows(const struct engine *g, const char *key, bool answers, struct dataset *d, struct err *e)
{
    const struct data_config *c = &g->config->data;
    TRY(dataset_of(g->config, key, d, e));
    if (answers) TRY(verify_check_rows(g->config, d, e));
    return answers && c->permute_choices ? choices_permute(d, (uint64_t)c->permute_seed, e) : TARE_OK;
}

static tare_status open_train(struct engine *g, bool answers, struct err *e)
{
    const struct config *c = g->config;
    TRY(load_rows(g, "train", answers, &g->train, e));
    return order_init(&g->order, g->train.n, c->data.shuffle, (uint64_t)c->run.seed, e);
}

/* ---------------------------------------------------------------- model */

static tare_status open_pool(struct engine *g, struct err *e)
{
    const int64_t threads = g->config->run.threads;
    const tare_status status = pool_new(threads || !g->comm ? (int)threads : g->comm->threads, &g->pool, e);
    return status ? err_prefix(e, "run.threads = %lld", (long long)threads) : TARE_OK;
}

static tare_status open_kernels(struct engine *g, struct err *e)
{
    const struct config *c = g->config;
    TRY(kernels_open(c->run.device == RUN_CUDA, config_kernels(c), g->comm ? g->comm->local : 0, &g->kernels, e));
    if (!g->comm) return TARE_OK;
    g->comm_ctx = (struct kctx){.fault = &g->comm_fault};
    return device_collectives(g->comm, g->kernels, &g->comm_ctx, c->dist.communicator, e);
}

/* Each rank reads the files itself, so each verifies them. */
static tare_status verify_sums(struct engine *g, const char *folder, struct err *e)
{
    if (g->resumed || !strcmp(g->verified_folder, folder)) return TARE_OK;
    TRY(checkpoint_check_sums(folder, e));
    return fs_join(g->verified_folder, "", folder, e);
}

/* Logs once which kernels batch_invariant selects on this device. */
static void log_device_kernels(const struct model *m)
{
    static bool logged;
    char text[400];
    const struct backend *b = m->k->backend;
    if (logged || !m->ctx.batch_invariant || m->dtype != DTYPE_BF16 || !b->about) return;
    logged = true;
    if (!b->about(&m->ctx, text, sizeof text))
        log_warn("%s", text);
    else if (!m->rank)
        log_info("%s", text);
}

/* parts: ENGINE_TRAINS, ENGINE_WHOLE */
static tare_status load_model(struct engine *g, const char *folder, unsigned parts, struct model **out, struct err *e)
{
    const struct config *c = g->config;
    struct lora_spec lora = {0};
    const bool trains = parts & ENGINE_TRAINS;
    char base[FS_PATH];
    TRY(verify_sums(g, folder, e));
    TRY(adapter_base(folder, &c->model, base, e));
    if (strcmp(base, folder)) TRY(verify_sums(g, base, e));
    if (trains) TRY(lora_spec_of(c, &lora, e));
    TRY(model_open(&(struct model_source){.folder = folder,
                                          .config = &c->model,
                                          .kernels = g->kernels,
                                          .pool = g->pool,
                                          .comm = parts & ENGINE_WHOLE ? NULL : g->comm,
                                          .shard = c->dist.shard,
                                          .lora = &lora,
                                          .seed = (uint64_t)c->run.seed,
                                          .trains = trains},
                   out, e));
    model_set_deterministic(*out, c->run.deterministic);
    log_device_kernels(*out);
    return TARE_OK;
}

/* Reports a missing folder that a configuration names; without a file the name was an argument, and
 * the loader reports it. */
static tare_status check_folder(const struct config *c, struct err *e)
{
    if (!c->file || fs_is_dir(c->model.path)) return TARE_OK;
    return config_no_model(c, "give a Hugging Face folder, a checkpoint or a run, or model.warm_start to make one", e);
}

static bool same_shape(const struct model_shape *a, const struct model_shape *b)
{
    return a->arch == b->arch && a->vocab == b->vocab && a->hidden == b->hidden && a->layers == b->layers && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->intermediate == b->intermediate && a->tied == b->tied;
}

/* Sets *same if the model in `folder` has the policy's tokenizer. */
static tare_status has_our_tokenizer(const struct engine *g, const char *folder, bool *same, struct err *e)
{
    struct tokenizer *t = NULL;
    TRY(tokenizer_load(folder, &t, e));
    *same = tokenizer_hash(t) == tokenizer_hash(g->tokenizer);
    tokenizer_free(t);
    return TARE_OK;
}

/* A reference of another shape reads the policy's tokens, so it needs the same tokenizer. Comparing
 * whole distributions also needs the same number of logits. */
static tare_status check_teacher(const struct engine *g, struct err *e)
{
    const struct config *c = g->config;
    const struct model_shape *policy = &g->model->shape, *teacher = &g->reference->shape;
    const bool exact = (c->loss.kl_coef > 0 && c->loss.kl == KL_EXACT) || objective_uses(g->objective).kl;
    bool same;
    if (has_our_tokenizer(g, g->reference->folder, &same, e))
        return err_prefix(e, "model.reference = %s differs from the policy in shape, so it needs the policy's tokenizer",
                          c->model.reference);
    if (!same)
        FAIL(
            e, TARE_E_CONFIG,
            "model.reference = %s has another tokenizer than model.path = %s (their tokenizer.json differ), so it cannot read the policy's tokens; name a model with the same one",
            c->model.reference, c->model.path);
    if (teacher->vocab < policy->vocab)
        FAIL(e, TARE_E_CONFIG,
             "model.reference = %s has %lld logits and the policy %lld; it must have one for each token that the policy can sample",
             c->model.reference, (long long)teacher->vocab, (long long)policy->vocab);
    if (exact && teacher->vocab != policy->vocab)
        FAIL(
            e, TARE_E_CONFIG,
            "model.reference = %s has %lld logits and the policy %lld; the exact KL needs equal numbers: set loss.kl = k3, or another reference",
            c->model.reference, (long long)teacher->vocab, (long long)policy->vocab);
    return TARE_OK;
}

tare_status engine_open_reference(struct engine *g, struct err *e)
{
    const struct model_config *c = &g->config->model;
    if (g->model->lora && !*c->reference) return model_base_view(g->model, &g->reference, e);
    TRY(load_model(g, *c->reference ? c->reference : c->path, 0, &g->reference, e));
    return same_shape(&g->reference->shape, &g->model->shape) ? TARE_OK : check_teacher(g, e);
}

/* ---------------------------------------------------------------- prompts and sampling */

static tare_status open_prompts(struct engine *g, struct err *e)
{
    /* a new model has no folder */
    const char *folder = g->model ? g->model->folder : g->config->model.path;
    return prompts_new(&g->config->data, *folder ? folder : ".", g->tokenizer, &g->prompts, e);
}

struct rollout_config engine_evaluation_rollout(const struct config *c)
{
    struct rollout_config r = c->rollout;
    r.group_size = c->eval.samples;
    r.temperature = c->eval.temperature;
    r.top_p = c->eval.top_p;
    r.min_p = c->eval.min_p;
    r.top_k = c->eval.top_k;
    if (c->eval.max_new_tokens) r.max_new_tokens = c->eval.max_new_tokens;
    return r;
}

static tare_status open_sampling(struct engine *g, struct err *e)
{
    const struct rollout_config evaluation = engine_evaluation_rollout(g->config);
    const char *where = config_where(g->config, "rollout", "stop_ids");
    TRY(rollout_sample_params(&g->config->rollout, g->model->shape.vocab, where, &g->arena, &g->sampling, e));
    return rollout_sample_params(&evaluation, g->model->shape.vocab, where, &g->arena, &g->evaluating, e);
}

struct collector engine_collector(const struct engine *g, struct arena *arena)
{
    return (struct collector){.prompts = g->prompts,
                              .tokenizer = g->tokenizer,
                              .model = g->model,
                              .sampler = g->sampler,
                              .verifier = g->verify,
                              .episodes = g->episodes,
                              .comm = g->comm,
                              .arena = arena};
}

int64_t engine_prompt_limit(const struct engine *g, bool training)
{
    const int64_t limit = g->model->shape.max_position - 1, most = g->config->rollout.max_prompt_tokens;
    const bool limited = most && (training || strcmp(config_where(g->config, "rollout", "max_prompt_tokens"), "default"));
    return limited && most < limit ? most : limit;
}

tare_status engine_check_prompts(struct engine *g, const struct dataset *d, bool training, uint64_t *hash, struct err *e)
{
    const struct prompt_limits limits = {.tokens = engine_prompt_limit(g, training),
                                         .context = g->model->shape.max_position,
                                         .most = g->config->rollout.max_prompt_tokens,
                                         .vocab = g->model->shape.vocab,
                                         .warns = !g->comm || !g->comm->rank};
    return prompts_check(g->prompts, d, &limits, hash, e);
}

/* ---------------------------------------------------------------- all of it */

/* For an unsupported model, reports that instead of a missing tokenizer.json, which would not
 * help. */
static tare_status check_family(const char *folder, struct err *e)
{
    struct model_shape shape;
    OWNED(str_free) struct str text = {0};
    char path[FS_PATH];
    TRY(fs_join(path, folder, "config.json", e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(fs_read_all(path, &text, e));
    return hf_config_shape(text.data, text.size, path, &shape, e);
}

/* An adapter folder of peft has no tokenizer; its base's is used. */
static tare_status open_tokenizer(struct engine *g, struct err *e)
{
    const struct model_config *c = &g->config->model;
    char folder[FS_PATH];
    TRY(adapter_tokenizer(c->path, c, folder, e));
    TRY(verify_sums(g, folder, e));
    TRY(check_family(folder, e));
    return tokenizer_load(folder, &g->tokenizer, e);
}

/* Opens the verifiers after the rows, whose fields a user's program may need. */
static tare_status open_verifier(struct engine *g, struct err *e)
{
    const struct plugin_search search = {.folder = g->config->run.plugins};
    const struct dataset *const data[2] = {g->opened & ENGINE_TRAIN ? &g->train : NULL, g->opened & ENGINE_EVAL ? &g->eval : NULL};
    struct plugin_env env = g->env;
    TRY(verify_row_fields(g->config, data, &g->arena, &env.row_fields, e));
    return err_as_config(verify_open(g->config, &search, &env, &g->verify, e), e);
}

static tare_status open_sampler(struct engine *g, struct err *e)
{
    const struct config *c = g->config;
    const struct plugin_search search = {.folder = c->run.plugins};
    if (*c->environment.plugin)
        TRY(err_as_config(episodes_open(&(struct episodes_options){.config = &c->environment,
                                                                   .search = &search,
                                                                   .settings = c->params,
                                                                   .env = g->env,
                                                                   .prompts = g->prompts,
                                                                   .tokenizer = g->tokenizer,
                                                                   .model = g->model,
                                                                   .ranks = g->comm ? g->comm->size : 1},
                                        &g->episodes, e),
                          e));
    TRY(sampler_new(g->model, c->rollout.batch, c->rollout.kv_tokens, &g->sampler, e));
    sampler_speculate(g->sampler, c->rollout.speculate);
    return TARE_OK;
}

/* all: the parts that are opened together */
static tare_status open_part(struct engine *g, unsigned part, unsigned all, struct err *e)
{
    const struct config *c = g->config;
    switch (part) {
    case ENGINE_TRAIN:
        return open_train(g, all & ENGINE_ANSWERS, e);
    case ENGINE_EVAL:
        return load_rows(g, "eval", all & ENGINE_ANSWERS, &g->eval, e);
    case ENGINE_VERIFIER:
        return open_verifier(g, e);
    case ENGINE_POOL:
        return g->pool ? TARE_OK : open_pool(g, e);
    case ENGINE_KERNELS:
        return g->kernels ? TARE_OK : open_kernels(g, e);
    case ENGINE_TOKENIZER:
        return g->tokenizer ? TARE_OK : open_tokenizer(g, e);
    case ENGINE_REGION:
        return device_memory_reserve(c, g->kernels, g->comm, tokenizer_size(g->tokenizer), g->opened & ENGINE_EVAL ? g->eval.n : -1,
                                     e);
    case ENGINE_MODEL:
        return g->model ? TARE_OK : load_model(g, c->model.path, all, &g->model, e);
    case ENGINE_PROMPTS:
        return open_prompts(g, e);
    case ENGINE_SAMPLING:
        return open_sampling(g, e);
    case ENGINE_SAMPLER:
        return open_sampler(g, e);
    default:
        return TARE_OK;
    }
}

/* Returns -1 if the tokenizer has no EOS that the model can sample. */
static int32_t tokenizer_end_id(const struct engine *g)
{
    const int32_t id = tokenizer_role_id(g->tokenizer, TOKEN_EOS);
    return id < g->model->shape.vocab ? id : -1;
}

/* Makes the tokenizer's EOS end completions too. A fine-tuned model often has a new EOS in
 * tokenizer_config.json and the base's in config.json. */
static tare_status add_tokenizer_end(struct engine *g, struct err *e)
{
    struct model *m = g->model;
    const int32_t id = tokenizer_end_id(g);
    OWNED(str_free) struct str others = {0};
    for (int64_t i = 0; i < m->n_eos; i++) {
        if (m->eos[i] == id) return TARE_OK;
        TRY(str_addf(&others, e, "%s%d", i ? ", " : "", m->eos[i]));
    }
    if (id < 0) return TARE_OK;
    if (m->n_eos == (int64_t)(sizeof m->eos / sizeof *m->eos))
        FAIL(e, TARE_E_UNSUPPORTED,
             "%s: the tokenizer's EOS %d in addition to %lld EOS ids of the model: at most %lld are supported", m->folder, id,
             (long long)m->n_eos, (long long)m->n_eos);
    m->eos[m->n_eos++] = id;
    const tare_text name = tokenizer_bytes(g->tokenizer, id);
    if (!m->rank)
        log_warn(
            "%s: the EOS of tokenizer_config.json, %.*s (%d), ends completions too; generation_config.json and config.json name %s",
            m->folder, (int)(name.size < 100 ? name.size : 100), name.data, id, others.size ? others.data : "none");
    return TARE_OK;
}

tare_status engine_end_id(const struct engine *g, int32_t *out, struct err *e)
{
    *out = tokenizer_end_id(g);
    if (*out < 0 && g->model->n_eos) *out = g->model->eos[0];
    if (*out < 0)
        FAIL(e, TARE_E_CONFIG,
             "%s: missing end-of-sequence id, which ends the rows' completions; set eos_token_id in generation_config.json",
             g->model->folder);
    return TARE_OK;
}

/* Adds the parts that each part needs. */
static unsigned with_needs(unsigned parts)
{
    if (parts & (ENGINE_SAMPLING | ENGINE_SAMPLER)) parts |= ENGINE_MODEL;
    if (parts & ENGINE_MODEL) parts |= ENGINE_KERNELS;
    if (parts & ENGINE_REGION) parts |= ENGINE_KERNELS | ENGINE_TOKENIZER;
    if (parts & ENGINE_PROMPTS) parts |= ENGINE_TOKENIZER;
    if (parts & ENGINE_KERNELS) parts |= ENGINE_POOL;
    return parts;
}

tare_status engine_open(struct engine *g, unsigned parts, struct err *e)
{
    parts = with_needs(parts) & ~g->opened;
    if ((parts & ENGINE_MODEL) && !g->model) TRY(check_folder(g->config, e));
    for (unsigned part = 1; part <= ENGINE_SAMPLER; part <<= 1) {
        if (!(parts & part)) continue;
        TRY(open_part(g, part, parts, e));
        g->opened |= part;
    }
    return g->model && g->tokenizer ? add_tokenizer_end(g, e) : TARE_OK;
}

tare_status engine_open_objective(struct engine *g, struct err *e)
{
    const struct config *c = g->config;
    const struct plugin_search search = {.folder = c->run.plugins};
    return objective_open(
        &(struct objective_options){
            .plugin = c->objective.plugin, .search = &search, .settings = c->params, .loss = &c->loss, .env = g->env},
        &g->objective, e);
}

tare_status engine_open_trainer(struct engine *g, double temperature, int64_t steps, struct err *e)
{
    const struct config *c = g->config;
    TRY(trainer_new(g->model,
                    &(struct trainer_options){.reference = g->reference,
                                              .train = &c->train,
                                              .loss = &c->loss,
                                              .temperature = temperature,
                                              .seed = (uint64_t)c->run.seed,
                                              .total_steps = steps},
                    &g->trainer, e));
    g->trainer->objective = g->objective;
    return TARE_OK;
}

/* Checks the process reward model: it reads the policy's tokens, and the plan assumes the policy's
 * shape. */
static tare_status check_process(const struct engine *g, struct err *e)
{
    bool same;
    const char *name = g->config->process_reward.model;
    if (!*name) return TARE_OK;
    if (!same_shape(&g->reward_model->shape, &g->model->shape))
        FAIL(e, TARE_E_CONFIG, "process_reward.model = %s has another shape than model.path = %s; name a model of the same shape",
             name, g->config->model.path);
    TRY(has_our_tokenizer(g, g->reward_model->folder, &same, e));
    if (!same)
        FAIL(e, TARE_E_CONFIG, "process_reward.model = %s has another tokenizer than model.path = %s (their tokenizer.json differ)",
             name, g->config->model.path);
    return TARE_OK;
}

tare_status engine_open_reward_model(struct engine *g, struct err *e)
{
    const struct config *c = g->config;
    if (*c->process_reward.model && !fs_is_dir(c->process_reward.model))
        FAIL(e, TARE_E_CONFIG, "%s: process_reward.model = %s: missing folder", config_where(c, "process_reward", "model"),
             c->process_reward.model);
    TRY(load_model(g, *c->process_reward.model ? c->process_reward.model : c->model.path, ENGINE_TRAINS, &g->reward_model, e));
    TRY(check_process(g, e));
    g->reward_train = process_reward_train_config(c);
    TRY(trainer_new(g->reward_model,
                    &(struct trainer_options){.reference = g->reference,
                                              .train = &g->reward_train,
                                              .loss = &c->loss,
                                              .temperature = 1,
                                              .seed = (uint64_t)c->run.seed,
                                              .total_steps = 1},
                    &g->reward_trainer, e));
    g->reward_trainer->gradient_shards = c->dist.gradient_shards;
    return TARE_OK;
}

tare_status engine_check_segments(const struct config *c, bool verifier_gives, bool estimator_reads, struct err *e)
{
    const char *where = config_where(c, "process_reward", "implicit"), *verifiers = c->verifier.plugins,
               *estimator = c->estimator.plugin;
    if (c->process_reward.implicit && verifier_gives)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: process_reward.implicit and a verifier of verifier.plugins = %s both give rewards of segments; use one of the two",
            where, verifiers);
    if (c->process_reward.implicit && !estimator_reads)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: process_reward.implicit gives rewards to tokens, but the estimator %s does not read them; set estimator.plugin = prime",
            where, estimator);
    if (estimator_reads && !c->process_reward.implicit && !verifier_gives)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: estimator.plugin = %s needs rewards of tokens or steps: set process_reward.implicit = true, or use a verifier that gives segments (none of verifier.plugins = %s does)",
            config_where(c, "estimator", "plugin"), estimator, verifiers);
    return TARE_OK;
}

void engine_close(struct engine *g)
{
    trainer_free(g->reward_trainer);
    trainer_free(g->trainer);
    objective_free(g->objective);
    episodes_close(g->episodes);
    sampler_free(g->sampler);
    model_free(g->reward_model);
    model_free(g->reference);
    model_free(g->model);
    prompts_free(g->prompts);
    tokenizer_free(g->tokenizer);
    verify_close(g->verify);
    order_free(&g->order);
    dataset_free(&g->eval);
    dataset_free(&g->train);
    arena_free(&g->arena);
    pool_free(g->pool);
}
