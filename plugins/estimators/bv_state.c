/* bv_state: each turn's return next to the turns from the same state, those of the group blended with
 * those of earlier steps.
 *
 *   A[i,u]  = episode AE[i] + omega AS[i,u]
 *   AE[i]   = (R[i] - mean R) / (deviation + 1e-6)     R: rewards of the group's episodes
 *   AS[i,u] = (r[i,u] - b) / (s + delta)               norm = std
 *           =  r[i,u] - b                              norm = none
 *   r[i,u]  = sum_k>=u discount^(k-u) reward[k]
 *   b, s    : equations 10 and 11 of BV-Blend with the state before the turn as the cluster, and the
 *             returns of the group's turns from that state as the rewards of a prompt
 *
 * GiGPO (arXiv 2505.10978, equations 6 to 8; gigpo.c) compares a turn with the group's turns from the
 * same state: a state seen once gives 0, and the mean of two is trusted like that of fifty. Here the
 * confidence w = exp(-SEM / T) of BV-Blend (arXiv 2606.28707, equations 6 to 11; common/blend.c)
 * decides between that mean and the state's history: with w = 0 it is gigpo's AS, with w = 1 the
 * baseline is an estimate of the state's value, and a single visit has an advantage too.
 *
 * History is by the state's key alone, over all prompts, so the key must contain what the return
 * depends on. Two keys share a history if their hashes are equal modulo `states`. A turn without a
 * key has AS = 0. Defaults that differ from bv_blend's: gamma, since a step visits a state a few times
 * only, and v_floor, since the returns of an almost certain state have almost no variance. */
#include "common/blend.h"
#include "common/sums.h"

#include <stdlib.h>

enum {
    P_EPISODE,
    P_OMEGA,
    P_DISCOUNT,
    P_NORM,
    P_STATES,
    P_DDOF,
    P_DELTA,
    P_GAMMA,
    P_N0,
    P_V_PRIOR,
    P_DELTA_N,
    P_TEMPERATURE,
    P_MAPPING,
    P_V_FLOOR,
    P_ADVANTAGE_CLIP,
    P_COUNT
};
enum { NORM_STD, NORM_NONE };
static const char *const NORMS[] = {"std", "none", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_EPISODE] = TARE_FLOAT_PARAM("episode", "1", "weight of the episode's advantage", 0, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
    [P_OMEGA] = TARE_FLOAT_PARAM("omega", "1", "weight of the turn's advantage", 0, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
    [P_DISCOUNT] = TARE_FLOAT_PARAM("discount", "0.95", "discount of the rewards of later turns", 0, 1, TARE_PARAM_SWEEPABLE),
    [P_NORM] = TARE_CHOICE_PARAM("norm", "std", "divide the turn's advantage by the blended deviation, or not", NORMS, 0),
    [P_STATES] = TARE_INT_PARAM("states", "4096", "number of histories; keys with equal hashes modulo it share one", 1, 1e7,
                                TARE_PARAM_LOCKED_ON_RESUME),
    [P_DDOF] = BLEND_DDOF,
    [P_DELTA] = BLEND_DELTA,
    [P_GAMMA] = TARE_FLOAT_PARAM("gamma", "0.2", "weight of the newest batch in a state's moving moments (eq. 6)", 0, 1,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_N0] = BLEND_N0,
    [P_V_PRIOR] = BLEND_V_PRIOR,
    [P_DELTA_N] = BLEND_DELTA_N,
    [P_TEMPERATURE] = BLEND_TEMPERATURE,
    [P_MAPPING] = BLEND_MAPPING,
    [P_V_FLOOR] =
        TARE_UNIT_PARAM("v_floor", "0.01", "lower bound of v_hist; 0: no bound", "reward^2", 0, TARE_NO_MAX, TARE_PARAM_SWEEPABLE),
    [P_ADVANTAGE_CLIP] = BLEND_ADVANTAGE_CLIP,
};

enum { W_TURN_REWARD, W_TURN_STATE, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_TURN_REWARD] = WANT("turn.reward", TARE_AXIS_TURN, TARE_F64),
    [W_TURN_STATE] = WANT("turn.state", TARE_AXIS_TURN, TARE_I64),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *v = setup->values;
    const struct blend_settings settings = {.clusters = v[P_STATES].i,
                                            .ddof = v[P_DDOF].i,
                                            .delta = v[P_DELTA].f,
                                            .gamma = v[P_GAMMA].f,
                                            .n0 = v[P_N0].f,
                                            .v_prior = v[P_V_PRIOR].f,
                                            .v_floor = v[P_V_FLOOR].f,
                                            .advantage_clip = v[P_ADVANTAGE_CLIP].f,
                                            .weighting = BLEND_SEM,
                                            .mapping = v[P_MAPPING].i,
                                            .temperature = v[P_TEMPERATURE].f,
                                            .delta_n = v[P_DELTA_N].f};
    tare_setup own = *setup;
    own.n_clusters = 0; /* the codebook's, which are not used */
    return blend_create(&own, &settings, self, error);
}

struct visit {
    int64_t state, turn;
};

