#include "plugin/check/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const TRIAL_NAMES[TRIAL_SHAPES] = {"mixed rewards", "groups of equal rewards", "groups of one", "no cluster",
                                               "no groups at all"};

enum { MOST = 8, COMPONENTS = 3, PROMPTS = 20, GUARD = 16 };

/* ---------------------------------------------------------------- batches */

/* Writable versions of the engine's arrays in a tare_batch. */
struct columns {
    int64_t *group_begin, *token_begin;
    uint64_t *uid;
    int32_t *cluster, *verdict;
    double *reward, *component;
    float *entropy, *logprob, *ref_logprob;
    uint8_t *finish, *off_policy;
    tare_text *row, *completion;
    int32_t *token_id, *component_verdict;
    int64_t *policy_version;
    int32_t *segment;
    double *segment_reward;
};

static tare_status new_columns(struct check *c, int64_t groups, int64_t rollouts, struct columns *x, struct err *e)
{
    struct arena *a = &c->arena;
    TRY(arena_new(a, &x->group_begin, groups + 1, e));
    TRY(arena_new(a, &x->token_begin, rollouts + 1, e));
    TRY(arena_new(a, &x->uid, groups + 1, e));
    TRY(arena_new(a, &x->cluster, groups + 1, e));
    TRY(arena_new(a, &x->verdict, rollouts + 1, e));
    TRY(arena_new(a, &x->reward, rollouts + 1, e));
    TRY(arena_new(a, &x->finish, rollouts + 1, e));
    TRY(arena_new(a, &x->off_policy, rollouts + 1, e));
    TRY(arena_new(a, &x->row, groups + 1, e));
    TRY(arena_new(a, &x->completion, rollouts + 1, e));
    TRY(arena_new(a, &x->policy_version, rollouts + 1, e));
    TRY(arena_new(a, &x->component_verdict, rollouts * COMPONENTS + 1, e));
    return arena_new(a, &x->component, rollouts * COMPONENTS + 1, e);
}

static tare_status new_tokens(struct check *c, int64_t tokens, struct columns *x, struct err *e)
{
    TRY(arena_new(&c->arena, &x->token_id, tokens + 1, e));
    TRY(arena_new(&c->arena, &x->segment, tokens + 1, e));
    TRY(arena_new(&c->arena, &x->segment_reward, tokens + 1, e));
    TRY(arena_new(&c->arena, &x->entropy, tokens + 1, e));
    TRY(arena_new(&c->arena, &x->logprob, tokens + 1, e));
    return arena_new(&c->arena, &x->ref_logprob, tokens + 1, e);
}

/* Shows the columns as the engine does (core/estimate): only those that the plugin declares. */
static tare_batch show_batch(const struct check *c, const struct columns *x, int64_t groups)
{
    const uint32_t needs = c->plugin->desc.needs;
    const int64_t rollouts = x->group_begin[groups];
    const bool logprob = (needs & TARE_NEED_LOGPROB) || ((needs & TARE_WANTS_LOGPROB) && !c->no_logprob);
    return (tare_batch){.struct_size = sizeof(tare_batch),
                        .step = 3,
                        .n_groups = groups,
                        .n_rollouts = rollouts,
                        .n_tokens = x->token_begin[rollouts],
                        .n_components = COMPONENTS,
                        .n_clusters = CHECK_CLUSTERS,
                        .group_begin = x->group_begin,
                        .prompt_uid = x->uid,
                        .cluster = x->cluster,
                        .reward = x->reward,
                        .component = needs & TARE_NEED_COMPONENTS ? x->component : NULL,
                        .verdict = x->verdict,
                        .token_begin = x->token_begin,
                        .token_entropy = needs & TARE_NEED_ENTROPY ? x->entropy : NULL,
                        .token_logprob = logprob ? x->logprob : NULL,
                        .token_ref_logprob = needs & TARE_NEED_REF_LOGPROB ? x->ref_logprob : NULL,
                        .finish = needs & TARE_NEED_FINISH ? x->finish : NULL,
                        .row = needs & TARE_NEED_ROW ? x->row : NULL,
                        .completion = needs & TARE_NEED_COMPLETION ? x->completion : NULL,
                        .token_id = needs & TARE_NEED_TOKEN_ID ? x->token_id : NULL,
                        .component_verdict = needs & TARE_NEED_VERDICTS ? x->component_verdict : NULL,
                        .off_policy = needs & TARE_NEED_OFF_POLICY ? x->off_policy : NULL,
                        .policy_version = needs & TARE_NEED_POLICY_VERSION ? x->policy_version : NULL,
                        .segment = needs & TARE_NEED_SEGMENTS ? x->segment : NULL,
                        .segment_reward = needs & TARE_NEED_SEGMENTS ? x->segment_reward : NULL};
}

