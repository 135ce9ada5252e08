/* Made-up pools of rollouts for tests: prompts with rewards of 0 and 1, and score functions that
 * depend on the reward. */
#ifndef TARE_TESTS_POOLS_H
#define TARE_TESTS_POOLS_H

#include "engine.h"

#include "base/rng.h"
#include "lab/variance/measure.h"

#include <math.h>
#include <tare/verifier.h>

struct made {
    int64_t prompts, rollouts, width;
    double low, high; /* probability of a reward of 1, over the prompts */
    double noise;     /* of the score functions */
    double loud;      /* |s| of a correct rollout over that of a wrong one */
    uint64_t seed;    /* of the random draws; directions are the same for all seeds */
};

/* s = +/- (1 - p or p) times a direction of the prompt, plus noise: E s = 0, and E R s = p (1 - p)
 * times the direction. */
static inline void make_rollout(const struct made *x, struct variance_pool *p, int64_t m, int64_t i)
{
    const struct rng_key way = rng_derive(rng_key(7, RNG_DATA), (uint64_t)m);
    const struct rng_key key = rng_derive(rng_derive(rng_key(x->seed, RNG_DATA), (uint64_t)m), (uint64_t)i);
    const double pass = x->prompts > 1 ? x->low + (x->high - x->low) * (double)m / (double)(x->prompts - 1) : x->low;
    const bool right = rng_uniform(key, 0, 0) < pass;
    float *s = p->vector + i * x->width;
    p->batch.reward[i] = right;
    p->batch.verdict[i] = right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
    for (int64_t d = 0; d < x->width; d++) {
        const double common = d == 0 ? 1 : 0.3 * rng_normal(way, (uint64_t)d);
        const double value = (right ? 1 - pass : -pass) * common + x->noise * rng_normal(key, (uint64_t)d + 1);
        s[d] = (float)(right ? x->loud * value : value);
        p->square[i] += (double)s[d] * (double)s[d];
    }
}

static inline struct variance_pool made_pool(struct made x)
{
    struct err e = {0};
    struct variance_pool p = {.width = x.width, .aggregation = AGGREGATE_SEQUENCE, .length = 1};
    const int64_t n = x.prompts * x.rollouts;
    arena_init(&p.arena, "made");
    p.batch = update_batch(&p.arena, x.prompts, n, x.prompts, n);
    p.batch.n_tokens = n;
    p.batch.n_components = 1;
    assert_ok(batch_alloc(&p.batch, BATCH_VERIFY | BATCH_CLUSTER, &p.arena, &e), &e);
    assert_ok(mem_new(n * (int64_t)sizeof *p.square, (void **)&p.square, &e), &e);
    assert_ok(mem_new(n * x.width * (int64_t)sizeof *p.vector, (void **)&p.vector, &e), &e);
    for (int64_t m = 0; m < x.prompts; m++) {
        p.batch.prompt_uid[m] = (uint64_t)m + 1;
        p.batch.prompt_begin[m + 1] = m + 1;
        p.batch.group_begin[m + 1] = (m + 1) * x.rollouts;
        for (int64_t i = m * x.rollouts; i < (m + 1) * x.rollouts; i++) {
            p.batch.token_begin[i + 1] = i + 1;
            p.batch.component_verdict[i] = 0;
            make_rollout(&x, &p, m, i);
            p.batch.component_verdict[i] = p.batch.verdict[i];
        }
    }
    return p;
}

static inline struct method made_method(const char *name)
{
    struct err e = {0};
    struct method m = {.label = name};
    m.oracle = !strcmp(name, "mean") ? ORACLE_MEAN : !strcmp(name, "best") ? ORACLE_BEST : ORACLE_NONE;
    if (!m.oracle) assert_ok(plugin_open(name, TARE_KIND_ESTIMATOR, NULL, &m.plugin, &e), &e);
    if (!m.oracle) m.has_state = m.plugin->estimator->save != NULL;
    return m;
}

/* Return the figures of one case. */
static inline struct result case_figures(const struct variance_pool *p, const char *name, int64_t size, int64_t batch,
                                         int64_t rounds, uint64_t seed)
{
    struct err e = {0};
    static struct config config;
    static struct method method;
    static double star[1000];
    struct arena a;
    struct sums sums;
    struct resamples r;
    struct result out = {.star = star, .size = size};
    const struct method_place place = {.config = &config, .n_clusters = 1, .where = "made"};
    method = made_method(name);
    const struct variance_case c = {.pool = p,
                                    .method = &method,
                                    .place = &place,
                                    .state = method.has_state ? STATE_COLD : STATE_NONE,
                                    .size = size,
                                    .batch = batch,
                                    .rounds = rounds,
                                    .seed = seed};
    config.run.plugins = "";
    arena_init(&a, "figures");
    assert_ok(variance_resamples_new(400, p->batch.n_groups, seed, &a, &r, &e), &e);
    assert_ok(measure(&c, &a, &sums, &e), &e);
    assert_ok(variance_figures_of(&c, &sums, &r, &a, &out, &e), &e);
    arena_free(&a);
    return out;
}

#endif
