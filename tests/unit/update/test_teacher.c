/* A reference of another shape than the policy (a teacher): its logprobs equal those it gives as a
 * policy, whatever passes of the policy come in between; the exact KL accepts one with equally many
 * logits. */
#include "engine.h"
#include "objective.h"

#include "update/update.h"

#include <math.h>
#include <string.h>

enum { GROUPS = 3, SIZE = 2, PROMPT = 5, NEW = 20, VOCAB = 250, ROLLOUTS = GROUPS * SIZE, TOKENS = ROLLOUTS * NEW };

struct rig {
    const struct kernels *k;
    struct pool *pool;
    struct arena arena;
    struct batch b;
    struct loss_config loss;
    struct train_config train;
};

static void rig_new(struct rig *r)
{
    struct err e = {0};
    *r = (struct rig){.loss = plain_loss(AGGREGATE_TOKEN), .train = plain_train(ROLLOUTS, 60)};
    arena_init(&r->arena, "test");
    assert_ok(kernels_cpu(NULL, &r->k, &e), &e);
    assert_ok(pool_new(1, &r->pool, &e), &e);
    r->b = update_batch(&r->arena, GROUPS, ROLLOUTS, GROUPS * PROMPT, TOKENS);
    r->b.n_tokens = TOKENS;
    for (int g = 0; g < GROUPS; g++) {
        r->b.group_begin[g + 1] = (g + 1) * SIZE;
        r->b.prompt_begin[g + 1] = (g + 1) * PROMPT;
    }
    for (int i = 0; i < ROLLOUTS; i++) {
        r->b.token_begin[i + 1] = (i + 1) * NEW;
        r->b.rollout_weight[i] = 1;
        r->b.advantage[i] = i % 2 ? 1 : -1;
    }
    for (int i = 0; i < GROUPS * PROMPT; i++) r->b.prompt_ids[i] = (i * 3 + 2) % VOCAB;
    for (int i = 0; i < TOKENS; i++) r->b.ids[i] = (i * 7 + 1) % VOCAB;
}

static struct model *new_model(struct rig *r, bool teacher, int64_t vocab)
{
    struct model_config c = small_shape(teacher ? "llama" : "qwen2", "f32");
    struct model *m;
    struct err e = {0};
    if (teacher) {
        c.hidden_size = 64;
        c.layers = 3;
        c.kv_heads = 4;
        c.head_dim = 16;
    }
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = r->k, .pool = r->pool, .seed = teacher ? 5 : 11}, vocab,
                        NULL, 0, &m, &e),
              &e);
    return m;
}

static struct trainer *new_trainer(struct rig *r, struct model *m, struct model *reference)
{
    struct trainer *t;
    struct err e = {0};
    assert_ok(trainer_new(m, &(struct trainer_options){reference, &r->train, &r->loss, 1, 3, 30}, &t, &e), &e);
    set_objective(t, "ppo", NULL);
    return t;
}

static void logprobs(struct rig *r, struct trainer *t, struct model *m, float *out)
{
    struct err e = {0};
    assert_ok(update_logprobs(t, m, &r->b, out, NULL, &e), &e);
}

static void test_logprobs(void **state)
{
    (void)state;
    struct rig r;
    float policy[TOKENS], teacher[TOKENS], with[TOKENS], own[TOKENS];
    rig_new(&r);
    struct model *m = new_model(&r, false, VOCAB), *big = new_model(&r, true, VOCAB + 6);
    struct trainer *t = new_trainer(&r, m, big), *alone = new_trainer(&r, m, NULL), *as_policy = new_trainer(&r, big, NULL);
    logprobs(&r, alone, m, policy);
    logprobs(&r, as_policy, big, teacher);
    assert_true(memcmp(policy, teacher, sizeof policy) != 0);
    for (int round = 0; round < 2; round++) {
        logprobs(&r, t, m, own);
        logprobs(&r, t, big, with);
        assert_memory_equal(own, policy, sizeof own);
        assert_memory_equal(with, teacher, sizeof with);
    }
    free_trainer(t);
    free_trainer(alone);
    free_trainer(as_policy);
    model_free(m);
    model_free(big);
    pool_free(r.pool);
    arena_free(&r.arena);
}

/* The exact KL of a model to itself is 0; to the teacher it is not, and it changes the policy's
 * update. */
static void test_exact_kl(void **state)
{
    (void)state;
    struct rig r;
    struct update_report report[2];
    struct err e = {0};
    rig_new(&r);
    r.loss.kl = KL_EXACT;
    r.loss.kl_coef = 0.1;
    for (int k = 0; k < 2; k++) {
        struct model *m = new_model(&r, false, VOCAB), *reference = new_model(&r, k, VOCAB);
        struct trainer *t = new_trainer(&r, m, reference);
        logprobs(&r, t, m, r.b.logprob);
        assert_ok(update_run(t, &r.b, &report[k], &e), &e);
        free_trainer(t);
        model_free(m);
        model_free(reference);
    }
    assert_true(fabs(report[0].reference_kl) < 1e-6);
    assert_true(isfinite(report[1].reference_kl) && report[1].reference_kl > 1e-3);
    assert_true(report[0].grad_norm != report[1].grad_norm);
    pool_free(r.pool);
    arena_free(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logprobs), cmocka_unit_test(test_exact_kl)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
