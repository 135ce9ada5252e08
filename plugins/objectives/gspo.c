/* gspo: the surrogate with one ratio for a whole sequence.
 *
 *   s_i = exp(1/n_i sum_t (logp_t - old_t))
 *         n_i tokens of sequence i
 *   v   = -min(s A, clip(s, 1 - clip_low, 1 + clip_high) A),   s = sg(s_i) pi / sg(pi)
 *
 * Zheng et al. 2025, "Group Sequence Policy Optimization" (arXiv 2507.18071), equations 5 and 7, in
 * the token form of equation 14. Its value is that of the sequence, and so is its gradient where a
 * sequence has one advantage; tokens may have different advantages. The bounds are the paper's, far
 * narrower than those of a token's ratio. loss.aggregation = sequence is the paper's mean.
 */
#include "common/sequence.h"

enum { P_LOW, P_HIGH, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_LOW] = TARE_FLOAT_PARAM("clip_low", "3e-4", "epsilon below 1 of the sequence's ratio", 0, 1,
                               TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_HIGH] =
        TARE_FLOAT_PARAM("clip_high", "4e-4", "epsilon above 1", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static double log_ratio_term(const void *ctx, const tare_tokens *t, int64_t i)
{
    (void)ctx;
    return log_ratio(t, i);
}

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    (void)self, (void)error;
    sequence_means(t, log_ratio_term, NULL, annotated);
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double A = t->advantage[i], ratio = exp(t->annotated[i] + live_ratio(t, i));
        const double bounded = fmin(fmax(ratio, 1 - s->v[P_LOW].f), 1 + s->v[P_HIGH].f);
        const int clipped = bounded * A < ratio * A;
        put_outcome(out, i, clipped ? -bounded * A : -ratio * A, clipped ? 0 : -ratio * A, clipped);
    }
    return TARE_OK;
}

OBJECTIVE("gspo", "the clipped surrogate with one ratio for a whole sequence", ABOUT("arXiv 2507.18071, equations 5, 7 and 14"),
          NO_WANTS, any_values,
          .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP |
                   TARE_OBJECTIVE_LOOKS_AHEAD,
          .sizes = one_number, .annotate = annotate, .compute = compute)
