#include "plugin/check/tokens.h"

#include <math.h>
#include <string.h>

const char *const TOKENS_NAMES[TOKENS_SHAPES] = {"mixed advantages", "the weights that sampled", "advantages of 0", "one token"};

enum { GROUPS = 5, SIZE = 4, LONGEST = 9, MOST = GROUPS * SIZE * LONGEST, GUARD = 16, MOST_NUMBERS = 64 };

/* ---------------------------------------------------------------- minibatches */

/* Writable versions of the host's arrays. */
struct arrays {
    float *logprob, *old, *sampled, *ref, *kl, *entropy;
    double *advantage, *weight;
    uint8_t *off_policy;
    int32_t *turn;
    int64_t *token_begin, *group_begin;
};

static tare_status new_arrays(struct check *c, struct arrays *x, struct err *e)
{
    float **const narrow[] = {&x->logprob, &x->old, &x->sampled, &x->ref, &x->kl, &x->entropy};
    for (int k = 0; k < 6; k++) TRY(arena_new(&c->arena, narrow[k], MOST, e));
    TRY(arena_new(&c->arena, &x->advantage, MOST, e));
    TRY(arena_new(&c->arena, &x->weight, MOST, e));
    TRY(arena_new(&c->arena, &x->off_policy, MOST, e));
    TRY(arena_new(&c->arena, &x->turn, MOST, e));
    TRY(arena_new(&c->arena, &x->token_begin, GROUPS * SIZE + 1, e));
    return arena_new(&c->arena, &x->group_begin, GROUPS + 1, e);
}

/* A multiple of 1/1024 between the two, which is exact as a float, also with a small power of two
 * added. */
static float grid_value(struct check *c, double low, double high)
{
    return (float)(floor(1024 * (low + (high - low) * check_uniform(c))) / 1024);
}

static void fill_token(struct check *c, enum tokens_shape shape, int64_t t, bool trace, struct arrays *x)
{
    const bool same = shape == TOKENS_ON_POLICY;
    x->logprob[t] = grid_value(c, -3, -0.125);
    x->old[t] = trace ? 0 : same ? x->logprob[t] : x->logprob[t] + grid_value(c, -0.75, 0.75);
    x->old[t] = fminf(x->old[t], 0);
    x->sampled[t] = trace ? 0 : same ? x->old[t] : fminf(x->old[t] + grid_value(c, -0.5, 0.5), 0);
    x->ref[t] = grid_value(c, -3, -0.125);
    x->kl[t] = grid_value(c, 0, 1);
    x->entropy[t] = grid_value(c, 0.25, 3);
    x->off_policy[t] = trace;
}

static struct tokens_trial show_arrays(const struct arrays *x, int64_t rollouts, int64_t groups)
{
    return (struct tokens_trial){.t = {.struct_size = sizeof(tare_tokens),
                                       .step = 3,
                                       .n = x->token_begin[rollouts],
                                       .logprob = x->logprob,
                                       .detached = x->logprob,
                                       .old_logprob = x->old,
                                       .entropy = x->entropy,
                                       .advantage = x->advantage,
                                       .weight = x->weight,
                                       .n_rollouts = rollouts,
                                       .n_groups = groups,
                                       .token_begin = x->token_begin,
                                       .group_begin = x->group_begin},
                                 .sampled = x->sampled,
                                 .ref = x->ref,
                                 .kl = x->kl,
                                 .off_policy = x->off_policy,
                                 .turn = x->turn};
}

static bool has_flag(const struct check *c, uint32_t flag)
{
    return c->plugin->objective->flags & flag;
}

tare_status tokens_batch(struct check *c, enum tokens_shape shape, struct tokens_trial *out, struct err *e)
{
    struct arrays x;
    int64_t n = 0, tokens = 0;
    const int64_t groups = shape == TOKENS_ONE ? 1 : GROUPS;
    const bool traces = has_flag(c, TARE_OBJECTIVE_TREATS_OFF_POLICY) && shape == TOKENS_MIXED;
    TRY(new_arrays(c, &x, e));
    for (int64_t m = 0; m < groups; m++) {
        const int64_t size = shape == TOKENS_ONE ? 1 : 1 + (int64_t)check_below(c, SIZE);
        for (int64_t i = 0; i < size; i++) {
            const int64_t length = shape == TOKENS_ONE ? 1 : 1 + (int64_t)check_below(c, LONGEST);
            const double advantage = shape == TOKENS_EQUAL       ? 0
                                     : shape == TOKENS_ON_POLICY ? (n % 2 ? -1 : 1)
                                                                 : 4 * check_uniform(c) - 2;
            for (int64_t k = 0; k < length; k++, tokens++) {
                fill_token(c, shape, tokens, traces && i == size - 1, &x);
                x.advantage[tokens] = advantage;
                x.weight[tokens] = 1 / (double)(length * size * groups);
            }
            x.token_begin[++n] = tokens;
        }
        x.group_begin[m + 1] = n;
    }
    *out = show_arrays(&x, n, groups);
    return TARE_OK;
}

