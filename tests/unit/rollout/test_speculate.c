/* Speculation: tokens, logprobs, entropies, ends and turns have the same bits with and without it, for
 * random settings, in runs, episodes and sessions; and it verifies several tokens in a pass. */
#include "script.h"

#include "folder.h"

#include "model/lora.h"
#include "rollout/sampler.h"
#include "rollout/session.h"

enum { PROMPTS = 5, MOST_SAMPLES = 3, NEW = 70 };

static struct err e;

struct setting {
    const char *arch, *dtype;
    bool lora, int8;
    int threads;
    int64_t batch, kv_tokens;
    float gain;
    struct sample_params params;
    int32_t stop[3];
    uint64_t seed;
};

static int64_t pick(uint64_t seed, uint64_t what, int64_t n)
{
    return (int64_t)rng_below(rng_key(seed, RNG_DATA), what, (uint64_t)n);
}

static void random_setting(struct setting *x, uint64_t seed)
{
    static const char *const arch[] = {"qwen2", "llama", "qwen3"}, *const dtype[] = {"f32", "bf16"};
    static const double temperature[] = {0, 0.05, 0.3, 1}, top_p[] = {1, 0.8}, min_p[] = {0, 0.1};
    static const int64_t top_k[] = {0, 5}, kv_tokens[] = {0, 0, 160, 240}, batch[] = {0, 1, 3};
    *x = (struct setting){.arch = arch[pick(seed, 0, 3)],
                          .dtype = dtype[pick(seed, 1, 2)],
                          .lora = pick(seed, 2, 3) == 0,
                          .threads = pick(seed, 3, 2) ? 3 : 1,
                          .batch = batch[pick(seed, 4, 3)],
                          .kv_tokens = kv_tokens[pick(seed, 5, 4)],
                          .gain = pick(seed, 6, 2) ? 30 : 4,
                          .stop = {20, 21, 22},
                          .seed = seed};
    x->int8 = !x->lora && pick(seed, 7, 3) == 0;
    x->params = rig_params(temperature[pick(seed, 8, 4)], NEW);
    x->params.top_p = top_p[pick(seed, 9, 2)];
    x->params.min_p = min_p[pick(seed, 10, 2)];
    x->params.top_k = top_k[pick(seed, 11, 2)];
    x->params.ignore_eos = pick(seed, 12, 2);
    x->params.stop = x->stop;
    x->params.n_stop = pick(seed, 13, 4);
}

static void open_rig(struct rig *r, const struct setting *x)
{
    struct model_config c = small_shape(x->arch, x->dtype);
    const struct lora_spec spec = {.rank = x->lora ? 4 : 0, .alpha = 6, .targets = LORA_ALL};
    const int32_t eos[2] = {0, 1};
    *r = (struct rig){0};
    arena_init(&r->arena, "rig");
    assert_ok(pool_new(x->threads, &r->pool, &e), &e);
    const struct model_source source = {
        .config = &c, .kernels = rig_kernels(), .pool = r->pool, .seed = 11 + x->seed, .lora = x->lora ? &spec : NULL};
    assert_ok(model_new(&source, 250, eos, 2, &r->m, &e), &e);
    for (int64_t i = 0; !x->lora && i < r->m->unit_begin[1] + r->m->layers[0].norm1; i++) r->m->weights[i] *= x->gain;
    for (int64_t i = 0; x->lora && i < r->m->n_tensors; i++) {
        const struct tensor *t = &r->m->tensors[i];
        for (int64_t k = 0; k < t->rows * t->cols && strstr(t->name, "lora_B"); k++)
            r->m->weights[t->offset + k] = 0.05f * (float)sin((double)(i + 7 * k));
    }
    assert_ok(model_refresh(r->m, &e), &e);
    if (!x->int8) return;
    const char *folder = make_test_folder("tare-speculate");
    assert_non_null(folder);
    assert_ok(model_save(r->m, folder, DTYPE_F32, NULL, &e), &e);
    model_free(r->m);
    c.path = folder;
    c.weights = WEIGHTS_INT8;
    assert_ok(model_load(folder, &c, rig_kernels(), r->pool, &r->m, &e), &e);
    fs_remove_tree(folder, NULL);
}

