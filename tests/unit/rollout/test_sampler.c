/* Rollouts: bit-identical in every batch and to the logprobs of a packed pass, reference texts,
 * stop tokens and errors. */
#include "rig.h"

#include "base/json.h"
#include "rollout/sampler.h"

struct setting {
    int64_t batch, kv_tokens, prefill_rows;
    int threads;
};

static void sample_all(struct rig *r, struct setting x, double temperature, int64_t max_new, struct sample_output *out,
                       struct sampler_stats *stats)
{
    struct err e = {0};
    struct sampler *s;
    const struct sample_params p = rig_params(temperature, max_new);
    assert_ok(sampler_new(r->m, x.batch, x.kv_tokens, &s, &e), &e);
    if (x.prefill_rows) s->prefill_rows = x.prefill_rows;
    assert_ok(sampler_run(s,
                          &(struct sample_job){&p, rng_key(5, RNG_TRAIN), rig_requests(r->m->shape.vocab), N_REQUESTS, NULL, NULL},
                          &r->arena, out, &e),
              &e);
    *stats = sampler_stats(s);
    sampler_free(s);
}

static void assert_same(const struct sample_output *a, const struct sample_output *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_memory_equal(a->token_begin, b->token_begin, (size_t)(a->n + 1) * sizeof *a->token_begin);
    assert_memory_equal(a->ids, b->ids, (size_t)a->n_tokens * sizeof *a->ids);
    assert_memory_equal(a->logprob, b->logprob, (size_t)a->n_tokens * sizeof *a->logprob);
    assert_memory_equal(a->entropy, b->entropy, (size_t)a->n_tokens * sizeof *a->entropy);
    assert_memory_equal(a->finish, b->finish, (size_t)a->n);
}

/* A packed pass over the sampled tokens, with prompts shared and repeated, is bit-identical to the
 * sampler's values. */
static void assert_logprobs(struct rig *r, const struct sample_output *o)
{
    for (int share = 0; share < 2; share++) {
        const struct rig_logprobs scores = rig_compute_logprobs(r, rig_requests(r->m->shape.vocab), N_REQUESTS, o, 1, share);
        assert_memory_equal(scores.logprob, o->logprob, (size_t)o->n_tokens * sizeof *scores.logprob);
        assert_memory_equal(scores.entropy, o->entropy, (size_t)o->n_tokens * sizeof *scores.entropy);
    }
}

/* make: a rig with that many threads */
static void check_layouts(void (*make)(struct rig *, const char *, const char *, int), const char *what, const char *dtype)
{
    /* 96 + 8 keys are 7 blocks, which the longest prompt alone needs with 64 new tokens. */
    const struct setting settings[] = {{7, 0, 0, 1},   {32, 0, 0, 1},   {32, 0, 0, 2},   {32, 0, 0, 3},
                                       {7, 0, 5, 2},   {32, 0, 1, 1},   {32, 112, 0, 2}, {7, 112, 9, 1},
                                       {3, 160, 0, 1}, {32, 240, 7, 3}, {0, 0, 0, 2}};
    struct rig r, other;
    struct sample_output base, out;
    struct sampler_stats stats, first;
    int64_t preempted = 0;
    make(&r, what, dtype, 1);
    sample_all(&r, (struct setting){1, 0, 0, 1}, 1, 64, &base, &first);
    assert_int_equal(base.n, N_SAMPLES);
    assert_int_equal(first.prompt_tokens, 1 + 16 + 17 + 40 + 5 + 33); /* each prompt once */
    assert_int_equal(first.refilled_tokens, 0);
    assert_int_equal(first.new_tokens, base.n_tokens);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        make(&other, what, dtype, settings[i].threads);
        sample_all(&other, settings[i], 1, 64, &out, &stats);
        assert_same(&base, &out);
        if (!settings[i].kv_tokens) assert_int_equal(stats.prompt_tokens, first.prompt_tokens);
        if (!settings[i].kv_tokens) assert_int_equal(stats.preemptions, 0);
        preempted += stats.preemptions;
        rig_free(&other);
    }
    assert_true(preempted > 0);
    assert_logprobs(&r, &base);
    rig_free(&r);
}

