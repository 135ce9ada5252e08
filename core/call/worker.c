#define _GNU_SOURCE
#include "call/worker.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/program.h"
#include "call/refused.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

tare_status worker_program(const char **out, struct err *e)
{
    char self[FS_PATH] = "";
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *name = n > 0 ? strrchr(self, '/') : NULL;
    const char *other = getenv("TARE");
    *out = program_given();
    if (*out) return TARE_OK;
    if (name && !strncmp(name, "/tare", 5)) return TARE_OK;
    if (!other || access(other, X_OK))
        FAIL(
            e, TARE_E_UNSUPPORTED,
            "verifier.isolate = process starts the program tare, but this program is %s; set TARE to the path of tare, or set verifier.isolate = thread",
            n > 0 ? self : "unknown");
    *out = other;
    return TARE_OK;
}

tare_status worker_spawn(struct worker *w, const char *binary, struct err *e)
{
    int fd[2];
    posix_spawn_file_actions_t actions;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        FAIL(e, TARE_E_IO, "cannot start a verifier's worker: %s", strerror(errno));
    char *argv[] = {(char *)(uintptr_t) "tare", (char *)(uintptr_t) "verify", (char *)(uintptr_t) "--worker", NULL};
    int got = posix_spawn_file_actions_init(&actions);
    if (!got) {
        got = posix_spawn_file_actions_adddup2(&actions, fd[1], STDIN_FILENO);
        if (!got) got = posix_spawn(&w->pid, binary, &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(fd[1]);
    if (got) {
        close(fd[0]);
        w->pid = 0;
        FAIL(e, TARE_E_IO, "cannot start a verifier's worker from %s: %s", binary, strerror(got));
    }
    w->fd = fd[0];
    w->listener = -1;
    return TARE_OK;
}

static void close_listener(struct worker *w)
{
    if (w->listener >= 0) close(w->listener);
    w->listener = -1;
}

void worker_end(struct worker *w, bool at_once)
{
    if (!w->pid) return;
    if (at_once) kill(w->pid, SIGKILL);
    close_listener(w);
    close(w->fd); /* a worker that is reading ends when its socket closes */
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) continue;
    w->pid = 0;
}

/* Waits until the reply begins, the worker dies or the deadline passes, and answers refused
 * connections meanwhile. */
static tare_status await_reply(struct worker *w, int64_t deadline, struct worker_check check, struct err *e)
{
    for (;;) {
        const int64_t left = deadline ? deadline - clock_ns() : WORKER_CHECK_NS,
                      most = left < WORKER_CHECK_NS ? left : WORKER_CHECK_NS;
        struct pollfd pollers[] = {{.fd = w->fd, .events = POLLIN}, {.fd = w->listener, .events = POLLIN}};
        const tare_status stopped = check.check(check.ctx, e);
        if (stopped) worker_end(w, true);
        TRY(stopped);
        if (left <= 0 || (poll(pollers, 2, (int)((most + 999999) / 1000000)) > 0 && pollers[0].revents)) return TARE_OK;
        if (pollers[1].revents && !refused_answer(w->listener)) close_listener(w);
    }
}

tare_status worker_ask(struct worker *w, int64_t deadline_ns, struct worker_check check, enum wire_result *result, struct err *e)
{
    *result = wire_send(w->fd, &w->message);
    if (*result) return TARE_OK;
    TRY(await_reply(w, deadline_ns, check, e));
    *result = wire_receive(w->fd, &w->message, deadline_ns);
    return TARE_OK;
}

tare_status worker_open(struct worker *w, int64_t deadline_ns, struct worker_check check, enum wire_result *result, struct err *e)
{
    *result = wire_send(w->fd, &w->message);
    if (*result) return TARE_OK;
    TRY(await_reply(w, deadline_ns, check, e));
    *result = WIRE_CLOSED;
    if (clock_ns() >= deadline_ns || !refused_take(w->fd, &w->listener)) return TARE_OK;
    TRY(await_reply(w, deadline_ns, check, e));
    *result = wire_receive(w->fd, &w->message, deadline_ns);
    return TARE_OK;
}
