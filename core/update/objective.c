#include "update/objective.h"

#include <math.h>
#include <string.h>

enum {
    KNOWN_NEEDS =
        TARE_OBJECTIVE_PASS | TARE_OBJECTIVE_REFERENCE | TARE_OBJECTIVE_SAMPLER | TARE_OBJECTIVE_KL | TARE_OBJECTIVE_TRACES,
    MOST_NUMBERS = 64
};

/* Token columns as the plugin gets them, each contiguous, and its outputs. */
struct buffers {
    float *logprob, *old, *sampled, *ref, *kl, *entropy;
    double *advantage, *weight, *prepared;
    uint8_t *off_policy;
    double *value, *dlogprob, *dentropy, *dkl;
    uint8_t *clipped;
    int64_t *at; /* index in the host's block */
    int64_t *sequence_begin, *group_begin;
};

struct objective {
    struct plugin_instance *instance;
    const tare_objective *call;
    uint32_t needs;
    int64_t prepare_size, collect_size;
    const struct batch *b; /* of this step, like columns and prepared */
    struct objective_columns columns;
    double *prepared; /* [T, prepare_size] */
    bool any_trace;
    struct arena step, block;
};

/* ---------------------------------------------------------------- life */

uint32_t objective_needs(const struct objective *o)
{
    return o->needs;
}

const struct plugin *objective_plugin(const struct objective *o)
{
    return o->instance->plugin;
}

bool objective_prepares(const struct objective *o)
{
    return o->call->prepare != NULL;
}

int64_t objective_sums(const struct objective *o)
{
    return o->collect_size;
}

static const char *objective_name(const struct objective *o)
{
    return o->instance->plugin->desc.name;
}

void objective_free(struct objective *o)
{
    if (!o) return;
    plugin_destroy(o->instance);
    arena_free(&o->step);
    arena_free(&o->block);
    mem_free(o);
}

/* Refuses an importance weight between sampler and old policy that would be 1 everywhere (both are
 * the same column) or applied twice (the host has one too). */
static tare_status check_sampler(const struct objective *o, const struct loss_config *c, struct err *e)
{
    if (!(o->needs & TARE_OBJECTIVE_SAMPLER)) return TARE_OK;
    if (c->old_logprobs == OLD_SAMPLER)
        FAIL(
            e, TARE_E_CONFIG,
            "objective %s compares the logprobs recorded while sampling with those of the update; set loss.old_logprobs = recompute",
            objective_name(o));
    if (c->rollout_is != ROLLOUT_IS_NONE)
        FAIL(e, TARE_E_CONFIG, "objective %s weighs by the sampler's probabilities itself; set loss.rollout_is = none",
             objective_name(o));
    return TARE_OK;
}

static tare_status open_plugin(struct objective *o, const struct objective_options *x, struct err *e)
{
    struct plugin_call c;
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
    TRY(plugin_new(&(struct plugin_wanted){x->plugin, TARE_OBJECTIVE, x->search, x->settings, 0, &env}, &o->instance, e));
    o->call = o->instance->plugin->objective;
    o->needs = o->instance->plugin->desc.needs;
    if (o->needs & ~(uint32_t)KNOWN_NEEDS)
        FAIL(e, TARE_E_UNSUPPORTED, "objective %s: unknown needs 0x%x; update tare", objective_name(o), o->needs);
    plugin_enter(&c);
    if (o->call->prepare_size) o->prepare_size = o->call->prepare_size(o->instance->self);
    if (o->call->collect_size) o->collect_size = o->call->collect_size(o->instance->self);
    plugin_leave(&c, o->instance, "prepare_size", -1, TARE_OK, NULL);
    if (o->call->prepare && (o->prepare_size < 1 || o->prepare_size > MOST_NUMBERS))
        FAIL(e, TARE_E_PLUGIN, "objective %s: prepare_size = %lld: must be 1 to %d", objective_name(o), (long long)o->prepare_size,
             MOST_NUMBERS);
    if (o->collect_size < 0 || o->collect_size > 1 << 20)
        FAIL(e, TARE_E_PLUGIN, "objective %s: collect_size = %lld: must be 0 to 1048576", objective_name(o),
             (long long)o->collect_size);
    return check_sampler(o, l, e);
}

