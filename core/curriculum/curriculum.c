#include "curriculum/curriculum.h"

#include "batch/turns.h"
#include "curriculum/columns.h"

#include <math.h>
#include <string.h>

struct curriculum {
    struct plugin_instance *instance;
    const tare_curriculum *call;
    const struct dataset *data;
    tare_dataset rows;
    struct row_columns columns;
    struct arena own;           /* lives as long as the curriculum: the columns of rows */
    struct arena *arena;        /* of the step */
    struct group_columns *part; /* [n_parts] the step's collections, in their order */
    int64_t n_parts, part_capacity;
    int64_t *drawn; /* [n_drawn] rows chosen in the step */
    int64_t n_drawn, drawn_capacity;
    int64_t step, extra_groups;
};

/* ---------------------------------------------------------------- life */

const struct plugin *curriculum_plugin(const struct curriculum *c)
{
    return c->instance->plugin;
}

const struct plugin_instance *curriculum_instance(const struct curriculum *c)
{
    return c->instance;
}

static const char *curriculum_name(const struct curriculum *c)
{
    return c->instance->plugin->desc.name;
}

void curriculum_free(struct curriculum *c)
{
    if (!c) return;
    plugin_destroy(c->instance);
    arena_free(&c->own);
    mem_free(c->part);
    mem_free(c->drawn);
    mem_free(c);
}

/* Makes the view of the data set that the plugin gets. */
static tare_status show_rows(struct curriculum *c, const struct curriculum_options *o, struct err *e)
{
    const struct dataset *d = o->rows;
    uint64_t *uid;
    int32_t *source;
    double *weight;
    TRY(arena_new(&c->own, &uid, d->n, e));
    TRY(arena_new(&c->own, &source, d->n, e));
    TRY(arena_new(&c->own, &weight, d->n_sources, e));
    for (int64_t i = 0; i < d->n; i++) {
        uid[i] = d->rows[i].uid;
        source[i] = d->rows[i].source;
    }
    for (int64_t s = 0; s < d->n_sources; s++) weight[s] = d->weight ? d->weight[s] : 1;
    c->rows = (tare_dataset){.struct_size = sizeof c->rows,
                             .n_rows = d->n,
                             .n_sources = d->n_sources,
                             .prompts_per_step = o->prompts,
                             .group_size = o->group_size,
                             .prompt_uid = uid,
                             .source = source,
                             .source_weight = weight,
                             .column = c->columns.rows};
    return TARE_OK;
}

static tare_status check_weights(const struct plugin *p, const struct dataset *data, struct err *e)
{
    if (data->weight && !(p->curriculum->flags & TARE_CURRICULUM_READS_WEIGHTS))
        FAIL(
            e, TARE_E_CONFIG,
            "data.train = %s has weights of files, which curriculum %s does not read; set curriculum.plugin = mix, or remove the weights",
            data->name, p->desc.name);
    return TARE_OK;
}

static tare_status open_curriculum(struct curriculum *c, const struct curriculum_options *o, struct err *e)
{
    struct plugin_env env = o->env;
    const struct plugin *p;
    const tare_value *values;
    c->data = o->rows;
    TRY(plugin_open(o->plugin, TARE_KIND_CURRICULUM, o->search, &p, e));
    TRY(plugin_params(p, o->settings, &c->own, &values, e));
    TRY(check_weights(p, c->data, e));
    TRY(row_columns_read(p, values, c->data, &c->own, &c->columns, e));
    TRY(show_rows(c, o, e));
    env.dataset = &c->rows;
    TRY(plugin_create(p, values, 0, &env, &c->instance, e));
    c->call = p->curriculum;
    return TARE_OK;
}

tare_status curriculum_open(const struct curriculum_options *o, struct curriculum **out, struct err *e)
{
    struct curriculum *c;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *c, (void **)&c, e));
    arena_init(&c->own, "curriculum");
    const tare_status status = open_curriculum(c, o, e);
    if (status) {
        curriculum_free(c);
        return status;
    }
    *out = c;
    return TARE_OK;
}

/* ---------------------------------------------------------------- which rows */

tare_status curriculum_begin(struct curriculum *c, int64_t step, struct arena *arena, struct err *e)
{
    if (c->step != step) c->n_drawn = 0;
    c->step = step;
    c->arena = arena;
    c->n_parts = c->extra_groups = 0;
    if (step < 1) FAIL(e, TARE_E_STATE, "curriculum %s: invalid step %lld", curriculum_name(c), (long long)step);
    return TARE_OK;
}

