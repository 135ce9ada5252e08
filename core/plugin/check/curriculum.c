/* Tests of curricula: choices are rows, fates are valid, next and keep do not change the state, and
 * a resumed run continues as without a break. */
#include "plugin/check/internal.h"

#include "base/clock.h"
#include "base/fs.h"

#include <math.h>
#include <string.h>

enum { ROWS = 24, SOURCES = 3, PROMPTS = 6, SIZE = 4, MOST = 40, GUARD = 8 };

static const uint64_t UID[ROWS] = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34};
static const int32_t SOURCE[ROWS] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2};
static const double WEIGHT[SOURCES] = {0.5, 3, 0.25};

const tare_dataset CHECK_DATASET = {.struct_size = sizeof CHECK_DATASET,
                                    .n_rows = ROWS,
                                    .n_sources = SOURCES,
                                    .prompts_per_step = PROMPTS,
                                    .group_size = SIZE,
                                    .prompt_uid = UID,
                                    .source = SOURCE,
                                    .source_weight = WEIGHT};
static const tare_dataset ONE_ROW = {.struct_size = sizeof ONE_ROW,
                                     .n_rows = 1,
                                     .n_sources = 1,
                                     .prompts_per_step = PROMPTS,
                                     .group_size = 1,
                                     .prompt_uid = UID,
                                     .source = SOURCE,
                                     .source_weight = WEIGHT};

/* The distribution of a step's rewards. */
enum shape { MIXED, ALL_RIGHT, ALL_WRONG, UNJUDGED, SHAPES };
static const char *const NAMES[SHAPES] = {"mixed rewards", "everything correct", "everything wrong", "no verdicts"};

/* A small run. The plugin's inputs are a function of the step and of the rows that it chose. */
enum { MOST_ROLLOUTS = 2 * MOST * SIZE, LONGEST = 9 };
struct course {
    struct check *c;
    struct plugin_instance *i;
    const tare_dataset *rows;
    enum shape shape;
    int64_t step, cursor, drawn[2 * MOST], n_drawn;
    /* all groups of the step */
    int64_t n_groups, n_rollouts;
    int64_t row[2 * MOST], begin[2 * MOST + 1], length[MOST_ROLLOUTS];
    uint64_t uid[2 * MOST];
    double reward[MOST_ROLLOUTS];
    int32_t verdict[MOST_ROLLOUTS];
    uint8_t finish[MOST_ROLLOUTS], fate[MOST_ROLLOUTS];
    uint64_t digest; /* of all outputs of the plugin */
};

static void digest_bytes(struct course *x, const void *data, int64_t n)
{
    x->digest = fs_hash(data, n, x->digest);
}

static tare_status call_next(struct course *x, int64_t n, int64_t *row, int64_t *rollouts, struct err *e)
{
    int64_t ordered[MOST], rows[MOST + 2 * GUARD], counts[MOST + 2 * GUARD];
    struct plugin_call call;
    const tare_curriculum *f = x->i->plugin->curriculum;
    for (int64_t k = 0; k < n; k++) ordered[k] = (x->cursor + k) % x->rows->n_rows;
    for (int64_t k = 0; k < MOST + 2 * GUARD; k++) rows[k] = counts[k] = -7;
    for (int64_t k = 0; k < n; k++) {
        rows[GUARD + k] = -1;
        counts[GUARD + k] = x->rows->group_size;
    }
    const tare_draw d = {.struct_size = sizeof d,
                         .step = x->step,
                         .n = n,
                         .cursor = x->cursor,
                         .ordered = ordered,
                         .drawn = x->drawn,
                         .n_drawn = x->n_drawn};
    tare_choice out = {.struct_size = sizeof out, .row = rows + GUARD, .n_rollouts = counts + GUARD};
    memcpy(row, ordered, (size_t)n * sizeof *row);
    for (int64_t k = 0; k < n; k++) rollouts[k] = x->rows->group_size;
    if (!f->next) return TARE_OK;
    plugin_enter(&call);
    TRY(plugin_leave(&call, x->i, "next", x->step, f->next(x->i->self, &d, &out, &call.error), e));
    int64_t sum = 0;
    for (int64_t k = 0; k < MOST + 2 * GUARD; k++)
        if ((k < GUARD || k >= GUARD + n) && (rows[k] != -7 || counts[k] != -7))
            FAIL(e, TARE_E_PLUGIN, "next wrote outside of an output buffer");
    for (int64_t k = 0; k < n; k++) {
        row[k] = rows[GUARD + k];
        rollouts[k] = counts[GUARD + k];
        if (row[k] < 0 || row[k] >= x->rows->n_rows)
            FAIL(e, TARE_E_PLUGIN, "next, %lld of %lld rows: choice %lld is the invalid row %lld", (long long)n,
                 (long long)x->rows->n_rows, (long long)k, (long long)row[k]);
        sum += rollouts[k];
        if (rollouts[k] < 1 || rollouts[k] > n * x->rows->group_size || sum > n * x->rows->group_size)
            FAIL(e, TARE_E_PLUGIN,
                 "next: choice %lld gets %lld rollouts: must be at least 1 each, and for %lld choices at most %lld together",
                 (long long)k, (long long)rollouts[k], (long long)n, (long long)(n * x->rows->group_size));
    }
    return TARE_OK;
}

