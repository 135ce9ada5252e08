/* Converts one key's value between text and struct, with checks. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_VALUE_H
#define TARE_CORE_CONFIG_VALUE_H

#include "config/keys.h"

/* Parses and stores a value. TARE_E_CONFIG names the place, key, value and allowed values. Text is
 * copied into c's arena. */
tare_status value_set(struct config *c, const struct config_key *k, const char *text, const char *where, struct err *e);
tare_status value_print(const struct config *c, const struct config_key *k, struct str *out, struct err *e);
/* Prints "0 or more", "above 0, at most 1", "one of: a, b", ... */
tare_status value_allowed(const struct config_key *k, struct str *out, struct err *e);
/* Returns the text of a KEY_CHOICE. */
const char *value_choice(const struct config *c, const struct config_key *k);
/* Returns the pointer of a KEY_TEXT. */
const char **value_text(struct config *c, const struct config_key *k);

#endif
