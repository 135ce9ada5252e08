#define _GNU_SOURCE
#include "common/program/program.h"

#include "common/program/left.h"
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

enum { ANSWER_MAX = 1 << 24, LOOK_NS = 100000000 };

struct program {
    struct program_options options;
    pid_t pid;     /* 0: not running */
    pid_t watcher; /* leader of the process group; 0: none */
    int fd;        /* its standard input and output */
    int life;      /* open while this process lives: the watcher ends the group when it closes */
    char mark[64]; /* environment entry inherited by everything it starts */
    char *answer;
    int64_t size, capacity;
    bool ready;             /* it has reported ready, or need not */
    struct {                /* the line being read */
        tare_text question; /* data NULL: nothing to send */
        int64_t sent, searched, deadline_ns;
    } line;
    struct { /* the current question */
        tare_text text;
        int64_t deadline_ns;
        int deaths;
    } asked;
};

int64_t program_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

tare_status program_new(const struct program_options *options, struct program **out, tare_error *error)
{
    struct program *p = calloc(1, sizeof *p);
    if (!p) return tare_fail(error, TARE_E_NOMEM, "no memory");
    p->options = *options;
    snprintf(p->mark, sizeof p->mark, "TARE_PROGRAM_%ld_%llx=1", (long)getpid(), (unsigned long long)(uintptr_t)p);
    *out = p;
    return TARE_OK;
}

