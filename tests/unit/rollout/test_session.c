/* Sessions: a request that joins while others come, end and are dropped is bit-identical to
 * sampler_run, and so are the logprobs of its prompt. */
#include "rig.h"

#include "rollout/sampler.h"
#include "rollout/session.h"

enum { NEW = 64 };

struct heard { /* of one request */
    int32_t ids[8][NEW];
    float logprob[8][NEW], prompt[64];
    int64_t n[8], n_prompt, least; /* least: a sample is ended there; 0: it ends by its stop tokens or limit */
    bool ended[8];
    enum finish finish[8];
};

static bool listen(void *owner, const struct session_token *t)
{
    struct heard *h = owner;
    if (t->sample == SESSION_PROMPT) {
        assert_int_equal(t->position, ++h->n_prompt);
        assert_non_null(t->logits);
        h->prompt[t->position] = t->logprob;
        return true;
    }
    assert_int_equal(t->position, h->n[t->sample]);
    assert_false(h->ended[t->sample]);
    h->ids[t->sample][t->position] = t->id;
    h->logprob[t->sample][t->position] = t->logprob;
    h->n[t->sample]++;
    h->ended[t->sample] = t->ends || h->n[t->sample] == h->least;
    h->finish[t->sample] = t->finish;
    return !h->ended[t->sample];
}

struct world {
    struct rig r;
    struct sampler *s;
    struct sample_params params[N_REQUESTS];
    struct heard heard[N_REQUESTS];
};

static struct sample_params params_of(int64_t i)
{
    struct sample_params p = rig_params(i % 2 ? 1 : 0.7, NEW);
    p.ignore_eos = i % 2 == 0;
    return p;
}

static void world_open(struct world *w, int64_t batch, int64_t kv_tokens)
{
    struct err e = {0};
    rig_new(&w->r, "qwen2", "f32", 1, 1);
    assert_ok(sampler_new(w->r.m, 0, kv_tokens, &w->s, &e), &e);
    assert_ok(session_open(w->s, &(struct session_options){.batch = batch, .share = 1, .listener = listen}, &e), &e);
}

static void world_close(struct world *w)
{
    session_close(w->s);
    sampler_free(w->s);
    rig_free(&w->r);
}

static void join(struct world *w, int64_t i)
{
    struct err e = {0};
    const struct session_request q = {.sample = rig_requests(250)[i],
                                      .params = &w->params[i],
                                      .key = rng_key(5, RNG_TRAIN),
                                      .prompt_rows = i % 3 == 0,
                                      .token_rows = i % 4 == 0,
                                      .owner = &w->heard[i]};
    w->params[i] = params_of(i);
    w->heard[i] = (struct heard){0};
    assert_ok(session_add(w->s, &q, &e), &e);
}

/* Compares with the tokens that sampler_run draws for request i alone. */
static void assert_as_run(struct world *w, int64_t i)
{
    struct err e = {0};
    struct sampler *alone;
    struct sample_output out;
    const struct sample_params p = params_of(i);
    const struct heard *h = &w->heard[i];
    assert_ok(sampler_new(w->r.m, 0, 0, &alone, &e), &e);
    assert_ok(sampler_run(alone, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &rig_requests(250)[i], 1, NULL, NULL}, &w->r.arena,
                          &out, &e),
              &e);
    for (int64_t k = 0; k < out.n; k++) {
        const int64_t at = out.token_begin[k], all = out.token_begin[k + 1] - at, n = h->least && h->least < all ? h->least : all;
        assert_int_equal(h->n[k], n);
        assert_memory_equal(h->ids[k], out.ids + at, (size_t)n * sizeof *out.ids);
        assert_memory_equal(h->logprob[k], out.logprob + at, (size_t)n * sizeof *out.logprob);
        if (n == all) assert_int_equal(h->finish[k], out.finish[k]);
    }
    sampler_free(alone);
}

static void turns(struct world *w, int64_t n)
{
    struct err e = {0};
    for (int64_t i = 0; i < n && session_remaining(w->s); i++) assert_ok(session_iterate(w->s, &e), &e);
}

/* Requests come one after the other, some iterations apart, and a second time after the first ones
 * have ended. */
static void check_joins(int64_t batch, int64_t kv_tokens, bool put_back)
{
    static struct world w;
    world_open(&w, batch, kv_tokens);
    for (int64_t round = 0; round < 3; round++) {
        for (int64_t i = 0; i < N_REQUESTS; i++) {
            join(&w, i);
            w.heard[i].least = i == 2 ? 3 : 0; /* the listener ends it */
            turns(&w, 2 * round + i);
        }
        turns(&w, 10000);
        assert_int_equal(session_remaining(w.s), 0);
        for (int64_t i = 0; i < N_REQUESTS; i++) assert_as_run(&w, i);
        assert_int_equal(session_state(w.s).blocks_used, 0);
    }
    assert_true(put_back == (sampler_stats(w.s).preemptions > 0));
    world_close(&w);
}

static void test_joins(void **state)
{
    (void)state;
    check_joins(32, 0, false);
    check_joins(3, 0, false);
    check_joins(1, 0, false);
    check_joins(32, 112, true);
}

