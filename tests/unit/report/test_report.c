/* Statistics, tables and the HTML page from made-up runs. */
#include "check.h"
#include "folder.h"

#include "base/clock.h"
#include "base/fs.h"
#include "lab/report/report.h"
#include "lab/report/svg.h"

#include <math.h>
#include <string.h>

static const char *root;

static void path_of(char *out, const char *name)
{
    struct err e = {0};
    assert_ok(fs_join(out, root, name, &e), &e);
}

static void write_text(const char *run, const char *name, const char *text)
{
    char dir[FS_PATH], path[FS_PATH];
    struct err e = {0};
    path_of(dir, run);
    assert_ok(fs_mkdirs(dir, &e), &e);
    assert_ok(fs_join(path, dir, name, &e), &e);
    assert_ok(fs_write_atomic(path, text, (int64_t)strlen(text), &e), &e);
}

/* ---------------------------------------------------------------- statistics */

static void permutation_by_hand(void **state)
{
    (void)state;
    const double three[] = {1, 2, 3}, mixed[] = {1, -1, 4}, zero[] = {0, 0}, same[] = {0.1, 0.1, 0.1, 0.1};
    /* only +++ and --- reach |6| */
    assert_true(fabs(statistics_permutation(three, 3) - 2.0 / 8) < 1e-15);
    /* |sum| of 6,4,4,2 x 2 against 4 */
    assert_true(fabs(statistics_permutation(mixed, 3) - 6.0 / 8) < 1e-15);
    assert_true(statistics_permutation(zero, 2) == 1);
    assert_true(fabs(statistics_permutation(same, 4) - 2.0 / 16) < 1e-15);
    assert_true(isnan(statistics_permutation(three, 0)));
}

/* The sampled patterns agree with the exact share: 18 equal differences of which one is negative;
 * |sum| >= 16 has 2 (1 + 18) patterns. */
static void drawn_permutation_is_close(void **state)
{
    double d[18];
    (void)state;
    for (int i = 0; i < 18; i++) d[i] = i ? 1 : -1;
    const double exact = 2.0 * 19 / 262144, got = statistics_permutation(d, 18);
    assert_true(fabs(got - exact) < 5 * sqrt(exact / 1e5) + 1e-5);
    assert_true(got == statistics_permutation(d, 18));
}

static void moments_and_interval(void **state)
{
    const double x[] = {1, 2, 3, 4, 2.5};
    struct moments m, again;
    struct err e = {0};
    (void)state;
    assert_ok(statistics_moments(x, 4, &m, &e), &e);
    assert_true(m.mean == 2.5 && fabs(m.sd - sqrt(5.0 / 3)) < 1e-15 && isnan(m.low) && isnan(m.high));
    assert_ok(statistics_moments(x, 5, &m, &e), &e);
    assert_true(m.mean == 2.5 && fabs(m.sd - sqrt(5.0 / 4)) < 1e-15);
    assert_true(m.low >= 1 && m.low < 2.2 && m.high > 2.8 && m.high <= 4);
    assert_ok(statistics_moments(x, 5, &again, &e), &e);
    assert_memory_equal(&m, &again, sizeof m);
    assert_ok(statistics_moments(x, 1, &m, &e), &e);
    assert_true(m.mean == 1 && isnan(m.sd) && isnan(m.low));
    assert_ok(statistics_moments(x, 0, &m, &e), &e);
    assert_true(isnan(m.mean));
}

static void holm_by_hand(void **state)
{
    double p[] = {0.01, NAN, 0.04, 0.03};
    struct err e = {0};
    (void)state;
    assert_ok(statistics_holm(p, 4, &e), &e);
    assert_true(fabs(p[0] - 0.03) < 1e-15 && isnan(p[1]) && fabs(p[2] - 0.06) < 1e-15 && fabs(p[3] - 0.06) < 1e-15);
}

/* ---------------------------------------------------------------- runs */