static double a_reward(struct check *c, enum trial_shape shape, double of_group)
{
    if (shape == TRIAL_EQUAL) return of_group;
    if (!c->binary && !check_below(c, 4)) return 2 * check_uniform(c) - 1;
    return (double)check_below(c, 2);
}

/* One of a few prompts, so that prompts recur; the numbers are arbitrary. */
static uint64_t a_prompt(struct check *c)
{
    return (check_below(c, PROMPTS) + 1) * 0x9e3779b97f4a7c15u;
}

/* The facts about rollout n besides its reward, including those that are rare in a run, so that a
 * plugin meets them here. */
static void some_facts(struct check *c, struct columns *x, int64_t n)
{
    static const tare_text COMPLETIONS[] = {{"it is 42", 8}, {"", 0}, {"a\0b", 3}, {"cut \xc3", 5}};
    x->finish[n] = (uint8_t)check_below(c, 2);
    x->off_policy[n] = !check_below(c, 8);
    x->policy_version[n] = x->off_policy[n] ? -1 : 2 - (int64_t)check_below(c, 2);
    x->completion[n] = COMPLETIONS[check_below(c, 4)];
    for (int64_t k = 0; k < COMPONENTS; k++)
        x->component_verdict[n * COMPONENTS + k] = k ? (int32_t)check_below(c, TARE_PARTIAL + 1) : x->verdict[n];
}

/* Segments of one to four tokens; some rollouts have none, and in some the last tokens are in no
 * segment. */
static void some_segments(struct check *c, struct columns *x, int64_t n)
{
    int64_t t = x->token_begin[n];
    const int64_t end = x->token_begin[n + 1] - (int64_t)check_below(c, 2);
    for (int32_t k = 1; check_below(c, 8) && t < end; k++) {
        int64_t length = 1 + (int64_t)check_below(c, 4);
        if (length > end - t) length = end - t;
        for (; length > 0; length--) x->segment[t++] = k;
        x->segment_reward[t - 1] = c->binary ? (double)check_below(c, 2) : 2 * check_uniform(c) - 1;
    }
}

tare_status trial_batch(struct check *c, enum trial_shape shape, int64_t groups, tare_batch *out, struct err *e)
{
    struct columns x;
    int64_t n = 0;
    if (shape == TRIAL_EMPTY) groups = 0;
    TRY(new_columns(c, groups, groups * MOST, &x, e));
    for (int64_t m = 0; m < groups; m++) {
        const int64_t size = shape == TRIAL_SINGLES ? 1 : MOST - (int64_t)(c->binary ? 0 : check_below(c, 5));
        const double of_group = (double)check_below(c, 2);
        x.cluster[m] = shape == TRIAL_UNCLUSTERED ? -1 : (int32_t)check_below(c, CHECK_CLUSTERS);
        x.uid[m] = a_prompt(c);
        x.row[m] = check_below(c, 2) ? (tare_text){"{\"question\":\"?\",\"level\":3}", 26} : (tare_text){"{}", 2};
        for (int64_t i = 0; i < size; i++, n++) {
            x.reward[n] = a_reward(c, shape, of_group);
            x.verdict[n] = x.reward[n] > 0 ? TARE_CORRECT : TARE_WRONG;
            x.token_begin[n + 1] = x.token_begin[n] + 1 + (int64_t)check_below(c, 9);
            for (int64_t k = 0; k < COMPONENTS; k++) x.component[n * COMPONENTS + k] = x.reward[n] / COMPONENTS;
            some_facts(c, &x, n);
        }
        x.group_begin[m + 1] = n;
    }
    const int64_t tokens = x.token_begin[n];
    TRY(new_tokens(c, tokens, &x, e));
    for (int64_t t = 0; t < tokens; t++) {
        x.token_id[t] = (int32_t)check_below(c, 1000);
        x.entropy[t] = (float)(3 * check_uniform(c));
        x.logprob[t] = (float)(-5 * check_uniform(c));
        x.ref_logprob[t] = (float)(-5 * check_uniform(c));
    }
    for (int64_t i = 0; i < n; i++) some_segments(c, &x, i);
    *out = show_batch(c, &x, groups);
    return TARE_OK;
}