static void test_prompt_logprobs(void **state)
{
    static struct world w;
    struct err e = {0};
    float *scored;
    (void)state;
    world_open(&w, 4, 0);
    w.s->prefill_rows = 7; /* prompts are cut */
    for (int64_t i = 0; i < N_REQUESTS; i += 3) {
        const struct sample_request *q = &rig_requests(250)[i];
        join(&w, i);
        turns(&w, 10000);
        assert_int_equal(w.heard[i].n_prompt, q->prompt_len - 1);
        const int32_t *rest = q->prompt + 1;
        const int64_t len = q->prompt_len - 1;
        const struct pack_group g = {q->prompt, 1, 1, &rest, &len, NULL};
        struct packed_batch p;
        struct kv_cache cache;
        float *hidden, *logits, *lse;
        assert_ok(pack_groups(&g, 1, false, &w.r.arena, &p, &e), &e);
        if (!p.n_targets) continue;
        assert_ok(kv_cache_new(w.r.m, w.r.m->shape.layers, p.n_blocks, &cache, &e), &e);
        assert_ok(model_forward(w.r.m, &cache, &p.forward, &w.r.arena, &hidden, &e), &e);
        assert_ok(arena_new(&w.r.arena, &logits, len * 250, &e), &e);
        assert_ok(arena_new(&w.r.arena, &lse, len * 2, &e), &e);
        assert_ok(arena_new(&w.r.arena, &scored, len, &e), &e);
        model_logits(w.r.m, hidden, len, logits);
        KERNEL(w.r.m->k, &w.r.m->ctx, head_stats, .logprob = scored, .lse = lse, .logits = logits, .target = rest,
               .temperature = (float)params_of(i).temperature, .r = len, .v = 250);
        assert_memory_equal(w.heard[i].prompt + 1, scored, (size_t)len * sizeof *scored);
        kv_cache_free(w.r.m, &cache);
    }
    world_close(&w);
}

/* Dropped requests, running or waiting, leave nothing behind, and the others stay bit-identical. */
static void test_drops(void **state)
{
    static struct world w;
    (void)state;
    world_open(&w, 3, 0);
    for (int64_t round = 0; round < 4; round++) {
        for (int64_t i = 0; i < N_REQUESTS; i++) join(&w, i);
        turns(&w, round);
        session_drop(w.s, &w.heard[0]);
        session_drop(w.s, &w.heard[4]);
        turns(&w, 10000);
        for (int64_t i = 0; i < N_REQUESTS; i++)
            if (i % 4) assert_as_run(&w, i);
        assert_int_equal(session_state(w.s).remaining, 0);
        assert_int_equal(session_state(w.s).blocks_used, 0);
    }
    for (int64_t i = 0; i < N_REQUESTS; i++) join(&w, i);
    turns(&w, 2);
    world_close(&w); /* while requests are active */
}

static void test_many(void **state)
{
    static struct world w;
    (void)state;
    world_open(&w, 4, 0);
    /* One of the first requests stays while the others come and go: sequences are renumbered. */
    for (int64_t i = 0; i < 300; i++) {
        if (i % 100 == 0) join(&w, 3);
        join(&w, 1);
        w.heard[1].least = 1;
        turns(&w, 1);
        if (i % 100 == 99) assert_as_run(&w, 3);
    }
    turns(&w, 10000);
    assert_int_equal(session_remaining(w.s), 0);
    world_close(&w);
}

static void test_refusals(void **state)
{
    static struct world w;
    struct err e = {0};
    (void)state;
    world_open(&w, 2, 64);
    w.params[0] = params_of(0);
    struct session_request q = {.sample = rig_requests(250)[0], .params = &w.params[0], .owner = &w.heard[0]};
    const int32_t wrong = 250, right[80] = {0};
    q.sample.prompt_len = 0;
    assert_int_equal(session_add(w.s, &q, &e), TARE_E_INVALID);
    q.sample.prompt_len = w.r.m->shape.max_position;
    assert_int_equal(session_add(w.s, &q, &e), TARE_E_RANGE);
    q.sample = (struct sample_request){.prompt = &wrong, .prompt_len = 1, .n_samples = 1};
    assert_int_equal(session_add(w.s, &q, &e), TARE_E_RANGE);
    q.sample = (struct sample_request){.prompt = right, .prompt_len = 60, .n_samples = 1};
    assert_int_equal(session_add(w.s, &q, &e), TARE_E_RANGE);
    assert_non_null(strstr(e.message, "rollout.kv_tokens"));
    q.sample.prompt_len = 5;
    w.params[0].top_p = 0;
    assert_int_equal(session_add(w.s, &q, &e), TARE_E_RANGE);
    assert_int_equal(session_remaining(w.s), 0);
    session_close(w.s);
    w.params[0].top_p = 1;
    assert_int_equal(session_add(w.s, &q, &e), TARE_E_STATE);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_joins), cmocka_unit_test(test_prompt_logprobs),
                                       cmocka_unit_test(test_drops), cmocka_unit_test(test_many), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
