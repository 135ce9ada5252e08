/* libFuzzer target: messages between engine and worker process with verifier.isolate = process.
 * The first byte chooses:
 *   even  requests to a worker, which has `exact` and a verifier with segments unless the requests open
 *         others; each request has its correct length
 *   odd   the answer of a worker to a call of three completions: an accepted answer is a valid verdict. */
#define _GNU_SOURCE
#include "base/log.h"
#include "bytes.h"
#include "call/wire.h"
#include "verify/internal.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 8192, ITEMS = 3, SEGMENTS = 4 };

/* ---- requests */

static void put_text(struct str *m, struct bytes *in)
{
    static const char *const TEXTS[] = {"", "7", "\\boxed{7}", "exact", "length", "case=false", "{}", "{\"answer\":\"7\"}", "\xff"};
    size_t n;
    const int how = byte(in);
    const char *raw = TEXTS[(size_t)how % (sizeof TEXTS / sizeof *TEXTS)];
    n = strlen(raw);
    if (how >= 128) raw = bytes_take(in, (size_t)byte(in), &n);
    if (wire_put_text(m, (tare_text){raw, (int64_t)n}, NULL)) abort();
}

static void put_request(struct str *m, struct bytes *in)
{
    wire_start(m);
    const int how = byte(in) % 8;
    size_t n;
    if (how == 0) { /* unchanged */
        const char *raw = bytes_take(in, (size_t)byte(in), &n);
        if (n && str_add(m, raw, (int64_t)n, NULL)) abort();
        return;
    }
    const int items = byte(in) % 4;
    wire_put_int(m, how == 1 ? WIRE_OPEN : WIRE_VERIFY, NULL);
    wire_put_int(m, how == 1 ? 1 : bytes_number(in) % 3, NULL);         /* seed, or the verifier */
    wire_put_int(m, how == 1 ? byte(in) % 20 : bytes_number(in), NULL); /* verifiers, or nanoseconds */
    if (how > 1) wire_put_int(m, how == 2 ? bytes_number(in) : items, NULL);
    for (int i = 0; i < items; i++) {
        for (int k = 0; k < (how == 1 ? 2 : 5); k++) put_text(m, in);
        if (how == 1) wire_put_int(m, 0, NULL); /* the file's checksum: unknown */
        for (int k = 0; k < (how == 1 ? 1 : 7); k++) wire_put_int(m, how == 1 ? byte(in) % 3 : bytes_number(in), NULL);
    }
}

static void ask_worker(struct bytes *in)
{
    static int out = -1;
    int fd[2];
    struct str m = {0};
    if (out < 0) out = dup(STDOUT_FILENO);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) return;
    /* Answers must fit into the socket. */
    if ((size_t)(in->end - in->at) > MOST) in->end = in->at + MOST;
    wire_start(&m);
    wire_put_int(&m, WIRE_OPEN, NULL);
    wire_put_int(&m, 1, NULL);
    wire_put_int(&m, CONFINE_OFF, NULL); /* the permissions of this process stay */
    for (int k = 0; k < 5; k++) wire_put_int(&m, 0, NULL);
    wire_put_int(&m, 2, NULL);
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "length" : "exact";
        for (int i = 0; i < 2; i++) wire_put_text(&m, (tare_text){name, (int64_t)strlen(name)}, NULL);
        wire_put_int(&m, 0, NULL); /* the file's checksum: unknown */
        wire_put_int(&m, 0, NULL);
    }
    for (int i = 0; i < 8; i++) {
        if (wire_send(fd[0], &m)) break;
        if (in->at == in->end) break;
        put_request(&m, in);
    }
    shutdown(fd[0], SHUT_WR);
    /* Puts /dev/null in its place, and standard error in that of standard output. */
    verify_worker(fd[1]);
    dup2(out, STDOUT_FILENO);
    close(fd[0]);
    close(fd[1]);
    str_free(&m);
}

/* ---- answers */

