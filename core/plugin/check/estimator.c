/* Tests of estimators: the phases keep the state, outputs are whole, sums add up, ranks do not matter. */
#include "plugin/check/internal.h"

#include "base/clock.h"
#include "base/fs.h"

#include <math.h>
#include <string.h>

/* A batch, and the outputs of one compute on it. */
struct trial {
    tare_batch b;
    tare_advantages out;
    int64_t prepare_size, collect_size, record_size;
    double *prepared, *collected, *records; /* records: [groups, record_size] */
};

enum shape { MIXED, EQUAL, SINGLES, UNCLUSTERED, EMPTY };

static double a_reward(struct check *c, enum shape shape, double of_group)
{
    if (shape == EQUAL) return of_group;
    switch (check_below(c, 4)) {
    case 0:
        return 2 * check_uniform(c) - 1;
    default:
        return (double)check_below(c, 2);
    }
}

static float *noise(struct check *c, int64_t n, double low, double high)
{
    float *x = NULL;
    if (arena_new_raw(&c->arena, float, n + 1, &x, NULL)) return NULL;
    for (int64_t i = 0; i < n; i++) x[i] = (float)(low + (high - low) * check_uniform(c));
    return x;
}

/* M groups of a shape, with rewards of 0 and 1 if the plugin takes no others. */
static tare_status make_batch(struct check *c, enum shape shape, int64_t M, bool binary, tare_batch *b, struct err *e)
{
    int64_t *group_begin, *token_begin, N = 0;
    int32_t *cluster, *verdict;
    uint64_t *uid;
    double *reward, *component;
    enum { MOST = 8, C = 3 };
    if (shape == EMPTY) M = 0;
    TRY(arena_new(&c->arena, int64_t, M + 1, &group_begin, e));
    TRY(arena_new(&c->arena, int64_t, M * MOST + 1, &token_begin, e));
    TRY(arena_new(&c->arena, int32_t, M + 1, &cluster, e));
    TRY(arena_new(&c->arena, int32_t, M * MOST + 1, &verdict, e));
    TRY(arena_new(&c->arena, uint64_t, M + 1, &uid, e));
    TRY(arena_new(&c->arena, double, M *MOST + 1, &reward, e));
    TRY(arena_new(&c->arena, double, M *MOST *C + 1, &component, e));
    for (int64_t m = 0; m < M; m++) {
        const int64_t n = shape == SINGLES ? 1 : MOST - (int64_t)(binary ? 0 : check_below(c, 5));
        const double of_group = (double)check_below(c, 2);
        cluster[m] = shape == UNCLUSTERED ? -1 : (int32_t)check_below(c, CHECK_CLUSTERS);
        uid[m] = check_below(c, UINT64_MAX);
        for (int64_t i = 0; i < n; i++, N++) {
            reward[N] = binary && shape != EQUAL ? (double)check_below(c, 2) : a_reward(c, shape, of_group);
            verdict[N] = reward[N] > 0 ? TARE_CORRECT : TARE_WRONG;
            token_begin[N + 1] = token_begin[N] + 1 + (int64_t)check_below(c, 9);
            for (int64_t k = 0; k < C; k++) component[N * C + k] = reward[N] / C;
        }
        group_begin[m + 1] = N;
    }
    const int64_t T = token_begin[N];
    *b = (tare_batch){.struct_size = sizeof *b,
                      .step = 3,
                      .n_groups = M,
                      .n_rollouts = N,
                      .n_tokens = T,
                      .n_components = C,
                      .n_clusters = CHECK_CLUSTERS};
    b->group_begin = group_begin;
    b->prompt_uid = uid;
    b->cluster = cluster;
    b->reward = reward;
    b->component = component;
    b->verdict = verdict;
    b->token_begin = token_begin;
    b->token_entropy = noise(c, T, 0, 3);
    b->token_logprob = noise(c, T, -5, 0);
    b->token_ref_logprob = noise(c, T, -5, 0);
    return TARE_OK;
}

