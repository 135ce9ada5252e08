#include "plugin/check/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const TRIAL_NAMES[TRIAL_SHAPES] = {"mixed rewards",       "groups of equal rewards",   "groups of one",   "no cluster",
                                               "rewards of any size", "episodes of several turns", "no groups at all"};

enum { MOST = 8, MOST_TURNS = 3, COMPONENTS = 3, PROMPTS = 20, GUARD = 16 };

/* ---------------------------------------------------------------- batches */

/* Writable versions of the arrays in a tare_batch. column: every want, whether an instance gets it or
 * not (trial_show). */
struct arrays {
    int64_t *group_begin, *turn_begin, *token_begin, *act_begin, *act_end, *length;
    uint8_t *sampled;
    uint64_t *uid;
    double *reward;
    tare_column *column;
};

static tare_status new_arrays(struct check *c, int64_t groups, int64_t rollouts, int64_t turns, struct arrays *x, struct err *e)
{
    struct arena *a = &c->arena;
    TRY(arena_new(a, &x->group_begin, groups + 1, e));
    TRY(arena_new(a, &x->turn_begin, rollouts + 1, e));
    TRY(arena_new(a, &x->token_begin, rollouts + 1, e));
    TRY(arena_new(a, &x->act_begin, turns + 1, e));
    TRY(arena_new(a, &x->act_end, turns + 1, e));
    TRY(arena_new(a, &x->length, rollouts + 1, e));
    TRY(arena_new(a, &x->uid, groups + 1, e));
    TRY(arena_new(a, &x->column, c->plugin->desc.n_wants + 1, e));
    return arena_new(a, &x->reward, rollouts + 1, e);
}

static tare_batch show_batch(const struct arrays *x, int64_t groups)
{
    const int64_t rollouts = x->group_begin[groups];
    return (tare_batch){.struct_size = sizeof(tare_batch),
                        .step = 3,
                        .n_groups = groups,
                        .n_rollouts = rollouts,
                        .n_turns = x->turn_begin[rollouts],
                        .n_tokens = x->token_begin[rollouts],
                        .group_begin = x->group_begin,
                        .turn_begin = x->turn_begin,
                        .token_begin = x->token_begin,
                        .act_begin = x->act_begin,
                        .act_end = x->act_end,
                        .sampled = x->sampled,
                        .length = x->length,
                        .prompt_uid = x->uid,
                        .reward = x->reward,
                        .column = x->column};
}

tare_batch trial_show(const struct check *c, const struct plugin_instance *i, const tare_batch *b, bool after, tare_column *column)
{
    tare_batch shown = *b;
    memset(column, 0, TARE_LIMIT_WANTS * sizeof *column); /* a column that is not wanted is NULL as well */
    for (uint32_t k = 0; k < i->plugin->desc.n_wants; k++) {
        const bool late = i->plugin->column[k] == COLUMN_UPDATED_LOGPROB && !after;
        const bool absent = c->no_optional && i->plugin->wants[k].flags & TARE_WANT_OPTIONAL;
        column[k] = !i->wanted[k] || late || absent ? (tare_column){0} : b->column[k];
    }
    shown.column = column;
    return shown;
}

static double a_reward(struct check *c, enum trial_shape shape, double of_group)
{
    if (shape == TRIAL_EQUAL) return of_group;
    if (!c->binary && shape == TRIAL_WIDE) return 40 * check_uniform(c) - 10;
    if (!c->binary && !check_below(c, 4)) return 2 * check_uniform(c) - 1;
    return (double)check_below(c, 2);
}

/* One of a few prompts, so that prompts recur; the numbers are arbitrary. */
static uint64_t a_prompt(struct check *c)
{
    return (check_below(c, PROMPTS) + 1) * 0x9e3779b97f4a7c15u;
}

/* Adds a rollout of one turn, or of several with context tokens between them. n: its index. */
static void add_turns(struct check *c, enum trial_shape shape, struct arrays *x, int64_t n)
{
    const int64_t turns = shape == TRIAL_TURNS ? 1 + (int64_t)check_below(c, MOST_TURNS) : 1;
    int64_t at = x->token_begin[n];
    x->length[n] = 0;
    for (int64_t k = 0; k < turns; k++) {
        const int64_t u = x->turn_begin[n] + k, length = 1 + (int64_t)check_below(c, 9);
        if (k) at += (int64_t)check_below(c, 6);
        x->act_begin[u] = at;
        x->act_end[u] = at += length;
        x->length[n] += length;
    }
    if (shape == TRIAL_TURNS) at += (int64_t)check_below(c, 3);
    x->turn_begin[n + 1] = x->turn_begin[n] + turns;
    x->token_begin[n + 1] = at;
}

