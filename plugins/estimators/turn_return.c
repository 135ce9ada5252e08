/* turn_return: the return of each turn, standardised next to the same turn of its group.
 *
 *   R[i,u] = sum over the turns k >= u of rollout i of gamma^(k-u) r[i,k]
 *   A[i,u] = (R[i,u] - mu[u]) / (sigma[u] + delta)
 *   mu[u], sigma[u]: mean and deviation (n-1) of R[.,u] over the rollouts of the group that have a
 *                    turn u
 *
 * REINFORCE with the reward to go and a baseline (Sutton and Barto, "Reinforcement Learning", 2nd
 * edition, section 13.4), with the group of grpo (arXiv 2402.03300) in place of a learnt baseline.
 * Every token of a turn has the turn's A. gamma = 0 compares the reward of the turn alone, gamma = 1
 * all that follows it. A turn that no other rollout of the group has, or one of equal returns, has A
 * exactly 0. Rollouts of one turn make this grpo. */
#include "common/estimator.h"

#include <math.h>

enum { P_GAMMA, P_DELTA, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_GAMMA] = TARE_FLOAT_PARAM("gamma", "1", "discount of the rewards of later turns", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-8", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_REWARD, W_COUNT };
static const tare_want WANTS[W_COUNT] = {[W_REWARD] = WANT("turn.reward", TARE_AXIS_TURN, TARE_F64)};

/* Number of turns of rollout i. */
static int64_t turns_of(const tare_batch *b, int64_t i)
{
    return b->turn_begin[i + 1] - b->turn_begin[i];
}

static double return_of(const tare_batch *b, int64_t i, int64_t turn, double gamma)
{
    const double *reward = TARE_COLUMN(b, W_REWARD, double);
    double sum = 0;
    for (int64_t k = b->turn_begin[i + 1] - 1; k >= b->turn_begin[i] + turn; k--) sum = reward[k] + gamma * sum;
    return sum;
}

/* Mean and deviation of the group's returns of a turn, relative to the first one, so that equal
 * returns have no deviation. */
struct level {
    double mean, sigma;
};

static struct level level_of(const tare_batch *b, int64_t group, int64_t turn, double gamma)
{
    double first = 0, shift = 0, squares = 0;
    int64_t n = 0;
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        if (turns_of(b, i) <= turn) continue;
        const double x = return_of(b, i, turn, gamma);
        if (!n++) first = x;
        shift += x - first;
    }
    const double mean = n ? first + shift / (double)n : 0;
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        const double d = turns_of(b, i) > turn ? return_of(b, i, turn, gamma) - mean : 0;
        squares += d * d;
    }
    return (struct level){mean, n > 1 ? sqrt(squares / (double)(n - 1)) : 0};
}

static void estimate_turn(const tare_batch *b, int64_t group, int64_t turn, const tare_value *v, tare_advantages *out)
{
    const struct level level = level_of(b, group, turn, v[P_GAMMA].f);
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        if (turns_of(b, i) <= turn) continue;
        const int64_t u = b->turn_begin[i] + turn;
        const double A = (return_of(b, i, turn, v[P_GAMMA].f) - level.mean) / (level.sigma + v[P_DELTA].f);
        for (int64_t t = b->act_begin[u]; t < b->act_end[u]; t++) out->token_advantage[t] = (float)A;
        if (!turn) out->advantage[i] = A;
    }
    if (turn) return;
    out->baseline[group] = level.mean;
    out->scale[group] = level.sigma;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        int64_t most = 0;
        for (int64_t i = batch->group_begin[m]; i < batch->group_begin[m + 1]; i++)
            if (turns_of(batch, i) > most) most = turns_of(batch, i);
        for (int64_t turn = 0; turn < most; turn++) estimate_turn(batch, m, turn, self, out);
    }
    return TARE_OK;
}

STATELESS_WANTS("turn_return", "the return of each turn, next to the same turn of the group", "Sutton and Barto, section 13.4",
                .flags = TARE_ESTIMATOR_GIVES_TOKENS, .compute = compute)
