/* dro: no ratio and no clip, but a quadratic pull towards the old policy.
 *
 *   v = -A logp + beta/2 (logp - old)^2
 *
 * Richemond et al. 2024, "Offline Regularised Reinforcement Learning for Large Language Models
 * Alignment" (arXiv 2405.19107), token by token, with the old policy as the anchor and the
 * advantage instead of reward minus value, as in verl and tinker.
 */
#include "common/stateless.h"

enum { P_BETA, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_BETA] =
        TARE_FLOAT_PARAM("beta", "0.05", "strength of the pull towards the old policy", 0, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
};

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    const double beta = s->v[P_BETA].f;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double A = t->advantage[i], x = log_ratio(t, i);
        put_outcome(out, i, -A * (double)t->logprob[i] + beta / 2 * x * x, -A + beta * x, 0);
    }
    return TARE_OK;
}

OBJECTIVE("dro", "log-probabilities with a quadratic pull towards the old policy", ABOUT("arXiv 2405.19107"), NO_WANTS, any_values,
          .flags = TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP, .compute = compute)