static void copy_tokens(float *to, const float *from, int64_t first, int64_t n)
{
    if (from) memcpy(to, from + first, (size_t)n * sizeof *to);
}

/* Sets the tokens from x->token_begin[at] on as those of rollout i. */
static void copy_facts(const tare_batch *from, int64_t i, struct columns *x, int64_t at)
{
    const int64_t first = from->token_begin[i], tokens = from->token_begin[i + 1] - first;
    if (from->finish) x->finish[at] = from->finish[i];
    if (from->off_policy) x->off_policy[at] = from->off_policy[i];
    if (from->policy_version) x->policy_version[at] = from->policy_version[i];
    if (from->completion) x->completion[at] = from->completion[i];
    if (from->token_id)
        for (int64_t t = 0; t < tokens; t++) x->token_id[x->token_begin[at] + t] = from->token_id[first + t];
    if (from->segment)
        for (int64_t t = 0; t < tokens; t++) {
            x->segment[x->token_begin[at] + t] = from->segment[first + t];
            x->segment_reward[x->token_begin[at] + t] = from->segment_reward[first + t];
        }
    if (from->component_verdict)
        for (int64_t k = 0; k < COMPONENTS; k++)
            x->component_verdict[at * COMPONENTS + k] = from->component_verdict[i * COMPONENTS + k];
}

tare_status trial_groups(struct check *c, const tare_batch *from, const int64_t *groups, int64_t n, tare_batch *out, struct err *e)
{
    struct columns x;
    int64_t at = 0;
    TRY(new_columns(c, n, from->n_rollouts, &x, e));
    TRY(new_tokens(c, from->n_tokens, &x, e));
    for (int64_t m = 0; m < n; m++) {
        const int64_t g = groups[m];
        x.cluster[m] = from->cluster[g];
        x.uid[m] = from->prompt_uid[g];
        if (from->row) x.row[m] = from->row[g];
        for (int64_t i = from->group_begin[g]; i < from->group_begin[g + 1]; i++, at++) {
            const int64_t first = from->token_begin[i], tokens = from->token_begin[i + 1] - first;
            x.reward[at] = from->reward[i];
            x.verdict[at] = from->verdict[i];
            if (from->component)
                for (int64_t k = 0; k < COMPONENTS; k++) x.component[at * COMPONENTS + k] = from->component[i * COMPONENTS + k];
            copy_tokens(x.entropy + x.token_begin[at], from->token_entropy, first, tokens);
            copy_tokens(x.logprob + x.token_begin[at], from->token_logprob, first, tokens);
            copy_tokens(x.ref_logprob + x.token_begin[at], from->token_ref_logprob, first, tokens);
            copy_facts(from, i, &x, at);
            x.token_begin[at + 1] = x.token_begin[at] + tokens;
        }
        x.group_begin[m + 1] = at;
    }
    *out = show_batch(c, &x, n);
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
    if (!(c->plugin->desc.needs & TARE_GIVES_TOKENS)) return TARE_OK;
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

/* Returns " (its prompt's row lacks "level", which is nan)" for the group of rollout i, or "". */
static const char *missing_field(const tare_batch *b, int64_t i, char text[200])
{
    int64_t m = 0;
    text[0] = 0;
    while (m + 1 < b->n_groups && b->group_begin[m + 1] <= i) m++;
    for (int64_t k = 0; k < b->n_columns && !text[0]; k++)
        if (isnan(b->column[m * b->n_columns + k]))
            snprintf(text, 200, " (the row of its prompt has no \"%.100s\", so that column is nan; test it with isnan)",
                     b->column_name[k]);
    return text;
}

static tare_status check_rollouts(const tare_batch *b, const tare_advantages *o, struct err *e)
{
    char why[200];
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        if (!isfinite(o->advantage[i]))
            FAIL(e, TARE_E_PLUGIN, "the advantage of rollout %lld of %lld is %g%s", (long long)i, (long long)b->n_rollouts,
                 o->advantage[i], isnan(o->advantage[i]) ? missing_field(b, i, why) : "");
        if (!(o->rollout_weight[i] >= 0) || isinf(o->rollout_weight[i]))
            FAIL(e, TARE_E_PLUGIN, "the weight of rollout %lld is %g", (long long)i, o->rollout_weight[i]);
    }
    if (o->token_advantage)
        for (int64_t t = 0; t < b->n_tokens; t++)
            if (!isfinite(o->token_advantage[t]))
                FAIL(e, TARE_E_PLUGIN, "the advantage of token %lld is %g", (long long)t, (double)o->token_advantage[t]);
    return TARE_OK;
}

