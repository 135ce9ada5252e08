#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/str.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;

static int setup(void **state)
{
    (void)state;
    return (folder = make_test_folder("tare-fs")) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static const char *in_folder(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A line of the maximum length is read, and a line one byte longer is refused, wherever buffers
 * end. */
static void lines_have_a_maximum_length(void **state)
{
    (void)state;
    struct err e = {0};
    struct str s = {0};
    const char *path = in_folder("lines.txt");
    for (int more = 0; more < 2; more++) {
        const int64_t n = 4 + (int64_t)FS_LINE + more + 3;
        char *text = malloc((size_t)n);
        assert_non_null(text);
        memset(text, 'x', (size_t)n);
        text[3] = text[4 + FS_LINE + more] = '\n';
        assert_ok(fs_write_atomic(path, text, n, &e), &e);
        free(text);
        if (more) {
            assert_int_equal(fs_read_lines(path, &s, &e), TARE_E_CONFIG);
            assert_non_null(strstr(e.message, "a line is longer than 64 MiB"));
        } else {
            assert_ok(fs_read_lines(path, &s, &e), &e);
            assert_int_equal(s.size, n);
        }
    }
    str_free(&s);
    assert_int_equal(fs_read_lines("/dev/zero", &s, &e), TARE_E_CONFIG);
    assert_int_equal(fs_read_lines(folder, &s, &e), TARE_E_CONFIG);
    assert_int_equal(fs_read_lines(in_folder("none"), &s, &e), TARE_E_NOT_FOUND);
    str_free(&s);
}

/* A sparse file of 2^42 bytes. */
static void a_file_larger_than_memory_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct str s = {0};
    const char *path = in_folder("sparse");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), INT64_C(1) << 42), 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(fs_read_all(path, &s, &e), TARE_E_IO);
    assert_non_null(strstr(e.message, "sparse: has 4096.0 GiB, more than this machine's memory"));
    str_free(&s);
}

/* A relative path of an open file means another file once the process has changed its folder. */
static void a_changed_working_folder_is_named(void **state)
{
    (void)state;
    struct err e = {0};
    char before[4096], place[4096];
    assert_non_null(getcwd(before, sizeof before));
    snprintf(place, sizeof place, "%s", in_folder("open.txt"));
    assert_ok(fs_write_atomic(place, "x", 1, &e), &e);
    *strrchr(place, '/') = 0;
    assert_int_equal(chdir(place), 0);
    const int fd = open("open.txt", O_RDONLY);
    assert_true(fd >= 0);
    assert_ok(fs_check_open(fd, "open.txt", &e), &e);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(fs_check_open(fd, "open.txt", &e), TARE_E_IO);
    assert_non_null(strstr(e.message, "because this process has changed its working directory"));
    assert_non_null(strstr(e.message, place));
    close(fd);
    assert_int_equal(chdir(before), 0);
}

