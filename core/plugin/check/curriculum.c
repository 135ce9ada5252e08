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
static const double LEVEL[ROWS] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4};

const tare_rows CHECK_ROWS = {.struct_size = sizeof CHECK_ROWS,
                              .n = ROWS,
                              .n_sources = SOURCES,
                              .prompts = PROMPTS,
                              .group_size = SIZE,
                              .prompt_uid = UID,
                              .source = SOURCE,
                              .weight = WEIGHT,
                              .level = LEVEL};
static const tare_rows ONE_ROW = {.struct_size = sizeof ONE_ROW,
                                  .n = 1,
                                  .n_sources = 1,
                                  .prompts = PROMPTS,
                                  .group_size = 1,
                                  .prompt_uid = UID,
                                  .source = SOURCE,
                                  .weight = WEIGHT,
                                  .level = LEVEL};

/* The distribution of a step's rewards. */
enum shape { MIXED, ALL_RIGHT, ALL_WRONG, UNJUDGED, SHAPES };
static const char *const NAMES[SHAPES] = {"mixed rewards", "everything correct", "everything wrong", "no verdicts"};

/* A small run. The plugin's inputs are a function of the step and of the rows that it chose. */
struct course {
    struct plugin_instance *i;
    const tare_rows *rows;
    enum shape shape;
    int64_t step, cursor, drawn[2 * MOST], n_drawn;
    tare_groups all; /* of the step; its arrays are below */
    int64_t row[2 * MOST], begin[2 * MOST + 1], length[2 * MOST * SIZE];
    double reward[2 * MOST * SIZE];
    int32_t verdict[2 * MOST * SIZE];
    uint8_t finish[2 * MOST * SIZE], fate[2 * MOST * SIZE];
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
    for (int64_t k = 0; k < n; k++) ordered[k] = (x->cursor + k) % x->rows->n;
    for (int64_t k = 0; k < MOST + 2 * GUARD; k++) rows[k] = counts[k] = -7;
    for (int64_t k = 0; k < n; k++) {
        rows[GUARD + k] = -1;
        counts[GUARD + k] = x->rows->group_size;
    }
    const tare_draw d = {sizeof d, 0, x->step, n, x->cursor, ordered, x->drawn, x->n_drawn};
    memcpy(row, ordered, (size_t)n * sizeof *row);
    for (int64_t k = 0; k < n; k++) rollouts[k] = x->rows->group_size;
    if (!f->next) return TARE_OK;
    plugin_enter(&call);
    TRY(plugin_leave(&call, x->i, "next", x->step, f->next(x->i->self, &d, rows + GUARD, counts + GUARD, &call.error), e));
    int64_t sum = 0;
    for (int64_t k = 0; k < MOST + 2 * GUARD; k++)
        if ((k < GUARD || k >= GUARD + n) && (rows[k] != -7 || counts[k] != -7))
            FAIL(e, TARE_E_PLUGIN, "next wrote outside of an output buffer");
    for (int64_t k = 0; k < n; k++) {
        row[k] = rows[GUARD + k];
        rollouts[k] = counts[GUARD + k];
        if (row[k] < 0 || row[k] >= x->rows->n)
            FAIL(e, TARE_E_PLUGIN, "next, %lld of %lld rows: choice %lld is the invalid row %lld", (long long)n,
                 (long long)x->rows->n, (long long)k, (long long)row[k]);
        sum += rollouts[k];
        if (rollouts[k] < 1 || rollouts[k] > n * x->rows->group_size || sum > n * x->rows->group_size)
            FAIL(e, TARE_E_PLUGIN,
                 "next: choice %lld gets %lld rollouts: must be at least 1 each, and for %lld choices at most %lld together",
                 (long long)k, (long long)rollouts[k], (long long)n, (long long)(n * x->rows->group_size));
    }
    return TARE_OK;
}

/* Makes groups from rows: every rollout's outcome follows from step, row and its index. Long groups
 * are shortened to fit the arrays here. */
