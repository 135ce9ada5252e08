/* The tests "oldest" and "future": the plugin is run again under hosts whose structs have other sizes,
 * and all of its outputs must be the same bits.
 *
 *   oldest   the structs end where those of the plugin's minor version end
 *   future   the structs are larger by a few members, and every unknown flag is set
 *
 * In both, the bytes behind what the plugin may read are poisoned. The tests put a table of functions
 * between the host and the plugin, which copies each struct of the host into such a place, calls the
 * plugin, and adds its outputs to a hash. They then run the other tests of the plugin's kind. */
#include "plugin/check/internal.h"

#include "base/fs.h"

#include <stdio.h>
#include <string.h>

enum host_age { HOST_TODAY, HOST_OLDEST, HOST_FUTURE };
enum { BEHIND = 64, POISON = 0xff };

/* The host's structs as released with each minor version: a line here names the last member that 1.0
 * has, and a later version adds a column. */
#define END(S, LAST) (int64_t)(offsetof(S, LAST) + sizeof(((S *)0)->LAST))
#define SIZE_ERROR END(tare_error, message)
#define SIZE_STREAM END(tare_stream, reserved)
#define SIZE_HOST END(tare_host, extension)
#define SIZE_SETUP END(tare_setup, dataset)
#define SIZE_SIZES END(tare_sizes, clusters)
#define SIZE_UPDATE END(tare_update, record)
#define SIZE_BATCH END(tare_batch, column)
#define SIZE_ADVANTAGES END(tare_advantages, extra_groups)
#define SIZE_COMPLETION END(tare_completion, off_policy)
#define SIZE_VERDICT END(tare_verdict, n_segments)
#define SIZE_WAITING END(tare_waiting, wait_ns)
#define SIZE_PROMPTS END(tare_prompts, row)
#define SIZE_ASSIGNMENT END(tare_assignment, distance)
#define SIZE_LOSS END(tare_loss, shaping)
#define SIZE_TOKENS END(tare_tokens, column)
#define SIZE_TOKEN_LOSS END(tare_token_loss, clipped)
#define SIZE_DATASET END(tare_dataset, column)
#define SIZE_DRAW END(tare_draw, n_drawn)
#define SIZE_CHOICE END(tare_choice, n_rollouts)
#define SIZE_KEPT END(tare_kept, extra_groups)
#define SIZE_EPISODE END(tare_episode, deadline_ns)
#define SIZE_ACT END(tare_act, reserved)
#define SIZE_CALL END(tare_call, arguments)
#define SIZE_OBSERVATION END(tare_observation, note)

/* The test that runs: one at a time in a process, and none that starts threads. */
static struct {
    struct check *check;
    const struct plugin *real;
    enum host_age age;
    uint64_t hash;
    int64_t calls;
    tare_sizes sizes;
    struct err fault; /* a write behind a struct */
} RUN;

static void add(const void *data, int64_t size)
{
    if (data && size > 0) RUN.hash = fs_hash(data, size, RUN.hash);
}

/* ---------------------------------------------------------------- structs in other places */

static void *space(int64_t size)
{
    char *p = NULL;
    struct err e;
    return arena_new(&RUN.check->arena, &p, size, &e) ? NULL : p;
}

/* Copies a host's struct. flags: its second member is a word of flags. Returns the struct itself where
 * there is no memory. */
static void *lend(const void *from, int64_t size, bool flags)
{
    void *same = (void *)(uintptr_t)from;
    if (!from || RUN.age == HOST_TODAY) return same;
    unsigned char *copy = space(size + BEHIND);
    if (!copy) return same;
    const uint32_t told = (uint32_t)(size + (RUN.age == HOST_FUTURE ? BEHIND : 0));
    memcpy(copy, from, (size_t)size);
    memcpy(copy, &told, sizeof told);
    memset(copy + size, POISON, BEHIND);
    if (flags && RUN.age == HOST_FUTURE) memset(copy + 4, 0xff, 4);
    return copy;
}

/* Takes back an output struct: its members after the first `head` bytes. */
static void take_back(void *to, const void *copy, int64_t size, int64_t head, const char *what)
{
    const unsigned char *p = copy;
    if (!copy || copy == to) return;
    for (int64_t k = 0; k < BEHIND; k++)
        if (p[size + k] != POISON && !RUN.fault.code)
            (void)err_set(
                &RUN.fault, TARE_E_PLUGIN, __FILE__, __LINE__,
                "it wrote behind the host's %s, %lld bytes after its start; write only members for which TARE_KNOWS is true", what,
                (long long)(size + k));
    memcpy((char *)to + head, p + head, (size_t)(size - head));
}

