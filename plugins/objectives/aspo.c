/* aspo: the reciprocal ratio is the weight of tokens with a positive advantage, so that unlikely
 * tokens are raised more than likely ones.
 *
 *   A >= 0:  v = -A sg(min(1/r, cap)) r / sg(r),   and no gradient where r > 1 + clip_high
 *   A <  0:  v = -max(r, 1 - clip) A as ppo's,
 *   and with the gradient of the weight sg(cap) alone where r > cap
 *
 * Wang et al. 2025, "ASPO: Asymmetric Importance Sampling Policy Optimization" (arXiv 2510.06062),
 * in the form of the authors' code. A capped token keeps its gradient (soft dual clip): its value
 * is then -A cap logp. The bounds are loss.clip and loss.clip_high. */
#include "common/stateless.h"

enum { P_POSITIVE, P_NEGATIVE, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_POSITIVE] = TARE_FLOAT_PARAM("cap_positive", "3", "largest weight 1/r of a token with a positive advantage", 1, TARE_NO_MAX,
                                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_NEGATIVE] = TARE_FLOAT_PARAM("cap_negative", "3", "largest weight r of a token with a negative advantage", 1, TARE_NO_MAX,
                                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static void raise_token(const struct settings *s, const tare_tokens *t, int64_t i, tare_token_loss *out)
{
    const double A = t->advantage[i], x = detached_log_ratio(t, i), most = 1 + s->loss.clip_high;
    const int clipped = exp(x) > most;
    const double weight = clipped ? 1 / most : exp(-x), live = exp((double)t->logprob[i] - (double)t->detached[i]);
    if (weight > s->v[P_POSITIVE].f)
        put_outcome(out, i, -A * s->v[P_POSITIVE].f * (double)t->logprob[i], -A * s->v[P_POSITIVE].f, 1);
    else
        put_outcome(out, i, clipped ? -A * weight : -A * weight * live, clipped ? 0 : -A * weight * live, clipped);
}

static void lower_token(const struct settings *s, const tare_tokens *t, int64_t i, tare_token_loss *out)
{
    const double A = t->advantage[i], least = 1 - s->loss.clip, cap = s->v[P_NEGATIVE].f;
    const double fixed = exp(detached_log_ratio(t, i)), ratio = exp(log_ratio(t, i));
    if (fixed > cap)
        put_outcome(out, i, -A * cap * (double)t->logprob[i], -A * cap, 1);
    else
        put_outcome(out, i, -A * fmax(ratio, least), ratio < least ? 0 : -A * ratio, ratio < least);
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->advantage[i] < 0)
            lower_token(self, t, i, out);
        else
            raise_token(self, t, i, out);
    }
    return TARE_OK;
}

OBJECTIVE("aspo", "the reciprocal ratio as the weight of tokens with a positive advantage", ABOUT("arXiv 2510.06062"), NO_WANTS,
          any_values, .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_OWN_DUAL_CLIP, .compute = compute)