static void atomic_writes_replace_or_leave(void **state)
{
    (void)state;
    struct err e = {0};
    struct str s = {0};
    const char *path = in_folder("a.txt");
    assert_ok(fs_write_atomic(path, "one", 3, &e), &e);
    assert_ok(fs_write_atomic(path, "second", 6, &e), &e);
    assert_ok(fs_read_all(path, &s, &e), &e);
    assert_string_equal(s.data, "second");
    char temporary[310];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_false(fs_exists(temporary));
    assert_int_equal(symlink("/dev/full", temporary), 0); /* a full disk */
    char *big = calloc(1, 1 << 16);
    assert_int_equal(fs_write_atomic(path, big, 1 << 16, &e), TARE_E_IO);
    free(big);
    assert_non_null(strstr(e.message, "a.txt: cannot be written: No space left"));
    assert_ok(fs_read_all(path, &s, &e), &e);
    assert_string_equal(s.data, "second");
    assert_false(fs_exists(temporary));
    assert_int_equal(fs_read_all(in_folder("none"), &s, &e), TARE_E_NOT_FOUND);
    assert_int_equal(fs_write_atomic(in_folder("none/x"), "a", 1, &e), TARE_E_IO);
    assert_int_equal(fs_write_atomic(folder, "a", 1, &e), TARE_E_IO);
    assert_non_null(strstr(e.message, "is a folder"));

    /* a target that is not a regular file is not replaced: a pipe, a link */
    char link[400], text[8] = {0};
    snprintf(link, sizeof link, "%s", in_folder("link"));
    assert_ok(fs_write_atomic(in_folder("target"), "old", 3, &e), &e);
    assert_int_equal(symlink("target", link), 0);
    assert_ok(fs_write_atomic(link, "linked", 6, &e), &e);
    struct stat about;
    assert_true(!lstat(link, &about) && S_ISLNK(about.st_mode));
    const char *pipe_path = in_folder("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    const int reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
    assert_ok(fs_write_atomic(pipe_path, "piped", 5, &e), &e);
    assert_int_equal(read(reader, text, sizeof text), 5);
    assert_string_equal(text, "piped");
    assert_true(!stat(pipe_path, &about) && S_ISFIFO(about.st_mode));
    close(reader);
    str_free(&s);
}

/* TMPDIR if it is a writable folder, otherwise /tmp */
static void temporary_files_have_a_folder(void **state)
{
    (void)state;
    struct err e = {0};
    char *old = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    char with_space[300], wanted[320], out[FS_PATH];
    snprintf(with_space, sizeof with_space, "%s", in_folder("a folder"));
    assert_ok(fs_mkdirs(with_space, &e), &e);
    snprintf(wanted, sizeof wanted, "%s/a-XXXXXX", with_space);
    setenv("TMPDIR", with_space, 1);
    assert_ok(fs_temporary(out, "a", &e), &e);
    assert_string_equal(out, wanted);
    const char *const useless[] = {in_folder("missing"), "", NULL};
    for (int i = 0; i < 3; i++) {
        if (useless[i])
            setenv("TMPDIR", useless[i], 1);
        else
            unsetenv("TMPDIR");
        assert_ok(fs_temporary(out, "a", &e), &e);
        assert_string_equal(out, "/tmp/a-XXXXXX");
    }
    if (old) setenv("TMPDIR", old, 1);
    free(old);
}

static void folders_and_paths(void **state)
{
    (void)state;
    struct err e = {0};
    char out[FS_PATH], big[FS_PATH + 10];
    assert_ok(fs_mkdirs(in_folder("x/y//z/"), &e), &e);
    assert_true(fs_is_dir(in_folder("x/y/z")));
    assert_ok(fs_mkdirs(in_folder("x/y"), &e), &e);
    assert_ok(fs_write_atomic(in_folder("x/file"), "", 0, &e), &e);
    assert_int_equal(fs_mkdirs(in_folder("x/file/y"), &e), TARE_E_IO);
    assert_int_equal(fs_mkdirs(in_folder("x/file"), &e), TARE_E_IO);
    assert_int_equal(symlink("/", in_folder("x/link")), 0);
    assert_ok(fs_remove_tree(in_folder("x"), &e), &e); /* removes the link, not its target */
    assert_false(fs_exists(in_folder("x")));
    assert_ok(fs_remove_tree(in_folder("x"), &e), &e);
    assert_ok(fs_join(out, "a/b", "c", &e), &e);
    assert_string_equal(out, "a/b/c");
    assert_ok(fs_join(out, "a", "/c", &e), &e);
    assert_string_equal(out, "/c");
    assert_ok(fs_join(out, "", "c", &e), &e);
    assert_string_equal(out, "c");
    memset(big, 'a', sizeof big);
    big[sizeof big - 1] = 0;
    assert_int_equal(fs_join(out, "x", big, &e), TARE_E_INVALID);
    fs_dirname(out, "a/b/c");
    assert_string_equal(out, "a/b");
    fs_dirname(out, "a");
    assert_string_equal(out, ".");
    fs_dirname(out, "/a");
    assert_string_equal(out, "/");
}

static void maps_and_hashes(void **state)
{
    (void)state;
    struct err e = {0};
    struct fs_map m;
    uint64_t a, b;
    assert_ok(fs_write_atomic(in_folder("m"), "hello", 5, &e), &e);
    assert_ok(fs_map(in_folder("m"), &m, &e), &e);
    assert_int_equal(m.size, 5);
    assert_memory_equal(m.data, "hello", 5);
    fs_unmap(&m);
    assert_ok(fs_hash_file(in_folder("m"), &a, &e), &e);
    assert_true(a == fs_hash("hello", 5, 0));
    /* XXH3-64 of empty input, from its specification */
    assert_true(fs_hash("", 0, 0) == 0x2D06800538D394C2u);
    char copy[310];
    snprintf(copy, sizeof copy, "%s/copy", folder);
    assert_ok(fs_copy(in_folder("m"), copy, &e), &e);
    assert_ok(fs_hash_file(copy, &b, &e), &e);
    assert_true(a == b);
    assert_ok(fs_write_atomic(in_folder("m"), "", 0, &e), &e);
    assert_ok(fs_map(in_folder("m"), &m, &e), &e);
    assert_int_equal(m.size, 0);
    fs_unmap(&m);
    assert_int_equal(fs_map(in_folder("none"), &m, &e), TARE_E_NOT_FOUND);
    assert_int_equal(fs_map(folder, &m, &e), TARE_E_CORRUPT);
}

static void names_that_leave_their_folder(void **state)
{
    static const char *const IN[] = {"a", "a/b", "..a", "a../b", "a/..b", ".", "a//b"};
    static const char *const OUT[] = {"", "/", "/a", "..", "../a", "a/..", "a/../b", "a//..", "a/b/../../.."};
    (void)state;
    for (size_t i = 0; i < sizeof IN / sizeof *IN; i++) assert_true(fs_is_inside(IN[i]));
    for (size_t i = 0; i < sizeof OUT / sizeof *OUT; i++) assert_false(fs_is_inside(OUT[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_larger_than_memory_is_refused), cmocka_unit_test(a_changed_working_folder_is_named),
        cmocka_unit_test(atomic_writes_replace_or_leave),       cmocka_unit_test(lines_have_a_maximum_length),
        cmocka_unit_test(temporary_files_have_a_folder),        cmocka_unit_test(folders_and_paths),
        cmocka_unit_test(names_that_leave_their_folder),        cmocka_unit_test(maps_and_hashes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
