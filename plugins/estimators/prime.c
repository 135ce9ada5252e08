/* prime: the outcome and the rewards of single tokens, each relative to the other rollouts of the
 * group, then whitened over the batch's tokens.
 *
 *   R'[i]   = n/(n-1) R[i] - sum_j R[j] / (n-1)              R: rewards of one group, n rollouts
 *   r'[i,t] = n/(n-1) r[i,t] - sum_j mean_t r[j,t] / (n-1)   r: rewards of tokens
 *   X[i,t]  = outcome R'[i] + process sum_{u >= t} r'[i,u]
 *   A[i,t]  = (X[i,t] - mean) * rate
 *             over the batch's tokens: common/whiten.h
 *
 * Cui et al. 2025, "Process Reinforcement through Implicit Rewards", section 3 (arXiv 2502.01456):
 * each of the two sources of reward has a leave-one-out baseline. The rewards of tokens are those
 * of segments: process_reward.implicit makes each token a segment. A group of one has no other
 * rollout: X = 0. The reported advantage of a rollout is that of its first token.
 */
#include "common/estimator.h"
#include "common/group.h"
#include "common/whiten.h"

#include <math.h>

enum { P_OUTCOME, P_PROCESS, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_OUTCOME] = TARE_FLOAT_PARAM("outcome", "1", "factor of the verifiers' reward", 0, 1e6, TARE_PARAM_SWEEPABLE),
    [P_PROCESS] = TARE_FLOAT_PARAM("process", "1", "factor of the tokens' rewards", 0, 1e6, TARE_PARAM_SWEEPABLE),
};

enum { W_SEGMENT_REWARD, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_SEGMENT_REWARD] = WANT("segment_reward", TARE_AXIS_TOKEN, TARE_F64),
};

static double mean_of_tokens(const tare_batch *b, int64_t i)
{
    const double *r = TARE_COLUMN(b, W_SEGMENT_REWARD, double);
    double sum = 0;
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) sum += b->sampled[t] ? r[t] : 0;
    return b->length[i] ? sum / (double)b->length[i] : 0;
}

/* The baselines of a group's rewards. */
struct others {
    double share, outcome, process; /* n/(n-1), and the two sums over n-1; 0 for a group of one */
};

static struct others others_of(const tare_batch *b, int64_t group)
{
    const int64_t first = b->group_begin[group], end = b->group_begin[group + 1], n = end - first;
    struct others o = {0};
    if (n < 2) return o;
    o.share = (double)n / (double)(n - 1);
    for (int64_t i = first; i < end; i++) {
        o.outcome += b->reward[i] / (double)(n - 1);
        o.process += mean_of_tokens(b, i) / (double)(n - 1);
    }
    return o;
}

/* Computes X of token t from that of the next token. */
static double step_back(const tare_value *v, const tare_batch *b, const struct others *o, int64_t t, double next)
{
    return next + v[P_PROCESS].f * (o->share * TARE_COLUMN(b, W_SEGMENT_REWARD, double)[t] - o->process);
}

static double at_the_end(const tare_value *v, const tare_batch *b, const struct others *o, int64_t i)
{
    return v[P_OUTCOME].f * (o->share * b->reward[i] - o->outcome);
}

PREPARES(WHITEN_SUMS)

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const struct others o = others_of(batch, group);
    (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        double X = at_the_end(self, batch, &o, i);
        for (int64_t t = batch->token_begin[i + 1] - 1; t >= batch->token_begin[i]; t--) {
            if (!batch->sampled[t]) continue;
            X = step_back(self, batch, &o, t, X);
            sum[WHITEN_N] += 1;
            sum[WHITEN_S1] += X;
            sum[WHITEN_S2] += X * X;
        }
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct whiten w = whiten_of(prepared, WHITEN_SKYRL);
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], end = batch->group_begin[m + 1];
        const struct others o = others_of(batch, m);
        for (int64_t i = first; i < end; i++) {
            double X = at_the_end(self, batch, &o, i);
            for (int64_t t = batch->token_begin[i + 1] - 1; t >= batch->token_begin[i]; t--) {
                if (!batch->sampled[t]) continue;
                X = step_back(self, batch, &o, t, X);
                out->token_advantage[t] = (float)((X - w.mean) * w.rate);
            }
            out->advantage[i] = (X - w.mean) * w.rate;
        }
        out->baseline[m] = group_mean(batch->reward + first, end - first);
    }
    return TARE_OK;
}

STATELESS_WANTS("prime", "outcome and rewards of tokens, each minus those of the other rollouts, whitened over the batch's tokens",
                "arXiv 2502.01456", .flags = TARE_ESTIMATOR_GIVES_TOKENS, .sizes = sizes, .prepare = prepare, .compute = compute)
