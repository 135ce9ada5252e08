#define _GNU_SOURCE /* pipe2 */
#include "observe/export.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "config/exports.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Seconds to wait for Python to list missing modules, and for the exporter's last output to reach
 * the log. */
enum { LOOK_PATIENCE = 20, LOG_PATIENCE = 5 };

struct exporter {
    pid_t pid;    /* 0: it has ended */
    pid_t writer; /* process that writes the log */
    char names[200], dir[FS_PATH], log[FS_PATH];
};

struct streams {
    int in, out, error; /* -1: /dev/null */
};

static void add_stream(posix_spawn_file_actions_t *actions, int from, int to)
{
    if (from < 0)
        posix_spawn_file_actions_addopen(actions, to, "/dev/null", to ? O_WRONLY : O_RDONLY, 0);
    else
        posix_spawn_file_actions_adddup2(actions, from, to);
}

/* Starts a child process, with argv[0] found in PATH. */
static int start_child(const char *const *argv, struct streams s, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    add_stream(&actions, s.in, 0);
    add_stream(&actions, s.out, 1);
    add_stream(&actions, s.error, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    const int why = posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return why;
}

/* Reads the child's output until it ends. Kills it after LOOK_PATIENCE. Returns false without an
 * answer. */
static bool read_answer(pid_t pid, int from, char *text, size_t capacity)
{
    const double until = clock_seconds() + LOOK_PATIENCE;
    size_t n = 0;
    int how = 0;
    bool open = true;
    for (double left; open && (left = until - clock_seconds()) > 0;) {
        struct pollfd p = {.fd = from, .events = POLLIN};
        if (poll(&p, 1, (int)(left * 1000) + 1) <= 0) continue;
        const ssize_t got = read(from, text + n, capacity - 1 - n);
        open = got > 0 && n + (size_t)got < capacity - 1;
        n += got > 0 ? (size_t)got : 0;
    }
    text[n] = 0;
    if (open) kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    return !open && WIFEXITED(how) && !WEXITSTATUS(how);
}

/* Lists the modules that Python does not find, as " NAME NAME ". */
static bool missing_modules(const char *const *argv, char *text, size_t capacity)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC)) return false;
    const int why = start_child(argv, (struct streams){-1, ends[1], -1}, &pid);
    close(ends[1]);
    const bool answered = !why && read_answer(pid, ends[0], text, capacity);
    close(ends[0]);
    return answered;
}

bool exporter_lacks(const char *names, char *why, size_t capacity)
{
    static const char PROGRAM[] = "import importlib.util as u, sys\n"
                                  "print('', *[m for m in sys.argv[1:] if not u.find_spec(m)], '')";
    const struct export_service *service[EXPORTS];
    const char *argv[EXPORTS + 5] = {"python3", "-c", PROGRAM, "tare_sdk"};
    char found[400], name[40];
    size_t at = 0;
    int n = 0;
    if (exports_read(names, service, &n, NULL) || !n) return false;
    for (int i = 0; i < n; i++) argv[4 + i] = service[i]->module;
    if (!missing_modules(argv, found, sizeof found)) {
        snprintf(why, capacity, "cannot run python3; install Python, and with its pip the packages tare_sdk and %s", names);
        return true;
    }
    if (strstr(found, " tare_sdk "))
        at += (size_t)snprintf(why, capacity, " tare_sdk (`pip install ./sdk/python` in tare's source)");
    for (int i = 0; i < n && at < capacity; i++) {
        snprintf(name, sizeof name, " %s ", service[i]->module);
        if (strstr(found, name))
            at += (size_t)snprintf(why + at, capacity - at, "%s %s (`pip install %s`)", at ? "," : "", service[i]->module,
                                   service[i]->package);
    }
    if (!at) return false;
    char list[600];
    snprintf(list, sizeof list, "%s", why);
    snprintf(why, capacity, "python3 does not find%s", list);
    return true;
}

/* Starts the exporter, and before it the process that writes the exporter's output to the log. The
 * writer runs as long as the exporter, possibly after the run. It reads all output and keeps
 * EXPORT_LOG bytes, because a full disk would end the run. */
static int start_exporter(struct exporter *x, const char *const *argv)
{
    static const char WRITER[] =
        "import os, sys\n"
        "most = int(sys.argv[2])\n"
        "log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)\n"
        "spare = most - os.fstat(log).st_size\n"
        "while text := os.read(0, 65536):\n"
        "    if spare < 0: continue\n"
        "    if len(text) > spare: text = text[:spare] + b'\\n[the rest is left out: more than %d bytes]\\n' % most\n"
        "    spare -= len(text)\n"
        "    try: os.write(log, text)\n"
        "    except OSError: spare = -1\n";
    char most[32];
    int ends[2];
    snprintf(most, sizeof most, "%d", EXPORT_LOG);
    const char *const writer[] = {"python3", "-I", "-S", "-c", WRITER, x->log, most, NULL};
    if (pipe2(ends, O_CLOEXEC)) return errno;
    int code = start_child(writer, (struct streams){ends[0], -1, -1}, &x->writer);
    if (!code) code = start_child(argv, (struct streams){-1, ends[1], ends[1]}, &x->pid);
    close(ends[0]);
    close(ends[1]);
    return code;
}

