/* verifier.isolate = process: one worker process for each thread, started by exec of this program, replaced when it dies or is late. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/program.h"
#include "verify/internal.h"
#include "verify/refused.h"
#include "verify/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { OPEN_SECONDS = 60 };
static const int64_t GRACE_NS = 100000000; /* a plugin that keeps its deadline answers by itself within this */

struct worker {
    pid_t pid; /* 0: not running */
    int fd;
    int listener; /* tells who in the worker asks for a connection; -1: nothing does */
    struct str message;
};

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
            "verifier.isolate = process starts the program tare, and this one is %s; set TARE to its path, or verifier.isolate = thread",
            n > 0 ? self : "unknown");
    *out = other;
    return TARE_OK;
}

tare_status worker_group_new(int n, struct worker **out, struct err *e)
{
    return mem_new(n * (int64_t)sizeof **out, (void **)out, e);
}

static void end(struct worker *p, bool at_once)
{
    if (!p->pid) return;
    if (at_once) kill(p->pid, SIGKILL);
    if (p->listener >= 0) close(p->listener);
    p->listener = -1;
    close(p->fd); /* a worker that reads ends when its socket does */
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    p->pid = 0;
}

void worker_group_free(struct worker *p, int n)
{
    if (p)
        for (int i = 0; i < n; i++) {
            end(&p[i], true);
            str_free(&p[i].message);
        }
    mem_free(p);
}

static tare_status spawn(struct worker *p, const char *binary, struct err *e)
{
    int fd[2];
    posix_spawn_file_actions_t actions;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        FAIL(e, TARE_E_IO, "a verifier's worker cannot be started: %s", strerror(errno));
    char *argv[] = {(char *)(uintptr_t) "tare", (char *)(uintptr_t) "verify", (char *)(uintptr_t) "--worker", NULL};
    int got = posix_spawn_file_actions_init(&actions);
    if (!got) {
        got = posix_spawn_file_actions_adddup2(&actions, fd[1], STDIN_FILENO);
        if (!got) got = posix_spawn(&p->pid, binary, &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(fd[1]);
    if (got) {
        close(fd[0]);
        p->pid = 0;
        FAIL(e, TARE_E_IO, "a verifier's worker cannot be started from %s: %s", binary, strerror(got));
    }
    p->fd = fd[0];
    p->listener = -1;
    return TARE_OK;
}

/* The plugin, its file's sum and every parameter as text, so that the worker makes the same instance. */
static tare_status put_verifier(struct str *m, const struct verifier *f, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(str_addf(&text, e, "%s:%s", f->plugin->path, f->plugin->desc.name));
    TRY(wire_put_text(m, (tare_text){text.data, text.size}, e));
    TRY(wire_put_int(m, (int64_t)f->plugin->hash, e));
    TRY(wire_put_int(m, f->plugin->desc.n_params, e));
    for (uint32_t i = 0; i < f->plugin->desc.n_params; i++) {
        str_clear(&text);
        TRY(str_addf(&text, e, "%s=", f->plugin->params[i].key));
        TRY(plugin_value_text(f->plugin, i, f->values[i], &text, e));
        TRY(wire_put_text(m, (tare_text){text.data, text.size}, e));
    }
    return TARE_OK;
}

static tare_status failed(struct wire *w, tare_status status, struct err *e)
{
    const tare_text why = wire_text(w);
    FAIL(e, status, "%.*s", (int)(why.size < 1500 ? why.size : 1500), why.data);
}

/* Waits for a worker's answer to begin: it is there, the worker has died, or it is late. TARE_E_CANCELLED: the worker is ended. */
static tare_status wait_for_answer(const struct verify *v, struct worker *p, int64_t deadline, struct err *e)
{
    for (;;) {
        const int64_t left = deadline ? deadline - clock_ns() : VERIFY_LOOK_NS,
                      most = left < VERIFY_LOOK_NS ? left : VERIFY_LOOK_NS;
        struct pollfd pollers[] = {{.fd = p->fd, .events = POLLIN}, {.fd = p->listener, .events = POLLIN}};
        const tare_status cancelled = verify_go_on(v, e);
        if (cancelled) end(p, true);
        TRY(cancelled);
        if (left <= 0 || (poll(pollers, 2, (int)((most + 999999) / 1000000)) > 0 && pollers[0].revents)) return TARE_OK;
        if (pollers[1].revents && !refused_answer(p->listener)) {
            close(p->listener);
            p->listener = -1;
        }
    }
}

static tare_status put_confine(struct str *m, const struct confine *c, struct err *e)
{
    const int64_t fields[] = {c->mode, c->network, c->namespaces, c->memory, c->open_files, c->file_size};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) TRY(wire_put_int(m, fields[i], e));
    return TARE_OK;
}

/* Once for all workers of this process: every one of them is refused the same. */
static void warn_refused(int error)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!error || atomic_flag_test_and_set(&told)) return;
    log_warn(
        "verifiers run in worker processes without a list of refused system calls, and may open connections: the kernel takes none (seccomp: %s); verifier.confine = require makes that an error, off keeps this warning away",
        strerror(error));
}