/* A stream that passes the bytes on and adds them to the hash. */
static tare_status pass_on(void *ctx, const void *data, int64_t size)
{
    const tare_stream *to = ctx;
    add(data, size);
    return to->write(to->ctx, data, size);
}

static tare_status read_on(void *ctx, void *data, int64_t size)
{
    const tare_stream *from = ctx;
    return from->read(from->ctx, data, size);
}

static const tare_stream *lend_stream(const tare_stream *s)
{
    if (!s) return NULL;
    tare_stream *mine = space(SIZE_STREAM);
    if (!mine) return s;
    *mine = *s;
    mine->ctx = (void *)(uintptr_t)s;
    if (s->write) mine->write = pass_on;
    if (s->read) mine->read = read_on;
    return lend(mine, SIZE_STREAM, true);
}

#define ERROR tare_error *mine = lend(error, SIZE_ERROR, false)
/* Ends a call of one of the plugin's functions. */
static tare_status ended(const char *function, tare_status status, tare_error *error, const tare_error *mine)
{
    RUN.calls++;
    take_back(error, mine, SIZE_ERROR, 4, "tare_error");
    add(function, (int64_t)strlen(function));
    add(&status, sizeof status);
    if (status && error) add(error->message, (int64_t)strnlen(error->message, sizeof error->message));
    return status;
}

/* ---------------------------------------------------------------- every kind */

static tare_status head_create(const tare_setup *setup, void **self, tare_error *error)
{
    ERROR;
    tare_setup s = *setup;
    tare_host *host = lend(setup->host, SIZE_HOST, false);
    if (RUN.age == HOST_OLDEST) host->abi_minor = RUN.real->desc.minor_needed;
    if (RUN.age == HOST_FUTURE) host->abi_minor = TARE_ABI_MINOR + 1;
    s.host = host;
    s.loss = lend(setup->loss, SIZE_LOSS, true);
    s.dataset = lend(setup->dataset, SIZE_DATASET, true);
    return ended("create", RUN.real->head->create(lend(&s, SIZE_SETUP, true), self, mine), error, mine);
}

static tare_status head_save(const void *self, const tare_stream *out, tare_error *error)
{
    ERROR;
    return ended("save", RUN.real->head->save(self, lend_stream(out), mine), error, mine);
}

static tare_status head_load(void *self, const tare_stream *in, tare_error *error)
{
    ERROR;
    return ended("load", RUN.real->head->load(self, lend_stream(in), mine), error, mine);
}

static tare_status head_describe(const void *self, const tare_stream *out, tare_error *error)
{
    ERROR;
    return ended("describe", RUN.real->head->describe(self, lend_stream(out), mine), error, mine);
}

static tare_status head_identity(const void *self, const tare_stream *out, tare_error *error)
{
    ERROR;
    return ended("identity", RUN.real->head->identity(self, lend_stream(out), mine), error, mine);
}

static tare_status sizes_by(tare_status (*f)(const void *, tare_sizes *, tare_error *), const void *self, tare_sizes *out,
                            tare_error *error)
{
    ERROR;
    tare_sizes *sizes = lend(out, SIZE_SIZES, true);
    const tare_status status = f(self, sizes, mine);
    take_back(out, sizes, SIZE_SIZES, 8, "tare_sizes");
    RUN.sizes = *out;
    add((const char *)out + 8, SIZE_SIZES - 8);
    return ended("sizes", status, error, mine);
}

/* ---------------------------------------------------------------- estimators */

static tare_status estimator_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(RUN.real->estimator->sizes, self, out, error);
}

static tare_status estimator_compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out,
                                     tare_error *error)
{
    ERROR;
    tare_advantages *o = lend(out, SIZE_ADVANTAGES, true);
    const tare_status status = RUN.real->estimator->compute(self, lend(b, SIZE_BATCH, true), prepared, o, mine);
    take_back(out, o, SIZE_ADVANTAGES, 8, "tare_advantages");
    if (!status) {
        add(out->advantage, b->n_rollouts * 8);
        add(out->rollout_weight, b->n_rollouts * 8);
        add(out->baseline, b->n_groups * 8);
        add(out->scale, b->n_groups * 8);
        add(out->confidence, b->n_groups * 8);
        add(out->token_advantage, b->n_tokens * 4);
        add(&out->extra_groups, 8);
    }
    return ended("compute", status, error, mine);
}