static void reads_a_run_that_is_being_written(void **state)
{
    struct arena a;
    struct run_data r;
    struct err e = {0};
    char dir[FS_PATH];
    double x;
    int64_t step;
    (void)state;
    write_text("live", "metrics.jsonl",
               "{\"step\":0,\"eval/reward\":0.25}\n{\"step\":1,\"reward/mean\":0.5,\"bad\":null}\n{\"step\":2,\"rew");
    path_of(dir, "live");
    arena_init(&a, "test");
    assert_ok(run_data_read(dir, &a, &r, &e), &e);
    assert_int_equal(r.last_step, 1);
    assert_int_equal(r.n_series, 2);
    assert_string_equal(r.name, "live");
    assert_ok(run_last_step(dir, &step, &e), &e);
    assert_int_equal(step, 1);
    assert_ok(run_data_value(&r, "eval/reward", &x, &e), &e);
    assert_true(x == 0.25);
    assert_ok(run_data_value(&r, "no/such", &x, &e), &e);
    assert_true(isnan(x));
    assert_int_equal(run_data_value(&r, "reward/mean:median", &x, &e), TARE_E_INVALID);
    write_text("broken", "metrics.jsonl", "{\"step\":1}\n{\"step\"\n{\"step\":3}\n");
    path_of(dir, "broken");
    assert_int_not_equal(run_data_read(dir, &a, &r, &e), TARE_OK);
    assert_non_null(strstr(e.message, "metrics.jsonl:2"));
    path_of(dir, "absent");
    assert_int_equal(run_data_read(dir, &a, &r, &e), TARE_E_NOT_FOUND);
    arena_free(&a);
}

static void reduces_a_series(void **state)
{
    double step[10], value[10], x;
    struct err e = {0};
    (void)state;
    for (int i = 0; i < 10; i++) step[i] = i, value[i] = i == 3 ? 100 : i;
    struct series s = {"m", step, value, 10};
    const struct run_data r = {.series = &s, .n_series = 1};
    const struct {
        const char *metric;
        double expected;
    } cases[] = {{"m", 9}, {"m:last", 9}, {"m:first", 0}, {"m:max", 100}, {"m:min", 0}, {"m:mean", 14.2}, {"m:tail", 8.5}};
    for (int i = 0; i < 7; i++) {
        assert_ok(run_data_value(&r, cases[i].metric, &x, &e), &e);
        assert_true(fabs(x - cases[i].expected) < 1e-12);
    }
}

/* ---------------------------------------------------------------- the table */

/* Two estimators, one of them at two temperatures, with three seeds: grpo s -> s/10, b at T -> +
 * 0.1 (T = 1) or - 0.1 (T = 2). One cell is missing. */
static void make_sweep(void)
{
    struct str plan = {0};
    struct err e = {0};
    static const char *const ROWS[][2] = {{"grpo", NULL}, {"b", "1"}, {"b", "2"}};
    assert_ok(
        str_add(&plan,
                "{\"name\":\"s\",\"metric\":\"eval/reward\",\"baseline\":\"estimator.plugin=grpo\",\"axes\":["
                "{\"key\":\"run.seed\",\"values\":[\"1\",\"2\",\"3\"]},{\"key\":\"estimator.plugin\",\"values\":[\"grpo\",\"b\"]},"
                "{\"key\":\"estimator.b.t\",\"values\":[\"1\",\"2\"]}],\"cells\":[",
                -1, &e),
        &e);
    for (int seed = 1; seed <= 3; seed++)
        for (int row = 0; row < 3; row++) {
            char cell[80], line[200];
            const double x = seed / 10.0 + (row == 0 ? 0 : row == 1 ? 0.1 : -0.1);
            snprintf(cell, sizeof cell, "sweep/c%d%d", row, seed);
            snprintf(line, sizeof line, "{\"step\":0,\"eval/reward\":0}\n{\"step\":5,\"eval/reward\":%.17g,\"policy/entropy\":1}\n",
                     x);
            if (row != 2 || seed != 3) write_text(cell, "metrics.jsonl", line);
            assert_ok(str_addf(&plan, &e, "%s{\"name\":\"c%d%d\",\"values\":[\"%d\",\"%s\",%s]}", seed + row > 1 ? "," : "", row,
                               seed, seed, ROWS[row][0],
                               row == 0   ? "null"
                               : row == 1 ? "\"1\""
                                          : "\"2\""),
                      &e);
        }
    assert_ok(str_add(&plan, "]}", -1, &e), &e);
    write_text("sweep", "sweep.json", plan.data);
    str_free(&plan);
}

