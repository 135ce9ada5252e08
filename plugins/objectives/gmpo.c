/* gmpo: the geometric mean of a sequence's ratios, each clipped.
 *
 *   v = -A exp(1/n sum_t x_t),
 *       x = log r clipped at clip_high from above where A > 0, at -clip_low from below where A < 0
 *
 * Zhao et al. 2025, "Geometric-Mean Policy Optimization" (arXiv 2507.20673). The bounds are those
 * of log r, wider than PPO's: the paper's ratio is in (e^-0.4, e^0.4). A sequence has one
 * advantage. loss.aggregation = sequence is the paper's mean.
 */
#include "common/sequence.h"

enum { P_LOW, P_HIGH, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_LOW] = TARE_FLOAT_PARAM("clip_low", "0.4", "bound of -log r where the advantage is negative", 0, TARE_NO_MAX,
                               TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_HIGH] = TARE_FLOAT_PARAM("clip_high", "0.4", "bound of log r where the advantage is positive", 0, TARE_NO_MAX,
                                TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

static double bounded_ratio(const struct settings *s, double x, double advantage)
{
    return advantage > 0 ? fmin(x, s->v[P_HIGH].f) : advantage < 0 ? fmax(x, -s->v[P_LOW].f) : 0;
}

static double log_ratio_term(const void *ctx, const tare_tokens *t, int64_t i)
{
    return bounded_ratio(ctx, detached_log_ratio(t, i), t->advantage[i]);
}

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    (void)error;
    sequence_means(t, log_ratio_term, self, annotated);
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const double A = t->advantage[i], x = detached_log_ratio(t, i);
        const int clipped = A != 0 && bounded_ratio(s, x, A) != x;
        const double value = -A * exp(t->annotated[i] + (clipped ? 0 : live_ratio(t, i)));
        put_outcome(out, i, value, clipped ? 0 : value, clipped);
    }
    return TARE_OK;
}

OBJECTIVE("gmpo", "the geometric mean of a sequence's clipped ratios", ABOUT("arXiv 2507.20673"), NO_WANTS, any_values,
          .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP |
                   TARE_OBJECTIVE_LOOKS_AHEAD,
          .sizes = one_number, .annotate = annotate, .compute = compute)