/* Groups first, ... first + n - 1 of the step. */
struct part {
    int64_t first, n;
};

/* Makes groups from rows: every rollout's outcome follows from step, row and its index. Long groups
 * are shortened to fit the arrays here. */
static struct part make_groups(struct course *x, const int64_t *row, const int64_t *rollouts, int64_t n)
{
    const struct part p = {x->n_groups, n};
    for (int64_t m = 0; m < n; m++) {
        const int64_t size = rollouts[m] < SIZE ? rollouts[m] : SIZE;
        x->row[x->n_groups] = row[m];
        x->uid[x->n_groups] = x->rows->prompt_uid[row[m]];
        for (int64_t i = 0; i < size; i++) {
            const int64_t key[] = {x->step, row[m], i, m}, k = x->n_rollouts++;
            const uint64_t u = fs_hash(key, sizeof key, 1);
            const bool right = x->shape == ALL_RIGHT || (x->shape == MIXED && u % (uint64_t)(2 + row[m] % 3) == 0);
            x->reward[k] = right ? 1 : x->shape == MIXED && u % 5 == 1 ? 0.25 : 0;
            x->verdict[k] = x->shape == UNJUDGED ? TARE_VERDICT_TIMED_OUT : right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
            x->length[k] = 1 + (int64_t)(u >> 8) % LONGEST;
            x->finish[k] = u >> 20 & 1 ? TARE_FINISH_LENGTH : TARE_FINISH_STOP;
        }
        x->begin[++x->n_groups] = x->n_rollouts;
    }
    return p;
}

static tare_status copy_fields(struct course *x, const char *name, struct part p, const void **out, struct err *e)
{
    double *field;
    TRY(arena_new(&x->c->arena, &field, p.n + 1, e));
    for (int64_t m = 0; m < p.n; m++) field[m] = check_field(name, x->uid[p.first + m]);
    *out = field;
    return TARE_OK;
}

static tare_status show_column(struct course *x, uint32_t want, struct part p, bool fates, tare_column *out, struct err *e)
{
    const struct plugin *plugin = x->i->plugin;
    const tare_want *w = &plugin->wants[want];
    const int64_t at = x->begin[p.first], n = x->begin[p.first + p.n] - at;
    const void *data = NULL;
    if (!x->i->wanted[want] || w->axis == TARE_AXIS_ROW || (x->c->no_optional && w->flags & TARE_WANT_OPTIONAL)) return TARE_OK;
    switch (plugin->column[want]) {
    case COLUMN_ROW_FIELD:
        TRY(copy_fields(x, w->name, p, &data, e));
        break;
    case COLUMN_ROW_INDEX:
        data = x->row + p.first;
        break;
    case COLUMN_GROUP_VERDICT:
        data = x->verdict + at;
        break;
    case COLUMN_GROUP_FINISH:
        data = x->finish + at;
        break;
    case COLUMN_FATE:
        data = fates ? x->fate + at : NULL;
        break;
    default:
        break;
    }
    if (data) *out = (tare_column){data, w->axis == TARE_AXIS_GROUP ? p.n : n, 1};
    return TARE_OK;
}

