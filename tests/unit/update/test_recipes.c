/* Compares run.as with the trainers that it names: the loss and the gradient of a tiny model on the
 * same rollouts, from the rewards on, by the engine's estimator and update.
 * tests/data/recipes/make.py describes how the reference values were made. The KL in the reward is
 * checked by hand. */
#include "engine.h"
#include "load.h"
#include "objective.h"

#include "base/json.h"
#include "estimate/estimate.h"
#include "update/process_reward.h"
#include "update/update.h"

#include <math.h>
#include <string.h>

static struct err e;

static const char *source_file(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/tests/data/%s", getenv("SOURCE"), name);
    return path;
}

static int64_t length(const json_t *o, const char *key)
{
    return (int64_t)json_array_size(json_object_get(o, key));
}

static double number(const json_t *array, int64_t i)
{
    return json_number_value(json_array_get(array, (size_t)i));
}

/* Reads completion i of a group. */
static void read_rollout(struct batch *b, const json_t *group, int64_t i, int64_t at)
{
    const json_t *ids = json_array_get(json_object_get(group, "completions"), (size_t)i);
    const json_t *old = json_array_get(json_object_get(group, "old"), (size_t)i);
    const json_t *ref = json_array_get(json_object_get(group, "ref"), (size_t)i);
    b->reward[at] = number(json_object_get(group, "rewards"), i);
    b->verdict[at] = TARE_VERDICT_PARTIAL;
    b->token_begin[at + 1] = b->token_begin[at] + (int64_t)json_array_size(ids);
    for (int64_t k = 0; k < (int64_t)json_array_size(ids); k++) {
        const int64_t t = b->token_begin[at] + k;
        b->ids[t] = (int32_t)number(ids, k);
        b->logprob[t] = (float)number(old, k);
        b->ref_logprob[t] = (float)number(ref, k);
    }
}

static void read_batch(const json_t *groups, struct arena *a, struct batch *b)
{
    *b = (struct batch){.n_groups = (int64_t)json_array_size(groups), .n_rollouts = 64, .n_prompt_tokens = 256, .n_tokens = 1024};
    assert_ok(batch_alloc(b, BATCH_DATA | BATCH_ROLLOUT | BATCH_VERIFY | BATCH_ESTIMATE, a, &e), &e);
    assert_ok(arena_new(a, &b->ref_logprob, b->n_tokens, &e), &e);
    assert_ok(arena_new(a, &b->off_policy, b->n_rollouts, &e), &e);
    int64_t rollouts = 0, prompts = 0;
    for (int64_t m = 0; m < b->n_groups; m++) {
        const json_t *group = json_array_get(groups, (size_t)m), *prompt = json_object_get(group, "prompt");
        for (int64_t k = 0; k < length(group, "prompt"); k++) b->prompt_ids[prompts++] = (int32_t)number(prompt, k);
        for (int64_t i = 0; i < length(group, "rewards"); i++) read_rollout(b, group, i, rollouts++);
        b->prompt_begin[m + 1] = prompts;
        b->group_begin[m + 1] = rollouts;
        b->prompt_uid[m] = (uint64_t)m + 1;
    }
    b->n_rollouts = rollouts, b->n_prompt_tokens = prompts, b->n_tokens = b->token_begin[rollouts];
}

/* Marks the last rollout of each group as a trace of another policy, whose probabilities count as
 * 1. */
static void mark_traces(struct batch *b)
{
    for (int64_t m = 0; m < b->n_groups; m++) {
        const int64_t last = b->group_begin[m + 1] - 1;
        b->off_policy[last] = 1;
        for (int64_t t = b->token_begin[last]; t < b->token_begin[last + 1]; t++) b->logprob[t] = 0;
    }
}

struct step {
    struct config config;
    struct pool *pool;
    struct model *m;
    struct trainer *t;
    struct estimator *estimator;
    struct train_config train;
};

/* beta1 = 0 and no limit on the norm: after one step the first moment is the gradient. The old
 * policy is that of the case. */
static void step_open(struct step *s, const char *as, const json_t *keys, int64_t rollouts)
{
    const struct kernels *k;
    const char *overrides[8] = {as, "loss.old_logprobs=sampler"};
    const int64_t n = (int64_t)json_array_size(keys);
    assert_true(n <= 6);
    for (int64_t i = 0; i < n; i++) overrides[2 + i] = json_string_value(json_array_get(keys, (size_t)i));
    assert_ok(config_load(&s->config, NULL, overrides, 2 + n, &e), &e);
    assert_ok(kernels_open(false, NULL, 0, &k, &e), &e);
    assert_ok(pool_new(1, &s->pool, &e), &e);
    const struct model_config shape = {.dtype = PRECISION_F32, .save_dtype = SAVE_AUTO};
    assert_ok(model_load(source_file("models/tiny/qwen3"), &shape, k, s->pool, &s->m, &e), &e);
    s->train = plain_train(rollouts, 4096);
    s->train.beta1 = 0;
    s->train.max_grad_norm = 0;
    assert_ok(trainer_new(s->m, &(struct trainer_options){NULL, &s->train, &s->config.loss, 1, 1, 1}, &s->t, &e), &e);
    assert_ok(objective_open(&(struct objective_options){.plugin = s->config.objective.plugin,
                                                         .settings = s->config.params,
                                                         .loss = &s->config.loss},
                             &s->t->objective, &e),
              &e);
    assert_ok(estimate_open(&(struct estimate_options){.plugin = s->config.estimator.plugin, .settings = s->config.params},
                            &s->estimator, &e),
              &e);
}

