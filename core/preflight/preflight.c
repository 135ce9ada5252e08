#include "preflight/preflight.h"

#include "base/fs.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "curriculum/curriculum.h"
#include "data/dataset.h"
#include "data/prompt.h"
#include "data/tokenizer.h"
#include "engine/engine.h"
#include "estimate/estimate.h"
#include "plan/plan.h"
#include "plugin/episode.h"
#include "preflight/signal.h"
#include "sft/sft.h"
#include "verify/rows.h"
#include "verify/verify.h"

#include <string.h>
#include <sys/statvfs.h>

enum { CHAIN = 8 };

/* ---------------------------------------------------------------- files */

static tare_status check_file(const struct config *c, const char *section, const char *key, const char *path, struct err *e)
{
    if (!*path || fs_exists(path)) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "%s: %s.%s = %s does not exist", config_where(c, section, key), section, key, path);
}

static tare_status check_model_files(const struct config *c, struct faults *f, struct err *e)
{
    TRY(err_note_fault(f, check_file(c, "data", "chat_template", c->data.chat_template, e), e));
    TRY(err_note_fault(f, check_file(c, "eval", "difficulty", c->eval.difficulty, e), e));
    TRY(err_note_fault(f, check_file(c, "eval", "complex_rules", c->eval.complex_rules, e), e));
    if (c->process_reward.implicit) TRY(err_note_fault(f, check_file(c, "process_reward", "model", c->process_reward.model, e), e));
    const bool reference = c->loss.kl_coef > 0 || c->process_reward.implicit;
    return reference ? err_note_fault(f, check_file(c, "model", "reference", c->model.reference, e), e) : TARE_OK;
}

/* ---------------------------------------------------------------- plugins */

static int32_t is_cancelled(void *ctx)
{
    (void)ctx;
    return 0;
}

/* Opens a plugin. If that fails, the error names the key that chose it. */
static tare_status open_at_key(const struct config *c, const char *section, const char *key, tare_status status, struct err *e)
{
    return status == TARE_E_NOT_FOUND ? err_prefix(e, "%s: %s.%s", config_where(c, section, key), section, key) : status;
}

static tare_status check_objective(const struct config *c, const struct plugin_env *env, struct err *e)
{
    OWNED(engine_close) struct engine g = {0};
    engine_init(&g, c, NULL);
    g.env = *env;
    return open_at_key(c, "objective", "plugin", engine_open_objective(&g, e), e);
}

static tare_status check_curriculum(const struct config *c, const struct dataset *train, const struct plugin_env *env,
                                    struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    struct curriculum *curriculum;
    const struct curriculum_options options = {.plugin = c->curriculum.plugin,
                                               .search = &search,
                                               .settings = c->params,
                                               .rows = train,
                                               .prompts = c->rollout.prompts,
                                               .group_size = c->rollout.group_size,
                                               .env = *env};
    TRY(open_at_key(c, "curriculum", "plugin", curriculum_open(&options, &curriculum, e), e));
    curriculum_free(curriculum);
    return TARE_OK;
}

/* Begins one episode, with the first row. */
static tare_status try_environment(struct plugin_instance *i, const struct row *row, struct err *e)
{
    OWNED(plugin_episode_close) struct plugin_episode x = {0};
    TRY(plugin_episode_open(i, &x, e));
    const tare_episode episode = {
        .struct_size = sizeof episode, .row = row->json, .messages = row->messages, .prompt_uid = row->uid};
    return plugin_episode_reset(&x, &episode, e) ? err_prefix(e, "%s", row->where) : TARE_OK;
}

static tare_status check_environment(const struct config *c, const struct dataset *train, const struct plugin_env *env,
                                     struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct plugin_wanted wanted = {c->environment.plugin, TARE_KIND_ENVIRONMENT, &search, c->params, 0, env};
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    if (!*c->environment.plugin) return TARE_OK;
    TRY(open_at_key(c, "environment", "plugin", plugin_new(&wanted, &i, e), e));
    return train && train->n ? try_environment(i, &train->rows[0], e) : TARE_OK;
}

/* Tracks which of the plugins that open produce token or step rewards, and which read them. */
struct segments {
    bool verifier, gives, estimator, reads;
};

/* Verifies "-" as a completion of the first row of each data set: a reward function that raises does
 * so here, and not after a model was loaded and evaluated. */
