/* run.as: the defaults of another trainer's GRPO, as tare's keys. docs/recipes.md lists the
 * versions, and differences that no key can reproduce. */
#include "config/recipes.h"

#include <stdio.h>
#include <string.h>

enum { TRAINERS = AS_SLIME };

struct recipe_key {
    const char *section, *key;
    const char *of[TRAINERS]; /* in the order of CHOICES_AS: verl, trl, nemo, openrlhf, slime */
};

/* The KL coefficient is 0 if the trainer's is; the form is set for users who enable it.
 * estimator.grpo.delta = 0 selects the convention's value. slime has its own convention: 1e-6, and
 * 0 for a group of one. */
static const struct recipe_key KEYS[] = {
    {"verifier", "overlong", {"none", "none", "none", "none", "none"}},
    {"estimator", "plugin", {"grpo", "grpo", "grpo", "grpo", "grpo"}},
    {"estimator.grpo", "convention", {"verl", "trl", "nemo", "openrlhf", "paper"}},
    {"estimator.grpo", "ddof", {"-1", "-1", "-1", "-1", "-1"}},
    {"estimator.grpo", "delta", {"0", "0", "0", "0", "1e-6"}},
    {"estimator.grpo", "scale", {"group", "group", "group", "group", "group"}},
    {"objective", "plugin", {"ppo", "ppo", "ppo", "ppo", "ppo"}},
    {"loss", "aggregation", {"token", "token", "token", "token", "sequence"}},
    {"loss", "aggregation_length", {"0", "0", "0", "0", "0"}},
    {"loss", "clip", {"0.2", "0.2", "0.2", "0.2", "0.2"}},
    {"loss", "clip_high", {"0", "0", "0", "0", "0"}},
    {"loss", "dual_clip", {"3", "0", "0", "0", "0"}},
    {"loss", "kl_coef", {"0", "0", "0.01", "0.01", "0"}},
    {"loss", "kl", {"k3", "k3", "k3", "k1", "k1"}},
    {"loss", "kl_weight", {"none", "ratio", "score", "none", "none"}},
    {"loss", "kl_place", {"loss", "loss", "loss", "reward", "loss"}},
    {"loss", "entropy_coef", {"0", "0", "0", "0", "0"}},
    {"loss", "old_logprobs", {"recompute", "recompute", "recompute", "recompute", "recompute"}},
    {"loss", "rollout_is", {"none", "none", "none", "none", "none"}},
};

/* Returns the length of the file in "file:line", or of all of "command line". */
static size_t length_of_file(const char *where)
{
    const char *end = strrchr(where, ':');
    return end ? (size_t)(end - where) : strlen(where);
}

static bool same_layer(const char *a, const char *b)
{
    const size_t n = length_of_file(a);
    return n == length_of_file(b) && !memcmp(a, b, n);
}

tare_status recipe_apply(struct config *c, const char *layer, recipe_assign assign, struct err *e)
{
    char where[600];
    if (c->run.as == AS_NONE) return TARE_OK;
    snprintf(where, sizeof where, "run.as = %s, %s", config_chosen(c, "run", "as"), layer);
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const struct recipe_key *k = &KEYS[i];
        if (same_layer(config_where(c, k->section, k->key), layer)) continue;
        TRY(assign(c, k->section, k->key, k->of[c->run.as - 1], where, e));
    }
    return TARE_OK;
}

bool recipe_set(const struct config *c, const char *section, const char *key)
{
    return !strncmp(config_where(c, section, key), "run.as = ", 9);
}
