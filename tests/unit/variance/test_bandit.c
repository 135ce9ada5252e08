/* A bandit with a model as its policy: the gradient of the expected reward is known. With one
 * token, pi the policy of a context, R(a) the reward of token a and J = sum pi(a) R(a): dJ/dz_a =
 * pi(a) (R(a) - J) in the logits z, so the row of token a in the output matrix has the gradient
 * pi(a) (R(a) - J) h, with h the hidden state. In all weights the gradient is sum pi(a) R(a) grad
 * log pi(a), a sum over the vocabulary instead of rollouts. */
#include "pools.h"
#include "rig.h"
#include "update/score.h"

enum { CONTEXTS = 8, TOKENS = 97, ROLLOUTS = 2048, WIDTH = 512 };

struct bandit {
    struct rig r;
    double pi[CONTEXTS][TOKENS], J[CONTEXTS];
    double *exact[CONTEXTS]; /* [n_params] gradient of J[k] */
};

static int token_reward(int64_t context, int64_t token)
{
    return token % CONTEXTS == context;
}

/* Context k has the tokens 90, k. Its rollout i answers with token[k * each + i]. */
static struct batch one_token_batch(struct arena *a, int64_t each, const int32_t *token)
{
    struct err e = {0};
    struct batch b = update_batch(a, CONTEXTS, CONTEXTS * each, 2 * CONTEXTS, CONTEXTS * each);
    b.n_components = 1;
    assert_ok(batch_alloc(&b, BATCH_VERIFY | BATCH_CLUSTER, a, &e), &e);
    for (int64_t k = 0; k < CONTEXTS; k++) {
        b.prompt_uid[k] = (uint64_t)k + 1;
        b.prompt_begin[k + 1] = 2 * (k + 1);
        b.prompt_ids[2 * k] = 90, b.prompt_ids[2 * k + 1] = (int32_t)k;
        b.group_begin[k + 1] = (k + 1) * each;
        for (int64_t i = k * each; i < (k + 1) * each; i++) {
            b.token_begin[i + 1] = i + 1;
            b.ids[i] = token[i];
            b.reward[i] = token_reward(k, token[i]);
            b.verdict[i] = b.component_verdict[i] = token_reward(k, token[i]) ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
        }
    }
    b.n_tokens = CONTEXTS * each;
    return b;
}

static void bandit_open(struct bandit *x)
{
    struct err e = {0};
    int32_t token[CONTEXTS * TOKENS];
    for (int i = 0; i < CONTEXTS * TOKENS; i++) token[i] = i % TOKENS;
    x->r = rig_open(AGGREGATE_SEQUENCE, 1, false);
    x->r.b = one_token_batch(&x->r.a, TOKENS, token);
    rig_train(&x->r);
    for (int64_t k = 0; k < CONTEXTS; k++) {
        x->J[k] = 0;
        assert_ok(arena_new(&x->r.a, &x->exact[k], x->r.m->n_params, &e), &e);
        for (int64_t a = 0; a < TOKENS; a++) {
            x->pi[k][a] = exp((double)x->r.b.logprob[k * TOKENS + a]);
            x->J[k] += x->pi[k][a] * token_reward(k, a);
            if (!token_reward(k, a)) continue;
            assert_ok(update_score(x->r.t, &x->r.b, k, k * TOKENS + a, 1, &e), &e);
            for (int64_t j = 0; j < x->r.m->n_params; j++) x->exact[k][j] += x->pi[k][a] * (double)x->r.t->grads.sum[j];
        }
    }
}

/* Sample rollouts of the policy by the inverse of its distribution function. */
static struct variance_pool sampled_pool(struct bandit *x)
{
    static int32_t token[CONTEXTS * ROLLOUTS];
    for (int64_t k = 0; k < CONTEXTS; k++)
        for (int64_t i = 0; i < ROLLOUTS; i++) {
            double left = rng_uniform(rng_key(11, RNG_DATA), (uint64_t)(k * ROLLOUTS + i), 0);
            int32_t a = 0;
            while (a < TOKENS - 1 && (left -= x->pi[k][a]) > 0) a++;
            token[k * ROLLOUTS + i] = a;
        }
    const struct batch b = one_token_batch(&x->r.a, ROLLOUTS, token);
    return rig_pool(&x->r, &b, WIDTH);
}

/* The output matrix has the closed form in the logits. h is the change of the score from one more
 * logit: the row of token 0 in the score of 0, minus that in the score of 1. */