/* ---------------------------------------------------------------- outputs */

static tare_status new_numbers(struct check *c, int64_t n, double fill, double **out, struct err *e)
{
    double *p;
    TRY(arena_new(&c->arena, &p, n + 2 * GUARD, e));
    for (int64_t i = 0; i < n + 2 * GUARD; i++) p[i] = i >= GUARD && i < n + GUARD ? fill : (double)NAN;
    *out = p + GUARD;
    return TARE_OK;
}

static bool guarded_buffer(const double *p, int64_t n)
{
    if (p)
        for (int64_t i = 1; i <= GUARD; i++)
            if (!isnan(p[-i]) || !isnan(p[n + i - 1])) return false;
    return true;
}

static tare_status new_out(struct check *c, int64_t n, tare_token_loss *out, struct err *e)
{
    *out = (tare_token_loss){.struct_size = sizeof *out};
    TRY(new_numbers(c, n, (double)NAN, &out->value, e));
    TRY(new_numbers(c, n, (double)NAN, &out->dlogprob, e));
    TRY(new_numbers(c, n, 0, &out->dentropy, e));
    if (has_flag(c, TARE_OBJECTIVE_GIVES_DKL)) TRY(new_numbers(c, n, 0, &out->dkl, e));
    TRY(arena_new(&c->arena, &out->clipped, n + 2 * GUARD, e));
    memset(out->clipped, 0xee, GUARD);
    memset(out->clipped + GUARD + n, 0xee, GUARD);
    out->clipped += GUARD;
    return TARE_OK;
}

static tare_status check_out(const tare_token_loss *o, int64_t n, struct err *e)
{
    bool inside = guarded_buffer(o->value, n) && guarded_buffer(o->dlogprob, n) && guarded_buffer(o->dentropy, n) &&
                  guarded_buffer(o->dkl, n);
    for (int64_t i = 1; i <= GUARD; i++) inside = inside && o->clipped[-i] == 0xee && o->clipped[n + i - 1] == 0xee;
    if (!inside) FAIL(e, TARE_E_PLUGIN, "compute wrote outside of an output buffer");
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(o->value[i]))
            FAIL(e, TARE_E_PLUGIN, "the value of token %lld of %lld is %g", (long long)i, (long long)n, o->value[i]);
        if (!isfinite(o->dlogprob[i]) || !isfinite(o->dentropy[i]) || (o->dkl && !isfinite(o->dkl[i])))
            FAIL(e, TARE_E_PLUGIN, "a derivative of token %lld of %lld is %g, %g or %g", (long long)i, (long long)n, o->dlogprob[i],
                 o->dentropy[i], o->dkl ? o->dkl[i] : 0);
        if (o->clipped[i] > 1)
            FAIL(e, TARE_E_PLUGIN, "token %lld is marked as clipped with %d: must be 0 or 1", (long long)i, o->clipped[i]);
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- phases */

static tare_status check_sizes(struct check *c, const struct plugin_instance *i, struct err *e)
{
    const tare_sizes *s = &i->sizes;
    const bool annotates = c->plugin->objective->annotate != NULL;
    if ((annotates && (s->prepare < 1 || s->prepare > MOST_NUMBERS)) || s->collect < 0 || s->collect > 1 << 20)
        FAIL(e, TARE_E_PLUGIN, "sizes gives prepare = %lld and collect = %lld; must be 1 to %d and 0 to 1048576",
             (long long)s->prepare, (long long)s->collect, MOST_NUMBERS);
    return TARE_OK;
}

static const void *column_data(const struct tokens_trial *x, int column, int64_t first, bool before)
{
    switch (column) {
    case COLUMN_SAMPLER_LOGPROB:
        return x->sampled + first;
    case COLUMN_LOSS_REF_LOGPROB:
        return x->ref + first;
    case COLUMN_KL:
        return before ? NULL : x->kl + first;
    case COLUMN_LOSS_OFF_POLICY:
        return x->off_policy + first;
    case COLUMN_LOSS_TURN:
        return x->turn + first;
    default:
        return NULL;
    }
}

