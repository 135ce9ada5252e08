/* bv_blend: prompt-local statistics blended with the history of the prompt's cluster.
 *
 *   A[i] = (R[i] - b) / (s + delta)
 *   b = w mu_hist + (1-w) mu_G,   s^2 = w v_hist + (1-w) sigma_G^2,   w = exp(-SEM_hist / T)
 *
 * Chang, Wu, Chang: "BV-Blend: Uncertainty-Weighted Historical Baselines for Stable Critic-Free RL
 * with Verifiable Rewards" (arXiv 2606.28707), equations 6 to 11. The equations and the code, line
 * by line, are in common/blend.c. The ablations of the paper's table 2 and of its appendix are the
 * parameters weighting and mapping here, and the separate plugins naive, n_eff and sigma_hist.
 *
 * The paper gives gamma 0.9 and delta 1e-8. It does not give T, N_0, V_prior, delta_N or the
 * degrees of freedom of sigma_G: the defaults here are for rewards in [0, 1] and groups of eight
 * (V_prior is the largest variance of such a reward, N_0 one group). With gamma 0.9 a cluster whose
 * last batches were all equal has v_hist near 0 and w near 1: a rare success then gets an advantage
 * in the thousands. v_floor and advantage_clip bound it; both are off by default, as in the paper.
 */
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
    P_WEIGHTING,
    P_MAPPING,
    P_W,
    P_SIGMA_REF,
    P_N_REF,
    P_V_FLOOR,
    P_ADVANTAGE_CLIP,
    P_COUNT
};

static const char *const WEIGHTINGS[] = {"sem", "n_eff", "sigma_hist", "fixed", NULL};

static const tare_param PARAMS[P_COUNT] = {
    BLEND_FIRST_PARAMS,
    [P_DELTA_N] = BLEND_DELTA_N,
    [P_TEMPERATURE] = BLEND_TEMPERATURE,
    [P_WEIGHTING] = TARE_CHOICE_PARAM(
        "weighting", "sem",
        "source of the confidence: the standard error (eq. 8), its count alone, its deviation alone, or a constant", WEIGHTINGS,
        TARE_PARAM_SWEEPABLE),
    [P_MAPPING] = BLEND_MAPPING,
    [P_W] = BLEND_W,
    [P_SIGMA_REF] = BLEND_SIGMA_REF,
    [P_N_REF] = BLEND_N_REF,
    BLEND_LAST_PARAMS,
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *v = setup->values;
    const struct blend_settings settings = {BLEND_SETTINGS(v),
                                            .weighting = v[P_WEIGHTING].i,
                                            .mapping = v[P_MAPPING].i,
                                            .w = v[P_W].f,
                                            .temperature = v[P_TEMPERATURE].f,
                                            .delta_n = v[P_DELTA_N].f,
                                            .sigma_ref = v[P_SIGMA_REF].f,
                                            .n_ref = v[P_N_REF].f};
    return blend_create(setup, &settings, self, error);
}

BLEND_END("bv_blend", "prompt-local statistics blended with the moving moments of the prompt's cluster",
          "BV-Blend, arXiv 2606.28707, equations 6 to 11")