static void enumeration__is_the_closed_form(void **state)
{
    struct bandit x = {0};
    struct err e = {0};
    (void)state;
    bandit_open(&x);
    const int64_t C = x.r.m->shape.hidden, head = x.r.m->head;
    for (int64_t k = 0; k < CONTEXTS; k++) {
        double h[64], total = 0, off = 0, all = 0;
        for (int64_t a = 0; a < TOKENS; a++) total += x.pi[k][a];
        assert_true(fabs(total - 1) < 1e-5);
        for (int64_t a = 0; a < 2; a++) {
            assert_ok(update_score(x.r.t, &x.r.b, k, k * TOKENS + a, 1, &e), &e);
            for (int64_t c = 0; c < C; c++)
                h[c] = a ? h[c] - (double)x.r.t->grads.sum[head + c] : (double)x.r.t->grads.sum[head + c];
        }
        for (int64_t a = 0; a < TOKENS; a++)
            for (int64_t c = 0; c < C; c++) {
                const double closed = x.pi[k][a] * (token_reward(k, a) - x.J[k]) * h[c], made = x.exact[k][head + a * C + c];
                off += (closed - made) * (closed - made), all += closed * closed;
            }
        assert_true(all > 0 && sqrt(off / all) < 1e-4);
    }
    rig_close(&x.r);
}

/* |x - exact|^2 over its expected value, when x is the mean of two independent halves: E |A - B|^2
 * / 4. */
static double in_stated_errors(const double *A, const double *B, const float *exact)
{
    double off = 0, stated = 0;
    for (int64_t d = 0; d < WIDTH; d++) {
        const double gap = (A[d] + B[d]) / 2 - (double)exact[d];
        off += gap * gap, stated += (A[d] - B[d]) * (A[d] - B[d]) / 4;
    }
    return off / stated;
}

/* As above, for an estimator's mean gradient over thousands of groups of four. */
static double mean_in_stated_errors(const struct variance_pool *p, const char *name, const float *exact)
{
    struct err e = {0};
    struct arena a;
    struct sums s;
    struct config config = {.run.plugins = ""};
    double *mean[2];
    const struct method method = made_method(name);
    const struct method_place place = {.config = &config, .where = "made"};
    const struct variance_case c = {
        .pool = p, .method = &method, .place = &place, .size = 4, .batch = CONTEXTS, .rounds = 500, .seed = 3};
    arena_init(&a, "sums");
    assert_ok(measure(&c, &a, &s, &e), &e);
    for (int h = 0; h < 2; h++) {
        assert_ok(arena_new(&a, &mean[h], WIDTH, &e), &e);
        for (int64_t m = 0; m < CONTEXTS; m++)
            for (int64_t d = 0; d < WIDTH; d++) mean[h][d] += s.mean[h][m * WIDTH + d] / CONTEXTS;
    }
    const double ratio = in_stated_errors(mean[0], mean[1], exact);
    arena_free(&a);
    return ratio;
}

static void rollouts__agree_with_the_closed_form(void **state)
{
    struct bandit x = {0};
    struct err e = {0};
    struct sketch s;
    static float sum[1 << 20], exact[WIDTH];
    double square, length = 0;
    (void)state;
    bandit_open(&x);
    assert_true(x.r.m->n_params <= 1 << 20);
    for (int64_t j = 0; j < x.r.m->n_params; j++) {
        double mean = 0;
        for (int64_t k = 0; k < CONTEXTS; k++) mean += x.exact[k][j] / CONTEXTS;
        sum[j] = (float)mean;
    }
    struct variance_pool p = sampled_pool(&x);
    assert_ok(sketch_new(x.r.m->n_params, WIDTH, 1, &s, &e), &e);
    sketch_of(&s, NULL, sum, exact, &square);
    sketch_free(&s);
    for (int64_t d = 0; d < WIDTH; d++) length += (double)exact[d] * (double)exact[d];
    const struct result rloo = case_figures(&p, "rloo", 4, CONTEXTS, 200, 1);
    const double target = in_stated_errors(p.mean_target[0], p.mean_target[1], exact);
    const double unbiased = mean_in_stated_errors(&p, "rloo", exact), biased = mean_in_stated_errors(&p, "grpo", exact);
    printf("squared distance to the closed form in stated errors: g* %.2f, rloo %.2f, grpo %.2f; |g*|^2 %.4g [%.4g, %.4g], exactly "
           "%.4g\n",
           target, unbiased, biased, rloo.target.value, rloo.target.low, rloo.target.high, length);
    assert_true(target > 0.3 && target < 3);
    assert_true(unbiased > 0.3 && unbiased < 3);
    assert_true(biased > 3 && biased > 2 * unbiased);
    assert_true(rloo.target.low <= length && length <= rloo.target.high);
    assert_true(rloo.bias.low <= 0 && rloo.bias.high >= 0);
    pool_close(&p);
    rig_close(&x.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(enumeration__is_the_closed_form),
                                       cmocka_unit_test(rollouts__agree_with_the_closed_form)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
