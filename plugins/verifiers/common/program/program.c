#define _GNU_SOURCE
#include "common/program/program.h"

#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { ANSWER_MAX = 1 << 24 };

struct program {
    struct program_options options;
    pid_t pid; /* 0: not running */
    int fd;    /* its standard input and output */
    char *answer;
    int64_t size, capacity;
};

/* CLOCK_MONOTONIC in nanoseconds */
static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

tare_status program_new(const struct program_options *options, struct program **out, tare_error *error)
{
    struct program *p = calloc(1, sizeof *p);
    if (!p) return text_fail(error, TARE_E_NOMEM, "no memory");
    p->options = *options;
    *out = p;
    return TARE_OK;
}

/* Ends it with all it has started: it leads a process group. Returns its exit status as waitpid gives it. */
static int end(struct program *p)
{
    int status = 0;
    if (!p->pid) return 0;
    close(p->fd);
    for (int tries = 0; tries < 50; tries++) { /* who reads to the end of the input may end in order */
        if (waitpid(p->pid, &status, WNOHANG) == p->pid) {
            kill(-p->pid, SIGKILL);
            p->pid = 0;
            return status;
        }
        const struct timespec wait = {0, 1000000};
        nanosleep(&wait, NULL);
    }
    kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) continue;
    p->pid = 0;
    return status;
}

static void end_now(struct program *p)
{
    if (p->pid) kill(-p->pid, SIGKILL);
    end(p);
}

void program_free(struct program *p)
{
    if (!p) return;
    end(p);
    free(p->answer);
    free(p);
}

static int spawn(struct program *p, int fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); /* the host ignores it; a program expects it */
    int got = posix_spawn_file_actions_init(&actions);
    if (got) return got;
    if (!(got = posix_spawnattr_init(&attributes))) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &pipe);
        got = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
        if (!got) got = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
        if (!got) got = posix_spawnp(&p->pid, p->options.argv[0], &actions, &attributes, p->options.argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (got) p->pid = 0;
    return got;
}

/* Sends what is to be sent and receives one line, as far as the deadline allows. */
static enum program_result exchange(struct program *p, tare_text question, int64_t deadline_ns)
{
    int64_t sent = 0, searched = 0;
    const int64_t total = question.data ? question.size + 1 : 0;
    p->size = 0;
    for (;;) {
        const int64_t left = deadline_ns ? (deadline_ns - now() + 999999) / 1000000 : 1000000;
        struct pollfd poller = {.fd = p->fd, .events = (short)(POLLIN | (sent < total ? POLLOUT : 0))};
        if (left <= 0) return PROGRAM_LATE;
        const int got = poll(&poller, 1, (int)(left < 1000000 ? left : 1000000));
        if (got <= 0) continue;
        if (poller.revents & POLLOUT) {
            const bool newline = sent == question.size;
            const ssize_t n = send(p->fd, newline ? "\n" : question.data + sent, newline ? 1 : (size_t)(question.size - sent),
                                   MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n > 0) sent += n;
            if (n < 0 && errno != EAGAIN && errno != EINTR) return PROGRAM_DIED;
        }
        if (!(poller.revents & (POLLIN | POLLHUP | POLLERR))) continue;
        if (p->capacity - p->size < 4097) {
            if (p->capacity >= ANSWER_MAX) return PROGRAM_DIED; /* no line in 16 MB is no answer */
            char *more = realloc(p->answer, (size_t)(p->capacity * 2 + 8192));
            if (!more) return PROGRAM_DIED;
            p->answer = more;
            p->capacity = p->capacity * 2 + 8192;
        }
        const ssize_t n = recv(p->fd, p->answer + p->size, (size_t)(p->capacity - p->size - 1), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) return PROGRAM_DIED;
        p->size += n;
        p->answer[p->size] = 0;
        char *line = memchr(p->answer + searched, '\n', (size_t)(p->size - searched));
        searched = p->size;
        if (!line || sent < total) continue;
        p->size = line - p->answer;
        *line = 0;
        return PROGRAM_ANSWERED;
    }
}

static void how(const char *name, int status, char text[200])
{
    if (WIFSIGNALED(status))
        snprintf(text, 200, "%.100s was killed by signal %d", name, WTERMSIG(status));
    else
        snprintf(text, 200, "%.100s ended with status %d%s", name, WEXITSTATUS(status),
                 WEXITSTATUS(status) == 127 ? " (it was not found)" : "");
}

enum program_result program_start(struct program *p, tare_error *error)
{
    int fd[2];
    char text[200];
    if (p->pid) return PROGRAM_ANSWERED;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
        text_fail(error, TARE_E_IO, "%s cannot be started: %s", p->options.name, strerror(errno));
        return PROGRAM_FAILED;
    }
    const int got = spawn(p, fd[1]);
    close(fd[1]);
    p->fd = fd[0];
    if (got) {
        close(fd[0]);
        text_fail(error, TARE_E_NOT_FOUND, "%s cannot be started: %s", p->options.name, strerror(got));
        return PROGRAM_FAILED;
    }
    if (!p->options.says_ready) return PROGRAM_ANSWERED;
    const enum program_result r = exchange(p, (tare_text){0}, now() + (int64_t)(p->options.start * 1e9));
    if (!r && strstr(p->answer, "\"ready\"")) return PROGRAM_ANSWERED;
    if (r == PROGRAM_LATE) {
        end_now(p);
        text_fail(error, TARE_E_TIMEOUT, "%s was not ready after start = %g seconds", p->options.name, p->options.start);
    } else if (r) {
        how(p->options.name, end(p), text);
        text_fail(error, TARE_E_PLUGIN, "%s before it was ready; its own messages are above", text);
    } else {
        end_now(p);
        text_fail(error, TARE_E_CONFIG, "%.400s", p->answer);
    }
    return PROGRAM_FAILED;
}

enum program_result program_ask(struct program *p, tare_text question, int64_t deadline_ns, tare_text *answer, tare_error *error)
{
    char text[200] = "";
    for (int attempt = 0; attempt < 2; attempt++) { /* it may have died of the question before */
        enum program_result r = program_start(p, error);
        if (r) return r;
        r = exchange(p, question, deadline_ns);
        *answer = (tare_text){p->answer, p->size};
        if (r == PROGRAM_LATE) end_now(p);
        if (r != PROGRAM_DIED) return r;
        how(p->options.name, end(p), text);
    }
    text_fail(error, TARE_E_PLUGIN, "%s, twice, over the same row", text);
    return PROGRAM_DIED;
}

int64_t program_deadline(double timeout, const tare_answer *const *answers, int64_t n)
{
    int64_t deadline = timeout > 0 ? now() + (int64_t)(timeout * 1e9) : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t theirs = answers[i]->deadline_ns;
        if (theirs && (!deadline || theirs < deadline)) deadline = theirs;
    }
    return deadline;
}

enum tare_verdict_code program_verdict(double reward, double correct_at)
{
    return reward >= correct_at ? TARE_CORRECT : reward <= 0 ? TARE_WRONG : TARE_PARTIAL;
}
