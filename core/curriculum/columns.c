#include "curriculum/columns.h"

#include "batch/row_number.h"

/* ---------------------------------------------------------------- rows */

/* Reads n fields: field[k] is column k, [R]. */
static tare_status read_rows(const struct dataset *data, const struct row_keys *keys, double *const *field, struct arena *a,
                             struct err *e)
{
    double *one;
    TRY(arena_new(a, &one, keys->n + 1, e));
    for (int64_t r = 0; keys->n && r < data->n; r++) {
        TRY(row_numbers(keys, data->rows[r].json, data->rows[r].where, one, e));
        for (int64_t k = 0; k < keys->n; k++) field[k][r] = one[k];
    }
    return TARE_OK;
}

tare_status row_columns_read(const struct plugin *p, const tare_value *values, const struct dataset *data, struct arena *a,
                             struct row_columns *out, struct err *e)
{
    const char *key[TARE_LIMIT_WANTS];
    double *field[TARE_LIMIT_WANTS];
    struct row_keys keys = {.key = key, .reader = "curriculum"};
    uint8_t wanted[TARE_LIMIT_WANTS];
    tare_column *rows;
    TRY(plugin_select(p, values, wanted, e));
    TRY(arena_new(a, &out->field, p->desc.n_wants + 1, e));
    TRY(arena_new(a, &rows, p->desc.n_wants + 1, e));
    for (uint32_t w = 0; w < p->desc.n_wants; w++) {
        const char *name = plugin_row_key(p, values, w);
        if (!wanted[w] || !name) continue;
        TRY(arena_new(a, &field[keys.n], data->n + 1, e));
        out->field[w] = field[keys.n];
        key[keys.n++] = name;
        if (p->wants[w].axis == TARE_AXIS_ROW) rows[w] = (tare_column){out->field[w], data->n, 1};
    }
    out->rows = rows;
    return read_rows(data, &keys, field, a, e);
}

/* ---------------------------------------------------------------- groups */

static tare_status gather_field(const double *field, const struct group_columns *g, struct arena *a, const void **out,
                                struct err *e)
{
    double *x;
    TRY(arena_new(a, &x, g->n_groups + 1, e));
    for (int64_t m = 0; m < g->n_groups; m++) x[m] = field[g->row[m]];
    *out = x;
    return TARE_OK;
}

struct filler {
    const struct plugin_instance *instance;
    const struct row_columns *rows;
    const struct group_columns *groups;
    struct arena *arena;
};

static tare_status fill_want(const struct filler *f, uint32_t want, tare_column *out, struct err *e)
{
    const struct plugin_instance *i = f->instance;
    const struct group_columns *g = f->groups;
    const struct plugin *p = i->plugin;
    struct plugin_column from = {.n = p->wants[want].axis == TARE_AXIS_GROUP ? g->n_groups : g->n_rollouts,
                                 .width = 1,
                                 .missing = "which this step does not have"};
    switch (p->column[want]) {
    case COLUMN_ROW_FIELD:
        if (p->wants[want].axis == TARE_AXIS_ROW || !f->rows->field[want]) return TARE_OK;
        TRY(gather_field(f->rows->field[want], g, f->arena, &from.data, e));
        break;
    case COLUMN_ROW_INDEX:
        from.data = g->row;
        break;
    case COLUMN_GROUP_VERDICT:
        from.data = g->verdict;
        break;
    case COLUMN_GROUP_FINISH:
        from.data = g->finish;
        break;
    case COLUMN_FATE:
        if (!g->fate) return TARE_OK; /* before keep gave it */
        from.data = g->fate;
        break;
    default:
        break;
    }
    return plugin_column(i, want, &from, out, e);
}

tare_status group_columns_show(const struct plugin_instance *i, const struct row_columns *rows, const struct group_columns *g,
                               struct arena *a, tare_batch *out, struct err *e)
{
    tare_column *column;
    TRY(arena_new(a, &column, i->plugin->desc.n_wants + 1, e));
    *out = (tare_batch){.struct_size = sizeof *out,
                        .n_groups = g->n_groups,
                        .n_rollouts = g->n_rollouts,
                        .n_turns = g->n_turns,
                        .n_tokens = g->n_tokens,
                        .group_begin = g->group_begin,
                        .turn_begin = g->turn_begin,
                        .token_begin = g->token_begin,
                        .act_begin = g->act_begin,
                        .act_end = g->act_end,
                        .sampled = g->sampled,
                        .length = g->length,
                        .prompt_uid = g->uid,
                        .reward = g->reward,
                        .column = column};
    const struct filler f = {i, rows, g, a};
    for (uint32_t w = 0; w < i->plugin->desc.n_wants; w++) TRY(fill_want(&f, w, &column[w], e));
    return TARE_OK;
}
