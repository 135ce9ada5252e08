/* core/verify: weights, components, overlong, verdict counts, threads, and errors that name row and
 * sample. */
#include "check.h"

#include "data/dataset.h"
#include "verify/verify.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { GROUPS = 3, EACH = 4, N = GROUPS * EACH, PER = 10 };

struct fixture {
    struct config config;
    struct row row[GROUPS];
    const struct row *rows[GROUPS];
    int64_t group_begin[GROUPS + 1], token_begin[N + 1];
    uint8_t finish[N];
    tare_text completion[N];
    struct batch b;
    struct arena arena;
};

static tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

/* Row m has the answer m. Of its four completions one is right, one wrong, one without a number,
 * one unreadable. Completion i has PER * (i % EACH + 1) tokens, and the longest is truncated. */
static void fill(struct fixture *f, const char *const *settings, int64_t n)
{
    static const char *const answers[GROUPS] = {"0", "1", "2"}, *const ids[GROUPS] = {"r0", "r1", "r2"};
    static const char *const said[GROUPS][EACH] = {
        {"0", "5", "none", "1/0"}, {"it is 1", "1 2", "", "1.2.3"}, {"2.0", "-2", "?", "2/0"}};
    struct err e = {0};
    memset(f, 0, sizeof *f);
    assert_ok(config_load(&f->config, NULL, settings, n, &e), &e);
    arena_init(&f->arena, "test");
    for (int m = 0; m < GROUPS; m++) {
        f->row[m] = (struct row){.id = ids[m], .question = text("q"), .answer = text(answers[m]), .json = text("{}")};
        f->rows[m] = &f->row[m];
        f->group_begin[m + 1] = EACH * (m + 1);
        for (int k = 0; k < EACH; k++) {
            const int i = m * EACH + k;
            f->completion[i] = text(said[m][k]);
            f->token_begin[i + 1] = f->token_begin[i] + PER * (k + 1);
            f->finish[i] = k == EACH - 1 ? TARE_FINISH_LENGTH : TARE_FINISH_STOP;
        }
    }
    f->b = (struct batch){.n_groups = GROUPS,
                          .n_rollouts = N,
                          .row = f->rows,
                          .group_begin = f->group_begin,
                          .token_begin = f->token_begin,
                          .finish = f->finish,
                          .completion = f->completion};
}

static void drop(struct fixture *f)
{
    arena_free(&f->arena);
    config_free(&f->config);
}

static struct verify *opened(struct fixture *f)
{
    struct err e = {0};
    struct verify *v = NULL;
    assert_ok(verify_open(&f->config, NULL, NULL, &v, &e), &e);
    return v;
}

static void test_weights_and_verdicts(void **state)
{
    (void)state;
    struct fixture f;
    fill(&f, (const char *const[]){"verifier.plugins=number:2, exact:0.25", "verifier.isolate=thread"}, 2);
    struct verify *v = opened(&f);
    struct err e = {0};
    assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
    assert_int_equal(f.b.n_components, 2);
    assert_string_equal(verify_component_name(v, 0), "number");
    assert_string_equal(verify_component_name(v, 1), "exact");
    static const int32_t codes[EACH] = {TARE_VERDICT_CORRECT, TARE_VERDICT_WRONG, TARE_VERDICT_NO_ANSWER, TARE_VERDICT_UNPARSABLE};
    for (int i = 0; i < N; i++) {
        assert_int_equal(f.b.verdict[i], codes[i % EACH]);
        assert_true(f.b.component[2 * i] == (i % EACH == 0 ? 2.0 : 0.0));
        /* only "0" is equal as text */
        assert_true(f.b.component[2 * i + 1] == (i == 0 ? 0.25 : 0.0));
        assert_true(f.b.reward[i] == f.b.component[2 * i] + f.b.component[2 * i + 1]);
        assert_non_null(f.b.reason[i]);
    }
    assert_int_equal(f.b.extracted[8].size, 3);
    assert_memory_equal(f.b.extracted[8].data, "2.0", 3);
    int64_t counts[TARE_VERDICT_PARTIAL + 1];
    verify_count(f.b.verdict, N, counts);
    assert_int_equal(counts[TARE_VERDICT_CORRECT], GROUPS);
    assert_int_equal(counts[TARE_VERDICT_UNPARSABLE], GROUPS);
    assert_int_equal(counts[TARE_VERDICT_TIMED_OUT], 0);
    verify_close(v);
    drop(&f);
}