static void step_close(struct step *s)
{
    free_trainer(s->t);
    estimate_free(s->estimator);
    model_free(s->m);
    pool_free(s->pool);
    config_free(&s->config);
}

/* Returns the largest difference between recorded and computed values of the gradient. */
static double gradient_off(const struct step *s, const json_t *gradient, int64_t stride, int64_t *numbers)
{
    double most = 0;
    for (int64_t i = 0; i < s->m->n_tensors; i++) {
        const struct tensor *t = &s->m->tensors[i];
        const json_t *want = json_object_get(gradient, t->name);
        const int64_t n = (t->rows * t->cols + stride - 1) / stride;
        assert_int_equal((int64_t)json_array_size(want), n);
        for (int64_t k = 0; k < n; k++) {
            const double off = fabs((double)s->t->moment1[t->offset + k * stride] - number(want, k));
            most = off > most || isnan(off) ? off : most;
        }
        *numbers += n;
    }
    return most;
}

static void recipes__have_the_loss_and_gradient_of_the_trainers(void **state)
{
    (void)state;
    json_t *all;
    assert_ok(json_read_file(source_file("recipes/cases.json"), &all, &e), &e);
    const json_t *cases = json_object_get(all, "cases");
    const int64_t stride = json_integer_value(json_object_get(all, "stride"));
    assert_int_equal(json_array_size(cases), 9);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        struct step s;
        struct batch b;
        struct arena a;
        struct update_report r;
        char as[32];
        int64_t numbers = 0;
        snprintf(as, sizeof as, "as=%s", json_string_value(json_object_get(c, "as")));
        arena_init(&a, "rollouts");
        read_batch(json_object_get(all, "rollouts"), &a, &b);
        if (json_int_or(c, "traces", 0)) mark_traces(&b);
        step_open(&s, as, json_object_get(c, "keys"), b.n_rollouts);
        assert_ok(estimate_run(s.estimator, &b, &a, &e), &e);
        assert_ok(update_run(s.t, &b, &r, &e), &e);
        const double loss = fabs(r.loss - json_number_value(json_object_get(c, "loss")));
        const double norm = fabs(r.grad_norm - json_number_value(json_object_get(c, "norm")));
        const double off = gradient_off(&s, json_object_get(c, "gradient"), stride, &numbers);
        printf("%s (%s): loss %.9g off by %.2g; norm %.9g off by %.2g; %lld numbers of the gradient off by %.2g at most\n", as,
               json_string_value(json_object_get(c, "peer")), r.loss, loss, r.grad_norm, norm, (long long)numbers, off);
        assert_true(loss <= 1e-5);
        assert_true(norm <= 1e-5);
        assert_true(off <= 1e-5);
        assert_true(numbers > 400);
        step_close(&s);
        arena_free(&a);
    }
    json_decref(all);
}

/* Returns the largest difference between recorded and computed values of the rollouts' tokens. */
static double tokens_off(const struct batch *b, const json_t *rollouts, const float *got, double factor)
{
    double most = 0;
    assert_int_equal((int64_t)json_array_size(rollouts), b->n_rollouts);
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const json_t *row = json_array_get(rollouts, (size_t)i);
        assert_int_equal((int64_t)json_array_size(row), b->token_begin[i + 1] - b->token_begin[i]);
        for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) {
            const double off = fabs(factor * (double)got[t] - number(row, t - b->token_begin[i]));
            most = off > most || isnan(off) ? off : most;
        }
    }
    return most;
}

/* The reference's logprobs are those of the case, so the rewards are computed here; the engine
 * computes everything after them. */
static void process_columns(struct step *s, struct batch *b, double beta, struct arena *a)
{
    assert_ok(arena_new(a, &b->process_reward, b->n_tokens, &e), &e);
    assert_ok(arena_new(a, &b->segment, b->n_tokens, &e), &e);
    assert_ok(arena_new(a, &b->segment_reward, b->n_tokens, &e), &e);
    b->process_ref = b->ref_logprob;
    assert_ok(update_logprobs(s->t, s->m, b, b->process_reward, NULL, &e), &e);
    for (int64_t t = 0; t < b->n_tokens; t++)
        b->process_reward[t] = (float)(beta * ((double)b->process_reward[t] - (double)b->process_ref[t]));
    for (int64_t i = 0; i < b->n_rollouts; i++)
        for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) b->segment[t] = (int32_t)(t - b->token_begin[i]) + 1;
    process_reward_normed(b, &s->config.process_reward, b->segment_reward);
}

