/* A model's chat template with the variables that transformers gives it (bos_token, eos_token, ...).
 * Threads: a loaded chat may be rendered from several threads. */
#ifndef TARE_CORE_TEMPLATE_CHAT_H
#define TARE_CORE_TEMPLATE_CHAT_H

#include "template/template.h"

#include <stdbool.h>

struct chat;

/* folder: chat_template.jinja, or chat_template of tokenizer_config.json (its "default" when there are several). file: a template
 * in place of the folder's; NULL or empty: none. Fails with TARE_E_NOT_FOUND when neither has one. */
tare_status chat_load(const char *folder, const char *file, struct chat **out, struct err *e);
/* The date that a template's strftime_now tells, "2026-11-22" (its midnight, UTC). Without it: the moment of chat_load. */
tare_status chat_set_date(struct chat *c, const char *date, struct err *e);
void chat_free(struct chat *c);
/* messages: JSON array of {"role","content",...}. extra: more variables, or NULL. Appends to out. */
tare_status chat_render(const struct chat *c, const json_t *messages, bool add_generation_prompt, const json_t *extra,
                        struct str *out, struct err *e);

/* What a template may use, ended by NULL: messages, add_generation_prompt, and what tokenizer_config.json may have. */
extern const char *const CHAT_VARIABLES[];
/* Adds "FILE reads a, b, which nobody defines", or why else a template may leave the messages out. */
tare_status chat_blame(const struct chat *c, struct str *out, struct err *e);

#endif