/* One plugin under two names, each with separate parameters, in this process and in workers. */
static void test_two_names(void **state)
{
    (void)state;
    static const char *const SAID[] = {"1", " 1 ", "2"};
    for (int processes = 0; processes < 2; processes++) {
        const char *const settings[] = {"verifier.plugins=exact:2, exact as to_the_letter:0.5",
                                        "verifier.to_the_letter.strip=false",
                                        processes ? "verifier.isolate=process" : "verifier.isolate=thread"};
        struct config c;
        struct err e = {0};
        struct verify *v;
        struct verify_item items[3];
        double parts[3][2];
        assert_ok(config_load(&c, NULL, settings, 3, &e), &e);
        assert_true(config_uses(&c, "verifier.to_the_letter"));
        assert_ok(verify_open(&c, NULL, NULL, &v, &e), &e);
        assert_string_equal(verify_component_name(v, 0), "exact");
        assert_string_equal(verify_component_name(v, 1), "to_the_letter");
        for (int i = 0; i < 3; i++) items[i] = (struct verify_item){.completion = text(SAID[i]), .answer = text("1")};
        assert_ok(verify_items(v, items, 3, (struct verify_parts){.component = parts[0]}, &e), &e);
        assert_true(items[0].reward == 2.5 && items[1].reward == 2.0 && items[2].reward == 0);
        assert_true(parts[0][1] == 0.5 && parts[1][0] == 2 && parts[1][1] == 0);
        verify_close(v);
        config_free(&c);
    }
}

static void test_overlong(void **state)
{
    (void)state;
    struct err e = {0};
    struct fixture f;
    fill(&f, (const char *const[]){"verifier.plugins=number:3", "verifier.isolate=thread", "verifier.overlong=zero"}, 3);
    f.finish[0] = FINISH_LENGTH; /* right, and truncated */
    struct verify *v = opened(&f);
    assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
    assert_int_equal(f.b.n_components, 2);
    assert_string_equal(verify_component_name(v, 1), "overlong");
    assert_true(f.b.reward[0] == 0.0 && f.b.component[0] == 3.0 && f.b.component[1] == -3.0);
    assert_int_equal(f.b.verdict[0], TARE_VERDICT_CORRECT);
    assert_true(f.b.reward[EACH] == 3.0);
    verify_close(v);
    drop(&f);

    /* L = 40, buffer 20: 10, 20 tokens free, 30 half of the penalty, 40 all of it */
    fill(&f,
         (const char *const[]){"verifier.plugins=number", "verifier.isolate=thread", "verifier.overlong=linear",
                               "verifier.overlong_buffer=20", "verifier.overlong_penalty=0.5", "rollout.max_new_tokens=40"},
         6);
    v = opened(&f);
    assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
    static const double expected[EACH] = {1.0, 0.0, -0.25, -0.5};
    for (int i = 0; i < N; i++) assert_true(f.b.reward[i] == expected[i % EACH]);
    verify_close(v);
    drop(&f);

    struct config c;
    fill(&f, (const char *const[]){"verifier.plugins=number", "verifier.isolate=thread"}, 2);
    c = f.config; /* as a caller could have it that skipped the checks of the file */
    c.verifier.overlong = OVERLONG_LINEAR;
    assert_int_equal(verify_open(&c, NULL, NULL, &v, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "overlong_buffer"));
    drop(&f);
}

static void expect_config_error(const char *plugins, const char *part)
{
    struct fixture f;
    char setting[128];
    snprintf(setting, sizeof setting, "verifier.plugins=%s", plugins);
    fill(&f, (const char *const[]){setting, "verifier.isolate=thread"}, 2);
    struct err e = {0};
    struct verify *v = NULL;
    assert_int_not_equal(verify_open(&f.config, NULL, NULL, &v, &e), 0);
    assert_null(v);
    if (!strstr(e.message, part)) fail_msg("\"%s\" does not say \"%s\"", e.message, part);
    drop(&f);
}

