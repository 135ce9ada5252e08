/* clip_cov: the clipped surrogate without the gradient of a few tokens, drawn from those with a
 * high covariance.
 *
 *   cov = (A - mean A)(logp - mean logp) over the minibatch
 *   v   = 0 for max(1, ratio n) tokens drawn at random from those with low < cov < high that the
 *         clip does not affect; else the surrogate (ppo)
 *
 * Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models"
 * (arXiv 2505.22617), Clip-Cov. The draw is the host's, keyed by the run's seed and the step. */
#include "common/covariance.h"
#include "common/surrogate.h"

enum { P_RATIO, P_LOW, P_HIGH, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_RATIO] = TARE_FLOAT_PARAM("ratio", "2e-4", "share of the minibatch's tokens that lose their gradient", 0, 1,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_LOW] = TARE_FLOAT_PARAM("low", "1", "smallest covariance of a token that may be drawn", TARE_NO_MIN, TARE_NO_MAX,
                               TARE_PARAM_SWEEPABLE),
    [P_HIGH] = TARE_FLOAT_PARAM("high", "5", "largest covariance of a token that may be drawn", TARE_NO_MIN, TARE_NO_MAX,
                                TARE_PARAM_SWEEPABLE),
};

static tare_status check(const struct settings *s, tare_error *error)
{
    if (s->v[P_LOW].f < s->v[P_HIGH].f) return TARE_OK;
    return tare_fail(error, TARE_E_CONFIG, "low = %g: must be below high = %g", s->v[P_LOW].f, s->v[P_HIGH].f);
}

/* Sets annotated[i] to 1 for a token that may be drawn, else 0. Returns their number. */
static int64_t mark_candidates(const struct settings *s, const tare_tokens *t, double *annotated)
{
    int64_t n = 0;
    covariances(t, annotated);
    for (int64_t i = 0; i < t->n; i++) {
        const double ratio = exp(detached_log_ratio(t, i)), A = t->advantage[i];
        const double bounded = fmin(fmax(ratio, 1 - s->loss.clip), 1 + s->loss.clip_high);
        annotated[i] = !(bounded * A < ratio * A) && annotated[i] > s->v[P_LOW].f && annotated[i] < s->v[P_HIGH].f;
        n += annotated[i] > 0;
    }
    return n;
}

/* Selection sampling (Knuth, Algorithm S): each set of k of the candidates has equal probability.
 * Writes 0 for the drawn tokens, 1 for all others. */
static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    const struct settings *s = self;
    int64_t left = mark_candidates(s, t, annotated), wanted = share_of(s->v[P_RATIO].f, t->n);
    uint32_t word;
    for (int64_t i = 0; i < t->n; i++) {
        double drawn = 0;
        if (annotated[i] > 0) {
            if (s->host->random(s->host->ctx, (uint64_t)t->step, (uint64_t)i, &word, 1))
                return tare_fail(error, TARE_E_GENERIC, "the host offers no random numbers");
            drawn = (double)word / 4294967296.0 * (double)left < (double)wanted;
            left--;
            wanted -= drawn > 0;
        }
        annotated[i] = 1 - drawn;
    }
    return TARE_OK;
}

OBJECTIVE("clip_cov", "the clipped surrogate without a few tokens of high covariance", ABOUT("arXiv 2505.22617"), NO_WANTS, check,
          .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_LOOKS_AHEAD, .sizes = one_number, .annotate = annotate,
          .compute = weighted_surrogate)