/* Fills the axes of rollouts, turns (one for each) and tokens (all sampled). */
static tare_status show_axes(struct course *x, struct part p, tare_batch *b, struct err *e)
{
    const int64_t at = x->begin[p.first], n = x->begin[p.first + p.n] - at;
    int64_t *group, *turn, *token;
    uint8_t *sampled;
    TRY(arena_new(&x->c->arena, &group, p.n + 1, e));
    TRY(arena_new(&x->c->arena, &turn, n + 1, e));
    TRY(arena_new(&x->c->arena, &token, n + 1, e));
    TRY(arena_new(&x->c->arena, &sampled, n * LONGEST + 1, e));
    for (int64_t m = 0; m <= p.n; m++) group[m] = x->begin[p.first + m] - at;
    for (int64_t k = 0; k < n; k++) {
        turn[k + 1] = k + 1;
        token[k + 1] = token[k] + x->length[at + k];
    }
    memset(sampled, 1, (size_t)token[n]);
    b->n_groups = p.n;
    b->n_rollouts = b->n_turns = n;
    b->n_tokens = token[n];
    b->group_begin = group;
    b->turn_begin = turn;
    b->token_begin = b->act_begin = token;
    b->act_end = token + 1;
    b->sampled = sampled;
    b->length = x->length + at;
    b->reward = x->reward + at;
    b->prompt_uid = x->uid + p.first;
    return TARE_OK;
}

static tare_status show_groups(struct course *x, struct part p, bool fates, tare_batch *out, struct err *e)
{
    const uint32_t n = x->i->plugin->desc.n_wants;
    tare_column *column;
    TRY(arena_new(&x->c->arena, &column, n + 1, e));
    *out = (tare_batch){.struct_size = sizeof *out, .step = x->step, .n_before = p.first, .column = column};
    if (fates) out->n_before = 0;
    for (uint32_t w = 0; w < n; w++) TRY(show_column(x, w, p, fates, &column[w], e));
    return show_axes(x, p, out, e);
}

static tare_status call_keep(struct course *x, struct part p, int64_t *extra, struct err *e)
{
    uint8_t fate[MOST * SIZE + 2 * GUARD];
    struct plugin_call call;
    tare_batch g;
    const tare_curriculum *f = x->i->plugin->curriculum;
    TRY(show_groups(x, p, false, &g, e));
    memset(fate, 0xee, sizeof fate);
    memset(fate + GUARD, 0, (size_t)g.n_rollouts);
    tare_kept out = {.struct_size = sizeof out, .fate = fate + GUARD};
    if (f->keep) {
        plugin_enter(&call);
        TRY(plugin_leave(&call, x->i, "keep", x->step, f->keep(x->i->self, &g, &out, &call.error), e));
    }
    for (int64_t k = 0; k < (int64_t)sizeof fate; k++)
        if ((k < GUARD || k >= GUARD + g.n_rollouts) && fate[k] != 0xee)
            FAIL(e, TARE_E_PLUGIN, "keep wrote outside of its output buffer");
    for (int64_t i = 0; i < g.n_rollouts; i++)
        if (fate[GUARD + i] > TARE_FATE_COUNTED)
            FAIL(e, TARE_E_PLUGIN, "keep: rollout %lld has the fate %d: must be 0, 1 or 2", (long long)i, fate[GUARD + i]);
    if (out.extra_groups < 0) FAIL(e, TARE_E_PLUGIN, "keep requests %lld more groups", (long long)out.extra_groups);
    memcpy(x->fate + x->begin[p.first], fate + GUARD, (size_t)g.n_rollouts);
    *extra = out.extra_groups;
    return TARE_OK;
}

/* Chooses n rows, samples them and asks what to keep. twice: makes each call again and compares the
 * results. */
static tare_status collect_groups(struct course *x, int64_t n, bool twice, int64_t *extra, struct err *e)
{
    int64_t row[MOST], rollouts[MOST], again[2][MOST], more;
    TRY(call_next(x, n, row, rollouts, e));
    if (twice) {
        TRY(call_next(x, n, again[0], again[1], e));
        if (memcmp(row, again[0], (size_t)n * sizeof *row) || memcmp(rollouts, again[1], (size_t)n * sizeof *row))
            FAIL(e, TARE_E_PLUGIN, "next chooses other rows when it is called again");
    }
    const int64_t at = x->n_rollouts;
    const struct part p = make_groups(x, row, rollouts, n);
    TRY(call_keep(x, p, extra, e));
    const uint64_t fates = fs_hash(x->fate + at, x->n_rollouts - at, 0);
    if (twice) {
        TRY(call_keep(x, p, &more, e));
        if (fates != fs_hash(x->fate + at, x->n_rollouts - at, 0) || more != *extra)
            FAIL(e, TARE_E_PLUGIN, "keep decides differently when it is called again");
    }
    digest_bytes(x, row, n * (int64_t)sizeof *row);
    digest_bytes(x, rollouts, n * (int64_t)sizeof *rollouts);
    digest_bytes(x, &fates, sizeof fates);
    digest_bytes(x, extra, sizeof *extra);
    memcpy(x->drawn + x->n_drawn, row, (size_t)n * sizeof *row);
    x->n_drawn += n;
    x->cursor += n;
    return TARE_OK;
}