static void make_new(struct rig *r, const char *arch, const char *dtype, int threads)
{
    rig_new(r, arch, dtype, threads, 4);
}

static void test_layouts_of_random_models(void **state)
{
    (void)state;
    check_layouts(make_new, "qwen2", "f32");
    check_layouts(make_new, "llama", "bf16");
    check_layouts(make_new, "qwen3", "f32");
}

static const char *const TINY[] = {"qwen2-tied", "qwen2-untied-bf16",   "llama-rope3", "llama-tied-bf16",
                                   "qwen3",      "llama-sharded-newcfg"};
enum { N_TINY = sizeof TINY / sizeof *TINY };

/* Returns the folder of a tiny model; NULL: tests/data has another of its architecture. */
static const char *tiny(int i)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s", shared_or_skip("models/tiny"));
    const bool whole = shared_is_whole(path);
    strcat(strcat(path, "/"), TINY[i]);
    return whole || !access(path, R_OK) ? path : NULL;
}

static void test_layouts_of_tiny_models(void **state)
{
    (void)state;
    for (int i = 0; i < N_TINY; i++)
        if (tiny(i)) check_layouts(rig_load, tiny(i), i % 2 ? "bf16" : "f32");
}

/* Tests families whose layers differ from Llama's. */
static void test_layouts_of_families(void **state)
{
    static const char *const NAMES[] = {"gemma3", "mistral-window", "phi3-part", "granite", "smollm3", "olmo2"};
    char path[4200];
    (void)state;
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/tests/data/models/families/%s", getenv("SOURCE"), NAMES[i]);
        check_layouts(rig_load, path, i % 2 ? "bf16" : "f32");
    }
}

/* Tests a real model, with long sums and a large vocabulary. The case runs if SMOLLM2 names its
 * folder. */
static void test_layouts_of_smollm2(void **state)
{
    const struct setting settings[] = {{7, 0, 0, 2}, {32, 0, 0, 1}, {32, 0, 20, 2}};
    const char *folder = getenv("SMOLLM2");
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct rig r, other;
        struct sample_output base, out;
        struct sampler_stats stats;
        rig_load(&r, folder, bf16 ? "bf16" : "f32", 1);
        sample_all(&r, (struct setting){1, 0, 0, 1}, 1, 5, &base, &stats);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            rig_load(&other, folder, bf16 ? "bf16" : "f32", settings[i].threads);
            sample_all(&other, settings[i], 1, 5, &out, &stats);
            assert_same(&base, &out);
            rig_free(&other);
        }
        assert_logprobs(&r, &base);
        rig_free(&r);
    }
}

static int check_greedy(const char *folder, int64_t batch)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output out;
    struct sample_request q[16];
    int32_t ids[16][64];
    char path[4200];
    json_t *cases;
    int right = 0;
    rig_load(&r, folder, "f32", 2);
    snprintf(path, sizeof path, "%s/greedy.json", folder);
    assert_ok(json_read_file(path, &cases, &e), &e);
    const int64_t n = (int64_t)json_array_size(cases);
    assert_true(n > 0 && n <= 16);
    for (int64_t i = 0; i < n; i++) {
        const json_t *prompt = json_object_get(json_array_get(cases, (size_t)i), "prompt");
        q[i] = (struct sample_request){.prompt = ids[i], .prompt_len = (int64_t)json_array_size(prompt), .n_samples = 1};
        for (int64_t j = 0; j < q[i].prompt_len; j++) ids[i][j] = (int32_t)json_integer_value(json_array_get(prompt, (size_t)j));
    }
    struct sample_params p = rig_params(0, 64);
    p.ignore_eos = true;
    assert_ok(sampler_new(r.m, batch, 0, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(1, RNG_EVAL), q, n, NULL, NULL}, &r.arena, &out, &e), &e);
    for (int64_t i = 0; i < n; i++) {
        const json_t *tokens = json_object_get(json_array_get(cases, (size_t)i), "tokens");
        assert_int_equal(out.token_begin[i + 1] - out.token_begin[i], (int64_t)json_array_size(tokens));
        for (int64_t j = 0; j < (int64_t)json_array_size(tokens); j++)
            assert_int_equal(out.ids[out.token_begin[i] + j], json_integer_value(json_array_get(tokens, (size_t)j)));
        right++;
    }
    json_decref(cases);
    sampler_free(s);
    rig_free(&r);
    return right;
}

