/* Instances, and the calls into them. Every call keeps the floating-point environment, puts the
 * plugin's name in front of the plugin's error, and checks the outputs before they are used. */
#include "plugin/internal.h"

#include <stdio.h>

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct plugin_watch *WATCH;

/* A call of exit() in a plugin would end a run as if it were complete. It runs this handler, in the
 * thread that called it. Each call of exit() takes the next entry of the C library's list of
 * handlers, and one that finds the list empty ends the process with the plugin's status. Several
 * threads may call exit() at once, so the list has an entry for each thread that is in a plugin. */
static _Thread_local int calls_of_thread;
static atomic_int threads_inside, handlers;
static atomic_bool guarded, reported;
static void report_exit(void)
{
    if (!calls_of_thread && !atomic_load(&guarded)) return;
    /* the thread that was first reports and ends the process */
    while (atomic_exchange(&reported, true)) pause();
    fprintf(stderr, "tare: %s called exit(), which is not allowed%s; work since the last checkpoint is lost\n",
            calls_of_thread ? "a plugin" : "a thread of a plugin, or a library,",
            calls_of_thread ? " (`tare plugin check FILE` names the function)" : "");
    fflush(NULL);
    _exit(err_exit_code(TARE_E_PLUGIN));
}

static void watch_exit(void)
{
    const int inside = atomic_fetch_add(&threads_inside, 1) + 1;
    for (int n = atomic_load(&handlers); n < inside;)
        if (atomic_compare_exchange_weak(&handlers, &n, n + 1)) n += !atexit(report_exit);
}

void plugin_guard_exit(bool on)
{
    atomic_store(&guarded, on);
}

void plugin_watch(const struct plugin_watch *watch)
{
    WATCH = watch;
}

void plugin_enter(struct plugin_call *c)
{
    if (!calls_of_thread++) watch_exit();
    if (WATCH) WATCH->enter(WATCH->ctx);
    fegetenv(&c->fenv);
    c->error.struct_size = sizeof c->error;
    c->error.code = 0;
    c->error.message[0] = 0;
}

tare_status plugin_leave(struct plugin_call *c, const struct plugin_instance *i, const char *phase, int64_t step,
                         tare_status status, struct err *e)
{
    if (!--calls_of_thread) atomic_fetch_sub(&threads_inside, 1);
    if (WATCH) WATCH->leave(WATCH->ctx, i, phase);
    fesetenv(&c->fenv);
    if (!status) return TARE_OK;
    char when[48] = "";
    if (step >= 0) snprintf(when, sizeof when, ", step %lld", (long long)step);
    c->error.message[sizeof c->error.message - 1] = 0;
    const bool known = strcmp(err_name(status), "failed") != 0;
    const char *kind = plugin_kind_name(i->plugin->desc.kind), *name = i->plugin->desc.name;
    if (c->error.message[0]) FAIL(e, known ? status : TARE_E_GENERIC, "%s %s: %s%s: %s", kind, name, phase, when, c->error.message);
    FAIL(e, known ? status : TARE_E_GENERIC, "%s %s: %s%s: failed with status %d (%s) and no message", kind, name, phase, when,
         status, err_name(status));
}

/* Copies the values for the instance, strings included. The copy lives until destroy. */
static tare_status copy_values(struct plugin_instance *i, const tare_value *values, struct err *e)
{
    const struct plugin *p = i->plugin;
    int64_t n = (int64_t)sizeof(tare_value) * p->desc.n_params;
    for (uint32_t j = 0; j < p->desc.n_params; j++)
        if (p->params[j].type == TARE_STRING || p->params[j].type == TARE_PATH) n += (int64_t)strlen(values[j].s) + 1;
    tare_value *copy;
    TRY(mem_new(n ? n : 1, (void **)&copy, e));
    char *text = (char *)(copy + p->desc.n_params);
    for (uint32_t j = 0; j < p->desc.n_params; j++) {
        copy[j] = values[j];
        if (p->params[j].type != TARE_STRING && p->params[j].type != TARE_PATH) continue;
        const size_t size = strlen(values[j].s) + 1;
        copy[j].s = memcpy(text, values[j].s, size);
        text += size;
    }
    i->values = copy;
    return TARE_OK;
}

/* Default of an objective without an engine: the defaults of [loss]. */
static const tare_loss PLAIN_LOSS = {.struct_size = sizeof PLAIN_LOSS, .clip = 0.2, .clip_high = 0.2, .shaping = 0.1};

