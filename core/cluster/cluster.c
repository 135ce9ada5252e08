#include "cluster/cluster.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "cluster/codebook.h"
#include "cluster/encode.h"
#include "cluster/match.h"

#include <string.h>

/* ---------------------------------------------------------------- opening plugins */

/* Returns the setting of a parameter by its key or an old one; NULL: none. */
static const struct config_param *find_setting(const struct config_param *settings, const struct plugin *p, const tare_param *param)
{
    char section[128];
    snprintf(section, sizeof section, "%s.%s", plugin_kind_name(p->desc.kind), p->desc.name);
    for (const struct config_param *s = settings; s; s = s->next) {
        if (strcmp(s->section, section)) continue;
        if (!strcmp(s->key, param->key)) return s;
        for (const char *const *old = param->old_keys; old && *old; old++)
            if (!strcmp(s->key, *old)) return s;
    }
    return NULL;
}

/* Adds the path of a codebook's file in the run's folder, unless a path is set. */
static tare_status default_path(const struct config *config, const struct plugin *p, struct arena *a,
                                const struct config_param **settings, struct err *e)
{
    const int64_t i = match_run_file(p);
    if (i < 0 || find_setting(*settings, p, &p->params[i])) return TARE_OK;
    char path[FS_PATH], assignment[FS_PATH + 128];
    TRY(fs_join(path, config->run.dir, "codebook.safetensors", e));
    snprintf(assignment, sizeof assignment, "%s=%s", p->params[i].key, path);
    const char *const one = assignment;
    return plugin_settings(p, (struct plugin_words){&one, 1}, *settings, a, settings, e);
}

/* Opens the codebook's plugin and checks its parameters. *path: the run's own file, or NULL. */
static tare_status codebook_params(const struct config *config, struct arena *a, const struct plugin **p, const tare_value **values,
                                   const char **path, struct err *e)
{
    const struct plugin_search search = {.folder = config->run.plugins};
    const struct config_param *settings = config->params;
    TRY(plugin_open(config->codebook.plugin, TARE_KIND_CODEBOOK, &search, p, e));
    TRY(default_path(config, *p, a, &settings, e));
    TRY(plugin_params(*p, settings, a, values, e));
    const int64_t i = match_run_file(*p);
    *path = i < 0 ? NULL : (*values)[i].s;
    return TARE_OK;
}

tare_status cluster_given_file(const struct config *config, const char **path, struct err *e)
{
    const struct plugin_search search = {.folder = config->run.plugins};
    const struct plugin *p;
    *path = NULL;
    if (!config_has_codebook(config)) return TARE_OK;
    TRY(plugin_open(config->codebook.plugin, TARE_KIND_CODEBOOK, &search, &p, e));
    const int64_t i = match_run_file(p);
    const struct config_param *set = i < 0 ? NULL : find_setting(config->params, p, &p->params[i]);
    if (set) *path = set->value;
    return TARE_OK;
}

static tare_status open_encoder(const struct config *config, const struct plugin_search *search, const struct plugin_env *env,
                                struct cluster *c, struct err *e)
{
    const struct plugin *p;
    const tare_value *values;
    TRY(plugin_open(config->encoder.plugin, TARE_KIND_ENCODER, search, &p, e));
    TRY(plugin_params(p, config->params, &c->arena, &values, e));
    return plugin_create(p, values, 0, env, &c->encoder, e);
}

/* ---------------------------------------------------------------- training a missing codebook */

static tare_status collect_questions(const struct dataset *data, struct arena *a, tare_text **out, struct err *e)
{
    TRY(arena_new(a, out, data->n, e));
    for (int64_t i = 0; i < data->n; i++) (*out)[i] = data->rows[i].question;
    return TARE_OK;
}

static tare_status train_missing(const struct config *config, const char *path, struct cluster *c, struct err *e)
{
    const struct codebook_config *o = &config->codebook;
    tare_text *texts;
    const int64_t n = c->data->n;
    const char *name = c->data->name;
    TRY(collect_questions(c->data, &c->arena, &texts, e));
    const struct kmeans_options options = {.k = o->clusters,
                                           .restarts = o->restarts,
                                           .iterations = o->iterations,
                                           .swaps = o->restarts,
                                           .seed = (uint64_t)o->seed,
                                           .pool = c->pool};
    OWNED(kmeans_result_free) struct kmeans_result r = {0};
    TRY(codebook_train_texts(path, &(struct encoding){c->encoder, texts, n, c->pool}, name, &options, &r, e));
    log_info("codebook %s: %lld clusters of %lld questions (%s) with encoder %s, inertia %.6g, %lld iterations, seed %lld", path,
             (long long)r.k, (long long)n, name, c->encoder->plugin->desc.name, r.inertia, (long long)r.iterations,
             (long long)o->seed);
    c->trained = true;
    return TARE_OK;
}

