/* @NAME@: the clipped surrogate with its own bound.
 *
 *   v = -min(r A, clip(r, 1 - bound, 1 + bound) A)    r = pi / old, A: the token's advantage
 *
 * Replace this with your formula and its paper. compute writes v and its derivatives for each
 * token; the host weighs and adds them, adds the KL penalty and the entropy bonus, and computes
 * the gradient of the model. Numbers that depend on a whole rollout or group come from annotate.
 * An objective with a state adds sizes, collect, apply, save and load (see tare/objective.h for
 * the order of the phases). A factor without a gradient is computed from `detached`. */
#include <tare/sdk.h>

enum { P_BOUND, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_BOUND] =
        TARE_FLOAT_PARAM("bound", "0.2", "largest distance of the ratio from 1", 0, 1, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status compute(const void *self, const tare_tokens *tokens, tare_token_loss *out, tare_error *error)
{
    const tare_value *v = self;
    (void)error;
    for (int64_t i = 0; i < tokens->n; i++) {
        const double A = tokens->advantage[i], r = exp((double)tokens->logprob[i] - (double)tokens->old_logprob[i]);
        const double bounded = fmin(fmax(r, 1 - v[P_BOUND].f), 1 + v[P_BOUND].f);
        const int clipped = bounded * A < r * A;
        out->value[i] = clipped ? -bounded * A : -r * A;
        out->dlogprob[i] = clipped ? 0 : -r * A; /* dr/dlogp = r */
        out->clipped[i] = (uint8_t)clipped;
    }
    return TARE_OK;
}

static const tare_objective FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .flags = TARE_OBJECTIVE_OWN_CLIP, .compute = compute};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_OBJECTIVE,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "the clipped surrogate with its own bound",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT, /* an instance changes nothing, so any thread may call it */
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
