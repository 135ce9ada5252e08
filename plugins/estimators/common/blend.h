/* BV-Blend, shared by bv_blend and the ablations naive, n_eff and sigma_hist, so that each of them
 * is bit-identical to bv_blend with its weighting. The mathematics is in blend.c. */
#ifndef TARE_ESTIMATORS_BLEND_H
#define TARE_ESTIMATORS_BLEND_H

#include "estimator.h"

/* The table of wants of all of them. */
enum { W_CLUSTER, W_COUNT };
#define BLEND_WANTS static const tare_want WANTS[W_COUNT] = {[W_CLUSTER] = WANT("cluster", TARE_AXIS_GROUP, TARE_I32)};

enum blend_weighting { BLEND_SEM, BLEND_N_EFF, BLEND_SIGMA_HIST, BLEND_FIXED };
enum blend_mapping { BLEND_EXP, BLEND_RECIPROCAL, BLEND_LINEAR };

struct blend_settings {
    int64_t clusters, ddof, weighting, mapping;
    double delta, gamma, n0, v_prior, v_floor, advantage_clip;
    double w;                                      /* for weighting = fixed */
    double temperature, delta_n, sigma_ref, n_ref; /* for the other weightings */
};

/* The history of a cluster: mean, variance of one reward, confidence (0: no history). */
struct blend_history {
    double mu, v, w;
};

struct blend_form {
    int64_t K, ddof;
    double delta, advantage_clip; /* 0: not clipped */
};

/* Computes equations 10 and 11 for every group of a batch. history(self, k) is called once per
 * group; k < 0 for a prompt without a cluster. */
tare_status blend_advantages(const void *self, struct blend_history (*history)(const void *self, int32_t cluster),
                             const struct blend_form *form, const tare_batch *batch, tare_advantages *out, tare_error *error);

tare_status blend_create(const tare_setup *setup, const struct blend_settings *settings, void **self, tare_error *error);
const tare_host *blend_host(const void *self);
const tare_value *blend_values(const void *self); /* of the setup */
void blend_destroy(void *self);
tare_status blend_save(const void *self, const tare_stream *out, tare_error *error);
tare_status blend_load(void *self, const tare_stream *in, tare_error *error);
tare_status blend_sizes(const void *self, tare_sizes *out, tare_error *error);
tare_status blend_compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                          tare_error *error);
tare_status blend_collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error);
tare_status blend_apply(void *self, const tare_update *update, tare_error *error);
tare_status blend_describe(const void *self, const tare_stream *out, tare_error *error);

/* The end of a file whose create calls blend_create. */
#define BLEND_END(NAME, SUMMARY, PAPER)                                                                                            \
    BLEND_WANTS                                                                                                                    \
    STATEFUL(NAME, SUMMARY, PAPER, .create = create, .destroy = blend_destroy, .save = blend_save, .load = blend_load,             \
             .sizes = blend_sizes, .compute = blend_compute, .collect = blend_collect, .apply = blend_apply,                       \
             .describe = blend_describe)

/* The shared parameters: the first rows of PARAMS, its last ones, and the settings from values v.
 */
#define BLEND_FIRST_PARAMS                                                                                                         \
    [P_CLUSTERS] = BLEND_CLUSTERS, [P_DDOF] = BLEND_DDOF, [P_DELTA] = BLEND_DELTA, [P_GAMMA] = BLEND_GAMMA, [P_N0] = BLEND_N0,     \
    [P_V_PRIOR] = BLEND_V_PRIOR
#define BLEND_LAST_PARAMS [P_V_FLOOR] = BLEND_V_FLOOR, [P_ADVANTAGE_CLIP] = BLEND_ADVANTAGE_CLIP
#define BLEND_SETTINGS(v)                                                                                                          \
    .clusters = (v)[P_CLUSTERS].i, .ddof = (v)[P_DDOF].i, .delta = (v)[P_DELTA].f, .gamma = (v)[P_GAMMA].f, .n0 = (v)[P_N0].f,     \
    .v_prior = (v)[P_V_PRIOR].f, .v_floor = (v)[P_V_FLOOR].f, .advantage_clip = (v)[P_ADVANTAGE_CLIP].f