/* Segments of one to four tokens; some rollouts have none, and in some the last tokens are in no
 * segment. */
static void some_segments(struct check *c, const tare_batch *b, int64_t i, int32_t *segment, double *reward)
{
    int64_t t = b->token_begin[i];
    const int64_t end = b->token_begin[i + 1] - (int64_t)check_below(c, 2);
    for (int32_t k = 1; check_below(c, 8) && t < end; k++) {
        int64_t length = 1 + (int64_t)check_below(c, 4);
        if (length > end - t) length = end - t;
        for (; length > 0; length--) segment[t++] = k;
        reward[t - 1] = c->binary ? (double)check_below(c, 2) : 2 * check_uniform(c) - 1;
    }
}

/* Facts about rollout i besides its reward, including those that are rare in a run, so that a plugin
 * meets them here. They follow from the rollout's index and its reward alone: columns agree. */
static void fact(const tare_batch *b, int64_t i, enum column_id id, int64_t width, void *data)
{
    static const tare_text COMPLETIONS[] = {{"it is 42", 8}, {"", 0}, {"a\0b", 3}, {"cut \xc3", 5}};
    const uint64_t x = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u >> 32;
    const bool off_policy = x % 8 == 0;
    const int32_t verdict = b->reward[i] > 0 ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
    if (id == COLUMN_VERDICT) ((int32_t *)data)[i] = verdict;
    if (id == COLUMN_FINISH) ((uint8_t *)data)[i] = x >> 3 & 1 ? TARE_FINISH_STOP : TARE_FINISH_LENGTH;
    if (id == COLUMN_OFF_POLICY) ((uint8_t *)data)[i] = off_policy;
    if (id == COLUMN_POLICY_VERSION) ((int64_t *)data)[i] = off_policy ? -1 : 2 - (int64_t)(x >> 4 & 1);
    if (id == COLUMN_COMPLETION) ((tare_text *)data)[i] = COMPLETIONS[x >> 5 & 3];
    for (int64_t k = 0; k < width; k++) {
        if (id == COLUMN_COMPONENT) ((double *)data)[i * width + k] = b->reward[i] / (double)width;
        if (id == COLUMN_COMPONENT_VERDICT)
            ((int32_t *)data)[i * width + k] = k ? (int32_t)((x >> 7) + (uint64_t)k) % (TARE_VERDICT_PARTIAL + 1) : verdict;
    }
}

static void turn_fact(struct check *c, const tare_batch *b, int64_t i, int64_t u, enum column_id id, void *data)
{
    const bool last = u + 1 == b->turn_begin[i + 1], several = b->turn_begin[i + 1] - b->turn_begin[i] > 1;
    /* the last turn has the reward */
    if (id == COLUMN_TURN_REWARD) ((double *)data)[u] = last ? b->reward[i] : 0;
    if (id == COLUMN_TURN_STATE) ((int64_t *)data)[u] = several ? (int64_t)check_below(c, 5) - 1 : -1;
    if (id == COLUMN_TURN_FINISH) ((uint8_t *)data)[u] = TARE_FINISH_STOP;
    if (id == COLUMN_TURN_CALLS) ((int32_t *)data)[u] = (int32_t)check_below(c, 3);
    if (id == COLUMN_TURN_UNPARSED) ((int32_t *)data)[u] = !check_below(c, 4);
}

static void token_fact(struct check *c, int64_t t, enum column_id id, void *data)
{
    if (id == COLUMN_TOKEN) ((int32_t *)data)[t] = (int32_t)check_below(c, 1000);
    if (id == COLUMN_ENTROPY) ((float *)data)[t] = (float)(3 * check_uniform(c));
    if (id == COLUMN_LOGPROB || id == COLUMN_REF_LOGPROB || id == COLUMN_UPDATED_LOGPROB)
        ((float *)data)[t] = (float)(-5 * check_uniform(c));
}