typedef tare_status (*of_group)(const void *, const tare_batch *, int64_t, double *, tare_error *);
static tare_status group_by(of_group f, const char *name, int64_t size, const void *self, const tare_batch *b, int64_t group,
                            double *sum, tare_error *error)
{
    ERROR;
    const tare_status status = f(self, lend(b, SIZE_BATCH, true), group, sum, mine);
    add(sum, size * 8);
    return ended(name, status, error, mine);
}

static tare_status estimator_prepare(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    return group_by(RUN.real->estimator->prepare, "prepare", RUN.sizes.prepare, self, b, group, sum, error);
}

static tare_status estimator_collect(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    return group_by(RUN.real->estimator->collect, "collect", RUN.sizes.collect, self, b, group, sum, error);
}

static tare_status estimator_record(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    return group_by(RUN.real->estimator->record, "record", RUN.sizes.record, self, b, group, sum, error);
}

static tare_status estimator_apply(void *self, const tare_update *update, tare_error *error)
{
    ERROR;
    return ended("apply", RUN.real->estimator->apply(self, lend(update, SIZE_UPDATE, true), mine), error, mine);
}

/* ---------------------------------------------------------------- verifiers */

enum { MOST_ITEMS = 4096 };

static tare_verdict *lend_verdict(const tare_verdict *v)
{
    tare_verdict copy = *v;
    copy.extracted = lend_stream(v->extracted);
    copy.note = lend_stream(v->note);
    tare_verdict *mine = space(SIZE_VERDICT);
    if (!mine) return (tare_verdict *)(uintptr_t)v;
    *mine = copy;
    return lend(mine, SIZE_VERDICT, false);
}

static void take_verdict(tare_verdict *to, const tare_verdict *from)
{
    const tare_verdict was = *to;
    if (to == from) return;
    if (RUN.age == HOST_TODAY)
        *to = *from;
    else
        take_back(to, from, SIZE_VERDICT, 4, "tare_verdict");
    to->struct_size = was.struct_size;
    to->extracted = was.extracted;
    to->note = was.note;
    add(&to->code, 4);
    add(&to->reward, 8);
    add(&to->n_segments, 8);
    if (to->segment && to->n_segments > 0 && to->n_segments <= to->segment_capacity)
        add(to->segment, to->n_segments * (int64_t)sizeof *to->segment);
}

static tare_status verifier_verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                                   tare_error *error)
{
    ERROR;
    const tare_completion **c = space(n * (int64_t)sizeof *c + 8);
    tare_verdict **v = space(n * (int64_t)sizeof *v + 8);
    if (!c || !v || n > MOST_ITEMS) return RUN.real->verifier->verify(self, completion, out, n, error);
    for (int64_t i = 0; i < n; i++) {
        c[i] = lend(completion[i], SIZE_COMPLETION, true);
        v[i] = lend_verdict(out[i]);
    }
    const tare_status status = RUN.real->verifier->verify(self, c, v, n, mine);
    for (int64_t i = 0; i < n; i++) take_verdict(out[i], v[i]);
    return ended("verify", status, error, mine);
}

static tare_status verifier_explain(void *self, const tare_completion *completion, const tare_stream *out, tare_error *error)
{
    ERROR;
    return ended("explain", RUN.real->verifier->explain(self, lend(completion, SIZE_COMPLETION, true), lend_stream(out), mine),
                 error, mine);
}

/* ---------------------------------------------------------------- encoders and codebooks */

static tare_status encoder_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(RUN.real->encoder->sizes, self, out, error);
}

static tare_status encoder_encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    ERROR;
    const tare_status status = RUN.real->encoder->encode(self, texts, n, out, mine);
    if (!status) add(out, n * RUN.sizes.dim * 4);
    return ended("encode", status, error, mine);
}

static tare_status codebook_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(RUN.real->codebook->sizes, self, out, error);
}

static tare_status codebook_assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    ERROR;
    tare_assignment *o = lend(out, SIZE_ASSIGNMENT, true);
    const tare_status status = RUN.real->codebook->assign(self, lend(prompts, SIZE_PROMPTS, true), o, mine);
    take_back(out, o, SIZE_ASSIGNMENT, 8, "tare_assignment");
    add(out->cluster, prompts->n * 4);
    add(out->distance, prompts->n * 4);
    return ended("assign", status, error, mine);
}

