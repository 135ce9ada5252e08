/* mt_grpo: the advantage of the outcome, and those of the rewards of turns.
 *
 *   A[x[i]]  = (x[i] - mean x) / F    F: deviation (n-1) + delta with norm = std, 1 with norm = none
 *   O[i], T[i,l]  the outcome; the reward of turn l that is not part of it
 *
 *   turns = first    A[i,0] = A[O[i]] + lambda A[sum_l T[i,l]],  A[i,u] = A[O[i]] for u > 0
 *                    a rollout of one turn: A[R[i]], R = O + sum of T
 *   turns = reached  A[i,u] = A[O[i]] + lambda sum_l>=u A[T[i,l]]    over the turns of rollout i;
 *                    mean and deviation of T[.,l] over the rollouts of the group that have it
 *   turns = all      the same over all turns of the group; T[i,l] = 0 where rollout i has ended
 *
 *   outcome = last       O: the reward of the last turn, which includes the verifiers'
 *   outcome = verifiers  O: the sum of the components other than `environment`
 *
 * Zeng, Wei et al. 2025, "Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit
 * Assignment" (MT-GRPO, arXiv 2505.11821), and the authors' code, which is turns = first with outcome
 * = verifiers: there, the first turn ends with the first result of a tool.
 *
 * reached is biased where the policy decides when to stop (verl#7244): the number of means that are
 * subtracted depends on the rollout's own last turn, so each further turn costs the mean of its
 * reward, and one that always pays the same looks worthless. In all, the same means are subtracted from
 * every rollout: with norm = none and lambda = 1 its expectation is (1 - 1/n) times the policy
 * gradient. first does not credit later turns with their rewards, and with norm = std it compares
 * rollouts of one turn and of several by different scales. */
#include "common/estimator.h"
#include "common/sums.h"

#include <string.h>

enum { P_LAMBDA, P_TURNS, P_OUTCOME, P_NORM, P_DELTA, P_COUNT };
enum { TURNS_FIRST, TURNS_REACHED, TURNS_ALL };
enum { OUTCOME_LAST, OUTCOME_VERIFIERS };
enum { NORM_STD, NORM_NONE };
static const char *const TURNS[] = {"first", "reached", "all", NULL};
static const char *const OUTCOMES[] = {"last", "verifiers", NULL};
static const char *const NORMS[] = {"std", "none", NULL};
static const tare_param PARAMS[P_COUNT] = {
    [P_LAMBDA] = TARE_FLOAT_PARAM("lambda", "1", "weight of the turns' rewards", 0, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
    [P_TURNS] = TARE_CHOICE_PARAM(
        "turns", "first",
        "first: all rewards of turns go to the first turn (released code); reached: by turn, biased; all: by turn, unbiased", TURNS,
        0),
    [P_OUTCOME] = TARE_CHOICE_PARAM("outcome", "last", "the reward of the last turn, or those of the verifiers", OUTCOMES, 0),
    [P_NORM] = TARE_CHOICE_PARAM("norm", "std", "divide by the deviation, or not", NORMS, 0),
    [P_DELTA] = TARE_FLOAT_PARAM("delta", "1e-4", "delta, added to the deviation", 0, TARE_NO_MAX,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_REWARD, W_COMPONENT, W_NAME, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_REWARD] = WANT("turn.reward", TARE_AXIS_TURN, TARE_F64),
    [W_COMPONENT] = {.name = "component", .axis = TARE_AXIS_ROLLOUT, .type = TARE_F64},
    [W_NAME] = {.name = "component.name", .axis = TARE_AXIS_ONE, .type = TARE_TEXT},
};

/* The components are needed for outcome = verifiers only. */
static tare_status choose(const tare_value *v, uint8_t *wanted, tare_error *error)
{
    (void)error;
    wanted[W_COMPONENT] = wanted[W_NAME] = v[P_OUTCOME].i == OUTCOME_VERIFIERS;
    return TARE_OK;
}

static int64_t turns_of(const tare_batch *b, int64_t i)
{
    return b->turn_begin[i + 1] - b->turn_begin[i];
}

static double outcome_of(const tare_batch *b, int64_t i, const tare_value *v)
{
    if (v[P_OUTCOME].i == OUTCOME_LAST) return TARE_COLUMN(b, W_REWARD, double)[b->turn_begin[i + 1] - 1];
    const tare_text *name = TARE_COLUMN(b, W_NAME, tare_text);
    const int64_t C = b->column[W_COMPONENT].width;
    double sum = 0;
    for (int64_t c = 0; c < C; c++)
        if (name[c].size != 11 || memcmp(name[c].data, "environment", 11) != 0)
            sum += TARE_COLUMN(b, W_COMPONENT, double)[i * C + c];
    return sum;
}

/* T[i,l]; 0 for a turn that rollout i does not have, and for an outcome. */
static double turn_reward(const tare_batch *b, int64_t i, int64_t l, const tare_value *v)
{
    if (l >= turns_of(b, i)) return 0;
    const double reward = TARE_COLUMN(b, W_REWARD, double)[b->turn_begin[i] + l];
    return l < turns_of(b, i) - 1 ? reward : reward - outcome_of(b, i, v);
}

/* True if T[i,l] is a reward of rollout i: not an outcome, and not after its end. */
static int has_reward(const tare_batch *b, int64_t i, int64_t l, const tare_value *v)
{
    return l < turns_of(b, i) - (v[P_OUTCOME].i == OUTCOME_LAST);
}

static double standardised(const struct sums *s, double x, const tare_value *v)
{
    if (v[P_NORM].i == NORM_STD) return sums_standardise(s, x, v[P_DELTA].f);
    return s->n < 2 ? 0 : x - sums_mean(s);
}

/* Adds A to the tokens of the first n turns of rollout i. */
static void add_turns(const tare_batch *b, int64_t i, int64_t n, double A, float *out)
{
    for (int64_t u = b->turn_begin[i]; u < b->turn_begin[i + 1] && u < b->turn_begin[i] + n; u++)
        for (int64_t t = b->act_begin[u]; t < b->act_end[u]; t++) out[t] = (float)((double)out[t] + A);
}

/* The rewards of turns, all together. */
static void add_first(const tare_batch *b, int64_t group, const tare_value *v, tare_advantages *out)
{
    struct sums all = {0}, turns = {0};
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        sums_add(&all, b->reward[i], 1);
        sums_add(&turns, b->reward[i] - outcome_of(b, i, v), 1);
    }
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        const double T = standardised(&turns, b->reward[i] - outcome_of(b, i, v), v);
        const double A = turns_of(b, i) > 1 ? out->advantage[i] + v[P_LAMBDA].f * T : standardised(&all, b->reward[i], v);
        add_turns(b, i, 1, A - out->advantage[i], out->token_advantage);
        out->advantage[i] = A;
    }
}

