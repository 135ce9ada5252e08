/* Shared by the sampler's tests: small random models, requests, and the logprobs of sampled
 * tokens. */
#ifndef TARE_TESTS_RIG_H
#define TARE_TESTS_RIG_H

#include "engine.h"
#include "load.h"

#include "model/pack.h"
#include "rollout/rollout.h"

#include <math.h>
#include <string.h>

struct rig {
    struct pool *pool;
    struct model *m;
    struct arena arena;
};

static inline const struct kernels *rig_kernels(void)
{
    const struct kernels *k;
    struct err e = {0};
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    return k;
}

/* V = 250, of which ten ids end a completion, so that completions from a flat distribution end
 * after about 25 tokens. Weights are multiplied by `gain`. */
static inline void rig_new(struct rig *r, const char *arch, const char *dtype, int threads, float gain)
{
    const struct model_config c = small_shape(arch, dtype);
    const int32_t eos[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct err e = {0};
    *r = (struct rig){0};
    arena_init(&r->arena, "rig");
    assert_ok(pool_new(threads, &r->pool, &e), &e);
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = rig_kernels(), .pool = r->pool, .seed = 11}, 250, eos, 10,
                        &r->m, &e),
              &e);
    for (int64_t i = 0; i < r->m->unit_begin[1] + r->m->layers[0].norm1; i++) r->m->weights[i] *= gain;
    model_refresh(r->m, NULL);
}

static inline void rig_load(struct rig *r, const char *folder, const char *dtype, int threads)
{
    const struct model_config c = {.path = folder, .dtype = precision_named(dtype)};
    struct err e = {0};
    *r = (struct rig){0};
    arena_init(&r->arena, "rig");
    assert_ok(pool_new(threads, &r->pool, &e), &e);
    assert_ok(model_load(folder, &c, rig_kernels(), r->pool, &r->m, &e), &e);
}

static inline void rig_free(struct rig *r)
{
    model_free(r->m);
    pool_free(r->pool);
    arena_free(&r->arena);
}

/* Six prompts with lengths around the block boundaries, 16 completions. */
enum { N_REQUESTS = 6, N_SAMPLES = 16 };
static inline const struct sample_request *rig_requests(int64_t vocab)
{
    static const int64_t lens[N_REQUESTS] = {1, 16, 17, 40, 5, 33}, samples[N_REQUESTS] = {3, 1, 4, 2, 5, 1};
    static int32_t ids[N_REQUESTS][64];
    static struct sample_request r[N_REQUESTS];
    for (int64_t i = 0; i < N_REQUESTS; i++) {
        for (int64_t j = 0; j < lens[i]; j++)
            ids[i][j] = (int32_t)rng_below(rng_key((uint64_t)i, RNG_DATA), (uint64_t)j, (uint64_t)vocab);
        r[i] = (struct sample_request){ids[i], lens[i], samples[i], 1000 + (uint64_t)i, 0, NULL};
    }
    return r;
}

static inline struct sample_params rig_params(double temperature, int64_t max_new)
{
    return (struct sample_params){.temperature = temperature, .top_p = 1, .max_new_tokens = max_new};
}

struct rig_logprobs {
    float *logprob, *entropy;
};

/* Computes logprobs and entropies of the sampled ids in one packed pass, without those of context. */
static inline struct rig_logprobs rig_compute_logprobs(struct rig *r, const struct sample_request *q, int64_t n,
                                                       const struct sample_output *o, float temperature, bool share)
{
    struct rig_logprobs scores;
    struct err e = {0};
    struct pack_group *groups;
    const int32_t **ids;
    const uint8_t **sampled;
    int64_t *lens, targets = 0;
    struct packed_batch p;
    struct kv_cache cache;
    float *hidden, *logits, *lse;
    const int64_t V = r->m->shape.vocab;
    assert_ok(arena_new(&r->arena, &groups, n, &e), &e);
    assert_ok(arena_new(&r->arena, &ids, o->n, &e), &e);
    assert_ok(arena_new(&r->arena, &lens, o->n, &e), &e);
    assert_ok(arena_new(&r->arena, &sampled, o->n, &e), &e);
    for (int64_t i = 0, k = 0; i < n; i++) {
        groups[i] =
            (struct pack_group){q[i].prompt, q[i].prompt_len, q[i].n_samples, ids + k, lens + k, o->sampled ? sampled + k : NULL};
        for (int64_t j = 0; j < q[i].n_samples; j++, k++) {
            ids[k] = o->ids + o->token_begin[k];
            if (o->sampled) sampled[k] = o->sampled + o->token_begin[k];
            lens[k] = o->token_begin[k + 1] - o->token_begin[k];
        }
    }
    assert_ok(pack_groups(groups, n, share, &r->arena, &p, &e), &e);
    for (int64_t t = 0; t < o->n_tokens; t++) targets += !o->sampled || o->sampled[t];
    assert_int_equal(p.n_targets, targets);
    assert_ok(kv_cache_new(r->m, r->m->shape.layers, p.n_blocks, &cache, &e), &e);
    assert_ok(model_forward(r->m, &cache, &p.forward, &r->arena, &hidden, &e), &e);
    assert_ok(arena_new(&r->arena, &logits, p.n_targets * V, &e), &e);
    assert_ok(arena_new(&r->arena, &scores.logprob, p.n_targets, &e), &e);
    assert_ok(arena_new(&r->arena, &scores.entropy, p.n_targets, &e), &e);
    assert_ok(arena_new(&r->arena, &lse, p.n_targets * 2, &e), &e);
    model_logits(r->m, hidden, p.n_targets, logits);
    KERNEL(r->m->k, &r->m->ctx, head_stats, .logprob = scores.logprob, .entropy = scores.entropy, .lse = lse, .logits = logits,
           .target = p.target, .temperature = temperature, .r = p.n_targets, .v = V);
    kv_cache_free(r->m, &cache);
    return scores;
}

/* Asserts that two outputs have the same bits. Columns of episodes are compared if a has them. */
static inline void rig_assert_same(const struct sample_output *a, const struct sample_output *b)
{
    const size_t n = (size_t)a->n, tokens = (size_t)a->n_tokens, turns = (size_t)a->n_turns;
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_int_equal(a->n_turns, b->n_turns);
    assert_memory_equal(a->token_begin, b->token_begin, (n + 1) * sizeof *a->token_begin);
    assert_memory_equal(a->ids, b->ids, tokens * sizeof *a->ids);
    assert_memory_equal(a->logprob, b->logprob, tokens * sizeof *a->logprob);
    assert_memory_equal(a->entropy, b->entropy, tokens * sizeof *a->entropy);
    assert_memory_equal(a->finish, b->finish, n);
    if (!a->sampled) return;
    assert_memory_equal(a->sampled, b->sampled, tokens);
    assert_memory_equal(a->turn_begin, b->turn_begin, (n + 1) * sizeof *a->turn_begin);
    assert_memory_equal(a->act_begin, b->act_begin, turns * sizeof *a->act_begin);
    assert_memory_equal(a->act_end, b->act_end, turns * sizeof *a->act_end);
    assert_memory_equal(a->turn_finish, b->turn_finish, turns);
}

#endif
