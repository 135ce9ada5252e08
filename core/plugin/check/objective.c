/* Tests of objectives: outputs are complete, derivatives match the values, a token's outcome does
 * not depend on other tokens, and the phases keep the state. */
#include "plugin/check/tokens.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

static tare_status test_shapes(struct check *c, struct err *e)
{
    for (int shape = 0; shape < TOKENS_SHAPES; shape++)
        for (int history = 0; history < 2; history++) {
            struct plugin_instance *i = NULL;
            struct tokens_trial x;
            tare_status status = history ? tokens_instance(c, &i, e) : check_instance(c, &i, e);
            if (!status) status = tokens_batch(c, (enum tokens_shape)shape, &x, e);
            if (!status) status = tokens_run(c, i, &x, 0, e);
            if (!status) status = tokens_apply(c, i, &x, e);
            if (!status) status = tokens_apply(c, i, NULL, e); /* a step without groups */
            if (!status) status = tokens_run(c, i, &x, 0, e);
            plugin_destroy(i);
            if (status) return err_prefix(e, "%s", TOKENS_NAMES[shape]);
        }
    return TARE_OK;
}

/* ---------------------------------------------------------------- derivatives */

/* h: the columns are multiples of 1/1024, so x + h and x - h are exact in single precision. */
static const double H = 1.0 / 8192;

/* A copy of a column, moved by a step. */
static tare_status move_column(struct check *c, const float *column, int64_t n, double step, const float **out, struct err *e)
{
    float *x;
    TRY(arena_new(&c->arena, &x, n, e));
    for (int64_t i = 0; i < n; i++) x[i] = (float)((double)column[i] + step);
    *out = x;
    return TARE_OK;
}

/* Compares the derivative with the difference over 2h, or at a kink with the difference on either
 * side. */
static bool is_slope(double derivative, const double value[3])
{
    const double slopes[3] = {(value[2] - value[0]) / (2 * H), (value[2] - value[1]) / H, (value[1] - value[0]) / H};
    for (int k = 0; k < 3; k++)
        if (fabs(derivative - slopes[k]) <= 1e-3 * fabs(slopes[k]) + 1e-6) return true;
    return false;
}

static tare_status check_slopes(struct check *c, const struct plugin_instance *i, const struct tokens_trial *x, int which,
                                struct err *e)
{
    static const char *const NAMES[] = {"logprob", "entropy", "KL"};
    const float *const columns[] = {x->t.logprob, x->t.entropy, x->kl};
    const double *const derivatives[] = {x->out.dlogprob, x->out.dentropy, x->out.dkl};
    struct tokens_trial side[2] = {*x, *x};
    for (int s = 0; s < 2; s++) {
        const float **const column[] = {&side[s].t.logprob, &side[s].t.entropy, &side[s].kl};
        TRY(move_column(c, columns[which], x->t.n, s ? H : -H, column[which], e));
        TRY(tokens_compute(c, i, &side[s], 0, e));
    }
    for (int64_t t = 0; t < x->t.n; t++) {
        const double value[3] = {side[0].out.value[t], x->out.value[t], side[1].out.value[t]}, d = derivatives[which][t];
        if (is_slope(d, value)) continue;
        FAIL(
            e, TARE_E_PLUGIN,
            "the derivative of token %lld in %s is %.9g, but the value changes by %.9g per unit (logprob %g, old %g, advantage %g; a factor without a gradient is computed from `detached`)",
            (long long)t, NAMES[which], d, (value[2] - value[0]) / (2 * H), (double)x->t.logprob[t], (double)x->t.old_logprob[t],
            x->t.advantage[t]);
    }
    return TARE_OK;
}

static tare_status test_gradient(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    TRY(tokens_instance(c, &i, e));
    for (int round = 0; round < 10; round++) {
        struct tokens_trial x;
        TRY(tokens_batch(c, round % 2 ? TOKENS_ON_POLICY : TOKENS_MIXED, &x, e));
        TRY(tokens_run(c, i, &x, 0, e));
        for (int which = 0; which < (x.out.dkl ? 3 : 2); which++) TRY(check_slopes(c, i, &x, which, e));
    }
    return TARE_OK;
}

/* On-policy, a token with a positive advantage may not become less likely, nor one with a negative
 * advantage more likely. */
