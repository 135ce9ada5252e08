/* The engine on memory that the host cannot access (tests/device/fake.c): sampling, scoring, an
 * update with a reference, a clone, hashes, text embeddings and saved weights are bit-identical to
 * the CPU's for every architecture, in fp32 and bf16; a lost device is an error that names the
 * place. */
#include "engine.h"
#include "folder.h"
#include "objective.h"

#include "base/fs.h"
#include "engine/device_memory.h"
#include "model/shards.h"
#include "rollout/rollout.h"
#include "update/update.h"

#include <string.h>
#include <unistd.h>

enum { VOCAB = 211, GROUPS = 3, SAMPLES = 4, NEW = 24 };

struct outcome { /* everything on one backend */
    struct sample_output sampled;
    float *logprob, *entropy;
    struct update_report report;
    uint64_t before, clone, after;
    const char *folder;
    struct arena arena;
};

static struct train_config train_of(void)
{
    struct train_config c = plain_train(6, 120);
    c.epochs = 2, c.lr = 1e-2, c.recompute = RECOMPUTE_LAYER;
    return c;
}

static const struct loss_config LOSS = {.aggregation = AGGREGATE_SEQUENCE,
                                        .clip = 0.2,
                                        .entropy_coef = 0.01,
                                        .kl_coef = 0.05,
                                        .kl = KL_EXACT,
                                        .old_logprobs = OLD_RECOMPUTE,
                                        .rollout_is = ROLLOUT_IS_TIS,
                                        .rollout_is_cap = 2};

static const struct kernels *open_backend(const char *device)
{
    struct err e = {0};
    const struct kernels *k;
    const char *fake = getenv("TARE_FAKE");
    if (!strcmp(device, "cuda") && !fake) {
        SKIP("TARE_FAKE does not name the fake device");
    }
    if (fake) setenv("TARE_CUDA", fake, 1);
    assert_ok(kernels_open(!strcmp(device, "cuda"), NULL, 0, &k, &e), &e);
    assert_int_equal(k->backend->device, !strcmp(device, "cuda"));
    return k;
}

static struct model *make_model(const struct kernels *k, const char *arch, const char *dtype)
{
    struct err e = {0};
    struct model *m;
    const int32_t eos[4] = {1, 2, 3, 4};
    struct model_config c = small_shape(arch, dtype);
    c.init_std = 0.3;
    c.tie_embeddings = strcmp(arch, "llama") != 0;
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = k, .seed = 11}, VOCAB, eos, 4, &m, &e), &e);
    return m;
}

static const struct sample_request *all_requests(void)
{
    static const int64_t lens[GROUPS] = {1, 16, 37};
    static int32_t ids[GROUPS][64];
    static struct sample_request r[GROUPS];
    for (int64_t i = 0; i < GROUPS; i++) {
        for (int64_t j = 0; j < lens[i]; j++) ids[i][j] = (int32_t)((i * 31 + j * j * 7 + 5) % VOCAB);
        r[i] = (struct sample_request){
            .prompt = ids[i], .prompt_len = lens[i], .n_samples = SAMPLES, .prompt_uid = 1000 + (uint64_t)i};
    }
    return r;
}

static struct batch batch_of(struct outcome *o)
{
    const struct sample_request *r = all_requests();
    struct batch b = update_batch(&o->arena, GROUPS, o->sampled.n, 200, o->sampled.n_tokens);
    for (int64_t g = 0; g < GROUPS; g++) {
        b.group_begin[g + 1] = b.group_begin[g] + r[g].n_samples;
        memcpy(b.prompt_ids + b.prompt_begin[g], r[g].prompt, (size_t)r[g].prompt_len * sizeof *b.prompt_ids);
        b.prompt_begin[g + 1] = b.prompt_begin[g] + r[g].prompt_len;
    }
    for (int64_t i = 0; i < b.n_rollouts; i++) b.advantage[i] = (double)(i % 3) - 1, b.rollout_weight[i] = 1;
    rollout_columns(&b, &o->sampled);
    return b;
}

static uint64_t hash_of(const struct model *m)
{
    struct err e = {0};
    uint64_t hash = 0;
    assert_ok(shards_backend_hash(m, m->weights, m->memory.parameters, &hash, &e), &e);
    return hash;
}

