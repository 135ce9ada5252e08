/* opsm: the clipped surrogate without wrong answers that the policy has already moved away from.
 *
 *   v = M * surrogate (ppo),
 *       M = 0 where A < 0 and 1/n sum_t (old_t - logp_t) > delta over the sequence, else 1
 *
 * DeepSeek-AI 2025, "DeepSeek-V3.2" (arXiv 2512.02556), off-policy sequence masking. The paper
 * gives no delta; the default is slime's. */
#include "common/sequence.h"
#include "common/surrogate.h"

enum { P_DELTA, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] = TARE_FLOAT_PARAM("delta", "1e-4", "largest decrease of a sequence's mean log-probability that is accepted", 0,
                                 TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
};

static double log_ratio_term(const void *ctx, const tare_tokens *t, int64_t i)
{
    (void)ctx;
    return -detached_log_ratio(t, i);
}

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    sequence_means(t, log_ratio_term, NULL, annotated);
    for (int64_t i = 0; i < t->n; i++) annotated[i] = t->advantage[i] < 0 && annotated[i] > s->v[P_DELTA].f ? 0 : 1;
    return TARE_OK;
}

OBJECTIVE("opsm", "the clipped surrogate without wrong answers that the policy has moved away from", ABOUT("arXiv 2512.02556"),
          NO_WANTS, any_values, .flags = TARE_OBJECTIVE_ZERO_AT_ZERO | TARE_OBJECTIVE_LOOKS_AHEAD, .sizes = one_number,
          .annotate = annotate, .compute = weighted_surrogate)