static void test_errors(void **state)
{
    (void)state;
    expect_config_error("number number", "twice: list it once, with the sum of the weights, or rename one");
    expect_config_error("number as exact exact", "the verifier exact is listed twice");
    expect_config_error("number as", "missing name after 'as'; write number as NAME");
    expect_config_error("number as Strict", "invalid verifier name 'Strict'");
    expect_config_error("number as overlong", "the name overlong is reserved");
    expect_config_error("number as strict:much", "weight");
    expect_config_error("number:much", "weight");
    expect_config_error(",", "verifier.plugins is empty");
    expect_config_error("nosuchverifier", "nosuchverifier");

    /* two finite rewards whose weighted sum is not finite: the error names row and sample, and
     * nothing is returned */
    struct fixture f;
    fill(&f, (const char *const[]){"verifier.plugins=number:1.7e308 exact:1.7e308", "verifier.isolate=thread"}, 2);
    struct verify *v = opened(&f);
    struct err e = {0};
    assert_int_equal(verify_run(v, &f.b, &f.arena, &e), TARE_E_NOT_FINITE);
    assert_non_null(strstr(e.message, "row r0, sample 0"));
    verify_close(v);
    drop(&f);
}

/* Many items on 1 and 8 workers: the same results in the same order. */
static void test_workers_do_not_matter(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static struct verify_item items[2][MANY];
    static char said[MANY][24];
    static struct verify_text extracted[2][MANY], note[2][MANY];
    struct err e = {0};
    for (int k = 0; k < 2; k++) {
        struct verify *v = NULL;
        const struct verify_options o = {.workers = k ? 8 : 1, .timeout = 600, .max_crash_share = 1};
        assert_ok(verify_new(&o, &v, &e), &e);
        assert_ok(verify_add(v, &(struct verify_use){.plugin = "number", .weight = 1}, NULL, NULL, NULL, &e), &e);
        for (int i = 0; i < MANY; i++) {
            snprintf(said[i], sizeof said[i], "about %d/%d", i, i % 10);
            items[k][i] = (struct verify_item){
                .completion = text(said[i]), .answer = text("3"), .extracted = &extracted[k][i], .note = &note[k][i]};
        }
        assert_ok(verify_items(v, items[k], MANY, (struct verify_parts){0}, &e), &e);
        verify_close(v);
    }
    int64_t right = 0, unparsable = 0;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(items[0][i].verdict, items[1][i].verdict);
        assert_true(items[0][i].reward == items[1][i].reward);
        assert_int_equal(extracted[0][i].size, extracted[1][i].size);
        assert_memory_equal(extracted[0][i].data, extracted[1][i].data, (size_t)extracted[0][i].size);
        right += items[0][i].verdict == TARE_VERDICT_CORRECT;
        unparsable += items[0][i].verdict == TARE_VERDICT_UNPARSABLE;
    }
    assert_int_equal(right, 1);              /* i = 3 (i mod 10) has the one solution 15 */
    assert_int_equal(unparsable, MANY / 10); /* i/0 */
}

/* ---------------------------------------------------------------- worker processes */

static struct verify *isolated(double max_crash_share, double timeout)
{
    static char fixture[4096];
    const char *tare = getenv("TARE"), *fixtures = getenv("FIXTURES");
    struct verify *v = NULL;
    struct err e = {0};
    if (!tare || access(tare, X_OK) || !fixtures) {
        SKIP("the program tare is not built, so no worker can be started");
    }
    snprintf(fixture, sizeof fixture, "%s/verdicts.so", fixtures);
    const struct verify_options o = {
        .workers = 2, .timeout = timeout, .processes = true, .worker = tare, .max_crash_share = max_crash_share};
    assert_ok(verify_new(&o, &v, &e), &e);
    assert_ok(verify_add(v, &(struct verify_use){.plugin = fixture, .weight = 1}, NULL, NULL, NULL, &e), &e);
    return v;
}

enum { MANY_PROCESSES = 40 };

/* Counts the items judged as late. */
static int judge_within(struct verify_item *items, double seconds)
{
    static struct verify_text note[MANY_PROCESSES];
    struct verify *v = isolated(1, seconds);
    struct err e = {0};
    int late = 0;
    for (int i = 0; i < MANY_PROCESSES; i++)
        items[i] = (struct verify_item){.completion = text(i % 10 == 3 ? "abort"
                                                           : i == 17   ? "hang"
                                                                       : "fine"),
                                        .answer = text("x"),
                                        .name = "r",
                                        .note = &note[i]};
    assert_ok(verify_items(v, items, MANY_PROCESSES, (struct verify_parts){0}, &e), &e);
    verify_close(v);
    for (int i = 0; i < MANY_PROCESSES; i++) late += items[i].verdict == TARE_VERDICT_TIMED_OUT;
    return late;
}

/* A plugin that dies or never returns affects only its own verdict. If other items are late because
 * the machine is busy, the test allows more time. */