static tare_status try_verifiers(struct verify *verify, const struct dataset *const data[2], struct err *e)
{
    for (int64_t k = 0; k < verify_n_components(verify); k++) {
        const struct plugin *p = verify_plugin(verify, k);
        if (p && !strcmp(p->desc.name, PLUGIN_OF_CALLER)) return TARE_OK; /* its functions come with the run */
    }
    for (int i = 0; i < 2; i++)
        if (data[i] && data[i]->n && verify_try_row(verify, &data[i]->rows[0], e))
            return err_prefix(e, "%s: a completion \"-\"", data[i]->rows[0].where);
    return TARE_OK;
}

/* data: data.train and data.eval; NULL for one that could not be read. dry: call the verifiers
 * once. */
static tare_status check_verifier(const struct config *c, const struct dataset *const data[2], const struct plugin_env *env,
                                  bool dry, struct segments *s, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    OWNED(arena_free) struct arena a = {0};
    struct plugin_env with_fields = *env;
    struct verify *verify;
    arena_init(&a, "fields");
    TRY(verify_row_fields(c, data, &a, &with_fields.row_fields, e));
    TRY(open_at_key(c, "verifier", "plugins", verify_open(c, &search, &with_fields, &verify, e), e));
    s->verifier = true;
    s->gives = verify_gives_segments(verify);
    const tare_status status = dry ? try_verifiers(verify, data, e) : TARE_OK;
    verify_close(verify);
    return status;
}

/* train is NULL if the rows could not be read, which has already been reported. */
static tare_status check_estimator(const struct config *c, const struct dataset *train, int64_t clusters,
                                   const struct plugin_env *env, struct segments *s, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    OWNED(estimate_free_at) struct estimator *estimator = NULL;
    const struct estimate_options options = {
        .plugin = c->estimator.plugin, .search = &search, .settings = c->params, .n_clusters = clusters, .env = *env};
    TRY(open_at_key(c, "estimator", "plugin", estimate_open(&options, &estimator, e), e));
    s->estimator = true;
    s->reads = estimate_wants(estimator, COLUMN_SEGMENT) || estimate_wants(estimator, COLUMN_SEGMENT_REWARD);
    uint64_t seen = 0;
    for (int64_t i = 0; train && i < train->n; i++)
        TRY(estimate_check_row(estimator, train->rows[i].json, train->rows[i].where, &seen, e));
    if (train) TRY(estimate_check_seen(estimator, seen, c->data.train, e));
    return TARE_OK;
}

/* Opens the plugin of a section, [KIND.NAME]. */
static tare_status find_named(const struct config *c, const char *section, const struct plugin **out, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    return plugin_open(strchr(section, '.') + 1, config_kind_of_section(section), &search, out, e);
}

static bool first_of_section(const struct config *c, const struct config_param *p)
{
    for (const struct config_param *q = c->params; q != p; q = q->next)
        if (!strcmp(q->section, p->section)) return false;
    return true;
}

/* Checks the parameters of the plugins that the configuration chooses from a kind. *sound: no fault
 * was found, so that they can be opened. A file may hold a plugin of any name: its parameters are
 * checked when it is opened. */
static tare_status check_tables(const struct config *c, int32_t kind, bool *sound, struct faults *f, struct err *e)
{
    const char *chosen = config_kind_choice(c, kind);
    const int64_t before = f ? f->n : 0;
    const bool file = strchr(chosen, '/') || strstr(chosen, ".so");
    for (const struct config_param *p = c->params; p && !file; p = p->next) {
        const struct plugin *plugin;
        struct err unused;
        if (config_kind_of_section(p->section) != kind || !first_of_section(c, p) || !config_uses(c, p->section)) continue;
        if (!find_named(c, p->section, &plugin, &unused)) TRY(plugin_check_params(plugin, c->params, f, e));
    }
    *sound = !f || f->n == before;
    return TARE_OK;
}

/* train is NULL if the rows could not be read, which has already been reported. */
static tare_status check_clusters(const struct config *c, const struct dataset *train, const struct plugin_env *env,
                                  int64_t *clusters, struct faults *f, struct err *e)
{
    bool sound;
    *clusters = c->codebook.clusters;
    TRY(check_tables(c, TARE_KIND_CODEBOOK, &sound, f, e));
    return sound && train ? err_note_fault(f, cluster_check(c, train, env, clusters, e), e) : TARE_OK;
}