/* Prompts that repeat themselves. */
static const struct sample_request *repeating_requests(uint64_t seed)
{
    static int32_t ids[PROMPTS][64];
    static struct sample_request q[PROMPTS];
    for (int64_t i = 0; i < PROMPTS; i++) {
        const int64_t n = 1 + pick(seed, 100 + (uint64_t)i, 60), period = 1 + pick(seed, 200 + (uint64_t)i, 12);
        for (int64_t k = 0; k < n; k++) ids[i][k] = (int32_t)pick(seed, (uint64_t)(300 + 20 * i + k % period), 250);
        q[i] = (struct sample_request){ids[i], n, 1 + pick(seed, 250 + (uint64_t)i, MOST_SAMPLES), 1000 + (uint64_t)i, 0, NULL};
    }
    return q;
}

/* delay: of the answers of an environment; -1: without one */
static void sample(struct rig *r, const struct setting *x, bool speculate, int delay, struct sample_output *out,
                   struct sampler_stats *stats)
{
    struct sampler *s;
    int32_t stop[SCRIPT_STOPS];
    struct script script = {.delay = delay};
    struct sample_params p = delay < 0 ? x->params : script_params(&script, stop);
    const struct sample_episodes episodes = script_episodes(&script);
    p.temperature = x->params.temperature;
    assert_ok(sampler_new(r->m, x->batch, x->kv_tokens, &s, &e), &e);
    sampler_speculate(s, speculate);
    const struct sample_job job = {.params = &p,
                                   .key = rng_key(x->seed, RNG_TRAIN),
                                   .requests = repeating_requests(x->seed),
                                   .n = PROMPTS,
                                   .episodes = delay < 0 ? NULL : &episodes};
    assert_ok(sampler_run(s, &job, &r->arena, out, &e), &e);
    *stats = sampler_stats(s);
    assert_int_equal(s->sched.pool.n_free, s->sched.pool.n); /* every block is back */
    sampler_free(s);
}

static void check_settings(uint64_t from, uint64_t to, bool episodes)
{
    int64_t drafted = 0, accepted = 0, preempted = 0, stopped = 0;
    for (uint64_t seed = from; seed < to; seed++) {
        const int delay = episodes ? (int)pick(seed, 14, 4) : -1;
        struct setting x;
        struct rig r;
        struct sample_output with, without;
        struct sampler_stats fast, plain;
        random_setting(&x, seed);
        open_rig(&r, &x);
        sample(&r, &x, false, delay, &without, &plain);
        sample(&r, &x, true, delay, &with, &fast);
        rig_assert_same(&without, &with);
        assert_int_equal(plain.drafted, 0);
        assert_int_equal(fast.new_tokens, plain.new_tokens);
        assert_true(fast.accepted <= fast.drafted);
        if (!fast.preemptions) assert_true(fast.decode_steps <= plain.decode_steps);
        drafted += fast.drafted, accepted += fast.accepted, preempted += fast.preemptions;
        for (int64_t i = 0; i < with.n; i++) stopped += with.finish[i] == FINISH_STOP;
        rig_free(&r);
    }
    if (!rig_kernels()->few_rows) return;              /* ref does not speculate */
    assert_true(accepted > 100 && drafted > accepted); /* some drafts were wrong */
    assert_true(episodes || (preempted > 0 && stopped > 0));
}

static void runs_have_the_same_bits(void **state)
{
    (void)state;
    check_settings(0, 48, false);
}

static void episodes_have_the_same_bits(void **state)
{
    (void)state;
    check_settings(100, 124, true);
}

