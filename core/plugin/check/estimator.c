/* Tests of estimators: the phases keep the state, outputs are complete, sums add up, and neither
 * ranks nor the order of groups matters. */
#include "plugin/check/trial.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

enum { GROUPS = 12 };

static tare_status one_shape(struct check *c, enum trial_shape shape, bool history, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct trial t = {0};
    tare_status status = history ? trial_instance(c, &i, e) : check_instance(c, &i, e);
    if (!status) status = trial_batch(c, shape, GROUPS, &t.b, e);
    if (!status) status = trial_run(c, i, &t, e);
    /* refused with a message */
    if (status == TARE_E_RANGE && (shape == TRIAL_SINGLES || shape == TRIAL_WIDE)) status = TARE_OK;
    if (!status && t.collected) status = trial_apply(i, &t, e);
    plugin_destroy(i);
    return status ? err_prefix(e, "%s", TRIAL_NAMES[shape]) : TARE_OK;
}

static bool has_optional(const struct plugin *p)
{
    for (uint32_t w = 0; w < p->desc.n_wants; w++)
        if (p->wants[w].flags & TARE_WANT_OPTIONAL) return true;
    return false;
}

static tare_status test_shapes(struct check *c, struct err *e)
{
    struct plugin_instance *i;
    TRY(trial_instance(c, &i, e));
    plugin_destroy(i);
    for (int shape = 0; shape < TRIAL_SHAPES; shape++)
        for (int history = 0; history < 2; history++) TRY(one_shape(c, (enum trial_shape)shape, history, e));
    if (!has_optional(c->plugin)) return TARE_OK;
    c->no_optional = true;
    const tare_status status = one_shape(c, TRIAL_MIXED, true, e);
    c->no_optional = false;
    /* refused with a message */
    return status == TARE_E_CONFIG || status == TARE_E_UNSUPPORTED ? TARE_OK : status;
}

/* Tests that outputs are finite with every parameter at its ends. */
static tare_status step_with(struct check *c, const tare_value *values, const char *what, struct err *e)
{
    const tare_value *mine = c->values;
    struct plugin_instance *i = NULL;
    c->values = values;
    tare_status status = check_instance(c, &i, e);
    c->values = mine;
    /* the test `parameters` checks refusals */
    if (status) return status == TARE_E_PLUGIN ? status : TARE_OK;
    for (int step = 0; step < 3 && !status; step++) {
        struct trial t = {0};
        status = trial_batch(c, step == 1 ? TRIAL_EQUAL : TRIAL_MIXED, GROUPS, &t.b, e);
        if (!status) status = trial_run(c, i, &t, e);
        if (!status) status = trial_apply(i, &t, e);
    }
    plugin_destroy(i);
    const bool said_by_plugin = status && !strncmp(e->message, "estimator ", 10) && !strstr(e->message, "and no message");
    if (said_by_plugin) return TARE_OK; /* refused with a message */
    return status ? err_prefix(e, "with %s", what) : TARE_OK;
}

static tare_status test_extremes(struct check *c, struct err *e)
{
    struct plugin_instance *i;
    TRY(trial_instance(c, &i, e));
    plugin_destroy(i);
    return check_values(c, step_with, e);
}

/* Compares the state's bytes before and after the phases, and repeats the phases. */
static tare_status test_phases(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct trial a = {0}, b = {0};
    OWNED(str_free) struct str before = {0}, after = {0};
    TRY(trial_instance(c, &i, e));
    TRY(trial_batch(c, TRIAL_MIXED, GROUPS, &a.b, e));
    b.b = a.b;
    TRY(plugin_save(i, &before, e));
    TRY(trial_run(c, i, &a, e));
    TRY(plugin_save(i, &after, e));
    if (before.size != after.size || memcmp(before.data, after.data, (size_t)before.size))
        FAIL(e, TARE_E_PLUGIN, "prepare, compute or collect changed the state; only apply may");
    TRY(trial_run(c, i, &b, e));
    return trial_same(&a, &b, "compute again on the same batch", e);
}

