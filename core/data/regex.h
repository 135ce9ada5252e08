/* Regular expressions of tokenizer.json, compiled with PCRE2. Internal to core/data. Text is valid
 * UTF-8. */
#ifndef TARE_CORE_DATA_REGEX_H
#define TARE_CORE_DATA_REGEX_H

#include "base/err.h"

#include <stdbool.h>

struct regex {
    struct pcre2_real_code_8 *code;
    char where[256]; /* the tokenizer's file and the pattern's place in it, for messages */
};

/* literal: the pattern is a plain string. */
tare_status regex_compile(const char *pattern, int64_t n, bool literal, const char *where, struct regex *out, struct err *e);
void regex_free(struct regex *r);

/* match: false for the non-empty text between two matches. */
typedef tare_status (*regex_sink)(void *ctx, const unsigned char *text, int64_t n, bool match, struct err *e);
/* Calls the sink with every non-empty match and the text between matches, in order. */
tare_status regex_each(const struct regex *r, const unsigned char *text, int64_t n, regex_sink sink, void *ctx, struct err *e);

#endif
