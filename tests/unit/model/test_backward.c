/* Compares the gradient of every tensor with central differences of the loss, on models that need
 * no files. */
#include "small.h"

#include "model/grads.h"
#include "model/pack.h"

enum { VOCAB = 97, TARGETS = 64 };

struct problem {
    struct model *m;
    struct packed_batch p;
    struct kv_cache cache;
    struct arena plan, acts;
};

static void problem_new(struct problem *q, const char *arch, bool tied)
{
    static const int32_t ids[] = {3,  14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32,
                                  79, 50, 28, 84, 19, 71, 69, 39, 93, 75, 10, 58, 20, 96, 94};
    static const int32_t *const completion[] = {ids + 5, ids + 11, ids + 20, ids + 2};
    static const int64_t len[] = {4, 9, 1, 19};
    static const struct pack_group groups[] = {{ids, 19, 3, completion, len, NULL},
                                               {ids + 4, 16, 1, completion + 3, len + 3, NULL}};
    struct err e = {0};
    q->m = small_model(arch, tied, NULL);
    arena_init(&q->plan, "plan");
    arena_init(&q->acts, "acts");
    assert_ok(pack_groups(groups, 2, true, &q->plan, &q->p, &e), &e);
    assert_true(q->p.n_targets <= TARGETS);
    assert_ok(kv_cache_new(q->m, 1, q->p.n_blocks, &q->cache, &e), &e);
}

static void problem_free(struct problem *q)
{
    kv_cache_free(q->m, &q->cache);
    arena_free(&q->plan);
    arena_free(&q->acts);
    model_free(q->m);
}

/* L = sum_i a_i logp_i + b_i H_i; grads NULL: forward only. */
static double loss(struct problem *q, struct grads *grads)
{
    struct err e = {0};
    struct train_pass *pass;
    float *hidden, *logits, *dhidden, logprob[TARGETS], entropy[TARGETS], lse[2 * TARGETS];
    struct head_grad_row coef[TARGETS];
    struct model *m = q->m;
    const int64_t n = q->p.n_targets;
    double sum = 0;
    arena_reset(&q->acts);
    assert_ok(model_train_forward(
                  m,
                  &(struct train_input){&q->cache, &q->p.forward, q->p.segs, q->p.n_segs, grads ? RECOMPUTE_LAYER : RECOMPUTE_NONE},
                  &q->acts, &pass, &hidden, &e),
              &e);
    assert_ok(arena_new(&q->acts, &logits, n * VOCAB, &e), &e);
    model_logits(m, hidden, n, logits);
    KERNEL(m->k, &m->ctx, head_stats, .logprob = logprob, .entropy = entropy, .lse = lse, .logits = logits, .target = q->p.target,
           .temperature = 0.8f, .r = n, .v = VOCAB);
    for (int64_t i = 0; i < n; i++) {
        coef[i] = (struct head_grad_row){.logprob = (float)cos((double)i), .entropy = (float)sin(2.0 * (double)i)};
        sum += (double)coef[i].logprob * (double)logprob[i] + (double)coef[i].entropy * (double)entropy[i];
    }
    if (!grads) return sum;
    KERNEL(m->k, &m->ctx, head_grad, .logits = logits, .target = q->p.target, .lse = lse, .entropy = entropy, .coef = coef,
           .temperature = 0.8f, .r = n, .v = VOCAB);
    assert_ok(arena_new(&q->acts, &dhidden, n * m->shape.hidden, &e), &e);
    model_backward_begin(m, grads);
    model_logits_grad(m, &(struct logits_grad){logits, hidden, n, dhidden}, grads);
    assert_ok(model_backward(m, pass, dhidden, grads, &e), &e);
    return sum;
}

/* Computes dL/ds of w + s g/|g| for one tensor, by the five-point rule. */
static double slope(struct problem *q, const struct tensor *t, const float *g, double norm, double step)
{
    static const double at[] = {-2, -1, 1, 2}, weight[] = {1, -8, 8, -1};
    const int64_t n = t->rows * t->cols;
    float *w = q->m->weights + t->offset, *keep = malloc((size_t)n * 4);
    double sum = 0;
    memcpy(keep, w, (size_t)n * 4);
    for (int i = 0; i < 4; i++) {
        for (int64_t j = 0; j < n; j++) w[j] = (float)((double)keep[j] + at[i] * step * (double)g[j] / norm);
        model_refresh(q->m, NULL);
        sum += weight[i] * loss(q, NULL);
    }
    memcpy(w, keep, (size_t)n * 4);
    model_refresh(q->m, NULL);
    free(keep);
    return sum / (12 * step);
}

static void gradients_match_differences(void **state)
{
    (void)state;
    for (int arch = 0; arch < 6; arch++) {
        struct problem q;
        problem_new(&q, SMALL_ARCHS[arch % 3], arch < 3);
        struct err e = {0};
        struct grads grads;
        double worst = 0;
        assert_ok(grads_new(q.m, &grads, &e), &e);
        loss(&q, &grads);
        for (int64_t i = 0; i < q.m->n_tensors; i++) {
            const struct tensor *t = &q.m->tensors[i];
            const float *g = grads.sum + t->offset;
            double norm = 0;
            for (int64_t j = 0; j < t->rows * t->cols; j++) norm += (double)g[j] * (double)g[j];
            norm = sqrt(norm);
            assert_true(norm > 0 || strstr(t->name, "k_proj.bias"));
            /* The differences would be rounding errors: a key's bias shifts all attention scores of
             * a query equally, except for the rotation. */
            if (norm < 1e-2) continue;
            const double d = fabs(slope(&q, t, g, norm, 4e-3) / norm - 1);
            if (d > worst) worst = d;
            if (!(d < 5e-3))
                fail_msg("%s: %s: the slope differs by %g of the gradient's norm %g", SMALL_ARCHS[arch % 3], t->name, d, norm);
        }
        printf("%s: worst relative difference %.1e\n", SMALL_ARCHS[arch % 3], worst);
        grads_free(&grads);
        problem_free(&q);
    }
}

static void gradients_accumulate(void **state)
{
    (void)state;
    struct problem q;
    problem_new(&q, "qwen3", true);
    const int64_t n = q.m->n_params;
    struct err e = {0};
    struct grads first, second;
    assert_ok(grads_new(q.m, &first, &e), &e);
    assert_ok(grads_new(q.m, &second, &e), &e);
    const float *once = first.sum, *twice = second.sum;
    double d = 0, s = 0;
    loss(&q, &first);
    loss(&q, &second);
    assert_memory_equal(once, twice, (size_t)n * 4);
    loss(&q, &second);
    for (int64_t i = 0; i < n; i++) d += pow((double)twice[i] - 2 * (double)once[i], 2), s += pow(2 * (double)once[i], 2);
    assert_true(sqrt(d / s) < 1e-5);
    grads_free(&first);
    grads_free(&second);
    problem_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_match_differences), cmocka_unit_test(gradients_accumulate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