/* Checks PRIME: token rewards, advantages, and the loss and gradient of the process reward model
 * (tests/data/systems/make.py). */
static void prime__has_the_numbers_of_the_released_code(void **state)
{
    (void)state;
    json_t *all, *keys = json_pack("[s]", "estimator.plugin=prime");
    struct step s;
    struct batch b;
    struct arena a;
    struct process_reward_report r;
    int64_t numbers = 0;
    assert_ok(json_read_file(source_file("systems/cases.json"), &all, &e), &e);
    const json_t *c = json_object_get(all, "prime"), *outcome = json_object_get(c, "outcome");
    const double beta = json_number_value(json_object_get(c, "beta"));
    arena_init(&a, "rollouts");
    read_batch(json_object_get(all, "rollouts"), &a, &b);
    for (int64_t i = 0; i < b.n_rollouts; i++) b.reward[i] = number(outcome, i);
    step_open(&s, "as=", keys, b.n_rollouts);
    assert_true(s.config.process_reward.beta == beta);
    process_columns(&s, &b, beta, &a);
    const double scores = tokens_off(&b, json_object_get(c, "scores"), b.process_reward, 1 / beta);
    double accuracy;
    assert_ok(process_reward_accuracy(&b, &a, &accuracy, &e), &e);
    accuracy = fabs(accuracy - json_number_value(json_object_get(c, "accuracy")));
    assert_ok(estimate_run(s.estimator, &b, &a, &e), &e);
    const double advantages = tokens_off(&b, json_object_get(c, "advantages"), b.token_advantage, 1);
    assert_ok(process_reward_update(s.t, &b, &s.config.process_reward, &r, &e), &e);
    const double loss = fabs(r.loss - json_number_value(json_object_get(c, "loss")));
    const double norm = fabs(r.grad_norm - json_number_value(json_object_get(c, "norm")));
    const double off =
        gradient_off(&s, json_object_get(c, "gradient"), json_integer_value(json_object_get(all, "stride")), &numbers);
    printf("prime: scores off by %.2g, accuracy by %.2g, advantages by %.2g, loss %.9g by %.2g, norm %.9g by %.2g, %lld numbers of "
           "the gradient "
           "by %.2g at most\n",
           scores, accuracy, advantages, r.loss, loss, r.grad_norm, norm, (long long)numbers, off);
    assert_true(scores <= 1e-5 && accuracy <= 1e-12 && advantages <= 1e-5);
    assert_true(loss <= 1e-5 && norm <= 1e-5 && off <= 1e-5 && numbers > 400);
    assert_int_equal(r.optimizer_steps, 1);
    assert_int_equal(r.rollouts, b.n_rollouts);
    step_close(&s);
    arena_free(&a);
    json_decref(keys);
    json_decref(all);
}

/* If log phi equals log ref, all returns are 0 and the loss is log 2 for all outcomes; a rollout
 * without weight is not trained on. */
static void prime__begins_at_log_2(void **state)
{
    (void)state;
    json_t *all, *keys = json_pack("[ss]", "process_reward.minibatch=4", "estimator.plugin=grpo");
    struct step s;
    struct batch b;
    struct arena a;
    struct process_reward_report r;
    assert_ok(json_read_file(source_file("systems/cases.json"), &all, &e), &e);
    arena_init(&a, "rollouts");
    read_batch(json_object_get(all, "rollouts"), &a, &b);
    step_open(&s, "as=", keys, b.n_rollouts);
    s.train.lr = 0;
    s.t->reference = s.m;
    assert_ok(arena_new(&a, &b.process_reward, b.n_tokens, &e), &e);
    assert_ok(arena_new(&a, &b.process_ref, b.n_tokens, &e), &e);
    assert_ok(arena_new(&a, &b.rollout_weight, b.n_rollouts, &e), &e);
    for (int64_t i = 1; i < b.n_rollouts; i++) b.rollout_weight[i] = 1;
    assert_ok(process_reward_compute(s.t, &b, 0.05, b.process_reward, b.process_ref, &e), &e);
    for (int64_t t = 0; t < b.n_tokens; t++) assert_true(b.process_reward[t] == 0);
    assert_ok(process_reward_update(s.t, &b, &s.config.process_reward, &r, &e), &e);
    assert_int_equal(r.optimizer_steps, 4); /* one for each group */
    assert_int_equal(r.rollouts, b.n_rollouts - 1);
    assert_true(fabs(r.loss - log(2)) < 1e-12);
    s.t->reference = NULL;
    step_close(&s);
    arena_free(&a);
    json_decref(keys);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recipes__have_the_loss_and_gradient_of_the_trainers),
                                       cmocka_unit_test(prime__has_the_numbers_of_the_released_code),
                                       cmocka_unit_test(prime__begins_at_log_2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
