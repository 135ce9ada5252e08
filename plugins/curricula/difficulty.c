/* difficulty: rows whose questions the policy can almost answer, by their running pass rates.
 *
 *   S(x) <- rho S(x) + correct rollouts,  N(x) <- rho N(x) + verified rollouts
 *           after each step, for the rows of the step
 *   p(x) = S(x) / N(x)
 *
 *   weight of x = 1         low <= p(x) <= high (the zone of proximal development), and rows that
 *                           did not occur yet
 *                 outside   otherwise; such rows occur rarely, since p(x) is from an older policy
 *
 * A step's rows are drawn by weight without replacement.
 *
 * Bae et al. 2025, "Online Difficulty Filtering for Reasoning Oriented Reinforcement Learning"
 * (arXiv 2504.03380): the improvement from a question is bounded from below by p (1 - p), so
 * questions of medium pass rate are kept, symmetrically around 1/2. They sample every question and
 * drop those outside (here: dapo_filter with low and high). This plugin chooses before sampling, by
 * the last observed rates, and so spends no rollouts on the other questions except for the share of
 * `outside`. */
#include "common/by_pass_rate.h"

enum { P_LOW, P_HIGH, P_OUTSIDE, P_RHO, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_LOW] = TARE_FLOAT_PARAM("low", "0.2", "the smallest pass rate of the zone", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_HIGH] = TARE_FLOAT_PARAM("high", "0.8", "the largest pass rate of the zone", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_OUTSIDE] = TARE_FLOAT_PARAM("outside", "0.05", "weight of a row outside of the zone; inside, the weight is 1", 0, 1,
                                   TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_RHO] = TARE_FLOAT_PARAM("rho", "0.5", "rho, the share of a row's counts that is kept when it occurs again", 0, 1,
                               TARE_PARAM_SWEEPABLE),
};

static double weight_of(const tare_value *v, double right, double total)
{
    const double p = total > 0 ? right / total : 0;
    return total > 0 && (p < v[P_LOW].f || p > v[P_HIGH].f) ? v[P_OUTSIDE].f : 1;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *v = setup->values;
    if (v[P_LOW].f > v[P_HIGH].f) return tare_fail(error, TARE_E_CONFIG, "low = %g is above high = %g", v[P_LOW].f, v[P_HIGH].f);
    return new_by_pass_rate(setup, self, error);
}

static tare_status apply(void *self, const tare_batch *groups, tare_error *error)
{
    struct by_pass_rate *x = self;
    (void)error;
    passes_add(&x->passes, groups, x->v[P_RHO].f);
    int64_t inside = 0, met = 0;
    for (int64_t i = 0; i < x->passes.n; i++) {
        met += x->passes.total[i] > 0;
        inside += x->passes.total[i] > 0 && weight_of(x->v, x->passes.right[i], x->passes.total[i]) == 1;
    }
    x->host->metric(x->host->ctx, "in_zone", met ? (double)inside / (double)met : 0, TARE_METRIC_LAST);
    x->host->metric(x->host->ctx, "rows_met", (double)met, TARE_METRIC_LAST);
    return TARE_OK;
}

CURRICULUM("difficulty", "rows of medium pass rate (the zone of proximal development)", ABOUT("arXiv 2504.03380"), W_COUNT, 1,
           .save = save, .load = load, .next = next, .apply = apply)
