/* The worker's side of verifier.isolate = process: a process that holds one instance of every
 * verifier and answers one request at a time. */
#include "base/clock.h"
#include "call/wire.h"
#include "call/worker_side.h"
#include "verify/internal.h"

#include <string.h>
#include <unistd.h>

enum { ITEM_LEAST = 96 }; /* minimum bytes of an item in a request: twelve fields */

struct worker_state {
    struct plugin_instance *instance[TARE_LIMIT_VERIFIERS];
    tare_text identity[TARE_LIMIT_VERIFIERS]; /* size 0: a verifier without the function */
    int64_t n;
    struct arena arena, step; /* step: memory of a request */
    struct judging {
        int64_t n; /* 0: the request opened plugins */
        tare_completion *completion;
        struct verify_output *output;
        const tare_completion **completions;
        tare_verdict **verdicts;
    } judging;
    struct str out;
    struct str metrics; /* metrics since the last reply: name, value and how of each */
    int64_t n_metrics;
    int requests; /* descriptor of the engine's requests */
    int refused;  /* errno of a kernel that rejects the filter */
};

/* Stores a metric for the reply; the engine passes it to its host. */
static void on_metric(void *ctx, const char *name, double value, int32_t how)
{
    struct worker_state *w = ctx;
    struct err e;
    if (wire_put_text(&w->metrics, (tare_text){name, (int64_t)strlen(name)}, &e) || wire_put_double(&w->metrics, value, &e) ||
        wire_put_int(&w->metrics, how, &e))
        return;
    w->n_metrics++;
}

static tare_status text_copy(struct arena *a, tare_text t, const char **out, struct err *e)
{
    char *s = NULL;
    TRY(arena_strdup(a, t.data, t.size, &s, e));
    *out = s;
    return TARE_OK;
}

/* Opens a plugin and checks its hash, so that a worker started later uses the same verifier as the
 * others. hash 0: unknown. */
static tare_status open_same(const char *name, uint64_t hash, const struct plugin **p, struct err *e)
{
    TRY(plugin_open(name, TARE_KIND_VERIFIER, NULL, p, e));
    if (hash && hash != (*p)->hash)
        FAIL(
            e, TARE_E_PLUGIN,
            "%s: the file was replaced while in use, so a new worker would use a different verifier; restore the file, or restart to use the new one",
            (*p)->path);
    return TARE_OK;
}

static tare_status take_identity(struct worker_state *w, int64_t c, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    char *copy;
    if (!w->instance[c]->plugin->head->identity) return TARE_OK;
    TRY(plugin_identity(w->instance[c], &text, e));
    TRY(arena_strdup(&w->arena, text.data, text.size, &copy, e));
    w->identity[c] = (tare_text){copy, text.size};
    return TARE_OK;
}

static tare_status open_verifiers(struct worker_state *w, struct wire *in, struct err *e)
{
    struct plugin_env env = {.seed = (uint64_t)wire_int(in), .ctx = w, .metric = on_metric};
    const struct confine confine = confine_take(in);
    const int64_t n = wire_int(in);
    if (w->n) FAIL(e, TARE_E_CORRUPT, "a worker got a second request to open its plugins");
    if (in->bad) FAIL(e, TARE_E_CORRUPT, "a worker got an invalid request");
    TRY(worker_confine(w->requests, &confine, &w->refused, e));
    for (int64_t c = 0; c < n && !in->bad; c++) {
        const char *name, **settings;
        TRY(text_copy(&w->arena, wire_text(in), &env.instance, e));
        TRY(text_copy(&w->arena, wire_text(in), &name, e));
        const uint64_t hash = (uint64_t)wire_int(in);
        const int64_t k = wire_int(in);
        if (k < 0 || k > in->size || c == TARE_LIMIT_VERIFIERS) FAIL(e, TARE_E_CORRUPT, "a worker got an invalid request");
        TRY(arena_new(&w->arena, &settings, k + 1, e));
        for (int64_t i = 0; i < k; i++) TRY(text_copy(&w->arena, wire_text(in), &settings[i], e));
        const struct plugin *p = NULL;
        const struct config_param *params = NULL;
        const tare_value *values = NULL;
        TRY(open_same(name, hash, &p, e));
        TRY(plugin_settings(p, (struct plugin_words){settings, k}, NULL, &w->arena, &params, e));
        TRY(plugin_params(p, params, &w->arena, &values, e));
        TRY(plugin_create(p, values, 0, &env, &w->instance[c], e));
        w->n = c + 1;
        TRY(take_identity(w, c, e));
    }
    return TARE_OK;
}

/* Allocates n verdicts with their buffers, and the arguments of the plugin call. */
static tare_status allocate_verdicts(struct worker_state *w, int64_t n, bool segments, struct err *e)
{
    struct judging *j = &w->judging;
    const int64_t each = segments ? TARE_LIMIT_SEGMENTS : 0;
    tare_segment *segment;
    struct verify_text *text;
    arena_reset(&w->step);
    *j = (struct judging){.n = n};
    TRY(arena_new(&w->step, &j->completion, n, e));
    TRY(arena_new(&w->step, &j->output, n, e));
    TRY(arena_new(&w->step, &j->completions, n, e));
    TRY(arena_new(&w->step, &j->verdicts, n, e));
    TRY(arena_push_raw(&w->step, 2 * n * (int64_t)sizeof *text, (void **)&text, e));
    TRY(arena_push_raw(&w->step, (n * each + 1) * (int64_t)sizeof *segment, (void **)&segment, e));
    for (int64_t i = 0; i < n; i++) {
        tare_verdict *v = j->verdicts[i] = &j->output[i].verdict;
        verify_output_open(&j->output[i], &text[2 * i], &text[2 * i + 1]);
        v->segment = segments ? segment + i * each : NULL;
        v->segment_capacity = each;
        j->completions[i] = &j->completion[i];
    }
    return TARE_OK;
}