/* Outputs between guards of NaN, all of them NaN but row_weight. */
enum { GUARD = 16 };
static tare_status new_out(struct check *c, const tare_batch *b, tare_advantages *out, struct err *e)
{
    double **const wide[] = {&out->advantage, &out->row_weight, &out->baseline, &out->scale, &out->confidence};
    *out = (tare_advantages){.struct_size = sizeof *out};
    for (int k = 0; k < 5; k++) {
        const int64_t n = k < 2 ? b->n_rollouts : b->n_groups;
        double *p;
        TRY(arena_new(&c->arena, double, n + 2 * GUARD, &p, e));
        for (int64_t i = 0; i < n + 2 * GUARD; i++) p[i] = (double)NAN;
        for (int64_t i = 0; k == 1 && i < n; i++) p[GUARD + i] = 1;
        *wide[k] = p + GUARD;
    }
    if (!(c->plugin->desc.needs & TARE_GIVES_TOKENS)) return TARE_OK;
    TRY(arena_new(&c->arena, float, b->n_tokens + 2 * GUARD, &out->token_advantage, e));
    for (int64_t i = 0; i < b->n_tokens + 2 * GUARD; i++) out->token_advantage[i] = NAN;
    out->token_advantage += GUARD;
    return TARE_OK;
}

static bool guarded(const double *p, int64_t n)
{
    for (int i = 1; i <= GUARD; i++)
        if (!isnan(p[-i]) || !isnan(p[n + i - 1])) return false;
    return true;
}

static tare_status check_out(const struct check *c, const tare_batch *b, const tare_advantages *o, struct err *e)
{
    if (!guarded(o->advantage, b->n_rollouts) || !guarded(o->row_weight, b->n_rollouts) || !guarded(o->baseline, b->n_groups) ||
        !guarded(o->scale, b->n_groups) || !guarded(o->confidence, b->n_groups))
        FAIL(e, TARE_E_PLUGIN, "compute wrote outside of an output buffer");
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        if (!isfinite(o->advantage[i]))
            FAIL(e, TARE_E_PLUGIN, "the advantage of rollout %lld of %lld is %g", (long long)i, (long long)b->n_rollouts,
                 o->advantage[i]);
        if (!(o->row_weight[i] >= 0) || isinf(o->row_weight[i]))
            FAIL(e, TARE_E_PLUGIN, "the weight of rollout %lld is %g", (long long)i, o->row_weight[i]);
    }
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (!isfinite(o->baseline[m])) FAIL(e, TARE_E_PLUGIN, "the baseline of group %lld is %g", (long long)m, o->baseline[m]);
        if (isinf(o->scale[m]) || o->scale[m] < 0)
            FAIL(e, TARE_E_PLUGIN, "the scale of group %lld is %g", (long long)m, o->scale[m]);
        if (!(o->confidence[m] >= 0 && o->confidence[m] <= 1))
            FAIL(e, TARE_E_PLUGIN, "the confidence of group %lld is %g", (long long)m, o->confidence[m]);
    }
    for (int64_t t = 0; o->token_advantage && t < b->n_tokens; t++)
        if (!isfinite(o->token_advantage[t]))
            FAIL(e, TARE_E_PLUGIN, "the advantage of token %lld is %g", (long long)t, (double)o->token_advantage[t]);
    (void)c;
    return TARE_OK;
}

/* ---------------------------------------------------------------- phases */

typedef tare_status (*group_function)(const void *, const tare_batch *, int64_t, double *, tare_error *);

static tare_status add_groups(const struct plugin_instance *i, const tare_batch *b, group_function f, const char *phase,
                              int64_t size, double *sum, double *one, struct err *e)
{
    struct plugin_call call;
    for (int64_t m = 0; m < b->n_groups; m++) {
        memset(one, 0, (size_t)size * sizeof *one);
        plugin_enter(&call);
        TRY(plugin_leave(&call, i, phase, b->step, f(i->self, b, m, one, &call.error), e));
        for (int64_t k = 0; k < size; k++) sum[k] += one[k];
    }
    return TARE_OK;
}

