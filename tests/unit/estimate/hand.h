/* Estimators on cases that were computed by hand: the cases, and the code that runs them. */
#ifndef TARE_TESTS_HAND_H
#define TARE_TESTS_HAND_H

#include "check.h"

#include "estimate/estimate.h"

#include <math.h>
#include <string.h>

static struct err e;

enum { MOST = 6 };

/* Steps, one after the other with the state kept between them, and the expected outputs of the last
 * one. NULL: not compared. */
struct hand {
    const char *name, *plugin, *parameters[MOST];
    int64_t clusters;
    const char *steps[MOST];
    const char *advantages, *baseline, *scale, *confidence, *tokens, *weights;
    int64_t refill;
};

static inline struct estimator *open_case(const struct hand *h)
{
    const struct plugin *p;
    const struct config_param *settings;
    struct estimator *est;
    struct arena a;
    int64_t n = 0;
    while (n < MOST && h->parameters[n]) n++;
    arena_init(&a, "test");
    assert_ok(plugin_open(h->plugin, TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_ok(plugin_settings(p, (struct plugin_words){h->parameters, n}, NULL, &a, &settings, &e), &e);
    const struct estimate_options o = {.plugin = h->plugin, .settings = settings, .n_clusters = h->clusters};
    assert_ok(estimate_open(&o, &est, &e), &e);
    arena_free(&a);
    return est;
}

/* Reads the numbers of a text, "nan" among them. */
static inline void compare(const struct hand *h, const char *what, const char *want, const double *got, int64_t n)
{
    if (!want) return;
    const char *at = want;
    for (int64_t i = 0; i < n; i++) {
        char *end;
        const double x = strtod(at, &end);
        if (end == at) fail_msg("%s: %s: %lld numbers are expected, there are %lld", h->name, what, (long long)i, (long long)n);
        if (isnan(x) ? !isnan(got[i]) : !(fabs(got[i] - x) <= 1e-9 * fmax(1, fabs(x))))
            fail_msg("%s: %s: number %lld is %.17g, by hand %.17g", h->name, what, (long long)i, got[i], x);
        at = end;
    }
    while (*at == ' ') at++;
    if (*at) fail_msg("%s: %s: more than %lld numbers are expected", h->name, what, (long long)n);
}

static inline void check(const struct hand *h)
{
    struct estimator *est = open_case(h);
    for (int s = 0; s < MOST && h->steps[s]; s++) {
        struct arena a;
        struct batch b;
        json_t *step;
        double tokens[64];
        arena_init(&a, "test");
        assert_ok(json_parse(h->steps[s], (int64_t)strlen(h->steps[s]), h->name, &step, &e), &e);
        assert_ok(estimate_parse(step, h->name, &a, &b, &e), &e);
        assert_ok(estimate_run(est, &b, &a, &e), &e);
        if (s + 1 == MOST || !h->steps[s + 1]) {
            assert_true(b.n_tokens <= 64);
            for (int64_t t = 0; t < b.n_tokens; t++) tokens[t] = b.token_advantage ? (double)b.token_advantage[t] : NAN;
            compare(h, "advantages", h->advantages, b.advantage, b.n_rollouts);
            compare(h, "baseline", h->baseline, b.baseline, b.n_groups);
            compare(h, "scale", h->scale, b.scale, b.n_groups);
            compare(h, "confidence", h->confidence, b.confidence, b.n_groups);
            compare(h, "weights", h->weights, b.rollout_weight, b.n_rollouts);
            if (h->tokens) compare(h, "tokens", h->tokens, tokens, b.n_tokens);
            if (estimate_metrics(est)->extra_groups != h->refill)
                fail_msg("%s: %lld groups to refill, by hand %lld", h->name, (long long)estimate_metrics(est)->extra_groups,
                         (long long)h->refill);
        }
        assert_ok(estimate_apply(est, &(struct estimate_update){.step = s}, &e), &e);
        json_decref(step);
        arena_free(&a);
    }
    estimate_free(est);
}

static inline void check_all(const struct hand *h, size_t n)
{
    for (size_t i = 0; i < n; i++) check(&h[i]);
}
#define CHECK_ALL(CASES) check_all(CASES, sizeof CASES / sizeof *CASES)

#endif