static tare_status check_plugins(const struct config *c, const struct dataset *const data[2], struct faults *f, struct err *e)
{
    const struct dataset *const train = data[0];
    const struct plugin_env env = {.seed = (uint64_t)c->run.seed, .cancelled = is_cancelled};
    struct segments s = {0};
    int64_t clusters = 0;
    bool sound;
    TRY(check_tables(c, TARE_KIND_VERIFIER, &sound, f, e));
    if (sound) TRY(err_note_fault(f, check_verifier(c, data, &env, true, &s, e), e));
    TRY(check_tables(c, TARE_KIND_OBJECTIVE, &sound, f, e));
    if (sound) TRY(err_note_fault(f, check_objective(c, &env, e), e));
    TRY(check_tables(c, TARE_KIND_ENVIRONMENT, &sound, f, e));
    if (sound) TRY(err_note_fault(f, check_environment(c, train, &env, e), e));
    TRY(check_tables(c, TARE_KIND_CURRICULUM, &sound, f, e));
    if (sound && train) TRY(err_note_fault(f, check_curriculum(c, train, &env, e), e));
    /* the estimator is unknown, which has already been reported */
    if (!config_codebook_settled(c)) return TARE_OK;
    TRY(check_clusters(c, train, &env, &clusters, f, e));
    TRY(check_tables(c, TARE_KIND_ESTIMATOR, &sound, f, e));
    if (sound) TRY(err_note_fault(f, check_estimator(c, train, clusters, &env, &s, e), e));
    return s.verifier && s.estimator ? err_note_fault(f, engine_check_segments(c, s.gives, s.reads, e), e) : TARE_OK;
}

/* ---------------------------------------------------------------- the model, and its prompts */

/* data: the data sets that could be read, NULL for others */
static tare_status check_policy(const struct config *c, const struct dataset *const data[2], struct faults *f, struct err *e)
{
    struct model_shape shape;
    struct tokenizer *t = NULL;
    struct prompts *p = NULL;
    TRY(plan_shape(c, 0, &shape, e));
    TRY(tokenizer_load(c->model.path, &t, e));
    const int64_t most = c->rollout.max_prompt_tokens, context = shape.max_position - 1;
    const struct prompt_limits limits = {.tokens = most && most < context ? most : context,
                                         .context = shape.max_position,
                                         .most = most,
                                         .vocab = shape.vocab,
                                         .warns = true};
    tare_status status = prompts_new(&c->data, c->model.path, t, &p, e);
    for (int i = 0; i < 2 && !status; i++)
        if (data[i]) status = err_note_fault(f, prompts_check(p, data[i], &limits, NULL, e), e);
    if (!status && *c->environment.plugin && prompts_are_chat(p)) {
        OWNED(str_free) struct str unused = {0};
        const struct prompt_message m = {.role = "user", .text = {"x", 1}};
        status = err_note_fault(f, prompts_after_answer(p, NULL, (struct prompt_turn){.m = &m, .n = 1}, &unused, e), e);
    }
    prompts_free(p);
    tokenizer_free(t);
    return status;
}

static tare_status check_warm_start(const struct config *c, int depth, struct err *e);

static tare_status check_sft(const struct config *c, int depth, struct err *e)
{
    struct dataset d;
    TRY(dataset_of(c, "train", &d, e));
    tare_status status = TARE_OK;
    for (int64_t i = 0; !status && i < d.n; i++)
        if (!d.rows[i].completion.data && !d.rows[i].parts)
            status = err_set(e, TARE_E_CONFIG, __FILE__, __LINE__,
                             "%s: \"completion\" is missing; supervised training needs one in every row", d.rows[i].where);
    dataset_free(&d);
    TRY(status);
    if (fs_is_dir(c->model.path) || c->model.init != INIT_NONE) return TARE_OK;
    if (*c->model.warm_start) return check_warm_start(c, depth + 1, e);
    return config_no_model(c, "give a Hugging Face folder, or set model.init for a new model", e);
}

static tare_status check_warm_start(const struct config *c, int depth, struct err *e)
{
    char file[FS_PATH];
    OWNED(config_free) struct config child = {0};
    if (depth == CHAIN)
        FAIL(e, TARE_E_CONFIG, "%s: model.warm_start = %s: more than %d chained configurations; do they form a cycle?",
             config_where(c, "model", "warm_start"), c->model.warm_start, CHAIN);
    TRY(warm_start_config(c, file, &child, e));
    return check_sft(&child, depth, e);
}

/* *read: true if d holds the rows. */
static tare_status check_rows(const struct config *c, const char *key, struct dataset *d, bool *read, struct faults *f,
                              struct err *e)
{
    const tare_status status = dataset_of(c, key, d, e);
    *read = !status;
    return err_note_fault(f, status ? status : verify_check_rows(c, d, e), e);
}

