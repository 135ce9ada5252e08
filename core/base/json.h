/* Thin helpers over jansson: parse with file:line in the error, typed look-ups with the key in the error. */
#ifndef TARE_CORE_BASE_JSON_H
#define TARE_CORE_BASE_JSON_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Once in a program: without memory jansson would crash; with this the process ends with a message and exit status 1. */
void json_begin(void);
/* The exit status of that end, where 1 says something else. */
void json_end_with(int status);
/* What that end calls after its message, of a process whose children must not go on alone; NULL: nothing. It must not use JSON. */
void json_stop_first(void (*stop)(void *ctx), void *ctx);

/* where: a file name, or "file:12" for a line of JSONL. Duplicate keys and trailing text are refused, NUL in strings allowed. */
tare_status json_parse(const char *text, int64_t n, const char *where, json_t **out, struct err *e);
tare_status json_read_file(const char *path, json_t **out, struct err *e);
/* For tokenizer_config.json: a whole number of 19 digits or more is read as a real. transformers writes "no limit" as
 * 1000000000000000019884624838656. */
tare_status json_parse_wide(const char *text, int64_t n, const char *where, json_t **out, struct err *e);
tare_status json_read_wide(const char *path, json_t **out, struct err *e);
/* Appends the compact form; keys in insertion order, reals with 17 significant digits. */
tare_status json_print(const json_t *j, struct str *out, struct err *e);
/* The same with a member a line, for files that people read. */
tare_status json_print_lines(const json_t *j, struct str *out, struct err *e);

/* A member, an element: value is taken. *bad becomes true where value is NULL or there is no memory for it, so that callers read as a list. Jansson's own
 * functions leave out what has no memory, and its json_copy does so without a word. */
void json_put(json_t *o, bool *bad, const char *key, json_t *value);
void json_add(json_t *list, bool *bad, json_t *value);
/* j, or where bad NULL, and j is freed: json_pack fails as a whole for a part that is NULL. */
json_t *json_unless(bool bad, json_t *j);
/* A string; what is not UTF-8 becomes "(not UTF-8)". NULL: no memory. */
json_t *json_readable(const char *text);

/* Member of an object. Missing or null: TARE_E_INVALID naming where and key, unless a default is given. */
tare_status json_get_int(const json_t *o, const char *key, const char *where, int64_t *out, struct err *e);
tare_status json_get_double(const json_t *o, const char *key, const char *where, double *out, struct err *e);
tare_status json_get_text(const json_t *o, const char *key, const char *where, tare_text *out, struct err *e);
int64_t json_int_or(const json_t *o, const char *key, int64_t otherwise);
double json_double_or(const json_t *o, const char *key, double otherwise);
const char *json_text_or(const json_t *o, const char *key, const char *otherwise);
int json_bool_or(const json_t *o, const char *key, int otherwise);

/* Reads JSONL from f, calling line() with each non-empty line's object; stops at its first error. name: for messages. */
typedef tare_status (*json_line)(void *ctx, const json_t *object, const char *where, struct err *e);
tare_status json_each_line(FILE *f, const char *name, json_line line, void *ctx, struct err *e);

#endif
