/* Axes and cells of [sweep], and the lines that --suggest prints. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "sweep/sweep.h"

#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

static const char *folder;
static char file[FS_PATH];

static int make_folder(void **state)
{
    (void)state;
    return !(folder = make_test_folder("tare-sweep")) || fs_join(file, folder, "a.ini", NULL);
}

static int remove_folder(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static void load(struct config *c, const char *text)
{
    struct err e = {0};
    assert_ok(fs_write_atomic(file, text, (int64_t)strlen(text), &e), &e);
    assert_ok(config_load(c, file, NULL, 0, &e), &e);
}

static void expect_values(const char *text, const char *expected)
{
    struct arena a;
    struct err e = {0};
    struct str joined = {0};
    const char **values;
    int64_t n;
    arena_init(&a, "test");
    assert_ok(sweep_values(text, "here", &a, &values, &n, &e), &e);
    for (int64_t i = 0; i < n; i++) assert_ok(str_addf(&joined, &e, "%s%s", i ? ";" : "", values[i]), &e);
    assert_string_equal(joined.data, expected);
    str_free(&joined);
    arena_free(&a);
}

static void lists_and_ranges(void **state)
{
    (void)state;
    expect_values("grpo, bv_blend", "grpo;bv_blend");
    expect_values("1..3", "1;2;3");
    expect_values("8..12", "8;9;10;11;12"); /* whole numbers stay readable */
    expect_values("0, 5..6, x", "0;5;6;x");
    expect_values("100..300 step 100", "100;200;300");
    expect_values("0..1 step 0.25", "0;0.25;0.5;0.75;1");
    expect_values("0..1 x 3", "0;0.5;1");
    expect_values("log 0.01..1 x 3", "0.01;0.1;1");
    expect_values("log 1..100 x 5", "1;3.16228;10;31.6228;100");
    expect_values("math | math, length", "math;math, length");
    expect_values("../a, ../b", "../a;../b"); /* a path is not a range */
    expect_values(" one ", "one");
}

static void bad_lists_are_refused(void **state)
{
    static const char *const BAD[] = {"",         "a,,b",     "a,",       "3..1",        "0.5..1",      "log 0..1 x 3",
                                      "log 1..2", "1..2 x 0", "1..2 y 3", "1..9 step 0", "log a..b x 2"};
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct arena a;
        struct err e = {0};
        const char **values;
        int64_t n;
        arena_init(&a, "test");
        if (sweep_values(BAD[i], "x.ini:7", &a, &values, &n, &e) != TARE_E_CONFIG) fail_msg("'%s' was accepted", BAD[i]);
        assert_non_null(strstr(e.message, "x.ini:7"));
        arena_free(&a);
    }
}

static void grid(const char *text, struct arena *a, struct sweep_plan *p)
{
    struct config c;
    struct err e = {0};
    load(&c, text);
    arena_init(a, "test");
    assert_ok(sweep_grid(&c, a, p, &e), &e);
    config_free(&c);
}

static void a_plugins_parameter_counts_in_its_cells_only(void **state)
{
    struct arena a;
    struct sweep_plan p;
    (void)state;
    grid("[sweep]\nname = s\nestimator.plugin = grpo, bv_blend\nestimator.bv_blend.gamma = 0.1, 0.9\nrun.seed = 1..2\n", &a, &p);
    static const char *const NAMES[] = {"grpo_seed-1", "bv_blend_gamma-0.1_seed-1", "bv_blend_gamma-0.9_seed-1",
                                        "grpo_seed-2", "bv_blend_gamma-0.1_seed-2", "bv_blend_gamma-0.9_seed-2"};
    assert_int_equal(p.n_cells, 6); /* not 8: gamma has no effect on grpo; seeds advance slowest */
    for (int i = 0; i < 6; i++) assert_string_equal(p.cells[i].name, NAMES[i]);
    assert_null(p.cells[0].value[sweep_plan_axis(&p, "gamma")]);
    assert_string_equal(p.dir, "runs/s");
    assert_string_equal(p.metric, "eval/reward");
    arena_free(&a);
}

/* Two runs at a time, of 20 s each: the time already spent counts, and the last run has a place
 * alone. */
