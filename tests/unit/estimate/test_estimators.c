/* The estimators as shared objects, through the ABI: reference cases, exact zeros, conventions,
 * state. */
#include "check.h"

#include "base/fs.h"
#include "estimate/estimate.h"

#include <math.h>
#include <string.h>

static struct err e;

/* Makes an estimator with parameters from "key=value" strings. */
static struct estimator *open_with(const char *name, const char *const *assignments, int64_t n, int64_t clusters)
{
    const struct plugin *p;
    const struct config_param *settings;
    struct estimator *est;
    struct arena a;
    arena_init(&a, "test");
    assert_ok(plugin_open(name, TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_ok(plugin_settings(p, (struct plugin_words){assignments, n}, NULL, &a, &settings, &e), &e);
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
    double worst; /* error relative to the tolerance */
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
        /* estimators without a scale have 1 in the reference and NaN in the ABI */
        compare(isnan(b.scale[m]) ? 1 : b.scale[m], json_array_get(json_object_get(step, "scale"), m), tolerance, what, t);
        compare(b.confidence[m], json_array_get(json_object_get(step, "weight"), m), tolerance, what, t);
    }
    assert_ok(estimate_apply(est, &(struct estimate_update){.step = b.step}, &e), &e);
    arena_free(&a);
}

static void check_state(const struct estimator *est, const json_t *want, const char *where, double tolerance, struct tally *t)
{
    struct str text = {0};
    json_t *got, *list;
    const char *key;
    assert_ok(estimate_describe(est, &text, &e), &e);
    assert_ok(json_parse(text.data, text.size, where, &got, &e), &e);
    const json_t *clusters = json_object_get(got, "per_cluster");
    json_object_foreach((json_t *)(uintptr_t)want, key, list)
    {
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *x = json_array_get(json_object_get(clusters, key), k), *w = json_array_get(list, k);
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
    assert_true(t.cases >= (shared_is_whole(path) ? 20 : 12));
    printf("%s: %lld cases, %lld numbers, worst %.2g of the tolerance\n", file, (long long)t.cases, (long long)t.numbers, t.worst);
}

static void reference__grpo(void **state)
{
    (void)state, reference("data/estimators/grpo.jsonl");
}
static void reference__dr_grpo(void **state)
{
    (void)state, reference("data/estimators/dr_grpo.jsonl");
}
static void reference__rloo(void **state)
{
    (void)state, reference("data/estimators/rloo.jsonl");
}
static void reference__bv_blend(void **state)
{
    (void)state, reference("data/estimators/bv_blend.jsonl");
}

/* ---------------------------------------------------------------- one step from text */

static const char *const STEPS[] = {
    "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0,1]},{\"cluster\":1,\"rewards\":[0,0,0,0]},{\"cluster\":-1,\"rewards\":[1,0]},{"
    "\"cluster\":0,\"rewards\":[0.25]}]}",
    "{\"groups\":[{\"cluster\":0,\"rewards\":[0.3,0.3,0.3]},{\"cluster\":1,\"rewards\":[0,1,0,0,0,0,0,0]},{\"cluster\":2,"
    "\"rewards\":[0.1,0.7]}]}",
    "{\"groups\":[{\"cluster\":0,\"rewards\":[1,1,1,1]},{\"cluster\":1,\"rewards\":[0,0]},{\"cluster\":2,\"rewards\":[-3,1e3,0.5]},"
    "{\"rewards\":[1,2,4]}]}",
    "{\"groups\":[]}", "{\"groups\":[{\"cluster\":1,\"rewards\":[1,0,0,0,0,0,0,0]},{\"cluster\":2,\"rewards\":[0.5,0.5]}]}"};
enum { N_STEPS = sizeof STEPS / sizeof *STEPS };

static void parse_step(const char *text, struct arena *a, struct batch *b)
{
    json_t *object;
    assert_ok(json_parse(text, (int64_t)strlen(text), "test", &object, &e), &e);
    assert_ok(estimate_parse(object, "test", a, b, &e), &e);
    json_decref(object);
}

/* Runs a step without applying it; the batch lives in the arena. */
static void run(struct estimator *est, const char *text, struct arena *a, struct batch *b)
{
    parse_step(text, a, b);
    assert_ok(estimate_run(est, b, a, &e), &e);
}

/* Runs all steps and writes every number, with the state, to out. */
static void transcript(struct estimator *est, int from, int to, struct str *out)
{
    for (int s = from; s < to; s++) {
        struct arena a;
        struct batch b;
        arena_init(&a, "test");
        run(est, STEPS[s], &a, &b);
        assert_ok(estimate_apply(est, &(struct estimate_update){.step = s}, &e), &e);
        assert_ok(estimate_print(est, &b, out, &e), &e);
        arena_free(&a);
    }
}

static void same_bits(const char *a, const char *const *a_set, int64_t a_n, const char *b, const char *const *b_set, int64_t b_n)
{
    struct str x = {0}, y = {0};
    struct estimator *one = open_with(a, a_set, a_n, 3), *two = open_with(b, b_set, b_n, 3);
    transcript(one, 0, N_STEPS, &x);
    transcript(two, 0, N_STEPS, &y);
    assert_true(x.size > 500);
    assert_string_equal(x.data, y.data);
    estimate_free(one);
    estimate_free(two);
    str_free(&x);
    str_free(&y);
}

static void ablations__have_the_bits_of_bv_blend(void **state)
{
    (void)state;
    static const char *const mappings[] = {"mapping=exp", "mapping=reciprocal", "mapping=linear"};
    const char *const fixed[] = {"weighting=fixed", "w=0.3", "gamma=0.7"};
    same_bits("naive", fixed + 1, 2, "bv_blend", fixed, 3);
    for (int i = 0; i < 3; i++) {
        const char *const n_eff[] = {"weighting=n_eff", mappings[i], "sigma_ref=0.2", "temperature=0.3", "v_floor=0.01"};
        const char *const sigma[] = {"weighting=sigma_hist", mappings[i], "n_ref=4", "temperature=0.3", "advantage_clip=2"};
        same_bits("n_eff", n_eff + 1, 4, "bv_blend", n_eff, 5);
        same_bits("sigma_hist", sigma + 1, 4, "bv_blend", sigma, 5);
    }
}

/* Without history, and for prompts without a cluster, bv_blend equals grpo. */
static void bv_blend__starts_as_grpo(void **state)
{
    (void)state;
    struct estimator *blend = open_with("bv_blend", NULL, 0, 3), *grpo = open_with("grpo", NULL, 0, 3);
    struct arena a;
    struct batch x, y;
    arena_init(&a, "test");
    for (int s = 0; s < N_STEPS; s++) {
        run(blend, STEPS[s], &a, &x);
        run(grpo, STEPS[s], &a, &y);
        assert_memory_equal(x.advantage, y.advantage, (size_t)x.n_rollouts * sizeof(double));
        assert_memory_equal(x.scale, y.scale, (size_t)x.n_groups * sizeof(double));
    }
    estimate_apply(blend, &(struct estimate_update){.step = 0}, &e);
    /* clusters 1 and 2 have a history now; a prompt without a cluster stays local */
    for (int s = 0; s < N_STEPS; s++) {
        run(blend, STEPS[s], &a, &x);
        run(grpo, STEPS[s], &a, &y);
        for (int64_t m = 0; m < x.n_groups; m++) {
            if (x.cluster[m] >= 0) continue;
            for (int64_t i = x.group_begin[m]; i < x.group_begin[m + 1]; i++) assert_true(x.advantage[i] == y.advantage[i]);
            assert_true(x.confidence[m] == 0);
        }
    }
    arena_free(&a);
    estimate_free(blend);
    estimate_free(grpo);
}

static void equal_rewards__give_exactly_zero(void **state)
{
    (void)state;
    static const char *const names[] = {"grpo", "dr_grpo", "rloo", "bv_blend"};
    for (int j = 0; j < 4; j++) {
        struct estimator *est = open_with(names[j], NULL, 0, 1);
        struct arena a;
        struct batch b;
        arena_init(&a, "test");
        run(est,
            "{\"groups\":[{\"rewards\":[0.1,0.1,0.1,0.1,0.1,0.1,0.1]},{\"rewards\":[1e6,1e6,1e6]},{\"rewards\":[-0.7]},{"
            "\"cluster\":0,\"rewards\":[0.3,0.3,0.3]}]}",
            &a, &b);
        for (int64_t i = 0; i < b.n_rollouts; i++) assert_true(b.advantage[i] == 0);
        for (int64_t m = 0; m < b.n_groups; m++) assert_true(b.baseline[m] == b.reward[b.group_begin[m]] && !(b.scale[m] > 0));
        arena_free(&a);
        estimate_free(est);
    }
}

static void bv_blend__clip_and_floor(void **state)
{
    (void)state;
    /* a cluster of failures only, then one success: v_hist decays to nearly 0 and w to nearly 1 */
    const char *const cases[][1] = {{"advantage_clip=0"}, {"advantage_clip=5"}, {"v_floor=0.04"}};
    double largest[3];
    for (int j = 0; j < 3; j++) {
        struct estimator *est = open_with("bv_blend", cases[j], 1, 1);
        struct arena a;
        struct batch b;
        arena_init(&a, "test");
        for (int s = 0; s < 13; s++) {
            run(est, "{\"groups\":[{\"cluster\":0,\"rewards\":[0,0,0,0,0,0,0,0]}]}", &a, &b);
            assert_ok(estimate_apply(est, &(struct estimate_update){.step = s}, &e), &e);
        }
        run(est, "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0,0,0,0,0,0]}]}", &a, &b);
        largest[j] = b.advantage[0];
        assert_true(estimate_metrics(est)->advantage_max == b.advantage[0]);
        arena_free(&a);
        estimate_free(est);
    }
    assert_true(largest[0] > 1000);
    assert_true(largest[1] == 5);
    assert_true(largest[2] > 1 && largest[2] < 10);
}

static void state__survives_a_break(void **state)
{
    (void)state;
    static const char *const names[] = {"bv_blend", "naive", "n_eff", "sigma_hist", "grpo"};
    for (int j = 0; j < 5; j++) {
        struct str whole = {0}, parts = {0}, saved = {0};
        struct estimator *one = open_with(names[j], NULL, 0, 3), *two = open_with(names[j], NULL, 0, 3), *three;
        transcript(one, 0, N_STEPS, &whole);
        transcript(two, 0, 2, &parts);
        assert_ok(estimate_save(two, &saved, &e), &e);
        estimate_free(two);
        three = open_with(names[j], NULL, 0, 3);
        assert_ok(estimate_load(three, saved.data, saved.size, "x.state", &e), &e);
        transcript(three, 2, N_STEPS, &parts);
        assert_string_equal(whole.data, parts.data);
        estimate_free(one);
        estimate_free(three);
        str_free(&whole);
        str_free(&parts);
        str_free(&saved);
    }
}

static void bv_blend__refuses_what_cannot_work(void **state)
{
    (void)state;
    struct estimate_options o = {.plugin = "bv_blend"};
    struct estimator *est;
    assert_int_equal(estimate_open(&o, &est, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "no clusters for the history; set codebook.plugin"));
    const char *const two[] = {"clusters=2"};
    est = open_with("bv_blend", two, 1, 0);
    struct arena a;
    struct batch b;
    arena_init(&a, "test");
    parse_step(STEPS[1], &a, &b);
    assert_int_equal(estimate_run(est, &b, &a, &e), TARE_E_RANGE);
    assert_non_null(strstr(e.message, "estimator bv_blend: compute, step 0: group 2: cluster 2, but there are 2"));
    assert_int_equal(estimate_apply(est, &(struct estimate_update){.step = 0}, &e), TARE_E_STATE);
    arena_free(&a);
    estimate_free(est);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference__grpo),
        cmocka_unit_test(reference__dr_grpo),
        cmocka_unit_test(reference__rloo),
        cmocka_unit_test(reference__bv_blend),
        cmocka_unit_test(ablations__have_the_bits_of_bv_blend),
        cmocka_unit_test(bv_blend__starts_as_grpo),
        cmocka_unit_test(equal_rewards__give_exactly_zero),
        cmocka_unit_test(bv_blend__clip_and_floor),
        cmocka_unit_test(state__survives_a_break),
        cmocka_unit_test(bv_blend__refuses_what_cannot_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
