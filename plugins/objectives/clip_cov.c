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
    [P_RATIO] = PARAM_FLOAT("ratio", "2e-4", "share of the minibatch's tokens that lose their gradient", 0, 1,
                            TARE_ABOVE_MIN | TARE_SWEEPABLE),
    [P_LOW] = PARAM_FLOAT("low", "1", "smallest covariance of a token that may be drawn", -1e30, 1e30, TARE_SWEEPABLE),
    [P_HIGH] = PARAM_FLOAT("high", "5", "largest covariance of a token that may be drawn", -1e30, 1e30, TARE_SWEEPABLE),
};

static tare_status check(const struct settings *s, tare_error *error)
{
    if (s->v[P_LOW].f < s->v[P_HIGH].f) return TARE_OK;
    return tare_fail(error, TARE_E_CONFIG, "low = %g: must be below high = %g", s->v[P_LOW].f, s->v[P_HIGH].f);
}

/* Sets prepared[i] to 1 for a token that may be drawn, else 0. Returns their number. */
static int64_t mark_candidates(const struct settings *s, const tare_tokens *t, double *prepared)
{
    int64_t n = 0;
    covariances(t, prepared);
    for (int64_t i = 0; i < t->n; i++) {
        const double ratio = exp(detached_log_ratio(t, i)), A = t->advantage[i];
        const double bounded = fmin(fmax(ratio, 1 - s->loss.clip), 1 + s->loss.clip_high);
        prepared[i] = !(bounded * A < ratio * A) && prepared[i] > s->v[P_LOW].f && prepared[i] < s->v[P_HIGH].f;
        n += prepared[i] > 0;
    }
    return n;
}

/* Selection sampling (Knuth, Algorithm S): each set of k of the candidates has equal probability.
 * Writes 0 for the drawn tokens, 1 for all others. */
static tare_status prepare(const void *self, const tare_tokens *t, double *prepared, tare_error *error)
{
    const struct settings *s = self;
    int64_t left = mark_candidates(s, t, prepared), wanted = share_of(s->v[P_RATIO].f, t->n);
    uint32_t word;
    for (int64_t i = 0; i < t->n; i++) {
        double drawn = 0;
        if (prepared[i] > 0) {
            if (s->host->random(s->host->ctx, (uint64_t)t->step, (uint64_t)i, &word, 1))
                return tare_fail(error, TARE_E_GENERIC, "the host offers no random numbers");
            drawn = (double)word / 4294967296.0 * (double)left < (double)wanted;
            left--;
            wanted -= drawn > 0;
        }
        prepared[i] = 1 - drawn;
    }
    return TARE_OK;
}

OBJECTIVE("clip_cov", "the clipped surrogate without a few tokens of high covariance", "arXiv 2505.22617", TARE_OBJECTIVE_PASS,
          check, .prepare_size = one_number, .prepare = prepare, .compute = weighted_surrogate)