static tare_status sizes(const struct plugin_instance *i, struct trial *t, struct check *c, struct err *e)
{
    const tare_estimator *f = i->plugin->estimator;
    t->prepare_size = f->prepare_size ? f->prepare_size(i->self) : 0;
    t->collect_size = f->collect_size ? f->collect_size(i->self) : 0;
    t->record_size = f->record_size ? f->record_size(i->self) : 0;
    if (t->prepare_size < 0 || t->collect_size < 0 || t->prepare_size > 1 << 26 || t->collect_size > 1 << 26)
        FAIL(e, TARE_E_PLUGIN, "prepare_size or collect_size makes no sense");
    if (t->record_size < 0 || t->record_size > 1 << 20) FAIL(e, TARE_E_PLUGIN, "record_size makes no sense");
    TRY(arena_new(&c->arena, double, t->b.n_groups * t->record_size + 1, &t->records, e));
    TRY(arena_new(&c->arena, double, t->prepare_size + 1, &t->prepared, e));
    return arena_new(&c->arena, double, t->collect_size + 1, &t->collected, e);
}

/* A record of each group of t->b, between guards. */
static tare_status take_records(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e)
{
    double *one;
    TRY(arena_new(&c->arena, double, t->record_size + 2 * GUARD, &one, e));
    c->batch = &t->b;
    for (int64_t m = 0; m < t->b.n_groups; m++) {
        struct plugin_call call;
        for (int64_t k = 0; k < t->record_size + 2 * GUARD; k++)
            one[k] = k >= GUARD && k < GUARD + t->record_size ? 0 : (double)NAN;
        plugin_enter(&call);
        TRY(plugin_leave(&call, i, "record", t->b.step, i->plugin->estimator->record(i->self, &t->b, m, one + GUARD, &call.error),
                         e));
        if (!guarded(one + GUARD, t->record_size)) FAIL(e, TARE_E_PLUGIN, "record wrote outside of its buffer");
        for (int64_t k = 0; k < t->record_size; k++) {
            if (!isfinite(one[GUARD + k]))
                FAIL(e, TARE_E_PLUGIN, "number %lld of group %lld's record is %g", (long long)k, (long long)m, one[GUARD + k]);
            t->records[m * t->record_size + k] = one[GUARD + k];
        }
    }
    return TARE_OK;
}

/* prepare, compute, collect and record on t->b; the outputs are checked. */
static tare_status run(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e)
{
    const tare_estimator *f = i->plugin->estimator;
    struct plugin_call call;
    double *one;
    TRY(sizes(i, t, c, e));
    TRY(arena_new(&c->arena, double, t->prepare_size + t->collect_size + 1, &one, e));
    TRY(new_out(c, &t->b, &t->out, e));
    if (f->prepare) TRY(add_groups(i, &t->b, f->prepare, "prepare", t->prepare_size, t->prepared, one, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "compute", t->b.step, f->compute(i->self, &t->b, t->prepared, &t->out, &call.error), e));
    TRY(check_out(c, &t->b, &t->out, e));
    c->batch = &t->b;
    if (f->collect) TRY(add_groups(i, &t->b, f->collect, "collect", t->collect_size, t->collected, one, e));
    return f->record ? take_records(c, i, t, e) : TARE_OK;
}

static tare_status apply(const struct plugin_instance *i, const struct trial *t, struct err *e)
{
    struct plugin_call call;
    const tare_estimator *f = i->plugin->estimator;
    if (f->apply_records) {
        plugin_enter(&call);
        return plugin_leave(
            &call, i, "apply_records", t->b.step,
            f->apply_records(i->self, t->b.step, t->collected, t->b.prompt_uid, t->records, t->b.n_groups, &call.error), e);
    }
    if (!f->apply) return TARE_OK;
    plugin_enter(&call);
    return plugin_leave(&call, i, "apply", t->b.step, i->plugin->estimator->apply(i->self, t->b.step, t->collected, &call.error),
                        e);
}

/* Whether it takes rewards between 0 and 1; some are made for right and wrong only, and say so. */
static bool binary_only(struct check *c)
{
    struct plugin_instance *i;
    struct trial t = {0};
    struct err e = {0};
    if (check_instance(c, &i, &e)) return false;
    tare_status status = make_batch(c, MIXED, 6, false, &t.b, &e);
    if (!status) status = run(c, i, &t, &e);
    plugin_destroy(i);
    return status == TARE_E_RANGE || status == TARE_E_INVALID;
}

