/* Verifiers with submit, poll and take (core/verify/waiting.c): verdicts are at the index of their
 * answers, in any order of submission and arrival; late, broken and cancelled ones. */
#include "check.h"

#include "verify/verify.h"

#include <stdlib.h>
#include <string.h>

enum { N = 12, WORKERS = 3 };

struct bench {
    struct verify *v;
    struct verify_item item[N];
    struct verify_text extracted[N], note[N];
    double most, early; /* parameters of the fixture */
};

static tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

static void on_metric(void *ctx, const char *name, double value, int32_t how)
{
    (void)how;
    struct bench *b = ctx;
    *(strstr(name, "/open") ? &b->most : &b->early) = value;
}

/* Every third of 12 answers is right. */
static void set_up(struct bench *b, double timeout)
{
    static const char *const NAMES[N] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11"};
    char fixture[4096];
    struct err e = {0};
    const struct verify_options o = {.workers = WORKERS, .timeout = timeout, .max_crash_share = 1};
    const struct plugin_env env = {.ctx = b, .metric = on_metric};
    memset(b, 0, sizeof *b);
    snprintf(fixture, sizeof fixture, "%s/waits.so", getenv("FIXTURES"));
    assert_ok(verify_new(&o, &b->v, &e), &e);
    assert_false(verify_waits(b->v));
    assert_ok(verify_add(b->v, &(struct verify_use){.plugin = fixture, .weight = 2}, NULL, NULL, &env, &e), &e);
    assert_ok(verify_add(b->v, &(struct verify_use){.plugin = "exact", .weight = 0.25}, NULL, NULL, NULL, &e), &e);
    assert_true(verify_waits(b->v));
    for (int i = 0; i < N; i++)
        b->item[i] = (struct verify_item){.completion = text(i % 3 ? "no" : "yes"),
                                          .answer = text("yes"),
                                          .name = NAMES[i],
                                          .sample = i,
                                          .tokens = 1 + i,
                                          .extracted = &b->extracted[i],
                                          .note = &b->note[i]};
}

static void judged(const struct bench *b, const char *what)
{
    for (int i = 0; i < N; i++) {
        const bool right = b->item[i].completion.size == 3;
        if (b->item[i].reward != (right ? 2.25 : 0) || b->item[i].verdict != (right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG))
            fail_msg("%s: answer %d has the reward %g and the verdict %d", what, i, b->item[i].reward, b->item[i].verdict);
        assert_string_equal(b->note[i].data, "the fixture's verdict");
    }
}

static tare_status judge(struct bench *b, struct err *e)
{
    return verify_items(b->v, b->item, N, (struct verify_parts){0}, e);
}

/* Submitted from the last to the first with polls between, half of them early, or none: the same
 * verdicts. */
static void test_ahead(void **state)
{
    (void)state;
    for (int ahead = 0; ahead <= N; ahead += N / 2) {
        struct bench b;
        struct err e = {0};
        set_up(&b, 60);
        assert_ok(verify_begin(b.v, N, &e), &e);
        for (int k = 0; k < ahead; k++) {
            assert_ok(verify_submit(b.v, N - 1 - k, &b.item[N - 1 - k], &e), &e);
            if (k % 2) assert_ok(verify_poll(b.v, &e), &e);
        }
        assert_ok(judge(&b, &e), &e);
        judged(&b, ahead ? "ahead" : "at the end");
        assert_true(b.most == WORKERS);
        assert_true(ahead ? b.early >= ahead - 1 : b.early == 0);
        assert_ok(judge(&b, &e), &e); /* a second time: nothing of the first remains */
        judged(&b, "again");
        verify_close(b.v);
    }
}

/* An answer that differs from the one submitted in its place is judged itself: judged before, open,
 * or queued. */
static void test_replaced(void **state)
{
    (void)state;
    for (int turns = 0; turns < 12; turns += 3) {
        struct bench b;
        struct err e = {0};
        set_up(&b, 60);
        assert_ok(verify_begin(b.v, N, &e), &e);
        for (int i = 0; i < N; i++) assert_ok(verify_submit(b.v, i, &b.item[i], &e), &e);
        for (int k = 0; k < turns; k++) assert_ok(verify_poll(b.v, &e), &e);
        for (int i = 0; i < N; i += 5) b.item[i].completion = text(b.item[i].completion.size == 3 ? "no" : "yes");
        assert_ok(judge(&b, &e), &e);
        judged(&b, "replaced");
        verify_close(b.v);
    }
}

static void test_late(void **state)
{
    (void)state;
    struct bench b;
    int late = 0;
    /* more time if other items are late because the machine is busy */
    for (double seconds = 0.2; seconds < 300; seconds *= 10) {
        struct err e = {0};
        set_up(&b, seconds);
        b.item[4].completion = text("never");
        assert_ok(judge(&b, &e), &e);
        late = 0;
        for (int i = 0; i < N; i++) late += b.item[i].verdict == TARE_VERDICT_TIMED_OUT;
        if (late <= 1) break;
        verify_close(b.v);
    }
    assert_int_equal(late, 1);
    for (int i = 0; i < N; i++)
        if (i != 4) assert_int_equal(b.item[i].verdict, i % 3 ? TARE_VERDICT_WRONG : TARE_VERDICT_CORRECT);
    assert_int_equal(b.item[4].verdict, TARE_VERDICT_TIMED_OUT);
    assert_true(b.item[4].reward == 0);
    assert_string_equal(b.note[4].data, "the verifier did not answer in time");
    verify_close(b.v);
}

static void test_broken(void **state)
{
    (void)state;
    struct bench b;
    struct err e = {0};
    set_up(&b, 60);
    b.item[7].completion = text("broken");
    assert_int_equal(judge(&b, &e), TARE_E_IO);
    assert_string_equal(e.message, "row r7, sample 7: verifier waits: take: the judge is out");
    b.item[7].completion = text("no");
    assert_ok(judge(&b, &e), &e);
    judged(&b, "after an error");
    /* and while others are still being sampled */
    e = (struct err){0};
    b.item[0].completion = text("broken");
    assert_ok(verify_begin(b.v, N, &e), &e);
    assert_ok(verify_submit(b.v, 0, &b.item[0], &e), &e);
    tare_status got = TARE_OK;
    for (int polls = 0; polls < 9 && !got; polls++) got = verify_poll(b.v, &e);
    assert_int_equal(got, TARE_E_IO);
    assert_non_null(strstr(e.message, "row r0, sample 0"));
    verify_close(b.v);
}

/* The next step, or closing, drops the submissions of a step that was given up. */
static void test_given_up(void **state)
{
    (void)state;
    struct bench b;
    struct err e = {0};
    set_up(&b, 60);
    for (int round = 0; round < 3; round++) {
        b.item[round].completion = text("never");
        assert_ok(verify_begin(b.v, N, &e), &e);
        for (int i = 0; i < N; i++) assert_ok(verify_submit(b.v, i, &b.item[i], &e), &e);
        b.item[round].completion = text(round % 3 ? "no" : "yes");
    }
    assert_ok(verify_begin(b.v, N, &e), &e);
    assert_ok(judge(&b, &e), &e);
    judged(&b, "after a step that was given up");
    assert_true(b.most == WORKERS);
    assert_ok(verify_begin(b.v, N, &e), &e);
    assert_ok(verify_submit(b.v, 3, &b.item[3], &e), &e);
    verify_close(b.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ahead), cmocka_unit_test(test_replaced), cmocka_unit_test(test_late),
                                       cmocka_unit_test(test_broken), cmocka_unit_test(test_given_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