static void test_processes(void **state)
{
    (void)state;
    enum { MANY = MANY_PROCESSES };
    static struct verify_item items[MANY];
    struct err e = {0};
    for (double seconds = 0.3; judge_within(items, seconds) > 1 && seconds < 100; seconds *= 10) continue;
    for (int i = 0; i < MANY; i++) {
        const int expected = i % 10 == 3 ? TARE_VERDICT_CRASHED : i == 17 ? TARE_VERDICT_TIMED_OUT : TARE_VERDICT_CORRECT;
        assert_int_equal(items[i].verdict, expected);
        assert_true(items[i].reward == (expected == TARE_VERDICT_CORRECT ? 1.0 : 0.0));
        if (expected != TARE_VERDICT_CORRECT)
            assert_string_equal(items[i].note->data, expected == TARE_VERDICT_CRASHED ? "the verifier's process died"
                                                                                      : "the verifier did not answer in time");
    }

    struct verify *v = isolated(0.05, 600); /* 4 of 40 exceed this share */
    items[17].completion = text("fine");
    assert_int_equal(verify_items(v, items, MANY, (struct verify_parts){0}, &e), TARE_E_PLUGIN);
    assert_non_null(strstr(e.message, "4 of 40"));
    assert_non_null(strstr(e.message, "max_crash_share"));
    verify_close(v);
}

/* An error of the plugin and a reward that is not finite remain errors, with row and sample, in a
 * worker too. */
static void test_process_errors(void **state)
{
    (void)state;
    static const struct {
        const char *completion, *part;
        tare_status status;
    } cases[] = {{"fail", "the judge is out", TARE_E_IO}, {"nan", "reward", TARE_E_NOT_FINITE}, {"code", "verdict", TARE_E_PLUGIN}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct verify *v = isolated(1, 600);
        struct err e = {0};
        struct verify_item items[3] = {{.completion = text("fine"), .name = "a"},
                                       {.completion = text(cases[k].completion), .name = "b", .sample = 7},
                                       {.completion = text("fine"), .name = "c"}};
        const tare_status got = verify_items(v, items, 3, (struct verify_parts){0}, &e);
        if (!got || !strstr(e.message, "row b, sample 7") || !strstr(e.message, cases[k].part))
            fail_msg("%s: status %d, \"%s\"", cases[k].completion, got, e.message);
        verify_close(v);
    }
}

/* The same plugin and parameters give the same verdicts in this process and in workers. */
static void test_processes_change_nothing(void **state)
{
    (void)state;
    enum { MANY = 200 };
    static struct verify_item items[2][MANY];
    static char said[MANY][24];
    static struct verify_text extracted[2][MANY], note[2][MANY];
    struct err e = {0};
    const char *tare = getenv("TARE");
    if (!tare || access(tare, X_OK)) {
        SKIP("the program tare is not built, so no worker can be started");
    }
    for (int k = 0; k < 2; k++) {
        struct verify *v = NULL;
        const struct verify_options o = {.workers = 2, .timeout = 600, .max_crash_share = 1, .processes = k, .worker = tare};
        const struct config_param percent = {.section = "verifier.number", .key = "percent", .value = "hundredth", .where = "test"};
        assert_ok(verify_new(&o, &v, &e), &e);
        assert_ok(verify_add(v, &(struct verify_use){.plugin = "number", .weight = 2}, NULL, &percent, NULL, &e), &e);
        for (int i = 0; i < MANY; i++) {
            snprintf(said[i], sizeof said[i], "about %d%s", i % 7, i % 2 ? "%" : "");
            items[k][i] = (struct verify_item){
                .completion = text(said[i]), .answer = text("3%"), .extracted = &extracted[k][i], .note = &note[k][i]};
        }
        assert_ok(verify_items(v, items[k], MANY, (struct verify_parts){0}, &e), &e);
        for (int i = 0; i < MANY; i++) assert_true(items[k][i].reward == (i % 2 && i % 7 == 3 ? 2.0 : 0.0));
        if (k)
            for (int i = 0; i < MANY; i++) {
                assert_string_equal(note[0][i].data, note[1][i].data);
                assert_int_equal(extracted[0][i].size, extracted[1][i].size);
                assert_memory_equal(extracted[0][i].data, extracted[1][i].data, (size_t)extracted[0][i].size);
            }
        verify_close(v);
    }
}

/* ---------------------------------------------------------------- groups */

struct sink {
    double at_once;
    int calls;
    pthread_mutex_t lock;
};

