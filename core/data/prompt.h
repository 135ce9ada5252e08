/* From a row to the ids the model is given.
 *   data.prompt = chat   system message (if set), then one user turn: question + suffix, or the row's own messages in place of that turn (the
 *                        suffix is added to the last user message); rendered with the chat template and the generation prompt, encoded
 *                        without adding special tokens (the template writes them)
 *   data.prompt = plain  question + suffix as it is, after BOS when the tokenizer wants one
 * The options of a row with choices are part of its question (choices.h).
 * Threads: prompts may be made from several threads. */
#ifndef TARE_CORE_DATA_PROMPT_H
#define TARE_CORE_DATA_PROMPT_H

#include "config/config.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "template/chat.h"

struct prompts;

/* The tokenizer is borrowed. folder: the model's (for its chat template). A chat prompt without a template is refused. */
tare_status prompts_new(const struct data_config *config, const char *folder, const struct tokenizer *t, struct prompts **out,
                        struct err *e);
void prompts_free(struct prompts *p);
/* The text that is encoded, appended to out. */
tare_status prompts_text(const struct prompts *p, const struct row *row, struct str *out, struct err *e);
/* Appends the ids. */
tare_status prompts_encode(const struct prompts *p, const struct row *row, struct token_ids *out, struct err *e);

struct prompt_room {
    int64_t tokens, context, most; /* a prompt has at most `tokens`; context and rollout.max_prompt_tokens, for the message */
    int64_t vocab;                 /* the model's: a prompt's ids are below it; 0: any */
    bool warns;                    /* of a template that makes all prompts alike */
};
/* Every prompt of d has its room, else TARE_E_RANGE. hash (may be NULL): takes in all ids and answers. */
tare_status prompts_check(const struct prompts *p, const struct dataset *d, const struct prompt_room *room, uint64_t *hash,
                          struct err *e);

#endif
