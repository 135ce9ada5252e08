/* Helpers shared by the readers of tokenizer.json. Internal to core/data. */
#ifndef TARE_CORE_DATA_TOKENIZER_JSON_H
#define TARE_CORE_DATA_TOKENIZER_JSON_H

#include "base/json.h"

#include <stdbool.h>

/* In tokenizer.json, null and absent always mean the same. */
const json_t *tokenizer_json_member(const json_t *o, const char *key);
const char *tokenizer_json_type(const json_t *o);
/* Returns member i of a Sequence, or the object itself for i = 0; NULL after the last. */
const json_t *tokenizer_json_part(const json_t *o, const char *list, size_t i);
/* Refuses a member that is not in allowed, which ends with NULL. */
tare_status tokenizer_json_only_keys(const json_t *o, const char *const *allowed, const char *where, struct err *e);
/* Reads pattern.Regex or pattern.String. */
tare_status tokenizer_json_pattern(const json_t *o, const char *where, tare_text *pattern, bool *literal, struct err *e);

#endif
