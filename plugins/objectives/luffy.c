/* luffy: traces of another policy mixed into the groups, by policy shaping.
 *
 *   v = -f(pi) A on a trace,  f(pi) = pi / (pi + shaping)
 *       df/dlogp = shaping pi / (pi + shaping)^2
 *   v = -r A elsewhere, clipped as ppo's where on_policy_clip is set
 *
 * Yan et al. 2025, "Learning to Reason under Off-Policy Guidance" (arXiv 2504.14945), with
 * probability 1 under the policy that wrote the trace. rollout.off_policy adds the traces. Their
 * recipe has no clip on the sampled tokens; other objectives treat traces in the same way by
 * loss.shaping, and keep their own bounds.
 */
#include "common/stateless.h"
#include "common/surrogate.h"

enum { P_SHAPING, P_CLIP, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_SHAPING] =
        TARE_FLOAT_PARAM("shaping", "0.1", "gamma of f(pi) = pi / (pi + gamma)", 0, 1, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_CLIP] = TARE_BOOL_PARAM("on_policy_clip", "false", "clip sampled tokens by loss.clip", 0),
};

enum { W_OFF_POLICY, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_OFF_POLICY] = {"off_policy", TARE_AXIS_TOKEN, TARE_U8, TARE_WANT_OPTIONAL, 1},
};

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    const double gamma = s->v[P_SHAPING].f;
    const uint8_t *off_policy = TARE_COLUMN(t, W_OFF_POLICY, uint8_t);
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double A = t->advantage[i], ratio = exp(log_ratio(t, i));
        if (off_policy && off_policy[i]) {
            const double pi = exp((double)t->logprob[i]), all = pi + gamma;
            put_outcome(out, i, -pi / all * A, -gamma * pi / (all * all) * A, 0);
        } else if (s->v[P_CLIP].i) {
            const struct term x = surrogate(&s->loss, ratio, A);
            put_outcome(out, i, x.value, x.dlogp, x.clipped);
        } else {
            put_outcome(out, i, -ratio * A, -ratio * A, 0);
        }
    }
    return TARE_OK;
}

OBJECTIVE("luffy", "policy shaping of off-policy traces, with an unclipped surrogate for other tokens", ABOUT("arXiv 2504.14945"),
          TARE_WANTS(WANTS, W_COUNT), any_values, .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_TREATS_OFF_POLICY,
          .compute = compute)
