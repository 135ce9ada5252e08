/* Sampling on a device whose decode sessions produce many tokens without the host: the CUDA kernels
 * as fibers on the host, and on a GPU if there is one. fp32: the CPU's tokens. batch_invariant: a
 * sample is bit-identical in every batch, and to the update's pass over the same tokens. */
#include "devices.h"
#include "script.h"

enum { CONTEXT = 600 };

static void device_rig(struct rig *r, const struct kernels *k, const char *dtype, int64_t width)
{
    const struct model_config c = {.dtype = precision_named(dtype),
                                   .save_dtype = SAVE_AUTO,
                                   .init = INIT_QWEN2,
                                   .hidden_size = 64,
                                   .layers = 2,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .head_dim = width,
                                   .intermediate_size = 64,
                                   .context = CONTEXT,
                                   .init_std = 0.2,
                                   .tie_embeddings = true};
    const int32_t eos[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct err e = {0};
    *r = (struct rig){0};
    arena_init(&r->arena, "rig");
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = k, .seed = 11}, 250, eos, 10, &r->m, &e), &e);
}

static void run(struct rig *r, int64_t max_batch, int64_t kv_tokens, const struct sample_params *p, struct sample_output *out)
{
    struct sampler *s;
    struct err e = {0};
    assert_ok(sampler_new(r->m, max_batch, kv_tokens, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){p, rng_key(7, RNG_TRAIN), rig_requests(250), N_REQUESTS, NULL, NULL}, &r->arena,
                          out, &e),
              &e);
    sampler_free(s);
}

static void same_tokens(const struct sample_output *a, const struct sample_output *b, double tolerance)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_memory_equal(a->token_begin, b->token_begin, (size_t)(a->n + 1) * 8);
    assert_memory_equal(a->ids, b->ids, (size_t)a->n_tokens * 4);
    assert_memory_equal(a->finish, b->finish, (size_t)a->n);
    for (int64_t i = 0; i < a->n_tokens; i++) {
        if (!(fabs((double)a->logprob[i] - (double)b->logprob[i]) <= tolerance))
            fail_msg("token %lld: logprob %.9g, not %.9g", (long long)i, (double)a->logprob[i], (double)b->logprob[i]);
        if (!(fabs((double)a->entropy[i] - (double)b->entropy[i]) <= tolerance))
            fail_msg("token %lld: entropy %.9g, not %.9g", (long long)i, (double)a->entropy[i], (double)b->entropy[i]);
    }
}

static void check_cpu_tokens(const struct kernels *k)
{
    struct rig cpu, device;
    struct sample_output a, b;
    const struct sample_params p = rig_params(1, 18);
    device_rig(&cpu, rig_kernels(), "f32", 12);
    device_rig(&device, k, "f32", 12);
    run(&cpu, 0, 0, &p, &a);
    run(&device, 0, 0, &p, &b);
    same_tokens(&b, &a, 1e-4);
    run(&device, 5, 400, &p, &b); /* a small cache: sequences are preempted and restarted */
    same_tokens(&b, &a, 1e-4);
    rig_free(&cpu);
    rig_free(&device);
}

static void check_invariant(const struct kernels *k, const char *dtype, int64_t width, int everywhere)
{
    struct rig r;
    struct sample_output all, few;
    const struct sample_params p = rig_params(1, 7);
    device_rig(&r, k, dtype, width);
    r.m->ctx.batch_invariant = everywhere;
    run(&r, 0, 0, &p, &all);
    run(&r, 3, 0, &p, &few);
    same_tokens(&few, &all, 0);
    rig_free(&r);
}

