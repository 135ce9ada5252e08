/* Sampling and the update allocate no memory once their sizes are known: every call of malloc and
 * its relatives in this program is counted. Other parts of a step (JSON lines, the run's database)
 * make small allocations in libraries. */
#include "engine.h"
#include "objective.h"

#include "rollout/rollout.h"
#include "update/update.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTED 1
static _Atomic long calls;
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

#define EXPORT __attribute__((visibility("default")))
EXPORT void *malloc(size_t n)
{
    calls++;
    return __libc_malloc(n);
}
EXPORT void *calloc(size_t n, size_t size)
{
    calls++;
    return __libc_calloc(n, size);
}
EXPORT void *realloc(void *p, size_t n)
{
    calls++;
    return __libc_realloc(p, n);
}
EXPORT int posix_memalign(void **p, size_t align, size_t n)
{
    calls++;
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}
#else
#define COUNTED 0
static long calls;
#endif

enum { GROUPS = 5, SIZE = 4, PROMPT = 19, NEW = 21, VOCAB = 250 };

struct rig {
    struct pool *pool;
    struct model *m;
    struct sampler *sampler;
    struct trainer *trainer;
    struct arena arena;
    struct loss_config loss;
    struct train_config train;
};

static void rig_new(struct rig *r, const char *dtype, int threads)
{
    const struct model_config c = small_shape("qwen2", dtype);
    const struct kernels *k;
    struct err e = {0};
    arena_init(&r->arena, "test");
    r->loss = plain_loss(AGGREGATE_SEQUENCE);
    r->train = plain_train(8, 100);
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    assert_ok(pool_new(threads, &r->pool, &e), &e);
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = k, .pool = r->pool, .seed = 11}, VOCAB, NULL, 0, &r->m, &e),
              &e);
    assert_ok(sampler_new(r->m, 7, 0, &r->sampler, &e), &e);
    assert_ok(
        trainer_new(r->m,
                    &(struct trainer_options){.train = &r->train, .loss = &r->loss, .temperature = 1, .seed = 3, .total_steps = 30},
                    &r->trainer, &e),
        &e);
    set_objective(r->trainer, "ppo", NULL);
    r->trainer->gradient_shards = 2;
}

static void make_step(struct rig *r, int64_t i)
{
    static int32_t prompt[GROUPS * PROMPT];
    const struct sample_params p = {.temperature = 1, .top_p = 1, .max_new_tokens = NEW, .ignore_eos = true};
    struct sample_request q[GROUPS];
    struct sample_output o;
    struct update_report report;
    struct err e = {0};
    struct batch b = {.step = i, .n_groups = GROUPS, .prompt_ids = prompt};
    for (int g = 0; g < GROUPS; g++) {
        for (int j = 0; j < PROMPT; j++) prompt[g * PROMPT + j] = (int32_t)((g * 31 + j * 7 + i) % VOCAB);
        q[g] = (struct sample_request){
            .prompt = prompt + g * PROMPT, .prompt_len = PROMPT, .n_samples = SIZE, .prompt_uid = (uint64_t)g};
    }
    arena_reset(&r->arena);
    assert_ok(sampler_run(r->sampler,
                          &(struct sample_job){.params = &p, .key = rng_key((uint64_t)i, RNG_TRAIN), .requests = q, .n = GROUPS},
                          &r->arena, &o, &e),
              &e);
    assert_ok(batch_regular(&b, SIZE, PROMPT, 0, &r->arena, &e), &e);
    rollout_columns(&b, &o);
    assert_ok(batch_alloc(&b, BATCH_ESTIMATE, &r->arena, &e), &e);
    for (int k = 0; k < GROUPS * SIZE; k++) b.advantage[k] = k % 2 ? 1 : -1, b.rollout_weight[k] = 1;
    assert_ok(update_run(r->trainer, &b, &report, &e), &e);
    assert_true(report.mismatch == 0);
}

static void test_nothing_is_taken_after_the_second_step(void **state)
{
    (void)state;
    if (!COUNTED) {
        SKIP("malloc cannot be counted in a sanitizer's build");
    }
    for (int kind = 0; kind < 4; kind++) {
        struct rig r;
        long before[6];
        rig_new(&r, kind & 1 ? "bf16" : "f32", kind & 2 ? 2 : 1);
        for (int i = 0; i < 6; i++) {
            before[i] = calls;
            make_step(&r, i);
        }
        assert_true(before[1] > before[0]); /* the first step is counted */
        assert_int_equal(calls - before[2], 0);
        free_trainer(r.trainer);
        sampler_free(r.sampler);
        model_free(r.m);
        pool_free(r.pool);
        arena_free(&r.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_taken_after_the_second_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
