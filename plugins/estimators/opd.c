/* opd: on-policy distillation: the advantage of a token is the teacher's log-probability of it
 * minus the policy's.
 *
 *   A[i,t] = coef (log q(y[t]) - log pi(y[t]))
 *            y: completion i, sampled by the policy pi; q: the teacher
 *
 * Its mean over samples is -coef KL(pi || q), token by token: the reverse KL, as in "On-Policy
 * Distillation" (Thinking Machines Lab 2025, thinkingmachines.ai/blog/on-policy-distillation) and,
 * over the whole vocabulary, in GKD (Agarwal et al. 2023, arXiv 2306.13649). Rewards are not used.
 *
 * The teacher is the reference policy: model.reference = FOLDER, a model of any shape and size with
 * the policy's tokenizer. A completion that the policy did not sample (rollout.off_policy) has
 * logprobs of 0 and gets A = 0. The advantage of a rollout that is reported is the mean over its
 * tokens. */
#include "common/estimator.h"

#include <math.h>
#include <stdbool.h>

enum { P_COEF, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_COEF] = TARE_FLOAT_PARAM("coef", "1", "factor of the advantages", 0, 1e6, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

enum { W_LOGPROB, W_REF_LOGPROB, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_LOGPROB] = WANT("logprob", TARE_AXIS_TOKEN, TARE_F32),
    [W_REF_LOGPROB] = WANT("ref_logprob", TARE_AXIS_TOKEN, TARE_F32),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const float *policy = TARE_COLUMN(batch, W_LOGPROB, float), *teacher = TARE_COLUMN(batch, W_REF_LOGPROB, float);
    (void)prepared, (void)error;
    for (int64_t i = 0; i < batch->n_rollouts; i++) {
        const int64_t begin = batch->token_begin[i], end = batch->token_begin[i + 1];
        bool by_policy = false;
        double sum = 0;
        for (int64_t t = begin; t < end; t++) by_policy = by_policy || (batch->sampled[t] && policy[t] != 0);
        for (int64_t t = begin; t < end; t++) {
            if (!batch->sampled[t]) continue;
            const double A = v[P_COEF].f * ((double)teacher[t] - (double)policy[t]);
            out->token_advantage[t] = by_policy ? (float)A : 0;
            sum += by_policy ? A : 0;
        }
        out->advantage[i] = batch->length[i] ? sum / (double)batch->length[i] : 0;
    }
    for (int64_t m = 0; m < batch->n_groups; m++) out->baseline[m] = 0;
    return TARE_OK;
}

STATELESS_WANTS("opd", "on-policy distillation: a teacher's logprob of each token minus the policy's",
                "thinkingmachines.ai/blog/on-policy-distillation; arXiv 2306.13649", .flags = TARE_ESTIMATOR_GIVES_TOKENS,
                .compute = compute)
