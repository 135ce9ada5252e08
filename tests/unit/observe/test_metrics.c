#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "observe/metrics.h"
#include "observe/run_data.h"
#include "observe/sinks.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/wait.h>

static const char *folder;

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_NONE);
    return (folder = make_test_folder("tare-metrics")) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

/* Each test has a folder of runs with a separate database. */
static const char *run_dir(const char *name)
{
    static char path[300];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s/run", folder, name);
    assert_ok(fs_mkdirs(path, &e), &e);
    return path;
}

static tare_status open_at(const char *run, int64_t keep, struct metrics **m, struct err *e)
{
    const struct metrics_options o = {
        .dir = run, .name = "r", .config = "[run]\n", .manifest = "{}", .tensorboard = true, .database = true, .keep = keep};
    return metrics_open(&o, m, e);
}

static double value_of(int64_t step, int i)
{
    return sin((double)step * 1.7 + i) / 3;
}

static tare_status record(struct metrics *m, int64_t step, struct err *e)
{
    metrics_set(m, "reward/mean", 99);
    metrics_set(m, "reward/mean", value_of(step, 0));
    metrics_set(m, "grad_norm", value_of(step, 1));
    if (step % 2) metrics_set(m, "odd", value_of(step, 2));
    metrics_set(m, "broken", step % 3 ? 1.0 : (double)NAN);
    return metrics_step(m, step, e);
}

/* ---------------------------------------------------------------- readers, written against the formats and not the writers */

static uint32_t crc32c_by_bits(const unsigned char *p, size_t n)
{
    uint32_t c = ~0u;
    while (n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (0x82F63B78u & (0u - (c & 1)));
    }
    return ~c;
}

static uint32_t unmask(uint32_t m)
{
    m -= 0xA282EAD8u;
    return m << 15 | m >> 17;
}

static uint64_t varint(const unsigned char **p)
{
    uint64_t x = 0;
    for (int shift = 0;; shift += 7) {
        x |= (uint64_t)(**p & 0x7F) << shift;
        if (!(*(*p)++ & 0x80)) return x;
    }
}

static void check_value(const unsigned char *p, const unsigned char *end, int64_t step, int *seen)
{
    char tag[100] = "";
    float x = NAN;
    while (p < end) {
        const uint64_t key = varint(&p);
        if (key == (1 << 3 | 2)) {
            const uint64_t n = varint(&p);
            memcpy(tag, p, n);
            tag[n] = 0;
            p += n;
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            memcpy(&x, p, 4);
            p += 4;
        }
    }
    if (!strcmp(tag, "reward/mean")) assert_true(x == (float)value_of(step, 0));
    if (!strcmp(tag, "grad_norm")) assert_true(x == (float)value_of(step, 1));
    if (!strcmp(tag, "broken")) assert_int_not_equal(step % 3, 0);
    *seen += !strcmp(tag, "reward/mean") || !strcmp(tag, "grad_norm");
}

static int64_t check_event(const unsigned char *p, const unsigned char *end)
{
    int64_t step = -1;
    int seen = 0;
    while (p < end) {
        const uint64_t key = varint(&p);
        if (key == (1 << 3 | 1)) {
            p += 8;
        } else if (key == 2 << 3) {
            step = (int64_t)varint(&p);
        } else if (key == (3 << 3 | 2)) {
            const uint64_t n = varint(&p);
            assert_memory_equal(p, "brain.Event:2", n);
            return -1;
        } else {
            assert_int_equal(key, 5 << 3 | 2);
            const uint64_t n = varint(&p);
            for (const unsigned char *stop = p + n; p < stop;) {
                assert_int_equal(varint(&p), 1 << 3 | 2);
                const uint64_t k = varint(&p);
                check_value(p, p + k, step, &seen);
                p += k;
            }
        }
    }
    assert_int_equal(seen, 2);
    return step;
}