/* The rewards of the turns l, which count for the turns up to l. */
static void add_level(const tare_batch *b, int64_t group, int64_t l, const tare_value *v, tare_advantages *out)
{
    struct sums level = {0};
    const int all = v[P_TURNS].i == TURNS_ALL;
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++)
        if (all || has_reward(b, i, l, v)) sums_add(&level, turn_reward(b, i, l, v), 1);
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        if (!all && !has_reward(b, i, l, v)) continue;
        const double A = v[P_LAMBDA].f * standardised(&level, turn_reward(b, i, l, v), v);
        add_turns(b, i, l + 1, A, out->token_advantage);
        out->advantage[i] += A;
    }
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *v = self;
    (void)prepared, (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const int64_t first = batch->group_begin[m], end = batch->group_begin[m + 1];
        struct sums outcome = {0};
        int64_t most = 0;
        for (int64_t i = first; i < end; i++) {
            sums_add(&outcome, outcome_of(batch, i, v), 1);
            if (turns_of(batch, i) > most) most = turns_of(batch, i);
        }
        for (int64_t i = first; i < end; i++) {
            out->advantage[i] = standardised(&outcome, outcome_of(batch, i, v), v);
            for (int64_t t = batch->token_begin[i]; t < batch->token_begin[i + 1]; t++)
                out->token_advantage[t] = (float)out->advantage[i];
        }
        if (v[P_TURNS].i == TURNS_FIRST) add_first(batch, m, v, out);
        for (int64_t l = 0; v[P_TURNS].i != TURNS_FIRST && l < most; l++) add_level(batch, m, l, v, out);
        out->baseline[m] = sums_mean(&outcome);
        out->scale[m] = sums_deviation(&outcome);
    }
    return TARE_OK;
}

STATELESS_WANTS("mt_grpo", "the advantage of the outcome, and those of the rewards of turns", "MT-GRPO, arXiv 2505.11821",
                .flags = TARE_ESTIMATOR_GIVES_TOKENS, .select = choose, .compute = compute)
