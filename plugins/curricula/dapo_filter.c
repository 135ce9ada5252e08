/* dapo_filter: groups of medium pass rate; the others are replaced.
 *
 *   a group is kept when   low < p < high,   p = correct / verified rollouts
 *   (low 0, high 1: neither none nor all)
 *
 * As many groups as were dropped are sampled in addition, at most rollout.refill_rounds times a
 * step. If groups are still missing then, the step is smaller. The order of the rows is the plain
 * one.
 *
 * Yu et al. 2025, "DAPO" (arXiv 2503.14476), section 3.2, equation 11: 0 < |{o_i : is_equivalent(a,
 * o_i)}| < G. They sample until the batch is full; here the number of rounds is bounded. With low =
 * 0.2, high = 0.8, for example, it is the balanced filter of Bae et al. 2025 (arXiv 2504.03380).
 * estimator.plugin = dapo filters too, by the spread of the rewards unless filter = correct; this
 * curriculum works with every estimator.
 */
#include "common/curriculum.h"
#include "common/rows.h"

enum { P_LOW, P_HIGH, P_REPLACE, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_LOW] = TARE_FLOAT_PARAM("low", "0", "groups with this pass rate or a lower one are dropped", 0, 1,
                               TARE_PARAM_BELOW_MAX | TARE_PARAM_SWEEPABLE),
    [P_HIGH] = TARE_FLOAT_PARAM("high", "1", "groups with this pass rate or a higher one are dropped", 0, 1,
                                TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_REPLACE] = TARE_BOOL_PARAM("replace", "true", "replace each dropped group with another one", 0),
};

static tare_status keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    const struct settings *s = self;
    int64_t dropped = 0;
    (void)error;
    for (int64_t m = 0; m < groups->n_groups; m++) {
        int64_t right, verified;
        group_passes(groups, m, &right, &verified);
        const double p = verified ? (double)right / (double)verified : 0;
        if (verified && p > s->v[P_LOW].f && p < s->v[P_HIGH].f) continue;
        for (int64_t i = groups->group_begin[m]; i < groups->group_begin[m + 1]; i++) out->fate[i] = TARE_FATE_LEFT_OUT;
        dropped++;
    }
    if (s->v[P_REPLACE].i) out->extra_groups = dropped;
    return TARE_OK;
}

CURRICULUM_STATELESS("dapo_filter", "groups of medium pass rate; others are replaced (dynamic sampling)",
                     ABOUT("arXiv 2503.14476, equation 11"), W_COUNT, .keep = keep)