/* An instance with some steps of history. */
static tare_status with_history(struct check *c, bool binary, struct plugin_instance **out, struct err *e)
{
    TRY(check_instance(c, out, e));
    for (int step = 0; step < 3; step++) {
        struct trial t = {0};
        TRY(make_batch(c, MIXED, 9, binary, &t.b, e));
        TRY(run(c, *out, &t, e));
        TRY(apply(*out, &t, e));
    }
    return TARE_OK;
}

static tare_status same_doubles(const double *a, const double *b, int64_t n, const char *what, struct err *e)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a))
            FAIL(e, TARE_E_PLUGIN, "%s: number %lld is %.17g, and was %.17g", what, (long long)i, b[i], a[i]);
    return TARE_OK;
}

/* ---------------------------------------------------------------- tests */

static tare_status shapes(struct check *c, struct err *e)
{
    static const char *const NAMES[] = {"mixed rewards", "groups of equal rewards", "groups of one", "no cluster",
                                        "no groups at all"};
    const bool binary = binary_only(c);
    for (int shape = MIXED; shape <= EMPTY; shape++) {
        for (int history = 0; history < 2; history++) {
            struct plugin_instance *i = NULL;
            struct trial t = {0};
            tare_status status = history ? with_history(c, binary, &i, e) : check_instance(c, &i, e);
            if (!status) status = make_batch(c, (enum shape)shape, 12, binary, &t.b, e);
            if (!status) status = run(c, i, &t, e);
            if (status == TARE_E_RANGE && shape == SINGLES) status = TARE_OK; /* refused with a message */
            if (!status) status = apply(i, &t, e);
            plugin_destroy(i);
            if (status) return err_prefix(e, "%s", NAMES[shape]);
        }
    }
    return TARE_OK;
}

/* The state's bytes before and after the three phases; and the same outputs again. */
static tare_status reads_only(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct trial a = {0}, b = {0};
    struct str before = {0}, after = {0};
    const bool binary = binary_only(c);
    tare_status status;
    TRY_TO(status, done, with_history(c, binary, &i, e));
    TRY_TO(status, done, make_batch(c, MIXED, 12, binary, &a.b, e));
    b.b = a.b;
    TRY_TO(status, done, plugin_save(i, &before, e));
    TRY_TO(status, done, run(c, i, &a, e));
    TRY_TO(status, done, plugin_save(i, &after, e));
    if (before.size != after.size || memcmp(before.data, after.data, (size_t)before.size))
        FAIL_TO(status, done, e, TARE_E_PLUGIN, "prepare, compute or collect changed the state; only apply may");
    TRY_TO(status, done, run(c, i, &b, e));
    TRY_TO(status, done,
           same_doubles(a.out.advantage, b.out.advantage, a.b.n_rollouts, "compute again on the same batch: advantages", e));
    TRY_TO(status, done, same_doubles(a.collected, b.collected, a.collect_size, "collect again on the same batch", e));
    status = same_doubles(a.records, b.records, a.b.n_groups * a.record_size, "record again on the same batch", e);
done:
    plugin_destroy(i);
    str_free(&before);
    str_free(&after);
    return status;
}

