/* The math verifier against the labelled cases: error rates, false positives compared with
 * Math-Verify's, and time. Cases marked "policy" do not count. CASES_VERBOSE=1 prints every
 * error. */
#include "cases.h"
#include "check.h"

#include <math.h>

/* A computation that escapes the verifier's limits takes seconds, so the bounds are far above the
 * measured times (bench/verify_math.py): a core with a busy sibling takes half as long again, and
 * sanitizers slow everything down. */
#if defined(__SANITIZE_THREAD__)
enum { SLOWER = 40 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SLOWER = 20 };
#else
enum { SLOWER = 4 };
#endif

struct target {
    const char *file;
    double most_wrong;      /* share */
    int64_t most_wrong_abs; /* if the target is a count; -1: a share */
};

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints the rates of a file; returns the number of missed targets. */
static int judge_file(struct harness *h, const struct target *t)
{
    struct case_file f;
    char name[256];
    snprintf(name, sizeof name, "data/verify/math/%s.jsonl", t->file);
    const char *path = shared_or_skip(name);
    const bool whole = shared_is_whole(path);
    if (cases_read(path, &f)) return 1;
    cases_judge(h, &f);
    int64_t rows = 0, fp = 0, fn = 0, theirs_fp = 0, theirs_fn = 0;
    double *us = malloc((size_t)f.n * sizeof *us), sum = 0;
    for (int64_t i = 0; i < f.n; i++) {
        const struct one_case *c = &f.c[i];
        us[i] = c->us, sum += c->us;
        const bool yes = c->verdict == TARE_VERDICT_CORRECT;
        if (c->policy) continue;
        rows++;
        fp += yes && !c->truth, fn += !yes && c->truth;
        theirs_fp += c->math_verify && !c->truth, theirs_fn += !c->math_verify && c->truth;
        if (yes != c->truth && getenv("CASES_VERBOSE"))
            printf("  %s %s %s | gold %.100s | pred %.*s | took \"%.100s\" | %s: %s\n", yes ? "FP" : "FN", c->id,
                   c->kind ? c->kind : "", c->gold.data, (int)(c->pred.size < 150 ? c->pred.size : 150),
                   c->pred.data + (c->pred.size < 150 ? 0 : c->pred.size - 150), c->got, harness_code(c->verdict), c->reason);
    }
    qsort(us, (size_t)f.n, sizeof *us, by_time);
    const double mean = sum / (double)f.n;
    printf(
        "%-12s %5lld rows: wrong %lld = %.2f %% (false positives %lld, Math-Verify %lld; false negatives %lld, Math-Verify %lld); "
        "%.1f us mean = %.0f pairs/s, p50 %.1f, p99 %.0f, max %.0f us\n",
        t->file, (long long)rows, (long long)(fp + fn), 100 * (double)(fp + fn) / (double)rows, (long long)fp, (long long)theirs_fp,
        (long long)fn, (long long)theirs_fn, mean, 1e6 / mean, us[f.n / 2], us[f.n * 99 / 100], us[f.n - 1]);
    int missed = t->most_wrong_abs >= 0 ? fp + fn > t->most_wrong_abs
                                        : (double)(fp + fn) > fmax(whole ? 0 : 1, t->most_wrong * (double)rows);
    missed += 4 * fp > theirs_fp;
    /* no pair takes longer than 20 ms on a quiet machine */
    missed += us[f.n - 1] > 20000.0 * SLOWER;
    if (whole && !strcmp(t->file, "realistic")) /* 20,000 pairs a second there */
        missed += mean > 50.0 * SLOWER || us[f.n * 99 / 100] > 1000.0 * SLOWER;
    free(us);
    cases_free(&f);
    return missed;
}

static void test_rates(void **state)
{
    (void)state;
    static const struct target targets[] = {
        {"realistic", 0.003, -1}, {"graders", 0.01, -1}, {"mathverify", 0, 0}, {"adversarial", 0, 0}};
    struct harness h = {0};
    /* two of the graders' tests require, as a policy, that numbers in words do not count */
    if (harness_open(&h, "math", (const char *const[]){"number_words=false", NULL})) {
        SKIP("the plugin math is not built (FLINT is missing)");
    }
    int missed = 0;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) missed += judge_file(&h, &targets[i]);
    harness_close(&h);
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