static tare_status check_next(const struct curriculum *c, int64_t n, const int64_t *row, const int64_t *rollouts, struct err *e)
{
    const int64_t most = n * c->rows.group_size;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (row[i] < 0 || row[i] >= c->rows.n_rows)
            FAIL(e, TARE_E_PLUGIN, "curriculum %s: next, step %lld: choice %lld is row %lld: must be 0 to %lld", curriculum_name(c),
                 (long long)c->step, (long long)i, (long long)row[i], (long long)c->rows.n_rows - 1);
        if (rollouts[i] < 1 || rollouts[i] > most - sum)
            FAIL(
                e, TARE_E_PLUGIN,
                "curriculum %s: next, step %lld: choice %lld gets %lld rollouts after %lld for the choices before it: must be at least 1 each, and at most %lld together",
                curriculum_name(c), (long long)c->step, (long long)i, (long long)rollouts[i], (long long)sum, (long long)most);
        sum += rollouts[i];
    }
    return TARE_OK;
}

tare_status curriculum_next(struct curriculum *c, const struct curriculum_draw *d, int64_t *row, int64_t *rollouts, struct err *e)
{
    struct plugin_call call;
    const tare_draw draw = {.struct_size = sizeof draw,
                            .step = c->step,
                            .n = d->n,
                            .cursor = d->cursor,
                            .ordered = d->ordered,
                            .drawn = c->drawn,
                            .n_drawn = c->n_drawn};
    for (int64_t i = 0; i < d->n; i++) {
        row[i] = c->call->next ? -1 : d->ordered[i];
        rollouts[i] = c->rows.group_size;
    }
    if (c->call->next) {
        tare_choice out = {.struct_size = sizeof out, .row = row, .n_rollouts = rollouts};
        plugin_enter(&call);
        TRY(plugin_leave(&call, c->instance, "next", c->step, c->call->next(c->instance->self, &draw, &out, &call.error), e));
        TRY(check_next(c, d->n, row, rollouts, e));
    }
    TRY(mem_grow((void **)&c->drawn, &c->drawn_capacity, c->n_drawn + d->n, sizeof *c->drawn, e));
    memcpy(c->drawn + c->n_drawn, row, (size_t)d->n * sizeof *row);
    c->n_drawn += d->n;
    return TARE_OK;
}

/* ---------------------------------------------------------------- what is kept */

static tare_status read_groups(const struct curriculum *c, const struct batch *b, struct group_columns *out, struct err *e)
{
    int64_t *row;
    struct turns turns;
    TRY(turns_of(b, c->arena, &turns, e));
    TRY(arena_new(c->arena, &row, b->n_groups + 1, e));
    for (int64_t m = 0; m < b->n_groups; m++) row[m] = b->row[m] - c->data->rows;
    for (int64_t i = 0; i < b->n_rollouts; i++)
        if (!isfinite(b->reward[i]))
            FAIL(e, TARE_E_NOT_FINITE, "step %lld: the reward of rollout %lld is %g: must be finite", (long long)c->step,
                 (long long)i, b->reward[i]);
    *out = (struct group_columns){.n_groups = b->n_groups,
                                  .n_rollouts = b->n_rollouts,
                                  .n_tokens = b->n_rollouts ? b->token_begin[b->n_rollouts] : 0,
                                  .n_turns = turns.n,
                                  .turn_begin = turns.begin,
                                  .act_begin = turns.act_begin,
                                  .act_end = turns.act_end,
                                  .sampled = turns.sampled,
                                  .length = turns.length,
                                  .row = row,
                                  .uid = b->prompt_uid,
                                  .group_begin = b->group_begin,
                                  .token_begin = b->token_begin,
                                  .reward = b->reward,
                                  .verdict = b->verdict,
                                  .finish = b->finish};
    return TARE_OK;
}

static tare_status check_keep(const struct curriculum *c, const struct batch *b, const uint8_t *fate, struct err *e)
{
    for (int64_t i = 0; i < b->n_rollouts; i++)
        if (fate[i] > TARE_FATE_COUNTED)
            FAIL(e, TARE_E_PLUGIN, "curriculum %s: keep, step %lld: rollout %lld has the fate %d: must be 0, 1 or 2",
                 curriculum_name(c), (long long)c->step, (long long)i, fate[i]);
    if (c->extra_groups < 0)
        FAIL(e, TARE_E_PLUGIN, "curriculum %s: keep, step %lld: invalid request for %lld more groups", curriculum_name(c),
             (long long)c->step, (long long)c->extra_groups);
    return TARE_OK;
}

static tare_status call_keep(struct curriculum *c, const struct group_columns *g, uint8_t *fate, struct err *e)
{
    struct plugin_call call;
    tare_kept out = {.struct_size = sizeof out, .fate = fate};
    tare_batch groups;
    TRY(group_columns_show(c->instance, &c->columns, g, c->arena, &groups, e));
    groups.step = c->step;
    for (int64_t k = 0; k < c->n_parts; k++) groups.n_before += c->part[k].n_groups;
    plugin_enter(&call);
    TRY(plugin_leave(&call, c->instance, "keep", c->step, c->call->keep(c->instance->self, &groups, &out, &call.error), e));
    c->extra_groups = out.extra_groups;
    return TARE_OK;
}

