/* Opens and closes a run, in the order of the data flow. Nothing is written until all parts are
 * known to fit together. */
#include "loop/run.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/signals.h"
#include "batch/table.h"
#include "engine/same_ranks.h"
#include "loop/resume.h"
#include "loop/resume_check.h"
#include "loop/run_files.h"

#include <stdlib.h>
#include <string.h>

/* Estimators and curricula are called on every rank with the same arguments: rank 0 speaks for all. */
static void on_metric(void *ctx, const char *name, double value, int32_t how)
{
    struct run *r = ctx;
    const bool on_every_rank = !strncmp(name, "estimator", 9) || !strncmp(name, "curriculum", 10);
    if (!on_every_rank || !r->comm.rank) plugin_metrics_add(&r->plugin_metrics, name, value, how);
}

static int32_t on_cancelled(void *ctx)
{
    const struct run *r = ctx;
    return r->state != RUN_EVALUATING && signals_asked();
}

static int64_t finished_steps(void *ctx)
{
    return ((const struct run *)ctx)->step;
}

static const void *on_extension(void *ctx, const char *id)
{
    const struct run *r = ctx;
    if (!strcmp(id, "tare.embed/1")) return r->embed ? embed_service_extension(r->embed) : NULL;
    if (!strcmp(id, "tare.progress/1")) return &r->progress;
    return r->start->extension ? r->start->extension(r->start->extension_ctx, id) : NULL;
}

static struct plugin_env plugin_env(struct run *r)
{
    r->progress = (tare_progress_v1){
        .struct_size = sizeof r->progress, .ctx = r, .finished = finished_steps, .steps = r->config->train.steps};
    return (struct plugin_env){
        .seed = (uint64_t)r->config->run.seed, .ctx = r, .metric = on_metric, .cancelled = on_cancelled, .extension = on_extension};
}

/* An estimator with a teacher learns nothing from the policy's own initial weights. */
static void warn_of_teacher(const struct run *r)
{
    if (estimate_wants(r->learner.estimator, COLUMN_REF_LOGPROB) && !*r->config->model.reference)
        log_warn(
            "model.reference is empty, so the teacher of estimator.plugin = %s is the initial policy and the first step has nothing to learn; name a teacher with model.reference=FOLDER",
            r->config->estimator.plugin);
}

static int64_t optimizer_steps(const struct config *c)
{
    const int64_t rollouts = c->rollout.prompts * c->rollout.group_size;
    const int64_t per_step = (rollouts + c->train.minibatch - 1) / c->train.minibatch;
    return c->train.steps * c->train.epochs * per_step;
}

/* Checks every row before the first step; otherwise a bad row at the end of an epoch would stop the
 * run there. */
static tare_status check_columns(const struct run *r, struct err *e)
{
    const struct dataset *d = &r->engine.train;
    uint64_t seen = 0;
    for (int64_t i = 0; i < d->n; i++) TRY(estimate_check_row(r->learner.estimator, d->rows[i].json, d->rows[i].where, &seen, e));
    return estimate_check_seen(r->learner.estimator, seen, r->config->data.train, e);
}

static tare_status name_components(struct run *r, struct err *e)
{
    const struct verify *v = r->engine.verify;
    TRY(mem_new(verify_n_components(v) * (int64_t)sizeof(tare_text) + 1, (void **)&r->learner.component_name, e));
    for (int64_t c = 0; c < verify_n_components(v); c++) {
        const char *name = verify_component_name(v, c);
        r->learner.component_name[c] = (tare_text){name, (int64_t)strlen(name)};
    }
    return TARE_OK;
}

/* An evaluation cannot be interrupted: the step before it cannot be repeated. */
static void open_collectors(struct run *r)
{
    const struct config *c = r->config;
    r->collector = engine_collector(&r->engine, &r->arena);
    r->collector.config = c->rollout;
    r->collector.params = &r->engine.sampling;
    r->collector.cancelled = signals_flag();
    r->collector.columns = COLLECT_VERSION | COLLECT_SEGMENTS | (c->log.rollouts ? COLLECT_PROMPT_TEXT : 0);
    r->eval_collector = engine_collector(&r->engine, &r->eval_arena);
    r->eval_collector.config = engine_evaluation_rollout(c);
    r->eval_collector.params = &r->engine.evaluating;
}

