/* spo_priority: rows by the uncertainty of their outcome.
 *
 *   v(x) = (S(x) + mass value) / (N(x) + mass)
 *          the tracked success rate of row x
 *   S(x) <- rho S(x) + correct rollouts,  N(x) <- rho N(x) + verified rollouts
 *           after each step, for the rows of the step
 *
 *   weight of x = sqrt(v(x) (1 - v(x))) + epsilon                     equation 11
 *
 * A step's rows are drawn by weight without replacement.
 *
 * Xu and Ding 2025, "Single-stream Policy Optimization" (arXiv 2509.13232), section 4.3. Their
 * tracker forgets by the policy's movement and belongs to the estimator; this one belongs to the
 * curriculum and forgets by a constant, as estimator spo does with decay = fixed. Their prior fades
 * with rho like the counts; here it stays, so that a row that rarely occurs is never certain. For
 * the whole method, also set estimator.plugin = spo and rollout.group_size = 1.
 */
#include "common/by_pass_rate.h"

enum { P_EPSILON, P_RHO, P_VALUE, P_MASS, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_EPSILON] = TARE_FLOAT_PARAM("epsilon", "0.05", "epsilon, so that every row can be drawn (equation 11)", 0, 1,
                                   TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_RHO] = TARE_FLOAT_PARAM("rho", "0.9", "rho, the share of a row's counts that is kept when it occurs again", 0, 1,
                               TARE_PARAM_SWEEPABLE),
    [P_VALUE] = TARE_FLOAT_PARAM("value", "0.5", "v of a row before it occurs", 0, 1, 0),
    [P_MASS] = TARE_FLOAT_PARAM("mass", "1", "number of rollouts that this value counts as", 0, TARE_NO_MAX,
                                TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

static double weight_of(const tare_value *v, double right, double total)
{
    const double value = (right + v[P_MASS].f * v[P_VALUE].f) / (total + v[P_MASS].f);
    return sqrt(fmax(value * (1 - value), 0)) + v[P_EPSILON].f;
}

static tare_status apply(void *self, const tare_batch *groups, tare_error *error)
{
    struct by_pass_rate *x = self;
    (void)error;
    passes_add(&x->passes, groups, x->v[P_RHO].f);
    return TARE_OK;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    return new_by_pass_rate(setup, self, error);
}

CURRICULUM("spo_priority", "rows by the deviation of their outcome (prioritized sampling of SPO)",
           ABOUT("arXiv 2509.13232, equation 11"), W_COUNT, 1, .save = save, .load = load, .next = next, .apply = apply)
