/* verifier.isolate = process: one worker process per thread, an exec of this program, replaced when
 * it dies or is late. */
#include "base/clock.h"
#include "base/log.h"
#include "call/worker.h"
#include "verify/internal.h"

#include <stdatomic.h>
#include <string.h>

enum { OPEN_SECONDS = 60 };
/* time for a plugin to observe its deadline and answer */
static const int64_t GRACE_NS = 100000000;

tare_status worker_group_new(int n, struct worker **out, struct err *e)
{
    return mem_new(n * (int64_t)sizeof **out, (void **)out, e);
}

void worker_group_free(struct worker *p, int n)
{
    if (p)
        for (int i = 0; i < n; i++) {
            worker_end(&p[i], true);
            str_free(&p[i].message);
        }
    mem_free(p);
}

/* Writes the instance's name, the plugin, the checksum of its file and every parameter as text, so that the worker
 * creates the same instance. */
static tare_status put_verifier(struct str *m, const struct verifier *f, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(wire_put_text(m, (tare_text){f->name, (int64_t)strlen(f->name)}, e));
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

static tare_status worker_failed(struct wire *w, tare_status status, struct err *e)
{
    const tare_text why = wire_text(w);
    FAIL(e, status, "%.*s", (int)(why.size < 1500 ? why.size : 1500), why.data);
}

static tare_status check_cancelled(const void *v, struct err *e)
{
    return verify_go_on(v, e);
}

/* Warns once: the kernel gives all workers of this process the same answer. */
static void warn_refused(int error)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!error || atomic_flag_test_and_set(&warned)) return;
    log_warn(
        "verifiers run in worker processes without a system call filter and may open connections: the kernel rejects the filter (seccomp: %s); verifier.confine = require makes this an error, off silences this warning",
        strerror(error));
}

static tare_status start_worker(const struct verify *v, struct worker *p, struct err *e)
{
    enum wire_result r;
    TRY(worker_spawn(p, v->options.worker ? v->options.worker : "/proc/self/exe", e));
    wire_start(&p->message);
    TRY(wire_put_int(&p->message, WIRE_OPEN, e));
    TRY(wire_put_int(&p->message, (int64_t)v->env.seed, e));
    TRY(confine_put(&p->message, &v->options.confine, e));
    TRY(wire_put_int(&p->message, v->n_verifiers, e));
    for (int64_t c = 0; c < v->n_verifiers; c++) TRY(put_verifier(&p->message, &v->verifiers[c], e));
    const int64_t deadline = clock_ns() + (int64_t)OPEN_SECONDS * 1000000000;
    TRY(worker_open(p, deadline, (struct worker_check){check_cancelled, v}, &r, e));
    if (r) {
        worker_end(p, true);
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
    worker_end(p, true);
    return worker_failed(&w, s, e);
}

tare_status worker_group_start(const struct verify *v, int thread, struct err *e)
{
    return v->workers[thread].pid ? TARE_OK : start_worker(v, &v->workers[thread], e);
}

tare_status worker_group_identities(struct verify *v, struct err *e)
{
    const struct str *reply = &v->workers[0].message;
    struct wire w = {.data = reply->data, .size = reply->size};
    (void)wire_int(&w), (void)wire_text(&w), (void)wire_int(&w);
    for (int64_t c = 0; c < v->n_verifiers; c++) {
        const tare_text text = wire_text(&w);
        if (w.bad) FAIL(e, TARE_E_CORRUPT, "a verifier's worker gave an invalid reply when it was opened");
        if (text.size) TRY(arena_strdup(&v->arena, text.data, text.size, (char **)(uintptr_t)&v->verifiers[c].identity, e));
    }
    return TARE_OK;
}

static tare_status lose_worker(struct worker *p, bool late, const struct verify_call *call)
{
    worker_end(p, true);
    for (int64_t i = 0; i < call->n; i++)
        verify_output_lose(&call->outputs[i], late ? TARE_VERDICT_TIMED_OUT : TARE_VERDICT_CRASHED,
                           late ? "the verifier did not answer in time" : "the verifier's process died");
    return TARE_OK;
}

static tare_status put_item(struct str *m, const struct verify_item *item, struct err *e)
{
    const tare_completion a = verify_completion(item, 0);
    const tare_text texts[] = {a.prompt, a.text, a.answer, a.row, a.messages};
    const int64_t numbers[] = {(int64_t)a.prompt_uid, a.group, a.index, a.n_turns, a.n_tokens, a.finish, a.off_policy};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) TRY(wire_put_text(m, texts[k], e));
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) TRY(wire_put_int(m, numbers[k], e));
    return TARE_OK;
}

static tare_status put_call(struct str *m, const struct verify_call *call, int64_t time, struct err *e)
{
    wire_start(m);
    TRY(wire_put_int(m, WIRE_VERIFY, e));
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
    TRY(worker_group_start(v, call->thread, e));
    TRY(put_call(&p->message, call, time, e));
    enum wire_result r;
    const int64_t deadline = time ? clock_ns() + time + GRACE_NS : 0;
    TRY(worker_ask(p, deadline, (struct worker_check){check_cancelled, v}, &r, e));
    if (r) return lose_worker(p, r == WIRE_LATE, call);
    struct wire w = {.data = p->message.data, .size = p->message.size};
    const tare_status s = (tare_status)wire_int(&w);
    if (s) {
        /* a fork of the worker answers too, and its bytes may be read as a failure without a message */
        const struct wire begin = w;
        if (!wire_text(&w).size) return lose_worker(p, false, call);
        w = begin;
        return worker_failed(&w, s, e);
    }
    reply_take(v, &w, call);
    return w.bad ? lose_worker(p, false, call) : TARE_OK;
}