/* Default of a curriculum without an engine. */
enum { PLAIN_N = 8 };
static const uint64_t PLAIN_UID[PLAIN_N] = {1, 2, 3, 4, 5, 6, 7, 8};
static const int32_t PLAIN_SOURCE[PLAIN_N];
static const double PLAIN_WEIGHT[1] = {1};
static const double PLAIN_LEVEL[PLAIN_N] = {1, 1, 2, 2, 3, 3, 4, 4};
static const tare_rows PLAIN_ROWS = {.struct_size = sizeof PLAIN_ROWS,
                                     .n = PLAIN_N,
                                     .n_sources = 1,
                                     .prompts = 4,
                                     .group_size = 4,
                                     .prompt_uid = PLAIN_UID,
                                     .source = PLAIN_SOURCE,
                                     .weight = PLAIN_WEIGHT,
                                     .level = PLAIN_LEVEL};

static tare_status call_create(struct plugin_instance *i, int64_t n_clusters, tare_error *error)
{
    const struct plugin *p = i->plugin;
    switch (p->desc.kind) {
    case TARE_ESTIMATOR:
        return p->estimator->create(&i->host, i->values, n_clusters, &i->self, error);
    case TARE_VERIFIER:
        return p->verifier->create(&i->host, i->values, &i->self, error);
    case TARE_ENCODER:
        return p->encoder->create(&i->host, i->values, &i->self, error);
    case TARE_OBJECTIVE:
        return p->objective->create(&i->host, i->values, i->env.loss ? i->env.loss : &PLAIN_LOSS, &i->self, error);
    case TARE_CURRICULUM:
        return p->curriculum->create(&i->host, i->values, i->env.rows ? i->env.rows : &PLAIN_ROWS, &i->self, error);
    default:
        return p->codebook->create(&i->host, i->values, &i->self, error);
    }
}

/* Frees an instance whose create failed, so there is nothing for destroy to free. */
static void uncreated_free(struct plugin_instance **i)
{
    if (*i) mem_free((void *)(uintptr_t)(*i)->values);
    mem_free(*i);
}

tare_status plugin_create(const struct plugin *p, const tare_value *values, int64_t n_clusters, const struct plugin_env *env,
                          struct plugin_instance **out, struct err *e)
{
    OWNED(uncreated_free) struct plugin_instance *i = NULL;
    struct plugin_call c;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *i, (void **)&i, e));
    i->plugin = p;
    i->n_clusters = n_clusters;
    if (env) i->env = *env;
    i->host = plugin_host(i);
    TRY(copy_values(i, values, e));
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "create", -1, call_create(i, n_clusters, &c.error), e));
    *out = i;
    i = NULL;
    return TARE_OK;
}

void plugin_destroy(struct plugin_instance *i)
{
    if (!i) return;
    struct plugin_call c;
    plugin_enter(&c);
    switch (i->plugin->desc.kind) {
#define DESTROY(CONSTANT, NAME, ...)                                                                                               \
    case TARE_##CONSTANT:                                                                                                          \
        i->plugin->NAME->destroy(i->self);                                                                                         \
        break;
        PLUGIN_KINDS(DESTROY)
#undef DESTROY
    }
    plugin_leave(&c, i, "destroy", -1, TARE_OK, NULL);
    mem_free((void *)(uintptr_t)i->values);
    mem_free(i);
}

void plugin_destroy_at(struct plugin_instance **p)
{
    plugin_destroy(*p);
}

tare_status plugin_new(const struct plugin_wanted *w, struct plugin_instance **out, struct err *e)
{
    const struct plugin *p;
    const tare_value *values;
    OWNED(arena_free) struct arena a = {0};
    TRY(plugin_open(w->name, w->kind, w->search, &p, e));
    arena_init(&a, "plugin parameters");
    TRY(plugin_params(p, w->settings, &a, &values, e));
    return plugin_create(p, values, w->n_clusters, w->env, out, e);
}

/* ---------------------------------------------------------------- verifier */

static tare_status check_segments(const struct plugin_instance *i, const tare_verdict *v, int64_t size, int64_t at, struct err *e)
{
    const char *name = i->plugin->desc.name;
    int64_t before = 0;
    if (v->n_segments < 0 || v->n_segments > (v->segment ? v->segment_capacity : 0))
        FAIL(e, TARE_E_PLUGIN, "verifier %s: verify, answer %lld: %lld segments in a buffer of %lld", name, (long long)at,
             (long long)v->n_segments, (long long)(v->segment ? v->segment_capacity : 0));
    for (int64_t k = 0; k < v->n_segments; before = v->segment[k++].end) {
        if (v->segment[k].end <= before || v->segment[k].end > size)
            FAIL(
                e, TARE_E_PLUGIN,
                "verifier %s: verify, answer %lld: segment %lld ends at byte %lld; it must end after %lld, and the completion has %lld bytes",
                name, (long long)at, (long long)k, (long long)v->segment[k].end, (long long)before, (long long)size);
        if (!isfinite(v->segment[k].reward))
            FAIL(e, TARE_E_NOT_FINITE, "verifier %s: verify, answer %lld: the reward of segment %lld is %g: must be finite", name,
                 (long long)at, (long long)k, v->segment[k].reward);
    }
    return TARE_OK;
}

