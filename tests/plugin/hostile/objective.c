/* Objectives that break the contract, each in one way: compiled once for each CASE
 * (tests/plugin/fixtures.cmake). CASE good_objective breaks nothing: the clipped surrogate with
 * a bound that follows the share of clipped tokens, and a rollout's mean ratio from annotate.
 * CASE own_kl breaks nothing, either: ppo with its own penalty on the exact KL, equal to
 * loss.kl_coef = 0.05. */
#include <tare/sdk.h>

#include <math.h>
#include <string.h>

enum cases {
    good_objective,
    own_kl,
    pulls_at_zero,
    slope_sign,
    slope_in_clip,
    slope_half,
    slope_of_detached,
    entropy_without_slope,
    wrong_way,
    learns_nothing,
    value_unwritten,
    value_infinite,
    past_values,
    past_marks,
    past_annotated,
    marks_two,
    uses_neighbour,
    reads_unwanted,
    reads_logprob_early,
    annotates_by_call,
    computes_by_call,
    annotates_no_number,
    collects_over,
    collects_nan,
    writes_in_compute,
    forgets_bound,
    takes_short_state,
    infinite_at_edge,
    exits_in_objective
};
#define IS(X) (CASE == X)

struct self {
    const tare_host *host;
    double bound, steepness;
};

enum { W_KL, N_WANTS };
static const tare_want WANTS[N_WANTS] = {[W_KL] = {.name = "kl", .axis = TARE_AXIS_TOKEN, .type = TARE_F32, .width = 1}};

static const tare_param PARAMS[] = {TARE_FLOAT_PARAM("steepness", "1", "multiplies the value", 0, 8, TARE_PARAM_ABOVE_MIN)};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct self *s = setup->host->alloc(setup->host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *s = (struct self){setup->host, setup->loss->clip, setup->values[0].f};
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct self *s = self;
    (void)error;
    return out->write(out->ctx, &s->bound, sizeof s->bound);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct self *s = self;
    double bound = s->bound;
    const tare_status status = in->read(in->ctx, &bound, sizeof bound);
    if (status && !IS(takes_short_state)) return tare_fail(error, status, "the state is cut short");
    if (!IS(forgets_bound)) s->bound = bound > 0 && bound < 1 ? bound : 0.2;
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->prepare = IS(annotates_no_number) ? 0 : 1;
    out->collect = 2;
    return TARE_OK;
}

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    static _Atomic int calls; /* ranks may be threads of one process */
    (void)self, (void)error;
    calls++;
    for (int64_t i = 0; i < t->n_rollouts; i++) {
        const int64_t first = t->token_begin[i], end = t->token_begin[i + 1];
        double sum = IS(annotates_by_call) ? calls : 0;
        for (int64_t k = first; k < end; k++) sum += (double)(IS(reads_logprob_early) ? t->logprob[k] : t->old_logprob[k]);
        for (int64_t k = first; k < end; k++) annotated[k] = exp(0.1 * sum / (double)(end - first));
    }
    if (IS(past_annotated)) annotated[t->n] = 1;
    return TARE_OK;
}

static double nothing(void)
{
    return CASE == value_infinite ? (double)INFINITY : 0;
}

static void token(const struct self *s, const tare_tokens *t, int64_t i, tare_token_loss *out)
{
    const double A = t->advantage[i] * (IS(own_kl) ? 1 : t->annotated[i]) * s->steepness * (IS(wrong_way) ? -1 : 1) *
                     (IS(learns_nothing) ? 0 : 1);
    const double old = (double)(IS(reads_unwanted) ? TARE_COLUMN(t, N_WANTS, float)[i] : t->old_logprob[i]);
    const double r = exp((double)t->logprob[IS(uses_neighbour) && i ? i - 1 : i] - old);
    const double bounded = fmin(fmax(r, 1 - s->bound), 1 + s->bound);
    const int clipped = bounded * A < r * A;
    double slope = clipped && !IS(slope_in_clip) ? 0 : -r * A;
    if (IS(slope_sign)) slope = -slope;
    if (IS(slope_half)) slope /= 2;
    out->value[i] = clipped ? -bounded * A : -r * A;
    /* A constant, whose derivative is reported as slope. */
    if (IS(slope_of_detached)) out->value[i] = -exp((double)t->detached[i] - old) * A;
    if (IS(entropy_without_slope)) out->value[i] -= 0.1 * (double)t->entropy[i];
    if (IS(value_infinite)) out->value[i] = nothing();
    if (IS(infinite_at_edge) && s->steepness >= 8) out->value[i] = (double)NAN;
    if (IS(own_kl)) {
        out->value[i] += 0.05 * (double)TARE_COLUMN(t, W_KL, float)[i];
        out->dkl[i] = 0.05;
    }
    if (IS(pulls_at_zero)) { /* towards the old policy, whatever the advantage */
        out->value[i] += 0.05 * (double)t->logprob[i];
        slope += 0.05;
    }
    out->dlogprob[i] = slope;
    out->clipped[i] = (uint8_t)(IS(marks_two) ? 2 : clipped);
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    if (IS(exits_in_objective)) exit(0);
    static _Atomic int calls; /* ranks may be threads of one process */
    (void)error;
    calls++;
    if (IS(own_kl) && !t->column[W_KL].data) return tare_fail(error, TARE_E_SHAPE, "the reference is missing");
    for (int64_t i = IS(value_unwritten); i < t->n; i++) token(self, t, i, out);
    if (IS(computes_by_call)) out->value[0] += 1e-9 * calls;
    if (IS(past_values)) out->value[t->n] = 0;
    if (IS(past_marks)) out->clipped[t->n] = 0;
    if (IS(writes_in_compute)) ((struct self *)(uintptr_t)self)->bound *= 0.999;
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_tokens *t, const tare_token_loss *loss, double *sum, tare_error *error)
{
    (void)self, (void)error;
    if (IS(collects_over)) sum[0] = sum[1] = 0;
    for (int64_t i = 0; i < t->n; i++) sum[0] += loss->clipped[i];
    sum[1] += (double)t->n;
    if (IS(collects_nan)) sum[1] = (double)NAN;
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct self *s = self;
    (void)error;
    const double *collected = update->collected;
    if (collected[1] > 0 && !IS(own_kl))
        s->bound = fmin(fmax(s->bound * (collected[0] / collected[1] > 0.2 ? 1.05 : 0.95), 0.05), 0.9);
    return TARE_OK;
}

static const tare_objective FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .flags = IS(own_kl) ? TARE_OBJECTIVE_GIVES_DKL : TARE_OBJECTIVE_ZERO_AT_ZERO,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .sizes = sizes,
                                         .annotate = annotate,
                                         .compute = compute,
                                         .collect = collect,
                                         .apply = apply};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_OBJECTIVE,
                                           .name = "hostile",
                                           .version = "1.0.0",
                                           .summary = "breaks the contract in one way",
                                           .license = "Apache-2.0",
                                           TARE_PARAMS(PARAMS, 1),
                                           .wants = WANTS,
                                           .n_wants = IS(own_kl) ? N_WANTS : 0,
                                           .want_size = sizeof(tare_want),
                                           .state_version = 1,
                                           .state_oldest = 1,
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
