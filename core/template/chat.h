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
void chat_free(struct chat *c);
/* Renders a conversation and appends it to out. messages: JSON array of {"role","content",...}.
 * extra: more variables, or NULL. */
tare_status chat_render(const struct chat *c, const json_t *messages, bool add_generation_prompt, const json_t *extra,
                        struct str *out, struct err *e);

/* Names that a template may use, ending with NULL: messages, add_generation_prompt, and the
 * variables of tokenizer_config.json. */
extern const char *const CHAT_VARIABLES[];
/* Appends "FILE reads a, b, which are not defined", or another reason why a template may omit the
 * messages. */
tare_status chat_blame(const struct chat *c, struct str *out, struct err *e);

#endif
