#include "curriculum/curriculum.h"

#include <math.h>
#include <string.h>

enum { KNOWN_NEEDS = TARE_CURRICULUM_WEIGHTS };

struct curriculum {
    struct plugin_instance *instance;
    const tare_curriculum *call;
    const struct dataset *data;
    tare_rows rows;
    struct arena own;    /* lives as long as the curriculum: the columns of rows */
    struct arena *arena; /* of the step */
    tare_groups *part;   /* [n_parts] the step's collections, in their order */
    int64_t n_parts, part_capacity;
    int64_t *drawn; /* [n_drawn] rows chosen in the step */
    int64_t n_drawn, drawn_capacity;
    int64_t step, replaces;
};

/* ---------------------------------------------------------------- life */

const struct plugin *curriculum_plugin(const struct curriculum *c)
{
    return c->instance->plugin;
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
    double *level, *weight;
    TRY(arena_new(&c->own, &uid, d->n, e));
    TRY(arena_new(&c->own, &source, d->n, e));
    TRY(arena_new(&c->own, &level, d->n, e));
    TRY(arena_new(&c->own, &weight, d->n_sources, e));
    for (int64_t i = 0; i < d->n; i++) {
        uid[i] = d->rows[i].uid;
        source[i] = d->rows[i].source;
        level[i] = d->rows[i].level;
    }
    for (int64_t s = 0; s < d->n_sources; s++) weight[s] = d->weight ? d->weight[s] : 1;
    c->rows = (tare_rows){.struct_size = sizeof c->rows,
                          .n = d->n,
                          .n_sources = d->n_sources,
                          .prompts = o->prompts,
                          .group_size = o->group_size,
                          .prompt_uid = uid,
                          .source = source,
                          .weight = weight,
                          .level = level};
    return TARE_OK;
}

static tare_status open_curriculum(struct curriculum *c, const struct curriculum_options *o, struct err *e)
{
    struct plugin_env env = o->env;
    c->data = o->rows;
    TRY(show_rows(c, o, e));
    env.rows = &c->rows;
    TRY(plugin_new(&(struct plugin_wanted){o->plugin, TARE_CURRICULUM, o->search, o->settings, 0, &env}, &c->instance, e));
    c->call = c->instance->plugin->curriculum;
    const uint32_t needs = c->instance->plugin->desc.needs;
    if (needs & ~(uint32_t)KNOWN_NEEDS)
        FAIL(e, TARE_E_UNSUPPORTED, "curriculum %s: unknown needs 0x%x; update tare", curriculum_name(c), needs);
    if (c->data->weight && !(needs & TARE_CURRICULUM_WEIGHTS))
        FAIL(
            e, TARE_E_CONFIG,
            "data.train = %s has weights of files, which curriculum %s does not read; set curriculum.plugin = mix, or remove the weights",
            c->data->name, curriculum_name(c));
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
    c->n_parts = c->replaces = 0;
    if (step < 1) FAIL(e, TARE_E_STATE, "curriculum %s: invalid step %lld", curriculum_name(c), (long long)step);
    return TARE_OK;
}

static tare_status check_next(const struct curriculum *c, int64_t n, const int64_t *row, const int64_t *rollouts, struct err *e)
{
    const int64_t most = n * c->rows.group_size;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (row[i] < 0 || row[i] >= c->rows.n)
            FAIL(e, TARE_E_PLUGIN, "curriculum %s: next, step %lld: choice %lld is row %lld: must be 0 to %lld", curriculum_name(c),
                 (long long)c->step, (long long)i, (long long)row[i], (long long)c->rows.n - 1);
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
        plugin_enter(&call);
        TRY(plugin_leave(&call, c->instance, "next", c->step, c->call->next(c->instance->self, &draw, row, rollouts, &call.error),
                         e));
        TRY(check_next(c, d->n, row, rollouts, e));
    }
    TRY(mem_grow((void **)&c->drawn, &c->drawn_capacity, c->n_drawn + d->n, sizeof *c->drawn, e));
    memcpy(c->drawn + c->n_drawn, row, (size_t)d->n * sizeof *row);
    c->n_drawn += d->n;
    return TARE_OK;
}

/* ---------------------------------------------------------------- what is kept */