static tare_status codebook_fit(void *self, const tare_prompts *prompts, tare_error *error)
{
    ERROR;
    return ended("fit", RUN.real->codebook->fit(self, lend(prompts, SIZE_PROMPTS, true), mine), error, mine);
}

static tare_status codebook_cluster_name(const void *self, int64_t k, const tare_stream *out, tare_error *error)
{
    ERROR;
    return ended("cluster_name", RUN.real->codebook->cluster_name(self, k, lend_stream(out), mine), error, mine);
}

/* ---------------------------------------------------------------- objectives */

static tare_status objective_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(RUN.real->objective->sizes, self, out, error);
}

static tare_status objective_annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    ERROR;
    const tare_status status = RUN.real->objective->annotate(self, lend(t, SIZE_TOKENS, true), annotated, mine);
    add(annotated, t->n * RUN.sizes.prepare * 8);
    return ended("annotate", status, error, mine);
}

static tare_status objective_compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    ERROR;
    tare_token_loss *o = lend(out, SIZE_TOKEN_LOSS, true);
    const tare_status status = RUN.real->objective->compute(self, lend(t, SIZE_TOKENS, true), o, mine);
    take_back(out, o, SIZE_TOKEN_LOSS, 8, "tare_token_loss");
    add(out->value, t->n * 8);
    add(out->dlogprob, t->n * 8);
    add(out->dentropy, t->n * 8);
    add(out->dkl, t->n * 8);
    add(out->clipped, t->n);
    return ended("compute", status, error, mine);
}

static tare_status objective_collect(const void *self, const tare_tokens *t, const tare_token_loss *loss, double *sum,
                                     tare_error *error)
{
    ERROR;
    const tare_status status =
        RUN.real->objective->collect(self, lend(t, SIZE_TOKENS, true), lend(loss, SIZE_TOKEN_LOSS, true), sum, mine);
    add(sum, RUN.sizes.collect * 8);
    return ended("collect", status, error, mine);
}

static tare_status objective_apply(void *self, const tare_update *update, tare_error *error)
{
    ERROR;
    return ended("apply", RUN.real->objective->apply(self, lend(update, SIZE_UPDATE, true), mine), error, mine);
}

/* ---------------------------------------------------------------- curricula */

static tare_status curriculum_next(const void *self, const tare_draw *draw, tare_choice *out, tare_error *error)
{
    ERROR;
    tare_choice *o = lend(out, SIZE_CHOICE, true);
    const tare_status status = RUN.real->curriculum->next(self, lend(draw, SIZE_DRAW, true), o, mine);
    take_back(out, o, SIZE_CHOICE, 8, "tare_choice");
    add(out->row, draw->n * 8);
    add(out->n_rollouts, draw->n * 8);
    return ended("next", status, error, mine);
}

static tare_status curriculum_keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    ERROR;
    tare_kept *o = lend(out, SIZE_KEPT, true);
    const tare_status status = RUN.real->curriculum->keep(self, lend(groups, SIZE_BATCH, true), o, mine);
    take_back(out, o, SIZE_KEPT, 8, "tare_kept");
    add(out->fate, groups->n_rollouts);
    add(&out->extra_groups, 8);
    return ended("keep", status, error, mine);
}

static tare_status curriculum_apply(void *self, const tare_batch *groups, tare_error *error)
{
    ERROR;
    return ended("apply", RUN.real->curriculum->apply(self, lend(groups, SIZE_BATCH, true), mine), error, mine);
}

/* ---------------------------------------------------------------- environments */

/* Messages are hashed where the check takes them: the observation is passed on with its streams. */
static tare_observation *lend_observation(const tare_observation *o)
{
    tare_observation *mine = space(SIZE_OBSERVATION);
    if (!mine) return (tare_observation *)(uintptr_t)o;
    *mine = *o;
    mine->state_key = lend_stream(o->state_key);
    mine->tools = lend_stream(o->tools);
    mine->stop = lend_stream(o->stop);
    mine->note = lend_stream(o->note);
    tare_observation *lent = lend(mine, SIZE_OBSERVATION, false);
    if (RUN.age == HOST_FUTURE) lent->flags = ~0u;
    return lent;
}