static tare_status check_verdict(const struct plugin_instance *i, const tare_verdict *v, int64_t at, struct err *e)
{
    const char *name = i->plugin->desc.name;
    const bool known = v->code >= TARE_CORRECT && v->code <= TARE_PARTIAL && v->code != TARE_CRASHED;
    if (!known)
        FAIL(e, TARE_E_PLUGIN, "verifier %s: verify, answer %lld: the verdict code %d is invalid", name, (long long)at, v->code);
    if (!isfinite(v->reward))
        FAIL(e, TARE_E_NOT_FINITE, "verifier %s: verify, answer %lld: the reward is %g: must be finite", name, (long long)at,
             v->reward);
    if (v->size < 0 || v->size > v->capacity)
        FAIL(e, TARE_E_PLUGIN, "verifier %s: verify, answer %lld: %lld bytes extracted into a buffer of %lld", name, (long long)at,
             (long long)v->size, (long long)v->capacity);
    return TARE_OK;
}

static void clear_verdict(tare_verdict *v)
{
    v->code = 0;
    v->reward = NAN;
    v->size = 0;
    v->reason = NULL;
    v->n_segments = 0;
}

tare_status plugin_verify(struct plugin_instance *i, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          struct err *e)
{
    struct plugin_call c;
    for (int64_t j = 0; j < n; j++) clear_verdict(verdicts[j]);
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "verify", -1, i->plugin->verifier->verify(i->self, answers, verdicts, n, &c.error), e));
    for (int64_t j = 0; j < n; j++) {
        TRY(check_verdict(i, verdicts[j], j, e));
        TRY(check_segments(i, verdicts[j], answers[j]->completion.size, j, e));
    }
    return TARE_OK;
}

tare_status plugin_uses(const struct plugin *p, const tare_value *values, uint32_t *out, struct err *e)
{
    const struct plugin_instance none = {.plugin = p, .values = values};
    const uint32_t known = TARE_USES_ANSWER | TARE_MAY_USE_ANSWER | TARE_REFUSES_ROWS;
    struct plugin_call c;
    *out = TARE_USES_ANSWER;
    if (!p->verifier->uses) return TARE_OK;
    plugin_enter(&c);
    *out = p->verifier->uses(values);
    TRY(plugin_leave(&c, &none, "uses", -1, TARE_OK, e));
    if (*out & ~known)
        FAIL(e, TARE_E_PLUGIN, "verifier %s: uses returns the bits 0x%x; this program knows only 0x%x", p->desc.name, *out, known);
    return TARE_OK;
}

bool plugin_waits(const struct plugin *p)
{
    return p->desc.kind == TARE_VERIFIER && p->verifier->submit;
}

tare_status plugin_submit(struct plugin_instance *i, const tare_answer *answer, int64_t ticket, struct err *e)
{
    struct plugin_call c;
    plugin_enter(&c);
    return plugin_leave(&c, i, "submit", -1, i->plugin->verifier->submit(i->self, answer, ticket, &c.error), e);
}

tare_status plugin_poll(struct plugin_instance *i, const tare_waiting *w, const int64_t *bytes, struct err *e)
{
    struct plugin_call c;
    for (int64_t j = 0; j < w->n; j++) {
        clear_verdict(w->verdict[j]);
        w->done[j] = TARE_TICKET_OPEN;
    }
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "poll", -1, i->plugin->verifier->poll(i->self, w, &c.error), e));
    for (int64_t j = 0; j < w->n; j++) {
        if (w->done[j] == TARE_TICKET_OPEN) continue;
        if (w->done[j] != TARE_TICKET_JUDGED)
            FAIL(e, TARE_E_PLUGIN, "verifier %s: poll: ticket %lld of %lld has the state %d, and poll returned no error",
                 i->plugin->desc.name, (long long)j, (long long)w->n, w->done[j]);
        tare_status status = check_verdict(i, w->verdict[j], j, e);
        if (!status) status = check_segments(i, w->verdict[j], bytes[j], j, e);
        if (!status) continue;
        w->done[j] = TARE_TICKET_FAILED; /* marks the failed ticket for the host */
        return status;
    }
    return TARE_OK;
}

