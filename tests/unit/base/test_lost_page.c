/* A mapped file that is truncated under a process: exit status 1 and a message that names it; other
 * causes of SIGBUS keep their default action. */
#include "check.h"

#include "base/lost_page.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(void (*child)(const char *), const char *path, char *said, size_t n)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGBUS, SIG_DFL); /* cmocka and the sanitizers install handlers */
        lost_page_report();
        child(path);
        _exit(0);
    }
    close(ends[1]);
    size_t all = 0;
    for (ssize_t got; all < n - 1 && (got = read(ends[0], said + all, n - 1 - all)) > 0;) all += (size_t)got;
    said[all] = 0;
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void cut_short(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, 1 << 16)) _exit(90);
    volatile const char *map = mmap(NULL, 1 << 16, PROT_READ, MAP_SHARED, fd, 0);
    if ((const void *)map == MAP_FAILED || map[40000] || ftruncate(fd, 100)) _exit(91);
    _exit(map[40000] ? 92 : 93);
}

static void send_sigbus(const char *path)
{
    (void)path;
    raise(SIGBUS);
}

static void names_the_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/tare-lost-XXXXXX", path[64], said[5000], expected[300];
    assert_non_null(mkdtemp(folder));
    static const char *const names[] = {"a model", "two\x1b[2J"}, *const shown[] = {"a model", "two?[2J"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        const int status = status_of(cut_short, path, said, sizeof said);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
        snprintf(expected, sizeof expected,
                 "tare: %s/%s: part of this file can no longer be read: another program has truncated it or its disk has failed\n",
                 folder, shown[i]);
        assert_string_equal(said, expected);
        unlink(path);
    }
    rmdir(folder);
}

static void leaves_others_alone(void **state)
{
    (void)state;
    char said[5000];
    const int status = status_of(send_sigbus, "", said, sizeof said);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_the_file), cmocka_unit_test(leaves_others_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