static void on_metric(void *ctx, const char *name, double value, int32_t how)
{
    struct sink *s = ctx;
    (void)how;
    assert_string_equal(name, "verifier/answers_at_once");
    pthread_mutex_lock(&s->lock);
    s->at_once = value;
    s->calls++;
    pthread_mutex_unlock(&s->lock);
}

/* A verifier that compares completions knows which ones share a prompt; its metrics also arrive
 * from workers. */
static void test_groups(void **state)
{
    (void)state;
    const char *tare = getenv("TARE");
    char fixture[4096];
    if (!tare || access(tare, X_OK)) {
        SKIP("the program tare is not built, so no worker can be started");
    }
    snprintf(fixture, sizeof fixture, "%s/groups.so", getenv("FIXTURES"));
    for (int processes = 0; processes < 2; processes++) {
        struct fixture f;
        struct verify *v = NULL;
        struct err e = {0};
        struct sink sink = {.lock = PTHREAD_MUTEX_INITIALIZER};
        const struct plugin_env env = {.ctx = &sink, .metric = on_metric};
        const struct verify_options o = {
            .workers = 2, .timeout = 600, .max_crash_share = 1, .processes = processes, .worker = tare};
        uint64_t uid[GROUPS] = {7, 8, 9};
        fill(&f, NULL, 0);
        f.b.prompt_uid = uid;
        f.completion[5] = f.completion[4]; /* two completions of the second group are equal */
        assert_ok(verify_new(&o, &v, &e), &e);
        assert_ok(verify_add(v, &(struct verify_use){.plugin = "number", .weight = 1}, NULL, NULL, NULL, &e), &e);
        assert_ok(verify_add(v, &(struct verify_use){.plugin = fixture, .weight = 1}, NULL, NULL, &env, &e), &e);
        assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
        for (int i = 0; i < N; i++) {
            assert_true(f.b.component[2 * i + 1] == (i == 4 || i == 5 ? 0.5 : 0.75));
            assert_int_equal(f.b.component_verdict[2 * i], f.b.verdict[i]);
            assert_int_equal(f.b.component_verdict[2 * i + 1], TARE_VERDICT_PARTIAL);
        }
        assert_int_equal(sink.calls, 1);
        assert_true(sink.at_once == N);
        /* a worker that dies costs the whole call */
        if (processes) {
            f.completion[9] = text("abort");
            assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
            for (int i = 0; i < N; i++) assert_int_equal(f.b.component_verdict[2 * i + 1], TARE_VERDICT_CRASHED);
        }
        verify_close(v);
        drop(&f);
    }
}

/* ---------------------------------------------------------------- process rewards */

/* Tokens "a", "ab
 * b", "a" and a stop token of the text "aab
 * ba", whose steps are "aab
 * " and "ba"; and the engine's columns for them. */
static void segment_batch(struct fixture *f, int64_t *ends)
{
    static const int64_t TEXT_ENDS[] = {1, 5, 6, 6};
    fill(f, NULL, 0);
    f->b.n_tokens = f->token_begin[N];
    for (int i = 0; i < N; i++) {
        f->completion[i] = text("");
        for (int64_t t = f->token_begin[i]; t < f->token_begin[i + 1]; t++) ends[t] = 0;
    }
    f->completion[1] = text("aab\nba");
    for (int k = 0; k < 4; k++) ends[f->token_begin[1] + k] = TEXT_ENDS[k];
    for (int64_t t = f->token_begin[1] + 4; t < f->token_begin[2]; t++) ends[t] = 6;
    f->b.token_end = ends;
}

static struct verify *with_steps(bool processes)
{
    struct verify *v = NULL;
    struct err e = {0};
    char fixture[4096];
    snprintf(fixture, sizeof fixture, "%s/steps.so", getenv("FIXTURES"));
    const struct verify_options o = {
        .workers = 2, .timeout = 600, .max_crash_share = 1, .processes = processes, .worker = getenv("TARE")};
    assert_ok(verify_new(&o, &v, &e), &e);
    assert_ok(verify_add(v, &(struct verify_use){.plugin = "number", .weight = 1}, NULL, NULL, NULL, &e), &e);
    assert_false(verify_gives_segments(v));
    assert_ok(verify_add(v, &(struct verify_use){.plugin = fixture, .weight = 0.5}, NULL, NULL, NULL, &e), &e);
    assert_true(verify_gives_segments(v));
    return v;
}

/* A segment's reward goes to the token in which it ends, times the verifier's weight; a token is in
 * the segment in which it begins. */