static tare_status open_parts(struct run *r, struct err *e)
{
    const struct config *c = r->config;
    struct engine *g = &r->engine;
    const struct plugin_search search = {.folder = c->run.plugins};
    g->env = plugin_env(r);
    TRY(engine_open(g, ENGINE_TRAIN | (c->data.eval[0] ? ENGINE_EVAL : 0) | ENGINE_ANSWERS | ENGINE_VERIFIER, e));
    TRY(engine_open(g, ENGINE_REGION | ENGINE_MODEL | ENGINE_TRAINS | ENGINE_PROMPTS | ENGINE_SAMPLING, e));
    TRY(curriculum_open(&(struct curriculum_options){.plugin = c->curriculum.plugin,
                                                     .search = &search,
                                                     .settings = c->params,
                                                     .rows = &g->train,
                                                     .prompts = c->rollout.prompts,
                                                     .group_size = c->rollout.group_size,
                                                     .env = g->env},
                        &r->curriculum, e));
    TRY(engine_check_prompts(g, &g->train, true, NULL, e));
    TRY(engine_check_prompts(g, &g->eval, true, NULL, e));
    TRY(embed_service_new(g->model, g->tokenizer, &r->embed, e));
    TRY(cluster_open(c, &g->train, &(struct cluster_options){.env = &g->env, .comm = &r->comm, .pool = g->pool}, &r->cluster, e));
    TRY(name_components(r, e));
    TRY(estimate_open(&(struct estimate_options){.plugin = c->estimator.plugin,
                                                 .search = &search,
                                                 .settings = c->params,
                                                 .n_clusters = r->cluster.n_clusters,
                                                 .component_name = r->learner.component_name,
                                                 .env = g->env},
                      &r->learner.estimator, e));
    TRY(check_columns(r, e));
    TRY(engine_open_objective(g, e));
    TRY(learner_open(r, e));
    const bool reads_segments =
        estimate_wants(r->learner.estimator, COLUMN_SEGMENT) || estimate_wants(r->learner.estimator, COLUMN_SEGMENT_REWARD);
    TRY(engine_check_segments(c, verify_gives_segments(g->verify), reads_segments, e));
    warn_of_teacher(r);
    if (learner_reads_reference(r)) TRY(engine_open_reference(g, e));
    TRY(engine_open(g, ENGINE_SAMPLER, e));
    open_collectors(r);
    TRY(engine_open_trainer(g, c->rollout.temperature, optimizer_steps(c), e));
    g->trainer->gradient_shards = c->dist.gradient_shards;
    return learner_open_hooks(r, e);
}

static tare_status identity_of(const struct plugin_instance *i, struct arena *a, const char **out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    *out = NULL;
    if (!i || !i->plugin->head->identity) return TARE_OK;
    TRY(plugin_identity(i, &text, e));
    return arena_strdup(a, text.data, text.size, (char **)(uintptr_t)out, e);
}

static void add_plugin(struct manifest *m, struct manifest_plugin *list, const struct plugin *p, const char *identity)
{
    if (!p) return;
    list[m->n_plugins++] = (struct manifest_plugin){.kind = plugin_kind_name(p->desc.kind),
                                                    .name = p->desc.name,
                                                    .version = p->desc.version,
                                                    .path = p->path,
                                                    .hash = p->hash,
                                                    .identity = identity};
}

static tare_status add_plugins(const struct run *r, struct manifest *m, struct manifest_plugin *list, struct arena *a,
                               struct err *e)
{
    const struct plugin_instance *const instances[] = {estimate_instance(r->learner.estimator),
                                                       objective_instance(r->engine.objective),
                                                       curriculum_instance(r->curriculum),
                                                       r->cluster.encoder,
                                                       r->cluster.codebook,
                                                       r->engine.episodes ? episodes_instance(r->engine.episodes) : NULL};
    const struct verify *v = r->engine.verify;
    const char *identity;
    for (size_t k = 0; k < sizeof instances / sizeof *instances; k++) {
        TRY(identity_of(instances[k], a, &identity, e));
        if (instances[k]) add_plugin(m, list, instances[k]->plugin, identity);
    }
    for (int64_t k = 0; k < verify_n_components(v) && k < TARE_LIMIT_VERIFIERS; k++) {
        TRY(identity_of(verify_instance(v, k), a, &identity, e));
        add_plugin(m, list, verify_plugin(v, k), identity ? identity : verify_identity(v, k));
    }
    return TARE_OK;
}

