#include "update/objective.h"
#include "update/columns.h"

#include "batch/turns.h"

#include <math.h>
#include <string.h>

enum { MOST_NUMBERS = 64, MOST_COLLECTED = 1 << 20 };

/* Tokens as the plugin gets them, each column contiguous, and its outputs. */
struct buffers {
    float *logprob, *old, *kl, *entropy;
    double *advantage, *weight, *annotated;
    double *value, *dlogprob, *dentropy, *dkl;
    uint8_t *clipped;
    int64_t *token; /* index into the batch's tokens */
    int64_t *at;    /* index in the host's block */
    int64_t *token_begin, *group_begin;
};

/* What collect sees of a token after its compute: [T] of the batch. */
struct outcomes {
    float *logprob, *entropy, *kl;
    double *value, *dlogprob, *dentropy, *dkl;
    uint8_t *clipped;
    int64_t *computed; /* [N] tokens of a rollout computed since its last collect */
};

struct objective {
    struct plugin_instance *instance;
    const tare_objective *call;
    int64_t n_annotated, n_collected;
    double *collected;     /* [n_collected] of the step */
    const struct batch *b; /* of this step, like columns, annotated and outcomes */
    struct objective_columns columns;
    double *annotated; /* [T, n_annotated] */
    struct outcomes outcomes;
    bool any_trace;
    struct arena own, step, block;
};

/* ---------------------------------------------------------------- life */

bool objective_wants(const struct objective *o, enum column_id column)
{
    return plugin_wants(o->instance, column);
}

static bool has_flag(const struct objective *o, uint32_t flag)
{
    return o->call->flags & flag;
}

bool objective_treats_off_policy(const struct objective *o)
{
    return has_flag(o, TARE_OBJECTIVE_TREATS_OFF_POLICY);
}

bool objective_zero_at_zero(const struct objective *o)
{
    return has_flag(o, TARE_OBJECTIVE_ZERO_AT_ZERO) && !o->call->collect;
}

struct objective_uses objective_uses(const struct objective *o)
{
    return (struct objective_uses){.looks_ahead = o->call->annotate && has_flag(o, TARE_OBJECTIVE_LOOKS_AHEAD),
                                   .ref_logprob = objective_wants(o, COLUMN_LOSS_REF_LOGPROB),
                                   .kl = objective_wants(o, COLUMN_KL)};
}

const struct plugin *objective_plugin(const struct objective *o)
{
    return o->instance->plugin;
}

const struct plugin_instance *objective_instance(const struct objective *o)
{
    return o->instance;
}

int64_t objective_collects(const struct objective *o)
{
    return o->call->collect ? o->n_collected : 0;
}

static const char *objective_name(const struct objective *o)
{
    return o->instance->plugin->desc.name;
}

void objective_free(struct objective *o)
{
    if (!o) return;
    plugin_destroy(o->instance);
    arena_free(&o->own);
    arena_free(&o->step);
    arena_free(&o->block);
    mem_free(o);
}

/* Refuses an importance weight between sampler and old policy that would be 1 everywhere (both are
 * the same column) or applied twice (the host has one too). */
static tare_status check_sampler(const struct objective *o, const struct loss_config *c, struct err *e)
{
    const struct plugin *p = o->instance->plugin;
    bool required = false;
    if (!objective_wants(o, COLUMN_SAMPLER_LOGPROB)) return TARE_OK;
    for (uint32_t w = 0; w < p->desc.n_wants; w++)
        required = required || (p->column[w] == COLUMN_SAMPLER_LOGPROB && !(p->wants[w].flags & TARE_WANT_OPTIONAL));
    if (required && c->old_logprobs == OLD_SAMPLER)
        FAIL(
            e, TARE_E_CONFIG,
            "objective %s compares the logprobs recorded while sampling with those of the update; set loss.old_logprobs = recompute",
            objective_name(o));
    if (c->rollout_is != ROLLOUT_IS_NONE)
        FAIL(e, TARE_E_CONFIG, "objective %s weighs by the sampler's probabilities itself; set loss.rollout_is = none",
             objective_name(o));
    return TARE_OK;
}

