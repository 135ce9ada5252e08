/* cispo: the score function weighted by a clipped ratio; no token loses its gradient.
 *
 *   v = -sg(clip(r, 1 - clip_low, 1 + clip_high)) A logp,   r = pi / old
 *
 * MiniMax 2025, "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention" (arXiv
 * 2506.13585), equations 4 and 5. The paper has no lower bound: clip_low = 1. The cap 1 + clip_high
 * = 5 is among those that ScaleRL (arXiv 2510.13786) found to differ little. */
#include "common/stateless.h"

enum { P_LOW, P_HIGH, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_LOW] = TARE_FLOAT_PARAM("clip_low", "1", "epsilon below 1 of the weight; 1: no bound", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_HIGH] = TARE_FLOAT_PARAM("clip_high", "4", "epsilon above 1", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double ratio = exp(detached_log_ratio(t, i));
        const double weight = fmin(fmax(ratio, 1 - s->v[P_LOW].f), 1 + s->v[P_HIGH].f), slope = -weight * t->advantage[i];
        put_outcome(out, i, slope * (double)t->logprob[i], slope, weight != ratio);
    }
    return TARE_OK;
}

OBJECTIVE("cispo", "log-probabilities weighted by a clipped ratio without a gradient", ABOUT("arXiv 2506.13585, equations 4 and 5"),
          NO_WANTS, any_values, .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP,
          .compute = compute)