tare_status curriculum_keep(struct curriculum *c, struct batch *b, struct err *e)
{
    struct group_columns g;
    uint8_t *fate;
    c->extra_groups = 0;
    TRY(read_groups(c, b, &g, e));
    TRY(arena_new(c->arena, &fate, b->n_rollouts + 1, e));
    if (c->call->keep) {
        TRY(call_keep(c, &g, fate, e));
        TRY(check_keep(c, b, fate, e));
    }
    g.fate = fate;
    TRY(mem_grow((void **)&c->part, &c->part_capacity, c->n_parts + 1, sizeof *c->part, e));
    c->part[c->n_parts++] = g;
    b->fate = NULL;
    for (int64_t i = 0; i < b->n_rollouts; i++)
        if (fate[i]) b->fate = fate;
    return TARE_OK;
}

int64_t curriculum_extra_groups(const struct curriculum *c)
{
    return c->extra_groups;
}

/* ---------------------------------------------------------------- state */

/* Allocates MEMBER for n entries, and copies that of every part into it. */
#define JOIN(OUT, MEMBER, TYPE, N)                                                                                                 \
    do {                                                                                                                           \
        TYPE *to;                                                                                                                  \
        TRY(arena_new(c->arena, &to, (OUT)->N + 1, e));                                                                            \
        (OUT)->MEMBER = to;                                                                                                        \
        for (int64_t k = 0; k < c->n_parts; to += c->part[k++].N)                                                                  \
            memcpy(to, c->part[k].MEMBER, (size_t)c->part[k].N * sizeof *to);                                                      \
    } while (0)

static tare_status join_begins(const struct curriculum *c, struct group_columns *out, struct err *e)
{
    int64_t *group, *token, *turn, *act_begin, *act_end, m = 0, n = 0, u = 0;
    TRY(arena_new(c->arena, &group, out->n_groups + 1, e));
    TRY(arena_new(c->arena, &token, out->n_rollouts + 1, e));
    TRY(arena_new(c->arena, &turn, out->n_rollouts + 1, e));
    TRY(arena_new(c->arena, &act_begin, out->n_turns + 1, e));
    TRY(arena_new(c->arena, &act_end, out->n_turns + 1, e));
    for (int64_t k = 0; k < c->n_parts; k++) {
        const struct group_columns *g = &c->part[k];
        const int64_t rollouts = n, tokens = token[n], turns = u;
        for (int64_t i = 0; i < g->n_groups; i++) group[++m] = rollouts + g->group_begin[i + 1];
        for (int64_t i = 0; i < g->n_turns; i++, u++) {
            act_begin[u] = tokens + g->act_begin[i];
            act_end[u] = tokens + g->act_end[i];
        }
        for (int64_t i = 0; i < g->n_rollouts; i++) {
            token[++n] = tokens + g->token_begin[i + 1];
            turn[n] = turns + g->turn_begin[i + 1];
        }
    }
    out->group_begin = group;
    out->token_begin = token;
    out->turn_begin = turn;
    out->act_begin = act_begin;
    out->act_end = act_end;
    return TARE_OK;
}

/* Joins all groups of the step. */
static tare_status join_groups(const struct curriculum *c, struct group_columns *out, struct err *e)
{
    *out = (struct group_columns){0};
    for (int64_t k = 0; k < c->n_parts; k++) {
        out->n_groups += c->part[k].n_groups;
        out->n_rollouts += c->part[k].n_rollouts;
        out->n_turns += c->part[k].n_turns;
        out->n_tokens += c->part[k].n_tokens;
    }
    JOIN(out, row, int64_t, n_groups);
    JOIN(out, uid, uint64_t, n_groups);
    JOIN(out, reward, double, n_rollouts);
    JOIN(out, verdict, int32_t, n_rollouts);
    JOIN(out, finish, uint8_t, n_rollouts);
    JOIN(out, fate, uint8_t, n_rollouts);
    JOIN(out, length, int64_t, n_rollouts);
    JOIN(out, sampled, uint8_t, n_tokens);
    return join_begins(c, out, e);
}

tare_status curriculum_apply(struct curriculum *c, struct err *e)
{
    struct plugin_call call;
    struct group_columns all;
    tare_batch groups;
    if (!c->call->apply) return TARE_OK;
    TRY(join_groups(c, &all, e));
    TRY(group_columns_show(c->instance, &c->columns, &all, c->arena, &groups, e));
    groups.step = c->step;
    plugin_enter(&call);
    return plugin_leave(&call, c->instance, "apply", c->step, c->call->apply(c->instance->self, &groups, &call.error), e);
}

tare_status curriculum_save(const struct curriculum *c, struct str *out, struct err *e)
{
    return plugin_save(c->instance, out, e);
}

tare_status curriculum_load(struct curriculum *c, const void *data, int64_t n, const char *where, struct err *e)
{
    return plugin_load(c->instance, data, n, NULL, where, e);
}