static tare_status check_sizes(const struct objective *o, struct err *e)
{
    if (o->call->annotate && (o->n_annotated < 1 || o->n_annotated > MOST_NUMBERS))
        FAIL(e, TARE_E_PLUGIN, "objective %s: sizes: prepare = %lld: must be 1 to %d", objective_name(o), (long long)o->n_annotated,
             MOST_NUMBERS);
    if (o->n_collected < 0 || o->n_collected > MOST_COLLECTED)
        FAIL(e, TARE_E_PLUGIN, "objective %s: sizes: collect = %lld: must be 0 to %d", objective_name(o), (long long)o->n_collected,
             MOST_COLLECTED);
    if (has_flag(o, TARE_OBJECTIVE_GIVES_DKL) && !objective_wants(o, COLUMN_KL))
        FAIL(e, TARE_E_PLUGIN, "objective %s: writes the derivative by the column kl, which it does not want", objective_name(o));
    return TARE_OK;
}

static tare_status open_plugin(struct objective *o, const struct objective_options *x, struct err *e)
{
    const struct loss_config *l = x->loss;
    const tare_loss loss = {.struct_size = sizeof loss,
                            .clip = l->clip,
                            .clip_high = l->clip_high > 0 ? l->clip_high : l->clip,
                            .dual_clip = l->dual_clip,
                            .kl_coef = l->kl_coef,
                            .entropy_coef = l->entropy_coef,
                            .shaping = l->shaping};
    struct plugin_env env = x->env;
    env.loss = &loss;
    TRY(plugin_new(&(struct plugin_wanted){x->plugin, TARE_KIND_OBJECTIVE, x->search, x->settings, 0, &env}, &o->instance, e));
    o->call = o->instance->plugin->objective;
    o->n_annotated = o->call->annotate ? o->instance->sizes.prepare : 0;
    o->n_collected = o->instance->sizes.collect;
    TRY(check_sizes(o, e));
    TRY(arena_new(&o->own, &o->collected, o->n_collected + 1, e));
    return check_sampler(o, l, e);
}

tare_status objective_open(const struct objective_options *x, struct objective **out, struct err *e)
{
    struct objective *o;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *o, (void **)&o, e));
    arena_init(&o->own, "objective");
    arena_init(&o->step, "a step of the objective");
    arena_init(&o->block, "a block of the objective");
    const tare_status status = open_plugin(o, x, e);
    if (status) {
        objective_free(o);
        return status;
    }
    *out = o;
    return TARE_OK;
}

/* Opens a plugin of the configuration, and finds the columns that it wants with its values. */
struct configured {
    const struct plugin *plugin;
    uint8_t wanted[TARE_LIMIT_WANTS];
};

static tare_status read_wants(const struct config *c, const char *name, int32_t kind, struct configured *out, struct err *e)
{
    OWNED(arena_free) struct arena a = {0};
    const struct plugin_search search = {.folder = c->run.plugins};
    const tare_value *values;
    arena_init(&a, "parameters");
    TRY(err_as_config(plugin_open(name, kind, &search, &out->plugin, e), e));
    TRY(plugin_params(out->plugin, c->params, &a, &values, e));
    return plugin_select(out->plugin, values, out->wanted, e);
}

static bool is_wanted(const struct configured *x, enum column_id column)
{
    for (uint32_t w = 0; w < x->plugin->desc.n_wants; w++)
        if (x->wanted[w] && x->plugin->column[w] == column) return true;
    return false;
}

tare_status objective_read_uses(const struct config *c, struct objective_uses *out, struct err *e)
{
    struct configured objective, estimator;
    TRY(read_wants(c, c->objective.plugin, TARE_KIND_OBJECTIVE, &objective, e));
    TRY(read_wants(c, c->estimator.plugin, TARE_KIND_ESTIMATOR, &estimator, e));
    const tare_objective *call = objective.plugin->objective;
    *out = (struct objective_uses){.looks_ahead = call->annotate && (call->flags & TARE_OBJECTIVE_LOOKS_AHEAD),
                                   .ref_logprob =
                                       is_wanted(&objective, COLUMN_LOSS_REF_LOGPROB) || is_wanted(&estimator, COLUMN_REF_LOGPROB),
                                   .kl = is_wanted(&objective, COLUMN_KL)};
    return TARE_OK;
}

