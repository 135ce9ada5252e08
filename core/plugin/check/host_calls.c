/* The functions between the host and the plugin: each lends the plugin copies of the host's structs,
 * calls its function, and takes the outputs back (hosts.c). */
#include "plugin/check/hosts.h"

#define ERROR tare_error *mine = host_lend(error, SIZE_ERROR, false)

/* ---------------------------------------------------------------- every kind */

static tare_status head_create(const tare_setup *setup, void **self, tare_error *error)
{
    ERROR;
    tare_setup s = *setup;
    tare_host *host = host_lend(setup->host, SIZE_HOST, false);
    if (HOST_RUN.age == HOST_OLDEST) host->abi_minor = HOST_RUN.real->desc.minor_needed;
    if (HOST_RUN.age == HOST_FUTURE) host->abi_minor = TARE_ABI_MINOR + 1;
    s.host = host;
    s.loss = host_lend(setup->loss, SIZE_LOSS, true);
    s.dataset = host_lend(setup->dataset, SIZE_DATASET, true);
    return host_ended("create", HOST_RUN.real->head->create(host_lend(&s, SIZE_SETUP, true), self, mine), error, mine);
}

static tare_status head_save(const void *self, const tare_stream *out, tare_error *error)
{
    ERROR;
    return host_ended("save", HOST_RUN.real->head->save(self, host_lend_stream(out), mine), error, mine);
}

static tare_status head_load(void *self, const tare_stream *in, tare_error *error)
{
    ERROR;
    return host_ended("load", HOST_RUN.real->head->load(self, host_lend_stream(in), mine), error, mine);
}

static tare_status head_describe(const void *self, const tare_stream *out, tare_error *error)
{
    ERROR;
    return host_ended("describe", HOST_RUN.real->head->describe(self, host_lend_stream(out), mine), error, mine);
}

static tare_status head_identity(const void *self, const tare_stream *out, tare_error *error)
{
    ERROR;
    return host_ended("identity", HOST_RUN.real->head->identity(self, host_lend_stream(out), mine), error, mine);
}

static tare_status sizes_by(tare_status (*f)(const void *, tare_sizes *, tare_error *), const void *self, tare_sizes *out,
                            tare_error *error)
{
    ERROR;
    tare_sizes *sizes = host_lend(out, SIZE_SIZES, true);
    const tare_status status = f(self, sizes, mine);
    host_take_back(out, sizes, SIZE_SIZES, 8, "tare_sizes");
    HOST_RUN.sizes = *out;
    host_add((const char *)out + 8, SIZE_SIZES - 8);
    return host_ended("sizes", status, error, mine);
}

/* ---------------------------------------------------------------- estimators */

static tare_status estimator_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(HOST_RUN.real->estimator->sizes, self, out, error);
}

static tare_status estimator_compute(const void *self, const tare_batch *b, const double *prepared, tare_advantages *out,
                                     tare_error *error)
{
    ERROR;
    tare_advantages *o = host_lend(out, SIZE_ADVANTAGES, true);
    const tare_status status = HOST_RUN.real->estimator->compute(self, host_lend(b, SIZE_BATCH, true), prepared, o, mine);
    host_take_back(out, o, SIZE_ADVANTAGES, 8, "tare_advantages");
    if (!status) {
        host_add(out->advantage, b->n_rollouts * 8);
        host_add(out->rollout_weight, b->n_rollouts * 8);
        host_add(out->baseline, b->n_groups * 8);
        host_add(out->scale, b->n_groups * 8);
        host_add(out->confidence, b->n_groups * 8);
        host_add(out->token_advantage, b->n_tokens * 4);
        host_add(&out->extra_groups, 8);
    }
    return host_ended("compute", status, error, mine);
}

typedef tare_status (*of_group)(const void *, const tare_batch *, int64_t, double *, tare_error *);
struct by_group {
    of_group call;
    const char *name;
    int64_t size; /* of sum */
};

static tare_status group_by(struct by_group f, const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    ERROR;
    const tare_status status = f.call(self, host_lend(b, SIZE_BATCH, true), group, sum, mine);
    host_add(sum, f.size * 8);
    return host_ended(f.name, status, error, mine);
}