/* Tests that prepare and collect add to the sum they are given and read only their own group. */
static tare_status adds_to(struct check *c, const struct plugin_instance *i, const struct trial *t, struct trial_phase phase,
                           struct err *e)
{
    double *zero, *one;
    TRY(arena_new(&c->arena, &zero, phase.size + 1, e));
    TRY(arena_new(&c->arena, &one, phase.size + 1, e));
    tare_column column[TARE_LIMIT_WANTS];
    const tare_batch b = trial_show(c, i, &t->b, phase.call != i->plugin->estimator->prepare, column);
    if (phase.call)
        for (int64_t m = 0; m < t->b.n_groups; m++) {
            struct plugin_call call;
            for (int64_t k = 0; k < phase.size; k++) {
                zero[k] = 0;
                one[k] = 1;
            }
            plugin_enter(&call);
            TRY(plugin_leave(&call, i, phase.name, t->b.step, phase.call(i->self, &b, m, zero, &call.error), e));
            plugin_enter(&call);
            TRY(plugin_leave(&call, i, phase.name, t->b.step, phase.call(i->self, &b, m, one, &call.error), e));
            for (int64_t k = 0; k < phase.size; k++)
                if (!(fabs(one[k] - 1 - zero[k]) <= 1e-9 * (1 + fabs(zero[k]))))
                    FAIL(e, TARE_E_PLUGIN, "%s does not add to the sum: number %lld is %g from 0 and %g from 1", phase.name,
                         (long long)k, zero[k], one[k]);
        }
    return TARE_OK;
}

static tare_status test_sums(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct trial t = {0};
    TRY(trial_instance(c, &i, e));
    TRY(trial_batch(c, TRIAL_MIXED, 8, &t.b, e));
    TRY(trial_run(c, i, &t, e));
    const tare_estimator *f = i->plugin->estimator;
    TRY(adds_to(c, i, &t, (struct trial_phase){f->prepare, "prepare", t.prepare_size}, e));
    return adds_to(c, i, &t, (struct trial_phase){f->collect, "collect", t.collect_size}, e);
}

/* ---------------------------------------------------------------- ranks, order */

/* Compares the outputs of groups first, first + 1, ... with those of the whole batch. */
static struct trial from_group(const struct trial *t, int64_t first)
{
    struct trial part = *t;
    const int64_t rollout = t->b.group_begin[first];
    part.out.advantage += rollout;
    part.out.rollout_weight += rollout;
    part.out.baseline += first;
    part.out.scale += first;
    part.out.confidence += first;
    if (part.out.token_advantage) part.out.token_advantage += t->b.token_begin[rollout];
    return part;
}

struct share { /* indices of groups in the batch */
    int64_t first, end;
};

/* Runs one rank's groups: adds their vectors to the sums, and compares their outputs with those of
 * the whole batch. */
static tare_status one_rank(struct check *c, const struct plugin_instance *i, const struct trial *whole, struct share share,
                            struct trial *sums, struct err *e)
{
    const tare_estimator *f = i->plugin->estimator;
    int64_t groups[GROUPS];
    struct trial part = {.prepared = whole->prepared};
    const struct trial want = from_group(whole, share.first);
    for (int64_t m = share.first; m < share.end; m++) groups[m - share.first] = m;
    TRY(trial_groups(c, &whole->b, groups, share.end - share.first, &part.b, e));
    TRY(trial_add(c, i, &part, (struct trial_phase){f->prepare, "prepare", whole->prepare_size}, sums->prepared, e));
    TRY(trial_add(c, i, &part, (struct trial_phase){f->collect, "collect", whole->collect_size}, sums->collected, e));
    TRY(trial_compute(c, i, &part, e));
    TRY(trial_same_outputs(&want, &part, true, "a rank's groups", e));
    return trial_same_numbers(whole->records + share.first * whole->record_size, part.records, part.b.n_groups * part.record_size,
                              "records of a rank", e);
}

static tare_status test_ranks(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct trial whole = {0};
    TRY(trial_instance(c, &i, e));
    TRY(trial_batch(c, TRIAL_MIXED, GROUPS, &whole.b, e));
    TRY(trial_run(c, i, &whole, e));
    for (int64_t n = 2; n <= 4; n += 2) {
        struct trial sums = whole;
        TRY(arena_new(&c->arena, &sums.prepared, whole.prepare_size + 1, e));
        TRY(arena_new(&c->arena, &sums.collected, whole.collect_size + 1, e));
        for (int64_t r = 0; r < n; r++) TRY(one_rank(c, i, &whole, (struct share){r * GROUPS / n, (r + 1) * GROUPS / n}, &sums, e));
        TRY(trial_same_numbers(whole.prepared, sums.prepared, whole.prepare_size, "prepared sums over ranks", e));
        TRY(trial_same_numbers(whole.collected, sums.collected, whole.collect_size, "collected sums over ranks", e));
    }
    return TARE_OK;
}

