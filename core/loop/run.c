/* Opening and closing a run, in the order of the data flow. Nothing is written until everything is known to fit together. */
#include "loop/run.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/signals.h"
#include "data/choices.h"
#include "dist/device.h"
#include "engine/device_memory.h"
#include "loop/same_ranks.h"

#include <stdlib.h>
#include <string.h>

static void on_metric(void *ctx, const char *name, double value)
{
    struct run *r = ctx;
    if (r->observe) observe_set(r->observe, name, value);
}

static int32_t on_cancelled(void *ctx)
{
    (void)ctx;
    return *signals_flag();
}

static const void *on_extension(void *ctx, const char *id)
{
    const struct run *r = ctx;
    return !strcmp(id, "tare.embed/1") && r->embed ? embed_service_extension(r->embed) : NULL;
}

static const void *on_estimator_extension(void *ctx, const char *id)
{
    struct run *r = ctx;
    return !strcmp(id, "tare.logprob/1") ? logprob_service_extension(&r->logprob) : on_extension(ctx, id);
}

static struct plugin_env plugin_env(struct run *r)
{
    return (struct plugin_env){
        .seed = (uint64_t)r->config->run.seed, .ctx = r, .metric = on_metric, .cancelled = on_cancelled, .extension = on_extension};
}

static tare_status open_data(struct run *r, struct err *e)
{
    const struct config *c = r->config;
    TRY(dataset_load(c->data.train, c->data.limit, &r->train, e));
    for (int64_t i = 0; i < r->train.n; i++)
        if (!r->train.rows[i].answer.data)
            FAIL(e, TARE_E_INVALID, "%s: no \"answer\"; every training row needs one", r->train.rows[i].where);
    if (c->data.eval[0]) TRY(dataset_load(c->data.eval, c->eval.rows, &r->eval, e));
    if (c->data.permute_choices) {
        TRY(choices_permute(&r->train, (uint64_t)c->data.permute_seed, e));
        TRY(choices_permute(&r->eval, (uint64_t)c->data.permute_seed, e));
    }
    return order_init(&r->order, r->train.n, c->data.shuffle, (uint64_t)c->run.seed, e);
}

static bool wants_reference(const struct run *r)
{
    return r->config->loss.kl_coef > 0 || (estimate_needs(r->estimator) & TARE_NEED_REF_LOGPROB);
}

static tare_status load_model(struct run *r, const char *folder, struct model **out, struct err *e)
{
    const struct config *c = r->config;
    enum shard shard;
    TRY(shard_from(c->dist.shard, &shard, e));
    TRY(model_load_sharded(folder, &c->model, r->kernels, r->pool, &r->comm, shard, out, e));
    model_set_deterministic(*out, c->run.deterministic);
    return TARE_OK;
}

static tare_status open_reference(struct run *r, struct err *e)
{
    const struct config *c = r->config;
    if (!wants_reference(r)) return TARE_OK;
    TRY(load_model(r, c->model.reference[0] ? c->model.reference : c->model.path, &r->reference, e));
    if (r->reference->n_params != r->model->n_params || r->reference->shape.vocab != r->model->shape.vocab)
        FAIL(e, TARE_E_CONFIG, "model.reference = %s has another shape than model.path = %s; they must be the same architecture",
             c->model.reference, c->model.path);
    return TARE_OK;
}

static tare_status open_model(struct run *r, struct err *e)
{
    const struct config *c = r->config;
    TRY(kernels_open(c->run.device, c->run.kernels, r->comm.local, &r->kernels, e));
    TRY(pool_new(c->run.threads ? (int)c->run.threads : r->comm.threads, &r->pool, e));
    r->comm_ctx = (struct kctx){.fault = &r->comm_fault};
    TRY(comm_device(&r->comm, r->kernels, &r->comm_ctx, c->dist.communicator, strcmp(c->run.deterministic, "false") != 0, e));
    if (!fs_is_dir(c->model.path))
        FAIL(e, TARE_E_CONFIG, "%s: model.path = %s is not there; give a Hugging Face folder, or model.warm_start to make one",
             config_where(c, "model", "path"), c->model.path);
    TRY(tokenizer_load(c->model.path, &r->tokenizer, e));
    TRY(device_memory_reserve(c, r->kernels, &r->comm, tokenizer_size(r->tokenizer), e));
    TRY(load_model(r, c->model.path, &r->model, e));
    return prompts_new(&c->data, c->model.path, r->tokenizer, &r->prompts, e);
}