static int by_state(const void *a, const void *b)
{
    const struct visit *x = a, *y = b;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

/* The turns of one group as a batch for blend.c: a group for each state, a rollout for each turn. */
struct visits {
    tare_batch batch;
    tare_column cluster;
    struct visit *visit;                              /* [n] ordered by state */
    double *back, *A, *baseline, *scale, *confidence; /* [n] back: return of a turn */
    int64_t *begin;                                   /* [n + 1] */
    int32_t *slot;                                    /* [n] */
};

static void find_visits(const tare_value *v, const tare_batch *b, int64_t group, struct visits *x)
{
    const double *reward = TARE_COLUMN(b, W_TURN_REWARD, double);
    int64_t n = 0, m = 0;
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++)
        for (int64_t u = b->turn_begin[i]; u < b->turn_begin[i + 1]; u++)
            x->visit[n++] = (struct visit){TARE_COLUMN(b, W_TURN_STATE, int64_t)[u], u};
    qsort(x->visit, (size_t)n, sizeof *x->visit, by_state);
    for (int64_t i = b->group_begin[group]; i < b->group_begin[group + 1]; i++) {
        double sum = 0;
        for (int64_t u = b->turn_begin[i + 1] - 1; u >= b->turn_begin[i]; u--)
            x->A[u - b->turn_begin[b->group_begin[group]]] = sum = reward[u] + v[P_DISCOUNT].f * sum;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t state = x->visit[k].state;
        x->back[k] = x->A[x->visit[k].turn - b->turn_begin[b->group_begin[group]]];
        if (k && state >= 0 && state == x->visit[k - 1].state) continue;
        x->slot[m] = state < 0 ? -1 : (int32_t)(state % v[P_STATES].i);
        x->begin[m++] = k;
    }
    x->begin[m] = n;
    x->cluster = (tare_column){x->slot, m, 1};
    x->batch = (tare_batch){.struct_size = sizeof x->batch,
                            .n_groups = m,
                            .n_rollouts = n,
                            .group_begin = x->begin,
                            .reward = x->back,
                            .column = &x->cluster};
}

/* Allocates and fills; the caller releases x->visit. */
static tare_status open_visits(const void *self, const tare_batch *b, int64_t group, struct visits *x, tare_error *error)
{
    const tare_host *h = blend_host(self);
    const int64_t n = b->turn_begin[b->group_begin[group + 1]] - b->turn_begin[b->group_begin[group]];
    x->visit = h->alloc(h->ctx, (n + 1) * (int64_t)(sizeof *x->visit + 6 * sizeof(double) + sizeof *x->slot), 0);
    if (!x->visit) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld turns", (long long)n);
    x->back = (double *)(void *)(x->visit + n + 1);
    x->A = x->back + n + 1;
    x->baseline = x->A + n + 1;
    x->scale = x->baseline + n + 1;
    x->confidence = x->scale + n + 1;
    x->begin = (int64_t *)(void *)(x->confidence + n + 1);
    x->slot = (int32_t *)(void *)(x->begin + n + 1);
    find_visits(blend_values(self), b, group, x);
    return TARE_OK;
}

/* Writes the advantages of the group's turns from those of its visits. */
static void write_turns(const tare_value *v, const tare_batch *b, int64_t group, const struct visits *x, tare_advantages *out)
{
    struct sums episodes = {0};
    double trust = 0;
    const int64_t first = b->group_begin[group], end = b->group_begin[group + 1];
    for (int64_t i = first; i < end; i++) sums_add(&episodes, b->reward[i], 1);
    for (int64_t i = first; i < end; i++) out->advantage[i] = v[P_EPISODE].f * sums_standardise(&episodes, b->reward[i], 1e-6);
    for (int64_t m = 0; m < x->batch.n_groups; m++)
        for (int64_t k = x->begin[m]; k < x->begin[m + 1]; k++) {
            const int64_t u = x->visit[k].turn;
            int64_t i = first;
            while (u >= b->turn_begin[i + 1]) i++;
            const double AS = v[P_NORM].i == NORM_STD ? x->A[k] : x->back[k] - x->baseline[m];
            for (int64_t t = b->act_begin[u]; t < b->act_end[u]; t++)
                out->token_advantage[t] = (float)(out->advantage[i] + v[P_OMEGA].f * AS);
            trust += x->confidence[m];
        }
    out->baseline[group] = sums_mean(&episodes);
    out->scale[group] = sums_deviation(&episodes);
    out->confidence[group] = x->batch.n_rollouts ? trust / (double)x->batch.n_rollouts : 0;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_host *h = blend_host(self);
    for (int64_t m = 0; m < batch->n_groups; m++) {
        struct visits x;
        tare_status status = open_visits(self, batch, m, &x, error);
        if (status) return status;
        tare_advantages turns = {
            .struct_size = sizeof turns, .advantage = x.A, .baseline = x.baseline, .scale = x.scale, .confidence = x.confidence};
        status = blend_compute(self, &x.batch, prepared, &turns, error);
        if (!status) write_turns(blend_values(self), batch, m, &x, out);
        h->release(h->ctx, x.visit);
        if (status) return status;
    }
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const tare_host *h = blend_host(self);
    struct visits x;
    tare_status status = open_visits(self, batch, group, &x, error);
    if (status) return status;
    for (int64_t m = 0; m < x.batch.n_groups && !status; m++) status = blend_collect(self, &x.batch, m, sum, error);
    h->release(h->ctx, x.visit);
    return status;
}

ESTIMATOR_END("bv_state", "each turn's return, next to turns from the same state in the group and in earlier steps",
              "GiGPO's turns, arXiv 2505.10978, with the confidence of BV-Blend, arXiv 2606.28707",
              TARE_WANTS(WANTS, N_WANTS) COMMA.state_version = 1 COMMA.state_oldest = 1, .flags = TARE_ESTIMATOR_GIVES_TOKENS,
              .create = create, .destroy = blend_destroy, .save = blend_save, .load = blend_load, .sizes = blend_sizes,
              .compute = compute, .collect = collect, .apply = blend_apply, .describe = blend_describe)