static void table_pairs_by_seed(void **state)
{
    struct arena a;
    struct sweep_plan p;
    struct sweep_table t = {0};
    struct str text = {0};
    struct err e = {0};
    char dir[FS_PATH];
    (void)state;
    make_sweep();
    path_of(dir, "sweep");
    arena_init(&a, "test");
    assert_ok(sweep_plan_read(dir, &a, &p, &e), &e);
    assert_ok(sweep_table_make(&p, NULL, NULL, &a, &t, &e), &e);
    assert_int_equal(t.n_rows, 3);
    assert_string_equal(t.rows[1].label, "b, t 1");
    assert_int_equal(t.rows[0].baseline, 0);
    assert_int_equal(t.rows[1].pairs, 3);
    assert_true(fabs(t.rows[1].diff.mean - 0.1) < 1e-12 && fabs(t.rows[1].m.mean - 0.3) < 1e-12);
    assert_true(fabs(t.rows[1].p - 0.25) < 1e-15); /* 2 of 8 */
    assert_int_equal(t.rows[2].pairs, 2);          /* seed 3 is missing */
    assert_true(fabs(t.rows[2].diff.mean + 0.1) < 1e-12 && t.rows[2].n == 2);
    assert_ok(sweep_table_markdown(&t, &text, &e), &e);
    assert_non_null(strstr(text.data, "| b, t 1 | 3 | 0.3000 |"));
    assert_non_null(strstr(text.data, "| b, t 2 | 2 of 3 |"));
    str_clear(&text);
    assert_ok(sweep_table_csv(&t, &text, &e), &e);
    assert_non_null(strstr(text.data, "\n\"b, t 1\",b,1,eval/reward,3,3,"));
    /* other baselines: a valid one, and two invalid ones */
    assert_ok(sweep_table_make(&p, NULL, "t=2", &a, &t, &e), &e);
    assert_int_equal(t.rows[1].baseline, 2);
    assert_true(fabs(t.rows[1].diff.mean - 0.2) < 1e-12);
    assert_int_equal(sweep_table_make(&p, NULL, "t=7", &a, &t, &e), TARE_E_INVALID);
    assert_int_equal(sweep_table_make(&p, NULL, "x=7", &a, &t, &e), TARE_E_INVALID);
    str_free(&text);
    arena_free(&a);
}

/* ---------------------------------------------------------------- the page */

static int count_text(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) n++;
    return n;
}

static void write_run(const char *name, int steps)
{
    struct str text = {0};
    struct err e = {0};
    for (int s = 1; s <= steps; s++) {
        assert_ok(str_addf(&text, &e, "{\"step\":%d", s), &e);
        for (int m = 0; m < 16; m++) {
            static const char *const NAMES[] = {"reward/mean",
                                                "response_length/mean",
                                                "policy/entropy",
                                                "estimator/effective_signal_ratio",
                                                "policy/clip_fraction",
                                                "policy/approx_kl",
                                                "grad_norm",
                                                "tokens_per_second",
                                                "time/rollout",
                                                "time/update",
                                                "time/step",
                                                "verifier/correct",
                                                "verifier/wrong",
                                                "estimator/advantage_max",
                                                "lr",
                                                "estimator/confidence_mean"};
            assert_ok(str_addf(&text, &e, ",\"%s\":%.6g", NAMES[m], 0.5 + 0.4 * sin(s * 0.1 + m)), &e);
        }
        for (int k = 0; k < 8; k++)
            assert_ok(
                str_addf(&text, &e,
                         ",\"cluster/<k%d>/m1\":0.5,\"cluster/<k%d>/m2\":0.5,\"cluster/<k%d>/n_eff\":%d,\"cluster/<k%d>/w\":0.25",
                         k, k, k, s, k),
                &e);
        assert_ok(str_add(&text, "}\n", -1, &e), &e);
    }
    write_text(name, "metrics.jsonl", text.data);
    str_free(&text);
}