/* Tests that another order of the groups gives equal outputs, up to the rounding of the sums. */
static tare_status test_order(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct trial a = {0}, b = {0};
    int64_t backwards[GROUPS];
    for (int64_t m = 0; m < GROUPS; m++) backwards[m] = GROUPS - 1 - m;
    TRY(trial_instance(c, &i, e));
    TRY(trial_batch(c, TRIAL_MIXED, GROUPS, &a.b, e));
    TRY(trial_run(c, i, &a, e));
    TRY(trial_groups(c, &a.b, backwards, GROUPS, &b.b, e));
    TRY(trial_run(c, i, &b, e));
    for (int64_t m = 0; m < GROUPS; m++) {
        const struct trial was = from_group(&a, backwards[m]);
        struct trial is = from_group(&b, m);
        is.b.n_groups = 1;
        is.b.n_rollouts = b.b.group_begin[m + 1] - b.b.group_begin[m];
        is.b.n_tokens = b.b.token_begin[b.b.group_begin[m + 1]] - b.b.token_begin[b.b.group_begin[m]];
        TRY(trial_same_outputs(&was, &is, false, "groups in another order", e));
    }
    if (a.out.extra_groups != b.out.extra_groups)
        FAIL(e, TARE_E_PLUGIN, "groups in another order: extra_groups changed to %lld from %lld", (long long)b.out.extra_groups,
             (long long)a.out.extra_groups);
    return TARE_OK;
}

/* ---------------------------------------------------------------- context tokens */

/* Copies a batch without its context tokens. */
static tare_status remove_context(struct check *c, const tare_batch *from, tare_batch *out, struct err *e)
{
    int64_t *token_begin, *act_begin, *act_end, *to; /* to: [T+1] the token's new index */
    tare_column *column;
    const uint32_t wants = c->plugin->desc.n_wants;
    TRY(arena_new(&c->arena, &to, from->n_tokens + 1, e));
    TRY(arena_new(&c->arena, &token_begin, from->n_rollouts + 1, e));
    TRY(arena_new(&c->arena, &act_begin, from->n_turns + 1, e));
    TRY(arena_new(&c->arena, &act_end, from->n_turns + 1, e));
    TRY(arena_new(&c->arena, &column, wants + 1, e));
    for (int64_t t = 0; t < from->n_tokens; t++) to[t + 1] = to[t] + from->sampled[t];
    for (int64_t i = 0; i <= from->n_rollouts; i++) token_begin[i] = to[from->token_begin[i]];
    for (int64_t u = 0; u < from->n_turns; u++) {
        act_begin[u] = to[from->act_begin[u]];
        act_end[u] = to[from->act_end[u]];
    }
    *out = *from;
    out->token_begin = token_begin;
    out->act_begin = act_begin;
    out->act_end = act_end;
    out->n_tokens = to[from->n_tokens];
    out->column = column;
    uint8_t *sampled;
    TRY(arena_new(&c->arena, &sampled, out->n_tokens + 1, e));
    memset(sampled, 1, (size_t)out->n_tokens);
    out->sampled = sampled;
    for (uint32_t w = 0; w < wants; w++) {
        char *data;
        column[w] = from->column[w];
        if (c->plugin->wants[w].axis != TARE_AXIS_TOKEN || !column[w].data) continue;
        const int64_t size = column_type_size(c->plugin->wants[w].type) * column[w].width;
        TRY(arena_new(&c->arena, &data, out->n_tokens * size + 1, e));
        for (int64_t t = 0; t < from->n_tokens; t++)
            if (from->sampled[t]) memcpy(data + to[t] * size, (const char *)from->column[w].data + t * size, (size_t)size);
        column[w].data = data;
        column[w].n = out->n_tokens;
    }
    return TARE_OK;
}

