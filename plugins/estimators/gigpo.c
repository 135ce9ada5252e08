/* gigpo: the advantage of the episode, and that of each turn next to turns from the same state.
 *
 *   A[i,u]  = AE[i] + omega AS[i,u]
 *   AE[i]   = (R[i] - mean R) / F     R: rewards of the group's episodes
 *   AS[i,u] = (r[i,u] - mean r) / F   r: discounted returns sum_k>=u gamma^(k-u) reward[k] of the turns
 *                                     of the group that began in the same state; 0 for a state seen
 *                                     once, or without a key
 *   F = deviation (n-1) + 1e-6 with norm = std, and 1 with norm = none
 *
 * Feng et al. 2025, "Group-in-Group Policy Optimization for LLM Agent Training" (arXiv 2505.10978),
 * equations 5 to 8. Every token of a turn has the turn's A. verl-agent takes the mean and deviation
 * of AE over the turns, so that a long episode counts more (episode = turns); the paper over the
 * episodes. A group of one episode has AE = 0, where verl-agent keeps its reward. */
#include "common/estimator.h"
#include "common/sums.h"

enum { P_OMEGA, P_GAMMA, P_NORM, P_EPISODE, P_COUNT };
enum { NORM_STD, NORM_NONE };
enum { OVER_EPISODES, OVER_TURNS };
static const char *const NORMS[] = {"std", "none", NULL};
static const char *const EPISODES[] = {"episodes", "turns", NULL};
static const tare_param PARAMS[P_COUNT] = {
    [P_OMEGA] = TARE_FLOAT_PARAM("omega", "1", "weight of the turn's advantage", 0, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
    [P_GAMMA] = TARE_FLOAT_PARAM("gamma", "0.95", "discount of the rewards of later turns", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_NORM] = TARE_CHOICE_PARAM("norm", "std", "divide by the deviation, or not", NORMS, 0),
    [P_EPISODE] = TARE_CHOICE_PARAM("episode", "episodes",
                                    "mean and deviation of AE over the group's episodes (paper), or over its turns", EPISODES, 0),
};

enum { W_REWARD, W_STATE, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_REWARD] = WANT("turn.reward", TARE_AXIS_TURN, TARE_F64),
    [W_STATE] = WANT("turn.state", TARE_AXIS_TURN, TARE_I64),
};

/* (x - mean) / F; 0 where there is nothing to compare with. */
static double standardised(const struct sums *s, double x, const tare_value *v)
{
    if (v[P_NORM].i == NORM_STD) return sums_standardise(s, x, 1e-6);
    return s->n < 2 ? 0 : x - s->first - s->shift / s->n;
}

/* The discounted return of turn u of rollout i. */
static double return_of(const tare_batch *b, int64_t i, int64_t u, double gamma)
{
    double sum = 0;
    for (int64_t k = b->turn_begin[i + 1] - 1; k >= u; k--) sum = TARE_COLUMN(b, W_REWARD, double)[k] + gamma * sum;
    return sum;
}

static double state_advantage(const tare_batch *b, int64_t group, int64_t i, int64_t u, const tare_value *v)
{
    const int64_t *state = TARE_COLUMN(b, W_STATE, int64_t);
    struct sums same = {0};
    if (state[u] < 0) return 0;
    for (int64_t j = b->group_begin[group]; j < b->group_begin[group + 1]; j++)
        for (int64_t k = b->turn_begin[j]; k < b->turn_begin[j + 1]; k++)
            if (state[k] == state[u]) sums_add(&same, return_of(b, j, k, v[P_GAMMA].f), 1);
    return standardised(&same, return_of(b, i, u, v[P_GAMMA].f), v);
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], end = batch->group_begin[m + 1];
        struct sums episodes = {0};
        for (int64_t i = first; i < end; i++)
            sums_add(&episodes, batch->reward[i],
                     v[P_EPISODE].i == OVER_TURNS ? (double)(batch->turn_begin[i + 1] - batch->turn_begin[i]) : 1);
        for (int64_t i = first; i < end; i++) {
            out->advantage[i] = end - first > 1 ? standardised(&episodes, batch->reward[i], v) : 0;
            for (int64_t u = batch->turn_begin[i]; u < batch->turn_begin[i + 1]; u++) {
                const double A = out->advantage[i] + v[P_OMEGA].f * state_advantage(batch, m, i, u, v);
                for (int64_t t = batch->act_begin[u]; t < batch->act_end[u]; t++) out->token_advantage[t] = (float)A;
            }
        }
        out->baseline[m] = sums_mean(&episodes);
    }
    return TARE_OK;
}

STATELESS_WANTS("gigpo", "the episode's advantage, and the turn's next to turns from the same state",
                "arXiv 2505.10978, equations 5 to 8", .flags = TARE_ESTIMATOR_GIVES_TOKENS, .compute = compute)
