/* dapo: rewards standardised within their group; groups without a signal are dropped, and as many
 * groups are sampled in addition.
 *
 *   A[i] = (R[i] - mu) / (sigma + delta)    rollout weight 0 and one more group to sample
 *                                           without a signal
 *
 * Yu et al. 2025, "DAPO: An Open-Source LLM Reinforcement Learning System at Scale" (arXiv
 * 2503.14476): dynamic sampling, equation 11. Its other parts are not part of an estimator:
 * loss.clip_high (clip higher), loss.aggregation = token, verifier.overlong = linear.
 *
 * filter = correct drops groups in which all verdicts are "correct" or none is, as in the paper.
 * filter = reward (default) drops groups whose total rewards are all equal. The two differ where a
 * reward has other components than the answer's: with verifier.overlong = linear a group of wrong
 * answers of several lengths passes filter = reward. A verdict is the first verifier's; rewards
 * without verdicts work with filter = reward only. refill = false: groups are dropped but not
 * replaced.
 */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>
#include <stdbool.h>

enum { P_DELTA, P_DDOF, P_REFILL, P_FILTER, P_COUNT };
enum { REWARD, CORRECT };
static const char *const FILTERS[] = {"reward", "correct", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-8", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
    [P_DDOF] = TARE_INT_PARAM("ddof", "1", "degrees of freedom of sigma: 1 divides by n-1 (sample), 0 by n (population)", 0, 1, 0),
    [P_REFILL] = TARE_BOOL_PARAM("refill", "true", "sample as many groups in addition as were dropped", 0),
    [P_FILTER] = TARE_CHOICE_PARAM(
        "filter", "reward",
        "groups without a signal: all rewards equal (reward), or all or no verdicts correct (correct, as in the paper)", FILTERS,
        0),
};

enum { W_VERDICT, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_VERDICT] = WANT("verdict", TARE_AXIS_ROLLOUT, TARE_I32),
};

static tare_status select_wants(const tare_value *v, uint8_t *wanted, tare_error *error)
{
    (void)error;
    if (v[P_FILTER].i != CORRECT) wanted[W_VERDICT] = 0;
    return TARE_OK;
}

static bool has_signal(const tare_value *v, const tare_batch *batch, int64_t first, int64_t n, double sigma)
{
    const int32_t *verdict = TARE_COLUMN(batch, W_VERDICT, int32_t);
    int64_t correct = 0;
    if (v[P_FILTER].i == REWARD) return sigma > 0;
    for (int64_t i = first; i < first + n; i++) correct += verdict[i] == TARE_VERDICT_CORRECT;
    return correct > 0 && correct < n;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mu = group_mean(R, n), sigma = sqrt(group_variance(R, n, mu, v[P_DDOF].i));
        const bool kept = has_signal(v, batch, first, n, sigma);
        for (int64_t i = 0; i < n; i++) {
            out->advantage[first + i] = (R[i] - mu) / (sigma + v[P_DELTA].f);
            if (!kept) out->rollout_weight[first + i] = 0;
        }
        if (!kept && v[P_REFILL].i) out->extra_groups++;
        out->baseline[m] = mu;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS_WANTS("dapo", "grpo with groups of equal rewards dropped and sampled again", "arXiv 2503.14476", .select = select_wants,
                .compute = compute)