/* A greedy completion that repeats itself needs fewer passes than it has tokens. */
static void repetitions_take_fewer_passes(void **state)
{
    (void)state;
    struct setting x;
    struct rig r;
    struct sample_output out;
    struct sampler_stats stats;
    random_setting(&x, 3);
    x.lora = x.int8 = false;
    x.dtype = "f32";
    x.gain = 30;
    x.batch = 1;
    x.kv_tokens = 0;
    x.params = rig_params(0, NEW);
    x.params.ignore_eos = true;
    open_rig(&r, &x);
    sample(&r, &x, true, -1, &out, &stats);
    if (rig_kernels()->few_rows) { /* ref does not speculate */
        assert_true(stats.accepted > 0);
        assert_int_equal(stats.decode_steps + stats.accepted, out.n * (NEW - 1)); /* the first is the prompt's */
    }
    rig_free(&r);
}

/* ---- sessions */

struct heard {
    int32_t ids[MOST_SAMPLES][NEW];
    float logprob[MOST_SAMPLES][NEW];
    int64_t n[MOST_SAMPLES], least; /* least: the listener ends a sample there; 0: no */
    bool wants_logits;
};

static bool listen(void *owner, const struct session_token *t)
{
    struct heard *h = owner;
    assert_int_equal(t->position, h->n[t->sample]);
    assert_true(h->wants_logits == (t->logits != NULL));
    if (h->wants_logits)
        for (int v = 0; v < 250; v++) assert_true(t->logits[v] <= t->logits[t->id]); /* greedy, and its own row */
    h->ids[t->sample][t->position] = t->id;
    h->logprob[t->sample][t->position] = t->logprob;
    return ++h->n[t->sample] != h->least;
}

static int64_t run_session(struct rig *r, const struct setting *x, bool speculate, struct heard heard[PROMPTS])
{
    struct sampler *s;
    assert_ok(sampler_new(r->m, 0, x->kv_tokens, &s, &e), &e);
    sampler_speculate(s, speculate);
    assert_ok(session_open(s, &(struct session_options){.batch = 6, .share = 1, .listener = listen}, &e), &e);
    for (int64_t i = 0; i < PROMPTS; i++) {
        heard[i] = (struct heard){.wants_logits = i % 2, .least = i == 2 ? 31 : 0};
        const struct session_request q = {.sample = repeating_requests(x->seed)[i],
                                          .params = &x->params,
                                          .key = rng_key(x->seed, RNG_TRAIN),
                                          .token_rows = heard[i].wants_logits,
                                          .owner = &heard[i]};
        assert_ok(session_add(s, &q, &e), &e);
        for (int64_t k = 0; k < 7 * i; k++) assert_ok(session_iterate(s, &e), &e);
    }
    while (session_remaining(s)) assert_ok(session_iterate(s, &e), &e);
    assert_int_equal(session_state(s).blocks_used, 0);
    const int64_t accepted = sampler_stats(s).accepted;
    session_close(s);
    sampler_free(s);
    return accepted;
}

static void sessions_have_the_same_bits(void **state)
{
    (void)state;
    int64_t accepted = 0;
    for (uint64_t seed = 200; seed < 212; seed++) {
        static struct heard with[PROMPTS], without[PROMPTS];
        struct setting x;
        struct rig r;
        random_setting(&x, seed);
        x.params.temperature = 0;
        open_rig(&r, &x);
        assert_int_equal(run_session(&r, &x, false, without), 0);
        accepted += run_session(&r, &x, true, with);
        assert_memory_equal(with, without, sizeof with);
        rig_free(&r);
    }
    assert_true(accepted > 0 || !rig_kernels()->few_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_have_the_same_bits), cmocka_unit_test(episodes_have_the_same_bits),
                                       cmocka_unit_test(repetitions_take_fewer_passes),
                                       cmocka_unit_test(sessions_have_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