/* Like a changed model (core/engine/models.c), but never an error: a rebuilt plugin is another
 * file, though it may behave identically. */
static tare_status warn_of_plugins(const struct run *r, const struct manifest *m, struct err *e)
{
    OWNED(str_free) struct str changed = {0};
    TRY(manifest_changed_plugins(r->config->run.dir, m, &changed, e));
    if (changed.size)
        log_warn("%s is resumed with a changed plugin: it is not the one that the run was trained with (by manifest.json): %.1400s",
                 r->config->run.dir, changed.data);
    return TARE_OK;
}

static tare_status open_observe(struct run *r, bool resume, int64_t step, struct err *e)
{
    struct manifest_plugin plugins[32];
    struct manifest m = {.kernels = r->engine.kernels->name,
                         .threads = pool_threads(r->engine.pool),
                         .ranks = r->comm.size,
                         .plugins = plugins,
                         .model = r->config->model.path,
                         .data_hash = r->engine.train.hash,
                         .eval_hash = r->engine.eval.hash,
                         .rollbacks = r->rollbacks,
                         .models = r->models,
                         .files = r->files,
                         .data_rows = r->engine.train.n,
                         .eval_rows = r->engine.eval.n};
    OWNED(arena_free) struct arena texts = {0};
    arena_init(&texts, "identities of plugins");
    TRY(add_plugins(r, &m, plugins, &texts, e));
    if (resume) TRY(warn_of_plugins(r, &m, e));
    return observe_open(r->config, &m, resume, step, &r->observe, e);
}

static tare_status check_ranks(const struct run *r, struct err *e)
{
    const struct config *c = r->config;
    if (r->comm.size > c->dist.gradient_shards)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: dist.gradient_shards = %lld is smaller than the number of ranks (%d), so some ranks would have no work in the update; set it to a multiple of the ranks, or start fewer",
            config_where(c, "dist", "gradient_shards"), (long long)c->dist.gradient_shards, r->comm.size);
    return TARE_OK;
}

/* Finds the last complete checkpoint on rank 0; *step = -1 without one. folder: FS_PATH
 * bytes. */
static tare_status find_checkpoint(struct run *r, char *folder, int64_t *step, struct err *e)
{
    tare_status status = r->comm.rank ? TARE_OK : checkpoint_latest(r->config->run.dir, folder, step, e);
    if (!status && !r->comm.rank && *step < 0) status = resume_lost(r->config->run.dir, e);
    TRY(comm_agree(&r->comm, status, e));
    TRY(r->comm.broadcast(&r->comm, folder, FS_PATH, 0, e));
    return r->comm.broadcast(&r->comm, step, sizeof *step, 0, e);
}

/* Rank 0 keeps the run's records. */
static tare_status open_folder(struct run *r, bool resume, int64_t step, struct err *e)
{
    if (r->comm.rank) return TARE_OK;
    TRY(run_files_take(r, &r->files, e));
    if (resume) TRY(run_files_warn(r, r->files, e));
    TRY(open_observe(r, resume, step, e));
    TRY(checkpoint_clean(r->config->run.dir, step, e));
    /* A process that was killed after its last checkpoint was named did not prune. With rollback,
     * the next checkpoint prunes: an older one may still be the target of a rollback. */
    if (r->config->train.on_nonfinite == NONFINITE_ROLLBACK) return TARE_OK;
    return checkpoint_prune(r->config->run.dir, r->config->checkpoint.keep, -1, e);
}

/* step: the checkpoint's step from which the run resumes; -1 without one. */
static tare_status check_steps(const struct config *c, int64_t step, int64_t until, struct err *e)
{
    if (step > c->train.steps)
        FAIL(e, TARE_E_CONFIG, "%s: train.steps = %lld: %s has already finished %lld steps; nothing remains to do",
             config_where(c, "train", "steps"), (long long)c->train.steps, c->run.dir, (long long)step);
    if (until > c->train.steps)
        FAIL(e, TARE_E_CONFIG, "--until %lld: must be at most %lld (%s: train.steps)", (long long)until, (long long)c->train.steps,
             config_where(c, "train", "steps"));
    if (until && until < step)
        FAIL(e, TARE_E_CONFIG, "--until %lld: %s has already finished %lld steps", (long long)until, c->run.dir, (long long)step);
    return TARE_OK;
}