static tare_status apply_step(struct course *x, struct err *e)
{
    struct plugin_call call;
    tare_batch all;
    const tare_curriculum *f = x->i->plugin->curriculum;
    if (!f->apply) return TARE_OK;
    TRY(show_groups(x, (struct part){0, x->n_groups}, true, &all, e));
    plugin_enter(&call);
    return plugin_leave(&call, x->i, "apply", x->step, f->apply(x->i->self, &all, &call.error), e);
}

/* Runs a step with one sampling of extra groups; n = 0: a step without groups. The state after keep must equal the state before
 * next. */
static tare_status run_step(struct course *x, int64_t n, bool twice, struct err *e)
{
    int64_t extra = 0;
    OWNED(str_free) struct str before = {0}, after = {0};
    x->step++;
    x->n_drawn = x->n_groups = x->n_rollouts = 0;
    TRY(plugin_save(x->i, &before, e));
    if (n) TRY(collect_groups(x, n, twice, &extra, e));
    if (extra > n) extra = n;
    if (extra > 0) TRY(collect_groups(x, extra, twice, &extra, e));
    TRY(plugin_save(x->i, &after, e));
    if (before.size != after.size || (after.size && memcmp(before.data, after.data, (size_t)after.size)))
        FAIL(e, TARE_E_PLUGIN, "next or keep changed the state; only apply may");
    return apply_step(x, e);
}

static tare_status run_steps(struct course *x, int64_t count, int64_t n, bool twice, struct err *e)
{
    for (int64_t k = 0; k < count; k++) TRY(run_step(x, n, twice, e));
    return TARE_OK;
}

static tare_status new_course(struct check *c, const tare_dataset *rows, struct course **out, struct err *e)
{
    struct plugin_env env;
    TRY(check_env(c, &env, e));
    TRY(check_dataset(c, rows, &env.dataset, e));
    TRY(arena_new(&c->arena, out, 1, e));
    (*out)->c = c;
    (*out)->rows = env.dataset;
    return plugin_create(c->plugin, c->values, 0, &env, &(*out)->i, e);
}

/* ---------------------------------------------------------------- tests */

static tare_status test_shapes(struct check *c, struct err *e)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        const int64_t sizes[] = {PROMPTS, 1, MOST};
        for (int k = 0; k < 4; k++) {
            struct course *x;
            TRY(new_course(c, k < 3 ? &CHECK_DATASET : &ONE_ROW, &x, e));
            x->shape = (enum shape)shape;
            tare_status status = run_steps(x, 5, k < 3 ? sizes[k] : PROMPTS, false, e);
            if (!status) status = run_step(x, 0, false, e);
            if (!status) status = run_step(x, PROMPTS, false, e);
            plugin_destroy(x->i);
            if (status) return err_prefix(e, "%s", NAMES[shape]);
        }
    }
    return TARE_OK;
}

static tare_status test_phases(struct check *c, struct err *e)
{
    struct course *x;
    TRY(new_course(c, &CHECK_DATASET, &x, e));
    const tare_status status = run_steps(x, 8, PROMPTS, true, e);
    plugin_destroy(x->i);
    return status;
}

/* Each rank is a process, so a plugin's file or static variable differs between ranks. */
static tare_status test_ranks(struct check *c, struct err *e)
{
    struct course *x, *y;
    OWNED(str_free) struct str a = {0}, b = {0};
    TRY(new_course(c, &CHECK_DATASET, &x, e));
    OWNED(plugin_destroy_at) struct plugin_instance *of_x = x->i;
    TRY(new_course(c, &CHECK_DATASET, &y, e));
    OWNED(plugin_destroy_at) struct plugin_instance *of_y = y->i;
    TRY(run_steps(x, 8, PROMPTS, false, e));
    TRY(run_steps(y, 8, PROMPTS, false, e));
    if (x->digest != y->digest) FAIL(e, TARE_E_PLUGIN, "two instances with equal calls choose or keep different rows");
    TRY(plugin_save(of_x, &a, e));
    TRY(plugin_save(of_y, &b, e));
    if (a.size != b.size || (a.size && memcmp(a.data, b.data, (size_t)a.size)))
        FAIL(e, TARE_E_PLUGIN, "two instances with equal calls have different states");
    return TARE_OK;
}