static void test_greedy_texts(void **state)
{
    int right = 0, models = 0;
    (void)state;
    for (int i = 0; i < N_TINY; i++) {
        const char *folder = tiny(i);
        if (!folder) continue;
        models++;
        check_greedy(folder, 3);
        right += check_greedy(folder, 32);
    }
    assert_true(models == N_TINY || models == 3);
    assert_int_equal(right, 8 * models);
}

/* As many prompts of one completion each as the batch can hold: all of them take part in every
 * forward pass from the first on. */
static void test_batch_is_full_from_the_start(void **state)
{
    enum { N = 32, LIMIT = 6 };
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output out;
    const int32_t prompt[] = {9, 8, 7};
    struct sample_request q[N];
    struct sample_params p = rig_params(1, LIMIT);
    (void)state;
    p.ignore_eos = true;
    rig_new(&r, "qwen2", "f32", 1, 4);
    for (int i = 0; i < N; i++)
        q[i] = (struct sample_request){.prompt = prompt, .prompt_len = 3, .n_samples = 1, .prompt_uid = (uint64_t)i};
    assert_ok(sampler_new(r.m, N, 0, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), q, N, NULL, NULL}, &r.arena, &out, &e), &e);
    assert_int_equal(out.n_tokens, N * LIMIT);
    /* The first token comes from the prompt's pass. */
    assert_int_equal(sampler_stats(s).decode_steps, LIMIT - 1);
    sampler_free(s);
    rig_free(&r);
}

/* A completion does not depend on the requests it is sampled with. */
static void test_alone_and_in_company(void **state)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output all, one;
    struct sampler_stats stats;
    (void)state;
    rig_new(&r, "qwen2", "f32", 1, 4);
    sample_all(&r, (struct setting){0, 0, 0, 1}, 1, 64, &all, &stats);
    const struct sample_params p = rig_params(1, 64);
    struct sample_request q = rig_requests(250)[2]; /* completions 4 .. 7 */
    assert_ok(sampler_new(r.m, 0, 0, &s, &e), &e);
    q.n_samples = 2;
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &one, &e), &e);
    assert_int_equal(one.n_tokens, all.token_begin[6] - all.token_begin[4]);
    assert_memory_equal(one.ids, all.ids + all.token_begin[4], (size_t)one.n_tokens * sizeof *one.ids);
    /* Another occurrence, prompt uid, or run seed gives another text. */
    for (int change = 0; change < 3; change++) {
        struct sample_output other;
        struct sample_request altered = q;
        if (change == 0) altered.occurrence = 1;
        if (change == 1) altered.prompt_uid++;
        assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(change == 2 ? 6 : 5, RNG_TRAIN), &altered, 1, NULL, NULL},
                              &r.arena, &other, &e),
                  &e);
        const int64_t n = other.n_tokens < one.n_tokens ? other.n_tokens : one.n_tokens;
        assert_true(memcmp(other.ids, one.ids, (size_t)n * sizeof *one.ids) != 0);
    }
    sampler_free(s);
    rig_free(&r);
}

static bool listed(int32_t id, const int32_t *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == id) return true;
    return false;
}

