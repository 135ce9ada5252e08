/* The estimators as shared objects, through the ABI: reference cases, exact zeros, conventions, state. */
#include "check.h"

#include "base/fs.h"
#include "estimate/estimate.h"

#include <math.h>
#include <string.h>

static struct err e;

/* An estimator with parameters from "key=value" strings. */
static struct estimator *open_with(const char *name, const char *const *assignments, int64_t n, int64_t clusters)
{
    const struct plugin *p;
    const struct config_param *settings;
    struct estimator *est;
    struct arena a;
    arena_init(&a, "test");
    assert_ok(plugin_open(name, TARE_ESTIMATOR, NULL, &p, &e), &e);
    assert_ok(plugin_settings(p, assignments, n, NULL, &a, &settings, &e), &e);
    const struct estimate_options o = {.plugin = name, .settings = settings, .n_clusters = clusters};
    assert_ok(estimate_open(&o, &est, &e), &e);
    arena_free(&a);
    return est;
}

static struct estimator *open_case(const char *name, const json_t *params, int64_t clusters)
{
    char texts[32][64], number[32];
    const char *assignments[32];
    const char *key;
    json_t *value;
    int64_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)params, key, value)
    {
        if (json_is_string(value))
            snprintf(texts[n], sizeof texts[n], "%s=%s", key, json_string_value(value));
        else
            snprintf(texts[n], sizeof texts[n], "%s=%s", key, str_from_double(number, json_number_value(value)));
        assignments[n] = texts[n];
        n++;
    }
    return open_with(name, assignments, n, clusters);
}

struct tally {
    int64_t cases, numbers;
    double worst; /* error as a share of what is allowed */
};

static void compare(double got, const json_t *want, double tolerance, const char *what, struct tally *t)
{
    const double w = json_number_value(want), allowed = tolerance * fmax(1, fabs(w)), off = fabs(got - w);
    if (!(off <= allowed)) fail_msg("%s: %.17g, expected %.17g", what, got, w);
    t->worst = fmax(t->worst, off / allowed);
    t->numbers++;
}

static void check_step(struct estimator *est, const json_t *step, const char *where, double tolerance, struct tally *t)
{
    struct arena a;
    struct batch b;
    char what[256];
    size_t m, i;
    json_t *row, *want;
    arena_init(&a, "test");
    assert_ok(estimate_parse(step, where, &a, &b, &e), &e);
    assert_ok(estimate_run(est, &b, &a, &e), &e);
    json_array_foreach(json_object_get(step, "advantages"), m, row)
    {
        json_array_foreach(row, i, want)
        {
            snprintf(what, sizeof what, "%s: advantage of group %zu, rollout %zu", where, m, i);
            compare(b.advantage[b.group_begin[m] + (int64_t)i], want, tolerance, what, t);
        }
        snprintf(what, sizeof what, "%s: baseline, scale, weight of group %zu", where, m);
        compare(b.baseline[m], json_array_get(json_object_get(step, "baseline"), m), tolerance, what, t);
        /* the reference has 1 for estimators that divide by nothing, the ABI NaN */
        compare(isnan(b.scale[m]) ? 1 : b.scale[m], json_array_get(json_object_get(step, "scale"), m), tolerance, what, t);
        compare(b.confidence[m], json_array_get(json_object_get(step, "weight"), m), tolerance, what, t);
    }
    assert_ok(estimate_apply(est, b.step, &e), &e);
    arena_free(&a);
}

static void check_state(const struct estimator *est, const json_t *want, const char *where, double tolerance, struct tally *t)
{
    struct str text = {0};
    json_t *got, *list;
    const char *key;
    assert_ok(estimate_describe(est, &text, &e), &e);
    assert_ok(json_parse(text.data, text.size, where, &got, &e), &e);
    json_object_foreach((json_t *)(uintptr_t)want, key, list)
    {
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *x = json_array_get(json_object_get(got, key), k), *w = json_array_get(list, k);
            if (json_is_boolean(w))
                assert_int_equal(json_is_true(x), json_is_true(w));
            else
                compare(json_number_value(x), w, tolerance, where, t);
        }
    }
    json_decref(got);
    str_free(&text);
}

static tare_status check_case(void *ctx, const json_t *object, const char *where, struct err *err)
{
    (void)err;
    struct tally *t = ctx;
    const char *name = json_text_or(object, "estimator", "");
    struct estimator *est = open_case(name, json_object_get(object, "params"), json_int_or(object, "clusters", 0));
    size_t s, m, i;
    json_t *step, *group, *reward;
    double largest = 0;
    json_array_foreach(json_object_get(object, "steps"), s, step) json_array_foreach(json_object_get(step, "groups"), m, group)
        json_array_foreach(json_object_get(group, "rewards"), i, reward) largest = fmax(largest, fabs(json_number_value(reward)));
    const double tolerance = largest > 1e5 ? 1e-7 : 1e-9;
    json_array_foreach(json_object_get(object, "steps"), s, step)
    {
        check_step(est, step, where, tolerance, t);
        if (json_object_get(step, "state_after")) check_state(est, json_object_get(step, "state_after"), where, tolerance, t);
    }
    estimate_free(est);
    t->cases++;
    return TARE_OK;
}

static void reference(const char *file)
{
    struct tally t = {0};
    const char *path = shared_or_skip(file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_ok(json_each_line(f, file, check_case, &t, &e), &e);
    fclose(f);
    assert_true(t.cases >= 20);
    printf("%s: %lld cases, %lld numbers, worst %.2g of the tolerance\n", file, (long long)t.cases, (long long)t.numbers, t.worst);
}

static void reference__grpo(void **state) { (void)state, reference("data/estimators/grpo.jsonl"); }
static void reference__dr_grpo(void **state) { (void)state, reference("data/estimators/dr_grpo.jsonl"); }
static void reference__rloo(void **state) { (void)state, reference("data/estimators/rloo.jsonl"); }
static void reference__bv_blend(void **state) { (void)state, reference("data/estimators/bv_blend.jsonl"); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference__grpo),
        cmocka_unit_test(reference__dr_grpo),
        cmocka_unit_test(reference__rloo),
        cmocka_unit_test(reference__bv_blend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
