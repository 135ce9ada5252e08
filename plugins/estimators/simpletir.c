/* simpletir: grpo, and the loss leaves out rollouts with a void turn.
 *
 *   A[i]      = (R[i] - mu) / (sigma + delta)
 *   weight[i] = 0 if a turn of rollout i is void, else 1
 *
 * A turn is void if it has no tool call that can be read (turn.calls) and gives no answer. The last
 * turn gives an answer unless the verdict is TARE_VERDICT_NO_ANSWER; an earlier turn gives none. A
 * rollout with a void turn counts in mu and sigma.
 *
 * Xue et al. 2025, "SimpleTIR: End-to-End Reinforcement Learning for Multi-Turn Tool-Integrated
 * Reasoning" (arXiv 2509.02479), and the authors' code, which multiplies the mask of the loss by that
 * of void turns after the advantages. There a turn without code and without \boxed{} ends the rollout;
 * here the environment decides whether it does. Without tools, rollouts of several turns have
 * void turns only: this is for environments with tools. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_DELTA, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-6", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_CALLS, W_VERDICT, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_CALLS] = WANT("turn.calls", TARE_AXIS_TURN, TARE_I32),
    [W_VERDICT] = WANT("verdict", TARE_AXIS_ROLLOUT, TARE_I32),
};

static int has_void_turn(const tare_batch *b, int64_t i)
{
    const int32_t *calls = TARE_COLUMN(b, W_CALLS, int32_t);
    const int64_t last = b->turn_begin[i + 1] - 1;
    for (int64_t u = b->turn_begin[i]; u < last; u++)
        if (calls[u] < 1) return 1;
    return calls[last] < 1 && TARE_COLUMN(b, W_VERDICT, int32_t)[i] == TARE_VERDICT_NO_ANSWER;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], n = batch->group_begin[m + 1] - first;
        const double *R = batch->reward + first;
        const double mean = group_mean(R, n), sigma = sqrt(group_variance(R, n, mean, 1));
        for (int64_t i = 0; i < n; i++) {
            out->advantage[first + i] = (R[i] - mean) / (sigma + v[P_DELTA].f);
            if (has_void_turn(batch, first + i)) out->rollout_weight[first + i] = 0;
        }
        out->baseline[m] = mean;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS_WANTS("simpletir", "grpo without the rollouts that have a turn with neither a tool call nor an answer",
                "arXiv 2509.02479", .compute = compute)