static void test_stops(void **state)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output out;
    (void)state;
    rig_new(&r, "llama", "f32", 1, 4);
    assert_ok(sampler_new(r.m, 0, 0, &s, &e), &e);
    /* EOS; a stop list in addition to EOS; the list alone. */
    for (int kind = 0; kind < 3; kind++) {
        const int32_t extra[40] = {20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
                                   40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59};
        struct sample_params p = rig_params(1, 24);
        int64_t stopped = 0, cut = 0, eos = 0, by_list = 0;
        if (kind > 0) p.stop = extra, p.n_stop = 40;
        p.ignore_eos = kind == 2;
        assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), rig_requests(250), N_REQUESTS, NULL, NULL},
                              &r.arena, &out, &e),
                  &e);
        for (int64_t i = 0; i < out.n; i++) {
            const int64_t n = out.token_begin[i + 1] - out.token_begin[i];
            for (int64_t j = 0; j < n; j++) {
                const int32_t id = out.ids[out.token_begin[i] + j];
                const bool is_eos = listed(id, r.m->eos, r.m->n_eos), in_list = listed(id, p.stop, p.n_stop);
                const bool ends = in_list || (is_eos && !p.ignore_eos);
                assert_int_equal(ends, j + 1 == n && out.finish[i] == FINISH_STOP);
                eos += is_eos, by_list += in_list;
            }
            assert_true(n >= 1 && n <= 24);
            if (out.finish[i] == FINISH_LENGTH) assert_int_equal(n, 24);
            stopped += out.finish[i] == FINISH_STOP, cut += out.finish[i] == FINISH_LENGTH;
        }
        assert_true(stopped > 0 && (cut > 0 || kind));
        assert_true(eos > 0 && (by_list > 0) == (kind > 0));
    }
    sampler_free(s);
    rig_free(&r);
}

static void test_context_end(void **state)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output out;
    int32_t ids[170] = {0};
    (void)state;
    rig_new(&r, "qwen3", "f32", 1, 1);
    assert_ok(sampler_new(r.m, 0, 0, &s, &e), &e);
    struct sample_params p = rig_params(1, 1000);
    struct sample_request q = {.prompt = ids, .prompt_len = 150, .n_samples = 3, .where = "rows.jsonl:9"};
    p.ignore_eos = true;
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &out, &e), &e);
    assert_int_equal(out.n_tokens, 30); /* 150 + 10 fill the context of 160 */
    assert_int_equal(out.finish[0], FINISH_LENGTH);
    q.prompt_len = 160;
    assert_int_equal(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &out, &e),
                     TARE_E_RANGE);
    assert_non_null(strstr(e.message, "rows.jsonl:9"));
    assert_non_null(strstr(e.message, "160"));
    q.prompt_len = 0;
    assert_int_equal(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &out, &e),
                     TARE_E_INVALID);
    q.prompt_len = 3, ids[2] = 250;
    assert_int_equal(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &out, &e),
                     TARE_E_RANGE);
    assert_non_null(strstr(e.message, "249"));
    ids[2] = 0, p.top_p = 0;
    assert_int_equal(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &out, &e),
                     TARE_E_RANGE);
    sampler_free(s);
    /* 112 keys, where 103 + 9 = 112 + 1 are needed. */
    assert_ok(sampler_new(r.m, 0, 100, &s, &e), &e);
    p = rig_params(1, 10), q.prompt_len = 104;
    assert_int_equal(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &out, &e),
                     TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "rollout.kv_tokens"));
    q.prompt_len = 103;
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), &q, 1, NULL, NULL}, &r.arena, &out, &e), &e);
    sampler_free(s);
    rig_free(&r);
}