static void time_left_counts_what_is_done(void **state)
{
    (void)state;
    assert_true(sweep_time_left(20, 4, 0, 2) == 40);
    assert_true(sweep_time_left(20, 3, 10, 2) == 25);
    assert_true(sweep_time_left(20, 1, 2, 2) == 18);
    assert_true(sweep_time_left(20, 1, 20, 2) == 0);
}

static void pairs_advance_together(void **state)
{
    struct arena a;
    struct sweep_plan p;
    (void)state;
    grid("[sweep]\npair = gamma, n0\nestimator.bv_blend.gamma = 0.1, 0.9\nestimator.bv_blend.n0 = 4, 8\nrun.seed = 5, 6\n"
         "loss.clip = 0.1, 0.2\n[estimator]\nplugin = bv_blend\n",
         &a, &p);
    assert_int_equal(p.n_cells, 8);
    const int64_t gamma = sweep_plan_axis(&p, "gamma"), n0 = sweep_plan_axis(&p, "n0"), seed = sweep_plan_axis(&p, "run.seed");
    for (int i = 0; i < 8; i++) {
        const char **v = p.cells[i].value;
        assert_string_equal(v[n0], strcmp(v[gamma], "0.1") ? "8" : "4");
        assert_string_equal(v[seed], i < 4 ? "5" : "6");
    }
    arena_free(&a);
}

static void names_that_would_clash_differ(void **state)
{
    struct arena a;
    struct sweep_plan p;
    (void)state;
    grid("[sweep]\ndata.train = a/b, a:b, ..\n", &a, &p);
    assert_int_equal(p.n_cells, 3);
    assert_string_not_equal(p.cells[0].name, p.cells[1].name);
    for (int i = 0; i < 3; i++) {
        assert_null(strchr(p.cells[i].name, '/'));
        assert_int_not_equal(p.cells[i].name[0], '.');
    }
    arena_free(&a);
}

static void expect_refused(const char *text, const char *what)
{
    struct arena a;
    struct sweep_plan p;
    struct config c;
    struct err e = {0};
    load(&c, text);
    arena_init(&a, "test");
    assert_int_equal(sweep_grid(&c, &a, &p, &e), TARE_E_CONFIG);
    if (!strstr(e.message, what)) fail_msg("'%s' does not say '%s'", e.message, what);
    arena_free(&a);
    config_free(&c);
}

static void bad_sections_are_refused(void **state)
{
    (void)state;
    expect_refused("[sweep]\nname = x\n", "no axis");
    expect_refused("[sweep]\nconcurent = 2\nrun.seed = 1..2\n", "concurrent");
    expect_refused("[sweep]\npair = a, b\nrun.seed = 1..2\n", "axis a is not in");
    expect_refused("[sweep]\npair = run.seed, loss.clip\nrun.seed = 1..2\nloss.clip = 0.1\n", "equal lengths");
    expect_refused("[sweep]\nrun.dir = a, b\n", "run.dir");
    expect_refused("[sweep]\nname = a/b\nrun.seed = 1\n", "cannot contain '/'");
    expect_refused("[sweep]\nestimator.plugin = grpo, bv_blend\nestimator.bv_blnd.gamma = 0.1, 0.9\n",
                   "estimator.bv_blnd.gamma changes nothing");
    expect_refused("[sweep]\nestimator.bv_blend.gamma = 0.1, 0.9\n[estimator]\nplugin = grpo\n",
                   "no cell runs the estimator 'bv_blend'");
    expect_refused("[sweep]\nverifier.math.box = first, level\n[verifier]\nplugins = exact\n", "add it to verifier.plugins");
    expect_refused("[sweep]\ntrain.lr = 1e-3, 2e-3, 0.001\n", "train.lr has 1e-3 twice (places 1 and 3)");
    expect_refused("[sweep]\nrun.seed = 1..3, 2\n", "places 2 and 4");
    expect_refused("[sweep]\ntrain.lr = 1e-3, 1e-4, 1e-3\nloss.clip = 0.1, 0.2, 0.1\npair = lr, clip\n", "pair: places 1 and 3");
    expect_refused("[sweep]\nrun.seed = 1..300\nloss.clip = log 0.01..1 x 300\n", "20000 cells");
}

