#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "checkpoint/state.h"

#include <string.h>

static const char *folder;
static char path[FS_PATH];
static float moments[1000];

static int setup(void **state)
{
    (void)state;
    if (!(folder = make_test_folder("tare-state"))) return 1;
    snprintf(path, sizeof path, "%s/a.state", folder);
    for (int i = 0; i < 1000; i++) moments[i] = (float)i * 0.37f;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static void write_file(void)
{
    struct err e = {0};
    struct state_writer *w;
    assert_ok(state_create(path, &w, &e), &e);
    assert_ok(state_write_int(w, "step", 41, &e), &e);
    assert_ok(state_write(w, "moments", moments, sizeof moments, &e), &e);
    assert_ok(state_write(w, "empty", NULL, 0, &e), &e);
    assert_ok(state_write(w, "text", "abc", 3, &e), &e);
    assert_int_equal(state_write(w, "step", "x", 1, &e), TARE_E_INVALID);
    assert_ok(state_finish(w, &e), &e);
}

/* Opens and reads everything; returns 0 if all of it is as written. */
static tare_status read_file(struct err *e)
{
    struct state_reader *r;
    int64_t step = 0, n = 0;
    float back[1000];
    const void *text;
    TRY(state_open(path, &r, e));
    tare_status status = state_read_int(r, "step", &step, e);
    if (!status) status = state_read(r, "moments", back, sizeof back, e);
    if (!status) status = state_read(r, "empty", NULL, 0, e);
    if (!status) status = state_view(r, "text", &text, &n, e);
    if (!status && (step != 41 || memcmp(back, moments, sizeof back) || n != 3 || memcmp(text, "abc", 3)))
        fail_msg("read something else without an error");
    state_close(r);
    return status;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    struct err e = {0};
    write_file();
    assert_ok(read_file(&e), &e);
    struct state_reader *r;
    int64_t x;
    char small[10];
    assert_ok(state_open(path, &r, &e), &e);
    assert_true(state_has(r, "moments") && !state_has(r, "nothing"));
    assert_int_equal(state_read_int(r, "nothing", &x, &e), TARE_E_NOT_FOUND);
    assert_int_equal(state_read(r, "moments", small, sizeof small, &e), TARE_E_SHAPE);
    assert_non_null(strstr(e.message, "4000 bytes, 10 are needed"));
    state_close(r);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct str whole = {0};
    write_file();
    assert_ok(fs_read_all(path, &whole, &e), &e);
    for (int64_t n = 0; n < whole.size; n += n < 200 || n > whole.size - 400 ? 1 : 97) {
        FILE *f = fopen(path, "wb");
        assert_int_equal(fwrite(whole.data, 1, (size_t)n, f), n);
        fclose(f);
        assert_int_equal(read_file(&e), TARE_E_CORRUPT);
        assert_non_null(strstr(e.message, path));
    }
    str_free(&whole);
}

/* A changed byte is an error, unless it is in the padding. */
static void every_changed_byte_is_found(void **state)
{
    (void)state;
    struct err e = {0};
    struct str whole = {0};
    write_file();
    assert_ok(fs_read_all(path, &whole, &e), &e);
    int64_t found = 0;
    for (int64_t i = 0; i < whole.size; i++) {
        whole.data[i] = (char)(whole.data[i] ^ 0x41);
        FILE *f = fopen(path, "wb");
        assert_int_equal(fwrite(whole.data, 1, (size_t)whole.size, f), whole.size);
        fclose(f);
        found += read_file(&e) != TARE_OK;
        whole.data[i] = (char)(whole.data[i] ^ 0x41);
    }
    const int64_t padding = (64 - 8) + (64 - 8) + (64 - 4000 % 64) + (64 - 3);
    assert_int_equal(found, whole.size - padding);
    str_free(&whole);
}

static void discarded_leaves_nothing(void **state)
{
    (void)state;
    struct err e = {0};
    struct state_writer *w;
    char other[300];
    snprintf(other, sizeof other, "%s/b.state", folder);
    assert_ok(state_create(other, &w, &e), &e);
    assert_ok(state_write_int(w, "x", 1, &e), &e);
    state_discard(w);
    assert_false(fs_exists(other));
    snprintf(other, sizeof other, "%s/none/b.state", folder);
    assert_int_equal(state_create(other, &w, &e), TARE_E_IO);
    if (access("/dev/full", W_OK) == 0) { /* a full disk */
        char *big = calloc(1, 1 << 20);
        snprintf(other, sizeof other, "%s/full", folder);
        assert_int_equal(symlink("/dev/full", other), 0);
        assert_ok(state_create(other, &w, &e), &e);
        assert_int_equal(state_write(w, "x", big, 1 << 20, &e), TARE_E_IO);
        assert_non_null(strstr(e.message, "No space left"));
        state_discard(w);
        assert_false(fs_exists(other));
        free(big);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_changed_byte_is_found),
        cmocka_unit_test(discarded_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
