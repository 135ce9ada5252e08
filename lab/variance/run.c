#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/signals.h"
#include "lab/variance/draw.h"
#include "lab/variance/measure.h"
#include "lab/variance/print.h"

#include <string.h>
#include <time.h>

const struct variance_options VARIANCE_DEFAULTS = {.prompts = 64,
                                                   .rollouts = 256,
                                                   .groups = 128,
                                                   .warm = 32,
                                                   .width = 2048,
                                                   .bootstrap = 1000,
                                                   .sizes = {2, 4, 8, 16, 32, 64},
                                                   .n_sizes = 6};

struct job { /* measures one result */
    struct variance_case c;
    const struct resamples *resamples;
    struct result *result;
    struct err error;
    tare_status status;
};

struct checkpoint_run {
    struct checkpoint_at at;
    struct config config; /* the caller's, with the checkpoint as its model */
    struct variance_pool pool;
    struct method_place place;
    struct result *result;
    struct job *job;
    int64_t n, batch;
};

struct variance {
    const struct config *config;
    struct variance_options o;
    struct arena arena;
    struct methods methods;
    struct checkpoint_run run[VARIANCE_FROM];
    int64_t n_runs, reference; /* reference: index in methods */
    struct resamples resamples;
    struct str csv, lines, table;
};

/* ---------------------------------------------------------------- options */

static tare_status check_method_sizes(struct variance_options *o, bool given, struct err *e)
{
    const int64_t most = o->rollouts / 2;
    int64_t n = 0;
    for (int64_t k = 0; k < o->n_sizes; k++) {
        if (o->sizes[k] <= most)
            o->sizes[n++] = o->sizes[k];
        else if (given)
            FAIL(e, TARE_E_CONFIG,
                 "--group-sizes: %lld must be at most %lld, half of --rollouts %lld: groups are drawn from halves of the pool",
                 (long long)o->sizes[k], (long long)most, (long long)o->rollouts);
    }
    o->n_sizes = n;
    return TARE_OK;
}

/* Set the default batch: the largest number up to rollout.prompts that divides P. */
static tare_status settle_batch(const struct config *c, struct variance_options *o, struct err *e)
{
    if (o->batch && o->prompts % o->batch)
        FAIL(e, TARE_E_CONFIG, "--batch %lld: must divide --prompts %lld", (long long)o->batch, (long long)o->prompts);
    for (o->batch = o->batch ? o->batch : c->rollout.prompts; o->batch > o->prompts || o->prompts % o->batch; o->batch--) continue;
    return TARE_OK;
}

static tare_status check_options(struct variance *v, struct err *e)
{
    struct variance_options *o = &v->o;
    const struct plugin_search search = {.folder = v->config->run.plugins};
    const struct plugin *named;
    const bool given = memcmp(o->sizes, VARIANCE_DEFAULTS.sizes, sizeof o->sizes) != 0;
    if (!o->n_from) {
        if (!*v->config->model.path)
            FAIL(e, TARE_E_CONFIG, "missing model.path; name a checkpoint with --from, or model.path=FOLDER");
        o->from[o->n_from++] = v->config->model.path;
        log_info("no --from: measuring the configuration's model, model.path = %s", v->config->model.path);
    }
    TRY(check_method_sizes(o, given, e));
    TRY(settle_batch(v->config, o, e));
    /* refuse a misspelt estimator here */
    TRY(err_as_config(plugin_open(v->config->estimator.plugin, TARE_KIND_ESTIMATOR, &search, &named, e), e));
    TRY(variance_methods_find(v->config, o, &v->arena, &v->methods, e));
    for (int64_t i = v->methods.n; i-- > 0;)
        if (!strcmp(v->methods.method[i].label, "grpo")) v->reference = i;
    return TARE_OK;
}

static tare_status check_need(struct variance *v, struct str *out, struct err *e)
{
    struct variance_need n;
    char a[32], b[32];
    const struct checkpoint_run *r = &v->run[0];
    TRY(variance_need(&r->config, &v->o, &n, e));
    TRY(print_need(&n, &v->o, r->at.given, out, e));
    if (n.memory && n.total > n.memory)
        FAIL(e, TARE_E_NOMEM,
             "%lld prompts x %lld rollouts need %s, and this machine has %s; lower --width, --rollouts or --prompts",
             (long long)v->o.prompts, (long long)v->o.rollouts, str_amount(a, (double)n.total, "B"),
             str_amount(b, (double)n.memory, "B"));
    return TARE_OK;
}