/* A prompt longer than allowed, or than the context leaves room for, is found before the first step. */
static tare_status check_prompts(struct run *r, const struct dataset *d, struct err *e)
{
    const struct rollout_config *c = &r->config->rollout;
    int64_t room = r->model->shape.max_position - 1;
    if (c->max_prompt_tokens && c->max_prompt_tokens < room) room = c->max_prompt_tokens;
    for (int64_t i = 0; i < d->n; i++) {
        r->prompt_ids.n = 0;
        TRY(prompts_encode(r->prompts, &d->rows[i], &r->prompt_ids, e));
        if (r->prompt_ids.n > room)
            FAIL(e, TARE_E_RANGE,
                 "%s: the prompt has %lld tokens, %lld are allowed (context %lld, rollout.max_prompt_tokens %lld); shorten or drop "
                 "the row",
                 d->rows[i].where, (long long)r->prompt_ids.n, (long long)room, (long long)r->model->shape.max_position,
                 (long long)c->max_prompt_tokens);
    }
    return TARE_OK;
}

static int64_t optimizer_steps(const struct config *c)
{
    const int64_t rollouts = c->rollout.prompts * c->rollout.group_size;
    const int64_t per_step = (rollouts + c->train.minibatch - 1) / c->train.minibatch;
    return c->train.steps * c->train.epochs * per_step;
}

static tare_status open_parts(struct run *r, struct err *e)
{
    const struct config *c = r->config;
    const struct plugin_search search = {.config_dir = c->dir};
    const struct plugin_env env = plugin_env(r);
    struct plugin_env estimator_env = env;
    estimator_env.extension = on_estimator_extension;
    TRY(open_data(r, e));
    TRY(verify_open(c, &search, &env, &r->verify, e));
    TRY(open_model(r, e));
    TRY(sample_params_from(&c->rollout, r->model->shape.vocab, config_where(c, "rollout", "stop_ids"), &r->lasting, &r->params, e));
    TRY(check_prompts(r, &r->train, e));
    TRY(check_prompts(r, &r->eval, e));
    TRY(embed_service_new(r->model, r->tokenizer, &r->embed, e));
    TRY(cluster_open(c, &r->train, &env, &r->comm, r->pool, &r->cluster, e));
    TRY(estimate_open(&(struct estimate_options){.plugin = c->estimator.plugin,
                                                 .search = &search,
                                                 .settings = c->params,
                                                 .n_clusters = r->cluster.n_clusters,
                                                 .env = estimator_env},
                      &r->estimator, e));
    TRY(off_policy_check(r, e));
    TRY(open_reference(r, e));
    TRY(sampler_new(r->model, c->rollout.batch, c->rollout.kv_tokens, &r->sampler, e));
    TRY(trainer_new(r->model, r->reference, &c->train, &c->loss, c->rollout.temperature, (uint64_t)c->run.seed, optimizer_steps(c),
                    &r->trainer, e));
    r->trainer->gradient_shards = c->dist.gradient_shards;
    return TARE_OK;
}

static void add_plugin(struct manifest *m, struct manifest_plugin *list, const struct plugin *p)
{
    if (!p) return;
    list[m->n_plugins++] =
        (struct manifest_plugin){plugin_kind_name(p->desc.kind), p->desc.name, p->desc.version, p->path, p->hash};
}

