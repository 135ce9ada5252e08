#include "lab/variance/draw.h"
#include "lab/variance/adam.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "batch/select.h"
#include "cluster/cluster.h"
#include "collect/collector.h"
#include "engine/embed_service.h"
#include "engine/engine.h"
#include "lab/variance/sketch.h"
#include "update/score.h"

#include <string.h>

struct drawing {
    const struct config *config;
    const struct variance_options *options;
    struct variance_pool *pool;
    struct engine engine;
    struct cluster cluster;
    struct embed_service *embed;
    struct sketch sketch;
    struct collector collector;
    struct arena arena;
    float *host;             /* host copy of a device's gradient */
    float *factors, *scaled; /* factors of the metric; a scaled gradient. NULL: the plain metric */
    int64_t *rows;
    /* finished rollouts; those with a completion that their prompt had before */
    int64_t done, repeated;
    double began, logged;
};

static int32_t on_cancelled(void *ctx)
{
    (void)ctx;
    return *signals_flag();
}

static const void *on_extension(void *ctx, const char *id)
{
    const struct drawing *d = ctx;
    return !strcmp(id, "tare.embed/1") && d->embed ? embed_service_extension(d->embed) : NULL;
}

/* ---------------------------------------------------------------- opening */

static tare_status open_parts(struct drawing *d, struct err *e)
{
    const struct config *c = d->config;
    struct engine *g = &d->engine;
    g->env = (struct plugin_env){.seed = (uint64_t)c->run.seed, .ctx = d, .cancelled = on_cancelled, .extension = on_extension};
    TRY(engine_open(g, ENGINE_TRAIN | ENGINE_ANSWERS | ENGINE_VERIFIER, e));
    if (g->train.n < d->options->prompts)
        FAIL(e, TARE_E_CONFIG, "--prompts %lld: must be at most the rows of data.train = %s, which has %lld",
             (long long)d->options->prompts, c->data.train, (long long)g->train.n);
    TRY(engine_open(g, ENGINE_MODEL | ENGINE_TRAINS | ENGINE_PROMPTS | ENGINE_SAMPLING, e));
    TRY(engine_check_prompts(g, &g->train, true, NULL, e));
    TRY(embed_service_new(g->model, g->tokenizer, &d->embed, e));
    TRY(cluster_open(c, &g->train, &(struct cluster_options){.env = &g->env, .pool = g->pool}, &d->cluster, e));
    TRY(engine_open(g, ENGINE_SAMPLER, e));
    TRY(engine_open_trainer(g, c->rollout.temperature, 1, e));
    if (d->options->adam) {
        TRY(adam_factors(g, c->model.path, &d->factors, e));
        TRY(mem_new(g->model->n_own * (int64_t)sizeof *d->scaled, (void **)&d->scaled, e));
    }
    return sketch_new(g->model->n_own, d->options->width, (uint64_t)c->run.seed, &d->sketch, e);
}

static tare_status open_pool(struct drawing *d, struct err *e)
{
    const struct variance_options *o = d->options;
    struct variance_pool *p = d->pool;
    const struct config *c = d->config;
    const int64_t n = o->prompts * o->rollouts;
    p->width = d->sketch.width;
    p->sketched = o->width;
    p->aggregation = c->loss.aggregation;
    p->length = (double)(c->loss.aggregation_length ? c->loss.aggregation_length : c->rollout.max_new_tokens);
    TRY(model_host_alloc(d->engine.model, d->sketch.n * (int64_t)sizeof(float), (void **)&d->host, e));
    TRY(mem_new(n * (int64_t)sizeof *p->square, (void **)&p->square, e));
    return mem_new(n * p->width * (int64_t)sizeof *p->vector, (void **)&p->vector, e);
}

/* Choose P rows of the data without replacement. */
static tare_status choose_rows(struct drawing *d, struct err *e)
{
    const int64_t n = d->engine.train.n;
    TRY(arena_new(&d->arena, &d->rows, n, e));
    for (int64_t i = 0; i < n; i++) d->rows[i] = i;
    rng_shuffle(rng_derive(rng_key((uint64_t)d->config->run.seed, RNG_VARIANCE), 4), d->rows, n);
    return TARE_OK;
}

/* ---------------------------------------------------------------- a chunk of the prompts */

static void open_collector(struct drawing *d)
{
    d->collector = engine_collector(&d->engine, &d->pool->arena);
    d->collector.config = d->config->rollout;
    d->collector.config.group_size = d->options->rollouts;
    d->collector.params = &d->engine.sampling;
    d->collector.cancelled = signals_flag();
    d->collector.columns = COLLECT_VERSION;
}

static tare_status sample_chunk(struct drawing *d, int64_t first, int64_t n, struct batch *b, struct err *e)
{
    const struct rng_key key = rng_derive(rng_key((uint64_t)d->config->run.seed, RNG_VARIANCE), 5);
    const struct chosen_rows chosen = {.data = &d->engine.train, .rows = d->rows + first, .n = n};
    *b = (struct batch){.step = d->pool->step + 1};
    TRY(collector_run(&d->collector, &(struct collect_request){.chosen = chosen, .key = key}, b, e));
    return cluster_assign(&d->cluster, b, &d->pool->arena, e);
}

/* Return an earlier rollout of the group with the same tokens, which has the same score function;
 * -1 if none. */
static int64_t find_repeat(const struct batch *b, int64_t group, int64_t i)
{
    const int64_t n = b->token_begin[i + 1] - b->token_begin[i];
    for (int64_t j = b->group_begin[group]; j < i; j++)
        if (b->token_begin[j + 1] - b->token_begin[j] == n &&
            !memcmp(b->ids + b->token_begin[j], b->ids + b->token_begin[i], (size_t)n * sizeof *b->ids))
            return j;
    return -1;
}

