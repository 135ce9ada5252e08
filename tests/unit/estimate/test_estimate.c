/* The phases: what a plugin may not do, metrics, sums over ranks. */
#include "check.h"

#include "estimate/estimate.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static struct err e;
static struct arena arena;

static const char *fixture(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), name);
    return path;
}

static void parse(const char *text, struct batch *b)
{
    json_t *object;
    assert_ok(json_parse(text, (int64_t)strlen(text), "test", &object, &e), &e);
    assert_ok(estimate_parse(object, "test", &arena, b, &e), &e);
    json_decref(object);
}

static const char STEP[] = "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0]},{\"cluster\":1,\"rewards\":[0.5,0.25]}]}";

static void run__names_what_a_plugin_did_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tare_status code;
        const char *part;
    } cases[] = {
        {"nan_advantage", TARE_E_NOT_FINITE, "estimator hostile: compute, step 12: the advantage of group 0, rollout 0 is "},
        {"unwritten", TARE_E_NOT_FINITE,
         "the advantage of group 1, rollout 1 is nan (reward 0.25); each has to be written and finite"},
        {"bad_confidence", TARE_E_NOT_FINITE, "the confidence of group 0 is 1.5"},
        {"infinite_scale", TARE_E_NOT_FINITE, "the scale of group 0 is inf"},
        {"negative_weight", TARE_E_NOT_FINITE, "the weight of group 0, rollout 0 is -1"},
        {"past_end", TARE_E_PLUGIN, "estimator hostile: compute, step 12: it wrote outside of its output buffers"},
        {"nan_sums", TARE_E_NOT_FINITE, "collect, step 12: number 0 of group 0's sums is nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct estimate_options o = {.plugin = fixture(cases[i].name)};
        struct estimator *est;
        struct batch b;
        assert_ok(estimate_open(&o, &est, &e), &e);
        parse(STEP, &b);
        b.step = 12;
        const tare_status status = estimate_run(est, &b, &arena, &e);
        if (status != cases[i].code || !strstr(e.message, cases[i].part)) fail_msg("%s: %d %s", cases[i].name, status, e.message);
        assert_int_equal(estimate_apply(est, 12, &e), TARE_E_STATE); /* nothing half-done is applied */
        estimate_free(est);
    }
}

static void open__refuses(void **state)
{
    (void)state;
    struct estimator *est;
    struct estimate_options o = {.plugin = fixture("unknown_needs")};
    assert_int_equal(estimate_open(&o, &est, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "needs columns that this program does not know"));
    o.plugin = fixture("negative_size");
    assert_int_equal(estimate_open(&o, &est, &e), TARE_E_PLUGIN);
    assert_null(est);
}

static void run__keeps_the_floating_point_mode(void **state)
{
    (void)state;
    const struct estimate_options o = {.plugin = fixture("changes_fp")};
    struct estimator *est;
    struct batch b;
    volatile float tiny = 1e-38f;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse(STEP, &b);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_true(tiny * 0.1f > 0); /* not flushed to zero */
    estimate_free(est);
}

static void run__refuses_a_nan_reward(void **state)
{
    (void)state;
    const struct estimate_options o = {.plugin = "grpo"};
    struct estimator *est;
    struct batch b;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse(STEP, &b);
    b.reward[4] = (double)NAN;
    b.step = 3;
    assert_int_equal(estimate_run(est, &b, &arena, &e), TARE_E_NOT_FINITE);
    assert_non_null(strstr(e.message, "step 3: the reward of group 1, rollout 1 is nan"));
    estimate_free(est);
}

/* ---------------------------------------------------------------- metrics */

struct sink {
    char text[2000];
};

static void take(void *ctx, const char *name, double value)
{
    struct sink *s = ctx;
    const size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s=%g\n", name, value);
}

