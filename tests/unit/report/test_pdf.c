/* Charts as PDF files: each object lies where the index says, the drawing is as long as it says, lines of the chart are at their places, and texts are
 * those of the chart, with signs, Greek letters and lowered digits. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "lab/report/report.h"
#include "lab/report/svg.h"

#include <stdlib.h>
#include <string.h>

static const char *root;

/* The chart's file in a folder of its own. */
static void draw(const struct svg_chart *c, const char *name, struct str *out)
{
    struct err e = {0};
    struct str page = {0};
    char path[FS_PATH];
    assert_ok(svg_chart_print(c, &page, &e), &e);
    assert_ok(report_figures(page.data, root, true, &e), &e);
    assert_ok(fs_join(path, root, name, &e), &e);
    str_clear(out);
    assert_ok(fs_read_all(path, out, &e), &e);
    str_free(&page);
}

/* As a reader goes: startxref, xref, each object, the length of the stream. */
static void check_structure(const struct str *pdf)
{
    assert_memory_equal(pdf->data, "%PDF-1.4\n", 9);
    assert_memory_equal(pdf->data + pdf->size - 6, "%%EOF\n", 6);
    const char *start = strstr(pdf->data, "startxref\n");
    assert_non_null(start);
    const long at = strtol(start + 10, NULL, 10);
    assert_true(at > 0 && at < pdf->size);
    char *entry;
    assert_memory_equal(pdf->data + at, "xref\n0 ", 7);
    const long n = strtol(pdf->data + at + 7, &entry, 10);
    assert_int_equal(n, 8);
    assert_memory_equal(entry, "\n0000000000 65535 f \n", 21);
    entry += 21;
    for (int i = 1; i < n; i++, entry += 20) {
        char head[32];
        const int size = snprintf(head, sizeof head, "%d 0 obj\n", i);
        const long where = strtol(entry, NULL, 10);
        assert_true(where > 0 && where < at);
        assert_memory_equal(pdf->data + where, head, (size_t)size);
        assert_memory_equal(entry + 10, " 00000 n \n", 10);
    }
    assert_memory_equal(entry, "trailer\n<< /Size 8 /Root 1 0 R >>\n", 34);
    const char *length = strstr(pdf->data, "/Length "), *stream = strstr(pdf->data, "stream\n");
    assert_true(length && stream);
    assert_memory_equal(stream + 7 + strtol(length + 8, NULL, 10), "\nendstream\nendobj\n", 18);
}

static void a_chart_is_a_page(void **state)
{
    const double x[] = {0, 10, 20}, y[] = {0, 0.5, 1}, low[] = {0, 0.4, 0.9}, high[] = {0.1, 0.6, 1};
    const struct svg_line lines[] = {{.label = "a (b) \\ & <c>", .x = x, .y = y, .low = low, .high = high, .n = 3},
                                     {.label = "other", .x = x, .y = low, .n = 3, .colour = 9}};
    struct str pdf = {0};
    (void)state;
    draw(&(struct svg_chart){.title = "Mean \xCF\x83\xE2\x82\x81 \xC3\xA9 \xE4\xBD\xA0", .x_label = "step", .lines = lines, .n = 2},
         "mean-sigma-1.pdf", &pdf);
    check_structure(&pdf);
    const char *const has[] = {"(Mean ) Tj /Greek 12 Tf 0 Ts (s) Tj /Bold 8 Tf -3 Ts (1) Tj /Bold 12 Tf 0 Ts ( \\351 ?) Tj",
                               "(a \\050b\\051 \\134 & <c>) Tj", "/band gs 0.169 0.424 0.690 rg\n", /* #2b6cb0 */
                               "/opaque gs 0.784 0.345 0.102 RG\n1.8 w [6 3] 0 d\n", /* the tenth line: the second colour, dashed */
                               "0.75 0 0 -0.75 0 "};
    for (size_t i = 0; i < sizeof has / sizeof *has; i++) {
        if (!strstr(pdf.data, has[i])) printf("%s\n%s\n", has[i], pdf.data);
        assert_non_null(strstr(pdf.data, has[i]));
    }
    /* from the left edge of the axes to the right one */
    assert_non_null(strstr(pdf.data, "46.00 "));
    assert_non_null(strstr(pdf.data, "410.00 "));
    str_free(&pdf);
}

static void points_are_round(void **state)
{
    const double x[] = {0.2, 0.8}, y[] = {0.3, 0.7};
    const struct svg_line line = {.label = "p", .x = x, .y = y, .n = 2};
    struct str pdf = {0};
    (void)state;
    draw(&(struct svg_chart){.title = "Points", .x_label = "b", .lines = &line, .n = 1, .points = true, .diagonal = true},
         "points.pdf", &pdf);
    check_structure(&pdf);
    int curves = 0;
    for (const char *at = pdf.data; (at = strstr(at, " c\n")); at++) curves++;
    assert_int_equal(curves, 8);
    assert_non_null(strstr(pdf.data, "[4 4] 0 d"));
    assert_non_null(strstr(pdf.data, "/pale gs"));
    str_free(&pdf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_chart_is_a_page), cmocka_unit_test(points_are_round)};
    struct err e;
    if (!(root = make_test_folder("tare-pdf"))) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fs_remove_tree(root, &e);
    return failed;
}
