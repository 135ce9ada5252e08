/* Compares a supervised update between policy updates with ReLIFT's code: loss, entropy and
 * gradient of a tiny model on the same demonstrations (tests/data/systems/make.py). Its optimizer
 * must not change the policy's. */
#include "engine.h"
#include "load.h"
#include "objective.h"

#include "base/json.h"
#include "update/supervised.h"

#include <math.h>
#include <string.h>

static struct err e;

static const char *source_file(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/tests/data/%s", getenv("SOURCE"), name);
    return path;
}

static double number(const json_t *array, int64_t i)
{
    return json_number_value(json_array_get(array, (size_t)i));
}

static int64_t length(const json_t *array)
{
    return (int64_t)json_array_size(array);
}

/* Reads the first completion of each group as its demonstration. */
static void read_demonstrations(const json_t *groups, struct arena *a, struct batch *b)
{
    *b = (struct batch){.n_groups = length(groups), .n_rollouts = length(groups), .n_prompt_tokens = 256, .n_tokens = 1024};
    assert_ok(batch_alloc(b, BATCH_DATA | BATCH_ROLLOUT, a, &e), &e);
    int64_t prompts = 0, tokens = 0;
    for (int64_t m = 0; m < b->n_groups; m++) {
        const json_t *group = json_array_get(groups, (size_t)m), *prompt = json_object_get(group, "prompt");
        const json_t *ids = json_array_get(json_object_get(group, "completions"), 0);
        for (int64_t k = 0; k < length(prompt); k++) b->prompt_ids[prompts++] = (int32_t)number(prompt, k);
        for (int64_t k = 0; k < length(ids); k++) b->ids[tokens++] = (int32_t)number(ids, k);
        b->prompt_begin[m + 1] = prompts;
        b->group_begin[m + 1] = m + 1;
        b->token_begin[m + 1] = tokens;
    }
    b->n_prompt_tokens = prompts, b->n_tokens = tokens;
}

struct rig {
    struct config config;
    struct pool *pool;
    struct model *m;
    struct trainer *t;
    struct train_config train;
    struct arena a;
    struct batch b;
    json_t *all;
};

/* beta1 = 0 and no limit on the norm: after one step the first moment is the gradient. */
static void open_rig(struct rig *r)
{
    const struct kernels *k;
    const char *overrides[] = {"relift.rows=4", "relift.max_grad_norm=0", "relift.lr=1e-3", "train.beta1=0",
                               "train.micro_tokens=16"};
    assert_ok(config_load(&r->config, NULL, overrides, 5, &e), &e);
    assert_ok(kernels_open(false, NULL, 0, &k, &e), &e);
    assert_ok(pool_new(1, &r->pool, &e), &e);
    const struct model_config shape = {.dtype = PRECISION_F32, .save_dtype = SAVE_AUTO};
    assert_ok(model_load(source_file("models/tiny/qwen3"), &shape, k, r->pool, &r->m, &e), &e);
    r->train = plain_train(4, 4096);
    assert_ok(trainer_new(r->m, &(struct trainer_options){NULL, &r->train, &r->config.loss, 0.5, 1, 1}, &r->t, &e), &e);
    assert_ok(supervised_add_second(r->t, &r->config, &e), &e);
    assert_ok(json_read_file(source_file("systems/cases.json"), &r->all, &e), &e);
    arena_init(&r->a, "demonstrations");
    read_demonstrations(json_object_get(r->all, "rollouts"), &r->a, &r->b);
}

static void close_rig(struct rig *r)
{
    trainer_free(r->t);
    model_free(r->m);
    pool_free(r->pool);
    config_free(&r->config);
    arena_free(&r->a);
    json_decref(r->all);
}

/* Returns the largest difference between recorded and computed values of the gradient. */
static double gradient_off(const struct rig *r, const json_t *gradient, const float *got)
{
    const int64_t stride = json_integer_value(json_object_get(r->all, "stride"));
    double most = 0;
    for (int64_t i = 0; i < r->m->n_tensors; i++) {
        const struct tensor *t = &r->m->tensors[i];
        const json_t *want = json_object_get(gradient, t->name);
        assert_int_equal(length(want), (t->rows * t->cols + stride - 1) / stride);
        for (int64_t k = 0; k < length(want); k++) {
            const double off = fabs((double)got[t->offset + k * stride] - number(want, k));
            most = off > most || isnan(off) ? off : most;
        }
    }
    return most;
}

/* The trainer's temperature, that of the rollouts, differs from that of supervised steps. */
static void relift__has_the_loss_and_gradient_of_the_released_code(void **state)
{
    (void)state;
    struct rig r = {0};
    struct supervised_report got;
    open_rig(&r);
    const json_t *want = json_object_get(r.all, "relift");
    const double coef = json_number_value(json_object_get(want, "entropy_coef"));
    assert_ok(supervised_second_step(r.t, &r.b, coef, &got, &e), &e);
    const double loss = fabs(got.loss - json_number_value(json_object_get(want, "sft_loss")));
    const double entropy = fabs(got.entropy - json_number_value(json_object_get(want, "entropy")));
    const double norm = fabs(got.grad_norm - json_number_value(json_object_get(want, "norm")));
    const double off = gradient_off(&r, json_object_get(want, "gradient"), r.t->second->moment1);
    printf("loss %.9g off by %.2g, entropy off by %.2g, norm %.9g off by %.2g, gradient off by %.2g at most\n", got.loss, loss,
           entropy, got.grad_norm, norm, off);
    assert_true(loss <= 1e-5);
    assert_true(entropy <= 1e-5);
    assert_true(norm <= 1e-5);
    assert_true(off <= 1e-5);
    assert_true(got.lr == 1e-3);
    close_rig(&r);
}

static void relift__leaves_the_policys_optimizer_alone(void **state)
{
    (void)state;
    struct rig r = {0};
    struct supervised_report got;
    open_rig(&r);
    const struct train_config *train = r.t->train;
    assert_ok(supervised_second_step(r.t, &r.b, 0, &got, &e), &e);
    assert_ok(supervised_second_step(r.t, &r.b, 0, &got, &e), &e);
    assert_int_equal(r.t->second->optimizer_steps, 2);
    assert_int_equal(r.t->optimizer_steps, 0);
    assert_ptr_equal(r.t->train, train);
    assert_true(r.t->temperature == 0.5);
    for (int64_t i = 0; i < r.m->n_params; i++) assert_true(r.t->moment1[i] == 0 && r.t->moment2[i] == 0);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(relift__has_the_loss_and_gradient_of_the_released_code),
                                       cmocka_unit_test(relift__leaves_the_policys_optimizer_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