static void metrics__are_given(void **state)
{
    (void)state;
    struct sink sink = {""};
    struct estimate_options o = {.plugin = "grpo", .env = {.ctx = &sink, .metric = take}};
    struct estimator *est;
    struct batch b;
    assert_ok(estimate_open(&o, &est, &e), &e);
    parse("{\"groups\":[{\"rewards\":[1,0]},{\"rewards\":[1,1]},{\"rewards\":[0]},{\"rewards\":[2,0,1]}]}", &b);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_string_equal(sink.text,
                        "estimator/effective_signal_ratio=0.5\nestimator/nonzero_advantage_ratio=0.5\nestimator/confidence_mean=0\n"
                        "estimator/advantage_max=1\n");
    estimate_free(est);
    sink.text[0] = 0;
    o.plugin = "dr_grpo"; /* no scale: the advantages decide */
    assert_ok(estimate_open(&o, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_non_null(strstr(sink.text, "effective_signal_ratio=0.5\n"));
    estimate_free(est);
    sink.text[0] = 0;
    o.plugin = fixture("metrics");
    assert_ok(estimate_open(&o, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_non_null(strstr(sink.text, "estimator/answer=42\n"));
    estimate_free(est);
    o.plugin = fixture("wants_refill");
    assert_ok(estimate_open(&o, &est, &e), &e);
    assert_ok(estimate_run(est, &b, &arena, &e), &e);
    assert_int_equal(estimate_metrics(est)->refill_groups, 3);
    estimate_free(est);
}

/* ---------------------------------------------------------------- ranks: threads that gather over shared memory */

enum { MAX_RANKS = 4, GROUPS = 16, ROUNDS = 12 };
struct world {
    pthread_barrier_t barrier;
    const void *in[MAX_RANKS];
};
struct rank {
    struct comm comm;
    struct world *world;
    struct str transcript;
    double metrics[4];
};

static tare_status gather(struct comm *c, const void *in, int64_t n, void *out, const int64_t *bytes, struct err *err)
{
    (void)n, (void)err;
    struct rank *r = c->self;
    r->world->in[c->rank] = in;
    pthread_barrier_wait(&r->world->barrier);
    char *at = out;
    for (int i = 0; i < c->size; i++) {
        if (bytes[i]) memcpy(at, r->world->in[i], (size_t)bytes[i]);
        at += bytes[i];
    }
    pthread_barrier_wait(&r->world->barrier);
    return TARE_OK;
}

/* Groups first .. last-1 of a step whose rewards are no round numbers, so that an order of summation would show. */
static void groups_text(int round, int first, int last, struct str *out)
{
    str_add(out, "{\"groups\":[", -1, NULL);
    for (int m = first; m < last; m++) {
        str_addf(out, NULL, "%s{\"cluster\":%d,\"uid\":%d,\"rewards\":[", m > first ? "," : "", (m * 7 + round) % 3,
                 (m * 5 + round) % 11);
        for (int i = 0; i < 5; i++) {
            const double x = sin(1 + round * 977.0 + m * 31.0 + i * 5.0) * (m % 4 ? 1 : 1e-7);
            str_addf(out, NULL, "%s%.17g", i ? "," : "", strcmp(getenv("TEST_ESTIMATOR"), "spo") ? x : fabs(x));
        }
        str_add(out, "]}", -1, NULL);
    }
    str_add(out, "]}", -1, NULL);
}

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    const char *plugin = getenv("TEST_ESTIMATOR");
    const struct estimate_options o = {.plugin = plugin, .n_clusters = 3, .comm = r->comm.size > 1 ? &r->comm : NULL};
    struct estimator *est;
    struct arena a;
    struct err err = {0};
    arena_init(&a, "rank");
    if (estimate_open(&o, &est, &err)) return NULL;
    for (int round = 0; round < ROUNDS; round++) {
        struct str text = {0};
        struct batch b;
        json_t *object;
        const int share = GROUPS / r->comm.size;
        groups_text(round, r->comm.rank * share, (r->comm.rank + 1) * share, &text);
        tare_status status = json_parse(text.data, text.size, "test", &object, &err);
        if (!status) status = estimate_parse(object, "test", &a, &b, &err);
        if (!status) status = estimate_run(est, &b, &a, &err);
        if (!status) status = estimate_apply(est, round, &err);
        for (int64_t i = 0; i < b.n_rollouts && !status; i++)
            str_addf(&r->transcript, NULL, "%d %lld %a\n", round, (long long)i + r->comm.rank * share * 5, b.advantage[i]);
        json_decref(object);
        str_free(&text);
        if (status) break;
    }
    const struct estimate_metrics *m = estimate_metrics(est);
    memcpy(r->metrics, (double[]){m->effective_signal_ratio, m->nonzero_advantage_ratio, m->confidence_mean, m->advantage_max},
           sizeof r->metrics);
    str_add(&r->transcript, "state ", -1, NULL);
    estimate_describe(est, &r->transcript, NULL);
    estimate_free(est);
    arena_free(&a);
    return r;
}

/* The lines of all ranks, by round and rollout, as one text; the state of the last rank behind. */
static void run_world(int size, struct str *out, double metrics[4])
{
    struct world w;
    struct rank r[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    memset(r, 0, sizeof r);
    pthread_barrier_init(&w.barrier, NULL, (unsigned)size);
    for (int i = 0; i < size; i++) {
        r[i].comm = (struct comm){.rank = i, .size = size, .kind = "test", .self = &r[i], .gather = gather};
        r[i].world = &w;
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &r[i]), 0);
    }
    for (int i = 0; i < size; i++) {
        void *done;
        pthread_join(threads[i], &done);
        assert_non_null(done);
        assert_memory_equal(r[i].metrics, r[0].metrics, sizeof r[0].metrics);
    }
    const char *at[MAX_RANKS];
    for (int i = 0; i < size; i++) at[i] = r[i].transcript.data;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < size; i++) {
            while (atoi(at[i]) == round && *at[i] != 's') {
                const int64_t n = (int64_t)strcspn(at[i], "\n") + 1;
                str_add(out, at[i], n, NULL);
                at[i] += n;
            }
        }
    }
    for (int i = 1; i < size; i++) assert_string_equal(at[i], at[0]); /* the same state on every rank */
    str_add(out, at[0], -1, NULL);
    memcpy(metrics, r[0].metrics, sizeof r[0].metrics);
    for (int i = 0; i < size; i++) str_free(&r[i].transcript);
    pthread_barrier_destroy(&w.barrier);
}