static int64_t entries_of(const tare_batch *b, int32_t axis)
{
    return axis == TARE_AXIS_GROUP     ? b->n_groups
           : axis == TARE_AXIS_ROLLOUT ? b->n_rollouts
           : axis == TARE_AXIS_TURN    ? b->n_turns
           : axis == TARE_AXIS_TOKEN   ? b->n_tokens
                                       : 1;
}

static void fill_groups(struct check *c, enum trial_shape shape, const tare_batch *b, enum column_id id, const char *name,
                        void *data)
{
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (id == COLUMN_CLUSTER) ((int32_t *)data)[m] = shape == TRIAL_UNCLUSTERED ? -1 : (int32_t)check_below(c, CHECK_CLUSTERS);
        if (id == COLUMN_ROW_FIELD) ((double *)data)[m] = check_field(name, b->prompt_uid[m]);
        if (id == COLUMN_ROW_JSON)
            ((tare_text *)data)[m] = check_below(c, 2) ? (tare_text){"{\"question\":\"?\",\"level\":3}", 26} : (tare_text){"{}", 2};
    }
}

static tare_status new_column(struct check *c, const tare_batch *b, uint32_t want, tare_column *out, struct err *e)
{
    const enum column_id id = (enum column_id)c->plugin->column[want];
    const tare_want *w = &c->plugin->wants[want];
    char *data;
    *out = (tare_column){0};
    if (id == COLUMN_ABSENT) return TARE_OK;
    out->n = entries_of(b, w->axis);
    out->width = (int64_t)w->width;
    if (!out->width) out->width = COLUMNS[id].width ? COLUMNS[id].width : COMPONENTS;
    TRY(arena_new(&c->arena, &data, (out->n * out->width + 1) * column_type_size(w->type), e));
    out->data = data;
    return TARE_OK;
}

static tare_status fill_column(struct check *c, enum trial_shape shape, const tare_batch *b, uint32_t want, tare_column *out,
                               struct err *e)
{
    const enum column_id id = (enum column_id)c->plugin->column[want];
    TRY(new_column(c, b, want, out, e));
    void *data = (void *)(uintptr_t)out->data;
    if (!data) return TARE_OK;
    if (id == COLUMN_COMPONENT_NAME)
        for (int64_t k = 0; k < out->width; k++) ((tare_text *)data)[k] = (tare_text){"abcdefgh" + k % 8, 1};
    fill_groups(c, shape, b, id, c->plugin->wants[want].name, data);
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        fact(b, i, id, out->width, data);
        for (int64_t u = b->turn_begin[i]; u < b->turn_begin[i + 1]; u++) turn_fact(c, b, i, u, id, data);
    }
    for (int64_t t = 0; t < b->n_tokens; t++) token_fact(c, t, id, data);
    return TARE_OK;
}