static tare_status step_with(struct check *c, const tare_value *values, const char *what, struct err *e)
{
    const tare_value *mine = c->values;
    struct course *x;
    c->values = values;
    tare_status status = new_course(c, &CHECK_DATASET, &x, e);
    c->values = mine;
    /* the test `parameters` checks refusals */
    if (status) return status == TARE_E_PLUGIN ? status : TARE_OK;
    for (int shape = 0; shape < SHAPES && !status; shape++) {
        x->shape = (enum shape)shape;
        status = run_steps(x, 2, PROMPTS, false, e);
    }
    plugin_destroy(x->i);
    const bool said_by_plugin = status && !strncmp(e->message, "curriculum ", 11) && !strstr(e->message, "and no message");
    return status && !said_by_plugin ? err_prefix(e, "with %s", what) : TARE_OK;
}

static tare_status test_extremes(struct check *c, struct err *e)
{
    return check_values(c, step_with, e);
}

static tare_status used_instance(struct check *c, struct plugin_instance **out, struct err *e)
{
    struct course *x;
    TRY(new_course(c, &CHECK_DATASET, &x, e));
    *out = x->i;
    c->kept = x;
    return run_steps(x, 5, PROMPTS, false, e);
}

/* A second course loads the state after the fifth step; both continue. */
static tare_status compare_pair(struct check *c, struct plugin_instance *a, struct plugin_instance *b, struct err *e)
{
    struct course *x = c->kept, *y;
    (void)a;
    TRY(arena_new(&c->arena, &y, 1, e));
    *y = *x;
    y->i = b;
    TRY(run_steps(x, 6, PROMPTS, false, e));
    TRY(run_steps(y, 6, PROMPTS, false, e));
    if (x->digest != y->digest) FAIL(e, TARE_E_PLUGIN, "save and load changed the rows chosen or kept");
    return TARE_OK;
}

static tare_status test_state(struct check *c, struct err *e)
{
    return c->plugin->curriculum->save ? check_state(c, used_instance, compare_pair, e)
                                       : check_skip(c, e, "the plugin has no state");
}

static tare_status test_next_cost(struct check *c, struct err *e)
{
    struct course *x;
    int64_t row[MOST], rollouts[MOST];
    double best = 1e9;
    if (!c->plugin->curriculum->next) return check_skip(c, e, "the plugin uses the plain order");
    TRY(new_course(c, &CHECK_DATASET, &x, e));
    tare_status status = run_steps(x, 3, PROMPTS, false, e);
    x->step++;
    x->n_drawn = 0;
    check_watch(c, false);
    for (int round = 0; round < 500 && !status; round++) {
        const double start = clock_seconds();
        status = call_next(x, PROMPTS, row, rollouts, e);
        best = fmin(best, clock_seconds() - start);
    }
    check_watch(c, true);
    if (!status) status = str_addf(&c->note, e, "next: %.1f us for %d of %d rows", 1e6 * best, PROMPTS, ROWS);
    plugin_destroy(x->i);
    return status;
}

const struct check_test CHECK_CURRICULUM[] = {
    {"shapes",
     "rows, counts and fates are valid for mixed, correct, wrong and unjudged groups, for one row and for many, and after a step without groups",
     TARE_KIND_CURRICULUM, test_shapes},
    {"phases", "next and keep do not change the state, and repeat their results", TARE_KIND_CURRICULUM, test_phases},
    {"ranks", "two instances with equal calls give equal results", TARE_KIND_CURRICULUM, test_ranks},
    {"extremes", "rows and fates are valid with every parameter at its ends", TARE_KIND_CURRICULUM, test_extremes},
    {"state", "save and load continue as without a break; damaged states are refused", TARE_KIND_CURRICULUM, test_state},
    {"cost", "time of next", TARE_KIND_CURRICULUM, test_next_cost},
    {0}};
