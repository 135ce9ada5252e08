/* Checks the advantages of a step, the weights of its rollouts, and the factor of each token in the
 * loss. */
#include "lab/audit/internal.h"
#include "plugin/plugin.h"
#include "update/token_weights.h"

#include <math.h>
#include <string.h>

/* Members of tare's dumps that some estimators need, and their names in a group. */
static const char *const FACTS[][2] = {{"components", "components"},
                                       {"completion", "completions"},
                                       {"verdict", "verdicts"},
                                       {"finish", "finish"},
                                       {"component_verdicts", "component_verdicts"},
                                       {"fate", "fate"}};

static int append_value(json_t *group, const char *key, json_t *value)
{
    if (!json_object_get(group, key) && json_object_set_new(group, key, json_array())) return -1;
    return json_array_append_new(json_object_get(group, key), value);
}

/* Adds a rollout to a group. One without a reward was not verified: estimators do not see it, and
 * its advantage is 0. */
static int add_rollout(json_t *group, const struct audit_row *r, bool own, bool lengths, bool unjudged)
{
    int bad = append_value(group, "rewards", json_real(isnan(r->reward) ? 0 : r->reward));
    if (lengths) bad |= append_value(group, "lengths", json_integer(r->length));
    for (size_t f = 0; own && f < sizeof FACTS / sizeof *FACTS; f++)
        if (json_object_get(r->object, FACTS[f][0]))
            bad |= append_value(group, FACTS[f][1], json_incref(json_object_get(r->object, FACTS[f][0])));
    if (unjudged && !own)
        bad |= append_value(group, "verdicts", json_string(isnan(r->reward) ? "timeout" : r->reward > 0 ? "correct" : "wrong"));
    return bad;
}

static json_t *groups_json(const struct audit *a, const struct audit_step *s)
{
    json_t *all = json_array();
    bool lengths = true, unjudged = false;
    for (int64_t i = 0; i < s->n; i++) {
        lengths = lengths && s->row[i].length > 0;
        unjudged = unjudged || isnan(s->row[i].reward);
    }
    for (int64_t m = 0; m < s->n_groups; m++) {
        json_t *group = json_object();
        int bad = json_array_append_new(all, group);
        const json_t *first = s->row[s->order[s->begin[m]]].object;
        if (a->own && json_object_get(first, "cluster"))
            bad |= json_object_set(group, "cluster", json_object_get(first, "cluster"));
        if (a->own && json_object_get(first, "prompt_uid"))
            bad |= json_object_set(group, "uid", json_object_get(first, "prompt_uid"));
        for (int64_t k = s->begin[m]; k < s->begin[m + 1]; k++)
            bad |= add_rollout(group, &s->row[s->order[k]], a->own, lengths, unjudged);
        if (bad) {
            json_decref(all);
            return NULL;
        }
    }
    return json_pack("{s:o}", "groups", all);
}

/* ---------------------------------------------------------------- the estimator */

/* Explains the failure of a default estimator: the dump does not record its estimator. */
static void explain_choice(const struct audit *a, const struct audit_step *s, struct err *e)
{
    /* the columns are a trainer's */
    const bool trainers = a->map.name && strcmp(a->map.name, "tare");
    const struct err why = *e;
    err_set(
        e, why.code, __FILE__, __LINE__,
        "%s: the rows have advantages of an unknown estimator; set as=%s for the conventions of the trainer that wrote them (verl, trl, openrlhf, slime or nemo%s%s), or estimator.plugin=NAME (%s was tried: %s)",
        s->file, trainers ? a->map.name : "NAME", trainers ? "; the columns match " : "", trainers ? a->map.name : "",
        a->o->config->estimator.plugin, why.message);
}

/* Opens the estimator with the state that a run recorded before the step; other dumps have one
 * estimator for all steps. */
static tare_status open_estimator(struct audit *a, const struct audit_step *s, struct err *e)
{
    const struct config *c = a->o->config;
    OWNED(str_free) struct str state = {0};
    if (a->estimator && !s->state) return TARE_OK;
    int64_t clusters = 0;
    if (s->state) {
        TRY(fs_read_all(s->state, &state, e));
        TRY(plugin_state_clusters(state.data, state.size, s->state, &clusters, e));
    }
    estimate_free(a->estimator);
    a->estimator = NULL;
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct estimate_options o = {.plugin = c->estimator.plugin,
                                       .search = &search,
                                       .settings = c->params,
                                       .n_clusters = clusters,
                                       .env = {.seed = (uint64_t)c->run.seed}};
    const tare_status status = estimate_open(&o, &a->estimator, e);
    if (status && !a->own && c->run.as == AS_NONE) explain_choice(a, s, e);
    TRY(status);
    return s->state ? estimate_load(a->estimator, state.data, state.size, s->state, e) : TARE_OK;
}