struct exporter *exporter_start(const char *names, const char *run_dir)
{
    const char *const argv[] = {"python3", "-m", "tare_sdk.loggers", run_dir, "--to", names, "--follow", NULL};
    char why[700], folder[FS_PATH];
    if (!names[strspn(names, ", \t")]) return NULL;
    if (exporter_lacks(names, why, sizeof why)) {
        log_warn("log.export = %s: %s; nothing is sent, and the run continues (its records can be sent later: docs/logging.md)",
                 names, why);
        return NULL;
    }
    struct exporter *x = calloc(1, sizeof *x);
    int code = x ? 0 : ENOMEM;
    if (x) {
        snprintf(x->names, sizeof x->names, "%s", names);
        snprintf(x->dir, sizeof x->dir, "%s", run_dir);
        if (fs_join(folder, run_dir, "export", NULL) || fs_mkdirs(folder, NULL) || fs_join(x->log, folder, "log.txt", NULL))
            code = EIO;
        else
            code = start_exporter(x, argv);
    }
    if (!code) return x;
    log_warn("log.export = %s: cannot start the exporter: %s; nothing is sent, and the run continues", names, strerror(code));
    free(x);
    return NULL;
}

/* Waits until the output of the ended exporter is in the log. Processes started by it may still
 * print, and are not waited for. */
static void wait_for_log(const struct exporter *x)
{
    const double until = clock_seconds() + LOG_PATIENCE;
    while (!waitpid(x->writer, NULL, WNOHANG) && clock_seconds() < until) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Reads the last line of the exporter's log. */
static void last_line(const struct exporter *x, char *line, size_t capacity)
{
    struct str text = {0};
    line[0] = 0;
    if (!fs_read_all(x->log, &text, NULL) && text.data)
        for (char *rest = text.data, *one; (one = strtok_r(rest, "\n", &rest));) snprintf(line, capacity, "%s", one);
    str_free(&text);
}

/* Reads the step that a service has received, as recorded by the exporter; -1: none. */
static int64_t step_sent(const struct exporter *x, const char *service)
{
    char name[64], path[FS_PATH];
    struct str text = {0};
    json_t *state = NULL;
    int64_t step = -1;
    snprintf(name, sizeof name, "export/%.50s.json", service);
    if (!fs_join(path, x->dir, name, NULL) && !fs_read_all(path, &text, NULL) && text.size &&
        !json_parse(text.data, text.size, path, &state, NULL) && json_is_integer(json_object_get(state, "step")))
        step = json_integer_value(json_object_get(state, "step"));
    json_decref(state);
    str_free(&text);
    return step;
}

static bool all_sent(const struct exporter *x, int64_t last)
{
    const struct export_service *service[EXPORTS];
    int n = 0;
    if (exports_read(x->names, service, &n, NULL)) return false;
    for (int i = 0; i < n; i++)
        if (step_sent(x, service[i]->name) < last) return false;
    return true;
}

/* Returns true if the exporter has ended, and warns about a failure. last: the run's last step,
 * which must have been sent; -1: the run continues, so any end is a failure. */
static bool has_ended(struct exporter *x, int64_t last)
{
    char how[64], line[300], word[STR_SHELL];
    int status;
    if (!x->pid) return true;
    const pid_t got = waitpid(x->pid, &status, WNOHANG);
    if (!got || (got < 0 && errno == EINTR)) return false;
    x->pid = 0;
    wait_for_log(x);
    if (last >= 0 && got > 0 && WIFEXITED(status) && !WEXITSTATUS(status) && all_sent(x, last)) return true;
    if (got > 0 && WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "exit status %d", got > 0 ? WEXITSTATUS(status) : -1);
    last_line(x, line, sizeof line);
    log_warn(
        "log.export = %s: the exporter has ended (%s)%s%s; the run continues, and `python3 -m tare_sdk.loggers %s --to %s` sends the rest",
        x->names, how, *line ? ": " : "", line, str_shell(word, x->dir), x->names);
    return true;
}

void exporter_look(struct exporter *x)
{
    if (x) has_ended(x, -1);
}

void exporter_close(struct exporter *x, int64_t last)
{
    if (!x) return;
    const double until = clock_seconds() + EXPORT_PATIENCE;
    while (!has_ended(x, last) && clock_seconds() < until) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (x->pid)
        log_warn(
            "log.export = %s: the exporter (process %d) is still sending after %d s; it continues in the background, with its log in %s",
            x->names, (int)x->pid, EXPORT_PATIENCE, x->log);
    free(x);
}