static tare_groups make_groups(struct course *x, const int64_t *row, const int64_t *rollouts, int64_t n)
{
    tare_groups g = {.struct_size = sizeof g, .step = x->step, .n_before = x->all.n_groups};
    const int64_t first = x->all.n_groups, at = x->all.n_rollouts;
    for (int64_t m = 0; m < n; m++) {
        const int64_t size = rollouts[m] < SIZE ? rollouts[m] : SIZE;
        x->row[first + m] = row[m];
        for (int64_t i = 0; i < size; i++) {
            const int64_t key[] = {x->step, row[m], i, m}, k = at + g.n_rollouts++;
            const uint64_t u = fs_hash(key, sizeof key, 1);
            const bool right = x->shape == ALL_RIGHT || (x->shape == MIXED && u % (uint64_t)(2 + row[m] % 3) == 0);
            x->reward[k] = right ? 1 : x->shape == MIXED && u % 5 == 1 ? 0.25 : 0;
            x->verdict[k] = x->shape == UNJUDGED ? TARE_TIMED_OUT : right ? TARE_CORRECT : TARE_WRONG;
            x->length[k] = 1 + (int64_t)(u >> 8) % 9;
            x->finish[k] = (uint8_t)(u >> 20 & 1);
        }
        x->begin[first + m + 1] = at + g.n_rollouts;
        g.n_groups++;
    }
    x->all.n_groups += g.n_groups;
    x->all.n_rollouts += g.n_rollouts;
    g.row = x->row + first;
    g.reward = x->reward + at;
    g.verdict = x->verdict + at;
    g.length = x->length + at;
    g.finish = x->finish + at;
    return g;
}

static tare_status call_keep(struct course *x, tare_groups *g, int64_t *replace, struct err *e)
{
    int64_t begin[MOST + 1];
    uint8_t fate[MOST * SIZE + 2 * GUARD];
    struct plugin_call call;
    const tare_curriculum *f = x->i->plugin->curriculum;
    const int64_t first = x->all.n_groups - g->n_groups, at = x->all.n_rollouts - g->n_rollouts;
    for (int64_t m = 0; m <= g->n_groups; m++) begin[m] = x->begin[first + m] - at;
    g->group_begin = begin;
    memset(fate, 0xee, sizeof fate);
    memset(fate + GUARD, 0, (size_t)g->n_rollouts);
    *replace = 0;
    if (f->keep) {
        plugin_enter(&call);
        TRY(plugin_leave(&call, x->i, "keep", x->step, f->keep(x->i->self, g, fate + GUARD, replace, &call.error), e));
    }
    for (int64_t k = 0; k < (int64_t)sizeof fate; k++)
        if ((k < GUARD || k >= GUARD + g->n_rollouts) && fate[k] != 0xee)
            FAIL(e, TARE_E_PLUGIN, "keep wrote outside of its output buffer");
    for (int64_t i = 0; i < g->n_rollouts; i++)
        if (fate[GUARD + i] > TARE_ROLLOUT_COUNTED)
            FAIL(e, TARE_E_PLUGIN, "keep: rollout %lld has the fate %d: must be 0, 1 or 2", (long long)i, fate[GUARD + i]);
    if (*replace < 0) FAIL(e, TARE_E_PLUGIN, "keep requests %lld more groups", (long long)*replace);
    memcpy(x->fate + at, fate + GUARD, (size_t)g->n_rollouts);
    return TARE_OK;
}

/* Chooses n rows, samples them and asks what to keep. twice: makes each call again and compares the
 * results. */
static tare_status collect_groups(struct course *x, int64_t n, bool twice, int64_t *replace, struct err *e)
{
    int64_t row[MOST], rollouts[MOST], again[2][MOST], more;
    TRY(call_next(x, n, row, rollouts, e));
    if (twice) {
        TRY(call_next(x, n, again[0], again[1], e));
        if (memcmp(row, again[0], (size_t)n * sizeof *row) || memcmp(rollouts, again[1], (size_t)n * sizeof *row))
            FAIL(e, TARE_E_PLUGIN, "next chooses other rows when it is called again");
    }
    tare_groups g = make_groups(x, row, rollouts, n);
    TRY(call_keep(x, &g, replace, e));
    const uint64_t fates = fs_hash(x->fate + x->all.n_rollouts - g.n_rollouts, g.n_rollouts, 0);
    if (twice) {
        TRY(call_keep(x, &g, &more, e));
        if (fates != fs_hash(x->fate + x->all.n_rollouts - g.n_rollouts, g.n_rollouts, 0) || more != *replace)
            FAIL(e, TARE_E_PLUGIN, "keep decides differently when it is called again");
    }
    digest_bytes(x, row, n * (int64_t)sizeof *row);
    digest_bytes(x, rollouts, n * (int64_t)sizeof *rollouts);
    digest_bytes(x, &fates, sizeof fates);
    digest_bytes(x, replace, sizeof *replace);
    memcpy(x->drawn + x->n_drawn, row, (size_t)n * sizeof *row);
    x->n_drawn += n;
    x->cursor += n;
    return TARE_OK;
}