static tare_status test_direction(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct tokens_trial x;
    int64_t moving = 0;
    TRY(check_instance(c, &i, e));
    TRY(tokens_batch(c, TOKENS_ON_POLICY, &x, e));
    TRY(tokens_run(c, i, &x, 0, e));
    for (int64_t t = 0; t < x.t.n; t++) {
        if (x.out.dlogprob[t] * x.t.advantage[t] > 0)
            FAIL(
                e, TARE_E_PLUGIN,
                "a token with the advantage %g has the derivative %g: the loss is minimised, so the policy would move away from it",
                x.t.advantage[t], x.out.dlogprob[t]);
        moving += x.out.dlogprob[t] != 0;
    }
    if (!moving) FAIL(e, TARE_E_PLUGIN, "no token has an on-policy derivative, so nothing is learned");
    return TARE_OK;
}

/* TARE_OBJECTIVE_ZERO_AT_ZERO is a promise: the host leaves such tokens out of the update. */
static tare_status test_zero(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct tokens_trial x;
    if (!(c->plugin->objective->flags & TARE_OBJECTIVE_ZERO_AT_ZERO))
        return check_skip(c, e, "without TARE_OBJECTIVE_ZERO_AT_ZERO every token is computed");
    TRY(tokens_instance(c, &i, e));
    TRY(tokens_batch(c, TOKENS_MIXED, &x, e));
    double *advantage;
    TRY(arena_new(&c->arena, &advantage, x.t.n, e));
    for (int64_t t = 0; t < x.t.n; t++) advantage[t] = t % 2 ? x.t.advantage[t] : 0;
    x.t.advantage = advantage;
    TRY(tokens_run(c, i, &x, 0, e));
    for (int64_t t = 0; t < x.t.n; t += 2) {
        const double dkl = x.out.dkl ? x.out.dkl[t] : 0;
        if (x.out.value[t] == 0 && x.out.dlogprob[t] == 0 && x.out.dentropy[t] == 0 && dkl == 0) continue;
        FAIL(
            e, TARE_E_PLUGIN,
            "TARE_OBJECTIVE_ZERO_AT_ZERO is set, but token %lld with the advantage 0 has the value %g and the derivatives %g (logprob), %g (entropy), %g (KL)",
            (long long)t, x.out.value[t], x.out.dlogprob[t], x.out.dentropy[t], dkl);
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- blocks, phases */

static tare_status test_blocks(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct tokens_trial whole;
    TRY(tokens_instance(c, &i, e));
    TRY(tokens_batch(c, TOKENS_MIXED, &whole, e));
    TRY(tokens_run(c, i, &whole, 0, e));
    for (int64_t block = 1; block <= 7; block += 3) {
        struct tokens_trial cut = whole;
        TRY(tokens_run(c, i, &cut, block, e));
        TRY(tokens_same(i, &whole, &cut, "in smaller blocks", e));
    }
    return TARE_OK;
}

static tare_status test_phases(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct tokens_trial a, b;
    OWNED(str_free) struct str before = {0}, after = {0};
    TRY(tokens_instance(c, &i, e));
    TRY(tokens_batch(c, TOKENS_MIXED, &a, e));
    b = a;
    TRY(plugin_save(i, &before, e));
    TRY(tokens_run(c, i, &a, 0, e));
    TRY(plugin_save(i, &after, e));
    if (before.size != after.size || memcmp(before.data, after.data, (size_t)before.size))
        FAIL(e, TARE_E_PLUGIN, "annotate, compute or collect changed the state; only apply may");
    TRY(tokens_run(c, i, &b, 0, e));
    return tokens_same(i, &a, &b, "again on the same minibatch", e);
}

static tare_status test_sums(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct tokens_trial x;
    double *zero, *one;
    if (!c->plugin->objective->collect) return check_skip(c, e, "the plugin collects nothing");
    TRY(tokens_instance(c, &i, e));
    TRY(tokens_batch(c, TOKENS_MIXED, &x, e));
    TRY(tokens_run(c, i, &x, 0, e));
    const int64_t n = i->sizes.collect;
    TRY(arena_new(&c->arena, &zero, n + 1, e));
    TRY(arena_new(&c->arena, &one, n + 1, e));
    for (int64_t k = 0; k < n; k++) one[k] = 1;
    TRY(tokens_collect(c, i, &x, 0, zero, e));
    TRY(tokens_collect(c, i, &x, 0, one, e));
    for (int64_t k = 0; k < n; k++)
        if (!(fabs(one[k] - 1 - zero[k]) <= 1e-9 * (1 + fabs(zero[k]))))
            FAIL(e, TARE_E_PLUGIN, "collect does not add to the sum: number %lld is %g from 0 and %g from 1", (long long)k, zero[k],
                 one[k]);
    return TARE_OK;
}

/* ---------------------------------------------------------------- parameters, state, cost */

static tare_status step_with(struct check *c, const tare_value *values, const char *what, struct err *e)
{
    const tare_value *mine = c->values;
    struct plugin_instance *i = NULL;
    c->values = values;
    tare_status status = check_instance(c, &i, e);
    c->values = mine;
    /* the test `parameters` checks refusals */
    if (status) return status == TARE_E_PLUGIN ? status : TARE_OK;
    for (int step = 0; step < 2 && !status; step++) {
        struct tokens_trial x;
        status = tokens_batch(c, step ? TOKENS_EQUAL : TOKENS_MIXED, &x, e);
        if (!status) status = tokens_run(c, i, &x, 0, e);
        if (!status) status = tokens_apply(c, i, &x, e);
    }
    plugin_destroy(i);
    const bool said_by_plugin = status && !strncmp(e->message, "objective ", 10) && !strstr(e->message, "and no message");
    return status && !said_by_plugin ? err_prefix(e, "with %s", what) : TARE_OK;
}

static tare_status test_extremes(struct check *c, struct err *e)
{
    return check_values(c, step_with, e);
}

static tare_status compare_pair(struct check *c, struct plugin_instance *a, struct plugin_instance *b, struct err *e)
{
    for (int step = 0; step < 3; step++) {
        struct tokens_trial p, q;
        TRY(tokens_batch(c, TOKENS_MIXED, &p, e));
        q = p;
        TRY(tokens_run(c, a, &p, 0, e));
        TRY(tokens_run(c, b, &q, 0, e));
        TRY(tokens_same(a, &p, &q, "after save and load", e));
        TRY(tokens_apply(c, a, &p, e));
        TRY(tokens_apply(c, b, &q, e));
    }
    return TARE_OK;
}

static tare_status test_state(struct check *c, struct err *e)
{
    if (!c->plugin->objective->save) return check_skip(c, e, "the plugin has no state");
    return check_state(c, tokens_instance, compare_pair, e);
}

static tare_status test_token_cost(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct tokens_trial x;
    struct plugin_call call;
    double best = 1e9;
    TRY(tokens_instance(c, &i, e));
    TRY(tokens_batch(c, TOKENS_MIXED, &x, e));
    TRY(tokens_run(c, i, &x, 0, e));
    tare_tokens t;
    TRY(tokens_view(c, i, &x, (struct tokens_range){0, x.t.n, false}, &t, e));
    check_watch(c, false);
    for (int round = 0; round < 2000; round++) {
        const double start = clock_seconds();
        plugin_enter(&call);
        TRY(plugin_leave(&call, i, "compute", 3, i->plugin->objective->compute(i->self, &t, &x.out, &call.error), e));
        best = fmin(best, clock_seconds() - start);
    }
    check_watch(c, true);
    return str_addf(&c->note, e, "compute: %.1f ns a token", 1e9 * best / (double)t.n);
}

const struct check_test CHECK_OBJECTIVE[] = {
    {"shapes",
     "outputs are complete, finite and inside their buffers for mixed and on-policy tokens, zero advantages and one token",
     TARE_KIND_OBJECTIVE, test_shapes},
    {"gradient", "the derivatives match finite differences of the values", TARE_KIND_OBJECTIVE, test_gradient},
    {"direction", "on-policy, advantages move the policy in the right direction", TARE_KIND_OBJECTIVE, test_direction},
    {"zero", "with ZERO_AT_ZERO, tokens without an advantage have the value and derivatives 0", TARE_KIND_OBJECTIVE, test_zero},
    {"blocks", "blocks of 1, 4 and 7 tokens give identical bits", TARE_KIND_OBJECTIVE, test_blocks},
    {"extremes", "outputs are finite with every parameter at its ends", TARE_KIND_OBJECTIVE, test_extremes},
    {"phases", "annotate, compute and collect do not change the state, and repeat their results", TARE_KIND_OBJECTIVE, test_phases},
    {"sums", "collect adds to the sum", TARE_KIND_OBJECTIVE, test_sums},
    {"state", "save and load continue as without a break; damaged states are refused", TARE_KIND_OBJECTIVE, test_state},
    {"cost", "time of compute", TARE_KIND_OBJECTIVE, test_token_cost},
    {0}};