/* prepare and collect have to add to what is there, and may look at their own group only. */
static tare_status adds(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct trial t = {0};
    const bool binary = binary_only(c);
    tare_status status;
    TRY_TO(status, done, with_history(c, binary, &i, e));
    TRY_TO(status, done, make_batch(c, MIXED, 8, binary, &t.b, e));
    TRY_TO(status, done, sizes(i, &t, c, e));
    c->batch = &t.b;
    for (int phase = 0; phase < 2; phase++) {
        const group_function f = phase ? i->plugin->estimator->collect : i->plugin->estimator->prepare;
        const int64_t size = phase ? t.collect_size : t.prepare_size;
        double *zero, *one;
        TRY_TO(status, done, arena_new(&c->arena, double, size + 1, &zero, e));
        TRY_TO(status, done, arena_new(&c->arena, double, size + 1, &one, e));
        for (int64_t m = 0; f && m < t.b.n_groups; m++) {
            struct plugin_call call;
            for (int64_t k = 0; k < size; k++) zero[k] = 0, one[k] = 1;
            plugin_enter(&call);
            TRY_TO(status, done, plugin_leave(&call, i, "collect", 3, f(i->self, &t.b, m, zero, &call.error), e));
            plugin_enter(&call);
            TRY_TO(status, done, plugin_leave(&call, i, "collect", 3, f(i->self, &t.b, m, one, &call.error), e));
            for (int64_t k = 0; k < size; k++)
                if (!(fabs(one[k] - 1 - zero[k]) <= 1e-9 * (1 + fabs(zero[k]))))
                    FAIL_TO(status, done, e, TARE_E_PLUGIN, "%s does not add: number %lld is %g on 0 and %g on 1",
                            phase ? "collect" : "prepare", (long long)k, zero[k], one[k]);
        }
    }
done:
    plugin_destroy(i);
    return status;
}

/* Groups first .. last-1 of a batch as a batch of its own: what a rank sees. */
static tare_batch part_of(const tare_batch *b, int64_t first, int64_t last, int64_t *begin, int64_t *tokens)
{
    tare_batch p = *b;
    const int64_t r = b->group_begin[first], t = b->token_begin[r];
    p.n_groups = last - first;
    p.n_rollouts = b->group_begin[last] - r;
    p.n_tokens = b->token_begin[b->group_begin[last]] - t;
    for (int64_t m = 0; m <= p.n_groups; m++) begin[m] = b->group_begin[first + m] - r;
    for (int64_t i = 0; i <= p.n_rollouts; i++) tokens[i] = b->token_begin[r + i] - t;
    p.group_begin = begin;
    p.token_begin = tokens;
    p.prompt_uid += first;
    p.cluster += first;
    p.reward += r;
    p.component += r * b->n_components;
    p.verdict += r;
    p.token_entropy += t;
    p.token_logprob += t;
    p.token_ref_logprob += t;
    return p;
}

/* 1, 2 and 4 ranks: sums over all groups in one order, then each rank computes its own groups. */
static tare_status ranks(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct trial whole = {0};
    const bool binary = binary_only(c);
    tare_status status;
    TRY_TO(status, done, with_history(c, binary, &i, e));
    TRY_TO(status, done, make_batch(c, MIXED, 12, binary, &whole.b, e));
    TRY_TO(status, done, run(c, i, &whole, e));
    for (int64_t R = 2; R <= 4; R += 2) {
        double *prepared, *collected, *one;
        TRY_TO(status, done, arena_new(&c->arena, double, whole.prepare_size + 1, &prepared, e));
        TRY_TO(status, done, arena_new(&c->arena, double, whole.collect_size + 1, &collected, e));
        TRY_TO(status, done, arena_new(&c->arena, double, whole.prepare_size + whole.collect_size + 1, &one, e));
        for (int64_t r = 0; r < R; r++) {
            struct trial part = {0};
            struct plugin_call call;
            int64_t begin[16], tokens[128];
            const int64_t first = r * 12 / R, last = (r + 1) * 12 / R;
            part.b = part_of(&whole.b, first, last, begin, tokens);
            c->batch = &part.b;
            if (i->plugin->estimator->prepare)
                TRY_TO(status, done,
                       add_groups(i, &part.b, i->plugin->estimator->prepare, "prepare", whole.prepare_size, prepared, one, e));
            if (i->plugin->estimator->collect)
                TRY_TO(status, done,
                       add_groups(i, &part.b, i->plugin->estimator->collect, "collect", whole.collect_size, collected, one, e));
            TRY_TO(status, done, new_out(c, &part.b, &part.out, e));
            plugin_enter(&call);
            TRY_TO(status, done,
                   plugin_leave(&call, i, "compute", 3,
                                i->plugin->estimator->compute(i->self, &part.b, whole.prepared, &part.out, &call.error), e));
            TRY_TO(status, done,
                   same_doubles(whole.out.advantage + whole.b.group_begin[first], part.out.advantage, part.b.n_rollouts,
                                "advantages of a rank", e));
            if (!i->plugin->estimator->record) continue;
            TRY_TO(status, done, sizes(i, &part, c, e));
            TRY_TO(status, done, take_records(c, i, &part, e));
            TRY_TO(status, done,
                   same_doubles(whole.records + first * whole.record_size, part.records, part.b.n_groups * part.record_size,
                                "records of a rank", e));
        }
        TRY_TO(status, done, same_doubles(whole.prepared, prepared, whole.prepare_size, "prepared sums over ranks", e));
        TRY_TO(status, done, same_doubles(whole.collected, collected, whole.collect_size, "collected sums over ranks", e));
    }
done:
    plugin_destroy(i);
    return status;
}