/* Supervised updates and off-policy traces need rows that have a completion. */
static tare_status check_completions(const struct config *c, const struct dataset *d, struct err *e)
{
    const char *section = c->relift.rows ? "relift" : "rollout", *key = c->relift.rows ? "rows" : "off_policy";
    if (!c->relift.rows && !c->rollout.off_policy) return TARE_OK;
    for (int64_t i = 0; i < d->n; i++)
        if (d->rows[i].completion.data) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "%s: %s.%s needs rows with a \"completion\", but %s has none", config_where(c, section, key), section,
         key, c->data.train);
}

static tare_status check_all(const struct config *c, struct dataset data[2], struct faults *f, struct err *e)
{
    bool train, eval = false;
    TRY(check_model_files(c, f, e));
    TRY(check_rows(c, "train", &data[0], &train, f, e));
    if (train) TRY(err_note_fault(f, check_completions(c, &data[0], e), e));
    if (train && f) dataset_warn_few(c, data[0].n); /* train itself does where nothing is collected */
    if (c->data.eval[0]) TRY(check_rows(c, "eval", &data[1], &eval, f, e));
    if (train && eval && f) TRY(dataset_warn_shared(c, &data[0], &data[1], e));
    const struct dataset *const rows[2] = {train ? &data[0] : NULL, eval ? &data[1] : NULL};
    TRY(check_plugins(c, rows, f, e));
    /* already reported by settle, which looks at the model */
    if (f && (!*c->model.path || !c->rollout.max_new_tokens)) return TARE_OK;
    if (fs_is_dir(c->model.path)) return err_note_fault(f, check_policy(c, rows, f, e), e);
    if (*c->model.warm_start) return err_note_fault(f, check_warm_start(c, 0, e), e);
    return err_note_fault(f, config_no_model(c, "give a Hugging Face folder, or model.warm_start to make one", e), e);
}

tare_status preflight(const struct config *c, struct faults *f, struct err *e)
{
    struct dataset data[2] = {0};
    const tare_status status = check_all(c, data, f, e);
    dataset_free(&data[0]);
    dataset_free(&data[1]);
    return err_as_config(status, e);
}

static tare_status check_paths(const struct config *c, struct dataset data[2], struct err *e)
{
    const struct plugin_env env = {.seed = (uint64_t)c->run.seed, .cancelled = is_cancelled};
    struct segments s = {0};
    TRY(check_model_files(c, NULL, e));
    TRY(dataset_of(c, "train", &data[0], e));
    if (c->data.eval[0]) TRY(dataset_of(c, "eval", &data[1], e));
    const struct dataset *const rows[2] = {&data[0], c->data.eval[0] ? &data[1] : NULL};
    TRY(check_verifier(c, rows, &env, false, &s, e));
    if (fs_is_dir(c->model.path)) return TARE_OK;
    if (*c->model.warm_start) return check_warm_start(c, 0, e);
    return config_no_model(c, "give a Hugging Face folder, or model.warm_start to make one", e);
}

tare_status preflight_cell(const struct config *c, bool met, struct err *e)
{
    struct dataset data[2] = {0};
    bool sound;
    TRY(check_tables(c, TARE_KIND_VERIFIER, &sound, NULL, e));
    TRY(check_tables(c, TARE_KIND_CODEBOOK, &sound, NULL, e));
    if (met) return TARE_OK;
    const tare_status status = check_paths(c, data, e);
    dataset_free(&data[0]);
    dataset_free(&data[1]);
    return err_as_config(status, e);
}

/* ---------------------------------------------------------------- warnings */

/* Checks a section once, when its first parameter is met. */
static void warn_section(const struct config *c, const struct config_param *p)
{
    const struct plugin *plugin;
    const tare_value *values;
    struct arena a;
    struct err e = {0};
    if (!first_of_section(c, p) || !strchr(p->section, '.') || config_uses(c, p->section)) return;
    if (find_named(c, p->section, &plugin, &e)) {
        log_warn("%s: [%s] is unused, and %s", p->where, p->section, e.message);
        return;
    }
    arena_init(&a, "parameters");
    /* "[section] key is missing" is not a fault of an unused section. */
    if (plugin_params(plugin, c->params, &a, &values, &e) && e.message[0] != '[') log_warn("%s (the section is unused)", e.message);
    arena_free(&a);
}