static void run_episodes(struct rig *r, int64_t max_batch, int64_t kv_tokens, int delay, struct sample_output *out)
{
    struct sampler *s;
    struct err e = {0};
    struct script script = {.delay = delay};
    int32_t stop[SCRIPT_STOPS];
    const struct sample_params p = script_params(&script, stop);
    struct sample_episodes episodes = script_episodes(&script);
    episodes.max_tokens = 14;
    assert_ok(sampler_new(r->m, max_batch, kv_tokens, &s, &e), &e);
    assert_ok(
        sampler_run(s, &(struct sample_job){&p, rng_key(7, RNG_TRAIN), rig_requests(250), 3, NULL, &episodes}, &r->arena, out, &e),
        &e);
    sampler_free(s);
}

/* A turn may end in the middle of the tokens that the device decodes alone. The batch is small, and
 * so is the cache. */
static void check_episodes(const struct kernels *k)
{
    struct rig cpu, device;
    struct sample_output a, b;
    device_rig(&cpu, rig_kernels(), "f32", 12);
    device_rig(&device, k, "f32", 12);
    run_episodes(&cpu, 0, 0, 0, &a);
    run_episodes(&device, 5, 48, 3, &b);
    same_tokens(&b, &a, 1e-4);
    assert_int_equal(a.n_turns, b.n_turns);
    assert_memory_equal(a.sampled, b.sampled, (size_t)a.n_tokens);
    assert_memory_equal(a.act_end, b.act_end, (size_t)a.n_turns * sizeof *a.act_end);
    rig_free(&cpu);
    rig_free(&device);
}

/* bf16 as in training: the kernels for few rows, in launches that begin before the previous ones
 * have ended. Results repeat, without a fault. */
static void check_chain(const struct kernels *k)
{
    struct rig r;
    struct sample_output a, b;
    const struct sample_params p = rig_params(1, 7);
    device_rig(&r, k, "bf16", 64);
    run(&r, 0, 0, &p, &a);
    run(&r, 0, 0, &p, &b);
    same_tokens(&b, &a, 0);
    rig_free(&r);
}

/* A session's graphs contain addresses. One sampler draws twice; in between, the table of positions
 * moves (an update over longer sequences needs more of them), the cache (completions may be
 * longer), or both. The second run draws the tokens of a new sampler. */
enum moved { POSITIONS = 1, CACHE = 2 };

static void check_moved(const struct kernels *k, int moved)
{
    /* LONG: one more block of the cache, and no larger table of blocks in the session. */
    enum { PROMPT = 5, SHORT = 8, LONG = 24 };
    static const int32_t prompt[PROMPT] = {100, 17, 230, 44, 61};
    const struct sample_request q = {prompt, PROMPT, 1, 1000, 0, NULL};
    struct rig r;
    struct sampler *s;
    struct sample_output again, fresh;
    struct err e = {0};
    struct sample_params p = rig_params(1, SHORT);
    p.ignore_eos = true; /* the same rows in every token: one graph */
    device_rig(&r, k, "f32", 12);
    assert_ok(sampler_new(r.m, 1, 0, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(7, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &again, &e), &e);
    const int64_t grown = sampler_stats(s).grown;
    if (moved & POSITIONS) assert_ok(model_positions(r.m, CONTEXT, &e), &e);
    if (moved & CACHE) p.max_new_tokens = LONG;
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(8, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &again, &e), &e);
    if (moved & CACHE) assert_true(sampler_stats(s).grown > grown);
    sampler_free(s);
    assert_ok(sampler_new(r.m, 1, 0, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(8, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &fresh, &e), &e);
    sampler_free(s);
    same_tokens(&again, &fresh, 0);
    rig_free(&r);
}

static void on_backend(const struct kernels *k)
{
    for (int moved = POSITIONS; moved <= (POSITIONS | CACHE); moved++) check_moved(k, moved);
    check_cpu_tokens(k);
    check_invariant(k, "f32", 12, 1);
    check_invariant(k, "bf16", 64, 1);
    if (!strcmp(k->name, "shim")) /* The sums of attention never depend on the batch; a library's products may. */
        check_invariant(k, "f32", 12, 0);
    check_chain(k);
    check_episodes(k);
}

ON_DEVICES(on_backend)
