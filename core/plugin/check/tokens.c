#include "plugin/check/tokens.h"

#include <math.h>
#include <string.h>

const char *const TOKENS_NAMES[TOKENS_SHAPES] = {"mixed advantages", "the weights that sampled", "advantages of 0", "one token"};

enum { GROUPS = 5, SIZE = 4, LONGEST = 9, MOST = GROUPS * SIZE * LONGEST, GUARD = 16, MOST_NUMBERS = 64 };

/* ---------------------------------------------------------------- minibatches */

/* Writable versions of the host's arrays in a tare_tokens. */
struct columns {
    float *logprob, *old, *sampled, *ref, *kl, *entropy;
    double *advantage, *weight;
    uint8_t *off_policy;
    int64_t *sequence_begin, *group_begin;
};

static tare_status new_columns(struct check *c, struct columns *x, struct err *e)
{
    float **const narrow[] = {&x->logprob, &x->old, &x->sampled, &x->ref, &x->kl, &x->entropy};
    for (int k = 0; k < 6; k++) TRY(arena_new(&c->arena, narrow[k], MOST, e));
    TRY(arena_new(&c->arena, &x->advantage, MOST, e));
    TRY(arena_new(&c->arena, &x->weight, MOST, e));
    TRY(arena_new(&c->arena, &x->off_policy, MOST, e));
    TRY(arena_new(&c->arena, &x->sequence_begin, GROUPS * SIZE + 1, e));
    return arena_new(&c->arena, &x->group_begin, GROUPS + 1, e);
}

/* A multiple of 1/1024 between the two, which is exact as a float, also with a small power of two
 * added. */
static float grid_value(struct check *c, double low, double high)
{
    return (float)(floor(1024 * (low + (high - low) * check_uniform(c))) / 1024);
}

static void fill_token(struct check *c, enum tokens_shape shape, int64_t t, bool trace, struct columns *x)
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

static tare_tokens show_tokens(const struct check *c, const struct columns *x, int64_t sequences, int64_t groups)
{
    const uint32_t needs = c->plugin->desc.needs;
    return (tare_tokens){.struct_size = sizeof(tare_tokens),
                         .step = 3,
                         .n = x->sequence_begin[sequences],
                         .logprob = x->logprob,
                         .detached = x->logprob,
                         .old_logprob = x->old,
                         .sampler_logprob = needs & TARE_OBJECTIVE_SAMPLER ? x->sampled : NULL,
                         .ref_logprob = needs & TARE_OBJECTIVE_REFERENCE ? x->ref : NULL,
                         .kl = needs & TARE_OBJECTIVE_KL ? x->kl : NULL,
                         .entropy = x->entropy,
                         .advantage = x->advantage,
                         .weight = x->weight,
                         .off_policy = needs & TARE_OBJECTIVE_TRACES ? x->off_policy : NULL,
                         .n_sequences = sequences,
                         .n_groups = groups,
                         .sequence_begin = x->sequence_begin,
                         .group_begin = x->group_begin};
}

tare_status tokens_batch(struct check *c, enum tokens_shape shape, struct tokens_trial *out, struct err *e)
{
    struct columns x;
    int64_t n = 0, tokens = 0;
    const int64_t groups = shape == TOKENS_ONE ? 1 : GROUPS;
    const bool traces = c->plugin->desc.needs & TARE_OBJECTIVE_TRACES && shape == TOKENS_MIXED;
    TRY(new_columns(c, &x, e));
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
            x.sequence_begin[++n] = tokens;
        }
        x.group_begin[m + 1] = n;
    }
    *out = (struct tokens_trial){.t = show_tokens(c, &x, n, groups)};
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
    if (c->plugin->desc.needs & TARE_OBJECTIVE_KL) TRY(new_numbers(c, n, 0, &out->dkl, e));
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

static tare_status check_sizes(const struct plugin_instance *i, struct tokens_trial *x, struct err *e)
{
    const tare_objective *f = i->plugin->objective;
    x->prepare_size = f->prepare_size ? f->prepare_size(i->self) : 0;
    x->collect_size = f->collect_size ? f->collect_size(i->self) : 0;
    if ((f->prepare && (x->prepare_size < 1 || x->prepare_size > MOST_NUMBERS)) || x->collect_size < 0 || x->collect_size > 1 << 20)
        FAIL(e, TARE_E_PLUGIN, "invalid prepare_size or collect_size");
    return TARE_OK;
}

/* The columns that prepare sees: logprob and entropy only with TARE_OBJECTIVE_PASS, and no kl. */
static tare_status call_prepare(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, struct err *e)
{
    const tare_objective *f = i->plugin->objective;
    const int64_t n = x->t.n * x->prepare_size;
    struct plugin_call call;
    tare_tokens t = x->t;
    if (!f->prepare) return TARE_OK;
    t.kl = NULL;
    if (!(c->plugin->desc.needs & TARE_OBJECTIVE_PASS)) t.logprob = t.detached = t.entropy = NULL;
    TRY(new_numbers(c, n, 0, &x->prepared, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "prepare", t.step, f->prepare(i->self, &t, x->prepared, &call.error), e));
    if (!guarded_buffer(x->prepared, n)) FAIL(e, TARE_E_PLUGIN, "prepare wrote outside of its buffer");
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(x->prepared[k])) FAIL(e, TARE_E_PLUGIN, "prepare: number %lld is %g", (long long)k, x->prepared[k]);
    return TARE_OK;
}