tare_status objective_open(const struct objective_options *x, struct objective **out, struct err *e)
{
    struct objective *o;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *o, (void **)&o, e));
    arena_init(&o->step, "objective");
    arena_init(&o->block, "a block of the objective");
    const tare_status status = open_plugin(o, x, e);
    if (status) {
        objective_free(o);
        return status;
    }
    *out = o;
    return TARE_OK;
}

tare_status objective_read_needs(const struct config *c, uint32_t *needs, struct err *e)
{
    const struct plugin *p;
    const struct plugin_search search = {.folder = c->run.plugins};
    TRY(err_as_config(plugin_open(c->objective.plugin, TARE_OBJECTIVE, &search, &p, e), e));
    *needs = p->desc.needs;
    TRY(err_as_config(plugin_open(c->estimator.plugin, TARE_ESTIMATOR, &search, &p, e), e));
    if (p->desc.needs & TARE_NEED_REF_LOGPROB) *needs |= TARE_OBJECTIVE_REFERENCE;
    return TARE_OK;
}

/* ---------------------------------------------------------------- columns */

tare_status objective_begin(struct objective *o, const struct batch *b, const struct objective_columns *columns, struct err *e)
{
    arena_reset(&o->step);
    o->b = b;
    o->columns = *columns;
    o->any_trace = false;
    if (b->off_policy)
        for (int64_t i = 0; i < b->n_rollouts; i++) o->any_trace = o->any_trace || b->off_policy[i];
    if ((o->needs & TARE_OBJECTIVE_REFERENCE) && !b->ref_logprob)
        FAIL(e, TARE_E_SHAPE, "objective %s needs the reference policy's logprobs, and the batch has none", objective_name(o));
    return arena_new(&o->step, &o->prepared, b->n_tokens * o->prepare_size + 1, e);
}

static bool is_trace(const struct objective *o, int64_t token)
{
    return o->any_trace && o->b->off_policy[o->columns.owner[token]];
}

/* Returns whether the plugin sees a token. The host handles the traces if the objective does
 * not. */
static bool is_shown(const struct objective *o, int64_t token)
{
    return (o->needs & TARE_OBJECTIVE_TRACES) || !is_trace(o, token);
}

static tare_status buffers_new(struct objective *o, int64_t n, struct buffers *x, struct err *e)
{
    struct arena *a = &o->block;
    arena_reset(a);
    *x = (struct buffers){0};
    TRY(arena_new_raw(a, &x->logprob, n, e));
    TRY(arena_new_raw(a, &x->entropy, n, e));
    TRY(arena_new_raw(a, &x->old, n, e));
    if (o->needs & TARE_OBJECTIVE_SAMPLER) TRY(arena_new_raw(a, &x->sampled, n, e));
    if (o->needs & TARE_OBJECTIVE_REFERENCE) TRY(arena_new_raw(a, &x->ref, n, e));
    if (o->needs & TARE_OBJECTIVE_KL) TRY(arena_new_raw(a, &x->kl, n, e));
    if (o->any_trace && (o->needs & TARE_OBJECTIVE_TRACES)) TRY(arena_new_raw(a, &x->off_policy, n, e));
    TRY(arena_new_raw(a, &x->advantage, n, e));
    TRY(arena_new_raw(a, &x->weight, n, e));
    return arena_new_raw(a, &x->at, n, e);
}