/* Both columns of segments, since they are drawn together. */
static tare_status fill_segments(struct check *c, const tare_batch *b, tare_column *column, struct err *e)
{
    int32_t *segment;
    double *reward;
    TRY(arena_new(&c->arena, &segment, b->n_tokens + 1, e));
    TRY(arena_new(&c->arena, &reward, b->n_tokens + 1, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) some_segments(c, b, i, segment, reward);
    for (uint32_t k = 0; k < c->plugin->desc.n_wants; k++) {
        if (c->plugin->column[k] == COLUMN_SEGMENT) column[k].data = segment;
        if (c->plugin->column[k] == COLUMN_SEGMENT_REWARD) column[k].data = reward;
    }
    return TARE_OK;
}

static tare_status mark_sampled(struct check *c, struct arrays *x, int64_t rollouts, struct err *e)
{
    TRY(arena_new(&c->arena, &x->sampled, x->token_begin[rollouts] + 1, e));
    for (int64_t u = 0; u < x->turn_begin[rollouts]; u++)
        memset(x->sampled + x->act_begin[u], 1, (size_t)(x->act_end[u] - x->act_begin[u]));
    return TARE_OK;
}

tare_status trial_batch(struct check *c, enum trial_shape shape, int64_t groups, tare_batch *out, struct err *e)
{
    struct arrays x;
    int64_t n = 0;
    if (shape == TRIAL_EMPTY) groups = 0;
    TRY(new_arrays(c, groups, groups * MOST, groups * MOST * MOST_TURNS, &x, e));
    for (int64_t m = 0; m < groups; m++) {
        const int64_t size = shape == TRIAL_SINGLES ? 1 : MOST - (int64_t)(c->binary ? 0 : check_below(c, 5));
        const double of_group = (double)check_below(c, 2);
        x.uid[m] = a_prompt(c);
        for (int64_t i = 0; i < size; i++, n++) {
            x.reward[n] = a_reward(c, shape, of_group);
            add_turns(c, shape, &x, n);
        }
        x.group_begin[m + 1] = n;
    }
    TRY(mark_sampled(c, &x, n, e));
    *out = show_batch(&x, groups);
    for (uint32_t k = 0; k < c->plugin->desc.n_wants; k++) TRY(fill_column(c, shape, out, k, &x.column[k], e));
    return fill_segments(c, out, x.column, e);
}

/* Copies the entries first .. first + n - 1 of column k to the entries from `at` on. */
struct entries {
    int32_t axis;
    int64_t first, n, at;
};

static void copy_entries(const struct check *c, const tare_batch *from, const struct arrays *x, struct entries q)
{
    for (uint32_t k = 0; k < c->plugin->desc.n_wants; k++) {
        const tare_want *w = &c->plugin->wants[k];
        if (w->axis != q.axis || !from->column[k].data) continue;
        const int64_t size = column_type_size(w->type) * from->column[k].width;
        memcpy((char *)(uintptr_t)x->column[k].data + q.at * size, (const char *)from->column[k].data + q.first * size,
               (size_t)(q.n * size));
    }
}

/* Copies rollout i of a batch as rollout `at`, without its columns. */
static void copy_rollout(const tare_batch *from, int64_t i, struct arrays *x, int64_t at)
{
    const int64_t by = x->token_begin[at] - from->token_begin[i];
    x->reward[at] = from->reward[i];
    x->length[at] = from->length[i];
    x->turn_begin[at + 1] = x->turn_begin[at];
    for (int64_t u = from->turn_begin[i]; u < from->turn_begin[i + 1]; u++) {
        x->act_begin[x->turn_begin[at + 1]] = from->act_begin[u] + by;
        x->act_end[x->turn_begin[at + 1]++] = from->act_end[u] + by;
    }
    x->token_begin[at + 1] = from->token_begin[i + 1] + by;
}

tare_status trial_groups(struct check *c, const tare_batch *from, const int64_t *groups, int64_t n, tare_batch *out, struct err *e)
{
    struct arrays x;
    int64_t at = 0;
    TRY(new_arrays(c, n, from->n_rollouts, from->n_turns, &x, e));
    for (int64_t m = 0; m < n; m++) {
        x.uid[m] = from->prompt_uid[groups[m]];
        for (int64_t i = from->group_begin[groups[m]]; i < from->group_begin[groups[m] + 1]; i++) copy_rollout(from, i, &x, at++);
        x.group_begin[m + 1] = at;
    }
    TRY(mark_sampled(c, &x, at, e));
    *out = show_batch(&x, n);
    for (uint32_t k = 0; k < c->plugin->desc.n_wants; k++) TRY(new_column(c, out, k, &x.column[k], e));
    copy_entries(c, from, &x, (struct entries){TARE_AXIS_ONE, 0, 1, 0});
    for (int64_t m = 0; m < n; m++) {
        const int64_t g = groups[m], i = from->group_begin[g], rollouts = from->group_begin[g + 1] - i, j = x.group_begin[m];
        copy_entries(c, from, &x, (struct entries){TARE_AXIS_GROUP, g, 1, m});
        copy_entries(c, from, &x, (struct entries){TARE_AXIS_ROLLOUT, i, rollouts, j});
        copy_entries(c, from, &x,
                     (struct entries){TARE_AXIS_TURN, from->turn_begin[i], from->turn_begin[i + rollouts] - from->turn_begin[i],
                                      x.turn_begin[j]});
        copy_entries(c, from, &x,
                     (struct entries){TARE_AXIS_TOKEN, from->token_begin[i], from->token_begin[i + rollouts] - from->token_begin[i],
                                      x.token_begin[j]});
    }
    return TARE_OK;
}

tare_status trial_absurd(struct check *c, const tare_batch *from, tare_batch *out, struct err *e)
{
    int64_t groups[64];
    for (int64_t m = 0; m < from->n_groups && m < 64; m++) groups[m] = m;
    TRY(trial_groups(c, from, groups, from->n_groups < 64 ? from->n_groups : 64, out, e));
    for (uint32_t k = 0; k < c->plugin->desc.n_wants; k++) {
        void *data = (void *)(uintptr_t)out->column[k].data;
        if (!data || c->plugin->wants[k].axis != TARE_AXIS_TOKEN) continue;
        for (int64_t t = 0; t < out->n_tokens; t++) {
            if (out->sampled[t]) continue;
            if (c->plugin->wants[k].type == TARE_F32) ((float *)data)[t] = t % 2 ? -1e6f : 1e6f;
            if (c->plugin->wants[k].type == TARE_F64) ((double *)data)[t] = 1e9;
            if (c->plugin->wants[k].type == TARE_I32 && c->plugin->column[k] != COLUMN_SEGMENT) ((int32_t *)data)[t] = 1 << 20;
        }
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- outputs */

/* Output buffers between guards of NaN; rollout_weight is 1, all others NaN. */
static tare_status new_out(struct check *c, const tare_batch *b, tare_advantages *out, struct err *e)
{
    double **const wide[] = {&out->advantage, &out->rollout_weight, &out->baseline, &out->scale, &out->confidence};
    *out = (tare_advantages){.struct_size = sizeof *out};
    for (int k = 0; k < 5; k++) {
        const int64_t n = k < 2 ? b->n_rollouts : b->n_groups;
        double *p;
        TRY(arena_new(&c->arena, &p, n + 2 * GUARD, e));
        for (int64_t i = 0; i < n + 2 * GUARD; i++) p[i] = (double)NAN;
        if (k == 1)
            for (int64_t i = 0; i < n; i++) p[GUARD + i] = 1;
        *wide[k] = p + GUARD;
    }
    if (!(c->plugin->estimator->flags & TARE_ESTIMATOR_GIVES_TOKENS)) return TARE_OK;
    TRY(arena_new(&c->arena, &out->token_advantage, b->n_tokens + 2 * GUARD, e));
    for (int64_t i = 0; i < b->n_tokens + 2 * GUARD; i++) out->token_advantage[i] = NAN;
    out->token_advantage += GUARD;
    return TARE_OK;
}

static bool guarded_buffer(const double *p, int64_t n)
{
    for (int i = 1; i <= GUARD; i++)
        if (!isnan(p[-i]) || !isnan(p[n + i - 1])) return false;
    return true;
}

static bool guarded_tokens(const float *p, int64_t n)
{
    if (p)
        for (int i = 1; i <= GUARD; i++)
            if (!isnan(p[-i]) || !isnan(p[n + i - 1])) return false;
    return true;
}

/* Returns a note on a missing field of the row of rollout i's prompt, or "". */
static const char *missing_field(const struct plugin *p, const tare_batch *b, int64_t i, char text[200])
{
    int64_t m = 0;
    text[0] = 0;
    while (m + 1 < b->n_groups && b->group_begin[m + 1] <= i) m++;
    for (uint32_t k = 0; k < p->desc.n_wants && !text[0]; k++)
        if (p->column[k] == COLUMN_ROW_FIELD && b->column[k].data && isnan(((const double *)b->column[k].data)[m]))
            snprintf(text, 200, " (the row of its prompt has no \"%.100s\", so that column is nan; test it with isnan)",
                     p->wants[k].name + 4);
    return text;
}

static tare_status check_rollouts(const struct plugin *p, const tare_batch *b, const tare_advantages *o, struct err *e)
{
    char why[200];
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        if (!isfinite(o->advantage[i]))
            FAIL(e, TARE_E_PLUGIN, "the advantage of rollout %lld of %lld is %g%s", (long long)i, (long long)b->n_rollouts,
                 o->advantage[i], isnan(o->advantage[i]) ? missing_field(p, b, i, why) : "");
        if (!(o->rollout_weight[i] >= 0) || isinf(o->rollout_weight[i]))
            FAIL(e, TARE_E_PLUGIN, "the weight of rollout %lld is %g", (long long)i, o->rollout_weight[i]);
    }
    if (o->token_advantage)
        for (int64_t t = 0; t < b->n_tokens; t++)
            if (b->sampled[t] && !isfinite(o->token_advantage[t]))
                FAIL(e, TARE_E_PLUGIN, "the advantage of token %lld is %g", (long long)t, (double)o->token_advantage[t]);
    return TARE_OK;
}

static tare_status check_out(const struct plugin *p, const tare_batch *b, const tare_advantages *o, struct err *e)
{
    if (!guarded_buffer(o->advantage, b->n_rollouts) || !guarded_buffer(o->rollout_weight, b->n_rollouts) ||
        !guarded_buffer(o->baseline, b->n_groups) || !guarded_buffer(o->scale, b->n_groups) ||
        !guarded_buffer(o->confidence, b->n_groups) || !guarded_tokens(o->token_advantage, b->n_tokens))
        FAIL(e, TARE_E_PLUGIN, "compute wrote outside of an output buffer");
    TRY(check_rollouts(p, b, o, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (isinf(o->baseline[m])) FAIL(e, TARE_E_PLUGIN, "the baseline of group %lld is %g", (long long)m, o->baseline[m]);
        if (isinf(o->scale[m]) || o->scale[m] < 0)
            FAIL(e, TARE_E_PLUGIN, "the scale of group %lld is %g", (long long)m, o->scale[m]);
        if (o->confidence[m] < 0 || o->confidence[m] > 1)
            FAIL(e, TARE_E_PLUGIN, "the confidence of group %lld is %g", (long long)m, o->confidence[m]);
    }
    if (o->extra_groups < 0) FAIL(e, TARE_E_PLUGIN, "extra_groups is %lld", (long long)o->extra_groups);
    return TARE_OK;
}

/* ---------------------------------------------------------------- phases */

static tare_status check_sizes(const struct plugin_instance *i, struct trial *t, struct check *c, struct err *e)
{
    t->prepare_size = i->sizes.prepare;
    t->collect_size = i->sizes.collect;
    t->record_size = i->sizes.record;
    TRY(arena_new(&c->arena, &t->records, t->b.n_groups * t->record_size + 1, e));
    if (!t->prepared) TRY(arena_new(&c->arena, &t->prepared, t->prepare_size + 1, e));
    return arena_new(&c->arena, &t->collected, t->collect_size + 1, e);
}

/* Runs one group's vector or record, between guards, from zeros. */
static tare_status of_group(const struct plugin_instance *i, const tare_batch *b, struct trial_phase phase, int64_t group,
                            double *one, struct err *e)
{
    struct plugin_call call;
    for (int64_t k = 0; k < phase.size + 2 * GUARD; k++) one[k] = k >= GUARD && k < GUARD + phase.size ? 0 : (double)NAN;
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, phase.name, b->step, phase.call(i->self, b, group, one + GUARD, &call.error), e));
    if (!guarded_buffer(one + GUARD, phase.size)) FAIL(e, TARE_E_PLUGIN, "%s wrote outside of its buffer", phase.name);
    for (int64_t k = 0; k < phase.size; k++)
        if (!isfinite(one[GUARD + k]))
            FAIL(e, TARE_E_PLUGIN, "%s: number %lld of group %lld is %g", phase.name, (long long)k, (long long)group,
                 one[GUARD + k]);
    return TARE_OK;
}

tare_status trial_add(struct check *c, const struct plugin_instance *i, const struct trial *t, struct trial_phase phase,
                      double *sum, struct err *e)
{
    double *one;
    if (!phase.call) return TARE_OK;
    tare_column column[TARE_LIMIT_WANTS];
    const tare_batch b = trial_show(c, i, &t->b, phase.call != i->plugin->estimator->prepare, column);
    TRY(arena_new(&c->arena, &one, phase.size + 2 * GUARD, e));
    for (int64_t m = 0; m < t->b.n_groups; m++) {
        TRY(of_group(i, &b, phase, m, one, e));
        for (int64_t k = 0; k < phase.size; k++) sum[k] += one[GUARD + k];
    }
    return TARE_OK;
}

static tare_status take_records(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e)
{
    const struct trial_phase phase = {i->plugin->estimator->record, "record", t->record_size};
    double *one;
    if (!phase.call) return TARE_OK;
    tare_column column[TARE_LIMIT_WANTS];
    const tare_batch b = trial_show(c, i, &t->b, phase.call != i->plugin->estimator->prepare, column);
    TRY(arena_new(&c->arena, &one, phase.size + 2 * GUARD, e));
    for (int64_t m = 0; m < t->b.n_groups; m++) {
        TRY(of_group(i, &b, phase, m, one, e));
        memcpy(t->records + m * phase.size, one + GUARD, (size_t)phase.size * sizeof *one);
    }
    return TARE_OK;
}

tare_status trial_compute(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e)
{
    struct plugin_call call;
    tare_column column[TARE_LIMIT_WANTS];
    const tare_batch b = trial_show(c, i, &t->b, false, column);
    TRY(check_sizes(i, t, c, e));
    TRY(new_out(c, &b, &t->out, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "compute", b.step, i->plugin->estimator->compute(i->self, &b, t->prepared, &t->out, &call.error),
                     e));
    TRY(check_out(i->plugin, &b, &t->out, e));
    return take_records(c, i, t, e);
}

tare_status trial_run(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e)
{
    const tare_estimator *f = i->plugin->estimator;
    TRY(check_sizes(i, t, c, e));
    TRY(trial_add(c, i, t, (struct trial_phase){f->prepare, "prepare", t->prepare_size}, t->prepared, e));
    TRY(trial_compute(c, i, t, e));
    return trial_add(c, i, t, (struct trial_phase){f->collect, "collect", t->collect_size}, t->collected, e);
}

/* The engine asks for sizes once, after create. */
static tare_status same_sizes(const struct plugin_instance *i, struct err *e)
{
    const tare_estimator *f = i->plugin->estimator;
    struct plugin_call call;
    tare_sizes now = {.struct_size = sizeof now};
    if (!f->sizes) return TARE_OK;
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "sizes", -1, f->sizes(i->self, &now, &call.error), e));
    const struct {
        const char *name;
        int64_t was, is;
    } sizes[] = {{"prepare", i->sizes.prepare, now.prepare},
                 {"collect", i->sizes.collect, now.collect},
                 {"record", i->sizes.record, now.record}};
    for (int k = 0; k < 3; k++)
        if (sizes[k].is != sizes[k].was)
            FAIL(e, TARE_E_PLUGIN, "sizes: %s changed from %lld to %lld in a step; the host asks once, after create", sizes[k].name,
                 (long long)sizes[k].was, (long long)sizes[k].is);
    return TARE_OK;
}

