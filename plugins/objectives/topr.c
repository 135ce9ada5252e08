/* topr: correct answers have full weight, wrong answers less as the policy moves away from them.
 *
 *   v = -A logp where A >= 0;   v = -sg(w) A logp where A < 0,
 *       w = min(pi / old, 1) of the whole sequence, or of the token
 *
 * Le Roux et al. 2025, "Tapered Off-Policy REINFORCE" (arXiv 2503.14286), equation 8: no importance
 * weight on correct answers, so that they move the policy regardless of their probability, and a
 * truncated one on wrong answers. The sign of the advantage distinguishes correct from wrong
 * answers.
 */
#include "common/sequence.h"

enum { P_LEVEL, P_COUNT };
enum { SEQUENCE, TOKEN };
static const char *const LEVELS[] = {"sequence", "token", NULL};
static const tare_param PARAMS[P_COUNT] = {
    [P_LEVEL] = TARE_CHOICE_PARAM("level", "sequence", "ratio used as the weight: of the sequence (paper) or of the token (ROLL)",
                                  LEVELS, 0),
};

static double log_ratio_term(const void *ctx, const tare_tokens *t, int64_t i)
{
    (void)ctx;
    return detached_log_ratio(t, i);
}

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t q = 0; q < t->n_rollouts; q++) fill_sequence(t, q, sequence_sum(t, q, log_ratio_term, NULL), annotated);
    for (int64_t i = 0; i < t->n; i++) {
        const double x = s->v[P_LEVEL].i == TOKEN ? detached_log_ratio(t, i) : annotated[i];
        annotated[i] = t->advantage[i] < 0 ? exp(fmin(x, 0)) : 1;
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double slope = -t->annotated[i] * t->advantage[i];
        put_outcome(out, i, slope * (double)t->logprob[i], slope, 0);
    }
    return TARE_OK;
}

OBJECTIVE("topr", "right answers unweighted, wrong ones by a truncated ratio", ABOUT("arXiv 2503.14286, equation 8"), NO_WANTS,
          any_values,
          .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP |
                   TARE_OBJECTIVE_LOOKS_AHEAD,
          .sizes = one_number, .annotate = annotate, .compute = compute)