/* Trains a missing codebook on rank 0 while the other ranks wait for its file. A rank that fails
 * ends the job. */
static tare_status ensure_codebook(const struct config *config, const char *path, struct comm *comm, struct cluster *c,
                                   struct err *e)
{
    if (!comm || comm->rank == 0) {
        if (!fs_exists(path)) TRY(train_missing(config, path, c, e));
    }
    return comm && comm->size > 1 ? comm->barrier(comm, e) : TARE_OK;
}

static tare_status open_codebook(const struct config *config, const struct plugin_search *search, const struct cluster_options *o,
                                 struct cluster *c, struct err *e)
{
    const struct plugin *p;
    const tare_value *values;
    const char *path;
    TRY(codebook_params(config, &c->arena, &p, &values, &path, e));
    if (path) { /* a codebook with a file needs embeddings */
        TRY(open_encoder(config, search, o->env, c, e));
        TRY(ensure_codebook(config, path, o->comm, c, e));
    }
    TRY(plugin_create(p, values, 0, o->env, &c->codebook, e));
    if (!c->encoder && c->codebook->sizes.dim) TRY(open_encoder(config, search, o->env, c, e));
    return match_encoder(c->codebook, c->encoder, path ? path : p->desc.name, e);
}

/* ---------------------------------------------------------------- assignment */

/* rows: [n] pointers; cache: folder or NULL. */
static tare_status assign_rows(struct cluster *c, const struct row *const *rows, int64_t n, const char *cache, int32_t *cluster,
                               struct err *e)
{
    OWNED(mem_free_at) tare_text *texts = NULL;
    OWNED(mem_free_at) float *x = NULL;
    TRY(mem_new(n * (int64_t)sizeof *texts, (void **)&texts, e));
    const int64_t d = c->codebook->sizes.dim;
    if (d) {
        for (int64_t i = 0; i < n; i++) texts[i] = rows[i]->question;
        TRY(mem_new(n * d * (int64_t)sizeof *x, (void **)&x, e));
        TRY(encode_cached(&(struct encoding){c->encoder, texts, n, c->pool}, cache, x, &c->cached, e));
    }
    for (int64_t i = 0; i < n; i++) texts[i] = rows[i]->json;
    return plugin_assign(c->codebook, &(struct plugin_assignment){x, texts, n, cluster, NULL}, e);
}

static tare_status fit_rows(struct cluster *c, struct err *e)
{
    OWNED(mem_free_at) tare_text *texts = NULL;
    if (!c->codebook->plugin->codebook->fit) return TARE_OK;
    TRY(mem_new(c->data->n * (int64_t)sizeof *texts, (void **)&texts, e));
    for (int64_t i = 0; i < c->data->n; i++) texts[i] = c->data->rows[i].json;
    return plugin_fit(c->codebook, texts, c->data->n, e);
}

static tare_status assign_data(const struct config *config, struct comm *comm, struct cluster *c, struct err *e)
{
    const struct row **rows;
    char cache[FS_PATH];
    TRY(fs_join(cache, config->run.dir, "cache", e));
    TRY(fit_rows(c, e));
    c->n_clusters = c->codebook->sizes.clusters;
    if (c->n_clusters < 1 || c->n_clusters > INT32_MAX)
        FAIL(e, TARE_E_PLUGIN, "codebook %s: invalid number of clusters: %lld", c->codebook->plugin->desc.name,
             (long long)c->n_clusters);
    TRY(arena_new(&c->arena, &c->of_row, c->data->n, e));
    TRY(arena_new(&c->arena, &c->rows, c->n_clusters, e));
    TRY(arena_new(&c->arena, &c->used, c->n_clusters, e));
    TRY(arena_new(&c->arena, &c->before, c->n_clusters, e));
    TRY(mem_new(c->data->n * (int64_t)sizeof *rows, (void **)&rows, e));
    for (int64_t i = 0; i < c->data->n; i++) rows[i] = &c->data->rows[i];
    const tare_status status = assign_rows(c, rows, c->data->n, comm && comm->rank ? NULL : cache, c->of_row, e);
    mem_free(rows);
    TRY(status);
    for (int64_t i = 0; i < c->data->n; i++) {
        if (c->of_row[i] < 0)
            c->unassigned++;
        else
            c->rows[c->of_row[i]]++;
    }
    return TARE_OK;
}