static tare_status check_out(const tare_batch *b, const tare_advantages *o, struct err *e)
{
    if (!guarded_buffer(o->advantage, b->n_rollouts) || !guarded_buffer(o->rollout_weight, b->n_rollouts) ||
        !guarded_buffer(o->baseline, b->n_groups) || !guarded_buffer(o->scale, b->n_groups) ||
        !guarded_buffer(o->confidence, b->n_groups) || !guarded_tokens(o->token_advantage, b->n_tokens))
        FAIL(e, TARE_E_PLUGIN, "compute wrote outside of an output buffer");
    TRY(check_rollouts(b, o, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        if (!isfinite(o->baseline[m])) FAIL(e, TARE_E_PLUGIN, "the baseline of group %lld is %g", (long long)m, o->baseline[m]);
        if (isinf(o->scale[m]) || o->scale[m] < 0)
            FAIL(e, TARE_E_PLUGIN, "the scale of group %lld is %g", (long long)m, o->scale[m]);
        if (!(o->confidence[m] >= 0 && o->confidence[m] <= 1))
            FAIL(e, TARE_E_PLUGIN, "the confidence of group %lld is %g", (long long)m, o->confidence[m]);
    }
    if (o->refill_groups < 0) FAIL(e, TARE_E_PLUGIN, "refill_groups is %lld", (long long)o->refill_groups);
    return TARE_OK;
}

/* ---------------------------------------------------------------- phases */

enum { COLUMNS_MOST = 64 };

/* *n: names before the NULL, at most COLUMNS_MOST + 1. */
static const char *const *asked_columns(const struct plugin_instance *i, int64_t *n)
{
    const tare_estimator *f = i->plugin->estimator;
    const char *const *name = f->columns ? f->columns(i->self) : NULL;
    for (*n = 0; name && name[*n] && *n <= COLUMNS_MOST;) ++*n;
    return name;
}

/* A field of a row: any number, and sometimes a missing one. Equal for equal prompts and names. */
static double a_field(const char *name, uint64_t uid)
{
    uint64_t x = uid;
    for (; *name; name++) x = (x ^ (uint64_t)(unsigned char)*name) * 0x100000001b3u;
    x ^= x >> 29;
    return x % 4 ? (double)(x % 1000) / 8 - 10 : (double)NAN;
}

/* Rows as the engine shows them to a plugin that asks for them. */
static tare_status show_columns(const struct plugin_instance *i, struct trial *t, struct check *c, struct err *e)
{
    tare_batch *b = &t->b;
    double *number;
    int64_t n;
    const char *const *name = asked_columns(i, &n);
    if (n > COLUMNS_MOST)
        FAIL(e, TARE_E_PLUGIN, "columns returns more than %d names; is the NULL at the end missing?", COLUMNS_MOST);
    b->n_columns = n;
    if (!n) return TARE_OK;
    TRY(arena_new(&c->arena, &t->columns, n, e));
    TRY(arena_new(&c->arena, &number, b->n_groups * n + 1, e));
    for (int64_t k = 0; k < n; k++) {
        char *copy;
        if (!*name[k]) FAIL(e, TARE_E_PLUGIN, "columns: empty name %lld", (long long)k);
        for (int64_t j = 0; j < k; j++)
            if (!strcmp(name[j], name[k])) FAIL(e, TARE_E_PLUGIN, "columns: duplicate name \"%s\"", name[k]);
        TRY(arena_strdup(&c->arena, name[k], -1, &copy, e));
        t->columns[k] = copy;
        for (int64_t m = 0; m < b->n_groups; m++) number[m * n + k] = a_field(name[k], b->prompt_uid[m]);
    }
    b->column_name = t->columns;
    b->column = number;
    return TARE_OK;
}

static tare_status check_sizes(const struct plugin_instance *i, struct trial *t, struct check *c, struct err *e)
{
    const tare_estimator *f = i->plugin->estimator;
    t->prepare_size = f->prepare_size ? f->prepare_size(i->self) : 0;
    t->collect_size = f->collect_size ? f->collect_size(i->self) : 0;
    t->record_size = f->record_size ? f->record_size(i->self) : 0;
    if (t->prepare_size < 0 || t->collect_size < 0 || t->prepare_size > 1 << 26 || t->collect_size > 1 << 26)
        FAIL(e, TARE_E_PLUGIN, "invalid prepare_size or collect_size");
    if (t->record_size < 0 || t->record_size > 1 << 20) FAIL(e, TARE_E_PLUGIN, "invalid record_size");
    TRY(show_columns(i, t, c, e));
    TRY(arena_new(&c->arena, &t->records, t->b.n_groups * t->record_size + 1, e));
    if (!t->prepared) TRY(arena_new(&c->arena, &t->prepared, t->prepare_size + 1, e));
    return arena_new(&c->arena, &t->collected, t->collect_size + 1, e);
}

/* Runs one group's vector or record, between guards, from zeros. */
static tare_status of_group(const struct plugin_instance *i, const struct trial *t, struct trial_phase phase, int64_t group,
                            double *one, struct err *e)
{
    struct plugin_call call;
    for (int64_t k = 0; k < phase.size + 2 * GUARD; k++) one[k] = k >= GUARD && k < GUARD + phase.size ? 0 : (double)NAN;
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, phase.name, t->b.step, phase.call(i->self, &t->b, group, one + GUARD, &call.error), e));
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
    c->batch = &t->b;
    TRY(arena_new(&c->arena, &one, phase.size + 2 * GUARD, e));
    for (int64_t m = 0; m < t->b.n_groups; m++) {
        TRY(of_group(i, t, phase, m, one, e));
        for (int64_t k = 0; k < phase.size; k++) sum[k] += one[GUARD + k];
    }
    return TARE_OK;
}

