/* One key's value: from text into the struct, checked, and back into text. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_VALUE_H
#define TARE_CORE_CONFIG_VALUE_H

#include "config/keys.h"

/* TARE_E_CONFIG with where, key, value and what is allowed. Text is copied into c's arena. */
tare_status value_set(struct config *c, const struct config_key *k, const char *text, const char *where, struct err *e);
tare_status value_print(const struct config *c, const struct config_key *k, struct str *out, struct err *e);
/* "0 or more", "above 0, at most 1", "one of: a, b", ... */
tare_status value_allowed(const struct config_key *k, struct str *out, struct err *e);
/* The text of a KEY_CHOICE. */
const char *value_choice(const struct config *c, const struct config_key *k);
/* The pointer of a KEY_TEXT. */
const char **value_text(struct config *c, const struct config_key *k);

#endif
