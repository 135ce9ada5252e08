/* What the readers of tokenizer.json share. Internal to the data folder. */
#ifndef TARE_CORE_DATA_TOKENIZER_JSON_H
#define TARE_CORE_DATA_TOKENIZER_JSON_H

#include "base/json.h"

#include <stdbool.h>

/* null and absent are the same everywhere in tokenizer.json. */
const json_t *tokenizer_json_member(const json_t *o, const char *key);
const char *tokenizer_json_type(const json_t *o);
/* The members of a Sequence, or the object itself; NULL after the last. */
const json_t *tokenizer_json_part(const json_t *o, const char *list, size_t i);
/* Refuses a member that is not in allowed, which ends with NULL. */
tare_status tokenizer_json_only_keys(const json_t *o, const char *const *allowed, const char *where, struct err *e);
/* pattern.Regex or pattern.String. */
tare_status tokenizer_json_pattern(const json_t *o, const char *where, tare_text *pattern, bool *literal, struct err *e);

#endif
