/* Score functions of a small model against the real update: the gradient of update_run for a
 * resampled batch equals that of measure's sums, for every aggregation, with rollouts and groups of
 * zero weight. Sketches of both agree within their error. */
#include "rig.h"

#include "base/rng.h"
#include "batch/select.h"
#include "update/update.h"

#include <tare/verifier.h>

enum { P = 3, N = 8, LONGEST = 9, G = 2, ROUNDS = 2 };

static void fill_batch(struct rig *r)
{
    const struct rng_key key = rng_key(3, RNG_TRAIN);
    struct err e = {0};
    struct batch *b = &r->b;
    uint64_t n = 0;
    *b = update_batch(&r->a, P, P * N, P * LONGEST, P * N * LONGEST);
    b->n_components = 1;
    assert_ok(batch_alloc(b, BATCH_VERIFY | BATCH_CLUSTER, &r->a, &e), &e);
    for (int64_t m = 0; m < P; m++) {
        b->prompt_uid[m] = (uint64_t)m + 1;
        b->group_begin[m + 1] = (m + 1) * N;
        b->prompt_begin[m + 1] = b->prompt_begin[m] + 3 + m;
        for (int64_t i = b->prompt_begin[m]; i < b->prompt_begin[m + 1]; i++) b->prompt_ids[i] = (int32_t)rng_below(key, n++, 97);
        for (int64_t i = m * N; i < (m + 1) * N; i++) {
            b->token_begin[i + 1] = b->token_begin[i] + 1 + (int64_t)rng_below(key, n++, LONGEST);
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) b->ids[t] = (int32_t)rng_below(key, n++, 97);
            b->reward[i] = rng_below(key, n++, 2) ? 1 : 0;
            b->verdict[i] = b->component_verdict[i] = b->reward[i] > 0 ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
        }
    }
    b->n_tokens = b->token_begin[P * N];
}

static struct rig open_rig(enum aggregation aggregation)
{
    struct rig r = rig_open(aggregation, LONGEST, true);
    fill_batch(&r);
    return r;
}

/* Add mean times share of the real update's gradient: with beta1 the first moment is (1 - beta1)
 * times minus the gradient. Return its square. */
static double real_gradient(struct rig *r, struct batch *b, double *mean, double share)
{
    struct err e = {0};
    struct update_report report;
    double square = 0;
    /* the gradient computed by update_score */
    r->m->k->backend->zero(&r->m->ctx, r->t->grads.sum, r->t->grads.sum_bytes);
    memset(r->t->moment1, 0, (size_t)r->m->n_params * sizeof(float));
    assert_ok(update_run(r->t, b, &report, &e), &e);
    for (int64_t j = 0; j < r->m->n_params; j++) {
        const double g = -(double)r->t->moment1[j] / (1 - r->train.beta1);
        mean[j] += share * g;
        square += g * g;
    }
    return square;
}

static void against_updates(enum aggregation aggregation, const char *name)
{
    struct err e = {0};
    struct config config = {.run.plugins = ""};
    struct rig r = open_rig(aggregation);
    rig_train(&r);
    struct variance_pool p = rig_pool(&r, &r.b, 0);
    struct method method = {.label = name};
    const struct method_place place = {.config = &config, .where = "made"};
    assert_ok(plugin_open(name, TARE_KIND_ESTIMATOR, NULL, &method.plugin, &e), &e);
    const struct variance_case c = {
        .pool = &p, .method = &method, .place = &place, .size = G, .batch = P, .rounds = ROUNDS, .seed = 5};
    struct picks picks;
    struct sums s;
    struct estimator *est;
    double *mean, squares = 0, off = 0, all = 0;
    assert_ok(measure(&c, &r.a, &s, &e), &e);
    assert_ok(variance_picks_new(&c, &r.a, &picks, &e), &e);
    assert_ok(method_open(&method, &place, STATE_NONE, &est, &e), &e);
    for (int h = 0; h < 2; h++) {
        assert_ok(arena_new(&r.a, &mean, r.m->n_params, &e), &e);
        for (int64_t k = 0; k < ROUNDS; k++) {
            struct batch b;
            groups_pick(&c, h, false, k, &picks);
            assert_ok(batch_regroup(&p.batch, (struct batch_indices){picks.prompt, P}, (struct batch_indices){picks.rollout, P * G},
                                    &r.a, &b, &e),
                      &e);
            b.step = 1;
            assert_ok(estimate_run(est, &b, &r.a, &e), &e);
            squares += real_gradient(&r, &b, mean, 1.0 / ROUNDS) / (2 * ROUNDS);
        }
        for (int64_t j = 0; j < r.m->n_params; j++) {
            double x = 0;
            for (int64_t m = 0; m < P; m++) x += s.mean[h][m * p.width + j] / P;
            off += (x - mean[j]) * (x - mean[j]), all += mean[j] * mean[j];
        }
    }
    printf("%s, aggregation %d: mean gradient off by %.2e of its length, E |ghat|^2 %.6g and %.6g\n", name, (int)aggregation,
           sqrt(off / all), s.batch_square, squares);
    assert_true(all > 0 && sqrt(off / all) < 1e-4);
    assert_true(fabs(s.batch_square / squares - 1) < 1e-4);
    estimate_free(est);
    pool_close(&p);
    rig_close(&r);
}

static void sums__are_the_gradients_of_updates(void **state)
{
    (void)state;
    const enum aggregation all[] = {AGGREGATE_SEQUENCE, AGGREGATE_TOKEN, AGGREGATE_CONSTANT};
    for (int k = 0; k < 3; k++) {
        against_updates(all[k], "grpo");
        against_updates(all[k], "dapo"); /* drops groups whose rewards are equal */
        against_updates(all[k], "opo");
    }
}

static void sketches__agree_with_whole_gradients(void **state)
{
    (void)state;
    struct rig r = open_rig(AGGREGATE_SEQUENCE);
    rig_train(&r);
    struct variance_pool whole = rig_pool(&r, &r.b, 0), sketched = rig_pool(&r, &r.b, 4096);
    double off = 0, pairs = 0;
    for (int64_t i = 0; i < P * N; i++) {
        assert_true(whole.square[i] == sketched.square[i]);
        for (int64_t j = 0; j <= i; j++) {
            double x = 0, y = 0;
            for (int64_t d = 0; d < whole.width; d++)
                x += (double)whole.vector[i * whole.width + d] * (double)whole.vector[j * whole.width + d];
            for (int64_t d = 0; d < 4096; d++) y += (double)sketched.vector[i * 4096 + d] * (double)sketched.vector[j * 4096 + d];
            const double unit = whole.square[i] * whole.square[j] + x * x;
            off += (x - y) * (x - y) / unit * 4096, pairs++;
        }
    }
    printf("Gram of the sketches: off by %.3f of the stated error\n", sqrt(off / pairs));
    assert_true(sqrt(off / pairs) < 1.5 && sqrt(off / pairs) > 0.2);
    pool_close(&whole), pool_close(&sketched);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums__are_the_gradients_of_updates),
                                       cmocka_unit_test(sketches__agree_with_whole_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