static void page_of_a_long_run_is_small_and_self_contained(void **state)
{
    struct str html = {0};
    struct err e = {0};
    char dir[FS_PATH];
    const char *paths[] = {dir};
    (void)state;
    write_run("long", 500);
    write_text("long/rollouts", "step-000001.jsonl",
               "{\"id\":\"q\",\"group\":0,\"question\":\"<script>alert(1)</script>\",\"completion\":\"a & "
               "b\",\"reward\":0,\"verdict\":\"wrong\","
               "\"extracted\":\"a\",\"cluster\":0,\"baseline\":0.25,\"scale\":0.5}\n");
    write_text("long/rollouts", "step-000500.jsonl",
               "{\"id\":\"q\",\"group\":0,\"prompt\":\"<script>alert(1)</"
               "script>\",\"completion\":\"right\",\"reward\":1,\"verdict\":\"correct\","
               "\"extracted\":\"r\",\"cluster\":0,\"baseline\":0.5,\"scale\":0.5}\n");
    path_of(dir, "long");
    const double began = clock_seconds();
    assert_ok(report_html(paths, 1, &html, &e), &e);
    assert_true(html.size < 3000000 && clock_seconds() - began < 20);
    assert_null(strstr(html.data, "://"));           /* no network access */
    assert_null(strstr(html.data, "<script>alert")); /* markup in texts is escaped */
    assert_non_null(strstr(html.data, "&lt;script&gt;alert(1)"));
    assert_non_null(strstr(html.data, "a &amp; b"));
    static const char *const TITLES[] = {"Response length",        "Policy entropy",    "Training reward",
                                         "Effective-signal ratio", "Clip fraction",     "KL to the sampling policy",
                                         "Gradient norm",          "Verdicts",          "Time by stage",
                                         "Tokens a second",        "Baseline b against"};
    for (int i = 0; i < 11; i++)
        if (!strstr(html.data, TITLES[i])) fail_msg("no chart '%s'", TITLES[i]);
    assert_int_equal(count_text(html.data, "&lt;k7&gt;\" d="), 4); /* m1, sigma, n_eff, w */
    assert_int_equal(count_text(html.data, "<figure"), count_text(html.data, "</figure>"));
    assert_int_equal(count_text(html.data, "<svg"), count_text(html.data, "</svg>"));
    assert_int_equal(count_text(html.data, "<div"), count_text(html.data, "</div>"));
    assert_null(strstr(html.data, "nan"));
    assert_null(strstr(html.data, "inf "));
    str_free(&html);
}

static void page_of_a_sweep_has_table_and_bands(void **state)
{
    struct str html = {0};
    struct err e = {0};
    char dir[FS_PATH];
    const char *paths[] = {dir};
    (void)state;
    make_sweep();
    path_of(dir, "sweep");
    assert_ok(report_html(paths, 1, &html, &e), &e);
    assert_non_null(strstr(html.data, "class=\"band"));
    assert_non_null(strstr(html.data, "<td>b, t 1</td>"));
    assert_non_null(strstr(html.data, "2 of 3"));
    str_free(&html);
}

static void page_of_a_run_without_steps(void **state)
{
    struct str html = {0};
    struct err e = {0};
    char dir[FS_PATH];
    const char *paths[] = {dir};
    (void)state;
    write_text("empty", "manifest.json", "{}\n");
    path_of(dir, "empty");
    assert_ok(report_html(paths, 1, &html, &e), &e);
    assert_non_null(strstr(html.data, "</html>"));
    str_free(&html);
}

/* A spike of one step is visible in the chart of 20,000 steps: reduction does not average it
 * away. */
static void reduction_keeps_spikes(void **state)
{
    enum { N = 20000 };
    static double x[N], y[N];
    struct str out = {0};
    struct err e = {0};
    (void)state;
    for (int i = 0; i < N; i++) x[i] = i, y[i] = 1;
    y[12345] = 50;
    const struct svg_line line = {.label = "l", .x = x, .y = y, .n = N};
    const struct svg_line two[] = {line, {.label = "m", .x = x, .y = y, .n = 2, .colour = 1}};
    const struct svg_chart chart = {.title = "t", .x_label = "step", .lines = two, .n = 2, .zero = true};
    assert_ok(svg_chart_print(&chart, &out, &e), &e);
    assert_true(out.size < 20000);
    const char *d = strstr(strstr(out.data, "data-n=\"l\""), " d=\"M") + 5;
    double least = 1e9;
    while (*d != '"') {
        char *end;
        (void)strtod(d, &end);
        const double v = strtod(end, &end);
        least = fmin(least, v);
        d = *end == ' ' ? end + 1 : end;
    }
    assert_true(least < 20); /* near the top of the chart */
    str_free(&out);
}

static void watch_fits_the_screen(void **state)
{
    struct str text = {0};
    struct err e = {0};
    char dir[FS_PATH];
    (void)state;
    write_run("long", 300);
    path_of(dir, "long");
    for (int unicode = 0; unicode < 2; unicode++)
        for (int rows = 3; rows < 50; rows += 9) {
            str_clear(&text);
            assert_ok(watch_print(dir, 80, rows, unicode, &text, &e), &e);
            assert_true(count_text(text.data, "\n") <= rows);
            if (!unicode)
                for (int64_t i = 0; i < text.size; i++) assert_true((unsigned char)text.data[i] < 128);
            assert_int_equal(str_utf8_error(text.data, text.size), 0);
        }
    assert_non_null(strstr(text.data, "training reward"));
    str_free(&text);
}

/* Lengths from 100 to 400 on a log axis, which has labels although 100 is the only power of ten in
 * the range. */
