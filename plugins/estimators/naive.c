/* naive: BV-Blend with a constant confidence; an ablation of the paper (table 2).
 *
 *   A[i] = (R[i] - b) / (s + delta)
 *   b = w mu_hist + (1-w) mu_G,   s^2 = w v_hist + (1-w) sigma_G^2,   w a constant
 *
 * Shares the code of bv_blend with weighting = fixed, with bit-identical results: see
 * common/blend.c. */
#include "common/blend.h"

enum { P_CLUSTERS, P_DDOF, P_DELTA, P_GAMMA, P_N0, P_V_PRIOR, P_W, P_V_FLOOR, P_ADVANTAGE_CLIP, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    BLEND_FIRST_PARAMS,
    [P_W] = BLEND_W,
    BLEND_LAST_PARAMS,
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *v = setup->values;
    const struct blend_settings settings = {
        BLEND_SETTINGS(v),
        .weighting = BLEND_FIXED,
        .w = v[P_W].f,
    };
    return blend_create(setup, &settings, self, error);
}

BLEND_END("naive", "BV-Blend with a constant confidence", "BV-Blend, table 2")
