/* Compares drawn tokens with the softmax they are drawn from: chi-square at fixed seeds,
 * untruncated and truncated. */
#include "rig.h"

#include <stdlib.h>

enum { DRAWS = 40000, MAX_VOCAB = 250 };

static float by_probability[MAX_VOCAB];

static int descending(const void *a, const void *b)
{
    const float p = by_probability[*(const int *)a], q = by_probability[*(const int *)b];
    return p > q ? -1 : p < q ? 1 : *(const int *)a - *(const int *)b;
}

/* Draws one token after one prompt DRAWS times; returns the counts and the softmax. */
static void draw_many(struct rig *r, const struct sample_params *p, int64_t *count, double *prob)
{
    struct err e = {0};
    struct sampler *s;
    struct sample_output out, every;
    const int64_t V = r->m->shape.vocab;
    const int32_t prompt[3] = {100, 17, 33};
    struct sample_request q = {.prompt = prompt, .prompt_len = 3, .n_samples = DRAWS, .prompt_uid = 3};
    assert_ok(sampler_new(r->m, 0, 0, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){p, rng_key(21, RNG_TRAIN), &q, 1, NULL, NULL}, &r->arena, &out, &e), &e);
    assert_int_equal(sampler_stats(s).decode_steps, 0);
    memset(count, 0, (size_t)V * sizeof *count);
    for (int64_t i = 0; i < out.n_tokens; i++) count[out.ids[i]]++;
    /* Every id is a completion of one token, with its logprob. */
    int32_t ids[MAX_VOCAB];
    int64_t begin[MAX_VOCAB + 1];
    for (int32_t v = 0; v < V; v++) ids[v] = v, begin[v] = v;
    begin[V] = V;
    every = (struct sample_output){.n = V, .n_tokens = V, .token_begin = begin, .ids = ids};
    q.n_samples = V;
    const float *logprob = rig_compute_logprobs(r, &q, 1, &every, (float)p->temperature, true).logprob;
    for (int64_t v = 0; v < V; v++) prob[v] = exp((double)logprob[v]);
    for (int64_t i = 0; i < out.n_tokens; i++)
        assert_memory_equal(&out.logprob[i], &logprob[out.ids[i]], sizeof *logprob); /* before truncation */
    sampler_free(s);
}

static void check_draws(struct rig *r, struct sample_params p, const char *what)
{
    int64_t count[MAX_VOCAB];
    double prob[MAX_VOCAB], kept = 0, sum = 0, chi = 0;
    int rank[MAX_VOCAB], n = 0, cells = 0;
    const int V = (int)r->m->shape.vocab;
    draw_many(r, &p, count, prob);
    for (int v = 0; v < V; v++) by_probability[v] = (float)prob[v], rank[v] = v;
    qsort(rank, (size_t)V, sizeof *rank, descending);
    const int k = p.top_k ? (int)p.top_k : V;
    double of_k = 0;
    for (int i = 0; i < k; i++) of_k += prob[rank[i]];
    /* The shortest prefix with that mass. */
    while (n < k && sum < p.top_p * of_k) sum += prob[rank[n++]];
    while (n > 1 && prob[rank[n - 1]] < p.min_p * prob[rank[0]]) n--;
    for (int i = 0; i < n; i++) kept += prob[rank[i]];
    double rest_expected = 0, rest_seen = 0;
    for (int i = 0; i < V; i++) {
        const double expected = i < n ? DRAWS * prob[rank[i]] / kept : 0;
        if (i >= n)
            assert_int_equal(count[rank[i]], 0);
        else if (expected < 5)
            rest_expected += expected, rest_seen += (double)count[rank[i]];
        else
            chi += pow((double)count[rank[i]] - expected, 2) / expected, cells++;
    }
    if (rest_expected >= 5) chi += pow(rest_seen - rest_expected, 2) / rest_expected, cells++;
    /* A chi-square of f degrees has mean f and variance 2 f: allow slightly more than five
     * deviations. */
    const double f = cells - 1, bound = f + 5 * sqrt(2 * f) + 5;
    printf("%-28s %3d of %d tokens kept, chi-square %.1f of %.0f degrees\n", what, n, V, chi, f);
    if (chi > bound) fail_msg("%s: chi-square %.1f with %.0f degrees", what, chi, f);
    assert_true(n == V || n < V / 2);
    arena_reset(&r->arena);
}

static void test_draws(void **state)
{
    struct rig r;
    (void)state;
    rig_new(&r, "qwen2", "f32", 2, 12);
    struct sample_params p = rig_params(1, 1);
    check_draws(&r, p, "softmax");
    p.temperature = 0.6;
    check_draws(&r, p, "temperature 0.6");
    p.top_k = 7;
    check_draws(&r, p, "top-k 7");
    p.top_k = 0, p.top_p = 0.6;
    check_draws(&r, p, "top-p 0.6");
    p.top_p = 1, p.min_p = 0.2;
    check_draws(&r, p, "min-p 0.2");
    p.top_k = 30, p.top_p = 0.8, p.min_p = 0.15;
    check_draws(&r, p, "top-k 30, top-p 0.8, min-p 0.15");
    p.top_k = 1;
    check_draws(&r, p, "top-k 1");
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_draws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