static tare_status estimator_prepare(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    return group_by((struct by_group){HOST_RUN.real->estimator->prepare, "prepare", HOST_RUN.sizes.prepare}, self, b, group, sum,
                    error);
}

static tare_status estimator_collect(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    return group_by((struct by_group){HOST_RUN.real->estimator->collect, "collect", HOST_RUN.sizes.collect}, self, b, group, sum,
                    error);
}

static tare_status estimator_record(const void *self, const tare_batch *b, int64_t group, double *sum, tare_error *error)
{
    return group_by((struct by_group){HOST_RUN.real->estimator->record, "record", HOST_RUN.sizes.record}, self, b, group, sum,
                    error);
}

static tare_status estimator_apply(void *self, const tare_update *update, tare_error *error)
{
    ERROR;
    return host_ended("apply", HOST_RUN.real->estimator->apply(self, host_lend(update, SIZE_UPDATE, true), mine), error, mine);
}

/* ---------------------------------------------------------------- verifiers */

enum { MOST_ITEMS = 4096 };

static tare_verdict *lend_verdict(const tare_verdict *v)
{
    tare_verdict copy = *v;
    copy.extracted = host_lend_stream(v->extracted);
    copy.note = host_lend_stream(v->note);
    tare_verdict *mine = host_space(SIZE_VERDICT);
    if (!mine) return (tare_verdict *)(uintptr_t)v;
    *mine = copy;
    return host_lend(mine, SIZE_VERDICT, false);
}

static void take_verdict(tare_verdict *to, const tare_verdict *from)
{
    const tare_verdict was = *to;
    if (to == from) return;
    if (HOST_RUN.age == HOST_TODAY)
        *to = *from;
    else
        host_take_back(to, from, SIZE_VERDICT, 4, "tare_verdict");
    to->struct_size = was.struct_size;
    to->extracted = was.extracted;
    to->note = was.note;
    host_add(&to->code, 4);
    host_add(&to->reward, 8);
    host_add(&to->n_segments, 8);
    if (to->segment && to->n_segments > 0 && to->n_segments <= to->segment_capacity)
        host_add(to->segment, to->n_segments * (int64_t)sizeof *to->segment);
}

static tare_status verifier_verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                                   tare_error *error)
{
    ERROR;
    const tare_completion **c = host_space(n * (int64_t)sizeof *c + 8);
    tare_verdict **v = host_space(n * (int64_t)sizeof *v + 8);
    if (!c || !v || n > MOST_ITEMS) return HOST_RUN.real->verifier->verify(self, completion, out, n, error);
    for (int64_t i = 0; i < n; i++) {
        c[i] = host_lend(completion[i], SIZE_COMPLETION, true);
        v[i] = lend_verdict(out[i]);
    }
    const tare_status status = HOST_RUN.real->verifier->verify(self, c, v, n, mine);
    for (int64_t i = 0; i < n; i++) take_verdict(out[i], v[i]);
    return host_ended("verify", status, error, mine);
}

static tare_status verifier_explain(void *self, const tare_completion *completion, const tare_stream *out, tare_error *error)
{
    ERROR;
    return host_ended(
        "explain",
        HOST_RUN.real->verifier->explain(self, host_lend(completion, SIZE_COMPLETION, true), host_lend_stream(out), mine), error,
        mine);
}

/* ---------------------------------------------------------------- encoders and codebooks */

static tare_status encoder_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(HOST_RUN.real->encoder->sizes, self, out, error);
}

static tare_status encoder_encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    ERROR;
    const tare_status status = HOST_RUN.real->encoder->encode(self, texts, n, out, mine);
    if (!status) host_add(out, n * HOST_RUN.sizes.dim * 4);
    return host_ended("encode", status, error, mine);
}

static tare_status codebook_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(HOST_RUN.real->codebook->sizes, self, out, error);
}

