#define _GNU_SOURCE
#include "sandbox.h"

#include "common/text.h"
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK = 100 }; /* milliseconds between two checks for cancellation */
enum { SPACES = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP };

/* The parent's state while the program runs. -1: not open */
struct outside {
    int input, output[2], failure[2], process;
    pid_t pid;
};

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- Python */

static bool read_line(FILE *f, char out[1024])
{
    if (!fgets(out, 1024, f)) return false;
    char *end = strchr(out, '\n');
    if (!end) return false;
    *end = 0;
    return out[0] == '/';
}

tare_status sandbox_find(struct sandbox *s, const char *python, tare_error *error)
{
    char command[2048];
    if (strlen(python) > 1024 || strchr(python, '\''))
        return tare_fail(error, TARE_E_CONFIG, "python = %.200s: no name of a program", python);
    snprintf(command, sizeof command, "'%s' -c 'import sys; print(sys.executable); print(sys.prefix); print(sys.base_prefix)'",
             python);
    FILE *f = popen(command, "re");
    const bool found = f && read_line(f, s->python) && read_line(f, s->prefix) && read_line(f, s->base_prefix);
    const int status = f ? pclose(f) : -1;
    if (found && !status) return TARE_OK;
    return tare_fail(error, TARE_E_NOT_FOUND, "python = %s cannot be run; name the interpreter that judged programs run in",
                     python);
}

/* ---- files and the child */

static void close_one(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void close_all(struct outside *o)
{
    close_one(&o->input), close_one(&o->output[0]), close_one(&o->output[1]), close_one(&o->failure[0]), close_one(&o->failure[1]),
        close_one(&o->process);
}

/* Puts the input into a memory file, so a program that never reads it blocks nothing. */
static bool open_input(struct outside *o, tare_text input)
{
    int64_t at = 0;
    o->input = memfd_create("input", MFD_CLOEXEC);
    while (o->input >= 0 && at < input.size) {
        const ssize_t n = write(o->input, input.data + at, (size_t)(input.size - at));
        if (n < 0 && errno != EINTR) return false;
        at += n > 0 ? n : 0;
    }
    return o->input >= 0 && !lseek(o->input, 0, SEEK_SET);
}

static tare_status start_child(struct outside *o, const struct sandbox *s, const char *program, tare_text input, tare_error *error)
{
    if (!open_input(o, input) || pipe2(o->output, O_CLOEXEC) || pipe2(o->failure, O_CLOEXEC))
        return tare_fail(error, TARE_E_IO, "the sandbox's files cannot be opened: %s", strerror(errno));
    const struct inside in = {.sandbox = s,
                              .program = program,
                              .input = o->input,
                              .output = o->output[1],
                              .failure = o->failure[1],
                              .uid = getuid(),
                              .gid = getgid()};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the host runs in the child */
    const long pid = syscall(SYS_clone, (s->mode == SANDBOX_FULL ? (unsigned long)SPACES : 0UL) | SIGCHLD, NULL, NULL, NULL, NULL);
    if (!pid) inside_run(&in);
    const int why = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close_one(&o->output[1]);
    close_one(&o->failure[1]);
    close_one(&o->input);
    if (pid < 0) {
        return tare_fail(
            error, TARE_E_UNSUPPORTED,
            "cannot create namespaces (%s), so programs cannot be isolated; allow user namespaces on this machine or in its container, or set sandbox = limits, which lets programs read this user's files",
            strerror(why));
    }
    o->pid = (pid_t)pid;
    o->process = (int)syscall(SYS_pidfd_open, o->pid, 0);
    if (o->process < 0)
        return tare_fail(error, TARE_E_UNSUPPORTED, "pidfd_open: %s; the verifier code needs Linux 5.12", strerror(errno));
    return TARE_OK;
}

/* Reads the child's failure report; empty once the program has started. */
static tare_status read_failure(struct outside *o, tare_error *error)
{
    struct inside_failure f;
    ssize_t n;
    while ((n = read(o->failure[0], &f, sizeof f)) < 0 && errno == EINTR) continue;
    if (n != (ssize_t)sizeof f) return TARE_OK;
    return tare_fail(
        error, TARE_E_UNSUPPORTED,
        "the sandbox cannot be made here: %s: %s; let the machine or its container allow it, or set sandbox = limits, with which programs see this user's files",
        f.what, strerror(f.error));
}

/* ---- what it writes, until it ends */

static bool take_output(const struct sandbox *s, struct outside *o, struct sandbox_result *out)
{
    static const int64_t PIECE = 65536;
    char *more = realloc(out->output, (size_t)(out->size + PIECE + 1));
    if (!more) return false;
    out->output = more;
    const ssize_t n = read(o->output[0], out->output + out->size, (size_t)PIECE);
    if (n > 0) out->size += n;
    if (!n) close_one(&o->output[0]);
    return out->size <= s->output;
}

static enum sandbox_end watch_child(const struct sandbox *s, struct outside *o, int64_t deadline, struct sandbox_result *out)
{
    for (;;) {
        struct pollfd files[] = {{.fd = o->process, .events = POLLIN}, {.fd = o->output[0], .events = POLLIN}};
        const int64_t left = (deadline - clock_now() + 999999) / 1000000;
        if (left <= 0) return SANDBOX_LATE;
        if (s->host->cancelled(s->host->ctx)) return SANDBOX_FAILED;
        if (poll(files, 2, (int)(left < LOOK ? left : LOOK)) <= 0) continue;
        /* read before checking for the exit, to get the last byte of output */
        if (files[1].revents) {
            if (!take_output(s, o, out)) return SANDBOX_TOO_MUCH;
            continue;
        }
        if (files[0].revents) return SANDBOX_EXITED;
    }
}

static void finish_result(struct outside *o, struct sandbox_result *out)
{
    int status = 0;
    if (out->end != SANDBOX_EXITED) kill(o->pid, SIGKILL);
    while (waitpid(o->pid, &status, 0) < 0 && errno == EINTR) continue;
    if (out->end != SANDBOX_EXITED) return;
    if (WIFEXITED(status))
        out->status = WEXITSTATUS(status);
    else
        out->end = WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL ? SANDBOX_LATE : SANDBOX_KILLED;
}

tare_status sandbox_run(const struct sandbox *s, tare_text program, tare_text input, int64_t deadline_ns,
                        struct sandbox_result *out, tare_error *error)
{
    struct outside o = {-1, {-1, -1}, {-1, -1}, -1, 0};
    const int64_t own = clock_now() + (int64_t)(s->wall * 1e9), deadline = deadline_ns && deadline_ns < own ? deadline_ns : own;
    char *copy = malloc((size_t)program.size + 1);
    *out = (struct sandbox_result){.end = SANDBOX_FAILED};
    if (!copy) return tare_fail(error, TARE_E_NOMEM, "no memory");
    memcpy(copy, program.data, (size_t)program.size);
    copy[program.size] = 0;
    tare_status status = start_child(&o, s, copy, input, error);
    if (!status) status = read_failure(&o, error);
    if (!status) out->end = watch_child(s, &o, deadline, out);
    if (!status && out->end == SANDBOX_FAILED) status = tare_fail(error, TARE_E_CANCELLED, "interrupted while a program ran");
    if (o.pid) finish_result(&o, out);
    close_all(&o);
    free(copy);
    return status;
}