/* Warns about a command-line parameter of a plugin that was not chosen: the user probably forgot to
 * choose it. In a file such sections may be prepared for another choice. */
static void warn_override(const struct config *c, const struct config_param *p)
{
    const int32_t kind = config_kind_of_section(p->section);
    if (!kind || strcmp(p->where, "command line") || config_uses(c, p->section)) return;
    const char *name = strchr(p->section, '.') + 1;
    if (!config_kind_choice(c, kind)) {
        log_warn("%s: %s.%s has no effect because a run has no plugins of the kind %s; omit the key", p->where, p->section, p->key,
                 CONFIG_KINDS[kind].name);
        return;
    }
    log_warn("%s: %s.%s has no effect because plugin %s is unused; choose it with %s.%s, or omit the key", p->where, p->section,
             p->key, name, CONFIG_KINDS[kind].name, CONFIG_KINDS[kind].key);
}

/* Warns about unbounded advantages with unbounded steps: AdamW's second moment remembers 1e8 for
 * thousands of steps. */
static void warn_unbounded(const struct config *c)
{
    double gamma = 0.9, clip = 0;
    char section[128];
    if (c->train.max_grad_norm > 0 || (strcmp(c->estimator.plugin, "bv_blend") && strcmp(c->estimator.plugin, "sigma_hist")))
        return;
    snprintf(section, sizeof section, "estimator.%s", c->estimator.plugin);
    for (const struct config_param *p = c->params; p; p = p->next) {
        if (strcmp(p->section, section)) continue;
        if (!strcmp(p->key, "gamma")) str_to_double(p->value, &gamma, NULL);
        if (!strcmp(p->key, "advantage_clip")) str_to_double(p->value, &clip, NULL);
    }
    if (gamma > 0.5 && clip == 0)
        log_warn(
            "%s.gamma = %g with train.max_grad_norm = 0: advantages are unbounded, and a single one can stall learning for the rest of the run; set train.max_grad_norm = 1, or %s.advantage_clip = 5",
            section, gamma, section);
}

/* Warns about a bound that the user set but the chosen objective does not read. A default bound
 * gives no warning. */
static void warn_bounds(const struct config *c)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct plugin *p;
    struct config plain;
    struct err e = {0};
    if (plugin_open(c->objective.plugin, TARE_KIND_OBJECTIVE, &search, &p, &e) || config_load(&plain, NULL, NULL, 0, &e)) return;
    const struct {
        const char *key;
        uint32_t flag;
        bool set;
    } bounds[] = {{"clip", TARE_OBJECTIVE_OWN_CLIP, c->loss.clip < plain.loss.clip || c->loss.clip > plain.loss.clip},
                  {"clip_high", TARE_OBJECTIVE_OWN_CLIP, c->loss.clip_high > 0},
                  {"dual_clip", TARE_OBJECTIVE_OWN_DUAL_CLIP, c->loss.dual_clip > 0}};
    for (int i = 0; i < 3; i++)
        if (bounds[i].set && (p->objective->flags & bounds[i].flag))
            log_warn(
                "%s: loss.%s has no effect because objective %s does not read it; its own bounds are in [objective.%s] (`tare plugin info %s`)",
                config_where(c, "loss", bounds[i].key), bounds[i].key, p->desc.name, p->desc.name, p->desc.name);
    config_free(&plain);
}

static double checkpoint_bytes(const struct config *c, const struct model_shape *s)
{
    const double C = (double)s->hidden, D = (double)(s->heads * s->head_dim), J = (double)(s->kv_heads * s->head_dim);
    const double layer = 2 * C * D + 2 * C * J + 3 * C * (double)s->intermediate;
    const double n = (double)s->layers * layer + C * (double)s->vocab * (s->tied ? 1 : 2);
    /* 12: master weights and moments; 8: moments */
    const double more = (c->process_reward.implicit ? 12 : 0) + (c->relift.rows ? 8 : 0);
    return n * (4 + (c->checkpoint.optimizer ? 12 + more : 0));
}