tare_status tokens_view(struct check *c, const struct plugin_instance *i, const struct tokens_trial *x, struct tokens_range r,
                        tare_tokens *out, struct err *e)
{
    const tare_descriptor *d = &c->plugin->desc;
    tare_tokens t = x->t;
    tare_column *column;
    TRY(arena_new(&c->arena, &column, d->n_wants + 1, e));
    for (uint32_t w = 0; w < d->n_wants; w++) {
        const bool absent = c->no_optional && c->plugin->wants[w].flags & TARE_WANT_OPTIONAL;
        const void *data = i->wanted[w] && !absent ? column_data(x, c->plugin->column[w], r.first, r.before) : NULL;
        if (data) column[w] = (tare_column){data, r.n, 1};
    }
    t.n = r.n;
    t.column = column;
    t.logprob += r.first;
    t.detached += r.first;
    t.old_logprob += r.first;
    t.entropy += r.first;
    t.advantage += r.first;
    t.weight += r.first;
    if (r.before) {
        if (!has_flag(c, TARE_OBJECTIVE_LOOKS_AHEAD)) t.logprob = t.detached = t.entropy = NULL;
    } else {
        t.annotated = x->annotated ? x->annotated + r.first * i->sizes.prepare : NULL;
        t.n_rollouts = t.n_groups = 0;
        t.token_begin = t.group_begin = NULL;
    }
    *out = t;
    return TARE_OK;
}

static tare_status call_annotate(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, struct err *e)
{
    const tare_objective *f = i->plugin->objective;
    const int64_t n = x->t.n * i->sizes.prepare;
    struct plugin_call call;
    tare_tokens t;
    if (!f->annotate) return TARE_OK;
    TRY(tokens_view(c, i, x, (struct tokens_range){0, x->t.n, true}, &t, e));
    TRY(new_numbers(c, n, 0, &x->annotated, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "annotate", t.step, f->annotate(i->self, &t, x->annotated, &call.error), e));
    if (!guarded_buffer(x->annotated, n)) FAIL(e, TARE_E_PLUGIN, "annotate wrote outside of its buffer");
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(x->annotated[k])) FAIL(e, TARE_E_PLUGIN, "annotate: number %lld is %g", (long long)k, x->annotated[k]);
    return TARE_OK;
}

tare_status tokens_collect(struct check *c, const struct plugin_instance *i, const struct tokens_trial *x, int64_t rollout,
                           double *sum, struct err *e)
{
    const struct tokens_range r = {x->t.token_begin[rollout], x->t.token_begin[rollout + 1] - x->t.token_begin[rollout], false};
    const tare_token_loss loss = {.struct_size = sizeof loss,
                                  .value = x->out.value + r.first,
                                  .dlogprob = x->out.dlogprob + r.first,
                                  .dentropy = x->out.dentropy + r.first,
                                  .dkl = x->out.dkl ? x->out.dkl + r.first : NULL,
                                  .clipped = x->out.clipped + r.first};
    struct plugin_call call;
    tare_tokens t;
    TRY(tokens_view(c, i, x, r, &t, e));
    plugin_enter(&call);
    return plugin_leave(&call, i, "collect", t.step, i->plugin->objective->collect(i->self, &t, &loss, sum, &call.error), e);
}

/* Adds the shares of all rollouts in their order. */
static tare_status collect_all(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, struct err *e)
{
    const int64_t n = i->sizes.collect;
    double *sum;
    if (!i->plugin->objective->collect) return TARE_OK;
    for (int64_t r = 0; r < x->t.n_rollouts; r++) {
        TRY(new_numbers(c, n, 0, &sum, e));
        TRY(tokens_collect(c, i, x, r, sum, e));
        if (!guarded_buffer(sum, n)) FAIL(e, TARE_E_PLUGIN, "collect wrote outside of its buffer");
        for (int64_t k = 0; k < n; k++) {
            if (!isfinite(sum[k])) FAIL(e, TARE_E_PLUGIN, "collect: number %lld is %g", (long long)k, sum[k]);
            x->collected[k] += sum[k];
        }
    }
    return TARE_OK;
}