static void ranks__do_not_change_a_bit(void **state)
{
    (void)state;
    static const char *const names[] = {"bv_blend", "spo"}; /* sums, and records by prompt */
    for (int k = 0; k < 2; k++) {
        struct str one = {0};
        double metrics[4], again[4];
        setenv("TEST_ESTIMATOR", names[k], 1);
        run_world(1, &one, metrics);
        assert_true(one.size > 1000 && (k || metrics[2] > 0) && metrics[3] > 0);
        for (int size = 2; size <= MAX_RANKS; size *= 2) {
            struct str many = {0};
            run_world(size, &many, again);
            assert_string_equal(one.data, many.data);
            assert_memory_equal(metrics, again, sizeof metrics);
            str_free(&many);
        }
        str_free(&one);
    }
}

static void parse__refuses(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "\"groups\" is missing"},
        {"{\"groups\":[{\"rewards\":[]}]}", "group 0 has no \"rewards\""},
        {"{\"groups\":[{\"rewards\":[1]},{}]}", "group 1 has no \"rewards\""},
        {"{\"groups\":[{\"rewards\":[1,null]}]}", "group 0, rollout 1: a reward is not a number"},
        {"{\"groups\":[{\"cluster\":-2,\"rewards\":[1]}]}", "\"cluster\" has to be a whole number"},
        {"{\"groups\":[{\"cluster\":1.5,\"rewards\":[1]}]}", "\"cluster\" has to be a whole number"},
        {"{\"groups\":[{\"uid\":\"12g\",\"rewards\":[1]}]}", "\"uid\" has to be a whole number, or hexadecimal digits"},
        {"{\"groups\":[{\"rewards\":[1,2],\"lengths\":[1]}]}", "\"lengths\" has to be an array of 2"},
        {"{\"groups\":[{\"rewards\":[1],\"lengths\":[0]}]}", "a length of 0 tokens"},
        {"{\"groups\":[{\"rewards\":[1],\"entropy\":[[1,2]]}]}", "\"entropy\" has to be an array of 1"},
        {"{\"groups\":[{\"rewards\":[1,1],\"components\":[[1],[1,2]]}]}", "2 components where the others have 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *object;
        struct batch b;
        assert_ok(json_parse(cases[i][0], (int64_t)strlen(cases[i][0]), "x", &object, &e), &e);
        const tare_status status = estimate_parse(object, "x:1", &arena, &b, &e);
        if (!status || !strstr(e.message, cases[i][1]) || strncmp(e.message, "x:1: ", 5))
            fail_msg("%s: %d %s", cases[i][0], status, e.message);
        json_decref(object);
    }
}

static void parse__reads_uids(void **state)
{
    (void)state;
    struct batch b;
    parse("{\"groups\":[{\"uid\":7,\"rewards\":[1]},{\"uid\":\"fedcba9876543210\",\"rewards\":[1]},{\"rewards\":[1]}]}", &b);
    assert_true(b.prompt_uid[0] == 7 && b.prompt_uid[1] == 0xfedcba9876543210u && b.prompt_uid[2] == 2);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__names_what_a_plugin_did_wrong),
        cmocka_unit_test(open__refuses),
        cmocka_unit_test(run__keeps_the_floating_point_mode),
        cmocka_unit_test(run__refuses_a_nan_reward),
        cmocka_unit_test(metrics__are_given),
        cmocka_unit_test(ranks__do_not_change_a_bit),
        cmocka_unit_test(parse__refuses),
        cmocka_unit_test(parse__reads_uids),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