/* Uses keep + 1 because the oldest checkpoint is removed after the newest is complete. */
static void warn_disk(const struct config *c)
{
    struct model_shape shape;
    struct statvfs disk;
    struct err e = {0};
    char folder[FS_PATH], a[32], b[32];
    if (plan_shape(c, 0, &shape, &e) || fs_join(folder, "", c->run.dir, &e)) return;
    while (!fs_exists(folder) && strcmp(folder, ".") && strcmp(folder, "/")) {
        char parent[FS_PATH];
        fs_dirname(parent, folder);
        memcpy(folder, parent, sizeof folder);
    }
    if (statvfs(folder, &disk)) return;
    const int64_t saved = (c->checkpoint.every ? c->train.steps / c->checkpoint.every : 0) + c->checkpoint.last;
    const int64_t kept = c->checkpoint.keep && c->checkpoint.keep + 1 < saved ? c->checkpoint.keep + 1 : saved;
    const double each = checkpoint_bytes(c, &shape), free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    if (each * (double)kept > free_bytes)
        log_warn(
            "%lld checkpoints of about %s each do not fit: %s are free for %s; set checkpoint.keep (now %lld), checkpoint.every (now %lld) or checkpoint.optimizer",
            (long long)kept, str_amount(a, each, "B"), str_amount(b, free_bytes, "B"), c->run.dir, (long long)c->checkpoint.keep,
            (long long)c->checkpoint.every);
}

/* Prompt and completion share the context, so longer completions would be truncated silently. */
static void warn_context(const struct config *c)
{
    struct model_shape shape;
    struct err e = {0};
    if (c->rollout.max_new_tokens <= 0 || plan_shape(c, 0, &shape, &e) || c->rollout.max_new_tokens < shape.max_position) return;
    log_warn(
        "rollout.max_new_tokens = %lld, but %s has a context of %lld tokens for prompt and completion together, and completions are truncated there; set a smaller rollout.max_new_tokens",
        (long long)c->rollout.max_new_tokens, c->model.path, (long long)shape.max_position);
}

static void warn_template(const struct config *c)
{
    if (c->data.prompt == PROMPT_PLAIN && *c->data.chat_template)
        log_warn("%s: data.chat_template has no effect with data.prompt = plain", config_where(c, "data", "chat_template"));
}

/* A feature that is off, whose other keys therefore have no effect. */
struct idle {
    const char *section, *key; /* section of the feature, and the key that enables it */
    struct str keys;
};

static tare_status take_idle(void *ctx, const struct config_difference *d, struct err *e)
{
    struct idle *i = ctx;
    if (strcmp(d->section, i->section) || !strcmp(d->key, i->key)) return TARE_OK;
    return str_addf(&i->keys, e, "%s%s.%s", i->keys.size ? ", " : "", d->section, d->key);
}

static void warn_idle(const struct config *c, const char *section, const char *key)
{
    struct config plain;
    struct err e = {0};
    struct idle i = {.section = section, .key = key};
    if (config_load(&plain, NULL, NULL, 0, &e)) return;
    if (!config_compare(&plain, c, take_idle, &i, &e) && i.keys.size)
        log_warn("%s: no effect while %s.%s is off", i.keys.data, section, key);
    str_free(&i.keys);
    config_free(&plain);
}

/* Limits for worker processes have no effect with threads. */
static tare_status take_of_workers(void *ctx, const struct config_difference *d, struct err *e)
{
    static const char *const KEYS[] = {"confine", "network", "memory", "open_files", "file_size"};
    struct str *keys = ctx;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS && !strcmp(d->section, "verifier"); i++)
        if (!strcmp(d->key, KEYS[i])) TRY(str_addf(keys, e, "%sverifier.%s", keys->size ? ", " : "", d->key));
    return TARE_OK;
}

static void warn_workers(const struct config *c)
{
    OWNED(str_free) struct str keys = {0};
    struct config plain;
    struct err e = {0};
    if (c->verifier.isolate == ISOLATE_PROCESS || config_load(&plain, NULL, NULL, 0, &e)) return;
    if (!config_compare(&plain, c, take_of_workers, &keys, &e) && keys.size)
        log_warn("%s: no effect with verifier.isolate = thread: a thread has all permissions of tare", keys.data);
    config_free(&plain);
}

void preflight_warn(const struct config *c)
{
    preflight_warn_signal(c);
    warn_workers(c);
    if (!c->relift.rows) warn_idle(c, "relift", "rows");
    if (!c->process_reward.implicit) warn_idle(c, "process_reward", "implicit");
    for (const struct config_param *p = c->params; p; p = p->next) {
        warn_section(c, p);
        warn_override(c, p);
    }
    warn_unbounded(c);
    warn_bounds(c);
    warn_context(c);
    warn_template(c);
    warn_disk(c);
}

tare_status preflight_make(const struct config *c, struct err *e)
{
    preflight_warn(c);
    if (warm_start_due(c)) TRY(preflight(c, NULL, e));
    return warm_start(c, e);
}