static void put_answer(struct str *m, struct bytes *in)
{
    static const double REWARDS[] = {0, 1, -1, 0.5, 1e308, (double)NAN, (double)INFINITY};
    put_text(m, in);
    for (int i = 0; i < ITEMS; i++) {
        wire_put_int(m, byte(in) % 4 ? 1 + byte(in) % 8 : bytes_number(in), NULL);
        wire_put_double(m, REWARDS[(size_t)byte(in) % (sizeof REWARDS / sizeof *REWARDS)], NULL);
        put_text(m, in);
        put_text(m, in);
        const int n = byte(in) % 4;
        wire_put_int(m, byte(in) % 8 ? n : bytes_number(in), NULL);
        for (int k = 0; k < n; k++) {
            wire_put_int(m, byte(in) % 4 ? 3 * k + 3 : bytes_number(in), NULL);
            wire_put_double(m, REWARDS[(size_t)byte(in) % (sizeof REWARDS / sizeof *REWARDS)], NULL);
        }
    }
    const int metrics = byte(in) % 4;
    wire_put_int(m, byte(in) % 8 ? metrics : bytes_number(in), NULL);
    for (int k = 0; k < metrics; k++) {
        put_text(m, in);
        wire_put_double(m, REWARDS[(size_t)byte(in) % (sizeof REWARDS / sizeof *REWARDS)], NULL);
        wire_put_int(m, bytes_number(in), NULL); /* how */
    }
    size_t n;
    const char *raw = bytes_take(in, 256, &n);
    if (n && str_add(m, raw, (int64_t)n, NULL)) abort();
}

static void take_metric(void *ctx, const char *name, double value, int32_t how)
{
    (void)ctx, (void)value, (void)how;
    if (strlen(name) > 159) abort();
}

static void look_at_text(const struct verify_text *t)
{
    if (t->size < 0 || t->size > t->limit || t->limit > VERIFY_TEXT || t->data[t->size]) abort();
}

static void look_at_verdict(const tare_verdict *x, int64_t size)
{
    if (x->code < TARE_VERDICT_CORRECT || x->code > TARE_VERDICT_PARTIAL || x->code == TARE_VERDICT_CRASHED || !isfinite(x->reward))
        abort();
    if (x->n_segments < 0 || x->n_segments > x->segment_capacity) abort();
    for (int64_t k = 0; k < x->n_segments; k++)
        if (x->segment[k].end > size || x->segment[k].end <= (k ? x->segment[k - 1].end : 0) || !isfinite(x->segment[k].reward))
            abort();
}

static void take_answer(struct bytes *in)
{
    static struct verify *v;
    static struct verify_text extracted[ITEMS], note[ITEMS];
    struct verify_item items[ITEMS];
    struct verify_output outputs[ITEMS];
    tare_segment segments[ITEMS][SEGMENTS];
    struct str m = {0};
    struct err e = {0};
    if (!v && verify_new(&(struct verify_options){.workers = 1, .max_crash_share = 1}, &v, &e)) abort();
    v->env.metric = take_metric;
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (struct verify_item){.completion = {"a completion", 12}};
        verify_output_open(&outputs[i], i == 1 ? NULL : &extracted[i], i == 2 ? NULL : &note[i]);
        outputs[i].verdict.segment = i ? segments[i] : NULL;
        outputs[i].verdict.segment_capacity = i ? SEGMENTS : 0;
    }
    put_answer(&m, in);
    struct wire w = {.data = m.data, .size = m.size};
    const struct verify_call call = {.items = items, .n = ITEMS, .outputs = outputs};
    reply_take(v, &w, &call);
    for (int i = 0; i < ITEMS; i++) {
        look_at_text(&extracted[i]);
        look_at_text(&note[i]);
        if (!w.bad) look_at_verdict(&outputs[i].verdict, items[i].completion.size);
    }
    str_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    log_set_level(LOG_NONE);
    if (!getenv("TARE_PLUGIN_PATH")) setenv("TARE_PLUGIN_PATH", FUZZ_PLUGINS, 1);
    struct bytes in = {data + 1, data + size};
    if (data[0] & 1)
        take_answer(&in);
    else
        ask_worker(&in);
    return 0;
}
