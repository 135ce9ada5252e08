/* tis: the clipped surrogate times a truncated importance weight, for a sampler whose probabilities
 * differ from the update's.
 *
 *   v = min(w, cap) * surrogate (ppo),
 *       w = old / sampled of the token, or of the whole sequence (the product over its tokens)
 *
 * Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training"
 * (fengyao.notion.site/off-policy-rl); truncation: Ionides 2008. level = token is equal to
 * loss.rollout_is = tis with ppo; level = sequence is unbiased up to the cap, and has a larger
 * variance. */
#include "common/sampler.h"
#include "common/surrogate.h"

enum { P_LEVEL, P_CAP, P_COUNT };
enum { TOKEN, SEQUENCE };
static const char *const LEVELS[] = {"token", "sequence", NULL};
static const tare_param PARAMS[P_COUNT] = {
    [P_LEVEL] = PARAM_CHOICE("level", "token", "the unit that has a weight: each token, or each sequence", LEVELS),
    [P_CAP] = PARAM_FLOAT("cap", "2", "largest weight", 0, 1e30, TARE_ABOVE_MIN | TARE_SWEEPABLE),
};

static tare_status prepare(const void *self, const tare_tokens *t, double *prepared, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t q = 0; q < t->n_sequences; q++) {
        const double sum = sequence_sum(t, q, sampler_log_ratio, NULL);
        for (int64_t i = t->sequence_begin[q]; i < t->sequence_begin[q + 1]; i++)
            prepared[i] =
                fmin(exp(s->v[P_LEVEL].i == TOKEN ? sampler_log_ratio(NULL, t, i) : fmin(sum, LARGEST_LOG)), s->v[P_CAP].f);
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const struct term x = surrogate(&s->loss, exp(log_ratio(t, i)), t->advantage[i]);
        put_outcome(out, i, t->prepared[i] * x.value, t->prepared[i] * x.dlogp, x.clipped);
    }
    return TARE_OK;
}

OBJECTIVE("tis", "the clipped surrogate with truncated importance weights for the sampler", "fengyao.notion.site/off-policy-rl",
          TARE_OBJECTIVE_SAMPLER, any_values, .prepare_size = one_number, .prepare = prepare, .compute = compute)