/* ---------------------------------------------------------------- one checkpoint */

static void measure_job(void *arg, int64_t task, int thread)
{
    struct job *j = (struct job *)arg + task;
    struct sums sums;
    struct arena a;
    (void)thread;
    arena_init(&a, "sums of an estimator");
    j->status = measure(&j->c, &a, &sums, &j->error);
    if (!j->status) j->status = variance_figures_of(&j->c, &sums, j->resamples, &a, j->result, &j->error);
    arena_free(&a);
}

/* Return true if a method is measured in this state. */
static bool has_state(const struct variance *v, const struct checkpoint_run *r, const struct method *m, enum state s)
{
    if (!m->has_state) return s == STATE_NONE;
    return s == STATE_COLD || (s == STATE_SAVED && method_is_saved(m, &r->place)) || (s == STATE_WARMED && v->o.warm);
}

static tare_status list_jobs(struct variance *v, struct checkpoint_run *r, struct err *e)
{
    const int64_t most = v->o.n_sizes * v->methods.n * STATES;
    TRY(arena_new(&v->arena, &r->result, most, e));
    TRY(arena_new(&v->arena, &r->job, most, e));
    for (int64_t k = 0; k < v->o.n_sizes; k++)
        for (int64_t i = 0; i < v->methods.n; i++)
            for (int s = 0; s < STATES; s++) {
                const struct method *m = &v->methods.method[i];
                struct result *x = &r->result[r->n];
                if (!has_state(v, r, m, (enum state)s)) continue;
                *x = (struct result){.method = m, .state = (enum state)s, .size = v->o.sizes[k]};
                TRY(arena_new(&v->arena, &x->star, v->resamples.n, e));
                r->job[r->n++] = (struct job){.c = {.pool = &r->pool,
                                                    .method = m,
                                                    .place = &r->place,
                                                    .state = x->state,
                                                    .size = x->size,
                                                    .batch = v->o.batch,
                                                    .rounds = v->o.groups / 2,
                                                    .warm = v->o.warm,
                                                    .seed = (uint64_t)r->config.run.seed},
                                              .resamples = &v->resamples,
                                              .result = x};
            }
    return TARE_OK;
}

/* Note in its row why an estimator of the default list failed (a parameter that does not suit the
 * group size), then compare with the reference. Estimators that the user named fail the command. */
static tare_status collect_results(const struct variance *v, struct checkpoint_run *r, struct err *e)
{
    for (int64_t i = 0; i < r->n; i++) {
        struct job *j = &r->job[i];
        if (!j->status) continue;
        if (v->o.n_estimators || j->status == TARE_E_CANCELLED || j->status == TARE_E_NOMEM) {
            *e = j->error;
            return j->status;
        }
        snprintf(j->result->why, sizeof j->result->why, "%.150s", j->error.message);
    }
    for (int64_t i = 0; i < r->n; i++) {
        const struct result *reference = NULL;
        for (int64_t k = r->n; k-- > 0;)
            if (r->result[k].method == &v->methods.method[v->reference] && r->result[k].size == r->result[i].size)
                reference = &r->result[k];
        TRY(variance_figures_ahead(&r->result[i], reference, v->resamples.n, e));
    }
    return TARE_OK;
}

static bool may_run_together(const struct methods *m)
{
    for (int64_t i = 0; i < m->n; i++)
        if (m->method[i].plugin && m->method[i].plugin->desc.calls == TARE_CALLS_SERIAL) return false;
    return true;
}

static tare_status run_jobs(struct variance *v, struct checkpoint_run *r, struct err *e)
{
    struct pool *pool = NULL;
    const double began = clock_seconds();
    TRY(list_jobs(v, r, e));
    if (may_run_together(&v->methods)) {
        const tare_status status = pool_new((int)r->config.run.threads, &pool, e);
        if (status) return err_prefix(e, "run.threads = %lld", (long long)r->config.run.threads);
    }
    pool_run(pool, r->n, measure_job, r->job);
    pool_free(pool);
    log_info("%s: %lld results in %.1f s", r->at.given, (long long)r->n, clock_seconds() - began);
    return collect_results(v, r, e);
}

