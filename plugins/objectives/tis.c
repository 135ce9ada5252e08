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
    [P_LEVEL] = TARE_CHOICE_PARAM("level", "token", "the unit that has a weight: each token, or each sequence", LEVELS, 0),
    [P_CAP] = TARE_FLOAT_PARAM("cap", "2", "largest weight", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t q = 0; q < t->n_rollouts; q++) {
        const double sum = sequence_sum(t, q, sampler_log_ratio, NULL);
        for (int64_t i = t->token_begin[q]; i < t->token_begin[q + 1]; i++)
            annotated[i] =
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
        put_outcome(out, i, t->annotated[i] * x.value, t->annotated[i] * x.dlogp, x.clipped);
    }
    return TARE_OK;
}

OBJECTIVE("tis", "the clipped surrogate with truncated importance weights for the sampler",
          ABOUT("fengyao.notion.site/off-policy-rl"), TARE_WANTS(WANTS, W_COUNT), any_values, .flags = TARE_OBJECTIVE_ZERO_AT_ZERO,
          .sizes = one_number, .annotate = annotate, .compute = compute)