static tare_completion take_completion(struct wire *in, int64_t deadline)
{
    tare_completion a = {.struct_size = sizeof a, .deadline_ns = deadline};
    a.prompt = wire_text(in);
    a.text = wire_text(in);
    a.answer = wire_text(in);
    a.row = wire_text(in);
    a.messages = wire_text(in);
    a.prompt_uid = (uint64_t)wire_int(in);
    a.group = wire_int(in);
    a.index = wire_int(in);
    a.n_turns = wire_int(in);
    a.n_tokens = wire_int(in);
    a.finish = (int32_t)wire_int(in);
    a.off_policy = (int32_t)wire_int(in);
    return a;
}

static tare_status verify_request(struct worker_state *w, struct wire *in, struct err *e)
{
    const int64_t c = wire_int(in), timeout = wire_int(in), n = wire_int(in);
    const int64_t deadline = timeout > 0 && timeout < INT64_MAX / 2 ? clock_ns() + timeout : 0;
    if (in->bad || timeout < 0 || c < 0 || c >= w->n || n < 1 || n > in->size / ITEM_LEAST)
        FAIL(e, TARE_E_CORRUPT, "a worker got an invalid request");
    TRY(allocate_verdicts(w, n, w->instance[c]->plugin->verifier->flags & TARE_VERIFIER_GIVES_SEGMENTS, e));
    for (int64_t i = 0; i < n; i++) w->judging.completion[i] = take_completion(in, deadline);
    if (in->bad) FAIL(e, TARE_E_CORRUPT, "a worker got an invalid request");
    TRY(plugin_verify(w->instance[c], w->judging.completions, w->judging.verdicts, n, e));
    for (int64_t i = 0; i < n; i++) verify_output_hide(w->judging.verdicts[i], w->instance[c]);
    return TARE_OK;
}

static tare_status put_text(struct str *out, const tare_stream *written, struct err *e)
{
    const struct verify_text *t = written->ctx;
    return wire_put_text(out, (tare_text){t->data, t->size}, e);
}

/* Writes a reply: status, message; for opening: errno of a kernel that rejects the filter, and the
 * identity of each verifier; for each verdict: code, reward, extracted, note, number of segments, end and reward of each; number of
 * metrics, name, value and how of each. */
static tare_status write_reply(struct worker_state *w, bool opening, tare_status status, const struct err *why, struct err *e)
{
    wire_start(&w->out);
    TRY(wire_put_int(&w->out, status, e));
    TRY(wire_put_text(&w->out, status ? (tare_text){why->message, (int64_t)strlen(why->message)} : (tare_text){"", 0}, e));
    if (opening && !status) TRY(wire_put_int(&w->out, w->refused, e));
    for (int64_t c = 0; opening && !status && c < w->n; c++) TRY(wire_put_text(&w->out, w->identity[c], e));
    for (int64_t i = 0; i < w->judging.n && !status; i++) {
        const tare_verdict *v = w->judging.verdicts[i];
        TRY(wire_put_int(&w->out, v->code, e));
        TRY(wire_put_double(&w->out, v->reward, e));
        TRY(put_text(&w->out, v->extracted, e));
        TRY(put_text(&w->out, v->note, e));
        TRY(wire_put_int(&w->out, v->n_segments, e));
        for (int64_t k = 0; k < v->n_segments; k++) {
            TRY(wire_put_int(&w->out, v->segment[k].end, e));
            TRY(wire_put_double(&w->out, v->segment[k].reward, e));
        }
    }
    TRY(wire_put_int(&w->out, w->n_metrics, e));
    return w->metrics.size ? str_add(&w->out, w->metrics.data, w->metrics.size, e) : TARE_OK;
}

int verify_worker(int fd)
{
    struct worker_state w = {.n = 0};
    struct str in = {0};
    struct err e = {0};
    arena_init(&w.arena, "verifier worker");
    arena_init(&w.step, "verifier worker's request");
    w.requests = worker_enter(fd, "tare-verifier");
    if (w.requests < 0) return 1;
    while (wire_receive(w.requests, &in, 0) == WIRE_OK) {
        struct wire m = {.data = in.data, .size = in.size};
        struct err why = {0};
        str_clear(&w.metrics);
        w.n_metrics = 0;
        w.judging.n = 0;
        const bool opening = wire_int(&m) == WIRE_OPEN;
        const tare_status s = opening ? open_verifiers(&w, &m, &why) : verify_request(&w, &m, &why);
        if (write_reply(&w, opening, s, &why, &e) || wire_send(w.requests, &w.out)) break;
    }
    for (int64_t c = 0; c < w.n; c++) plugin_destroy(w.instance[c]);
    str_free(&in);
    str_free(&w.out);
    str_free(&w.metrics);
    arena_free(&w.arena);
    arena_free(&w.step);
    close(w.requests);
    return 0;
}