static struct report_of report_of(const struct variance *v, const struct checkpoint_run *r)
{
    return (struct report_of){.at = &r->at,
                              .options = &v->o,
                              .pool = &r->pool,
                              .methods = &v->methods,
                              .result = r->result,
                              .n = r->n,
                              .batch = v->o.batch,
                              .reference = v->methods.method[v->reference].label};
}

static tare_status measure_checkpoint(struct variance *v, struct checkpoint_run *r, struct err *e)
{
    const clock_t began = clock();
    TRY(variance_draw(&r->config, &v->o, r->at.step, &r->pool, e));
    r->place = (struct method_place){.config = &r->config,
                                     .n_clusters = r->pool.batch.n_clusters,
                                     .saved = r->at.estimator.data,
                                     .n_saved = r->at.estimator.size,
                                     .where = r->at.folder};
    TRY(run_jobs(v, r, e));
    const struct report_of report = report_of(v, r);
    TRY(print_table(&report, &v->table, e));
    TRY(print_lines(&report, &v->lines, e));
    TRY(print_csv(&report, &v->csv, e));
    /* the figures need the results of all checkpoints, but not the pool */
    pool_close(&r->pool);
    log_info("%s: %.1f s of processor time", r->at.given, (double)(clock() - began) / CLOCKS_PER_SEC);
    return TARE_OK;
}

/* ---------------------------------------------------------------- all checkpoints */

static tare_status write_result(const char *dir, const char *name, const struct str *text, struct err *e)
{
    char path[FS_PATH];
    TRY(fs_join(path, dir, name, e));
    return fs_write_atomic(path, text->data ? text->data : "", text->size, e);
}

static tare_status write_files(struct variance *v, struct err *e)
{
    struct report_of reports[VARIANCE_FROM];
    if (!v->o.out) return TARE_OK;
    for (int64_t i = 0; i < v->n_runs; i++) reports[i] = report_of(v, &v->run[i]);
    TRY(write_result(v->o.out, "variance.md", &v->table, e));
    TRY(write_result(v->o.out, "variance.jsonl", &v->lines, e));
    TRY(write_result(v->o.out, "variance.csv", &v->csv, e));
    return variance_write_figures(reports, v->n_runs, v->o.out, e);
}

/* Find all checkpoints first, so that errors come before hours of work. */
static tare_status find_checkpoints(struct variance *v, struct err *e)
{
    for (int64_t i = 0; i < v->o.n_from; i++) {
        struct checkpoint_run *r = &v->run[v->n_runs++];
        TRY(variance_find_checkpoint(v->o.from[i], &r->at, e));
        r->config = *v->config;
        r->config.model.path = r->at.folder;
    }
    return TARE_OK;
}

static tare_status measure_checkpoints(struct variance *v, struct str *out, struct err *e)
{
    OWNED(str_free) struct str need = {0};
    TRY(check_options(v, e));
    TRY(find_checkpoints(v, e));
    TRY(check_need(v, &need, e));
    if (v->o.plan) return str_add(out, need.data, need.size, e);
    log_info("%.*s", (int)(need.size - 1), need.data);
    if (v->o.out) TRY(fs_mkdirs(v->o.out, e));
    TRY(variance_resamples_new(v->o.bootstrap, v->o.prompts, (uint64_t)v->config->run.seed, &v->arena, &v->resamples, e));
    for (int64_t i = 0; i < v->n_runs; i++) TRY(measure_checkpoint(v, &v->run[i], e));
    TRY(write_files(v, e));
    const struct str *text = v->o.json ? &v->lines : &v->table;
    return str_add(out, text->data, text->size, e);
}

tare_status variance_run(const struct config *c, const struct variance_options *o, struct str *out, struct err *e)
{
    struct variance *v;
    TRY(mem_new((int64_t)sizeof *v, (void **)&v, e));
    v->config = c;
    v->o = *o;
    arena_init(&v->arena, "variance");
    signals_catch();
    const tare_status status = measure_checkpoints(v, out, e);
    for (int64_t i = 0; i < v->n_runs; i++) {
        if (v->run[i].pool.arena.name) pool_close(&v->run[i].pool);
        variance_close_checkpoint(&v->run[i].at);
    }
    str_free(&v->csv);
    str_free(&v->lines);
    str_free(&v->table);
    arena_free(&v->arena);
    mem_free(v);
    return status;
}