static void run_all(const struct kernels *k, const char *arch, const char *dtype, struct outcome *o)
{
    struct err e = {0};
    struct model *m = make_model(k, arch, dtype), *reference = make_model(k, arch, dtype);
    struct sampler *s;
    struct trainer *t;
    const struct train_config train = train_of();
    const struct sample_params p = {.temperature = 0.9, .top_p = 0.95, .min_p = 0.001, .top_k = 60, .max_new_tokens = NEW};
    *o = (struct outcome){0};
    arena_init(&o->arena, "outcome");
    o->before = hash_of(m);
    o->clone = hash_of(reference);
    assert_ok(sampler_new(m, 5, 0, &s, &e), &e);
    assert_ok(sampler_run(s,
                          &(struct sample_job){.params = &p, .key = rng_key(3, RNG_TRAIN), .requests = all_requests(), .n = GROUPS},
                          &o->arena, &o->sampled, &e),
              &e);
    sampler_free(s);
    struct batch b = batch_of(o);
    assert_ok(
        trainer_new(m,
                    &(struct trainer_options){
                        .reference = reference, .train = &train, .loss = &LOSS, .temperature = 0.9, .seed = 5, .total_steps = 10},
                    &t, &e),
        &e);
    set_objective(t, "ppo", NULL);
    assert_ok(arena_new(&o->arena, &o->logprob, b.n_tokens, &e), &e);
    assert_ok(arena_new(&o->arena, &o->entropy, b.n_tokens, &e), &e);
    assert_ok(update_logprobs(t, m, &b, o->logprob, o->entropy, &e), &e);
    assert_ok(update_run(t, &b, &o->report, &e), &e);
    o->after = hash_of(m);
    free_trainer(t);
    assert_non_null(o->folder = make_test_folder("tare-device"));
    assert_ok(model_save(m, o->folder, DTYPE_F32, NULL, &e), &e);
    model_free(reference);
    model_free(m);
}

static void outcome_free(struct outcome *o)
{
    struct err e;
    fs_remove_tree(o->folder, &e);
    arena_free(&o->arena);
}

static void assert_same_file(const struct outcome *a, const struct outcome *b, const char *name)
{
    struct err e = {0};
    char path[2][2 * FS_PATH];
    struct str text[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", i ? b->folder : a->folder, name);
        assert_ok(fs_read_all(path[i], &text[i], &e), &e);
    }
    assert_int_equal(text[0].size, text[1].size);
    assert_memory_equal(text[0].data, text[1].data, (size_t)text[0].size);
    for (int i = 0; i < 2; i++) str_free(&text[i]);
}

static void same_bits(const char *arch, const char *dtype)
{
    struct outcome cpu, fake;
    run_all(open_backend("cpu"), arch, dtype, &cpu);
    run_all(open_backend("cuda"), arch, dtype, &fake);
    const int64_t n = cpu.sampled.n_tokens;
    assert_int_equal(fake.sampled.n_tokens, n);
    assert_true(n > GROUPS * SAMPLES);
    assert_memory_equal(fake.sampled.ids, cpu.sampled.ids, (size_t)n * sizeof(int32_t));
    assert_memory_equal(fake.sampled.logprob, cpu.sampled.logprob, (size_t)n * sizeof(float));
    assert_memory_equal(fake.sampled.entropy, cpu.sampled.entropy, (size_t)n * sizeof(float));
    assert_memory_equal(fake.logprob, cpu.logprob, (size_t)n * sizeof(float));
    assert_memory_equal(fake.entropy, cpu.entropy, (size_t)n * sizeof(float));
    assert_memory_equal(fake.logprob, fake.sampled.logprob,
                        (size_t)n * sizeof(float)); /* sampling and scoring are one computation */
    assert_memory_equal(&fake.report, &cpu.report, sizeof cpu.report);
    assert_true(fake.before == fake.clone && fake.before == cpu.before && fake.after == cpu.after && fake.after != fake.before);
    assert_same_file(&cpu, &fake, "model.safetensors");
    outcome_free(&cpu);
    outcome_free(&fake);
}

static void test_qwen2(void **state)
{
    (void)state;
    same_bits("qwen2", "f32");
}

static void test_llama_bf16(void **state)
{
    (void)state;
    same_bits("llama", "bf16");
}

static void test_qwen3(void **state)
{
    (void)state;
    same_bits("qwen3", "f32");
}

static struct kernel_memory memory_in_use(const struct kernels *k)
{
    const struct kctx c = {0};
    struct kernel_memory m;
    k->backend->memory_use(&c, &m);
    return m;
}

