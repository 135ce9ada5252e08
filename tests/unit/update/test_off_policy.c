/* Off-policy tokens: the value of the shaped term from the logprobs, its gradient by differences,
 * and sampled tokens in the same batch unchanged. */
#include "engine.h"
#include "objective.h"

#include "../model/small.h"
#include "update/update.h"

enum { N = 3, TOKENS = 12 };

static int32_t prompt[3] = {11, 12, 13}, ids[TOKENS] = {20, 31, 42, 2, 50, 61, 72, 2, 33, 44, 55, 2};
static int64_t group_begin[2] = {0, N}, prompt_begin[2] = {0, 3}, token_begin[N + 1] = {0, 4, 8, TOKENS};
static double advantage[N] = {0.7, -0.4, 1.3}, rollout_weight[N] = {1, 1, 1};
static float old[TOKENS], entropy[TOKENS];

static struct batch batch_of(uint8_t *off_policy)
{
    return (struct batch){.n_groups = 1,
                          .n_rollouts = N,
                          .n_tokens = TOKENS,
                          .group_begin = group_begin,
                          .prompt_begin = prompt_begin,
                          .prompt_ids = prompt,
                          .token_begin = token_begin,
                          .ids = ids,
                          .logprob = old,
                          .entropy = entropy,
                          .advantage = advantage,
                          .rollout_weight = rollout_weight,
                          .off_policy = off_policy};
}

static struct trainer *trainer_of(struct model *m)
{
    struct err e = {0};
    struct trainer *t;
    static struct train_config train; /* must outlive the trainer */
    static struct loss_config loss;
    train = plain_train(N, 1000);
    loss = plain_loss(AGGREGATE_SEQUENCE);
    train.lr = train.max_grad_norm = 0;
    loss.shaping = 0.1;
    assert_ok(trainer_new(m, &(struct trainer_options){NULL, &train, &loss, 1, 1, 10}, &t, &e), &e);
    set_objective(t, "ppo", NULL);
    return t;
}

static double loss_of(struct model *m, struct batch *b, struct trainer **kept)
{
    struct err e = {0};
    struct trainer *t = trainer_of(m);
    struct update_report r;
    assert_ok(update_run(t, b, &r, &e), &e);
    if (kept)
        *kept = t;
    else
        free_trainer(t);
    return r.loss;
}

static void test_shaped(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m = small_model("qwen2", true, NULL);
    struct trainer *t = trainer_of(m);
    uint8_t off[N] = {0, 0, 1}, all_off[N] = {1, 1, 1};
    struct batch b = batch_of(off);
    float logp[TOKENS];
    assert_ok(update_logprobs(t, m, &b, logp, NULL, &e), &e);
    free_trainer(t);
    memcpy(old, logp, sizeof old);
    /* A trace has no old logprobs. */
    for (int i = token_begin[2] > 0 ? (int)token_begin[2] : 0; i < TOKENS; i++) old[i] = 0;
    double want = 0;
    for (int i = 0; i < N; i++)
        for (int64_t k = token_begin[i]; k < token_begin[i + 1]; k++) {
            const double pi = exp((double)logp[k]), f = off[i] ? pi / (pi + 0.1) : 1; /* the ratio of a sampled token is 1 */
            want -= f * advantage[i] / 4 / N;
        }
    assert_true(fabs(loss_of(m, &b, NULL) - want) < 1e-6);

    /* Compares the gradient (the first moment of one AdamW step, over 1 - beta1) with the loss
     * along it. */
    b = batch_of(all_off);
    loss_of(m, &b, &t);
    double norm = 0;
    for (int64_t i = 0; i < m->n_params; i++) norm += (double)t->moment1[i] * (double)t->moment1[i];
    norm = sqrt(norm);
    const double h = 2e-3;
    double side[2];
    for (int s = 0; s < 2; s++) {
        for (int64_t i = 0; i < m->n_params; i++) m->weights[i] += (float)((s ? -2 : 1) * h * (double)t->moment1[i] / norm);
        model_refresh(m, NULL);
        side[s] = loss_of(m, &b, NULL);
    }
    const double slope = (side[0] - side[1]) / (2 * h), gradient = norm / 0.1;
    if (!(gradient > 1e-3 && fabs(slope - gradient) < 0.01 * gradient)) fail_msg("slope %g, gradient %g", slope, gradient);
    free_trainer(t);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shaped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
