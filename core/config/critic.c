#include "config/critic.h"

#include <string.h>

/* Keys of verl, OpenRLHF, Open-Reasoner-Zero and TRL's PPO. A name with a dot counts only in that
 * section. */
static const char *const KEYS[] = {"critic_pretrain",
                                   "critic_learning_rate",
                                   "critic_update_steps",
                                   "critic_warmup",
                                   "critic_lr_warmup_ratio",
                                   "value_clip",
                                   "value_model_path",
                                   "vf_coef",
                                   "cliprange_value",
                                   "lambd",
                                   "algorithm.lam",
                                   "algorithm.gamma",
                                   "gae_lambda",
                                   "lam"};
static const char *const ESTIMATORS[] = {"gae", "ppo", "vapo", "vc_ppo"};

static bool in_section(const char *section, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(section, name, n) && (!section[n] || section[n] == '.');
}

bool critic_has_key(const char *section, const char *key)
{
    if (in_section(section, "critic") || in_section(key, "critic")) return true;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const char *dot = strchr(KEYS[i], '.');
        const size_t n = dot ? (size_t)(dot - KEYS[i]) : 0;
        if (!dot && !strcmp(key, KEYS[i])) return true;
        if (dot && strlen(section) == n && !strncmp(section, KEYS[i], n) && !strcmp(key, dot + 1)) return true;
    }
    return false;
}

bool critic_has_estimator(const char *name)
{
    for (size_t i = 0; i < sizeof ESTIMATORS / sizeof *ESTIMATORS; i++)
        if (!strcmp(name, ESTIMATORS[i])) return true;
    return false;
}

/* With gamma = lambda = 1 GAE telescopes: A_t = R - V(s_t). */
const char CRITIC_MISSING[] =
    "needs a critic, but tare trains no second network to predict returns. With gamma and lambda 1 the advantage is the reward minus the critic's value; estimator.plugin = reinforce_pp_baseline uses the group's mean instead (configs/open-reasoner-zero.ini, docs/recipes.md)";