/* Captures the output of device_memory_watch on standard error. */
static int64_t watch_memory(const struct kernels *k, char *text, size_t room)
{
    FILE *f = tmpfile();
    const int before = dup(2);
    assert_true(f && before >= 0 && dup2(fileno(f), 2) == 2);
    device_memory_watch(k);
    dup2(before, 2);
    close(before);
    rewind(f);
    const size_t n = fread(text, 1, room - 1, f);
    text[n] = 0;
    fclose(f);
    return (int64_t)n;
}

/* A model, a sampler and an update in a large enough region allocate from the device once; with too
 * small a region the rest is allocated outside of it. */
static void test_region(void **state)
{
    (void)state;
    const struct kernels *k = open_backend("cuda");
    const struct kctx c = {0};
    struct outcome whole, split;
    const int64_t before = k->backend->memory(&c);
    assert_true(k->backend->reserve(&c, 64 << 20));
    assert_int_equal(k->backend->memory(&c), before); /* the available memory is unchanged */
    run_all(k, "qwen2", "f32", &whole);
    struct kernel_memory m = memory_in_use(k);
    assert_true(m.region == 64 << 20 && m.taken == 1 && m.beyond_most == 0 && !m.beyond_stage);
    /* everything was freed into one block again */
    assert_true(m.held == 0 && m.largest == m.region && m.most > 1 << 20);
    char warning[500];
    assert_int_equal(watch_memory(k, warning, sizeof warning), 0);
    const int64_t needed = m.most;
    assert_true(k->backend->reserve(&c, needed / 2));
    run_all(k, "qwen2", "f32", &split);
    m = memory_in_use(k);
    assert_true(m.taken > 1 && m.beyond_most >= needed / 2 && m.most <= needed / 2 && m.beyond == 0);
    /* weights and compute copy are in the first half */
    assert_string_equal(m.beyond_stage, "forward pass");
    assert_true(split.after == whole.after);
    assert_true(watch_memory(k, warning, sizeof warning) > 0);
    assert_non_null(strstr(warning, "MB were allocated outside of it, first in: forward pass"));
    assert_int_equal(watch_memory(k, warning, sizeof warning), 0); /* once */
    outcome_free(&whole);
    outcome_free(&split);
    assert_true(k->backend->reserve(&c, 0));
    assert_int_equal(k->backend->memory(&c), before);
}

static void assert_says(const struct err *e, const char *words)
{
    if (!strstr(e->message, words)) fail_msg("'%s' does not say '%s'", e->message, words);
}

/* An allocation larger than the device: an error that names its purpose, the size and the memory
 * left; the other blocks stay usable. */
static void test_exhausted(void **state)
{
    (void)state;
    const struct kernels *k = open_backend("cuda");
    const struct kctx c = {0};
    struct err e = {0};
    struct kv_cache cache;
    struct arena a;
    void *p;
    assert_false(k->backend->reserve(&c, INT64_C(1) << 40));
    assert_true(k->backend->reserve(&c, 64 << 20));
    struct model *m = make_model(k, "qwen2", "f32");
    assert_false(k->backend->reserve(&c, 32 << 20)); /* blocks are in use */
    assert_int_equal(kv_cache_new(m, 2, INT64_C(1) << 22, &cache, &e), TARE_E_NOMEM);
    assert_says(&e, "no memory for a key/value cache of 67108864 tokens in 2 layers (rollout.kv_tokens): 24576.0 MiB requested; "
                    "the planned region of 64.0 MiB has 6");
    model_arena_init(m, &a, "activations");
    assert_int_equal(tensor_new(&a, &p, INT64_C(5) << 30, &e), TARE_E_NOMEM);
    assert_says(&e, "no memory for activations: 5120.0 MiB requested; the planned region of 64.0 MiB");
    assert_says(&e, "the device 4032.0 MiB outside it");
    assert_ok(tensor_new(&a, &p, 1 << 20, &e), &e);
    arena_free(&a);
    assert_true(memory_in_use(k).beyond == 0);
    model_free(m);
    assert_true(memory_in_use(k).held == 0);
    assert_true(k->backend->reserve(&c, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_qwen2), cmocka_unit_test(test_llama_bf16),
                                       cmocka_unit_test(test_qwen3), cmocka_unit_test(test_region),
                                       cmocka_unit_test(test_exhausted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