static tare_status start(const struct verify *v, struct worker *p, struct err *e)
{
    TRY(spawn(p, v->options.worker ? v->options.worker : "/proc/self/exe", e));
    wire_start(&p->message);
    TRY(wire_put_int(&p->message, WIRE_OPEN, e));
    TRY(wire_put_int(&p->message, (int64_t)v->env.seed, e));
    TRY(put_confine(&p->message, &v->options.confine, e));
    TRY(wire_put_int(&p->message, v->n_verifiers, e));
    for (int64_t c = 0; c < v->n_verifiers; c++) TRY(put_verifier(&p->message, &v->verifiers[c], e));
    const int64_t deadline = clock_ns() + (int64_t)OPEN_SECONDS * 1000000000;
    enum wire_result r = wire_send(p->fd, &p->message);
    if (!r) TRY(wait_for_answer(v, p, deadline, e));
    if (!r && (clock_ns() >= deadline || !refused_take(p->fd, &p->listener))) r = WIRE_CLOSED;
    if (!r) TRY(wait_for_answer(v, p, deadline, e));
    if (!r) r = wire_receive(p->fd, &p->message, deadline);
    if (r) {
        end(p, true);
        FAIL(e, TARE_E_PLUGIN,
             "a verifier's worker died or hung while it opened its plugins; try verifier.isolate = thread to see why");
    }
    struct wire w = {.data = p->message.data, .size = p->message.size};
    const tare_status s = (tare_status)wire_int(&w);
    if (!s) {
        wire_text(&w);
        warn_refused((int)wire_int(&w));
        return TARE_OK;
    }
    end(p, true);
    return failed(&w, s, e);
}

tare_status process_start(const struct verify *v, int thread, struct err *e)
{
    return v->workers[thread].pid ? TARE_OK : start(v, &v->workers[thread], e);
}

static tare_status lost(struct worker *p, bool late, const struct verify_call *call)
{
    end(p, true);
    for (int64_t i = 0; i < call->n; i++) {
        tare_verdict *out = &call->verdicts[i];
        out->code = late ? TARE_TIMED_OUT : TARE_CRASHED;
        out->reward = 0;
        out->size = out->n_segments = 0;
        out->reason = late ? "the verifier did not answer in time" : "the verifier's process died";
    }
    return TARE_OK;
}

static tare_status put_item(struct str *m, const struct verify_item *item, struct err *e)
{
    const tare_answer a = verify_answer(item, 0);
    const tare_text texts[] = {a.prompt, a.completion, a.answer, a.row};
    const int64_t numbers[] = {(int64_t)a.prompt_uid, a.group, a.sample, a.n_tokens, a.finish, a.off_policy};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) TRY(wire_put_text(m, texts[k], e));
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) TRY(wire_put_int(m, numbers[k], e));
    return TARE_OK;
}

static tare_status put_call(struct str *m, const struct verify_call *call, int64_t time, struct err *e)
{
    wire_start(m);
    TRY(wire_put_int(m, WIRE_JUDGE, e));
    TRY(wire_put_int(m, call->c, e));
    TRY(wire_put_int(m, time, e));
    TRY(wire_put_int(m, call->n, e));
    for (int64_t i = 0; i < call->n; i++) TRY(put_item(m, &call->items[i], e));
    return TARE_OK;
}

tare_status worker_group_call(const struct verify *v, const struct verify_call *call, struct err *e)
{
    struct worker *p = &v->workers[call->thread];
    const int64_t time = verify_call_time(v, call);
    TRY(process_start(v, call->thread, e));
    TRY(put_call(&p->message, call, time, e));
    enum wire_result r = wire_send(p->fd, &p->message);
    const int64_t deadline = time ? clock_ns() + time + GRACE_NS : 0;
    if (!r) TRY(wait_for_answer(v, p, deadline, e));
    if (!r) r = wire_receive(p->fd, &p->message, deadline);
    if (r) return lost(p, r == WIRE_LATE, call);
    struct wire w = {.data = p->message.data, .size = p->message.size};
    const tare_status s = (tare_status)wire_int(&w);
    if (s) return failed(&w, s, e);
    TRY(reply_take(v, &w, call, e));
    return w.bad ? lost(p, false, call) : TARE_OK;
}
