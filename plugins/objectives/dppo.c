/* dppo: a token counts while a divergence of its probability, instead of the ratio, is within a
 * bound.
 *
 *   v = -M sg(min(r, ratio_cap)) A logp
 *   M = 0 where the policy has moved in the direction of the advantage, and D > high
 *       (A > 0, pi > old) or D > low (A <= 0, pi < old)
 *   D = |pi - old| (tv), or old log(old / pi) + (1 - old) log((1 - old) / (1 - pi)) (kl): of the
 *       token against all others
 *
 * Qi et al. 2026, "Rethinking the Trust Region in LLM Reinforcement Learning" (arXiv 2602.04879),
 * the binary approximations, in the form that verl has. A ratio says little about rare tokens:
 * theirs is large when the distribution has hardly changed. */
#include "common/stateless.h"

enum { P_DIVERGENCE, P_LOW, P_HIGH, P_CAP, P_COUNT };
enum { TV, KL };
static const char *const DIVERGENCES[] = {"tv", "kl", NULL};
static const tare_param PARAMS[P_COUNT] = {
    [P_DIVERGENCE] =
        TARE_CHOICE_PARAM("divergence", "tv", "tv: total variation; kl: Kullback-Leibler, from the old policy", DIVERGENCES, 0),
    [P_LOW] = TARE_FLOAT_PARAM("low", "0.2", "bound where the advantage is not positive", 0, TARE_NO_MAX,
                               TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_HIGH] = TARE_FLOAT_PARAM("high", "0.2", "bound where the advantage is positive", 0, TARE_NO_MAX,
                                TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_CAP] = TARE_FLOAT_PARAM("ratio_cap", "20", "largest weight of a token", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN),
};

static const double TINY = 1e-8; /* keeps the logarithms of probabilities next to 1 finite */

static int leaves_region(const struct settings *s, double logp, double old, double advantage)
{
    const double pi = exp(logp), before = exp(old), bound = advantage > 0 ? s->v[P_HIGH].f : s->v[P_LOW].f;
    if (advantage > 0 ? pi <= before : pi >= before) return 0;
    if (s->v[P_DIVERGENCE].i == TV) return fabs(pi - before) > bound;
    return before * (old - logp) + (1 - before) * log((1 - before + TINY) / (1 - pi + TINY)) > bound;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double A = t->advantage[i], weight = fmin(exp(detached_log_ratio(t, i)), s->v[P_CAP].f);
        const int out_of_it = leaves_region(s, (double)t->detached[i], (double)t->old_logprob[i], A);
        const double slope = out_of_it ? 0 : -weight * A;
        put_outcome(out, i, slope * (double)t->logprob[i], slope, out_of_it);
    }
    return TARE_OK;
}

OBJECTIVE("dppo", "a trust region by the divergence of a token's probability", ABOUT("arXiv 2602.04879"), NO_WANTS, any_values,
          .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP, .compute = compute)