/* Rows of the parameter tables. */
#define BLEND_CLUSTERS                                                                                                             \
    TARE_INT_PARAM("clusters", "0", "number of clusters K with moments; 0: the number in the codebook", 0, 1e7,                    \
                   TARE_PARAM_LOCKED_ON_RESUME)
#define BLEND_DDOF                                                                                                                 \
    TARE_INT_PARAM("ddof", "1", "degrees of freedom of sigma_G: 1 divides by G-1 (sample), 0 by G (population)", 0, 1, 0)
#define BLEND_DELTA                                                                                                                \
    TARE_FLOAT_PARAM("delta", "1e-8", "delta, added to the scale (eq. 11)", 0, TARE_NO_MAX,                                        \
                     TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE)
#define BLEND_GAMMA                                                                                                                \
    TARE_FLOAT_PARAM("gamma", "0.9", "gamma, weight of the newest batch in the moving moments (eq. 6)", 0, 1,                      \
                     TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE)
#define BLEND_N0                                                                                                                   \
    TARE_UNIT_PARAM("n0", "8", "N_0, the effective mass of a cluster when it first occurs", "rollouts", 0, TARE_NO_MAX,            \
                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE)
#define BLEND_V_PRIOR                                                                                                              \
    TARE_UNIT_PARAM("v_prior", "0.25", "V_prior, the variance of a cluster when it first occurs", "reward^2", 0, TARE_NO_MAX,      \
                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE)
#define BLEND_DELTA_N                                                                                                              \
    TARE_FLOAT_PARAM("delta_n", "1e-8", "delta_N, added to the effective mass under the root (eq. 8)", 0, TARE_NO_MAX,             \
                     TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE)
#define BLEND_TEMPERATURE                                                                                                          \
    TARE_UNIT_PARAM("temperature", "0.1", "temperature T: a larger T lowers the confidence less for the same uncertainty (eq. 9)", \
                    "reward", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE)
#define BLEND_MAPPING                                                                                                              \
    TARE_CHOICE_PARAM("mapping", "exp", "w = g(u): exp e^-u (eq. 9), reciprocal 1/(1+u), linear max(0, 1-u)", BLEND_MAPPINGS,      \
                      TARE_PARAM_SWEEPABLE)
#define BLEND_W TARE_FLOAT_PARAM("w", "0.5", "the constant confidence for weighting = fixed", 0, 1, TARE_PARAM_SWEEPABLE)
#define BLEND_SIGMA_REF                                                                                                            \
    TARE_UNIT_PARAM("sigma_ref", "0.5", "replaces sigma_hist for weighting = n_eff", "reward", 0, TARE_NO_MAX,                     \
                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE)
#define BLEND_N_REF                                                                                                                \
    TARE_UNIT_PARAM("n_ref", "16", "replaces N_eff for weighting = sigma_hist", "rollouts", 0, TARE_NO_MAX,                        \
                    TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE)
#define BLEND_V_FLOOR                                                                                                              \
    TARE_UNIT_PARAM("v_floor", "0", "lower bound of v_hist; 0: no bound, as in the paper", "reward^2", 0, TARE_NO_MAX,             \
                    TARE_PARAM_SWEEPABLE)
#define BLEND_ADVANTAGE_CLIP                                                                                                       \
    TARE_FLOAT_PARAM("advantage_clip", "0", "advantages are clipped to [-c, c]; 0: not clipped, as in the paper", 0, TARE_NO_MAX,  \
                     TARE_PARAM_SWEEPABLE)

extern const char *const BLEND_MAPPINGS[];

#endif