/* Groups in another order: the same advantages, up to the rounding of the sums. */
static tare_status order(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct trial a = {0}, b = {0};
    const bool binary = binary_only(c);
    int64_t begin[16], tokens[128], N = 0;
    int32_t cluster[16], verdict[128];
    uint64_t uid[16];
    double reward[128], component[3 * 128];
    float *token[3];
    tare_status status;
    TRY_TO(status, done, with_history(c, binary, &i, e));
    TRY_TO(status, done, make_batch(c, MIXED, 12, binary, &a.b, e));
    TRY_TO(status, done, run(c, i, &a, e));
    b.b = a.b;
    for (int k = 0; k < 3; k++) token[k] = noise(c, a.b.n_tokens, 0, 0);
    begin[0] = tokens[0] = 0;
    for (int64_t m = 0; m < 12; m++) { /* the groups backwards */
        const int64_t from = 11 - m;
        cluster[m] = a.b.cluster[from];
        uid[m] = a.b.prompt_uid[from];
        for (int64_t j = a.b.group_begin[from]; j < a.b.group_begin[from + 1]; j++, N++) {
            const int64_t t = a.b.token_begin[j], n = a.b.token_begin[j + 1] - t;
            reward[N] = a.b.reward[j];
            verdict[N] = a.b.verdict[j];
            memcpy(&component[3 * N], &a.b.component[3 * j], 3 * sizeof *component);
            memcpy(token[0] + tokens[N], a.b.token_entropy + t, (size_t)n * sizeof(float));
            memcpy(token[1] + tokens[N], a.b.token_logprob + t, (size_t)n * sizeof(float));
            memcpy(token[2] + tokens[N], a.b.token_ref_logprob + t, (size_t)n * sizeof(float));
            tokens[N + 1] = tokens[N] + n;
        }
        begin[m + 1] = N;
    }
    b.b.group_begin = begin, b.b.token_begin = tokens, b.b.cluster = cluster, b.b.prompt_uid = uid, b.b.reward = reward,
    b.b.verdict = verdict;
    b.b.component = component, b.b.token_entropy = token[0], b.b.token_logprob = token[1], b.b.token_ref_logprob = token[2];
    TRY_TO(status, done, run(c, i, &b, e));
    for (int64_t m = 0; m < 12; m++) {
        for (int64_t j = 0; j < begin[m + 1] - begin[m]; j++) {
            const double x = b.out.advantage[begin[m] + j], y = a.out.advantage[a.b.group_begin[11 - m] + j];
            if (!(fabs(x - y) <= 1e-9 * (1 + fabs(y))))
                FAIL_TO(status, done, e, TARE_E_PLUGIN, "groups in another order: an advantage is %.17g, and was %.17g", x, y);
        }
    }
done:
    plugin_destroy(i);
    return status;
}

