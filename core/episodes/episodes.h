/* Episodes: an environment's plugin (tare/draft/environment.h) answers the turns of a batch's
 * rollouts.
 *
 *   TRY(episodes_open(&options, &x, e));
 *   each batch:  TRY(episodes_prompts(x, key, b, arena, e));        on every rank
 *                TRY(episodes_reset(x, key, own, group_size, &how, e));
 *                sampler_run with how: it asks for the text after each turn
 *                TRY(episodes_columns(x, own, arena, e));
 *   episodes_close(x);
 *
 * A session belongs to one rollout at a time and is used again in the next batch. The seed of a group
 * and the noise of a rollout are functions of the batch's key, the prompt and its occurrence, so an
 * episode is the same for every number of ranks and threads. All calls come from one thread. */
#ifndef TARE_CORE_EPISODES_EPISODES_H
#define TARE_CORE_EPISODES_EPISODES_H

#include "base/rng.h"
#include "batch/batch.h"
#include "data/prompt.h"
#include "model/model.h"
#include "plugin/plugin.h"
#include "rollout/rollout.h"

struct episodes;

struct episodes_options {
    const struct environment_config *config;
    const struct plugin_search *search;
    const struct config_param *settings; /* config.params */
    struct plugin_env env;
    const struct prompts *prompts; /* borrowed, like tokenizer and model */
    const struct tokenizer *tokenizer;
    const struct model *model;
    int ranks;
};
/* TARE_E_CONFIG also if several ranks are to play an environment that does not repeat itself. */
tare_status episodes_open(const struct episodes_options *o, struct episodes **out, struct err *e);
void episodes_close(struct episodes *x); /* no-op for NULL */
const struct plugin_instance *episodes_instance(const struct episodes *x);

/* Appends what the environment says at the beginning to each prompt (and prompt_text, if recorded);
 * with environment.question = false it is the whole prompt. key: of the batch's draws. */
tare_status episodes_prompts(struct episodes *x, struct rng_key key, struct batch *b, struct arena *a, struct err *e);
/* Begins an episode for each rollout that will be sampled for own. Refuses an environment that begins
 * differently within a group. out: valid until the next call. */
tare_status episodes_reset(struct episodes *x, struct rng_key key, const struct batch *own, int64_t group_size,
                           struct sample_episodes *out, struct err *e);
/* Fills turn_reward, turn_state and episode_verdict of own, whose episodes have been sampled. */
tare_status episodes_columns(struct episodes *x, struct batch *own, struct arena *a, struct err *e);

#endif
