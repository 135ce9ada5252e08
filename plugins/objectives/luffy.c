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
    [P_SHAPING] = PARAM_FLOAT("shaping", "0.1", "gamma of f(pi) = pi / (pi + gamma)", 0, 1, TARE_ABOVE_MIN | TARE_SWEEPABLE),
    [P_CLIP] = PARAM_BOOL("on_policy_clip", "false", "clip sampled tokens by loss.clip"),
};

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    const double gamma = s->v[P_SHAPING].f;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double A = t->advantage[i], ratio = exp(log_ratio(t, i));
        if (t->off_policy && t->off_policy[i]) {
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

OBJECTIVE("luffy", "policy shaping of off-policy traces, with an unclipped surrogate for other tokens", "arXiv 2504.14945",
          TARE_OBJECTIVE_TRACES, any_values, .compute = compute)