static void test_cancelled(void **state)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output out, base;
    struct sampler_stats stats;
    volatile int cancelled = 1;
    (void)state;
    rig_new(&r, "qwen2", "f32", 1, 4);
    sample_all(&r, (struct setting){0, 0, 0, 1}, 1, 64, &base, &stats);
    assert_ok(sampler_new(r.m, 0, 0, &s, &e), &e);
    const struct sample_params p = rig_params(1, 64);
    const struct sample_request *q = rig_requests(250);
    assert_int_equal(
        sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), q, N_REQUESTS, &cancelled, NULL}, &r.arena, &out, &e),
        TARE_E_CANCELLED);
    cancelled = 0;
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), q, N_REQUESTS, &cancelled, NULL}, &r.arena, &out, &e),
              &e);
    assert_same(&base, &out);
    sampler_free(s);
    rig_free(&r);
}

struct told {
    const struct sample_request *requests;
    int32_t ids[N_SAMPLES][64];
    int64_t n[N_SAMPLES], rounds, early;
    uint8_t finish[N_SAMPLES];
};

static tare_status told_of_end(void *ctx, const struct sample_ended *x, struct err *e)
{
    struct told *t = ctx;
    int64_t at = x->sample;
    (void)e;
    for (int64_t i = 0; i < x->request; i++) at += t->requests[i].n_samples;
    assert_int_equal(at, x->at);
    assert_int_equal(t->n[at], 0); /* reported once */
    assert_true(x->n > 0 && x->n <= 64);
    memcpy(t->ids[at], x->ids, (size_t)x->n * sizeof *x->ids);
    t->n[at] = x->n;
    t->finish[at] = x->finish;
    return TARE_OK;
}

static tare_status told_of_round(void *ctx, struct err *e)
{
    struct told *t = ctx;
    int64_t ended = 0;
    (void)e;
    for (int i = 0; i < N_SAMPLES; i++) ended += t->n[i] > 0;
    t->rounds++;
    t->early += ended > 0 && ended < N_SAMPLES;
    return TARE_OK;
}

static tare_status refuses(void *ctx, struct err *e)
{
    (void)ctx;
    FAIL(e, TARE_E_IO, "enough");
}

/* Each completion is reported once, when it ends and with its final tokens, also if sequences are
 * preempted for lack of blocks. */
static void test_watched(void **state)
{
    (void)state;
    struct rig r;
    rig_new(&r, "qwen2", "f32", 1, 1);
    const struct sample_params p = rig_params(1, 40);
    for (int tight = 0; tight < 2; tight++) {
        struct sampler *s;
        struct err e = {0};
        struct sample_output o;
        static struct told t;
        t = (struct told){.requests = rig_requests(r.m->shape.vocab)};
        assert_ok(sampler_new(r.m, tight ? 5 : 0, tight ? 160 : 0, &s, &e), &e);
        sampler_watch(s, &(struct sample_watch){told_of_end, told_of_round, &t});
        assert_ok(
            sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), t.requests, N_REQUESTS, NULL, NULL}, &r.arena, &o, &e),
            &e);
        for (int64_t i = 0; i < N_SAMPLES; i++) {
            assert_int_equal(t.n[i], o.token_begin[i + 1] - o.token_begin[i]);
            assert_memory_equal(t.ids[i], o.ids + o.token_begin[i], (size_t)t.n[i] * sizeof *o.ids);
            assert_int_equal(t.finish[i], o.finish[i]);
        }
        assert_true(t.early > 0); /* while others were still sampled */
        sampler_watch(s, &(struct sample_watch){NULL, refuses, NULL});
        assert_int_equal(
            sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), t.requests, N_REQUESTS, NULL, NULL}, &r.arena, &o, &e),
            TARE_E_IO);
        sampler_watch(s, NULL);
        const int64_t rounds = t.rounds;
        assert_ok(
            sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), t.requests, N_REQUESTS, NULL, NULL}, &r.arena, &o, &e),
            &e);
        assert_int_equal(t.rounds, rounds);
        sampler_free(s);
    }
    rig_free(&r);
}

