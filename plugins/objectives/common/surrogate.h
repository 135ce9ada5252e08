/* The clipped surrogate of PPO. Several objectives are built on it: a change here changes them all.
 *
 *   v = -min(r A, clip(r, 1 - clip, 1 + clip_high) A),   r = pi / old
 *
 * Schulman et al. 2017 (arXiv 1707.06347), equation 7; two bounds: DAPO (arXiv 2503.14476).
 * dual_clip (Ye et al. 2020, arXiv 1912.09729): for A < 0 the term is bounded below by dual_clip A.
 */
#ifndef OBJECTIVE_SURROGATE_H
#define OBJECTIVE_SURROGATE_H

#include "stateless.h"

#include <stdbool.h>

struct term {
    double value, dlogp;
    bool clipped; /* a bound takes effect */
};

static inline struct term surrogate(const tare_loss *c, double ratio, double advantage)
{
    const double bounded = fmin(fmax(ratio, 1 - c->clip), 1 + c->clip_high);
    if (bounded * advantage < ratio * advantage) return (struct term){-bounded * advantage, 0, true};
    if (c->dual_clip > 0 && advantage < 0 && ratio > c->dual_clip) return (struct term){-c->dual_clip * advantage, 0, true};
    return (struct term){-ratio * advantage, -ratio * advantage, false};
}

/* compute for an objective whose annotate gave each token a weight, 0 to leave it out: weight times
 * the clipped surrogate. */
static inline tare_status weighted_surrogate(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    const struct settings *s = self;
    (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        const struct term x = surrogate(&s->loss, exp(log_ratio(t, i)), t->advantage[i]);
        const double weight = t->annotated[i];
        put_outcome(out, i, weight * x.value, weight * x.dlogp, x.clipped || weight == 0);
    }
    return TARE_OK;
}

#endif
