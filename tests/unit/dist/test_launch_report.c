/* mpirun's reports on ended ranks are removed from its output, however it is split; other text is
 * passed on immediately. */
#include "check.h"

#include "dist/launch_report.h"

#include <fcntl.h>
#include <string.h>

#define RULE "--------------------------------------------------------------------------\n"
#define KILLED "prterun noticed that process rank 1 with PID 15 on node vm exited on\nsignal 9 (Killed).\n"
#define WARNING "WARNING: no device was found.\n"

struct outcome {
    char passed[2000], ends[1000];
};

/* Feeds the text in chunks of `size` bytes. */
static struct outcome fed(const char *text, int64_t size)
{
    struct outcome o = {{0}, {0}};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[0], F_SETFL, O_NONBLOCK) >= 0);
    struct launch_report r = {.to = ends[1]};
    const int64_t n = (int64_t)strlen(text);
    for (int64_t at = 0; at < n; at += size) launch_report_take(&r, text + at, n - at < size ? n - at : size);
    launch_report_end(&r);
    if (r.ends.size) snprintf(o.ends, sizeof o.ends, "%s", r.ends.data);
    str_free(&r.ends);
    assert_true(read(ends[0], o.passed, sizeof o.passed - 1) >= -1);
    close(ends[0]);
    close(ends[1]);
    return o;
}

static void reports_are_taken_out(void **state)
{
    (void)state;
    static const struct {
        const char *text, *passed, *ends;
    } cases[] = {
        {"", "", ""},
        {"tare: one\n" RULE KILLED RULE "two\n", "tare: one\ntwo\n", KILLED},
        {RULE KILLED RULE RULE KILLED RULE, "", KILLED KILLED},
        {RULE WARNING RULE "a\n", RULE WARNING RULE "a\n", ""},
        {RULE WARNING "cut", WARNING "cut", ""},
        {"- a list\n-- \n----\n-", "- a list\n-- \n----\n-", ""},
        {"a " RULE "b", "a " RULE "b", ""},
        {"step 1\rstep 2\r\n\n" RULE "--\n" KILLED RULE, "step 1\rstep 2\r\n\n", "--\n" KILLED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t size = 1; size <= 1000; size *= 10) {
            const struct outcome o = fed(cases[i].text, size);
            assert_string_equal(o.passed, cases[i].passed);
            assert_string_equal(o.ends, cases[i].ends);
        }
}

static void half_a_line_is_passed_on(void **state)
{
    (void)state;
    char got[100] = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct launch_report r = {.to = ends[1]};
    launch_report_take(&r, "step 1", 6);
    assert_int_equal(read(ends[0], got, sizeof got - 1), 6);
    assert_string_equal(got, "step 1");
    launch_report_end(&r);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reports_are_taken_out), cmocka_unit_test(half_a_line_is_passed_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
