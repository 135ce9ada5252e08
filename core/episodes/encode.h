/* From what an environment says to token ids: its messages as the chat template writes them behind an
 * act, or their texts alone. The text of a special token stays text: it ends no turn and opens no
 * role. */
#ifndef TARE_CORE_EPISODES_ENCODE_H
#define TARE_CORE_EPISODES_ENCODE_H

#include "data/prompt.h"
#include "plugin/episode.h"

struct encode {
    const struct prompts *prompts; /* borrowed, like tokenizer and config */
    const struct tokenizer *tokenizer;
    const struct environment_config *config;
    const char *name;        /* of the environment */
    enum call_syntax syntax; /* of tool calls; CALLS_NONE: acts are texts */
    bool in_thought;         /* every answer begins within a thought */
    tare_text *special;      /* [n_special] texts of the tokenizer's special tokens */
    int64_t n_special;
    struct arena arena;
};

/* Refuses a chat template that writes an earlier turn otherwise than it was sampled. */
tare_status encode_begin(struct encode *x, const struct prompts *p, const struct tokenizer *t,
                         const struct environment_config *config, struct err *e);
void encode_end(struct encode *x);
/* Refuses tools where no syntax of their calls is known; warns if the template does not show them. */
tare_status encode_check_tools(const struct encode *x, const struct plugin_episode *at, struct err *e);
/* Appends the ids of a group's prompt, and its text. */
tare_status encode_opening(const struct encode *x, const struct plugin_episode *at, const struct row *row, struct token_ids *ids,
                           struct str *text, struct err *e);
/* Appends the ids of what follows an act, whose last token is stop. */
tare_status encode_observation(const struct encode *x, const struct plugin_episode *at, const struct row *row, int32_t stop,
                               struct token_ids *ids, struct err *e);

#endif