static tare_status open_observe(struct run *r, bool resume, int64_t step, struct err *e)
{
    struct manifest_plugin plugins[32];
    struct manifest m = {.kernels = r->kernels->name,
                         .threads = pool_threads(r->pool),
                         .ranks = r->comm.size,
                         .plugins = plugins,
                         .model = r->config->model.path,
                         .data_hash = r->train.hash,
                         .eval_hash = r->eval.hash,
                         .data_rows = r->train.n,
                         .eval_rows = r->eval.n};
    add_plugin(&m, plugins, estimate_plugin(r->estimator));
    for (int64_t k = 0; k < verify_n_components(r->verify) && k < 24; k++) add_plugin(&m, plugins, verify_plugin(r->verify, k));
    add_plugin(&m, plugins, r->cluster.encoder ? r->cluster.encoder->plugin : NULL);
    add_plugin(&m, plugins, r->cluster.codebook ? r->cluster.codebook->plugin : NULL);
    return observe_open(r->config, &m, resume, step, &r->observe, e);
}

static tare_status check_ranks(const struct run *r, struct err *e)
{
    const struct config *c = r->config;
    if (r->comm.size > c->dist.gradient_shards)
        FAIL(e, TARE_E_CONFIG,
             "%s: dist.gradient_shards = %lld, and there are %d ranks: some would have no part in the update; set it to a multiple "
             "of the "
             "ranks, or start fewer",
             config_where(c, "dist", "gradient_shards"), (long long)c->dist.gradient_shards, r->comm.size);
    return TARE_OK;
}

/* The last complete checkpoint, as rank 0 finds it: *step -1 when there is none. folder: FS_PATH bytes */
static tare_status find_checkpoint(struct run *r, char *folder, int64_t *step, struct err *e)
{
    const tare_status status = r->comm.rank ? TARE_OK : checkpoint_latest(r->config->run.dir, folder, step, e);
    TRY(comm_agree(&r->comm, status, e));
    TRY(r->comm.broadcast(&r->comm, folder, FS_PATH, 0, e));
    return r->comm.broadcast(&r->comm, step, sizeof *step, 0, e);
}

/* On rank 0, which keeps the run's records. */
static tare_status open_folder(struct run *r, bool resume, int64_t step, struct err *e)
{
    if (r->comm.rank) return TARE_OK;
    TRY(open_observe(r, resume, step, e));
    return checkpoint_clean(r->config->run.dir, step, e);
}

tare_status run_open(struct run *r, const struct config *c, struct comm comm, bool resume, struct err *e)
{
    char folder[FS_PATH] = "";
    int64_t step = -1;
    *r = (struct run){.config = c, .comm = comm, .evaluated = -1};
    arena_init(&r->arena, "step");
    arena_init(&r->eval_arena, "evaluation");
    arena_init(&r->lasting, "run");
    TRY(hello_program(&r->comm, c, e));
    TRY(check_ranks(r, e));
    TRY(open_parts(r, e));
    if (resume) {
        TRY(find_checkpoint(r, folder, &step, e));
        if (step >= 0)
            TRY(run_restore(r, folder, e));
        else
            log_warn("%s has no complete checkpoint: starting from the beginning", c->run.dir);
    }
    TRY(hello_parts(r, step, e));
    return comm_agree(&r->comm, open_folder(r, resume, step, e), e);
}

void run_close(struct run *r)
{
    observe_close(r->observe, "failed", NULL);
    trainer_free(r->trainer);
    sampler_free(r->sampler);
    model_free(r->reference);
    estimate_free(r->estimator);
    cluster_close(&r->cluster);
    embed_service_free(r->embed);
    prompts_free(r->prompts);
    model_free(r->model);
    tokenizer_free(r->tokenizer);
    verify_close(r->verify);
    order_free(&r->order);
    dataset_free(&r->eval);
    dataset_free(&r->train);
    token_ids_free(&r->prompt_ids);
    token_ids_free(&r->trace_ids);
    arena_free(&r->lasting);
    arena_free(&r->arena);
    arena_free(&r->eval_arena);
    pool_free(r->pool);
    if (r->comm.free) r->comm.free(&r->comm);
}