/* ---------------------------------------------------------------- a step */

void objective_forget(struct objective *o)
{
    memset(o->collected, 0, (size_t)o->n_collected * sizeof *o->collected);
}

static tare_status outcomes_new(struct objective *o, struct err *e)
{
    struct outcomes *x = &o->outcomes;
    struct arena *a = &o->step;
    const int64_t n = o->b->n_tokens;
    *x = (struct outcomes){0};
    if (!objective_collects(o)) return TARE_OK;
    TRY(arena_new_raw(a, &x->logprob, n, e));
    TRY(arena_new_raw(a, &x->entropy, n, e));
    if (objective_wants(o, COLUMN_KL)) TRY(arena_new_raw(a, &x->kl, n, e));
    TRY(arena_new_raw(a, &x->value, n, e));
    TRY(arena_new_raw(a, &x->dlogprob, n, e));
    TRY(arena_new_raw(a, &x->dentropy, n, e));
    if (has_flag(o, TARE_OBJECTIVE_GIVES_DKL)) TRY(arena_new_raw(a, &x->dkl, n, e));
    TRY(arena_new_raw(a, &x->clipped, n, e));
    return arena_new(a, &x->computed, o->b->n_rollouts, e);
}

tare_status objective_begin(struct objective *o, const struct batch *b, const struct objective_columns *columns, struct err *e)
{
    arena_reset(&o->step);
    o->b = b;
    o->columns = *columns;
    o->any_trace = false;
    if (b->off_policy)
        for (int64_t i = 0; i < b->n_rollouts; i++) o->any_trace = o->any_trace || b->off_policy[i];
    TRY(outcomes_new(o, e));
    return arena_new(&o->step, &o->annotated, b->n_tokens * o->n_annotated + 1, e);
}

static bool is_trace(const struct objective *o, int64_t token)
{
    return o->any_trace && o->b->off_policy[o->columns.owner[token]];
}

/* Returns whether the plugin sees a token. The host handles the traces if the objective does
 * not. */
static bool is_shown(const struct objective *o, int64_t token)
{
    return objective_treats_off_policy(o) || !is_trace(o, token);
}

static tare_status buffers_new(struct objective *o, int64_t n, struct buffers *x, struct err *e)
{
    struct arena *a = &o->block;
    arena_reset(a);
    *x = (struct buffers){0};
    TRY(arena_new_raw(a, &x->logprob, n, e));
    TRY(arena_new_raw(a, &x->entropy, n, e));
    TRY(arena_new_raw(a, &x->old, n, e));
    if (objective_wants(o, COLUMN_KL)) TRY(arena_new_raw(a, &x->kl, n, e));
    TRY(arena_new_raw(a, &x->advantage, n, e));
    TRY(arena_new_raw(a, &x->weight, n, e));
    TRY(arena_new_raw(a, &x->token, n, e));
    return arena_new_raw(a, &x->at, n, e);
}

/* Makes the plugin's view of the n tokens of x->token; logprob, entropy and kl are filled.
 * before: in annotate. */
static tare_status show_tokens(struct objective *o, struct buffers *x, int64_t n, bool before, tare_tokens *out, struct err *e)
{
    const struct batch *b = o->b;
    const int64_t k = o->n_annotated;
    const struct loss_tokens tokens = {b, x->token, n, o->columns.owner, o->columns.sampled, x->kl, before};
    if (k && !before) TRY(arena_new_raw(&o->block, &x->annotated, n * k + 1, e));
    for (int64_t i = 0; i < n; i++) {
        const int64_t t = x->token[i];
        x->old[i] = o->columns.old[t];
        x->advantage[i] = b->token_advantage ? (double)b->token_advantage[t] : b->advantage[o->columns.owner[t]];
        x->weight[i] = o->columns.weight[t];
        if (x->annotated) memcpy(x->annotated + i * k, o->annotated + t * k, (size_t)k * sizeof *x->annotated);
    }
    *out = (tare_tokens){.struct_size = sizeof *out,
                         .step = b->step,
                         .n = n,
                         .logprob = x->logprob,
                         .detached = x->logprob,
                         .old_logprob = x->old,
                         .entropy = x->entropy,
                         .advantage = x->advantage,
                         .weight = x->weight,
                         .annotated = x->annotated};
    return update_columns(o->instance, &tokens, &o->block, &out->column, e);
}