static tare_status compare_parts(const struct run *r, int64_t step, struct err *e)
{
    const struct plugin *const plugins[] = {
        estimate_plugin(r->learner.estimator), objective_plugin(r->engine.objective), curriculum_plugin(r->curriculum),
        r->cluster.encoder ? r->cluster.encoder->plugin : NULL, r->cluster.codebook ? r->cluster.codebook->plugin : NULL};
    return same_ranks_parts(&r->engine, plugins, sizeof plugins / sizeof *plugins, step, e);
}

static tare_status take_models(struct run *r, int64_t step, struct err *e)
{
    const struct models_resume how = {.folder = r->config->run.dir,
                                      .advice = "add --allow-change to continue with these",
                                      .checkpoint = step >= 0,
                                      .allow_change = r->start->allow_change};
    return r->comm.rank ? TARE_OK : models_take(&r->engine, r->start->resume ? &how : NULL, &r->models, e);
}

tare_status run_open(struct run *r, const struct config *c, struct comm comm, const struct train_start *start, struct err *e)
{
    char folder[FS_PATH] = "";
    int64_t step = -1;
    *r = (struct run){.config = c, .start = start, .comm = comm, .state = RUN_OPENING, .evaluated_step = -1};
    plugin_metrics_init(&r->plugin_metrics);
    arena_init(&r->arena, "step");
    arena_init(&r->eval_arena, "evaluation");
    engine_init(&r->engine, c, &r->comm);
    r->engine.resumed = start->resume;
    TRY(same_ranks_program(&r->comm, c, e));
    TRY(check_ranks(r, e));
    if (start->resume) TRY(find_checkpoint(r, folder, &step, e));
    TRY(check_steps(c, step, start->until, e));
    TRY(open_parts(r, e));
    if (step >= 0) TRY(run_restore(r, folder, e));
    TRY(comm_agree(&r->comm, take_models(r, step, e), e));
    TRY(compare_parts(r, step, e));
    TRY(comm_agree(&r->comm, open_folder(r, start->resume, step, e), e));
    r->state = RUN_READY;
    return TARE_OK;
}

/* Copies the bytes that column c points to into the arena. */
static tare_status keep_bytes(struct batch *b, int c, struct arena *a, struct err *e)
{
    const int64_t n = batch_count(b, BATCH_TABLE[c].axis);
    char *copy;
    if (BATCH_TABLE[c].kind == KIND_TEXT) {
        tare_text *old = batch_array(b, c), *own;
        TRY(arena_new(a, &own, n + 1, e));
        for (int64_t i = 0; i < n; i++) {
            TRY(arena_strdup(a, old[i].data ? old[i].data : "", old[i].size, &copy, e));
            own[i] = (tare_text){old[i].data ? copy : NULL, old[i].size};
        }
        batch_set_array(b, c, own);
    } else {
        const char *const *old = batch_array(b, c);
        const char **own;
        TRY(arena_new(a, &own, n + 1, e));
        for (int64_t i = 0; i < n; i++) {
            if (!old[i]) continue;
            TRY(arena_strdup(a, old[i], -1, &copy, e));
            own[i] = copy;
        }
        batch_set_array(b, c, (void *)(uintptr_t)own);
    }
    return TARE_OK;
}

tare_status run_take_batch(struct run *r, struct run_batch *out, struct err *e)
{
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const enum batch_kind kind = BATCH_TABLE[c].kind;
        if (batch_array(&r->batch, c) && (kind == KIND_TEXT || kind == KIND_STRING)) TRY(keep_bytes(&r->batch, c, &r->arena, e));
    }
    *out = (struct run_batch){r->batch, r->arena};
    arena_init(&r->arena, "step");
    r->batch = (struct batch){0};
    r->collector.share = (struct share){0};
    return TARE_OK;
}

void run_batch_free(struct run_batch *b)
{
    arena_free(&b->arena);
    *b = (struct run_batch){0};
}

void run_close(struct run *r)
{
    observe_close(r->observe, "failed", NULL);
    learner_close(&r->learner);
    curriculum_free(r->curriculum);
    cluster_close(&r->cluster);
    embed_service_free(r->embed);
    engine_close(&r->engine);
    json_decref(r->models);
    json_decref(r->files);
    collector_free(&r->collector);
    collector_free(&r->eval_collector);
    arena_free(&r->arena);
    arena_free(&r->eval_arena);
    plugin_metrics_free(&r->plugin_metrics);
    if (r->comm.free) r->comm.free(&r->comm);
    r->state = RUN_CLOSED;
}
