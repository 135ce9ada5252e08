/* grpo_process: rewards of the steps of a completion, standardised within their group.
 *
 *   A[i,t] = sum over the steps k of rollout i that end at t or after it of
 *            (r[i,k] - mu) / (sigma + delta)
 *   mu, sigma: mean and deviation (n-1) of all r[i,k] of the group
 *
 * Shao et al. 2024, "DeepSeekMath", section 4.1.3, process supervision (arXiv 2402.03300). The
 * steps are the segments of a verifier with process rewards. A rollout without segments has one
 * step, its whole completion, with its reward; without any segments this is grpo.
 *
 * Segments that end in the same token are one step, of their sum. Tokens after the last step have A
 * = 0. The advantage of a rollout that is reported is that of its first token, the sum over all of
 * its steps. Where all steps of a group are worth the same A is exactly 0. */
#include "common/estimator.h"
#include "common/group.h"

#include <math.h>

enum { P_DELTA, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DELTA] =
        TARE_FLOAT_PARAM("delta", "1e-8", "delta, added to sigma", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_SEGMENT, W_SEGMENT_REWARD, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_SEGMENT] = WANT("segment", TARE_AXIS_TOKEN, TARE_I32),
    [W_SEGMENT_REWARD] = WANT("segment_reward", TARE_AXIS_TOKEN, TARE_F64),
};

/* True if a step of rollout i ends at token t: its last sampled token with that number. */
static int ends_step(const tare_batch *b, int64_t i, int64_t t)
{
    const int32_t *segment = TARE_COLUMN(b, W_SEGMENT, int32_t);
    int64_t next = t + 1;
    if (!b->sampled[t] || !segment[t]) return 0;
    while (next < b->token_begin[i + 1] && !b->sampled[next]) next++;
    return next == b->token_begin[i + 1] || segment[next] != segment[t];
}

static int has_steps(const tare_batch *b, int64_t i)
{
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
        if (b->sampled[t] && TARE_COLUMN(b, W_SEGMENT, int32_t)[t]) return 1;
    return 0;
}

/* Sums over the group's steps, relative to the first so that equal rewards have no variance. */
struct steps {
    double origin, shift, squares;
    int64_t n;
};

static void count_steps(struct steps *s, double reward)
{
    if (!s->n++) s->origin = reward;
    const double d = reward - s->origin;
    s->shift += d;
    s->squares += d * d;
}

static struct steps steps_of(const tare_batch *b, int64_t group)
{
    struct steps s = {0};
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        if (!has_steps(b, i)) count_steps(&s, b->reward[i]);
        for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++)
            if (ends_step(b, i, t)) count_steps(&s, TARE_COLUMN(b, W_SEGMENT_REWARD, double)[t]);
    }
    return s;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    const double *reward = TARE_COLUMN(batch, W_SEGMENT_REWARD, double);
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const struct steps s = steps_of(batch, m);
        const double n = (double)s.n, mu = s.n ? s.origin + s.shift / n : 0;
        const double spread = s.squares - s.shift * (s.n ? s.shift / n : 0);
        const double sigma = s.n > 1 && spread > 1e-13 * s.squares ? sqrt(spread / (n - 1)) : 0;
        for (int64_t i = batch->group_begin[m]; i < batch->group_begin[m + 1]; i++) {
            double A = has_steps(batch, i) ? 0 : (batch->reward[i] - mu) / (sigma + v[P_DELTA].f);
            for (int64_t t = batch->token_begin[i + 1] - 1; t >= batch->token_begin[i]; t--) {
                if (ends_step(batch, i, t)) A += (reward[t] - mu) / (sigma + v[P_DELTA].f);
                out->token_advantage[t] = (float)A;
            }
            out->advantage[i] = A;
        }
        out->baseline[m] = mu;
        out->scale[m] = sigma;
    }
    return TARE_OK;
}

STATELESS_WANTS("grpo_process", "rewards of steps (process supervision) standardised within their group",
                "arXiv 2402.03300, section 4.1.3", .flags = TARE_ESTIMATOR_GIVES_TOKENS, .compute = compute)
