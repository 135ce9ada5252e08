/* sigma_hist: BV-Blend with a confidence from the historical deviation alone; an ablation of the
 * paper (table 2).
 *
 *   A[i] = (R[i] - b) / (s + delta)
 *   b = w mu_hist + (1-w) mu_G,   s^2 = w v_hist + (1-w) sigma_G^2
 *   w = g(sigma_hist / sqrt(n_ref) / T)
 *
 * Shares the code of bv_blend with weighting = sigma_hist, with bit-identical results: see
 * common/blend.c. */
#include "common/blend.h"

enum {
    P_CLUSTERS,
    P_DDOF,
    P_DELTA,
    P_GAMMA,
    P_N0,
    P_V_PRIOR,
    P_TEMPERATURE,
    P_MAPPING,
    P_N_REF,
    P_V_FLOOR,
    P_ADVANTAGE_CLIP,
    P_COUNT
};

static const tare_param PARAMS[P_COUNT] = {
    BLEND_FIRST_PARAMS, [P_TEMPERATURE] = BLEND_TEMPERATURE, [P_MAPPING] = BLEND_MAPPING, [P_N_REF] = BLEND_N_REF,
    BLEND_LAST_PARAMS,
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *v = setup->values;
    const struct blend_settings settings = {
        BLEND_SETTINGS(v),         .weighting = BLEND_SIGMA_HIST, .temperature = v[P_TEMPERATURE].f,
        .mapping = v[P_MAPPING].i, .n_ref = v[P_N_REF].f,
    };
    return blend_create(setup, &settings, self, error);
}

BLEND_END("sigma_hist", "BV-Blend with a confidence from the historical deviation alone", "BV-Blend, table 2")