static void test_segments(void **state)
{
    (void)state;
    static const int32_t SEGMENT[] = {1, 1, 2, 0};
    static const double REWARD[] = {0, 1, 0.5, 0};
    for (int processes = 0; processes < 2; processes++) {
        struct fixture f;
        struct err e = {0};
        int64_t ends[N * PER * EACH];
        struct verify *v = with_steps(processes);
        segment_batch(&f, ends);
        assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
        assert_true(f.b.component[2 * 1 + 1] == 0.5 * 3);
        double all = 0;
        for (int64_t t = 0; t < f.b.n_tokens; t++) all += fabs(f.b.segment_reward[t]) + f.b.segment[t];
        assert_true(all == 1.5 + 4);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(f.b.segment[f.token_begin[1] + k], SEGMENT[k]);
            assert_true(f.b.segment_reward[f.token_begin[1] + k] == REWARD[k]);
        }
        f.b.token_end = NULL; /* a caller without use for them */
        f.b.segment = NULL;
        assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
        assert_null(f.b.segment);
        verify_close(v);
        drop(&f);
    }
}

/* Two steps that end in one token: their rewards are added; a token that begins where a step ends
 * belongs to the next one. */
static void test_segments_in_one_token(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = {0};
    int64_t ends[N * PER * EACH];
    struct verify *v = with_steps(false);
    segment_batch(&f, ends);
    f.completion[1] = text("a\na\naa");
    const int64_t own[] = {0, 4, 5, 6}, first = f.token_begin[1];
    for (int k = 0; k < 4; k++) ends[first + k] = own[k];
    assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
    assert_true(f.b.segment[first] == 1 && f.b.segment[first + 1] == 1 && f.b.segment[first + 2] == 3 &&
                f.b.segment[first + 3] == 3);
    assert_true(f.b.segment_reward[first] == 0 && f.b.segment_reward[first + 1] == 1 && f.b.segment_reward[first + 2] == 0 &&
                f.b.segment_reward[first + 3] == 1);
    verify_close(v);
    drop(&f);
}

static void test_segments_that_are_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *said, *message;
    } CASES[] = {{"!back", "segment 1 ends at byte 2; it must end after 2, and the completion has 5 bytes"},
                 {"!far", "segment 0 ends at byte 5; it must end after 0, and the completion has 4 bytes"},
                 {"!nan", "the reward of segment 0 is nan"},
                 {"!many", "257 segments in a buffer of 256"}};
    for (int processes = 0; processes < 2; processes++) {
        struct fixture f;
        struct err e = {0};
        int64_t ends[N * PER * EACH];
        struct verify *v = with_steps(processes);
        segment_batch(&f, ends);
        for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
            e = (struct err){0};
            f.completion[1] = text(CASES[k].said);
            assert_true(verify_run(v, &f.b, &f.arena, &e) != TARE_OK);
            if (!strstr(e.message, CASES[k].message) || !strstr(e.message, "row r0, sample 1"))
                fail_msg("expected '%s' in: %s", CASES[k].message, e.message);
        }
        if (processes) { /* a worker that dies leaves none */
            f.completion[1] = text("!abort");
            assert_ok(verify_run(v, &f.b, &f.arena, &e), &e);
            assert_int_equal(f.b.component_verdict[2 * 1 + 1], TARE_VERDICT_CRASHED);
            for (int64_t t = 0; t < f.b.n_tokens; t++) assert_true(f.b.segment[t] == 0 && f.b.segment_reward[t] == 0);
        }
        char fixture[4096];
        snprintf(fixture, sizeof fixture, "%s/steps.so", getenv("FIXTURES"));
        const struct verify_use again = {.plugin = fixture, .as = "again", .weight = 1};
        assert_int_equal(verify_add(v, &again, NULL, NULL, NULL, &e), TARE_E_CONFIG);
        assert_non_null(strstr(e.message, "both reward parts of completions"));
        verify_close(v);
        drop(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights_and_verdicts),
                                       cmocka_unit_test(test_two_names),
                                       cmocka_unit_test(test_overlong),
                                       cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_workers_do_not_matter),
                                       cmocka_unit_test(test_processes),
                                       cmocka_unit_test(test_process_errors),
                                       cmocka_unit_test(test_processes_change_nothing),
                                       cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_segments),
                                       cmocka_unit_test(test_segments_in_one_token),
                                       cmocka_unit_test(test_segments_that_are_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