static void take_observation(tare_observation *to, const tare_observation *from)
{
    if (to == from) return;
    if (RUN.age != HOST_TODAY) {
        tare_observation ignored = *to;
        take_back(&ignored, from, SIZE_OBSERVATION, 4, "tare_observation");
    }
    to->end = from->end;
    to->reward = from->reward;
    to->verdict = from->verdict;
    add(&to->end, 4);
    add(&to->reward, 8);
    add(&to->verdict, 4);
}

static tare_status environment_reset(void *self, void *session, const tare_episode *episode, tare_observation *out,
                                     tare_error *error)
{
    ERROR;
    tare_observation *o = lend_observation(out);
    const tare_status status = RUN.real->environment->reset(self, session, lend(episode, SIZE_EPISODE, true), o, mine);
    take_observation(out, o);
    return ended("reset", status, error, mine);
}

static const tare_act *lend_act(const tare_act *a)
{
    tare_act *mine = space(SIZE_ACT);
    const tare_call **call = space((a->n_calls + 1) * (int64_t)sizeof *call);
    if (!mine || !call) return a;
    *mine = *a;
    for (int64_t k = 0; k < a->n_calls; k++) call[k] = lend(a->call[k], SIZE_CALL, true);
    if (a->n_calls) mine->call = call;
    return lend(mine, SIZE_ACT, true);
}

static tare_status environment_step(void *self, void *const *session, const tare_act *const *act, tare_observation *const *out,
                                    int64_t n, tare_error *error)
{
    ERROR;
    const tare_act **a = space(n * (int64_t)sizeof *a + 8);
    tare_observation **o = space(n * (int64_t)sizeof *o + 8);
    if (!a || !o) return RUN.real->environment->step(self, session, act, out, n, error);
    for (int64_t i = 0; i < n; i++) {
        a[i] = lend_act(act[i]);
        o[i] = lend_observation(out[i]);
    }
    const tare_status status = RUN.real->environment->step(self, session, a, o, n, mine);
    for (int64_t i = 0; i < n; i++) take_observation(out[i], o[i]);
    return ended("step", status, error, mine);
}

static tare_status environment_save_session(void *self, const void *session, const tare_stream *out, tare_error *error)
{
    ERROR;
    return ended("save_session", RUN.real->environment->save_session(self, session, lend_stream(out), mine), error, mine);
}

static tare_status environment_load_session(void *self, void *session, const tare_stream *in, tare_error *error)
{
    ERROR;
    return ended("load_session", RUN.real->environment->load_session(self, session, lend_stream(in), mine), error, mine);
}

/* ---------------------------------------------------------------- the tables between */

union table {
    tare_head head;
    tare_estimator estimator;
    tare_verifier verifier;
    tare_encoder encoder;
    tare_codebook codebook;
    tare_objective objective;
    tare_curriculum curriculum;
    tare_environment environment;
};

/* Replaces a function that the plugin has. */
#define BETWEEN(KIND, F)                                                                                                           \
    if (t->KIND.F) t->KIND.F = KIND##_##F

static void between(const struct plugin *p, union table *t)
{
    BETWEEN(head, create);
    BETWEEN(head, save);
    BETWEEN(head, load);
    BETWEEN(head, describe);
    BETWEEN(head, identity);
    switch (p->desc.kind) {
    case TARE_KIND_ESTIMATOR:
        BETWEEN(estimator, sizes);
        BETWEEN(estimator, prepare);
        BETWEEN(estimator, compute);
        BETWEEN(estimator, collect);
        BETWEEN(estimator, record);
        BETWEEN(estimator, apply);
        break;
    case TARE_KIND_VERIFIER:
        BETWEEN(verifier, verify);
        BETWEEN(verifier, explain);
        break;
    case TARE_KIND_ENCODER:
        BETWEEN(encoder, sizes);
        BETWEEN(encoder, encode);
        break;
    case TARE_KIND_CODEBOOK:
        BETWEEN(codebook, sizes);
        BETWEEN(codebook, assign);
        BETWEEN(codebook, fit);
        BETWEEN(codebook, cluster_name);
        break;
    case TARE_KIND_OBJECTIVE:
        BETWEEN(objective, sizes);
        BETWEEN(objective, annotate);
        BETWEEN(objective, compute);
        BETWEEN(objective, collect);
        BETWEEN(objective, apply);
        break;
    case TARE_KIND_CURRICULUM:
        BETWEEN(curriculum, next);
        BETWEEN(curriculum, keep);
        BETWEEN(curriculum, apply);
        break;
    case TARE_KIND_ENVIRONMENT:
        BETWEEN(environment, reset);
        BETWEEN(environment, step);
        BETWEEN(environment, save_session);
        BETWEEN(environment, load_session);
        break;
    }
}