/* Compares the outputs of a batch with those of its copy without context tokens. */
static tare_status same_without_context(const struct trial *with, const struct trial *without, struct err *e)
{
    struct trial a = *with, b = *without;
    a.out.token_advantage = b.out.token_advantage = NULL;
    TRY(trial_same_outputs(&a, &b, true, "without its context tokens", e));
    if (!with->out.token_advantage) return TARE_OK;
    for (int64_t t = 0, k = 0; t < with->b.n_tokens; t++) {
        if (!with->b.sampled[t]) continue;
        const float was = with->out.token_advantage[t], is = without->out.token_advantage[k++];
        if (memcmp(&was, &is, sizeof was))
            FAIL(e, TARE_E_PLUGIN, "without its context tokens: the advantage of token %lld is %.9g instead of %.9g", (long long)t,
                 (double)is, (double)was);
    }
    return TARE_OK;
}

/* Tests that context tokens, whatever their columns contain, do not move a result. */
static tare_status test_context(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct trial with = {0}, absurd = {0}, without = {0};
    TRY(trial_instance(c, &i, e));
    TRY(trial_batch(c, TRIAL_TURNS, GROUPS, &with.b, e));
    TRY(trial_absurd(c, &with.b, &absurd.b, e));
    TRY(remove_context(c, &with.b, &without.b, e));
    TRY(trial_run(c, i, &with, e));
    TRY(trial_run(c, i, &absurd, e));
    TRY(trial_same(&with, &absurd, "absurd columns of the context tokens", e));
    TRY(trial_run(c, i, &without, e));
    return same_without_context(&with, &without, e);
}

/* ---------------------------------------------------------------- state */

/* Runs two instances with equal states on equal batches. */
static tare_status compare_pair(struct check *c, struct plugin_instance *a, struct plugin_instance *b, struct err *e)
{
    for (int step = 0; step < 3; step++) {
        struct trial p = {0}, q = {0};
        TRY(trial_batch(c, TRIAL_MIXED, 9, &p.b, e));
        q.b = p.b;
        TRY(trial_run(c, a, &p, e));
        TRY(trial_run(c, b, &q, e));
        TRY(trial_same(&p, &q, "after save and load", e));
        TRY(trial_apply(a, &p, e));
        TRY(trial_apply(b, &q, e));
    }
    return TARE_OK;
}

static tare_status test_state(struct check *c, struct err *e)
{
    if (!c->plugin->estimator->save) return check_skip(c, e, "the plugin has no state");
    return check_state(c, trial_instance, compare_pair, e);
}

static tare_status test_compute_cost(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct trial t = {0};
    enum { ROUNDS = 2000 };
    double best = 1e9;
    TRY(trial_instance(c, &i, e));
    TRY(trial_batch(c, TRIAL_MIXED, 16, &t.b, e));
    TRY(trial_run(c, i, &t, e));
    tare_column column[TARE_LIMIT_WANTS];
    const tare_batch b = trial_show(c, i, &t.b, false, column);
    check_watch(c, false);
    for (int round = 0; round < ROUNDS; round++) {
        struct plugin_call call;
        const double start = clock_seconds();
        plugin_enter(&call);
        TRY(plugin_leave(&call, i, "compute", 3, i->plugin->estimator->compute(i->self, &b, t.prepared, &t.out, &call.error), e));
        best = fmin(best, clock_seconds() - start);
    }
    check_watch(c, true);
    return str_addf(&c->note, e, "compute on 16 groups of at most 8 rollouts: %.2f us", 1e6 * best);
}

const struct check_test CHECK_ESTIMATOR[] = {
    {"shapes",
     "outputs are complete, finite and inside their buffers for mixed, equal, single, unclustered and no groups, wide rewards and several turns",
     TARE_KIND_ESTIMATOR, test_shapes},
    {"extremes", "outputs are finite with every parameter at its ends", TARE_KIND_ESTIMATOR, test_extremes},
    {"phases", "prepare, compute, collect and record do not change the state, and repeat their results", TARE_KIND_ESTIMATOR,
     test_phases},
    {"sums", "prepare and collect add to the sum", TARE_KIND_ESTIMATOR, test_sums},
    {"ranks", "1, 2 and 4 ranks give identical bits", TARE_KIND_ESTIMATOR, test_ranks},
    {"order", "the order of groups does not matter", TARE_KIND_ESTIMATOR, test_order},
    {"context", "context tokens do not move the results, whatever their columns contain", TARE_KIND_ESTIMATOR, test_context},
    {"state", "save and load continue as without a break; damaged states are refused", TARE_KIND_ESTIMATOR, test_state},
    {"cost", "time of compute", TARE_KIND_ESTIMATOR, test_compute_cost},
    {0}};