static tare_status codebook_assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    ERROR;
    tare_assignment *o = host_lend(out, SIZE_ASSIGNMENT, true);
    const tare_status status = HOST_RUN.real->codebook->assign(self, host_lend(prompts, SIZE_PROMPTS, true), o, mine);
    host_take_back(out, o, SIZE_ASSIGNMENT, 8, "tare_assignment");
    host_add(out->cluster, prompts->n * 4);
    host_add(out->distance, prompts->n * 4);
    return host_ended("assign", status, error, mine);
}

static tare_status codebook_fit(void *self, const tare_prompts *prompts, tare_error *error)
{
    ERROR;
    return host_ended("fit", HOST_RUN.real->codebook->fit(self, host_lend(prompts, SIZE_PROMPTS, true), mine), error, mine);
}

static tare_status codebook_cluster_name(const void *self, int64_t k, const tare_stream *out, tare_error *error)
{
    ERROR;
    return host_ended("cluster_name", HOST_RUN.real->codebook->cluster_name(self, k, host_lend_stream(out), mine), error, mine);
}

/* ---------------------------------------------------------------- objectives */

static tare_status objective_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    return sizes_by(HOST_RUN.real->objective->sizes, self, out, error);
}

static tare_status objective_annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    ERROR;
    const tare_status status = HOST_RUN.real->objective->annotate(self, host_lend(t, SIZE_TOKENS, true), annotated, mine);
    host_add(annotated, t->n * HOST_RUN.sizes.prepare * 8);
    return host_ended("annotate", status, error, mine);
}

static tare_status objective_compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    ERROR;
    tare_token_loss *o = host_lend(out, SIZE_TOKEN_LOSS, true);
    const tare_status status = HOST_RUN.real->objective->compute(self, host_lend(t, SIZE_TOKENS, true), o, mine);
    host_take_back(out, o, SIZE_TOKEN_LOSS, 8, "tare_token_loss");
    host_add(out->value, t->n * 8);
    host_add(out->dlogprob, t->n * 8);
    host_add(out->dentropy, t->n * 8);
    host_add(out->dkl, t->n * 8);
    host_add(out->clipped, t->n);
    return host_ended("compute", status, error, mine);
}

static tare_status objective_collect(const void *self, const tare_tokens *t, const tare_token_loss *loss, double *sum,
                                     tare_error *error)
{
    ERROR;
    const tare_status status =
        HOST_RUN.real->objective->collect(self, host_lend(t, SIZE_TOKENS, true), host_lend(loss, SIZE_TOKEN_LOSS, true), sum, mine);
    host_add(sum, HOST_RUN.sizes.collect * 8);
    return host_ended("collect", status, error, mine);
}

static tare_status objective_apply(void *self, const tare_update *update, tare_error *error)
{
    ERROR;
    return host_ended("apply", HOST_RUN.real->objective->apply(self, host_lend(update, SIZE_UPDATE, true), mine), error, mine);
}

/* ---------------------------------------------------------------- curricula */

static tare_status curriculum_next(const void *self, const tare_draw *draw, tare_choice *out, tare_error *error)
{
    ERROR;
    tare_choice *o = host_lend(out, SIZE_CHOICE, true);
    const tare_status status = HOST_RUN.real->curriculum->next(self, host_lend(draw, SIZE_DRAW, true), o, mine);
    host_take_back(out, o, SIZE_CHOICE, 8, "tare_choice");
    host_add(out->row, draw->n * 8);
    host_add(out->n_rollouts, draw->n * 8);
    return host_ended("next", status, error, mine);
}

static tare_status curriculum_keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    ERROR;
    tare_kept *o = host_lend(out, SIZE_KEPT, true);
    const tare_status status = HOST_RUN.real->curriculum->keep(self, host_lend(groups, SIZE_BATCH, true), o, mine);
    host_take_back(out, o, SIZE_KEPT, 8, "tare_kept");
    host_add(out->fate, groups->n_rollouts);
    host_add(&out->extra_groups, 8);
    return host_ended("keep", status, error, mine);
}

static tare_status curriculum_apply(void *self, const tare_batch *groups, tare_error *error)
{
    ERROR;
    return host_ended("apply", HOST_RUN.real->curriculum->apply(self, host_lend(groups, SIZE_BATCH, true), mine), error, mine);
}