static void expect_events(const char *run, int64_t first, int64_t last)
{
    struct err e = {0};
    struct str s = {0};
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/tensorboard/events.out.tfevents.0000000001.tare", run);
    assert_ok(fs_read_all(path, &s, &e), &e);
    int64_t expected = first - 1, header = 0;
    const unsigned char *p = (const unsigned char *)s.data, *end = p + s.size;
    while (p < end) {
        uint64_t n;
        uint32_t crc;
        assert_true(end - p >= 16);
        memcpy(&n, p, 8);
        memcpy(&crc, p + 8, 4);
        assert_int_equal(unmask(crc), crc32c_by_bits(p, 8));
        p += 12;
        assert_true((uint64_t)(end - p) >= n + 4);
        memcpy(&crc, p + n, 4);
        assert_int_equal(unmask(crc), crc32c_by_bits(p, n));
        const int64_t step = check_event(p, p + n);
        if (!header++) {
            assert_int_equal(step, -1);
        } else {
            assert_int_equal(step, ++expected);
        }
        p += n + 4;
    }
    assert_int_equal(expected, last);
    str_free(&s);
}

static void expect_lines(const char *run, int64_t first, int64_t last)
{
    struct err e = {0};
    struct str s = {0};
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    assert_ok(fs_read_all(path, &s, &e), &e);
    int64_t step = first;
    for (char *p = s.data, *newline; p < s.data + s.size; p = newline + 1, step++) {
        newline = strchr(p, '\n');
        assert_non_null(newline);
        json_t *o;
        double x;
        assert_ok(json_parse(p, newline - p, "line", &o, &e), &e);
        assert_int_equal(json_int_or(o, "step", -1), step);
        assert_ok(json_get_double(o, "reward/mean", "line", &x, &e), &e);
        assert_true(x == value_of(step, 0)); /* bit-identical */
        assert_true(json_is_null(json_object_get(o, "broken")) == (step % 3 == 0));
        assert_true((json_object_get(o, "odd") != NULL) == (step % 2 == 1));
        json_decref(o);
    }
    assert_int_equal(step, last + 1);
    str_free(&s);
}