void plugin_cancel(struct plugin_instance *i, int64_t ticket)
{
    struct plugin_call c;
    plugin_enter(&c);
    i->plugin->verifier->cancel(i->self, ticket);
    plugin_leave(&c, i, "cancel", -1, TARE_OK, NULL);
}

tare_status plugin_explain(struct plugin_instance *i, tare_answer *answer, struct str *out, struct err *e)
{
    struct plugin_call c;
    struct plugin_stream s = {.out = out};
    const tare_stream stream = plugin_stream(&s);
    if (!i->plugin->verifier->explain)
        FAIL(e, TARE_E_UNSUPPORTED, "verifier %s does not explain its verdicts", i->plugin->desc.name);
    plugin_enter(&c);
    return plugin_leave(&c, i, "explain", -1, i->plugin->verifier->explain(i->self, answer, &stream, &c.error), e);
}

/* ---------------------------------------------------------------- encoder and codebook */

int64_t plugin_dim(const struct plugin_instance *i)
{
    struct plugin_call c;
    plugin_enter(&c);
    const int64_t dim = i->plugin->desc.kind == TARE_ENCODER ? i->plugin->encoder->dim(i->self) : i->plugin->codebook->dim(i->self);
    plugin_leave(&c, i, "dim", -1, TARE_OK, NULL);
    return dim;
}

int64_t plugin_size(const struct plugin_instance *i)
{
    struct plugin_call c;
    plugin_enter(&c);
    const int64_t size = i->plugin->codebook->size(i->self);
    plugin_leave(&c, i, "size", -1, TARE_OK, NULL);
    return size;
}

tare_status plugin_encode(struct plugin_instance *i, const tare_text *texts, int64_t n, float *out, struct err *e)
{
    struct plugin_call c;
    const int64_t dim = plugin_dim(i);
    if (dim <= 0)
        FAIL(e, TARE_E_PLUGIN, "encoder %s: invalid embedding width %lld: must be greater than 0", i->plugin->desc.name,
             (long long)dim);
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "encode", -1, i->plugin->encoder->encode(i->self, texts, n, out, &c.error), e));
    for (int64_t j = 0; j < n * dim; j++)
        if (!isfinite(out[j]))
            FAIL(e, TARE_E_NOT_FINITE, "encoder %s: encode, text %lld: number %lld is %g", i->plugin->desc.name,
                 (long long)(j / dim), (long long)(j % dim), (double)out[j]);
    return TARE_OK;
}

tare_status plugin_fit(struct plugin_instance *i, const tare_text *items, int64_t n, struct err *e)
{
    struct plugin_call c;
    tare_status (*fit)(void *, const tare_text *, int64_t, tare_error *) =
        i->plugin->desc.kind == TARE_ENCODER ? i->plugin->encoder->fit : i->plugin->codebook->fit;
    if (!fit) return TARE_OK;
    plugin_enter(&c);
    return plugin_leave(&c, i, "fit", -1, fit(i->self, items, n, &c.error), e);
}

tare_status plugin_assign(const struct plugin_instance *i, const struct plugin_assignment *q, struct err *e)
{
    struct plugin_call c;
    for (int64_t j = 0; j < q->n; j++) q->cluster[j] = -1;
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "assign", -1,
                     i->plugin->codebook->assign(i->self, q->embedding, q->rows, q->n, q->cluster, q->distance, &c.error), e));
    const int64_t size = plugin_size(i);
    for (int64_t j = 0; j < q->n; j++)
        if (q->cluster[j] < -1 || q->cluster[j] >= size)
            FAIL(e, TARE_E_PLUGIN, "codebook %s: assign, row %lld: cluster %d of %lld", i->plugin->desc.name, (long long)j,
                 q->cluster[j], (long long)size);
    return TARE_OK;
}

tare_status plugin_identity(const struct plugin_instance *i, struct str *out, struct err *e)
{
    const struct plugin *p = i->plugin;
    TRY(str_addf(out, e, "%s/%s", p->desc.name, p->desc.version));
    for (uint32_t j = 0; j < p->desc.n_params; j++) {
        /* the identity depends on a file's content, which the plugin adds, and not on its path */
        if (p->params[j].type == TARE_PATH) continue;
        TRY(str_addf(out, e, " %s=", p->params[j].key));
        TRY(plugin_value_text(p, j, i->values[j], out, e));
    }
    if (p->desc.kind != TARE_ENCODER || !p->encoder->identity) return TARE_OK;
    char text[512] = "";
    struct plugin_call c;
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "identity", -1, p->encoder->identity(i->self, text, sizeof text, &c.error), e));
    text[sizeof text - 1] = 0;
    return str_addf(out, e, " %s", text);
}