static tare_status take_records(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e)
{
    const struct trial_phase phase = {i->plugin->estimator->record, "record", t->record_size};
    double *one;
    if (!phase.call) return TARE_OK;
    c->batch = &t->b;
    TRY(arena_new(&c->arena, &one, phase.size + 2 * GUARD, e));
    for (int64_t m = 0; m < t->b.n_groups; m++) {
        TRY(of_group(i, t, phase, m, one, e));
        memcpy(t->records + m * phase.size, one + GUARD, (size_t)phase.size * sizeof *one);
    }
    return TARE_OK;
}

tare_status trial_compute(struct check *c, const struct plugin_instance *i, struct trial *t, struct err *e)
{
    struct plugin_call call;
    TRY(check_sizes(i, t, c, e));
    TRY(new_out(c, &t->b, &t->out, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "compute", t->b.step,
                     i->plugin->estimator->compute(i->self, &t->b, t->prepared, &t->out, &call.error), e));
    TRY(check_out(&t->b, &t->out, e));
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

/* The engine asks for sizes and columns once, after create. */
static tare_status same_sizes(const struct plugin_instance *i, const struct trial *t, struct err *e)
{
    const tare_estimator *f = i->plugin->estimator;
    const struct {
        const char *name;
        int64_t (*size)(const void *);
        int64_t was;
    } sizes[] = {{"prepare_size", f->prepare_size, t->prepare_size},
                 {"collect_size", f->collect_size, t->collect_size},
                 {"record_size", f->record_size, t->record_size}};
    for (int k = 0; k < 3; k++)
        if (sizes[k].size && sizes[k].size(i->self) != sizes[k].was)
            FAIL(e, TARE_E_PLUGIN, "%s changed from %lld to %lld in a step; the host asks once, after create", sizes[k].name,
                 (long long)sizes[k].was, (long long)sizes[k].size(i->self));
    int64_t n;
    const char *const *name = asked_columns(i, &n);
    bool same = n == t->b.n_columns;
    for (int64_t k = 0; same && k < n; k++) same = !strcmp(name[k], t->columns[k]);
    if (!same) FAIL(e, TARE_E_PLUGIN, "columns returns other names after a step; the host asks once, after create");
    return TARE_OK;
}

tare_status trial_apply(const struct plugin_instance *i, const struct trial *t, struct err *e)
{
    struct plugin_call call;
    const tare_estimator *f = i->plugin->estimator;
    TRY(same_sizes(i, t, e));
    if (!f->apply_records && !f->apply) return TARE_OK;
    plugin_enter(&call);
    if (f->apply_records)
        TRY(plugin_leave(
            &call, i, "apply_records", t->b.step,
            f->apply_records(i->self, t->b.step, t->collected, t->b.prompt_uid, t->records, t->b.n_groups, &call.error), e));
    else
        TRY(plugin_leave(&call, i, "apply", t->b.step, f->apply(i->self, t->b.step, t->collected, &call.error), e));
    return same_sizes(i, t, e);
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

/* ---------------------------------------------------------------- comparison */

tare_status trial_same_numbers(const double *was, const double *is, int64_t n, const char *what, struct err *e)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&was[i], &is[i], sizeof *was))
            FAIL(e, TARE_E_PLUGIN, "%s: number %lld is %.17g instead of %.17g", what, (long long)i, is[i], was[i]);
    return TARE_OK;
}