static tare_status apply_step(struct course *x, struct err *e)
{
    struct plugin_call call;
    const tare_curriculum *f = x->i->plugin->curriculum;
    x->all.struct_size = sizeof x->all;
    x->all.step = x->step;
    x->all.row = x->row;
    x->all.group_begin = x->begin;
    x->all.reward = x->reward;
    x->all.verdict = x->verdict;
    x->all.length = x->length;
    x->all.finish = x->finish;
    x->all.fate = x->fate;
    if (!f->apply) return TARE_OK;
    plugin_enter(&call);
    return plugin_leave(&call, x->i, "apply", x->step, f->apply(x->i->self, &x->all, &call.error), e);
}

/* Runs a step with one replacement of groups. The state after keep must equal the state before
 * next. */
static tare_status run_step(struct course *x, int64_t n, bool twice, struct err *e)
{
    int64_t replace;
    OWNED(str_free) struct str before = {0}, after = {0};
    x->step++;
    x->n_drawn = x->all.n_groups = x->all.n_rollouts = 0;
    TRY(plugin_save(x->i, &before, e));
    TRY(collect_groups(x, n, twice, &replace, e));
    if (replace > n) replace = n;
    if (replace > 0) TRY(collect_groups(x, replace, twice, &replace, e));
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

static tare_status new_course(struct check *c, const tare_rows *rows, struct course **out, struct err *e)
{
    struct plugin_env env = check_env(c);
    env.rows = rows;
    TRY(arena_new(&c->arena, out, 1, e));
    (*out)->rows = rows;
    return plugin_create(c->plugin, c->values, 0, &env, &(*out)->i, e);
}

/* ---------------------------------------------------------------- tests */

static tare_status test_shapes(struct check *c, struct err *e)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        const int64_t sizes[] = {PROMPTS, 1, MOST};
        for (int k = 0; k < 4; k++) {
            struct course *x;
            TRY(new_course(c, k < 3 ? &CHECK_ROWS : &ONE_ROW, &x, e));
            x->shape = (enum shape)shape;
            const tare_status status = run_steps(x, 5, k < 3 ? sizes[k] : PROMPTS, false, e);
            plugin_destroy(x->i);
            if (status) return err_prefix(e, "%s", NAMES[shape]);
        }
    }
    return TARE_OK;
}

static tare_status test_phases(struct check *c, struct err *e)
{
    struct course *x;
    TRY(new_course(c, &CHECK_ROWS, &x, e));
    const tare_status status = run_steps(x, 8, PROMPTS, true, e);
    plugin_destroy(x->i);
    return status;
}

/* Each rank is a process, so a plugin's file or static variable differs between ranks. */
static tare_status test_ranks(struct check *c, struct err *e)
{
    struct course *x, *y;
    OWNED(str_free) struct str a = {0}, b = {0};
    TRY(new_course(c, &CHECK_ROWS, &x, e));
    OWNED(plugin_destroy_at) struct plugin_instance *of_x = x->i;
    TRY(new_course(c, &CHECK_ROWS, &y, e));
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
    tare_status status = new_course(c, &CHECK_ROWS, &x, e);
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
    TRY(new_course(c, &CHECK_ROWS, &x, e));
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
    TRY(new_course(c, &CHECK_ROWS, &x, e));
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
    {"shapes", "rows, counts and fates are valid for mixed, correct, wrong and unjudged groups, for one row and for many",
     TARE_CURRICULUM, test_shapes},
    {"phases", "next and keep do not change the state, and repeat their results", TARE_CURRICULUM, test_phases},
    {"ranks", "two instances with equal calls give equal results", TARE_CURRICULUM, test_ranks},
    {"extremes", "rows and fates are valid with every parameter at its ends", TARE_CURRICULUM, test_extremes},
    {"state", "save and load continue as without a break; damaged states are refused", TARE_CURRICULUM, test_state},
    {"cost", "time of next", TARE_CURRICULUM, test_next_cost},
    {0}};