static int reap_child(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

/* Ends the group, its watcher, and processes that left the group. */
static void end_group(struct program *p)
{
    if (!p->watcher) return;
    kill(-p->watcher, SIGKILL);
    reap_child(p->watcher);
    close(p->life);
    p->watcher = 0;
    left_end(p->mark);
}

/* Ends the program and everything it started. Returns its exit status as waitpid does. */
static int end_program(struct program *p)
{
    int status = 0;
    bool ended = false;
    if (!p->pid) return 0;
    close(p->fd);
    /* a program that reads to the end of its input may exit normally */
    for (int tries = 0; p->watcher && tries < 50 && !ended; tries++) {
        ended = waitpid(p->pid, &status, WNOHANG) == p->pid;
        const struct timespec wait = {0, 1000000};
        if (!ended) nanosleep(&wait, NULL);
    }
    end_group(p);
    if (!ended) status = reap_child(p->pid);
    p->pid = 0;
    return status;
}

static void end_now(struct program *p)
{
    if (p->pid) end_group(p);
    end_program(p);
}

void program_free(struct program *p)
{
    if (!p) return;
    end_program(p);
    free(p->answer);
    free(p);
}

struct start {
    char *const *argv;
    char *const *environment;
};

/* Starts a process of the group (0: as leader of a new one) with this standard input and output. */
static int spawn_in(pid_t group, const struct start *start, int in, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); /* the host ignores it; a program expects the default */
    int got = posix_spawn_file_actions_init(&actions);
    if (got) return got;
    if (!(got = posix_spawnattr_init(&attributes))) {
        posix_spawnattr_setpgroup(&attributes, group);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &pipe);
        got = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        if (!got) got = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (!got) got = posix_spawnp(pid, start->argv[0], &actions, &attributes, start->argv, start->environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (got) *pid = 0;
    return got;
}

/* Starts the watcher. A death signal (prctl) would arrive when the thread that started the program
 * ends, and only at that process. */
static int start_watcher(struct program *p)
{
    static char SH[] = "/bin/sh", FLAG[] = "-c";
    static char WATCH[] = "trap 'kill -KILL 0' EXIT\n"
                          "read -r line\n"
                          "for f in $(grep -lzxF -e \"$0\" /proc/[0-9]*/environ 2> /dev/null)\n"
                          "do f=${f#/proc/} && kill -KILL \"${f%/environ}\" 2> /dev/null\n"
                          "done";
    char *const argv[] = {SH, FLAG, WATCH, p->mark, NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return errno;
    const int got = spawn_in(0, &(struct start){argv, environ}, ends[0], STDERR_FILENO, &p->watcher);
    close(ends[0]);
    p->life = ends[1];
    if (got) close(ends[1]);
    return got;
}

static int spawn_marked(struct program *p, int fd)
{
    size_t n = 0;
    while (environ[n]) n++;
    char **environment = malloc((n + 2) * sizeof *environment);
    if (!environment) return ENOMEM;
    environment[0] = p->mark;
    memcpy(environment + 1, environ, (n + 1) * sizeof *environment);
    const int got = spawn_in(p->watcher, &(struct start){p->options.argv, environment}, fd, fd, &p->pid);
    free(environment);
    return got;
}

static int spawn_program(struct program *p, int fd)
{
    int got = start_watcher(p);
    if (!got) got = spawn_marked(p, fd);
    if (got) end_group(p);
    return got;
}

/* ---------------------------------------------------------------- one line */

static void expect_line(struct program *p, tare_text question, int64_t deadline_ns)
{
    p->size = 0;
    p->line.question = question;
    p->line.sent = p->line.searched = 0;
    p->line.deadline_ns = deadline_ns;
}

static int64_t to_send(const struct program *p)
{
    return p->line.question.data ? p->line.question.size + 1 - p->line.sent : 0;
}

/* Sends as much as the socket accepts. Returns false if it is closed. */
static bool send_some(struct program *p)
{
    while (to_send(p)) {
        const bool newline = to_send(p) == 1;
        const ssize_t n = send(p->fd, newline ? "\n" : p->line.question.data + p->line.sent, newline ? 1 : (size_t)to_send(p) - 1,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN;
        p->line.sent += n;
    }
    return true;
}

static bool make_room(struct program *p)
{
    if (p->capacity - p->size >= 4097) return true;
    if (p->capacity >= ANSWER_MAX) return false; /* 16 MB without a newline is not an answer */
    char *more = realloc(p->answer, (size_t)(p->capacity * 2 + 8192));
    if (!more) return false;
    p->answer = more;
    p->capacity = p->capacity * 2 + 8192;
    return true;
}

/* Receives the program's output so far: a line, a part of one, or its end. */
static enum program_result receive_some(struct program *p)
{
    for (;;) {
        if (!make_room(p)) return PROGRAM_DIED;
        const ssize_t n = recv(p->fd, p->answer + p->size, (size_t)(p->capacity - p->size - 1), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return PROGRAM_WORKS;
        if (n <= 0) return PROGRAM_DIED;
        p->size += n;
        p->answer[p->size] = 0;
        char *line = memchr(p->answer + p->line.searched, '\n', (size_t)(p->size - p->line.searched));
        p->line.searched = p->size;
        if (!line || to_send(p)) continue;
        p->size = line - p->answer;
        *line = 0;
        return PROGRAM_ANSWERED;
    }
}

static enum program_result exchange_lines(struct program *p)
{
    if (!send_some(p)) return PROGRAM_DIED;
    const enum program_result r = receive_some(p);
    return r == PROGRAM_WORKS && p->line.deadline_ns && program_now() >= p->line.deadline_ns ? PROGRAM_LATE : r;
}

void program_wait(struct program *const *programs, int64_t n, int64_t wait_ns)
{
    struct pollfd some[64];
    int64_t until = program_now() + wait_ns;
    const int64_t watched = n < 64 ? n : 64; /* the others are checked every 10 ms */
    if (n > watched && wait_ns > 10000000) until = program_now() + 10000000;
    for (int64_t i = 0; i < n; i++) {
        const struct program *p = programs[i];
        if (p->line.deadline_ns && p->line.deadline_ns < until) until = p->line.deadline_ns;
        if (i < watched) some[i] = (struct pollfd){.fd = p->fd, .events = (short)(POLLIN | (to_send(p) ? POLLOUT : 0))};
    }
    const int64_t left = (until - program_now() + 999999) / 1000000;
    if (left > 0) poll(some, (nfds_t)watched, (int)(left < 1000000 ? left : 1000000));
}

/* ---------------------------------------------------------------- its life */

static void describe_exit(const char *name, int status, char text[200])
{
    if (WIFSIGNALED(status))
        snprintf(text, 200, "%.100s was killed by signal %d", name, WTERMSIG(status));
    else
        snprintf(text, 200, "%.100s ended with status %d%s", name, WEXITSTATUS(status),
                 WEXITSTATUS(status) == 127 ? " (it was not found)" : "");
}

static enum program_result not_ready(struct program *p, enum program_result r, tare_error *error)
{
    char text[200];
    if (r == PROGRAM_LATE) {
        end_now(p);
        tare_fail(error, TARE_E_TIMEOUT, "%s was not ready after start = %g seconds", p->options.name, p->options.start);
    } else if (r == PROGRAM_DIED) {
        describe_exit(p->options.name, end_program(p), text);
        tare_fail(error, TARE_E_PLUGIN, "%s before it was ready; its own messages are above", text);
    } else {
        end_now(p);
        tare_fail(error, TARE_E_CONFIG, "%.400s", p->answer);
    }
    return PROGRAM_FAILED;
}

/* Starts the program unless it runs. PROGRAM_WORKS: it runs but may not be ready yet. */
static enum program_result launch_program(struct program *p, tare_error *error)
{
    int fd[2];
    if (p->pid) return PROGRAM_WORKS;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
        tare_fail(error, TARE_E_IO, "%s cannot be started: %s", p->options.name, strerror(errno));
        return PROGRAM_FAILED;
    }
    const int got = spawn_program(p, fd[1]);
    close(fd[1]);
    p->fd = fd[0];
    if (got) {
        close(fd[0]);
        tare_fail(error, TARE_E_NOT_FOUND, "%s cannot be started: %s", p->options.name, strerror(got));
        return PROGRAM_FAILED;
    }
    p->ready = !p->options.says_ready;
    if (!p->ready) expect_line(p, (tare_text){0}, program_now() + (int64_t)(p->options.start * 1e9));
    return PROGRAM_WORKS;
}

/* Waits until the program is ready. PROGRAM_ANSWERED: it is. */
static enum program_result become_ready(struct program *p, tare_error *error)
{
    if (p->ready) return PROGRAM_ANSWERED;
    const enum program_result r = exchange_lines(p);
    if (r == PROGRAM_WORKS) return r;
    if (r || !strstr(p->answer, "\"ready\"")) return not_ready(p, r, error);
    p->ready = true;
    return PROGRAM_ANSWERED;
}

/* Waits for a while. Ends the program if the run is being cancelled. */
static enum program_result wait_on(struct program *p, tare_error *error)
{
    const tare_host *host = p->options.host;
    if (!host->cancelled(host->ctx)) {
        program_wait(&p, 1, LOOK_NS);
        return PROGRAM_WORKS;
    }
    end_now(p);
    tare_fail(error, TARE_E_CANCELLED, "interrupted while %s worked", p->options.name);
    return PROGRAM_FAILED;
}

enum program_result program_start(struct program *p, tare_error *error)
{
    enum program_result r = launch_program(p, error);
    while (r == PROGRAM_WORKS) {
        r = become_ready(p, error);
        if (r == PROGRAM_WORKS) r = wait_on(p, error);
    }
    return r;
}

void program_stop(struct program *p)
{
    end_now(p);
}

/* ---------------------------------------------------------------- a question */

static enum program_result pose_question(struct program *p, tare_error *error)
{
    const enum program_result r = launch_program(p, error);
    if (r == PROGRAM_WORKS && p->ready) expect_line(p, p->asked.text, p->asked.deadline_ns);
    return r;
}

enum program_result program_begin(struct program *p, tare_text question, int64_t deadline_ns, tare_error *error)
{
    p->asked.text = question;
    p->asked.deadline_ns = deadline_ns;
    p->asked.deaths = 0;
    return pose_question(p, error);
}

enum program_result program_look(struct program *p, tare_text *answer, tare_error *error)
{
    char text[200] = "";
    for (;;) {
        const bool ready = p->ready;
        enum program_result r = become_ready(p, error);
        if (r) return r;
        if (!ready) expect_line(p, p->asked.text, p->asked.deadline_ns);
        r = exchange_lines(p);
        *answer = (tare_text){p->answer, p->size};
        if (r == PROGRAM_LATE) end_now(p);
        if (r != PROGRAM_DIED) return r;
        describe_exit(p->options.name, end_program(p), text);
        /* the first time it may have died of the previous question */
        if (++p->asked.deaths == 2) break;
        r = pose_question(p, error);
        if (r != PROGRAM_WORKS) return r;
    }
    tare_fail(error, TARE_E_PLUGIN, "%s, twice, over the same row", text);
    return PROGRAM_DIED;
}

enum program_result program_ask(struct program *p, tare_text question, int64_t deadline_ns, tare_text *answer, tare_error *error)
{
    enum program_result r = program_begin(p, question, deadline_ns, error);
    while (r == PROGRAM_WORKS) {
        r = program_look(p, answer, error);
        if (r == PROGRAM_WORKS) r = wait_on(p, error);
    }
    return r;
}

int64_t program_deadline(double timeout, const tare_completion *const *completions, int64_t n)
{
    int64_t deadline = timeout > 0 ? program_now() + (int64_t)(timeout * 1e9) : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t theirs = completions[i]->deadline_ns;
        if (theirs && (!deadline || theirs < deadline)) deadline = theirs;
    }
    return deadline;
}

int32_t program_verdict(double reward, double correct_at)
{
    return reward >= correct_at ? TARE_VERDICT_CORRECT : reward <= 0 ? TARE_VERDICT_WRONG : TARE_VERDICT_PARTIAL;
}
