#include "estimate/view.h"

#include "batch/turns.h"
#include "estimate/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tare_status check_rewards(const struct batch *b, struct err *e)
{
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
            if (!isfinite(b->reward[i]))
                FAIL(e, TARE_E_NOT_FINITE, "step %lld: the reward of group %lld, rollout %lld is %g: must be finite",
                     (long long)b->step, (long long)m, (long long)(i - b->group_begin[m]), b->reward[i]);
    return TARE_OK;
}

/* Allocates n entries of `size` bytes, all equal to *value. */
static tare_status filled(struct arena *a, int64_t n, int64_t size, const void *value, const void **out, struct err *e)
{
    char *p;
    TRY(arena_push_raw(a, n * size + 8, (void **)&p, e));
    for (int64_t k = 0; k < n; k++) memcpy(p + k * size, value, (size_t)size);
    *out = p;
    return TARE_OK;
}

/* Reward of each turn: the environment's, and in the last turn the rest of the rollout's reward. */
static tare_status turn_rewards(const struct batch *b, const struct turns *turns, struct arena *a, const void **out, struct err *e)
{
    double *x;
    *out = b->reward;
    if (!b->turn_begin) return TARE_OK;
    TRY(arena_new(a, &x, turns->n + 1, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        double rest = b->reward[i];
        for (int64_t u = turns->begin[i]; b->turn_reward && u < turns->begin[i + 1]; u++) {
            x[u] = turns->at[u] >= 0 ? b->turn_reward[turns->at[u]] : 0;
            rest -= x[u];
        }
        x[turns->begin[i + 1] - 1] += rest;
    }
    *out = x;
    return TARE_OK;
}

static tare_status turn_states(const struct batch *b, const struct turns *turns, struct arena *a, const void **out, struct err *e)
{
    int64_t *x;
    TRY(arena_new(a, &x, turns->n + 1, e));
    for (int64_t u = 0; u < turns->n; u++) x[u] = b->turn_state && turns->at[u] >= 0 ? b->turn_state[turns->at[u]] : -1;
    *out = x;
    return TARE_OK;
}

/* Tool calls of each turn, or those that could not be read; 0 where the batch has no tools. */
static tare_status turn_counts(const int32_t *count, const struct turns *turns, struct arena *a, struct plugin_column *out,
                               struct err *e)
{
    int32_t *x;
    TRY(arena_new(a, &x, turns->n + 1, e));
    for (int64_t u = 0; u < turns->n; u++) x[u] = count && turns->at[u] >= 0 ? count[turns->at[u]] : 0;
    out->data = x;
    out->n = turns->n;
    return TARE_OK;
}

static tare_status turn_finishes(const struct batch *b, const struct turns *turns, struct arena *a, const void **out, struct err *e)
{
    uint8_t *x;
    *out = b->finish;
    if (!b->turn_begin || !b->finish) return TARE_OK;
    TRY(arena_new(a, &x, turns->n + 1, e));
    for (int64_t u = 0; u < turns->n; u++)
        x[u] = turns->at[u] >= 0 && b->turn_finish ? b->turn_finish[turns->at[u]] : b->finish[turns->rollout[u]];
    *out = x;
    return TARE_OK;
}

struct view_source {
    const struct batch *b;
    const struct turns *turns;
    const tare_text *names;
};

static tare_status find_column(const struct view_source *from, enum column_id id, struct arena *a, struct plugin_column *out,
                               struct err *e)
{
    const struct batch *b = from->b;
    const int64_t U = from->turns->n, M = b->n_groups, N = b->n_rollouts, T = b->n_tokens, C = b->n_components;
    *out = (struct plugin_column){NULL, 0, 1, "which the batch does not have"};
#define IS(DATA, COUNT, WIDTH) (out->data = (DATA), out->n = (COUNT), out->width = (WIDTH), TARE_OK)
#define CONSTANT(TYPE, N, VALUE) (out->n = (N), filled(a, N, sizeof(TYPE), &(const TYPE){VALUE}, &out->data, e))
    switch (id) {
    case COLUMN_COMPONENT_NAME:
        return IS(from->names, 1, C);
    case COLUMN_CLUSTER:
        return IS(b->cluster, M, 1);
    case COLUMN_ROW_JSON:
        return IS(b->row_json, M, 1);
    case COLUMN_COMPONENT:
        return IS(b->component, N, C);
    case COLUMN_COMPONENT_VERDICT:
        return IS(b->component_verdict, N, C);
    case COLUMN_VERDICT:
        return IS(b->verdict, N, 1);
    case COLUMN_FINISH:
        return IS(b->finish, N, 1);
    case COLUMN_COMPLETION:
        return IS(b->completion, N, 1);
    case COLUMN_OFF_POLICY:
        /* a batch without that column has samples only */
        return b->off_policy ? IS(b->off_policy, N, 1) : CONSTANT(uint8_t, N, 0);
    case COLUMN_POLICY_VERSION:
        return IS(b->policy_version, N, 1);
    case COLUMN_TURN_REWARD:
        out->n = U;
        return turn_rewards(b, from->turns, a, &out->data, e);
    case COLUMN_TURN_STATE:
        out->n = U;
        return turn_states(b, from->turns, a, &out->data, e);
    case COLUMN_TURN_FINISH:
        out->n = U;
        return turn_finishes(b, from->turns, a, &out->data, e);
    case COLUMN_TURN_CALLS:
    case COLUMN_TURN_UNPARSED:
        return turn_counts(id == COLUMN_TURN_CALLS ? b->turn_calls : b->turn_unparsed, from->turns, a, out, e);
    case COLUMN_TOKEN:
        return IS(b->ids, T, 1);
    case COLUMN_LOGPROB:
        return IS(b->logprob, T, 1);
    case COLUMN_ENTROPY:
        return IS(b->entropy, T, 1);
    case COLUMN_REF_LOGPROB:
        return IS(b->ref_logprob, T, 1);
    case COLUMN_SEGMENT:
        return IS(b->segment, T, 1);
    case COLUMN_SEGMENT_REWARD:
        return IS(b->segment_reward, T, 1);
    default: /* absent here, or of another kind of plugin */
        return TARE_OK;
    }
#undef IS
#undef CONSTANT
}

/* Reads the fields of the groups' rows. number: [n_wants, M], in the arena. */
static tare_status read_rows(const struct plugin_instance *i, const struct batch *b, struct arena *a, double **number,
                             struct err *e)
{
    const int64_t M = b->n_groups, n = i->plugin->desc.n_wants;
    double one[TARE_LIMIT_WANTS];
    char where[96];
    *number = NULL;
    if (!b->row_json || !plugin_wants(i, COLUMN_ROW_FIELD)) return TARE_OK;
    TRY(arena_new(a, number, n * M + 1, e));
    for (int64_t m = 0; m < M; m++) {
        snprintf(where, sizeof where, "step %lld: the row of group %lld", (long long)b->step, (long long)m);
        TRY(fields_numbers(i, b->row_json[m], where, one, e));
        for (int64_t w = 0; w < n; w++) (*number)[w * M + m] = one[w];
    }
    return TARE_OK;
}

static tare_status add_columns(const struct plugin_instance *i, const struct view_source *source, struct arena *a,
                               const tare_column **out, struct err *e)
{
    const struct batch *b = source->b;
    tare_column *column;
    double *number;
    char missing[160];
    TRY(arena_new(a, &column, i->plugin->desc.n_wants + 1, e));
    TRY(read_rows(i, b, a, &number, e));
    for (uint32_t w = 0; w < i->plugin->desc.n_wants; w++) {
        const enum column_id id = (enum column_id)i->plugin->column[w];
        struct plugin_column from;
        if (!i->wanted[w] || id == COLUMN_UPDATED_LOGPROB) continue;
        TRY(find_column(source, id, a, &from, e));
        if (fields_key(i, w)) {
            snprintf(missing, sizeof missing, "but the batch has no rows; give each group its row: \"row\":{\"%.60s\":1}",
                     fields_key(i, w));
            from = (struct plugin_column){number ? number + w * b->n_groups : NULL, b->n_groups, 1, missing};
        }
        TRY(plugin_column(i, w, &from, &column[w], e));
    }
    *out = column;
    return TARE_OK;
}

tare_status estimate_view(const struct plugin_instance *i, const struct batch *b, const tare_text *names, struct arena *a,
                          tare_batch *out, struct err *e)
{
    struct turns turns;
    TRY(check_rewards(b, e));
    TRY(turns_of(b, a, &turns, e));
    *out = (tare_batch){.struct_size = sizeof *out,
                        .step = b->step,
                        .n_groups = b->n_groups,
                        .n_rollouts = b->n_rollouts,
                        .n_turns = turns.n,
                        .n_tokens = b->n_tokens,
                        .group_begin = b->group_begin,
                        .turn_begin = turns.begin,
                        .token_begin = b->token_begin,
                        .act_begin = turns.act_begin,
                        .act_end = turns.act_end,
                        .sampled = turns.sampled,
                        .length = turns.length,
                        .prompt_uid = b->prompt_uid,
                        .reward = b->reward};
    return add_columns(i, &(struct view_source){b, &turns, names}, a, &out->column, e);
}

tare_status view_updated(const struct plugin_instance *i, const tare_batch *view, const float *logprob, tare_column *column,
                         struct err *e)
{
    const struct plugin_column from = {logprob, view->n_tokens, 1, "which is not computed here"};
    for (uint32_t w = 0; w < i->plugin->desc.n_wants; w++) {
        column[w] = view->column[w];
        if (i->wanted[w] && i->plugin->column[w] == COLUMN_UPDATED_LOGPROB) TRY(plugin_column(i, w, &from, &column[w], e));
    }
    return TARE_OK;
}
