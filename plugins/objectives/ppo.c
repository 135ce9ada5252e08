/* ppo: the clipped surrogate, token by token. The default. The clip itself is surrogate() in
 * common/surrogate.h, which other objectives share.
 *
 *   v = -min(r A, clip(r, 1 - clip, 1 + clip_high) A),   r = pi / old
 *
 * Schulman et al. 2017, "Proximal Policy Optimization Algorithms" (arXiv 1707.06347), equation 7.
 * Its bounds are keys of [loss]: clip; clip_high for another bound above (clip-higher, DAPO, arXiv
 * 2503.14476); dual_clip for a bound on tokens with a negative advantage (arXiv 1912.09729). */
#include "common/stateless.h"
#include "common/surrogate.h"

enum { P_COUNT };
#define PARAMS NULL /* its bounds are keys of [loss] */

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const struct term x = surrogate(&s->loss, exp(log_ratio(t, i)), t->advantage[i]);
        put_outcome(out, i, x.value, x.dlogp, x.clipped);
    }
    return TARE_OK;
}

OBJECTIVE("ppo", "the clipped surrogate (clip, clip-higher, dual clip)", ABOUT("arXiv 1707.06347, equation 7"), NO_WANTS,
          any_values, .flags = TARE_OBJECTIVE_ZERO_AT_ZERO, .compute = compute)