/* ---------------------------------------------------------------- environments */

/* Messages are hashed where the check takes them: the observation is passed on with its streams. */
static tare_observation *lend_observation(const tare_observation *o)
{
    tare_observation *mine = host_space(SIZE_OBSERVATION);
    if (!mine) return (tare_observation *)(uintptr_t)o;
    *mine = *o;
    mine->state_key = host_lend_stream(o->state_key);
    mine->tools = host_lend_stream(o->tools);
    mine->stop = host_lend_stream(o->stop);
    mine->note = host_lend_stream(o->note);
    tare_observation *lent = host_lend(mine, SIZE_OBSERVATION, false);
    if (HOST_RUN.age == HOST_FUTURE) lent->flags = ~0u;
    return lent;
}

static void take_observation(tare_observation *to, const tare_observation *from)
{
    if (to == from) return;
    if (HOST_RUN.age != HOST_TODAY) {
        tare_observation ignored = *to;
        host_take_back(&ignored, from, SIZE_OBSERVATION, 4, "tare_observation");
    }
    to->end = from->end;
    to->reward = from->reward;
    to->verdict = from->verdict;
    host_add(&to->end, 4);
    host_add(&to->reward, 8);
    host_add(&to->verdict, 4);
}

static tare_status environment_reset(void *self, void *session, const tare_episode *episode, tare_observation *out,
                                     tare_error *error)
{
    ERROR;
    tare_observation *o = lend_observation(out);
    const tare_status status = HOST_RUN.real->environment->reset(self, session, host_lend(episode, SIZE_EPISODE, true), o, mine);
    take_observation(out, o);
    return host_ended("reset", status, error, mine);
}

static const tare_act *lend_act(const tare_act *a)
{
    tare_act *mine = host_space(SIZE_ACT);
    const tare_call **call = host_space((a->n_calls + 1) * (int64_t)sizeof *call);
    if (!mine || !call) return a;
    *mine = *a;
    for (int64_t k = 0; k < a->n_calls; k++) call[k] = host_lend(a->call[k], SIZE_CALL, true);
    if (a->n_calls) mine->call = call;
    return host_lend(mine, SIZE_ACT, true);
}

static tare_status environment_step(void *self, void *const *session, const tare_act *const *act, tare_observation *const *out,
                                    int64_t n, tare_error *error)
{
    ERROR;
    const tare_act **a = host_space(n * (int64_t)sizeof *a + 8);
    tare_observation **o = host_space(n * (int64_t)sizeof *o + 8);
    if (!a || !o) return HOST_RUN.real->environment->step(self, session, act, out, n, error);
    for (int64_t i = 0; i < n; i++) {
        a[i] = lend_act(act[i]);
        o[i] = lend_observation(out[i]);
    }
    const tare_status status = HOST_RUN.real->environment->step(self, session, a, o, n, mine);
    for (int64_t i = 0; i < n; i++) take_observation(out[i], o[i]);
    return host_ended("step", status, error, mine);
}

static tare_status environment_save_session(void *self, const void *session, const tare_stream *out, tare_error *error)
{
    ERROR;
    return host_ended("save_session", HOST_RUN.real->environment->save_session(self, session, host_lend_stream(out), mine), error,
                      mine);
}

static tare_status environment_load_session(void *self, void *session, const tare_stream *in, tare_error *error)
{
    ERROR;
    return host_ended("load_session", HOST_RUN.real->environment->load_session(self, session, host_lend_stream(in), mine), error,
                      mine);
}

static tare_status environment_suggest(void *self, const void *session, const uint64_t *draw, const tare_stream *out,
                                       tare_error *error)
{
    ERROR;
    return host_ended("suggest", HOST_RUN.real->environment->suggest(self, session, draw, host_lend_stream(out), mine), error,
                      mine);
}

/* ---------------------------------------------------------------- the tables between */

/* Replaces a function that the plugin has. */
#define BETWEEN(KIND, F)                                                                                                           \
    if (t->KIND.F) t->KIND.F = KIND##_##F

void host_between(const struct plugin *p, union host_table *t)
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
        BETWEEN(environment, suggest);
        break;
    }
}
