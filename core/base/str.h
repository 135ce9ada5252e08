/* A growable byte string, always NUL-terminated, which may contain NUL. Zero-initialise it and call
 * str_free when done. */
#ifndef TARE_CORE_BASE_STR_H
#define TARE_CORE_BASE_STR_H

#include "base/err.h"

#include <stdbool.h>

struct str {
    char *data;
    int64_t size, capacity;
};

tare_status str_reserve(struct str *s, int64_t extra, struct err *e);
/* n < 0: up to the terminating NUL */
tare_status str_add(struct str *s, const char *data, int64_t n, struct err *e);
tare_status str_addf(struct str *s, struct err *e, const char *format, ...) ERR_PRINTF(3, 4);
void str_clear(struct str *s);
void str_free(struct str *s);

/* Parse the whole text as a number. Trailing text, overflow and an empty text are errors. The
 * result does not depend on the locale. */
tare_status str_to_int(const char *text, int64_t *out, struct err *e);
tare_status str_to_double(const char *text, double *out, struct err *e);
/* Format the shortest text that reads back as exactly x ("0.1", "1e-08"); buffer has at least 32
 * bytes. */
const char *str_from_double(char *buffer, double x);
/* Format three digits of x and the unit with its prefix ("3.81 GB", "512 B"); buffer has at least
 * 32 bytes. */
const char *str_amount(char *buffer, double x, const char *unit);
/* Return 0 if data is valid UTF-8 (no surrogates, no overlong forms), otherwise 1 + the offset of
 * the first invalid byte. */
int64_t str_utf8_error(const char *data, int64_t n);
/* Replace control characters by '?', because a terminal would interpret them: messages and tables
 * contain untrusted names and rows. Newlines and tabs are kept. */
void str_disarm(char *text, int64_t n);
/* Write a word as a POSIX shell reads it back, for the commands that messages advise: as it is if
 * that is safe, else in single quotes; "./" goes in front of a leading "-", because words are paths.
 * buffer has STR_SHELL bytes; a longer result is cut. */
enum { STR_SHELL = 8192 };
const char *str_shell(char *buffer, const char *word);
bool str_ends_with(const char *s, const char *end);
/* Number of single-character edits from a to b, for "did you mean". */
int64_t str_distance(const char *a, const char *b);

#endif