/* ---------------------------------------------------------------- annotate */

/* Selects the minibatch's rollouts with a positive weight, group by group; x->token receives their
 * tokens. Returns the number of tokens. */
static int64_t select_groups(const struct objective *o, const int64_t *groups, int64_t n, struct buffers *x, tare_tokens *v)
{
    const struct batch *b = o->b;
    int64_t tokens = 0;
    for (int64_t g = 0; g < n; g++) {
        const int64_t before = v->n_rollouts;
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) {
            if (!(b->rollout_weight[i] > 0) || !is_shown(o, b->token_begin[i])) continue;
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
                if (batch_is_sampled(b, t)) x->token[tokens++] = t;
            x->token_begin[++v->n_rollouts] = tokens;
        }
        if (v->n_rollouts > before) x->group_begin[++v->n_groups] = v->n_rollouts;
    }
    return tokens;
}

static tare_status keep_annotated(struct objective *o, const struct buffers *x, const double *out, int64_t tokens, struct err *e)
{
    const int64_t k = o->n_annotated;
    for (int64_t i = 0; i < tokens * k; i++)
        if (!isfinite(out[i]))
            FAIL(e, TARE_E_NOT_FINITE, "objective %s: annotate, step %lld: number %lld of a token of rollout %lld is %g",
                 objective_name(o), (long long)o->b->step, (long long)(i % k), (long long)o->columns.owner[x->token[i / k]],
                 out[i]);
    for (int64_t i = 0; i < tokens; i++) memcpy(o->annotated + x->token[i] * k, out + i * k, (size_t)k * sizeof *out);
    return TARE_OK;
}

tare_status objective_annotate(struct objective *o, const int64_t *groups, int64_t n, const float *logprob, const float *entropy,
                               struct err *e)
{
    struct buffers x;
    struct plugin_call c;
    tare_tokens counts = {0}, v;
    double *out;
    if (!o->call->annotate) return TARE_OK;
    TRY(buffers_new(o, o->b->n_tokens, &x, e));
    TRY(arena_new(&o->block, &x.token_begin, o->b->n_rollouts + 1, e));
    TRY(arena_new(&o->block, &x.group_begin, n + 1, e));
    const int64_t tokens = select_groups(o, groups, n, &x, &counts);
    if (!tokens) return TARE_OK;
    TRY(arena_new(&o->block, &out, tokens * o->n_annotated, e));
    for (int64_t i = 0; logprob && i < tokens; i++) {
        x.logprob[i] = logprob[x.token[i]];
        x.entropy[i] = entropy[x.token[i]];
    }
    if (!logprob) x.logprob = x.entropy = NULL;
    TRY(show_tokens(o, &x, tokens, true, &v, e));
    v.n_rollouts = counts.n_rollouts;
    v.n_groups = counts.n_groups;
    v.token_begin = x.token_begin;
    v.group_begin = x.group_begin;
    plugin_enter(&c);
    TRY(plugin_leave(&c, o->instance, "annotate", o->b->step, o->call->annotate(o->instance->self, &v, out, &c.error), e));
    return keep_annotated(o, &x, out, tokens, e);
}

/* ---------------------------------------------------------------- compute */

static tare_status outputs_new(struct objective *o, int64_t n, struct buffers *x, tare_token_loss *out, struct err *e)
{
    struct arena *a = &o->block;
    TRY(arena_new_raw(a, &x->value, n, e));
    TRY(arena_new_raw(a, &x->dlogprob, n, e));
    TRY(arena_new(a, &x->dentropy, n, e));
    if (has_flag(o, TARE_OBJECTIVE_GIVES_DKL)) TRY(arena_new(a, &x->dkl, n, e));
    TRY(arena_new(a, &x->clipped, n, e));
    for (int64_t i = 0; i < n; i++) x->value[i] = x->dlogprob[i] = (double)NAN;
    *out = (tare_token_loss){.struct_size = sizeof *out,
                             .value = x->value,
                             .dlogprob = x->dlogprob,
                             .dentropy = x->dentropy,
                             .dkl = x->dkl,
                             .clipped = x->clipped};
    return TARE_OK;
}

