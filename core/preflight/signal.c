#include "preflight/signal.h"

#include "base/log.h"
#include "estimate/estimate.h"

#include <math.h>

enum { GROUPS = 4, TRIES = 2 };

static int32_t is_cancelled(void *ctx)
{
    (void)ctx;
    return 0;
}

/* Builds groups of equal rewards, 0 in every other one and 1 in the rest. NULL: no memory. */
static json_t *equal_rewards(int64_t group_size)
{
    json_t *groups = json_array();
    for (int64_t m = 0; m < GROUPS; m++) {
        json_t *rewards = json_array();
        for (int64_t i = 0; i < group_size; i++) json_array_append_new(rewards, json_real((double)(m % 2)));
        json_array_append_new(groups, json_pack("{s:i, s:I, s:o}", "cluster", 0, "uid", (json_int_t)m + 1, "rewards", rewards));
    }
    return json_pack("{s:o}", "groups", groups);
}

/* Tests whether the estimator gives equal rewards of a group an advantage, in the first step or, with
 * a history, in the second. True as well if it needs columns that only a run has. */
static bool has_signal(struct estimator *est, const json_t *object, struct arena *a)
{
    const struct estimate_update update = {.updates = 1};
    struct err e = {0};
    for (int i = 0; i < TRIES; i++) {
        struct batch b;
        if (estimate_parse(object, "probe", a, &b, &e)) return true;
        estimate_begin(est);
        if (estimate_run(est, &b, a, &e) || estimate_apply(est, &update, &e)) return true;
        if (b.token_advantage || estimate_metrics(est)->nonzero_advantage_ratio > 0) return true;
    }
    return false;
}

static bool learns_from_equal(const struct config *c, int64_t group_size)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct estimate_options options = {.plugin = c->estimator.plugin,
                                             .search = &search,
                                             .settings = c->params,
                                             .n_clusters = config_has_codebook(c) ? c->codebook.clusters : 0,
                                             .env = {.seed = (uint64_t)c->run.seed, .cancelled = is_cancelled}};
    OWNED(estimate_free_at) struct estimator *est = NULL;
    OWNED(json_decrefp) json_t *object = equal_rewards(group_size);
    OWNED(arena_free) struct arena a = {0};
    struct err e = {0};
    arena_init(&a, "estimator's probe");
    return !object || estimate_open(&options, &est, &e) || has_signal(est, object, &a);
}

void preflight_warn_signal(const struct config *c)
{
    const bool greedy = c->rollout.temperature <= 0;
    /* a trace replaces a rollout, so its group may have two rewards */
    if (c->rollout.off_policy || (!greedy && c->rollout.group_size > 1)) return;
    if (c->rollout.group_size == 1) {
        if (!learns_from_equal(c, 1))
            log_warn(
                "%s: rollout.group_size = 1: estimator %s compares the rollouts of a prompt, so every advantage is 0 and nothing is learned from rewards; set rollout.group_size to 2 or more (8 is the default)",
                config_where(c, "rollout", "group_size"), c->estimator.plugin);
    }
    if (greedy)
        log_warn(
            "%s: rollout.temperature = 0: greedy sampling gives the same completion to every rollout of a prompt%s, and the loss uses probabilities at temperature 1; set rollout.temperature = 1",
            config_where(c, "rollout", "temperature"),
            c->rollout.group_size == 1 || learns_from_equal(c, c->rollout.group_size < 8 ? c->rollout.group_size : 8)
                ? ""
                : ", so every advantage is 0");
}