static void warn_unused(const struct cluster *c)
{
    int64_t empty = 0; /* clusters without a row of the data set */
    for (int64_t k = 0; k < c->n_clusters; k++) empty += !c->rows[k];
    if (empty)
        log_warn("%lld of %lld clusters have no row of %s and will not be used", (long long)empty, (long long)c->n_clusters,
                 c->data->name);
    if (c->unassigned)
        log_warn("%lld of %lld rows of %s are in no cluster", (long long)c->unassigned, (long long)c->data->n, c->data->name);
}

tare_status cluster_open(const struct config *config, const struct dataset *data, const struct cluster_options *o,
                         struct cluster *out, struct err *e)
{
    const double start = clock_seconds();
    *out = (struct cluster){.data = data, .pool = o->pool};
    arena_init(&out->arena, "clusters");
    if (!config_has_codebook(config)) return TARE_OK;
    const struct plugin_search search = {.folder = config->run.plugins};
    tare_status status = open_codebook(config, &search, o, out, e);
    if (!status) status = assign_data(config, o->comm, out, e);
    if (status) {
        cluster_close(out);
        return status;
    }
    out->seconds = clock_seconds() - start;
    warn_unused(out);
    return TARE_OK;
}

static tare_status check_codebook(const struct config *config, const struct plugin_env *env, struct cluster *c, struct err *e)
{
    const struct plugin_search search = {.folder = config->run.plugins};
    const struct plugin *p, *encoder;
    const tare_value *values, *unused;
    const char *path;
    TRY(codebook_params(config, &c->arena, &p, &values, &path, e));
    if (path) {
        TRY(plugin_open(config->encoder.plugin, TARE_KIND_ENCODER, &search, &encoder, e));
        TRY(plugin_params(encoder, config->params, &c->arena, &unused, e));
        c->n_clusters = config->codebook.clusters;
        if (!fs_exists(path)) return TARE_OK;
    }
    TRY(plugin_create(p, values, 0, env, &c->codebook, e));
    TRY(fit_rows(c, e));
    c->n_clusters = c->codebook->sizes.clusters;
    return TARE_OK;
}

tare_status cluster_check(const struct config *config, const struct dataset *data, const struct plugin_env *env,
                          int64_t *n_clusters, struct err *e)
{
    OWNED(cluster_close) struct cluster c = {.data = data};
    *n_clusters = 0;
    if (!config_has_codebook(config)) return TARE_OK;
    arena_init(&c.arena, "clusters");
    TRY(check_codebook(config, env, &c, e));
    *n_clusters = c.n_clusters;
    return TARE_OK;
}

tare_status cluster_assign(struct cluster *c, struct batch *b, struct arena *arena, struct err *e)
{
    b->n_clusters = c->n_clusters;
    TRY(arena_new(arena, &b->cluster, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++) b->cluster[m] = -1;
    if (!c->codebook) return TARE_OK;
    for (int64_t m = 0; m < b->n_groups; m++) {
        const struct row *row = b->row[m];
        if (row >= c->data->rows && row < c->data->rows + c->data->n) {
            b->cluster[m] = c->of_row[row - c->data->rows];
        } else {
            TRY(assign_rows(c, &row, 1, NULL, &b->cluster[m], e));
        }
        if (b->cluster[m] >= 0) c->used[b->cluster[m]]++;
    }
    return TARE_OK;
}

void cluster_begin(struct cluster *c)
{
    if (c->n_clusters) memcpy(c->before, c->used, (size_t)c->n_clusters * sizeof *c->used);
}

void cluster_forget(struct cluster *c)
{
    if (c->n_clusters) memcpy(c->used, c->before, (size_t)c->n_clusters * sizeof *c->used);
}

tare_status cluster_name(const struct cluster *c, int64_t k, struct str *out, struct err *e)
{
    return c->codebook ? plugin_cluster_name(c->codebook, k, out, e) : TARE_OK;
}

void cluster_close(struct cluster *c)
{
    plugin_destroy(c->codebook);
    plugin_destroy(c->encoder);
    arena_free(&c->arena);
    *c = (struct cluster){0};
}
