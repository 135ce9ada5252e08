/* A gradient or a loss that is not finite is an error that names it, or skips the step; weights and
 * moments stay unaffected. */
#include "engine.h"
#include "objective.h"

#include "update/update.h"

#include <math.h>
#include <string.h>

enum { GROUPS = 2, SIZE = 2, PROMPT = 5, NEW = 4, VOCAB = 250, ROLLOUTS = GROUPS * SIZE };

struct rig {
    struct pool *pool;
    struct model *m;
    struct trainer *t;
    struct arena arena;
    struct batch b;
    struct loss_config loss;
    struct train_config train;
    float *weights; /* initial values */
};

static void rig_new(struct rig *r, enum on_nonfinite what)
{
    const struct model_config c = small_shape("qwen2", "f32");
    const struct kernels *k;
    struct err e = {0};
    *r = (struct rig){.loss = plain_loss(AGGREGATE_SEQUENCE), .train = plain_train(ROLLOUTS, 100)};
    r->train.on_nonfinite = what;
    arena_init(&r->arena, "test");
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    assert_ok(pool_new(1, &r->pool, &e), &e);
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = k, .pool = r->pool, .seed = 11}, VOCAB, NULL, 0, &r->m, &e),
              &e);
    assert_ok(trainer_new(r->m, &(struct trainer_options){NULL, &r->train, &r->loss, 1, 3, 30}, &r->t, &e), &e);
    set_objective(r->t, "ppo", NULL);
    r->b = update_batch(&r->arena, GROUPS, ROLLOUTS, GROUPS * PROMPT, ROLLOUTS * NEW);
    r->b.n_tokens = ROLLOUTS * NEW;
    for (int g = 0; g < GROUPS; g++) r->b.group_begin[g + 1] = (g + 1) * SIZE, r->b.prompt_begin[g + 1] = (g + 1) * PROMPT;
    for (int i = 0; i < ROLLOUTS; i++)
        r->b.token_begin[i + 1] = (i + 1) * NEW, r->b.rollout_weight[i] = 1, r->b.advantage[i] = i % 2 ? 1 : -1;
    for (int i = 0; i < GROUPS * PROMPT; i++) r->b.prompt_ids[i] = i % VOCAB;
    for (int i = 0; i < ROLLOUTS * NEW; i++) r->b.ids[i] = (i * 7 + 1) % VOCAB;
    assert_ok(update_logprobs(r->t, r->m, &r->b, r->b.logprob, NULL, &e), &e);
    assert_ok(arena_new_raw(&r->arena, &r->weights, r->m->n_params, &e), &e);
    memcpy(r->weights, r->m->weights, (size_t)r->m->n_params * sizeof(float));
}

static void rig_free(struct rig *r)
{
    free_trainer(r->t);
    model_free(r->m);
    pool_free(r->pool);
    arena_free(&r->arena);
}

static bool untouched(const struct rig *r)
{
    bool zero = true;
    for (int64_t i = 0; i < r->m->n_params; i++) zero = zero && r->t->moment1[i] == 0 && r->t->moment2[i] == 0;
    return zero && !memcmp(r->weights, r->m->weights, (size_t)r->m->n_params * sizeof(float));
}

/* The update of a batch that `spoil` has damaged fails with these words, or is skipped; the next
 * update equals that of a trainer without the damaged one. */
static void meets(void (*spoil)(struct rig *r), const char *words)
{
    struct err e = {0};
    struct update_report report;
    struct rig r;
    rig_new(&r, NONFINITE_STOP);
    spoil(&r);
    assert_int_equal(update_run(r.t, &r.b, &report, &e), TARE_E_NOT_FINITE);
    assert_non_null(strstr(e.message, words));
    assert_true(untouched(&r));
    rig_free(&r);

    rig_new(&r, NONFINITE_ROLLBACK);
    spoil(&r);
    assert_int_equal(update_run(r.t, &r.b, &report, &e), TARE_E_NOT_FINITE);
    assert_true(r.t->overflow && untouched(&r));
    rig_free(&r);

    rig_new(&r, NONFINITE_SKIP);
    spoil(&r);
    e = (struct err){0};
    assert_ok(update_run(r.t, &r.b, &report, &e), &e);
    assert_int_equal(report.skipped, 1);
    assert_true(untouched(&r));
    r.train.max_grad_norm = 1;
    for (int i = 0; i < ROLLOUTS; i++) r.b.advantage[i] = i % 2 ? 1 : -1;
    assert_ok(update_logprobs(r.t, r.m, &r.b, r.b.logprob, NULL, &e), &e);
    assert_ok(update_run(r.t, &r.b, &report, &e), &e);
    assert_int_equal(report.skipped, 0);
    assert_true(isfinite(report.loss) && !untouched(&r));
    for (int64_t i = 0; i < r.m->n_params; i++) assert_true(isfinite(r.m->weights[i]) && isfinite(r.t->moment2[i]));
    rig_free(&r);
}

static void huge_advantage(struct rig *r)
{
    r->b.advantage[0] = 1e60;
}
static void a_gradient_that_overflows(void **state)
{
    (void)state;
    meets(huge_advantage, "gradient's norm is");
}

/* The norm is finite, but its square overflows single precision: an infinite second moment would
 * freeze its weight. */
static void large_advantage(struct rig *r)
{
    r->b.advantage[0] = 1e24;
    r->train.max_grad_norm = 0;
}
static void a_gradient_too_large_for_the_moments(void **state)
{
    (void)state;
    meets(large_advantage, "too large for the moments");
}

static void lost_logprob(struct rig *r)
{
    r->b.logprob[5] = -1e5F;
}
static void a_ratio_that_overflows(void **state)
{
    (void)state;
    meets(lost_logprob, "the ratio of token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gradient_that_overflows),
                                       cmocka_unit_test(a_gradient_too_large_for_the_moments),
                                       cmocka_unit_test(a_ratio_that_overflows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
