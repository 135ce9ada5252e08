/* A model's chat template with the variables that transformers passes to it (bos_token, eos_token,
 * ...). Threads: a loaded chat may be rendered from several threads. */
#ifndef TARE_CORE_TEMPLATE_CHAT_H
#define TARE_CORE_TEMPLATE_CHAT_H

#include "template/template.h"

#include <stdbool.h>

struct chat;

/* folder: chat_template.jinja, or chat_template of tokenizer_config.json (its "default" if there
 * are several). file: overrides the folder's template; NULL or empty: none. Fails with
 * TARE_E_NOT_FOUND if there is no template. */
tare_status chat_load(const char *folder, const char *file, struct chat **out, struct err *e);
/* Sets the date that strftime_now returns, "2026-11-22" (at midnight, UTC). Default: the moment of
 * chat_load. */
tare_status chat_set_date(struct chat *c, const char *date, struct err *e);
/* Adds variables, which replace others of the same name. variables: JSON object; a message begins
 * with where. Refuses messages and add_generation_prompt. */
tare_status chat_set_variables(struct chat *c, const json_t *variables, const char *where, struct err *e);
/* The same, from the text of data.chat_template_kwargs; empty: none. */
tare_status chat_set_kwargs(struct chat *c, const char *text, struct err *e);
void chat_free(struct chat *c);
/* Renders a conversation and appends it to out. messages: JSON array of {"role","content",...}.
 * extra: more variables, or NULL. */
tare_status chat_render(const struct chat *c, const json_t *messages, bool add_generation_prompt, const json_t *extra,
                        struct str *out, struct err *e);

/* Renders the prompt of the next answer and appends it to out. If the last message is the
 * assistant's, the text ends with its content, which the answer continues, as with
 * continue_final_message of transformers; otherwise with the generation prompt. */
tare_status chat_prompt(const struct chat *c, const json_t *messages, const json_t *extra, struct str *out, struct err *e);
/* Renders messages up to the end of the last message's content. */
tare_status chat_continue(const struct chat *c, const json_t *messages, const json_t *extra, struct str *out, struct err *e);

/* The tags around a thought, ending with {NULL}. */
struct chat_thought {
    const char *open, *close;
};
extern const struct chat_thought CHAT_THOUGHTS[];
/* Returns whether the prompt of a question ends with a tag that opens a thought, so that completions
 * have only its closing tag. false if the template refuses the question. */
bool chat_opens_thought(const struct chat *c);

/* Names that a template may use, ending with NULL: messages, add_generation_prompt, and the
 * variables of tokenizer_config.json. */
extern const char *const CHAT_VARIABLES[];
/* Appends "FILE reads a, b, which are not defined", or another reason why a template may omit the
 * messages. */
tare_status chat_blame(const struct chat *c, struct str *out, struct err *e);

#endif