/* save, load into a new instance, go on: as without a break. Damaged states are refused. */
static tare_status state(struct check *c, struct err *e)
{
    struct plugin_instance *a = NULL, *b = NULL, *x = NULL;
    struct str saved = {0}, one = {0}, two = {0}, raw = {0};
    const bool binary = binary_only(c);
    tare_status status;
    if (!c->plugin->estimator->save) FAIL(e, TARE_E_UNSUPPORTED, "it has no state");
    TRY_TO(status, done, with_history(c, binary, &a, e));
    TRY_TO(status, done, check_instance(c, &b, e));
    TRY_TO(status, done, plugin_save(a, &saved, e));
    TRY_TO(status, done, plugin_load(b, saved.data, saved.size, NULL, "saved state", e));
    for (int step = 0; step < 3; step++) {
        struct trial p = {0}, q = {0};
        TRY_TO(status, done, make_batch(c, MIXED, 9, binary, &p.b, e));
        q.b = p.b;
        TRY_TO(status, done, run(c, a, &p, e));
        TRY_TO(status, done, run(c, b, &q, e));
        TRY_TO(status, done, same_doubles(p.out.advantage, q.out.advantage, p.b.n_rollouts, "after save and load: advantages", e));
        TRY_TO(status, done, apply(a, &p, e));
        TRY_TO(status, done, apply(b, &q, e));
    }
    TRY_TO(status, done, plugin_save(a, &one, e));
    TRY_TO(status, done, plugin_save(b, &two, e));
    if (one.size != two.size || memcmp(one.data, two.data, (size_t)one.size))
        FAIL_TO(status, done, e, TARE_E_PLUGIN, "after save and load the state is another one");
    TRY_TO(status, done, plugin_save_raw(a, &raw, e));
    for (int round = 0; round < 200; round++) { /* cut short, and random bytes: refused or taken, never a crash */
        struct err why = {0};
        struct str bytes = {0};
        TRY_TO(status, done, check_instance(c, &x, e));
        const int64_t n = (int64_t)check_below(c, (uint64_t)(raw.size + round % 2));
        TRY_TO(status, done, str_add(&bytes, raw.data, n, e));
        for (int64_t k = 0; round % 2 && k < n; k++)
            if (!check_below(c, 4)) bytes.data[k] = (char)check_below(c, 256);
        const tare_status got = plugin_load_raw(x, bytes.data, n, "damaged state", &why);
        str_free(&bytes);
        plugin_destroy(x);
        x = NULL;
        if (round % 2 == 0 && !got)
            FAIL_TO(status, done, e, TARE_E_PLUGIN, "load takes a state that is cut short: %lld of %lld bytes", (long long)n,
                    (long long)raw.size);
    }
done:
    plugin_destroy(a);
    plugin_destroy(b);
    plugin_destroy(x);
    str_free(&saved);
    str_free(&one);
    str_free(&two);
    str_free(&raw);
    return status;
}

static tare_status cost(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct trial t = {0};
    const bool binary = binary_only(c);
    enum { ROUNDS = 2000 };
    tare_status status;
    TRY_TO(status, done, with_history(c, binary, &i, e));
    TRY_TO(status, done, make_batch(c, MIXED, 16, true, &t.b, e));
    TRY_TO(status, done, run(c, i, &t, e));
    double best = 1e9;
    for (int round = 0; round < ROUNDS && !status; round++) {
        struct plugin_call call;
        const double start = clock_seconds();
        plugin_enter(&call);
        status =
            plugin_leave(&call, i, "compute", 3, i->plugin->estimator->compute(i->self, &t.b, t.prepared, &t.out, &call.error), e);
        best = fmin(best, clock_seconds() - start);
    }
    if (!status) status = str_addf(&c->note, e, "compute on 16 x 8 rollouts: %.2f us", 1e6 * best);
done:
    plugin_destroy(i);
    return status;
}

const struct check_test CHECK_ESTIMATOR[] = {
    {"shapes", "mixed, equal, single, unclustered and no groups: whole, finite outputs inside their buffers", TARE_ESTIMATOR,
     shapes},
    {"phases", "prepare, compute, collect and record leave the state alone, and repeat", TARE_ESTIMATOR, reads_only},
    {"sums", "prepare and collect add", TARE_ESTIMATOR, adds},
    {"ranks", "1, 2 and 4 ranks give the same bits", TARE_ESTIMATOR, ranks},
    {"order", "the order of groups does not matter", TARE_ESTIMATOR, order},
    {"state", "save, load, go on: as without a break; damaged states are refused", TARE_ESTIMATOR, state},
    {"cost", "time of compute", TARE_ESTIMATOR, cost},
    {0}};