tare_status trial_apply(const struct plugin_instance *i, const struct trial *t, struct err *e)
{
    struct plugin_call call;
    const tare_estimator *f = i->plugin->estimator;
    const tare_update update = {.struct_size = sizeof update,
                                .step = t->b.step,
                                .updates = 1,
                                .collected = t->collected,
                                .n_groups = t->b.n_groups,
                                .prompt_uid = t->b.prompt_uid,
                                .record = t->records};
    TRY(same_sizes(i, e));
    if (!f->apply) return TARE_OK;
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "apply", t->b.step, f->apply(i->self, &update, &call.error), e));
    return same_sizes(i, e);
}

/* Some estimators accept only rewards of 0 and 1, and refuse others. */
static bool binary_only(struct check *c)
{
    struct plugin_instance *i;
    struct trial t = {0};
    struct err e = {0};
    if (check_instance(c, &i, &e)) return false;
    tare_status status = trial_batch(c, TRIAL_MIXED, 6, &t.b, &e);
    if (!status) status = trial_run(c, i, &t, &e);
    plugin_destroy(i);
    return status == TARE_E_RANGE || status == TARE_E_INVALID;
}

tare_status trial_instance(struct check *c, struct plugin_instance **out, struct err *e)
{
    if (!c->binary) c->binary = binary_only(c);
    TRY(check_instance(c, out, e));
    for (int step = 0; step < 3; step++) {
        struct trial t = {0};
        TRY(trial_batch(c, TRIAL_MIXED, 9, &t.b, e));
        TRY(trial_run(c, *out, &t, e));
        TRY(trial_apply(*out, &t, e));
    }
    return TARE_OK;
}
