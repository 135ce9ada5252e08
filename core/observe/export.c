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

/* Seconds: for Python to say which modules it has; for what the exporter said to reach the log */
enum { LOOK_PATIENCE = 20, LOG_PATIENCE = 5 };

struct exporter {
    pid_t pid;    /* 0: it has ended */
    pid_t writer; /* of the log */
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

/* argv[0] by PATH. */
static int start(const char *const *argv, struct streams s, pid_t *pid)
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

/* What the child writes, until it ends or the time is over; then it is killed. false: no answer. */
static bool answer_of(pid_t pid, int from, char *text, size_t room)
{
    const double until = clock_seconds() + LOOK_PATIENCE;
    size_t n = 0;
    int how = 0;
    bool open = true;
    for (double left; open && (left = until - clock_seconds()) > 0;) {
        struct pollfd p = {.fd = from, .events = POLLIN};
        if (poll(&p, 1, (int)(left * 1000) + 1) <= 0) continue;
        const ssize_t got = read(from, text + n, room - 1 - n);
        open = got > 0 && n + (size_t)got < room - 1;
        n += got > 0 ? (size_t)got : 0;
    }
    text[n] = 0;
    if (open) kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    return !open && WIFEXITED(how) && !WEXITSTATUS(how);
}

/* Which of the modules Python does not find, as " NAME NAME ". */
static bool missing_modules(const char *const *argv, char *text, size_t room)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC)) return false;
    const int why = start(argv, (struct streams){-1, ends[1], -1}, &pid);
    close(ends[1]);
    const bool answered = !why && answer_of(pid, ends[0], text, room);
    close(ends[0]);
    return answered;
}

bool exporter_lacks(const char *names, char *why, size_t room)
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
        snprintf(why, room, "python3 cannot be run; install Python, and with its pip the packages tare_sdk and %s", names);
        return true;
    }
    if (strstr(found, " tare_sdk ")) at += (size_t)snprintf(why, room, " tare_sdk (`pip install ./sdk/python` in tare's source)");
    for (int i = 0; i < n && at < room; i++) {
        snprintf(name, sizeof name, " %s ", service[i]->module);
        if (strstr(found, name))
            at += (size_t)snprintf(why + at, room - at, "%s %s (`pip install %s`)", at ? "," : "", service[i]->module,
                                   service[i]->package);
    }
    if (!at) return false;
    char list[600];
    snprintf(list, sizeof list, "%s", why);
    snprintf(why, room, "python3 does not find%s", list);
    return true;
}

/* The exporter and, before it, the process that writes to the log what it prints. That one goes on for as long as the exporter does, which may be
 * after the run. It reads all and keeps EXPORT_LOG bytes, since what fills the disk ends the run. */
static int start_both(struct exporter *x, const char *const *argv)
{
    static const char WRITER[] =
        "import os, sys\n"
        "most = int(sys.argv[2])\n"
        "log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)\n"
        "room = most - os.fstat(log).st_size\n"
        "while text := os.read(0, 65536):\n"
        "    if room < 0: continue\n"
        "    if len(text) > room: text = text[:room] + b'\\n[the rest is left out: more than %d bytes]\\n' % most\n"
        "    room -= len(text)\n"
        "    try: os.write(log, text)\n"
        "    except OSError: room = -1\n";
    char most[32];
    int ends[2];
    snprintf(most, sizeof most, "%d", EXPORT_LOG);
    const char *const writer[] = {"python3", "-I", "-S", "-c", WRITER, x->log, most, NULL};
    if (pipe2(ends, O_CLOEXEC)) return errno;
    int code = start(writer, (struct streams){ends[0], -1, -1}, &x->writer);
    if (!code) code = start(argv, (struct streams){-1, ends[1], ends[1]}, &x->pid);
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
        log_warn("log.export = %s: %s; nothing is sent, and the run goes on (its records can be sent later: docs/logging.md)",
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
            code = start_both(x, argv);
    }
    if (!code) return x;
    log_warn("log.export = %s: the exporter cannot be started: %s; nothing is sent, and the run goes on", names, strerror(code));
    free(x);
    return NULL;
}

/* The exporter has ended: what it printed comes to be in the log. What it started may still print, and is not waited for. */
static void wait_for_log(const struct exporter *x)
{
    const double until = clock_seconds() + LOG_PATIENCE;
    while (!waitpid(x->writer, NULL, WNOHANG) && clock_seconds() < until) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* The last line that it wrote. */
static void last_line(const struct exporter *x, char *line, size_t room)
{
    struct str text = {0};
    line[0] = 0;
    if (!fs_read_all(x->log, &text, NULL) && text.data)
        for (char *rest = text.data, *one; (one = strtok_r(rest, "\n", &rest));) snprintf(line, room, "%s", one);
    str_free(&text);
}

/* The step that a service has come to, as the exporter keeps it; -1: none. */
static int64_t sent_to(const struct exporter *x, const char *service)
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
        if (sent_to(x, service[i]->name) < last) return false;
    return true;
}

/* Whether it has ended; a bad end is told. last: the run's last step, which has to have been sent; -1: the run goes on, so that any end is a bad one. */
static bool ended(struct exporter *x, int64_t last)
{
    char how[64], line[300];
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
        "log.export = %s: the exporter has ended (%s)%s%s; the run goes on, and `python3 -m tare_sdk.loggers %s --to %s` sends the rest",
        x->names, how, *line ? ": " : "", line, x->dir, x->names);
    return true;
}

void exporter_look(struct exporter *x)
{
    if (x) ended(x, -1);
}

void exporter_close(struct exporter *x, int64_t last)
{
    if (!x) return;
    const double until = clock_seconds() + EXPORT_PATIENCE;
    while (!ended(x, last) && clock_seconds() < until) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (x->pid)
        log_warn(
            "log.export = %s: the exporter (process %d) has not sent all after %d s; it goes on by itself, what it says is in %s",
            x->names, (int)x->pid, EXPORT_PATIENCE, x->log);
    free(x);
}
