#include "estimate/shown.h"

#include "batch/select.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tare/batch.h>

static bool is_unjudged(int32_t code)
{
    return code == TARE_VERDICT_TIMED_OUT || code == TARE_VERDICT_CRASHED;
}

static bool is_shown(const struct batch *b, int64_t i)
{
    if (b->fate && b->fate[i] == TARE_FATE_LEFT_OUT) return false;
    if (b->verdict && is_unjudged(b->verdict[i])) return false;
    if (b->component_verdict)
        for (int64_t c = 0; c < b->n_components; c++)
            if (is_unjudged(b->component_verdict[i * b->n_components + c])) return false;
    return true;
}

/* Maps the remaining rollouts and groups to their indices in the whole batch. */
static tare_status remember_indices(const struct batch *whole, const uint8_t *keep, struct arena *a, struct shown *j, struct err *e)
{
    int64_t *rollout, *group, n = 0, m = 0;
    TRY(arena_new(a, &rollout, whole->n_rollouts + 1, e));
    TRY(arena_new(a, &group, whole->n_groups + 1, e));
    for (int64_t g = 0; g < whole->n_groups; g++) {
        const int64_t before = n;
        for (int64_t i = whole->group_begin[g]; i < whole->group_begin[g + 1]; i++)
            if (keep[i]) rollout[n++] = i;
        if (n > before) group[m++] = g;
    }
    j->rollout = rollout;
    j->group = group;
    return TARE_OK;
}

tare_status shown_of(const struct batch *whole, struct arena *a, struct shown *out, struct err *e)
{
    bool all = true;
    for (int64_t i = 0; i < whole->n_rollouts && all; i++) all = is_shown(whole, i);
    *out = (struct shown){.batch = *whole};
    if (all) return TARE_OK;
    uint8_t *keep;
    TRY(arena_new(a, &keep, whole->n_rollouts, e));
    for (int64_t i = 0; i < whole->n_rollouts; i++) keep[i] = is_shown(whole, i);
    TRY(batch_keep(whole, keep, a, &out->batch, e));
    return remember_indices(whole, keep, a, out, e);
}

static void index_of(const double *from, const int64_t *at, int64_t n, double *to)
{
    for (int64_t i = 0; i < n; i++) to[at[i]] = from[i];
}

/* Sets the weight of rollouts that count in the statistics of their group but not in the loss. */
static void weigh_counted(struct batch *whole)
{
    for (int64_t i = 0; whole->fate && i < whole->n_rollouts; i++)
        if (whole->fate[i] == TARE_FATE_COUNTED) whole->rollout_weight[i] = 0;
}

static tare_status spread_column(const struct shown *j, struct batch *whole, struct arena *a, struct err *e)
{
    const struct batch *b = &j->batch;
    TRY(batch_alloc(whole, BATCH_ESTIMATE, a, e));
    for (int64_t m = 0; m < whole->n_groups; m++) whole->scale[m] = whole->baseline[m] = (double)NAN;
    index_of(b->advantage, j->rollout, b->n_rollouts, whole->advantage);
    index_of(b->rollout_weight, j->rollout, b->n_rollouts, whole->rollout_weight);
    index_of(b->baseline, j->group, b->n_groups, whole->baseline);
    index_of(b->scale, j->group, b->n_groups, whole->scale);
    index_of(b->confidence, j->group, b->n_groups, whole->confidence);
    whole->token_advantage = NULL;
    if (!b->token_advantage) return TARE_OK;
    TRY(arena_new(a, &whole->token_advantage, whole->n_tokens, e));
    for (int64_t i = 0; i < b->n_rollouts; i++)
        memcpy(whole->token_advantage + whole->token_begin[j->rollout[i]], b->token_advantage + b->token_begin[i],
               (size_t)(b->token_begin[i + 1] - b->token_begin[i]) * sizeof(float));
    return TARE_OK;
}

tare_status shown_spread(const struct shown *j, struct batch *whole, struct arena *a, struct err *e)
{
    if (j->rollout)
        TRY(spread_column(j, whole, a, e));
    else
        batch_adopt(whole, &j->batch, BATCH_ESTIMATE);
    weigh_counted(whole);
    return TARE_OK;
}
