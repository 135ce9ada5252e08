/* sapo: a soft gate instead of the clip.
 *
 *   v = -f(r) A,   f(r) = 4/tau sigmoid(tau (r - 1)),   df/dr = 4 sigmoid (1 - sigmoid)
 *       tau: tau_pos where A > 0, else tau_neg
 *
 * Gao et al. 2025, "Soft Adaptive Policy Optimization" (arXiv 2511.20347). The gradient is that of
 * the unclipped surrogate at r = 1 and fades on both sides, faster for tokens with a negative
 * advantage. loss.aggregation = sequence is the paper's mean. */
#include "common/stateless.h"

enum { P_POS, P_NEG, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_POS] = TARE_FLOAT_PARAM("tau_pos", "1", "temperature of the gate where the advantage is positive", 0, 1e3,
                               TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_NEG] = TARE_FLOAT_PARAM("tau_neg", "1.05", "temperature of the gate elsewhere", 0, 1e3,
                               TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double A = t->advantage[i], tau = A > 0 ? s->v[P_POS].f : s->v[P_NEG].f;
        const double ratio = exp(log_ratio(t, i)), gate = 1 / (1 + exp(-tau * (ratio - 1)));
        put_outcome(out, i, -4 / tau * gate * A, -4 * gate * (1 - gate) * ratio * A, 0);
    }
    return TARE_OK;
}

OBJECTIVE("sapo", "a sigmoid gate of the ratio instead of the clip", ABOUT("arXiv 2511.20347"), NO_WANTS, any_values,
          .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP, .compute = compute)