static void log_progress(struct drawing *d)
{
    const int64_t all = d->options->prompts * d->options->rollouts;
    const double now = clock_seconds(), took = now - d->began;
    if (now - d->logged < 10 || d->done == all) return;
    d->logged = now;
    log_info("%lld of %lld rollouts, about %.0f s remaining", (long long)d->done, (long long)all,
             took * (double)(all - d->done) / (double)d->done);
}

/* first: index of the batch's first rollout in the pool */
static tare_status compute_scores(struct drawing *d, const struct batch *b, int64_t first, struct err *e)
{
    struct variance_pool *p = d->pool;
    struct trainer *t = d->engine.trainer;
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            float *out = p->vector + (first + i) * p->width;
            const int64_t same = find_repeat(b, m, i), bytes = d->sketch.n * (int64_t)sizeof(float);
            d->done++;
            if (same >= 0) {
                d->repeated++;
                memcpy(out, p->vector + (first + same) * p->width, (size_t)p->width * sizeof *out);
                p->square[first + i] = p->square[first + same];
                continue;
            }
            if (*signals_flag()) FAIL(e, TARE_E_CANCELLED, "interrupted; nothing was written");
            TRY(update_score(t, b, m, i, pool_weight(p, b->token_begin[i + 1] - b->token_begin[i]), e));
            const float *x = model_from_backend(d->engine.model, d->host, t->grads.sum, bytes);
            TRY(model_finish(d->engine.model, e));
            for (int64_t j = 0; d->factors && j < d->sketch.n; j++) d->scaled[j] = d->factors[j] * x[j];
            sketch_of(&d->sketch, d->engine.pool, d->factors ? d->scaled : x, out, &p->square[first + i]);
            log_progress(d);
        }
    return TARE_OK;
}

/* ---------------------------------------------------------------- the whole pool */

enum { SAMPLED_AT_ONCE = 256 };

static tare_status draw_all(struct drawing *d, struct batch *parts, int64_t *n_parts, struct err *e)
{
    const int64_t prompts = d->options->prompts, n = d->options->rollouts;
    const int64_t chunk = n >= SAMPLED_AT_ONCE ? 1 : SAMPLED_AT_ONCE / n;
    open_collector(d);
    d->began = d->logged = clock_seconds();
    for (int64_t first = 0; first < prompts; first += chunk) {
        const int64_t k = prompts - first < chunk ? prompts - first : chunk;
        struct batch *b = &parts[(*n_parts)++];
        TRY(sample_chunk(d, first, k, b, e));
        TRY(compute_scores(d, b, first * n, e));
    }
    return TARE_OK;
}

/* Copy the clusters' names, which must outlive the data set. */
static tare_status name_clusters(struct drawing *d, struct err *e)
{
    const int64_t n = d->cluster.n_clusters < VARIANCE_CLUSTERS ? d->cluster.n_clusters : VARIANCE_CLUSTERS;
    const char **names;
    TRY(arena_new(&d->pool->arena, &names, n, e));
    for (int64_t k = 0; k < n; k++) {
        OWNED(str_free) struct str text = {0};
        char *copy;
        TRY(cluster_name(&d->cluster, k, &text, e));
        if (!text.size) TRY(str_addf(&text, e, "%lld", (long long)k));
        TRY(arena_strdup(&d->pool->arena, text.data, text.size, &copy, e));
        names[k] = copy;
    }
    d->pool->cluster_name = names;
    return TARE_OK;
}

/* Copy the rows, which belong to the data set that is closed next. */
static tare_status copy_rows(struct variance_pool *p, struct err *e)
{
    for (int64_t m = 0; m < p->batch.n_groups; m++) {
        char *copy;
        TRY(arena_strdup(&p->arena, p->batch.row_json[m].data, p->batch.row_json[m].size, &copy, e));
        p->batch.row_json[m].data = copy;
    }
    p->batch.row = NULL;
    p->batch.reason = NULL; /* belongs to the verifier, which is closed next */
    return TARE_OK;
}

static tare_status draw_into(struct drawing *d, struct err *e)
{
    struct batch *parts;
    int64_t n = 0;
    TRY(open_parts(d, e));
    TRY(open_pool(d, e));
    TRY(choose_rows(d, e));
    TRY(arena_new(&d->arena, &parts, d->options->prompts, e));
    TRY(draw_all(d, parts, &n, e));
    TRY(batch_concat((struct batch_parts){parts, n}, BATCH_ALL, &d->pool->arena, &d->pool->batch, e));
    TRY(copy_rows(d->pool, e));
    TRY(name_clusters(d, e));
    log_info("%lld rollouts in %.1f s; %lld repeated a completion of their prompt and reused its gradient", (long long)d->done,
             clock_seconds() - d->began, (long long)d->repeated);
    return pool_finish(d->pool, (uint64_t)d->config->run.seed, e);
}

tare_status variance_draw(const struct config *c, const struct variance_options *o, int64_t step, struct variance_pool *out,
                          struct err *e)
{
    struct drawing d = {.config = c, .options = o, .pool = out};
    *out = (struct variance_pool){.step = step};
    arena_init(&out->arena, "rollouts");
    arena_init(&d.arena, "drawing");
    engine_init(&d.engine, c, NULL);
    const tare_status status = draw_into(&d, e);
    mem_free(d.host);
    mem_free(d.factors);
    mem_free(d.scaled);
    sketch_free(&d.sketch);
    cluster_close(&d.cluster);
    embed_service_free(d.embed);
    engine_close(&d.engine);
    collector_free(&d.collector);
    arena_free(&d.arena);
    if (status) pool_close(out);
    return status;
}
