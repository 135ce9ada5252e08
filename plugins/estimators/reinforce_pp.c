/* reinforce_pp: discounted rewards, whitened over all tokens of the batch. No groups.
 *
 *   G[i,t] = gamma^(L[i]-1-t) R[i]
 *            the return at sampled token t of rollout i, which has L[i] of them; the reward comes
 *            with the last
 *   A[i,t] = (G[i,t] - mean) * rate   mean and variance over the batch's tokens: common/whiten.h
 *
 * Hu et al. 2025, "REINFORCE++: An Efficient RLHF Algorithm with Robustness to Both Prompt and
 * Reward Models" (arXiv 2501.03262).
 *
 * The trainers differ in the variance, which the parameter `convention` selects. A KL penalty
 * inside the reward is not part of it; use loss.kl_coef. With gamma 1 all tokens of a rollout have
 * the same advantage. The reported advantage of a rollout is that of its last token. */
#include "common/estimator.h"
#include "common/whiten.h"

#include <math.h>

enum { P_GAMMA, P_CONVENTION, P_COUNT };

enum { VERL, SKYRL, NEMO, OPENRLHF };
static const char *const CONVENTIONS[] = {"verl", "skyrl", "nemo", "openrlhf", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_GAMMA] =
        TARE_FLOAT_PARAM("gamma", "1", "gamma, discount for each token between here and the end", 0, 1, TARE_PARAM_ABOVE_MIN),
    [P_CONVENTION] = TARE_CHOICE_PARAM("convention", "verl", "the trainer whose mean and variance are computed", CONVENTIONS, 0),
};

PREPARES(WHITEN_SUMS)

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const tare_value *v = self;
    (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        double G = batch->reward[i];
        for (int64_t left = batch->length[i]; left > 0; left--, G *= v[P_GAMMA].f) {
            sum[WHITEN_N] += 1;
            sum[WHITEN_S1] += G;
            sum[WHITEN_S2] += G * G;
        }
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const struct whiten w = whiten_of(prepared, v[P_CONVENTION].i);
    (void)error;
    for (int64_t i = 0; i < batch->n_rollouts; i++) {
        double G = batch->reward[i];
        out->advantage[i] = (G - w.mean) * w.rate;
        for (int64_t t = batch->token_begin[i + 1] - 1; t >= batch->token_begin[i]; t--) {
            if (!batch->sampled[t]) continue;
            out->token_advantage[t] = (float)((G - w.mean) * w.rate);
            G *= v[P_GAMMA].f;
        }
    }
    for (int64_t m = 0; m < batch->n_groups; m++) out->baseline[m] = w.mean;
    return TARE_OK;
}

STATELESS("reinforce_pp", "discounted rewards, whitened over the batch's tokens", "arXiv 2501.03262",
          .flags = TARE_ESTIMATOR_GIVES_TOKENS, .sizes = sizes, .prepare = prepare, .compute = compute)