/* The tokens first, ... first + n - 1 as a block. */
static tare_tokens block_of(const struct tokens_trial *x, int64_t first, int64_t n)
{
    tare_tokens t = x->t;
    t.n = n;
    t.logprob += first;
    t.detached += first;
    t.old_logprob += first;
    t.entropy += first;
    if (t.sampler_logprob) t.sampler_logprob += first;
    if (t.ref_logprob) t.ref_logprob += first;
    if (t.kl) t.kl += first;
    if (t.off_policy) t.off_policy += first;
    t.advantage += first;
    t.weight += first;
    t.prepared = x->prepared ? x->prepared + first * x->prepare_size : NULL;
    t.n_sequences = t.n_groups = 0;
    t.sequence_begin = t.group_begin = NULL;
    return t;
}

static tare_status call_collect(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, const tare_tokens *t,
                                const tare_token_loss *loss, struct err *e)
{
    struct plugin_call call;
    double *sum;
    TRY(new_numbers(c, x->collect_size, 0, &sum, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "collect", t->step, i->plugin->objective->collect(i->self, t, loss, sum, &call.error), e));
    if (!guarded_buffer(sum, x->collect_size)) FAIL(e, TARE_E_PLUGIN, "collect wrote outside of its buffer");
    for (int64_t k = 0; k < x->collect_size; k++) {
        if (!isfinite(sum[k])) FAIL(e, TARE_E_PLUGIN, "collect: number %lld is %g", (long long)k, sum[k]);
        x->collected[k] += sum[k];
    }
    return TARE_OK;
}

static tare_status one_block(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t first, int64_t n,
                             struct err *e)
{
    struct plugin_call call;
    tare_token_loss out;
    const tare_tokens t = block_of(x, first, n);
    TRY(new_out(c, n, &out, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "compute", t.step, i->plugin->objective->compute(i->self, &t, &out, &call.error), e));
    TRY(check_out(&out, n, e));
    if (i->plugin->objective->collect) TRY(call_collect(c, i, x, &t, &out, e));
    memcpy(x->out.value + first, out.value, (size_t)n * sizeof(double));
    memcpy(x->out.dlogprob + first, out.dlogprob, (size_t)n * sizeof(double));
    memcpy(x->out.dentropy + first, out.dentropy, (size_t)n * sizeof(double));
    if (out.dkl) memcpy(x->out.dkl + first, out.dkl, (size_t)n * sizeof(double));
    memcpy(x->out.clipped + first, out.clipped, (size_t)n);
    return TARE_OK;
}

tare_status tokens_compute(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e)
{
    TRY(new_out(c, x->t.n, &x->out, e));
    TRY(arena_new(&c->arena, &x->collected, x->collect_size + 1, e));
    if (!block) block = x->t.n;
    for (int64_t first = 0; first < x->t.n; first += block)
        TRY(one_block(c, i, x, first, x->t.n - first < block ? x->t.n - first : block, e));
    return TARE_OK;
}

tare_status tokens_run(struct check *c, const struct plugin_instance *i, struct tokens_trial *x, int64_t block, struct err *e)
{
    TRY(check_sizes(i, x, e));
    TRY(call_prepare(c, i, x, e));
    return tokens_compute(c, i, x, block, e);
}

tare_status tokens_apply(const struct plugin_instance *i, const struct tokens_trial *x, struct err *e)
{
    struct plugin_call call;
    const tare_objective *f = i->plugin->objective;
    if (!f->apply) return TARE_OK;
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "apply", x->t.step, f->apply(i->self, x->t.step, x->collected, &call.error), e));
    if ((f->prepare_size && f->prepare_size(i->self) != x->prepare_size) ||
        (f->collect_size && f->collect_size(i->self) != x->collect_size))
        FAIL(e, TARE_E_PLUGIN, "prepare_size or collect_size changed in a step; the host asks once, after create");
    return TARE_OK;
}

tare_status tokens_instance(struct check *c, struct plugin_instance **out, struct err *e)
{
    TRY(check_instance(c, out, e));
    for (int step = 0; step < 3; step++) {
        struct tokens_trial x;
        TRY(tokens_batch(c, TOKENS_MIXED, &x, e));
        TRY(tokens_run(c, *out, &x, 0, e));
        TRY(tokens_apply(*out, &x, e));
    }
    return TARE_OK;
}

tare_status tokens_same(const struct tokens_trial *a, const struct tokens_trial *b, const char *what, struct err *e)
{
    const struct {
        const char *name;
        const double *was, *is;
        int64_t n;
    } columns[] = {{"values", a->out.value, b->out.value, b->t.n},
                   {"derivatives in logprob", a->out.dlogprob, b->out.dlogprob, b->t.n},
                   {"derivatives in entropy", a->out.dentropy, b->out.dentropy, b->t.n},
                   {"derivatives in KL", a->out.dkl, b->out.dkl, b->out.dkl ? b->t.n : 0},
                   {"prepared numbers", a->prepared, b->prepared, b->t.n * b->prepare_size}};
    for (int k = 0; k < 5; k++)
        for (int64_t i = 0; i < columns[k].n; i++)
            if (memcmp(&columns[k].was[i], &columns[k].is[i], sizeof(double)))
                FAIL(e, TARE_E_PLUGIN, "%s: %s: number %lld is %.17g instead of %.17g", what, columns[k].name, (long long)i,
                     columns[k].is[i], columns[k].was[i]);
    for (int64_t i = 0; i < b->t.n; i++)
        if (a->out.clipped[i] != b->out.clipped[i])
            FAIL(e, TARE_E_PLUGIN, "%s: token %lld is marked as clipped in one of two calls", what, (long long)i);
    return TARE_OK;
}