static void test_not_finite(void **state)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output out;
    (void)state;
    rig_new(&r, "qwen2", "f32", 1, 1);
    for (int64_t i = 0; i < 48; i++) r.m->weights[r.m->final_norm + i] = NAN;
    model_refresh(r.m, NULL);
    assert_ok(sampler_new(r.m, 0, 0, &s, &e), &e);
    const struct sample_params p = rig_params(1, 8);
    assert_int_equal(
        sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), rig_requests(250), 1, NULL, NULL}, &r.arena, &out, &e),
        TARE_E_NOT_FINITE);
    sampler_free(s);
    rig_free(&r);
}

static void test_takes_no_memory_after_the_second_call(void **state)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct sample_output out;
    int64_t grown = 0;
    (void)state;
    for (int64_t kv = 0; kv <= 112; kv += 112) {
        rig_new(&r, "qwen2", "f32", 2, 4);
        assert_ok(sampler_new(r.m, 7, kv, &s, &e), &e);
        const struct sample_params p = rig_params(1, 64);
        for (int call = 0; call < 5; call++) {
            arena_reset(&r.arena);
            assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), rig_requests(250), N_REQUESTS, NULL, NULL},
                                  &r.arena, &out, &e),
                      &e);
            const int64_t now = sampler_stats(s).grown + r.arena.grown + r.m->kernel_scratch.grown;
            if (call > 1) assert_int_equal(now, grown);
            grown = now;
        }
        sampler_free(s);
        rig_free(&r);
    }
}

static void test_rollouts_of_a_batch(void **state)
{
    struct err e = {0};
    struct rig r;
    struct sampler *s;
    struct batch b = {.n_groups = 3};
    uint64_t uid[3] = {7, 8, 7};
    int64_t occurrence[3] = {0, 0, 1}, begin[4] = {0, 2, 4, 6};
    int32_t ids[6] = {50, 60, 70, 80, 50, 60};
    (void)state;
    b.prompt_uid = uid, b.occurrence = occurrence, b.prompt_begin = begin, b.prompt_ids = ids;
    rig_new(&r, "qwen2", "f32", 1, 4);
    assert_ok(sampler_new(r.m, 0, 0, &s, &e), &e);
    const struct rollout_config c = {.group_size = 4};
    const struct sample_params p = rig_params(1, 12);
    assert_ok(rollout_run(s, &(struct rollout_job){&c, &p, rng_key(5, RNG_TRAIN), NULL, NULL}, &b, &r.arena, &e), &e);
    assert_int_equal(b.n_rollouts, 12);
    for (int64_t m = 0; m <= 3; m++) assert_int_equal(b.group_begin[m], 4 * m);
    assert_int_equal(b.n_tokens, b.token_begin[12]);
    assert_true(b.n_tokens > 12);
    /* The prompt that occurs a second time in the step draws different tokens. */
    const int64_t n = b.token_begin[4] < b.n_tokens - b.token_begin[8] ? b.token_begin[4] : b.n_tokens - b.token_begin[8];
    assert_true(memcmp(b.ids, b.ids + b.token_begin[8], (size_t)n * sizeof *b.ids) != 0);
    sampler_free(s);
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts_of_random_models),
        cmocka_unit_test(test_layouts_of_tiny_models),
        cmocka_unit_test(test_layouts_of_families),
        cmocka_unit_test(test_greedy_texts),
        cmocka_unit_test(test_batch_is_full_from_the_start),
        cmocka_unit_test(test_alone_and_in_company),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_context_end),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_watched),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_takes_no_memory_after_the_second_call),
        cmocka_unit_test(test_rollouts_of_a_batch),
        /* Last, because it is omitted if SMOLLM2 is not set. */
        cmocka_unit_test(test_layouts_of_smollm2),
    };
    const char *folder = getenv("SMOLLM2");
    return run_cases("tests", tests, sizeof tests / sizeof *tests - !(folder && *folder), NULL, NULL);
}
