/* n_eff: BV-Blend with a confidence from the effective count alone; an ablation of the paper (table
 * 2).
 *
 *   A[i] = (R[i] - b) / (s + delta)
 *   b = w mu_hist + (1-w) mu_G,   s^2 = w v_hist + (1-w) sigma_G^2
 *   w = g(sigma_ref / sqrt(N_eff + delta_N) / T)
 *
 * Shares the code of bv_blend with weighting = n_eff, with bit-identical results: see
 * common/blend.c. */
#include "common/blend.h"

enum {
    P_CLUSTERS,
    P_DDOF,
    P_DELTA,
    P_GAMMA,
    P_N0,
    P_V_PRIOR,
    P_DELTA_N,
    P_TEMPERATURE,
    P_MAPPING,
    P_SIGMA_REF,
    P_V_FLOOR,
    P_ADVANTAGE_CLIP,
    P_COUNT
};

static const tare_param PARAMS[P_COUNT] = {
    BLEND_FIRST_PARAMS,          [P_DELTA_N] = BLEND_DELTA_N,     [P_TEMPERATURE] = BLEND_TEMPERATURE,
    [P_MAPPING] = BLEND_MAPPING, [P_SIGMA_REF] = BLEND_SIGMA_REF, BLEND_LAST_PARAMS,
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *v = setup->values;
    const struct blend_settings settings = {
        BLEND_SETTINGS(v),         .weighting = BLEND_N_EFF,      .delta_n = v[P_DELTA_N].f, .temperature = v[P_TEMPERATURE].f,
        .mapping = v[P_MAPPING].i, .sigma_ref = v[P_SIGMA_REF].f,
    };
    return blend_create(setup, &settings, self, error);
}

BLEND_END("n_eff", "BV-Blend with a confidence from the effective count alone", "BV-Blend, table 2")
