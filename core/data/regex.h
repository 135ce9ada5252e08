/* Regular expressions of tokenizer.json, by PCRE2. Internal to the data folder. Text is valid UTF-8. */
#ifndef TARE_CORE_DATA_REGEX_H
#define TARE_CORE_DATA_REGEX_H

#include "base/err.h"

#include <stdbool.h>

struct regex {
    struct pcre2_real_code_8 *code;
};

/* literal: the pattern is a plain string. */
tare_status regex_compile(const char *pattern, int64_t n, bool literal, const char *where, struct regex *out, struct err *e);
void regex_free(struct regex *r);

/* match: false for the text between two matches, which is not empty. */
typedef tare_status (*regex_sink)(void *ctx, const unsigned char *text, int64_t n, bool match, struct err *e);
/* Every match that is not empty, and what is between them, in order. */
tare_status regex_each(const struct regex *r, const unsigned char *text, int64_t n, regex_sink sink, void *ctx, struct err *e);

#endif