static tare_status estimate_step(struct audit *a, struct audit_step *s, struct batch *b, struct err *e)
{
    json_t *groups = groups_json(a, s);
    if (!groups) FAIL(e, TARE_E_NOMEM, "%s: no memory for the groups of step %lld", s->file, (long long)s->number);
    tare_status status = estimate_parse(groups, s->file, &a->step, b, e);
    json_decref(groups);
    TRY(status);
    b->step = s->number < 0 ? 0 : s->number;
    TRY(open_estimator(a, s, e));
    if (estimate_run(a->estimator, b, &a->step, e)) return err_prefix(e, "%s, step %lld", s->file, (long long)s->number);
    return s->state ? TARE_OK : estimate_apply(a->estimator, &(struct estimate_update){.step = b->step, .updates = 1}, e);
}

/* ---------------------------------------------------------------- comparing */

static tare_status check_value(struct audit *a, const struct audit_step *s, int64_t i, const double x[2], struct finding f,
                               struct err *e)
{
    char says[32], expected[32];
    if (isnan(x[0])) return TARE_OK;
    a->checked[f.column]++;
    const bool scale = f.column == AUDIT_LOSS_SCALE; /* far below 1, so compared relatively */
    if (scale ? fabs(x[0] - x[1]) <= fmax(a->o->tolerance, 1e-5) * fabs(x[1]) : audit_agrees(a, x[0], x[1])) return TARE_OK;
    TRY(audit_format(a, &f.says, e, "%s", str_from_double(says, x[0])));
    TRY(audit_format(a, &f.expected, e, "%s", str_from_double(expected, x[1])));
    return audit_add_finding(a, s, i, f, e);
}

/* Computes the loss scales of a step as a single minibatch. */
static tare_status loss_scales(struct audit *a, const struct audit_step *s, const struct batch *b, double **out, struct err *e)
{
    int64_t *groups;
    TRY(arena_new(&a->step, out, b->n_tokens + 1, e));
    TRY(arena_new(&a->step, &groups, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++) groups[m] = m;
    if (token_weights(b, &a->o->config->loss, &(struct minibatch){groups, b->n_groups, a->o->config->rollout.max_new_tokens}, *out,
                      e))
        return err_prefix(e, "%s", s->file);
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const double share = (*out)[b->token_begin[i]] * (double)(b->token_begin[i + 1] - b->token_begin[i]);
        a->least = a->most > 0 ? fmin(a->least, share) : share;
        a->most = fmax(a->most, share);
    }
    return TARE_OK;
}

static bool has_lengths(const struct audit_step *s)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->row[i].length < 1) return false;
    return true;
}

/* Runs the estimator even if the dump has no advantages, because its state advances. */
tare_status audit_check_advantages(struct audit *a, struct audit_step *s, struct err *e)
{
    struct batch b;
    double *scale = NULL;
    if (!a->had[AUDIT_ADVANTAGE] && !a->had[AUDIT_WEIGHT] && !a->had[AUDIT_LENGTH]) return TARE_OK;
    TRY(estimate_step(a, s, &b, e));
    if (has_lengths(s)) TRY(loss_scales(a, s, &b, &scale, e));
    for (int64_t m = 0; m < s->n_groups; m++)
        for (int64_t k = s->begin[m]; s->whole[m] && k < s->begin[m + 1]; k++) {
            const int64_t i = s->order[k];
            const struct audit_row *r = &s->row[i];
            const struct {
                double x[2];
                struct finding f;
            } all[] = {{{r->advantage, b.advantage[k]},
                        {.column = AUDIT_ADVANTAGE, .text = "differs from the advantage of its group's rewards"}},
                       {{r->weight, b.rollout_weight[k]}, {.column = AUDIT_WEIGHT, .text = "differs from the estimator's"}},
                       {{scale ? r->loss_scale : (double)NAN, scale ? scale[b.token_begin[k]] : 0},
                        {.column = AUDIT_LOSS_SCALE, .text = "differs from the aggregation's factor for its tokens"}}};
            for (size_t n = 0; n < sizeof all / sizeof *all; n++) TRY(check_value(a, s, i, all[n].x, all[n].f, e));
        }
    return TARE_OK;
}
