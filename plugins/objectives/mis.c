/* mis: the clipped surrogate without the tokens, or the sequences, on which sampler and update
 * disagree.
 *
 *   v = M w * surrogate (ppo),   M = 1 where low <= m <= high, else 0
 * m = old / sampled of the token (token), its geometric mean over the sequence (geometric), or its
 *       product over it (sequence)
 *   w = 1 (none), or old / sampled of the token or of the sequence
 *
 * token with weight = token is IcePop (Ling team 2025, "Every Step Evolves", arXiv 2510.18855).
 * sequence with weight = sequence is masked importance sampling, geometric the mask by a sequence's
 * mean (Liu et al. 2025, "When Speed Kills Stability", yingru.notion.site). */
#include "common/sampler.h"
#include "common/surrogate.h"

enum { P_MASK, P_LOW, P_HIGH, P_WEIGHT, P_COUNT };
enum { TOKEN, GEOMETRIC, SEQUENCE };
enum { WEIGH_NONE, WEIGH_TOKEN, WEIGH_SEQUENCE };
static const char *const MASKS[] = {"token", "geometric", "sequence", NULL};
static const char *const WEIGHTS[] = {"none", "token", "sequence", NULL};
static const tare_param PARAMS[P_COUNT] = {
    [P_MASK] = TARE_CHOICE_PARAM("mask", "token", "the ratio that must be in the range", MASKS, 0),
    [P_LOW] = TARE_FLOAT_PARAM("low", "0.5", "alpha, the smallest ratio of a token that counts", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_HIGH] =
        TARE_FLOAT_PARAM("high", "5", "beta, the largest ratio of a token that counts", 1, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
    [P_WEIGHT] = TARE_CHOICE_PARAM("weight", "token", "the ratio that multiplies the tokens that count", WEIGHTS, 0),
};

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t q = 0; q < t->n_rollouts; q++) {
        const double sum = fmin(sequence_sum(t, q, sampler_log_ratio, NULL), LARGEST_LOG);
        const double whole = exp(sum), mean = exp(sum / (double)sequence_length(t, q));
        for (int64_t i = t->token_begin[q]; i < t->token_begin[q + 1]; i++) {
            const double of_token = exp(sampler_log_ratio(NULL, t, i));
            const double m = s->v[P_MASK].i == TOKEN ? of_token : s->v[P_MASK].i == GEOMETRIC ? mean : whole;
            const double w = s->v[P_WEIGHT].i == WEIGH_NONE ? 1 : s->v[P_WEIGHT].i == WEIGH_TOKEN ? of_token : whole;
            annotated[i] = m >= s->v[P_LOW].f && m <= s->v[P_HIGH].f ? w : 0;
        }
    }
    return TARE_OK;
}

OBJECTIVE("mis", "the clipped surrogate without tokens on which sampler and update disagree (IcePop, sequence masks)",
          ABOUT("arXiv 2510.18855; yingru.notion.site"), TARE_WANTS(WANTS, W_COUNT), any_values,
          .flags = TARE_OBJECTIVE_ZERO_AT_ZERO, .sizes = one_number, .annotate = annotate, .compute = weighted_surrogate)