static void log_axis(void **state)
{
    (void)state;
    struct str out = {0};
    struct err e = {0};
    const double x[] = {0, 30, 60}, y[] = {100, 200, 400}, flat[] = {7, 7, 7}, zero[] = {0, 1, 2};
    const struct svg_line line = {.label = "l", .x = x, .y = y, .n = 3};
    struct svg_chart chart = {.title = "t", .x_label = "step", .lines = &line, .n = 1, .log = true};
    assert_ok(svg_chart_print(&chart, &out, &e), &e);
    double px[3], py[3];
    const char *path = strstr(out.data, "class=\"line");
    assert_non_null(path);
    assert_non_null(path = strstr(path, "d=\"M"));
    assert_int_equal(sscanf(path, "d=\"M%lf %lf %lf %lf %lf %lf", &px[0], &py[0], &px[1], &py[1], &px[2], &py[2]), 6);
    assert_true(fabs((py[0] - py[1]) - (py[1] - py[2])) < 0.2 && py[0] - py[1] > 20);
    assert_non_null(strstr(out.data, ">100<"));
    assert_non_null(strstr(out.data, ">200<"));
    str_clear(&out);
    const struct svg_line constant = {.label = "l", .x = x, .y = flat, .n = 3};
    chart.lines = &constant;
    assert_ok(svg_chart_print(&chart, &out, &e), &e);
    assert_null(strstr(out.data, "nan"));
    assert_non_null(strstr(out.data, "class=\"y\""));
    str_clear(&out);
    /* a log axis cannot show 0: the axis is linear */
    const struct svg_line with_zero = {.label = "l", .x = x, .y = zero, .n = 3};
    chart.lines = &with_zero;
    assert_ok(svg_chart_print(&chart, &out, &e), &e);
    assert_null(strstr(out.data, "inf"));
    str_free(&out);
}

static void difficulty_page(void **state)
{
    (void)state;
    struct str out = {0};
    struct err e = {0};
    static const char *const buckets[] = {"Easy", "Hardest"};
    struct difficulty_point p[16];
    int64_t n = 0;
    for (int subset = 0; subset < 2; subset++)
        for (int b = 0; b < 2; b++)
            for (int run = 0; run < 2; run++)
                for (int step = 0; step < 2; step++)
                    p[n++] = (struct difficulty_point){.run = run ? "runs/<b>" : "runs/a",
                                                       .subset = subset ? "complex" : "standard",
                                                       .bucket = buckets[b],
                                                       .step = 30 * step,
                                                       .questions = 5,
                                                       .accuracy = 0.5,
                                                       .low = step ? 0.4 : NAN,
                                                       .high = step ? 0.6 : NAN,
                                                       .length = 50 + 10 * step};
    assert_ok(report_difficulty("task & more", p, n, &out, &e), &e);
    assert_int_equal(count_text(out.data, "<figure"), 4); /* accuracy and length, standard and complex */
    assert_int_equal(count_text(out.data, "<figcaption>Mean tokens, log scale"), 2);
    assert_int_equal(count_text(out.data, "<tr><td>"), 16);
    assert_int_equal(count_text(out.data, "0.400 to 0.600"), 8);
    assert_int_equal(count_text(out.data, "<svg"), count_text(out.data, "</svg>"));
    assert_null(strstr(out.data, "<b>"));
    assert_non_null(strstr(out.data, "task &amp; more"));
    str_clear(&out);
    assert_ok(report_difficulty("nothing", p, 0, &out, &e), &e);
    str_clear(&out);
    struct difficulty_point many[20];
    char names[20][8];
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "run%d", i);
        many[i] = p[0];
        many[i].run = names[i];
    }
    assert_int_equal(report_difficulty("too many", many, 20, &out, &e), TARE_E_RANGE);
    str_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_axis),
        cmocka_unit_test(difficulty_page),
        cmocka_unit_test(permutation_by_hand),
        cmocka_unit_test(drawn_permutation_is_close),
        cmocka_unit_test(moments_and_interval),
        cmocka_unit_test(holm_by_hand),
        cmocka_unit_test(reads_a_run_that_is_being_written),
        cmocka_unit_test(reduces_a_series),
        cmocka_unit_test(table_pairs_by_seed),
        cmocka_unit_test(page_of_a_long_run_is_small_and_self_contained),
        cmocka_unit_test(page_of_a_sweep_has_table_and_bands),
        cmocka_unit_test(page_of_a_run_without_steps),
        cmocka_unit_test(reduction_keeps_spikes),
        cmocka_unit_test(watch_fits_the_screen),
    };
    struct err e;
    if (!(root = make_test_folder("tare-report"))) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fs_remove_tree(root, &e);
    return failed;
}