/* A plugin may be named by its file, or by another name. */
static void parameters_of_a_plugins_file_count(void **state)
{
    static const char *const PLUGINS[] = {"grpo | mine/mine.so", "grpo | two.so:mine", "grpo | math:2 exact as mine:0.5",
                                          "grpo | mine:0.5"};
    (void)state;
    for (size_t i = 0; i < sizeof PLUGINS / sizeof *PLUGINS; i++) {
        struct arena a;
        struct sweep_plan p;
        char text[200];
        snprintf(text, sizeof text, "[sweep]\nverifier.plugins = %s\nverifier.mine.x = 1, 2\n", PLUGINS[i]);
        grid(text, &a, &p);
        assert_int_equal(p.n_cells, 3);
        arena_free(&a);
    }
}

/* Lists that advance together may repeat values; equal combinations are one cell. */
static void paired_lists_may_repeat_values(void **state)
{
    struct arena a;
    struct sweep_plan p;
    (void)state;
    grid("[sweep]\npair = plugin, gamma\nestimator.plugin = grpo, grpo, bv_blend, bv_blend\nestimator.bv_blend.gamma = 0.1, 0.9, "
         "0.1, 0.9\n",
         &a, &p);
    assert_int_equal(p.n_cells, 3);
    arena_free(&a);
    grid("[sweep]\ntrain.lr = 1e-3, 2e-3\nloss.clip =\n", &a, &p); /* an axis without values is off */
    assert_int_equal(p.n_cells, 2);
    assert_int_equal(p.n_axes, 1);
    arena_free(&a);
}

static void every_suggestion_can_be_read_back(void **state)
{
    struct str text = {0};
    struct err e = {0};
    (void)state;
    assert_ok(sweep_suggest("bv_blend", &text, &e), &e);
    assert_non_null(strstr(text.data, "estimator.bv_blend.temperature = log 0.01..1 x 5\n"));
    assert_non_null(strstr(text.data, "estimator.bv_blend.mapping = exp, reciprocal, linear\n"));
    assert_null(strstr(text.data, "delta_n")); /* not declared sweepable */
    assert_ok(str_add(&text, "[estimator]\nplugin = bv_blend\n", -1, &e), &e);
    struct config c;
    load(&c, text.data);
    for (struct config_param *p = c.params; p; p = p->next) {
        struct arena a;
        const char **values;
        int64_t n;
        arena_init(&a, "test");
        assert_ok(sweep_values(p->value, p->where, &a, &values, &n, &e), &e);
        assert_true(n >= 2);
        arena_free(&a);
    }
    config_free(&c);
    str_free(&text);
    assert_int_equal(sweep_suggest("no_such_plugin", &text, &e), TARE_E_NOT_FOUND);
    str_free(&text);
}

/* ---------------------------------------------------------------- rows of cells */

static void run_sql(const char *sql)
{
    sqlite3 *db;
    char path[FS_PATH], *why = NULL;
    assert_false(fs_join(path, folder, "runs.db", NULL));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) fail_msg("%s", why);
    sqlite3_close(db);
}

static const struct sweep_record RECORDS[] = {
    {.status = "done", .dir = "runs/a", .attempts = 1, .seconds = 1.5, .value = 0.25},
    {.status = "failed", .dir = "runs/b", .attempts = 2, .seconds = NAN, .value = NAN, .error = "no memory"},
    {.status = "pending", .dir = "runs/c", .seconds = NAN, .value = NAN},
};
static const char *const CELLS[] = {"cell-a", "cell-b", "cell-c"};
enum { N_CELLS = 3 };

static void expect_records(struct sweep_db *d)
{
    struct err e = {0};
    struct arena a;
    arena_init(&a, "test");
    for (int i = 0; i < N_CELLS; i++) {
        struct sweep_record r;
        assert_ok(sweep_db_get(d, CELLS[i], &a, &r, &e), &e);
        assert_string_equal(r.status, RECORDS[i].status);
        assert_int_equal(r.attempts, RECORDS[i].attempts);
        assert_string_equal(r.error ? r.error : "", RECORDS[i].error ? RECORDS[i].error : "");
    }
    arena_free(&a);
}