static tare_status check_outputs(const struct objective *o, const struct buffers *x, int64_t n, struct err *e)
{
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x->value[i]) && isfinite(x->dlogprob[i]) && isfinite(x->dentropy[i]) && (!x->dkl || isfinite(x->dkl[i])))
            continue;
        const int64_t t = x->token[i], r = o->columns.owner[t];
        FAIL(
            e, TARE_E_NOT_FINITE,
            "objective %s: compute, step %lld: rollout %lld, token %lld has value %g and derivatives %g, %g, %g; each must be set and finite",
            objective_name(o), (long long)o->b->step, (long long)r, (long long)(t - o->b->token_begin[r]), x->value[i],
            x->dlogprob[i], x->dentropy[i], x->dkl ? x->dkl[i] : 0);
    }
    return TARE_OK;
}

/* Moves the outputs from the plugin's order to the host's, last first, within the same memory. */
static void spread_outputs(struct buffers *x, int64_t shown_tokens, int64_t n)
{
    for (int64_t i = n - 1, j = shown_tokens - 1; i >= 0; i--) {
        const bool has = j >= 0 && x->at[j] == i;
        x->value[i] = has ? x->value[j] : (double)NAN;
        x->dlogprob[i] = has ? x->dlogprob[j] : 0;
        x->dentropy[i] = has ? x->dentropy[j] : 0;
        if (x->dkl) x->dkl[i] = has ? x->dkl[j] : 0;
        x->clipped[i] = has ? x->clipped[j] : 0;
        j -= has;
    }
}

static int64_t fill_block(const struct objective *o, const struct token_block *s, struct buffers *x)
{
    int64_t count = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (!is_shown(o, s->token[i])) continue;
        x->at[count] = i;
        x->token[count] = s->token[i];
        x->logprob[count] = s->logprob[i];
        x->entropy[count] = s->entropy[i];
        if (x->kl && s->kl) x->kl[count] = s->kl[i];
        count++;
    }
    if (!s->kl) x->kl = NULL;
    return count;
}

/* Keeps what collect sees of a block's n tokens. */
static void keep_outcomes(struct objective *o, const struct buffers *x, int64_t n)
{
    struct outcomes *to = &o->outcomes;
    for (int64_t i = 0; i < n; i++) {
        const int64_t t = x->token[i];
        to->logprob[t] = x->logprob[i];
        to->entropy[t] = x->entropy[i];
        if (to->kl && x->kl) to->kl[t] = x->kl[i];
        to->value[t] = x->value[i];
        to->dlogprob[t] = x->dlogprob[i];
        to->dentropy[t] = x->dentropy[i];
        if (to->dkl) to->dkl[t] = x->dkl[i];
        to->clipped[t] = x->clipped[i];
        to->computed[o->columns.owner[t]]++;
    }
}

tare_status objective_compute(struct objective *o, const struct token_block *block, struct objective_block *out, struct err *e)
{
    const int64_t n = block->n;
    struct buffers x;
    struct plugin_call c;
    tare_token_loss loss;
    tare_tokens v;
    TRY(buffers_new(o, n, &x, e));
    TRY(outputs_new(o, n, &x, &loss, e));
    const int64_t count = fill_block(o, block, &x);
    TRY(show_tokens(o, &x, count, false, &v, e));
    plugin_enter(&c);
    TRY(plugin_leave(&c, o->instance, "compute", o->b->step, o->call->compute(o->instance->self, &v, &loss, &c.error), e));
    TRY(check_outputs(o, &x, count, e));
    if (objective_collects(o)) keep_outcomes(o, &x, count);
    if (count < n) spread_outputs(&x, count, n);
    *out = (struct objective_block){x.value, x.dlogprob, x.dentropy, x.dkl, x.clipped};
    return TARE_OK;
}

/* ---------------------------------------------------------------- collect */