static bool close_to(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * (1 + fabs(a));
}

tare_status trial_same_outputs(const struct trial *a, const struct trial *b, bool to_the_bit, const char *what, struct err *e)
{
    const struct {
        const char *name;
        const double *was, *is;
        int64_t n;
    } columns[] = {{"advantages", a->out.advantage, b->out.advantage, b->b.n_rollouts},
                   {"weights of rollouts", a->out.rollout_weight, b->out.rollout_weight, b->b.n_rollouts},
                   {"baselines", a->out.baseline, b->out.baseline, b->b.n_groups},
                   {"scales", a->out.scale, b->out.scale, b->b.n_groups},
                   {"confidences", a->out.confidence, b->out.confidence, b->b.n_groups}};
    for (int k = 0; k < 5; k++)
        for (int64_t i = 0; i < columns[k].n; i++) {
            const double was = columns[k].was[i], is = columns[k].is[i];
            if (to_the_bit ? memcmp(&was, &is, sizeof was) && !(isnan(was) && isnan(is)) : !close_to(was, is))
                FAIL(e, TARE_E_PLUGIN, "%s: %s: number %lld is %.17g instead of %.17g", what, columns[k].name, (long long)i, is,
                     was);
        }
    if (b->out.token_advantage)
        for (int64_t t = 0; t < b->b.n_tokens; t++) {
            const float was = a->out.token_advantage[t], is = b->out.token_advantage[t];
            if (to_the_bit ? memcmp(&was, &is, sizeof was) != 0 : fabsf(was - is) > 1e-5f * (1 + fabsf(was)))
                FAIL(e, TARE_E_PLUGIN, "%s: token advantages: number %lld is %.9g instead of %.9g", what, (long long)t, (double)is,
                     (double)was);
        }
    return TARE_OK;
}

tare_status trial_same(const struct trial *a, const struct trial *b, const char *what, struct err *e)
{
    TRY(trial_same_outputs(a, b, true, what, e));
    if (a->out.refill_groups != b->out.refill_groups)
        FAIL(e, TARE_E_PLUGIN, "%s: refill_groups is %lld instead of %lld", what, (long long)b->out.refill_groups,
             (long long)a->out.refill_groups);
    TRY(trial_same_numbers(a->prepared, b->prepared, a->prepare_size, "prepared sums", e));
    TRY(trial_same_numbers(a->collected, b->collected, a->collect_size, "collected sums", e));
    return trial_same_numbers(a->records, b->records, a->b.n_groups * a->record_size, "records", e);
}