static int64_t query(const char *run, const char *sql)
{
    char path[FS_PATH];
    sqlite3 *db;
    sqlite3_stmt *st;
    snprintf(path, sizeof path, "%s/../runs.db", run);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

static void expect_database(const char *run, int64_t first, int64_t last)
{
    const int64_t n = last - first + 1;
    assert_int_equal(query(run, "SELECT count(*) FROM metrics WHERE name = 'reward/mean'"), n);
    assert_int_equal(query(run, "SELECT count(DISTINCT step) FROM metrics"), n);
    if (n) assert_int_equal(query(run, "SELECT max(step) FROM metrics"), last);
    if (n) assert_int_equal(query(run, "SELECT min(step) FROM metrics"), first);
    assert_int_equal(query(run, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(query(run, "SELECT count(*) FROM metrics WHERE name = 'broken' AND value IS NULL AND step % 3 <> 0"), 0);
}

static void expect(const char *run, int64_t first, int64_t last)
{
    expect_lines(run, first, last);
    expect_events(run, first, last);
    expect_database(run, first, last);
}

/* ---------------------------------------------------------------- tests */

static void crc32c_has_its_known_values(void **state)
{
    (void)state;
    assert_int_equal(events_crc32c("123456789", 9), 0xE3069283u); /* the check value of the Castagnoli polynomial */
    assert_int_equal(events_crc32c("", 0), 0);
    char zeros[32] = {0};
    assert_int_equal(events_crc32c(zeros, 32), 0x8A9136AAu); /* RFC 3720 B.4 */
}

static void sql(const char *run, const char *text)
{
    char path[400];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/../runs.db", run);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* If the database cannot be opened, or is damaged during the run, the other sinks have every step,
 * and the next opening rebuilds it. */
static void a_run_continues_without_its_database(void **state)
{
    (void)state;
    struct err e = {0};
    struct metrics *m;
    const char *run = run_dir("lost");
    char path[400];
    snprintf(path, sizeof path, "%s/../runs.db", run);
    assert_ok(fs_mkdirs(path, &e), &e); /* a folder at the path of the file */
    assert_ok(open_at(run, -1, &m, &e), &e);
    for (int64_t s = 0; s <= 2; s++) assert_ok(record(m, s, &e), &e);
    assert_ok(metrics_close(m, "done", &e), &e);
    expect_lines(run, 0, 2);
    expect_events(run, 0, 2);
    assert_ok(fs_remove_tree(path, &e), &e);

    assert_ok(open_at(run, 2, &m, &e), &e);
    expect(run, 0, 2);
    assert_ok(record(m, 3, &e), &e);
    sql(run, "DROP TABLE metrics");
    for (int64_t s = 4; s <= 6; s++) assert_ok(record(m, s, &e), &e);
    assert_ok(metrics_close(m, "done", &e), &e);
    expect_lines(run, 0, 6);
    expect_events(run, 0, 6);
    assert_ok(open_at(run, 6, &m, &e), &e);
    assert_ok(metrics_close(m, "done", &e), &e);
    expect(run, 0, 6);
}

static void three_sinks_agree(void **state)
{
    (void)state;
    struct err e = {0};
    struct metrics *m;
    const char *run = run_dir("a");
    assert_ok(open_at(run, -1, &m, &e), &e);
    for (int64_t s = 0; s <= 20; s++) assert_ok(record(m, s, &e), &e);
    assert_int_equal(record(m, 20, &e), TARE_E_STATE);
    assert_true(isnan(metrics_get(m, "reward/mean")));
    metrics_set(m, "x", 3);
    assert_true(metrics_get(m, "x") == 3);
    assert_ok(metrics_close(m, "done", &e), &e);
    expect(run, 0, 20);
    assert_int_equal(query(run, "SELECT status = 'done' AND step = 20 FROM runs"), 1);
}

static void a_resumed_run_forgets_later_steps(void **state)
{
    (void)state;
    struct err e = {0};
    struct metrics *m;
    const char *run = run_dir("b");
    static const int64_t CUTS[] = {12, 12, 19, 0, -1};
    assert_ok(open_at(run, -1, &m, &e), &e);
    for (int i = 0; i < 5; i++) {
        for (int64_t s = i ? CUTS[i - 1] + 1 : 0; s <= 20; s++) assert_ok(record(m, s, &e), &e);
        assert_ok(metrics_close(m, "interrupted", &e), &e);
        expect(run, 0, 20);
        assert_ok(open_at(run, CUTS[i], &m, &e), &e);
        expect(run, 0, CUTS[i]);
    }
    assert_ok(metrics_close(m, "done", &e), &e);
    expect(run, 0, -1);
}

static void cut(const char *run, const char *file, int64_t drop)
{
    struct err e = {0};
    struct str s = {0};
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/%s", run, file);
    assert_ok(fs_read_all(path, &s, &e), &e);
    assert_int_equal(truncate(path, s.size > drop ? s.size - drop : 0), 0);
    str_free(&s);
}

/* Partial ends of any length in every file, and missing files. */
static void half_written_ends(void **state)
{
    (void)state;
    struct err e = {0};
    struct metrics *m;
    const char *run = run_dir("c");
    char path[FS_PATH];
    for (int64_t drop = 0; drop < 130; drop += drop < 4 ? 1 : 9) {
        assert_ok(open_at(run, -1, &m, &e), &e);
        for (int64_t s = 1; s <= 6; s++) assert_ok(record(m, s, &e), &e);
        assert_ok(metrics_close(m, "failed", &e), &e);
        cut(run, "metrics.jsonl", drop);
        cut(run, "tensorboard/events.out.tfevents.0000000001.tare", drop * 2);
        snprintf(path, sizeof path, "%s/../runs.db", run);
        if (drop % 2) assert_int_equal(unlink(path), 0);
        assert_ok(open_at(run, 4, &m, &e),
                  /* at most one step (of less than 130 bytes) was lost, and 5 is the second to
                   * last */
                  &e);
        expect(run, 1, 4);
        for (int64_t s = 5; s <= 7; s++) assert_ok(record(m, s, &e), &e);
        assert_ok(metrics_close(m, "done", &e), &e);
        expect(run, 1, 7);
    }
}

static void damage_in_the_middle_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct metrics *m;
    const char *run = run_dir("d");
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    static const char *const BAD[] = {"{\"step\":1}\nrubbish\n{\"step\":2}\n", "{\"step\":1}\n{\"stop\":2}\n{\"step\":3}\n",
                                      "{\"step\":2}\n{\"step\":2}\n"};
    for (int i = 0; i < 3; i++) {
        assert_ok(fs_write_atomic(path, BAD[i], (int64_t)strlen(BAD[i]), &e), &e);
        assert_int_equal(open_at(run, 10, &m, &e), TARE_E_CORRUPT);
        assert_non_null(strstr(e.message, "metrics.jsonl:2: "));
    }
}

/* Pages of the file lost in a crash of the machine, after the lines that a checkpoint needs, are
 * written again. */
static void torn_pages_after_the_kept_steps_are_cut(void **state)
{
    (void)state;
    struct err e = {0};
    struct metrics *m;
    const char *run = run_dir("t");
    char path[FS_PATH], text[64] = "{\"step\":1}\n{\"step\":2}\n", torn[] = "XXXXX\n{\"step\":4}\n";
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    memset(torn, 0, 5);
    const size_t whole = strlen(text);
    memcpy(text + whole, torn, sizeof torn - 1);
    int64_t step = 0;
    for (int keep = 2; keep >= 0; keep--) {
        assert_ok(fs_write_atomic(path, text, (int64_t)(whole + sizeof torn - 1), &e), &e);
        assert_ok(run_last_step(run, &step, &e), &e);
        assert_int_equal(step, 4);
        assert_ok(open_at(run, keep, &m, &e), &e);
        assert_ok(metrics_close(m, "failed", &e), &e);
        assert_ok(run_last_step(run, &step, &e), &e);
        assert_int_equal(step, keep ? keep : -1);
    }
    assert_ok(fs_write_atomic(path, text, (int64_t)(whole + 6), &e), &e);
    assert_ok(run_last_step(run, &step, &e), &e);
    assert_int_equal(step, 2);
}

/* A child records steps in a loop, reports every tenth, and is killed at any point: during a step,
 * a sync or an opening. It then continues from a step that a checkpoint could have. At the end
 * every step is recorded once. */
static void killed_at_any_moment(void **state)
{
    (void)state;
    enum { LAST = 400 };
    struct err e = {0};
    const char *run = run_dir("e");
    int64_t from = -1;
    uint64_t x = 0x9E3779B97F4A7C15u;
    for (int kills = 0; from < LAST || kills < 10; kills++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        const pid_t child = fork();
        if (!child) {
            struct metrics *m;
            struct err why = {0};
            if (open_at(run, from, &m, &why)) _exit(1);
            for (int64_t s = from + 1;; s++) {
                if (record(m, s, &why)) _exit(1);
                /* The checkpoint of every tenth step becomes visible only after the sync. */
                if (s % 10 == 0 && (metrics_sync(m, &why) || write(pipes[1], &s, sizeof s) != sizeof s)) _exit(1);
            }
        }
        close(pipes[1]);
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        int64_t s;
        for (uint64_t told = x >> 32 & 7; told && read(pipes[0], &s, sizeof s) == sizeof s; told--)
            from = s; /* 0: while it opens */
        usleep((useconds_t)(x % 10000));
        kill(child, SIGKILL);
        int how;
        waitpid(child, &how, 0);
        assert_true(WIFSIGNALED(how)); /* the child reported no error */
        while (read(pipes[0], &s, sizeof s) == sizeof s) from = s;
        close(pipes[0]);
    }
    struct metrics *m;
    assert_ok(open_at(run, LAST, &m, &e), &e);
    assert_ok(metrics_close(m, "done", &e), &e);
    expect(run, 0, LAST);
}

static void *set_many(void *m)
{
    for (int i = 0; i < 1000; i++) {
        char name[20];
        snprintf(name, sizeof name, "plugin/%d", i % 10);
        metrics_set(m, name, i);
    }
    return NULL;
}

static void set_from_any_thread(void **state)
{
    (void)state;
    struct err e = {0};
    struct metrics *m;
    pthread_t threads[4];
    const struct metrics_options o = {.dir = run_dir("g"), .name = "r", .keep = -1};
    assert_ok(metrics_open(&o, &m, &e), &e);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, set_many, m), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_true(metrics_get(m, "plugin/9") == 999);
    assert_ok(metrics_step(m, 1, &e), &e);
    assert_ok(metrics_close(m, "done", &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_has_its_known_values),
        cmocka_unit_test(a_run_continues_without_its_database),
        cmocka_unit_test(three_sinks_agree),
        cmocka_unit_test(a_resumed_run_forgets_later_steps),
        cmocka_unit_test(half_written_ends),
        cmocka_unit_test(damage_in_the_middle_is_refused),
        cmocka_unit_test(torn_pages_after_the_kept_steps_are_cut),
        cmocka_unit_test(killed_at_any_moment),
        cmocka_unit_test(set_from_any_thread),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