/* Flips one bit in every byte of the rows: it is reported with the cell's name or by SQLite, or the
 * values read are those written. */
static void changed_rows_are_found(void **state)
{
    (void)state;
    struct err e = {0};
    struct sweep_db *d;
    OWNED(str_free) struct str whole = {0};
    char path[FS_PATH];
    int told = 0, taken = 0;
    assert_ok(fs_join(path, folder, "runs.db", &e), &e);
    assert_ok(sweep_db_open(folder, &d, &e), &e);
    for (int i = 0; i < N_CELLS; i++) assert_ok(sweep_db_set(d, CELLS[i], &RECORDS[i], &e), &e);
    expect_records(d);
    assert_ok(sweep_db_check(d, false, &e), &e);
    sweep_db_close(d);
    assert_ok(fs_read_all(path, &whole, &e), &e);
    int64_t first = whole.size, last = 0;
    for (int64_t i = 0; i + 5 < whole.size; i++) {
        if (memcmp(whole.data + i, "runs/", 5)) continue;
        if (i < first) first = i;
        last = i;
    }
    assert_true(first < last);
    for (int64_t i = first - 30; i < last + 60 && i < whole.size; i++) {
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        const char changed = (char)(whole.data[i] ^ (1 << i % 8));
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, &changed, 1, i), 1);
        e = (struct err){0};
        tare_status status = sweep_db_open(folder, &d, &e);
        if (!status) status = sweep_db_check(d, false, &e);
        if (!status) expect_records(d);
        if (status && !strstr(e.message, "runs.db")) fail_msg("byte %lld: %s", (long long)i, e.message);
        if (d) sweep_db_close(d);
        told += status == TARE_E_CORRUPT;
        taken += !status;
        assert_int_equal(pwrite(fd, &whole.data[i], 1, i), 1);
        close(fd);
    }
    if (told < 150 || taken > 20) fail_msg("%d told, %d taken", told, taken);
    assert_ok(sweep_db_open(folder, &d, &e), &e);
    expect_records(d);
    sweep_db_close(d);
    assert_ok(fs_remove_tree(path, &e), &e);
}

/* A changed state is refused with the cell's name; with --retry it is reported, and then the row
 * counts as missing. */
static void a_changed_state_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct sweep_db *d;
    struct arena a;
    struct sweep_record r;
    arena_init(&a, "test");
    assert_ok(sweep_db_open(folder, &d, &e), &e);
    for (int i = 0; i < N_CELLS; i++) assert_ok(sweep_db_set(d, CELLS[i], &RECORDS[i], &e), &e);
    assert_ok(sweep_db_check(d, false, &e), &e);
    run_sql("UPDATE cells SET status = 'faimed' WHERE cell = 'cell-b'");
    assert_int_equal(sweep_db_check(d, false, &e), TARE_E_CORRUPT);
    assert_non_null(strstr(e.message, "cell-b"));
    assert_non_null(strstr(e.message, "--retry"));
    assert_ok(sweep_db_check(d, true, &e), &e);
    assert_ok(sweep_db_get(d, "cell-b", &a, &r, &e), &e);
    assert_string_equal(r.status, "");
    /* a repeated run writes its row again */
    assert_ok(sweep_db_set(d, "cell-b", &RECORDS[1], &e), &e);
    assert_ok(sweep_db_check(d, false, &e), &e);
    sweep_db_close(d);
    arena_free(&a);
    char path[FS_PATH];
    assert_ok(fs_join(path, folder, "runs.db", &e), &e);
    assert_ok(fs_remove_tree(path, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_ranges),
        cmocka_unit_test(time_left_counts_what_is_done),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(a_plugins_parameter_counts_in_its_cells_only),
        cmocka_unit_test(pairs_advance_together),
        cmocka_unit_test(names_that_would_clash_differ),
        cmocka_unit_test(bad_sections_are_refused),
        cmocka_unit_test(every_suggestion_can_be_read_back),
        cmocka_unit_test(parameters_of_a_plugins_file_count),
        cmocka_unit_test(paired_lists_may_repeat_values),
        cmocka_unit_test(changed_rows_are_found),
        cmocka_unit_test(a_changed_state_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