/* Fills entry i of the columns from token t of the batch. */
static void fill_token(const struct objective *o, struct buffers *x, int64_t i, int64_t t)
{
    const struct batch *b = o->b;
    x->old[i] = o->columns.old[t];
    x->advantage[i] = b->token_advantage ? (double)b->token_advantage[t] : b->advantage[o->columns.owner[t]];
    x->weight[i] = o->columns.weight[t];
    if (x->sampled) x->sampled[i] = o->columns.sampled[t];
    if (x->ref) x->ref[i] = b->ref_logprob[t];
    if (x->off_policy) x->off_policy[i] = is_trace(o, t);
}

static tare_tokens tokens_view(const struct objective *o, const struct buffers *x, int64_t n)
{
    return (tare_tokens){.struct_size = sizeof(tare_tokens),
                         .step = o->b->step,
                         .n = n,
                         .logprob = x->logprob,
                         .detached = x->logprob,
                         .old_logprob = x->old,
                         .sampler_logprob = x->sampled,
                         .ref_logprob = x->ref,
                         .kl = x->kl,
                         .entropy = x->entropy,
                         .advantage = x->advantage,
                         .weight = x->weight,
                         .off_policy = x->off_policy,
                         .prepared = x->prepared};
}

/* ---------------------------------------------------------------- prepare */

/* Selects the minibatch's rollouts with a positive weight, group by group; x->at receives their
 * tokens. Returns the number of tokens. */
static int64_t select_groups(const struct objective *o, const int64_t *groups, int64_t n, struct buffers *x, tare_tokens *v)
{
    const struct batch *b = o->b;
    int64_t tokens = 0;
    for (int64_t g = 0; g < n; g++) {
        const int64_t before = v->n_sequences;
        for (int64_t i = b->group_begin[groups[g]]; i < b->group_begin[groups[g] + 1]; i++) {
            if (!(b->rollout_weight[i] > 0) || !is_shown(o, b->token_begin[i])) continue;
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) x->at[tokens++] = t;
            x->sequence_begin[++v->n_sequences] = tokens;
        }
        if (v->n_sequences > before) x->group_begin[++v->n_groups] = v->n_sequences;
    }
    return tokens;
}

tare_status objective_prepare(struct objective *o, const int64_t *groups, int64_t n, const float *logprob, const float *entropy,
                              struct err *e)
{
    const int64_t most = o->b->n_tokens, k = o->prepare_size;
    struct buffers x;
    struct plugin_call c;
    tare_tokens counts = {0};
    double *out;
    if (!o->call->prepare) return TARE_OK;
    TRY(buffers_new(o, most, &x, e));
    TRY(arena_new(&o->block, &x.sequence_begin, o->b->n_rollouts + 1, e));
    TRY(arena_new(&o->block, &x.group_begin, n + 1, e));
    const int64_t tokens = select_groups(o, groups, n, &x, &counts);
    if (!tokens) return TARE_OK;
    TRY(arena_new(&o->block, &out, tokens * k, e));
    for (int64_t i = 0; i < tokens; i++) {
        fill_token(o, &x, i, x.at[i]);
        if (logprob) x.logprob[i] = logprob[x.at[i]];
        if (entropy) x.entropy[i] = entropy[x.at[i]];
    }
    x.kl = NULL;
    if (!logprob) x.logprob = NULL;
    if (!entropy) x.entropy = NULL;
    tare_tokens v = tokens_view(o, &x, tokens);
    v.n_sequences = counts.n_sequences;
    v.n_groups = counts.n_groups;
    v.sequence_begin = x.sequence_begin;
    v.group_begin = x.group_begin;
    plugin_enter(&c);
    TRY(plugin_leave(&c, o->instance, "prepare", o->b->step, o->call->prepare(o->instance->self, &v, out, &c.error), e));
    for (int64_t i = 0; i < tokens * k; i++)
        if (!isfinite(out[i]))
            FAIL(e, TARE_E_NOT_FINITE, "objective %s: prepare, step %lld: number %lld of a token of rollout %lld is %g",
                 objective_name(o), (long long)o->b->step, (long long)(i % k), (long long)o->columns.owner[x.at[i / k]], out[i]);
    for (int64_t i = 0; i < tokens; i++) memcpy(o->prepared + x.at[i] * k, out + i * k, (size_t)k * sizeof *out);
    return TARE_OK;
}

