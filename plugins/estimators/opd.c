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
#include "common/stateless.h"

#include <math.h>
#include <stdbool.h>

enum { P_COEF, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_COEF] = PARAM_FLOAT("coef", "1", "factor of the advantages", 0, 1e6, TARE_ABOVE_MIN | TARE_SWEEPABLE),
};

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t i = 0; i < batch->n_rollouts; i++) {
        const int64_t begin = batch->token_begin[i], end = batch->token_begin[i + 1];
        bool sampled = false;
        double sum = 0;
        for (int64_t t = begin; t < end; t++) sampled = sampled || batch->token_logprob[t] != 0;
        for (int64_t t = begin; t < end; t++) {
            const double A = v[P_COEF].f * ((double)batch->token_ref_logprob[t] - (double)batch->token_logprob[t]);
            out->token_advantage[t] = sampled ? (float)A : 0;
            sum += sampled ? A : 0;
        }
        out->advantage[i] = end > begin ? sum / (double)(end - begin) : 0;
    }
    for (int64_t m = 0; m < batch->n_groups; m++) {
        out->baseline[m] = 0;
        out->scale[m] = NAN;
        out->confidence[m] = 0;
    }
    return TARE_OK;
}

TARE_STATELESS_NEEDS("opd", "on-policy distillation: a teacher's logprob of each token minus the policy's",
                     "thinkingmachines.ai/blog/on-policy-distillation; arXiv 2306.13649",
                     TARE_NEED_LOGPROB | TARE_NEED_REF_LOGPROB | TARE_GIVES_TOKENS, .compute = compute)