static tare_status show_groups(struct curriculum *c, const struct batch *b, tare_groups *out, struct err *e)
{
    int64_t *row, *length;
    TRY(arena_new(c->arena, &row, b->n_groups + 1, e));
    TRY(arena_new(c->arena, &length, b->n_rollouts + 1, e));
    for (int64_t m = 0; m < b->n_groups; m++) row[m] = b->row[m] - c->data->rows;
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        length[i] = b->token_begin[i + 1] - b->token_begin[i];
        if (!isfinite(b->reward[i]))
            FAIL(e, TARE_E_NOT_FINITE, "step %lld: the reward of rollout %lld is %g: must be finite", (long long)c->step,
                 (long long)i, b->reward[i]);
    }
    *out = (tare_groups){.struct_size = sizeof *out,
                         .step = c->step,
                         .n_groups = b->n_groups,
                         .n_rollouts = b->n_rollouts,
                         .row = row,
                         .group_begin = b->group_begin,
                         .reward = b->reward,
                         .verdict = b->verdict,
                         .length = length,
                         .finish = b->finish};
    for (int64_t k = 0; k < c->n_parts; k++) out->n_before += c->part[k].n_groups;
    return TARE_OK;
}

static tare_status check_keep(const struct curriculum *c, const struct batch *b, const uint8_t *fate, struct err *e)
{
    for (int64_t i = 0; i < b->n_rollouts; i++)
        if (fate[i] > TARE_ROLLOUT_COUNTED)
            FAIL(e, TARE_E_PLUGIN, "curriculum %s: keep, step %lld: rollout %lld has the fate %d: must be 0, 1 or 2",
                 curriculum_name(c), (long long)c->step, (long long)i, fate[i]);
    if (c->replaces < 0)
        FAIL(e, TARE_E_PLUGIN, "curriculum %s: keep, step %lld: invalid request for %lld more groups", curriculum_name(c),
             (long long)c->step, (long long)c->replaces);
    return TARE_OK;
}

tare_status curriculum_keep(struct curriculum *c, struct batch *b, struct err *e)
{
    struct plugin_call call;
    tare_groups groups;
    uint8_t *fate;
    c->replaces = 0;
    TRY(show_groups(c, b, &groups, e));
    TRY(arena_new(c->arena, &fate, b->n_rollouts + 1, e));
    if (c->call->keep) {
        plugin_enter(&call);
        TRY(plugin_leave(&call, c->instance, "keep", c->step,
                         c->call->keep(c->instance->self, &groups, fate, &c->replaces, &call.error), e));
        TRY(check_keep(c, b, fate, e));
    }
    groups.fate = fate;
    TRY(mem_grow((void **)&c->part, &c->part_capacity, c->n_parts + 1, sizeof *c->part, e));
    c->part[c->n_parts++] = groups;
    b->fate = NULL;
    for (int64_t i = 0; i < b->n_rollouts; i++)
        if (fate[i]) b->fate = fate;
    return TARE_OK;
}

int64_t curriculum_replaces(const struct curriculum *c)
{
    return c->replaces;
}

/* ---------------------------------------------------------------- state */

/* Joins all groups of the step into one view. */
static tare_status join_groups(const struct curriculum *c, tare_groups *out, struct err *e)
{
    int64_t *row, *begin, *length, m = 0, n = 0;
    double *reward;
    int32_t *verdict;
    uint8_t *finish, *fate;
    *out = (tare_groups){.struct_size = sizeof *out, .step = c->step};
    for (int64_t k = 0; k < c->n_parts; k++) {
        out->n_groups += c->part[k].n_groups;
        out->n_rollouts += c->part[k].n_rollouts;
    }
    TRY(arena_new(c->arena, &row, out->n_groups + 1, e));
    TRY(arena_new(c->arena, &begin, out->n_groups + 1, e));
    TRY(arena_new(c->arena, &reward, out->n_rollouts + 1, e));
    TRY(arena_new(c->arena, &verdict, out->n_rollouts + 1, e));
    TRY(arena_new(c->arena, &length, out->n_rollouts + 1, e));
    TRY(arena_new(c->arena, &finish, out->n_rollouts + 1, e));
    TRY(arena_new(c->arena, &fate, out->n_rollouts + 1, e));
    for (int64_t k = 0; k < c->n_parts; k++) {
        const tare_groups *g = &c->part[k];
        for (int64_t i = 0; i < g->n_groups; i++) {
            row[m] = g->row[i];
            begin[++m] = n + g->group_begin[i + 1];
        }
        const size_t count = (size_t)g->n_rollouts;
        memcpy(reward + n, g->reward, count * sizeof *reward);
        memcpy(verdict + n, g->verdict, count * sizeof *verdict);
        memcpy(length + n, g->length, count * sizeof *length);
        memcpy(finish + n, g->finish, count);
        memcpy(fate + n, g->fate, count);
        n += g->n_rollouts;
    }
    out->row = row;
    out->group_begin = begin;
    out->reward = reward;
    out->verdict = verdict;
    out->length = length;
    out->finish = finish;
    out->fate = fate;
    return TARE_OK;
}

tare_status curriculum_apply(struct curriculum *c, struct err *e)
{
    struct plugin_call call;
    tare_groups groups;
    if (!c->call->apply) return TARE_OK;
    TRY(join_groups(c, &groups, e));
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