/* ---------------------------------------------------------------- compute */

static tare_status outputs_new(struct objective *o, int64_t n, struct buffers *x, tare_token_loss *out, struct err *e)
{
    struct arena *a = &o->block;
    TRY(arena_new_raw(a, &x->value, n, e));
    TRY(arena_new_raw(a, &x->dlogprob, n, e));
    TRY(arena_new(a, &x->dentropy, n, e));
    if (o->needs & TARE_OBJECTIVE_KL) TRY(arena_new(a, &x->dkl, n, e));
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

static tare_status check_outputs(const struct objective *o, const struct token_block *block, const struct buffers *x, int64_t n,
                                 struct err *e)
{
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x->value[i]) && isfinite(x->dlogprob[i]) && isfinite(x->dentropy[i]) && (!x->dkl || isfinite(x->dkl[i])))
            continue;
        const int64_t t = block->token[x->at[i]], r = o->columns.owner[t];
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
    const int64_t k = o->prepare_size;
    int64_t count = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (!is_shown(o, s->token[i])) continue;
        x->at[count] = i;
        x->logprob[count] = s->logprob[i];
        x->entropy[count] = s->entropy[i];
        if (x->kl) x->kl[count] = s->kl[i];
        if (k) memcpy(x->prepared + count * k, o->prepared + s->token[i] * k, (size_t)k * sizeof *x->prepared);
        fill_token(o, x, count, s->token[i]);
        count++;
    }
    return count;
}

tare_status objective_compute(struct objective *o, const struct token_block *block, double *sums, struct objective_block *out,
                              struct err *e)
{
    const int64_t n = block->n;
    struct buffers x;
    struct plugin_call c;
    tare_token_loss loss;
    TRY(buffers_new(o, n, &x, e));
    if (o->call->prepare) TRY(arena_new_raw(&o->block, &x.prepared, n * o->prepare_size, e));
    TRY(outputs_new(o, n, &x, &loss, e));
    const int64_t count = fill_block(o, block, &x);
    const tare_tokens v = tokens_view(o, &x, count);
    plugin_enter(&c);
    TRY(plugin_leave(&c, o->instance, "compute", o->b->step, o->call->compute(o->instance->self, &v, &loss, &c.error), e));
    TRY(check_outputs(o, block, &x, count, e));
    if (o->call->collect) {
        plugin_enter(&c);
        TRY(plugin_leave(&c, o->instance, "collect", o->b->step, o->call->collect(o->instance->self, &v, &loss, sums, &c.error),
                         e));
        for (int64_t i = 0; i < o->collect_size; i++)
            if (!isfinite(sums[i]))
                FAIL(e, TARE_E_NOT_FINITE, "objective %s: collect, step %lld: number %lld is %g", objective_name(o),
                     (long long)o->b->step, (long long)i, sums[i]);
    }
    if (count < n) spread_outputs(&x, count, n);
    *out = (struct objective_block){x.value, x.dlogprob, x.dentropy, x.dkl, x.clipped};
    return TARE_OK;
}

/* ---------------------------------------------------------------- state */

tare_status objective_apply(struct objective *o, int64_t step, const double *collected, struct err *e)
{
    struct plugin_call c;
    if (!o->call->apply) return TARE_OK;
    plugin_enter(&c);
    return plugin_leave(&c, o->instance, "apply", step, o->call->apply(o->instance->self, step, collected, &c.error), e);
}

tare_status objective_save(const struct objective *o, struct str *out, struct err *e)
{
    return plugin_save(o->instance, out, e);
}

tare_status objective_load(struct objective *o, const void *data, int64_t n, const char *where, struct err *e)
{
    return plugin_load(o->instance, data, n, NULL, where, e);
}