static tare_status one_block(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, struct tokens_range r,
                             struct err *e)
{
    const size_t bytes = (size_t)r.n * sizeof(double);
    struct plugin_call call;
    tare_token_loss out;
    tare_tokens t;
    TRY(tokens_view(c, i, x, r, &t, e));
    TRY(new_out(c, r.n, &out, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "compute", t.step, i->plugin->objective->compute(i->self, &t, &out, &call.error), e));
    TRY(check_out(&out, r.n, e));
    memcpy(x->out.value + r.first, out.value, bytes);
    memcpy(x->out.dlogprob + r.first, out.dlogprob, bytes);
    memcpy(x->out.dentropy + r.first, out.dentropy, bytes);
    if (out.dkl) memcpy(x->out.dkl + r.first, out.dkl, bytes);
    memcpy(x->out.clipped + r.first, out.clipped, (size_t)r.n);
    return TARE_OK;
}

tare_status tokens_compute(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e)
{
    TRY(new_out(c, x->t.n, &x->out, e));
    TRY(arena_new(&c->arena, &x->collected, i->sizes.collect + 1, e));
    if (!block) block = x->t.n;
    for (int64_t first = 0; first < x->t.n; first += block)
        TRY(one_block(c, i, x, (struct tokens_range){first, x->t.n - first < block ? x->t.n - first : block, false}, e));
    return collect_all(c, i, x, e);
}

tare_status tokens_run(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e)
{
    TRY(check_sizes(c, i, e));
    TRY(call_annotate(c, i, x, e));
    return tokens_compute(c, i, x, block, e);
}

static tare_status same_sizes(const struct plugin_instance *i, struct err *e)
{
    const tare_objective *f = i->plugin->objective;
    tare_sizes now = {.struct_size = sizeof now};
    struct plugin_call call;
    if (!f->sizes) return TARE_OK;
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "sizes", 3, f->sizes(i->self, &now, &call.error), e));
    if (now.prepare != i->sizes.prepare || now.collect != i->sizes.collect)
        FAIL(e, TARE_E_PLUGIN, "sizes gives other numbers after a step; the host asks once, after create");
    return TARE_OK;
}

tare_status tokens_apply(struct check *c, const struct plugin_instance *i, const struct tokens_trial *x, struct err *e)
{
    const tare_objective *f = i->plugin->objective;
    tare_update update = {.struct_size = sizeof update, .step = 3, .updates = x ? 2 : 0, .skipped = x ? 1 : 0};
    struct plugin_call call;
    double *zeros;
    if (!f->apply) return TARE_OK;
    TRY(arena_new(&c->arena, &zeros, i->sizes.collect + 1, e));
    update.collected = x ? x->collected : zeros;
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "apply", update.step, f->apply(i->self, &update, &call.error), e));
    return same_sizes(i, e);
}

tare_status tokens_instance(struct check *c, struct plugin_instance **out, struct err *e)
{
    TRY(check_instance(c, out, e));
    for (int step = 0; step < 3; step++) {
        struct tokens_trial x;
        TRY(tokens_batch(c, TOKENS_MIXED, &x, e));
        TRY(tokens_run(c, *out, &x, 0, e));
        TRY(tokens_apply(c, *out, &x, e));
    }
    return TARE_OK;
}

tare_status tokens_same(const struct plugin_instance *i, const struct tokens_trial *a, const struct tokens_trial *b,
                        const char *what, struct err *e)
{
    const int64_t annotated = b->t.n * i->sizes.prepare;
    const struct {
        const char *name;
        const double *was, *is;
        int64_t n;
    } columns[] = {{"values", a->out.value, b->out.value, b->t.n},
                   {"derivatives in logprob", a->out.dlogprob, b->out.dlogprob, b->t.n},
                   {"derivatives in entropy", a->out.dentropy, b->out.dentropy, b->t.n},
                   {"derivatives in KL", a->out.dkl, b->out.dkl, b->out.dkl ? b->t.n : 0},
                   {"collected numbers", a->collected, b->collected, i->sizes.collect},
                   {"annotated numbers", a->annotated, b->annotated, b->annotated ? annotated : 0}};
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        for (int64_t t = 0; t < columns[k].n; t++)
            if (memcmp(&columns[k].was[t], &columns[k].is[t], sizeof(double)))
                FAIL(e, TARE_E_PLUGIN, "%s: %s: number %lld is %.17g instead of %.17g", what, columns[k].name, (long long)t,
                     columns[k].is[t], columns[k].was[t]);
    for (int64_t t = 0; t < b->t.n; t++)
        if (a->out.clipped[t] != b->out.clipped[t])
            FAIL(e, TARE_E_PLUGIN, "%s: token %lld is marked as clipped in one of two calls", what, (long long)t);
    return TARE_OK;
}
