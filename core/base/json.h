/* Helpers for jansson: parsing with file:line in errors, and typed look-ups with the key in
 * errors. */
#ifndef TARE_CORE_BASE_JSON_H
#define TARE_CORE_BASE_JSON_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Makes the process end with a message and exit status 1 when jansson runs out of memory, where it
 * would crash. Call once per program. */
void json_begin(void);
/* Sets a different exit status for that case. */
void json_end_with(int status);
/* Set a function that is called after that message, for a process that must not leave child
 * processes running; NULL: none. The function must not use JSON. */
void json_stop_first(void (*stop)(void *ctx), void *ctx);

/* where is a file name, or "file:12" for a line of JSONL. Duplicate keys and trailing text are
 * errors; NUL is allowed in strings. */
tare_status json_parse(const char *text, int64_t n, const char *where, json_t **out, struct err *e);
tare_status json_read_file(const char *path, json_t **out, struct err *e);
/* For tokenizer_config.json: integers of 19 or more digits are read as reals, because transformers
 * writes "no limit" as 1000000000000000019884624838656. */
tare_status json_parse_wide(const char *text, int64_t n, const char *where, json_t **out, struct err *e);
tare_status json_read_wide(const char *path, json_t **out, struct err *e);
/* Append the compact form: keys in insertion order, reals with 17 significant digits. */
tare_status json_print(const json_t *j, struct str *out, struct err *e);
/* Append the form for human readers, one member per line. */
tare_status json_print_lines(const json_t *j, struct str *out, struct err *e);

/* Add a member or an element; the reference to value is stolen. *bad becomes true if value is NULL
 * or memory runs out, so that callers can build an object without checking each call. Jansson's own
 * functions skip a value without memory, and json_copy does so silently. */
void json_put(json_t *o, bool *bad, const char *key, json_t *value);
void json_add(json_t *list, bool *bad, json_t *value);
/* Return j; if bad, free j and return NULL. (json_pack fails as a whole if a part is NULL.) */
json_t *json_unless(bool bad, json_t *j);
/* Make a string; text that is not valid UTF-8 becomes "(not UTF-8)". NULL: out of memory. */
json_t *json_readable(const char *text);

/* Get a member of an object. A missing or null member is TARE_E_INVALID naming where and key,
 * unless a default is given. */
tare_status json_get_int(const json_t *o, const char *key, const char *where, int64_t *out, struct err *e);
tare_status json_get_double(const json_t *o, const char *key, const char *where, double *out, struct err *e);
tare_status json_get_text(const json_t *o, const char *key, const char *where, tare_text *out, struct err *e);
int64_t json_int_or(const json_t *o, const char *key, int64_t otherwise);
double json_double_or(const json_t *o, const char *key, double otherwise);
const char *json_text_or(const json_t *o, const char *key, const char *otherwise);
int json_bool_or(const json_t *o, const char *key, int otherwise);

/* Read JSONL from f and call line() with each non-empty line's object; stop at its first error.
 * name is used in messages. */
typedef tare_status (*json_line)(void *ctx, const json_t *object, const char *where, struct err *e);
tare_status json_each_line(FILE *f, const char *name, json_line line, void *ctx, struct err *e);

#endif