/* The tests that run: those that show a plugin every function of its kind, in one thread. */
static const char *const TESTS[] = {"phases", "state", "texts", "encode", "assign", "fit", "repeats", "sessions"};

static const struct check_test *tests_of(int32_t kind)
{
    switch (kind) {
    case TARE_KIND_ESTIMATOR:
        return CHECK_ESTIMATOR;
    case TARE_KIND_VERIFIER:
        return CHECK_VERIFIER;
    case TARE_KIND_OBJECTIVE:
        return CHECK_OBJECTIVE;
    case TARE_KIND_CURRICULUM:
        return CHECK_CURRICULUM;
    case TARE_KIND_ENVIRONMENT:
        return CHECK_ENVIRONMENT;
    default:
        return CHECK_CLUSTERER;
    }
}

static tare_status run_tests(struct check *c, struct err *e)
{
    for (const struct check_test *t = tests_of(c->plugin->desc.kind); t->name; t++)
        for (size_t k = 0; k < sizeof TESTS / sizeof *TESTS; k++) {
            if (t->kind != c->plugin->desc.kind || strcmp(t->name, TESTS[k]) != 0) continue;
            c->drawn = 0;
            const tare_status status = t->run(c, e);
            if (c->skipped) {
                c->skipped = false;
                continue;
            }
            TRY(status);
        }
    return TARE_OK;
}

static tare_status run_under(struct check *c, enum host_age age, struct err *e)
{
    const struct plugin *real = c->plugin;
    const bool binary = c->binary; /* found out again, with the same draws */
    struct plugin shown = *real;
    union table table = {0};
    RUN.check = c;
    RUN.real = real;
    RUN.age = age;
    RUN.hash = 0;
    RUN.calls = 0;
    RUN.fault = (struct err){0};
    switch (real->desc.kind) {
#define COPY(CONSTANT, NAME, ...)                                                                                                  \
    case TARE_KIND_##CONSTANT:                                                                                                     \
        table.NAME = *real->NAME;                                                                                                  \
        break;
        PLUGIN_KINDS(COPY)
#undef COPY
    }
    between(real, &table);
    shown.head = &table.head;
    c->plugin = &shown;
    const tare_status status = run_tests(c, e);
    c->plugin = real;
    c->binary = binary;
    if (!RUN.fault.code) return status;
    *e = RUN.fault;
    return TARE_E_PLUGIN;
}

/* True if equal calls of this plugin give equal results. */
static bool repeats(const struct plugin *p)
{
    if (p->desc.kind == TARE_KIND_VERIFIER) return p->verifier->flags & TARE_VERIFIER_REPEATS;
    if (p->desc.kind == TARE_KIND_ENVIRONMENT) return p->environment->flags & TARE_ENVIRONMENT_REPEATS;
    return true;
}

static tare_status compare_hosts(struct check *c, enum host_age age, const char *host, struct err *e)
{
    /* the other tests report what fails under this host */
    if (run_under(c, HOST_TODAY, e)) return check_skip(c, e, "the plugin fails under this host too");
    const uint64_t hash = RUN.hash;
    const int64_t calls = RUN.calls;
    if (run_under(c, age, e)) return err_prefix(e, "under %s", host);
    if (repeats(c->plugin) && (hash != RUN.hash || calls != RUN.calls))
        FAIL(
            e, TARE_E_PLUGIN,
            "the results under %s are other ones: the plugin reads behind a struct of the host, or compares a struct_size or the flags of one; test a member with TARE_KNOWS",
            host);
    return str_addf(&c->note, e, "%lld calls", (long long)calls);
}

tare_status check_oldest(struct check *c, struct err *e)
{
    char host[64];
    snprintf(host, sizeof host, "a host of ABI %d.%u", TARE_ABI_MAJOR, c->plugin->desc.minor_needed);
    return compare_hosts(c, HOST_OLDEST, host, e);
}

tare_status check_future(struct check *c, struct err *e)
{
    return compare_hosts(c, HOST_FUTURE, "a later host, whose structs are larger and have more flags", e);
}