/* Moves the outcomes of a rollout's sampled tokens to its first places. collect of a rollout is their
 * last reader until they are computed again. */
static void pack_outcomes(const struct objective *o, const int64_t *token, int64_t first, int64_t n)
{
    const struct outcomes *x = &o->outcomes;
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = token[i], to = first + i;
        if (from == to) continue;
        x->logprob[to] = x->logprob[from];
        x->entropy[to] = x->entropy[from];
        if (x->kl) x->kl[to] = x->kl[from];
        x->value[to] = x->value[from];
        x->dlogprob[to] = x->dlogprob[from];
        x->dentropy[to] = x->dentropy[from];
        if (x->dkl) x->dkl[to] = x->dkl[from];
        x->clipped[to] = x->clipped[from];
    }
}

/* Shows the sampled tokens of a rollout and their outcomes. */
static tare_status show_rollout(struct objective *o, int64_t rollout, tare_tokens *v, tare_token_loss *loss, struct err *e)
{
    const struct outcomes *from = &o->outcomes;
    const int64_t first = o->b->token_begin[rollout], end = o->b->token_begin[rollout + 1];
    struct buffers x;
    int64_t n = 0;
    TRY(buffers_new(o, end - first, &x, e));
    for (int64_t t = first; t < end; t++)
        if (batch_is_sampled(o->b, t)) x.token[n++] = t;
    pack_outcomes(o, x.token, first, n);
    x.logprob = from->logprob + first;
    x.entropy = from->entropy + first;
    x.kl = from->kl ? from->kl + first : NULL;
    TRY(show_tokens(o, &x, n, false, v, e));
    *loss = (tare_token_loss){.struct_size = sizeof *loss,
                              .value = from->value + first,
                              .dlogprob = from->dlogprob + first,
                              .dentropy = from->dentropy + first,
                              .dkl = from->dkl ? from->dkl + first : NULL,
                              .clipped = from->clipped + first};
    return TARE_OK;
}

tare_status objective_collect(struct objective *o, int64_t rollout, double *share, struct err *e)
{
    const int64_t first = o->b->token_begin[rollout], n = batch_length(o->b, rollout);
    const int64_t computed = o->outcomes.computed[rollout];
    struct plugin_call c;
    tare_tokens v;
    tare_token_loss loss;
    o->outcomes.computed[rollout] = 0;
    if (!is_shown(o, first)) return TARE_OK;
    if (computed < n) {
        share[0] = (double)NAN;
        return TARE_OK;
    }
    TRY(show_rollout(o, rollout, &v, &loss, e));
    plugin_enter(&c);
    TRY(plugin_leave(&c, o->instance, "collect", o->b->step, o->call->collect(o->instance->self, &v, &loss, share, &c.error), e));
    for (int64_t k = 0; k < o->n_collected; k++)
        if (!isfinite(share[k]))
            FAIL(e, TARE_E_NOT_FINITE, "objective %s: collect, step %lld: number %lld of rollout %lld is %g", objective_name(o),
                 (long long)o->b->step, (long long)k, (long long)rollout, share[k]);
    return TARE_OK;
}

void objective_add(struct objective *o, const double *shares, int64_t n)
{
    const int64_t k = objective_collects(o);
    for (int64_t i = 0; i < n * k; i++)
        if (isnan(shares[i])) return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) o->collected[j] += shares[i * k + j];
}

/* ---------------------------------------------------------------- state */

tare_status objective_apply(struct objective *o, int64_t step, int64_t updates, int64_t skipped, struct err *e)
{
    struct plugin_call c;
    const tare_update update = {
        .struct_size = sizeof update, .step = step, .updates = updates, .skipped = skipped, .collected = o->collected};
    if (!o->call->apply) return TARE_OK;
    plugin_enter(&c);
    return plugin_leave(&c, o->instance, "apply", step, o->call->apply(o->instance->self, &update, &c.error), e);
}

tare_status objective_save(const struct objective *o, struct str *out, struct err *e)
{
    return plugin_save(o->instance, out, e);
}

tare_status objective_load(struct objective *o, const void *data, int64_t n, const char *where, struct err *e)
{
    return plugin_load(o->instance, data, n, NULL, where, e);
}
